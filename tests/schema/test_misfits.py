"""`schema check --values`: every cell that does not fit, at once, where only its owner reads it."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.drafting.misfits import BEYOND, EMPTY, NAMELESS, CountedMisfit, MisfitReason, list_misfits
from doublure.errors import InputError, SettingError
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: table
unit: {id: nr}
units: 9
columns:
  nr: {type: id}
  age: {type: integer, bounds: [0, 120], missing: ["?"]}
  job: {type: category, values: [cook, nurse], missing: false}
  born: {type: date, bounds: [1900-01-01, 2024-12-31], missing: true}
  open: {type: integer, bounds: undeclared, missing: undeclared}
constraints:
  - {implies: {when: {age: [0, 14]}, then: {job: nurse}}}
"""
FRAME = pd.DataFrame(
    {
        "nr": range(6),
        "age": ["30", "2.5", "s3cr3t", "?", "300", "7"],
        "job": ["cook", "spy", "nurse", "", "cook", "cook"],
        "born": ["2000-01-31", "31.1.2000", "", "2000-01-31", "2000-01-31", "1800-01-31"],
        "open": ["1", "x", "", "1", "1", "1"],
    }
)
OUTSIDE = "has values outside the schema's list"
WANTED = [
    ("2", "age", "2.5", "has cells that are no whole number"),
    ("3", "age", "s3cr3t", "has cells that are no integer"),
    ("5", "age", "300", BEYOND),
    ("2", "job", "spy", OUTSIDE),
    ("4", "job", "", EMPTY),
    ("2", "born", "31.1.2000", "has cells that are no date"),
    ("6", "born", "1800-01-31", BEYOND),
    ("2", "open", "x", "has cells that are no integer"),
    ("6", "age, job", "", "the row breaks a rule: if age is from 0 to 14, then job must be nurse"),
]


def rows(path: Path) -> list[tuple[str, ...]]:
    with path.open(newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


@pytest.mark.parametrize("form", ["frame", "csv", "parquet"])
def test_every_cell_is_listed(tmp_path: Path, form: str) -> None:
    data: object = FRAME
    if form == "csv":
        FRAME.to_csv(data := tmp_path / "d.csv", index=False)
    elif form == "parquet":
        FRAME.to_parquet(data := tmp_path / "d.parquet")
    counts = list_misfits(Schema.parse(TEXT), data, tmp_path / "out.csv")  # type: ignore[arg-type]
    assert rows(tmp_path / "out.csv") == WANTED
    assert counts[CountedMisfit("job", OUTSIDE, MisfitReason.UNREAD)] == 1
    assert {each.reason for each in counts if each.column == "age"} == {
        MisfitReason.FRACTION, MisfitReason.UNREAD, MisfitReason.BEYOND,
    }  # fmt: skip
    assert sum(counts.values()) == len(WANTED)
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o600


@pytest.mark.parametrize("above", [0, 3])
def test_rows_of_a_sheet_have_the_numbers_beside_them(tmp_path: Path, above: int) -> None:
    pytest.importorskip("python_calamine", reason="pip install doublure[files]")
    schema = {"doublure": 1, "kind": "table", "units": 9, "skip_rows": above or None}
    schema |= {"columns": {"age": {"type": "integer", "bounds": [0, 99], "missing": False}}}
    ages = pd.DataFrame({"age": [1, "s", 3]})
    ages.to_excel(tmp_path / "book.xlsx", index=False, startrow=above, engine="xlsxwriter")
    plain = {key: said for key, said in schema.items() if said is not None}
    list_misfits(Schema.from_plain(plain), tmp_path / "book.xlsx", tmp_path / "out.csv")
    assert [row[0] for row in rows(tmp_path / "out.csv")] == [str(3 + above)]


def test_lines_that_cannot_be_read_are_listed_by_their_numbers(tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "d.csv", index=False)
    lines = (tmp_path / "d.csv").read_bytes().splitlines()
    lines[3:3] = [b"\xff,1,cook,,1", b'"1,1,cook,,1', b"", b"1,1"]
    (tmp_path / "d.csv").write_bytes(b"\n".join([*lines, b""]))
    list_misfits(Schema.parse(TEXT), tmp_path / "d.csv", tmp_path / "out.csv")
    unread = "the line of this number cannot be read: it has"
    assert rows(tmp_path / "out.csv")[:3] == [
        ("4", "d.csv", "", f"{unread} bytes of another encoding"),
        ("5", "d.csv", "", f"{unread} an unclosed quote"),
        ("7", "d.csv", "", f"{unread} more or fewer fields than the header"),
    ]
    moved = [(str(int(row) + 3 * (int(row) > 2)), *rest) for row, *rest in WANTED]
    assert rows(tmp_path / "out.csv")[3:] == moved


def test_rules_are_looked_at_where_cells_fit(tmp_path: Path) -> None:
    fitting = FRAME.assign(age=["30", "3", "3", "?", "30", "7"], job=["cook", "nurse", "nurse", "cook", "cook", "cook"])
    list_misfits(Schema.parse(TEXT), fitting, tmp_path / "out.csv")
    assert [row for row in rows(tmp_path / "out.csv") if "rule" in row[3]] == [
        ("6", "age, job", "", "the row breaks a rule: if age is from 0 to 14, then job must be nurse")
    ]


def test_a_cell_that_does_not_fit_hides_no_rule_of_other_rows(tmp_path: Path) -> None:
    """A cell beyond its bounds is taken as it stands, as by a fit; one that cannot be read breaks no rule."""
    columns = "columns: {a: {type: integer, bounds: [0, 9]}, b: {type: integer, bounds: [0, 9]}}"
    head = "doublure: 1\nkind: table\nunits: 3\ndefaults: {missing: false}\n"
    schema = Schema.parse(f"{head}{columns}\nconstraints: [{{at_most: [a, b]}}]\n")
    frame = pd.DataFrame({"a": ["5", "99", "x", "1", ""], "b": ["3", "2", "1", "2", "1"]})
    list_misfits(schema, frame, tmp_path / "out.csv")
    found = rows(tmp_path / "out.csv")
    assert [row[0] for row in found if row[1] == "a"] == ["2", "3", "5"]
    assert [row[0] for row in found if row[1] == "a, b"] == ["1", "2"]


def test_what_a_fit_takes_is_listed_and_closes_no_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1, 5], "b": [2, 3]}).to_csv("d.csv", index=False)
    columns = "columns: {a: {type: integer, bounds: [0, 9]}, b: {type: integer, bounds: [0, 9]}}"
    head = "doublure: 1\nkind: table\nunits: 3\ndefaults: {missing: false}\n"
    Path("s.yaml").write_text(f"{head}{columns}\nconstraints: [{{at_most: [a, b]}}]\n")
    assert run_guarded(app, ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "out.csv"]) == 0
    assert (
        "# a, b (1 ×): the row breaks a rule: a must not be above b; a fit takes it all the same"
        in capsys.readouterr().out
    )
    assert [(row[0], row[1]) for row in rows(tmp_path / "out.csv")] == [("2", "a, b")]


