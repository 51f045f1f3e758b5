"""Figures of the pages follow from kept rows: each is computed again, and a wrong digit or another row is caught."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
MAP = yaml.safe_load((ROOT / "docs" / "evidence.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def evidence():
    if not (ROOT / "benchmarks").is_dir():
        pytest.skip("needs the benchmarks of a checkout")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        for name in ("evidence", "results"):
            patch.delitem(sys.modules, name, raising=False)
        yield importlib.import_module("evidence")


@pytest.fixture(scope="module")
def found(evidence):
    """Every page's text and entries."""
    return {name: (evidence.page(name), list(evidence.entries(own, MAP["rows"]))) for name, own in MAP["pages"].items()}


@pytest.mark.parametrize("name", MAP["pages"])
def test_every_entry_stands_in_its_page_as_its_rows_make_it(evidence, found, name):
    text, entries = found[name]
    assert evidence.misses(text, entries) == []


@pytest.mark.parametrize("name", MAP["pages"])
def test_figures_without_an_entry_only_fall(evidence, found, name):
    """Lower ``open`` in docs/evidence.yaml with them; ``python benchmarks/evidence.py PAGE`` lists them."""
    text, entries = found[name]
    assert len(evidence.open_figures(text, entries)) == MAP["pages"][name]["open"]


@pytest.mark.parametrize("name", MAP["pages"])
def test_each_wrong_digit_is_caught(evidence, found, name):
    text, entries = found[name]
    for entry in entries:
        at = text.index(entry.words)
        for start, end in entry.figures:
            for digit in [place for place in range(at + start, at + end) if text[place].isdigit()][-2:]:
                planted = text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :]
                assert evidence.misses(planted, [entry]), planted[at : at + len(entry.words)]


def test_another_row_is_caught_whichever_it_is(evidence, monkeypatch):
    """A selection with other numbers, in another order (a share stays one), makes other words wherever it is named."""

    def other(value, turned):
        if isinstance(value, dict):
            return {key: other(each, turned) for key, each in value.items()}
        if isinstance(value, list):
            return [other(each, turned) for each in value]
        if isinstance(value, bool):
            return not value
        return (1 - value if turned else value) / 3 + 0.11 if isinstance(value, int | float) else value

    def planting(name, wanted):
        rows = select(name, wanted)
        if name != planted:
            return rows
        return evidence.Rows([other(row, place % 2) for place, row in enumerate(rows.raw)])

    select, planted = evidence.select, ""
    monkeypatch.setattr(evidence, "select", planting)
    for name, own in MAP["pages"].items():
        text = evidence.page(name)
        for entry in (each for each in own["entries"] if "says" in each):
            values = next(evidence.repeated(entry.get("each", [{}])))  # of a table, its first line
            own_words = evidence.filled({key: value for key, value in entry.items() if key != "each"}, values)
            named = set(re.findall(r"(?<![.\w'])[a-z_]\w*", " ".join(re.findall(r"\{[^{}]*\}", own_words["says"]))))
            for planted in named & {*MAP["rows"], *own_words.get("rows", {})}:
                changed = list(evidence.entries({"entries": [own_words]}, MAP["rows"]))
                assert evidence.misses(text, changed), (planted, own_words["says"])


def test_a_selection_without_a_row_is_no_entry(evidence):
    with pytest.raises(ValueError, match=r"lost: no row is kept in adult.jsonl for \{\"method\": \"none\"\}"):
        evidence.select("lost", {"file": "adult", "method": "none"})


def test_a_field_that_rows_lack_is_one_that_others_have(evidence, monkeypatch):
    """A slip in its name would select every row."""
    monkeypatch.setattr(evidence, "_kept", lambda name: [{"x": 1.0}, {"x": 2.0, "cap": 3}, {"x": 4.0, "cap": None}])
    assert evidence.select("free", {"file": "f", "cap": None}).x.raw == [1.0, 4.0]
    assert evidence.select("held", {"file": "f", "cap": 3}).x.raw == [2.0]
    with pytest.raises(ValueError, match="has a field cup"):
        evidence.select("slip", {"file": "f", "cup": None})
    with pytest.raises(ValueError, match="no row is kept"):
        evidence.select("places", {"file": "f", "cap": [3]})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"says": "98.3 %"}, "computes nothing"),
        ({"quoted": "39 points"}, "name the paper and the table"),
        ({"held": "it takes 3.14 s", "from": "tests/test_papers.py"}, r"does not hold 3\.14"),
    ],
)
def test_words_that_nothing_stands_behind_are_no_entry(evidence, entry, message):
    with pytest.raises(ValueError, match=message):
        list(evidence.entries({"entries": [entry]}, MAP["rows"]))


def test_digits_in_the_words_of_an_entry_cover_nothing(evidence):
    text = "real images 99.1 %, generated ones 98.3 % and 12 minutes"
    entry = evidence.rendered("real images 99.1 %, generated ones {98.3:.1f} %", {})
    assert [text[start:end] for start, end in evidence.open_figures(text, [entry])] == ["99.1", "12"]


def test_words_that_stand_twice_are_refused(evidence):
    assert evidence.misses("98.3 % and 98.3 %", [evidence.Entry("98.3 %", ((0, 4),))]) == ["98.3 %"]


def test_what_counts_as_a_figure(evidence):
    text = evidence.plain(
        "47; 61; 72 % of 300 rows in §5.2, ε = 10 and **.984** (.97–.99) by `x=0.5`, σ = 1.5.\n"
        "Lost are .5 and 3 points, no row is kept; 2.5 is not.\n\n"
        "| row | paper | here |\n|---|--:|--:|\n| a 1.5 | 2.5 | 3.5 |\n| b | 1.0 | – no row is kept of 4.5 |\n"
    )
    shown = [text[start:end] for start, end in evidence.figures(text)]
    assert shown == ["47", "61", "72", ".984", ".97", ".99", "2.5", "3.5"]
