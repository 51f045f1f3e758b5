"""Figures of the code that only fall, or stay 0; ``tests/support/ratchets.py`` counts them."""

from __future__ import annotations

import ast

import pytest
import ratchets


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("isinstance(column, (IntegerColumn, columns.RealColumn))", 1),
        ("isinstance(column, Column)", 1),
        ("isinstance(schema, TableSchema)", 0),
        ("column.numeric and not column.discrete", 2),
        ("numeric = True", 0),
        ("name in released.discrete", 0),
        ("getattr(column, 'edges', ())", 1),
        ("hasattr(each, 'timezone')", 1),
        ("getattr(self.columns[name], wanted)", 1),
        ("getattr(args, 'help')", 0),
        ("column.nature == 'date'", 1),
        ("column.type in ('date', 'datetime')", 1),
        ("event.type == 'gaussian'", 0),
        ("match column:\n case DateColumn(): pass\n case _: pass", 1),
    ],
)
def test_questions_are_counted(source, asked):
    assert ratchets.questions("encode/x.py", ast.parse(source), source) == asked
    assert ratchets.questions("schema/columns/date.py", ast.parse(source), source) == 0


def test_lines_are_counted_without_what_is_no_code():
    text = '"""A module\n\nof two."""\n\nimport x\nfrom y import (\n    a,\n)\n\n# why\nZ = (\n    1\n)\n"""Of Z."""\n'
    text += 'def f():\n    """F."""\n    text = """a\n    b"""\n    return text  # at last\n'
    assert ratchets.code_lines("x.py", ast.parse(text), text) == 3 + 4
    assert (ratchets.folder_of("x.py"), ratchets.folder_of("a/b/x.py")) == ("top", "a")


@pytest.mark.parametrize(
    ("said", "begins", "anybody", "long"),
    [
        ("What a column is.", 1, 0, 0),
        ("Whoever asks is told.", 1, 1, 0),
        ("Whole numbers.", 0, 0, 0),
        ("Records of nobody. They count.", 0, 1, 1),
        ("Count records.\n\n    More. And more.", 0, 0, 0),
        ("The public tree, e.g. of dates.", 0, 0, 0),
        ("Records: counted", 0, 0, 1),
    ],
)
def test_docstrings_are_judged(said, begins, anybody, long):
    tree = ast.parse(f'"""{said}"""')
    found = [
        count("x.py", tree, "")
        for count in (ratchets.asking_docstrings, ratchets.docstrings_of_nobody, ratchets.long_module_docstrings)
    ]
    assert found == [begins, anybody, long]


def test_names_and_texts_of_constants_are_judged():
    source = (
        '"""Count records."""\nMOST = 3\n"""How many."""\nLEAST = 1  # of nobody\n"""The least."""\n'
        "class Third: ...\nclass ScoreComponent: ...\nclass _Block: ...\nclass PLD: ...\n"
        "def price_of(x): ...\ndef price(x): ...\n"
    )
    tree = ast.parse(source)
    judges = {
        ratchets.asking_texts: 1,
        ratchets.comments_of_nobody: 1,
        ratchets.one_word_classes: 3,
        ratchets.functions_of: 1,
        ratchets.wordy_module_docstrings: 0,
    }
    assert {judge: judge("x.py", tree, source) for judge in judges} == judges
    wordy = ast.parse(f'"""{"word " * ratchets.MOST_WORDS}more."""')
    assert ratchets.wordy_module_docstrings("x.py", wordy, "") == 1


def test_ceilings_are_only_lowered():
    assert ratchets.lowered({"a": 3, "b": 2, "gone": 1}, {"a": 2, "b": 5, "new": 4}) == {"a": 2, "b": 2, "new": 4}


def test_no_rule_for_names_and_sentences_is_broken():
    broken = ratchets.counts(ratchets.SOURCE)[1]
    assert not broken, "\n".join(broken)


def test_broken_rules_are_listed(tmp_path):
    (tmp_path / "a.py").write_text('"""What it is.\n\nOf nobody."""\nclass Third: ...\n')
    (tmp_path / "b.py").write_text('"""Count records. All."""\nclass Third: ...\n')
    assert [line.partition(":")[0] for line in ratchets.counts(tmp_path)[1]] == ["a.py", "a.py", "b.py", "class Third"]


def test_no_figure_rises():
    kept, (found, _) = ratchets.ceilings(), ratchets.counts(ratchets.SOURCE)
    risen = {what: f"{now}, above {kept[what]}" for what, now in found.items() if now > kept.get(what, now)}
    unkept = sorted({*found} - {*kept})
    assert not risen, (
        f"{', '.join(f'{what}: {how}' for what, how in risen.items())}; less of it, or else raise its line in "
        "tests/ratchets.json by hand and say why in the commit; python tests/support/ratchets.py lists what is counted"
    )
    assert not unkept, f"{', '.join(unkept)}: give it a ceiling: python tests/support/ratchets.py --lower"
    lower = {what: f"{found.get(what, 'gone')}, below {most}" for what, most in kept.items() if found.get(what) != most}
    for what, how in lower.items():
        print(f"{what}: {how}; lower it: python tests/support/ratchets.py --lower")