def test_a_large_column_is_looked_through_quickly(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [str(n) for n in range(30_000)]})
    frame.loc[17_000, "a"] = "x"
    schema = Schema.parse("doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: integer, bounds: [0, 1e6]}}")
    list_misfits(schema, frame, tmp_path / "out.csv")
    assert rows(tmp_path / "out.csv") == [("17001", "a", "x", "has cells that are no integer")]


def test_nothing_is_written_over_and_other_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(InputError, match="already exists; choose another --values, or give --force"):
        list_misfits(Schema.parse(TEXT), FRAME, tmp_path / "out.csv")
    with pytest.raises(SettingError, match="is for tables and series, not images"):
        list_misfits(Schema.parse("doublure: 1\nkind: images\nimages: {}"), FRAME, tmp_path / "new.csv")


def test_a_list_takes_the_place_of_an_older_list_by_force_alone(tmp_path: Path) -> None:
    """A schema is mended and checked again, with the same command."""
    list_misfits(Schema.parse(TEXT), FRAME.iloc[:0], tmp_path / "out.csv")
    assert rows(tmp_path / "out.csv") == []
    with pytest.raises(InputError, match="give --force"):
        list_misfits(Schema.parse(TEXT), FRAME, tmp_path / "out.csv")
    assert rows(tmp_path / "out.csv") == []
    list_misfits(Schema.parse(TEXT), FRAME, tmp_path / "out.csv", force=True)
    assert rows(tmp_path / "out.csv") == WANTED
    assert stat.S_IMODE((tmp_path / "out.csv").stat().st_mode) == 0o600


def test_the_command_replaces_a_list_by_force_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("d.csv", index=False)
    Path("s.yaml").write_text(TEXT)
    Path("out.csv").write_text("row,column,cell,why\n")
    words = ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "out.csv"]
    assert run_guarded(app, words) == 2
    assert "give --force" in capsys.readouterr().err
    assert rows(tmp_path / "out.csv") == []
    assert run_guarded(app, [*words, "--force"]) == 4
    assert rows(tmp_path / "out.csv")


def test_a_check_of_the_header_says_that_no_cell_was_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("d.csv", index=False)
    Path("s.yaml").write_text(TEXT.replace("bounds: undeclared, missing: undeclared", "bounds: [0, 9], missing: true"))
    assert run_guarded(app, ["schema", "check", "s.yaml", "--data", "d.csv"]) == 0
    assert capsys.readouterr().out.rstrip().endswith("add --values misfits.csv to list those that do not fit.")
    assert run_guarded(app, ["schema", "check", "s.yaml"]) == 0
    assert "--values" not in capsys.readouterr().out


def test_of_other_kinds_it_is_said_that_records_were_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.yaml").write_text("doublure: 1\nkind: images\nunits: 9\nimages: {shape: [4, 4, 1]}")
    np.savez("d.npz", images=np.zeros((2, 4, 4), dtype=np.uint8))
    assert run_guarded(app, ["schema", "check", "s.yaml", "--data", "d.npz"]) == 0
    assert "fit is the first to read the records" in capsys.readouterr().out


