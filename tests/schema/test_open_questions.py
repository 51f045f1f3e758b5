"""What a codebook leaves open: levels of codes, a list beside it, kinds of missing, bounds of what follows."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import doublure as db
from doublure.drafting.check import check
from doublure.drafting.code_lists import default_levels
from doublure.drafting.draft import Draft, drafted
from doublure.drafting.metadata.own_words import asked_missing

HEADER = "Variable,Meaning,Type,Allowed values\n"
OWN = "column,type,values,lower,upper,missing,description\n"


def draft(folder: Path, *rows: str, header: str = HEADER, **columns: str) -> Draft:
    names = columns or {row.partition(",")[0]: "x" for row in rows if row[0] != ","}
    pd.DataFrame({name: [cell] * 50 for name, cell in names.items()}).to_csv(folder / "data.csv", index=False)
    (folder / "codes.csv").write_text(header + "\n".join(rows) + "\n")
    return drafted(folder / "data.csv", folder / "codes.csv")


@pytest.mark.parametrize(
    ("name", "values", "levels"),
    [
        ("ZIP", (), (1, 3)),
        ("patient_plz", ("10115", "20095"), (1, 3)),
        ("area", ("DE11", "DE12", "FR10"), (1,)),
        ("area", ("A1", "A2", "B1", "B2"), (1,)),
        ("area", ("A", "B"), None),
        ("area", ("A1", "B2"), None),
    ],
)
def test_codes_have_the_levels_of_their_list_or_of_their_values(
    name: str, values: tuple[str, ...], levels: tuple[int, ...] | None
) -> None:
    assert default_levels(name, values) == levels


@pytest.mark.parametrize(("header", "row"), [(HEADER, "ZIP,,code,10115|20095"), (OWN, "ZIP,code,10115|20095,,,,")])
def test_levels_that_are_not_given_are_the_drafts_decision_and_said(tmp_path: Path, header: str, row: str) -> None:
    made = draft(tmp_path, row, header=header)
    assert made.schema.columns["ZIP"].fact("levels") == (1, 3)
    assert "  # levels proposed: the first 1 and 3 letters and digits of a code\n  ZIP: {type: code," in made.to_yaml()
    assert "Not read" not in made.to_yaml()
    given = draft(tmp_path, "ZIP,code,10115|20095,,,,,2", header=OWN[:-1] + ",levels\n")
    assert given.schema.columns["ZIP"].fact("levels") == (2,)
    assert "levels proposed" not in given.to_yaml()


def test_a_list_of_codes_beside_the_codebook_is_taken(tmp_path: Path) -> None:
    (tmp_path / "icd10.txt").write_text("A00.1\nA00.2\nB10\n")
    made = draft(tmp_path, 'icd,"main diagnosis",code,(see icd10.txt)')
    assert made.schema.columns["icd"].fact("values") == ("A00.1", "A00.2", "B10")
    text = made.to_yaml(tmp_path)
    assert "its values are the 3 codes of icd10.txt, which lies beside the codebook" in text
    assert "icd: {type: code, values: {file: icd10.txt}" in text


@pytest.mark.parametrize(
    ("file", "content"),
    [("names.txt", "Doe, Jo\nRoe, Al\n"), ("icd10.csv", "code,text\nA00,Cholera\n"), ("one.txt", "A00\n"), (None, "")],
)
def test_what_is_no_list_of_codes_or_lies_elsewhere_is_not_taken(
    tmp_path: Path, file: str | None, content: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "list.txt").write_text("A00\nA01\n")
    if file is None:
        (tmp_path / "list.txt").symlink_to(tmp_path / "elsewhere" / "list.txt")
    else:
        (tmp_path / file).write_text(content)
    for named in (file or "list.txt", "elsewhere/list.txt", "../list.txt"):
        made = draft(tmp_path, f"icd,main diagnosis,category,see {named}")
        assert "icd: {type: category, values: undeclared" in made.to_yaml(), named
        assert "not read of its values" in made.to_yaml()


def test_a_text_that_may_mean_missing_is_asked_about_and_not_declared(tmp_path: Path) -> None:
    made = draft(tmp_path, "born,birth; 1900-01-01 = unknown,date,1900-01-01 to 2024-01-01")
    assert made.schema.columns["born"].fact("missing") == "undeclared"
    proposal = made.proposals["born"]
    assert proposal.column is not None
    assert proposal.column["missing"] == ["", "1900-01-01"]
    assert proposal.why == "its description says 1900-01-01 = unknown"
    plain = made.schema.to_plain()
    (ask,) = (each for each in check(db.Schema.from_plain(plain)).findings if each.path == "columns.born.missing"
              and each.kind == "ask")  # fmt: skip
    assert ask.declare == "missing: ['', '1900-01-01']"
    plain["columns"]["born"]["missing"] = ["", "1900-01-01"]
    assert "1900-01-01 = unknown" not in check(db.Schema.from_plain(plain)).to_yaml().partition("# ask")[2]


@pytest.mark.parametrize(
    ("words", "facts", "missing"),
    [
        ("9 = unknown", {"type": "integer"}, ["", "9"]),
        ("9 = unknown", {"type": "integer", "missing": False}, ["9"]),
        ("9 = unknown", {"type": "category", "values": [1, 9]}, None),
        ("9 = unknown", {"type": "integer", "missing": ["9"]}, None),
        ("9 = widowed", {"type": "integer"}, None),
        ("X = not recorded", {"type": "id"}, None),
    ],
)
def test_only_words_of_missing_are_asked_about(words: str, facts: dict[str, object], missing: list[str] | None) -> None:
    assert asked_missing(words, facts)[0].get("missing") == missing


def test_bounds_of_what_follows_are_proposed_from_what_it_follows(tmp_path: Path) -> None:
    rows = (
        "admitted,date,,2022-01-01,2023-12-31,false,",
        "discharged,date,,,,true,",
        "born,date,,1900-01-01,2023-12-31,false,",
        "seen,date,,,,true,",
        ',rule,"{at_most: [admitted, discharged]}",,,,',
        ',rule,"{at_most: [born, seen]}",,,,',
    )
    made = draft(tmp_path, *rows, header=OWN)
    proposal = made.proposals["discharged"]
    assert proposal.column is not None
    assert proposal.column["bounds"] == ["2022-01-01", "2023-12-31"]
    assert proposal.why == "it is at least admitted (by a rule), and lies within the same bounds"
    assert "seen" not in made.proposals  # a birth says little of what follows it
    (finding,) = (each for each in check(made.schema).findings if each.path == "columns.discharged.bounds")
    assert finding.declare == "bounds: ['2022-01-01', '2023-12-31']"
    assert "declare it as proposed, if it is at least admitted" in finding.message