def test_the_terminal_shows_columns_and_reasons_and_no_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("d.csv", index=False)
    Path("s.yaml").write_text(TEXT.replace("bounds: undeclared, missing: undeclared", "bounds: [0, 9], missing: true"))
    assert run_guarded(app, ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "out.csv"]) == 4
    shown = capsys.readouterr()
    assert f"# job (1 ×): {OUTSIDE}" in shown.out
    assert "# Wrote out.csv: 9 misfits. Private: only you can read it." in shown.out
    assert shown.err.startswith(
        "doublure: age: has cells that do not fit (7 in all); see out.csv; fix the data, declare"
    )
    assert not [word for word in ("s3cr3t", "spy", "31.1.2000") if word in shown.out + shown.err]
    assert run_guarded(app, ["schema", "check", "s.yaml", "--values", "more.csv"]) == 2
    Path("s.yaml").write_text(Path("s.yaml").read_text().replace("kind: table", "kind: table\nmisfit: coerce"))
    assert run_guarded(app, ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "coerced.csv"]) == 0


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_a_cell_of_another_form_is_shown_as_it_stands(tmp_path: Path, form: str) -> None:
    """Its owner looks for it in the file: rewritten, each would read "not as declared"."""
    own = Schema.parse("""
doublure: 1
kind: table
units: 9
columns:
  day: {type: date, bounds: [2000-01-01, 2030-12-31], date_format: DD.MM.YYYY, missing: false}
  cost: {type: real, bounds: [0, 99], precision: 2, format: '$0.00', missing: false}
  icu: {type: boolean, written: {true: Y, false: N}, missing: false}
""")
    frame = pd.DataFrame({"day": ["31.01.2024", "2024-01-31"], "cost": ["$1.00", "€1.00"], "icu": ["true", "Y"]})
    data: object = frame
    if form == "csv":
        frame.to_csv(data := tmp_path / "d.csv", index=False)
    list_misfits(own, data, tmp_path / "out.csv")  # type: ignore[arg-type]
    assert [row[:3] for row in rows(tmp_path / "out.csv")] == [
        ("2", "day", "2024-01-31"),
        ("2", "cost", "€1.00"),
        ("1", "icu", "true"),
    ]


NAMELESS_ROWS = {
    "table": "unit: {id: nr}",
    "visits": "unit: {name: patient, id: nr, max_records: 3, per_unit: [job]}",
}


@pytest.mark.parametrize("kind", NAMELESS_ROWS)
def test_records_that_name_no_unit_are_listed(tmp_path: Path, kind: str) -> None:
    """A fit is refused for them, or leaves them out: their owner should know which they are."""
    text = f"""
doublure: 1
kind: table
{NAMELESS_ROWS[kind]}
units: 9
columns:
  nr: {{type: id, missing: ["?"]}}
  job: {{type: category, values: [cook, nurse], missing: false}}
  day: {{type: integer, bounds: [0, 9], missing: false}}
"""
    frame = pd.DataFrame({"nr": ["a", "", "b", "?", "c"], "job": "cook", "day": 1})
    frame.to_csv(tmp_path / "d.csv", index=False)
    counts = list_misfits(Schema.parse(text), tmp_path / "d.csv", tmp_path / "out.csv")
    assert counts == {CountedMisfit("nr", NAMELESS, MisfitReason.UNIT): 2}
    assert rows(tmp_path / "out.csv") == [("2", "nr", "", NAMELESS), ("4", "nr", "", NAMELESS)]


def test_what_does_not_fit_in_most_records_closes_the_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fit that makes it fit would spend ε on noise; its plan and its messages may not tell."""
    monkeypatch.chdir(tmp_path)
    head = "doublure: 1\nkind: table\nmisfit: coerce\nunits: 9\n"
    Path("s.yaml").write_text(head + "columns: {a: {type: integer, bounds: [0, 9], missing: true}}")
    words = ["schema", "check", "s.yaml", "--data", "d.csv", "--values", "out.csv", "--force"]
    beyond, both = ["1", "11", "12", "13"], ["x", "y", "11", "12", "1"]  # of two reasons, neither of most
    for cells, code in ((["1", "2", "x", "3"], 0), (["x", "y", "3"], 4), (beyond, 4), (both, 4)):
        pd.DataFrame({"a": cells}).to_csv("d.csv", index=False)
        assert run_guarded(app, words) == code, cells
        shown = capsys.readouterr()
        assert ("# Next: doublure plan" in shown.out) == (code == 0)
        assert ("a fit would spend ε on noise" in " ".join(shown.err.split())) == (code == 4)
    Path("d.csv").write_text("a\n1,2\n3,4\n5,6\n7\n")
    assert run_guarded(app, words) == 4
    assert "d.csv: does not fit in most records (3)" in capsys.readouterr().err
