"""A draft that asks: names and types are shown, answers become facts, and no cell is ever shown."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.drafting.asking import FactDialogue, ask_for_facts
from doublure.drafting.asks import asks_of
from doublure.drafting.draft import drafted, redrafted
from doublure.schema import Schema

FRAME = pd.DataFrame({
    "MRN": [70917 + each // 2 for each in range(60)],
    "age": [37 + each % 3 for each in range(60)],
    "ward": ["Qv9Sentinel" if each % 2 else "Zk4Sentinel" for each in range(60)],
    "note": [f"Smith said {each} things today" for each in range(60)],
    "born": ["1987-06-05"] * 60,
})  # fmt: skip
PRIVATE = ("70917", "37", "Sentinel", "Smith", "1987")
ANSWERS = """patient
nr
MRN
3
0
5,000

120..0
0..120
n
oops
ordinal
?|NA
a|b|c
omit
date
1900-01-01..2024-12-31

ward
"""
"""A wrong column, a wrong count, bounds the wrong way round and a word that is no type are asked for again."""


def conversation(answers: str) -> tuple[FactDialogue, list[str]]:
    lines, shown = iter(answers.splitlines()), list[str]()

    def ask(question: str) -> str | None:
        shown.append(question)
        return next(lines, None)

    return FactDialogue(ask=ask, say=shown.append), shown


def test_answers_are_the_facts_of_the_schema_and_no_cell_is_shown() -> None:
    made = drafted(FRAME)
    dialogue, shown = conversation(ANSWERS)
    schema = redrafted(FRAME, ask_for_facts(made, dialogue), made).schema
    assert (schema.unit.name, schema.unit.id, schema.unit.max_records) == ("patient", "MRN", 3)
    assert schema.units == 5000
    assert {name: column.type for name, column in schema.columns.items()} == {
        "MRN": "id", "age": "integer", "ward": "ordinal", "born": "date",
    }  # fmt: skip
    assert (schema.columns["age"].bounds, schema.columns["age"].missing) == ((0, 120), False)
    assert (schema.columns["ward"].values, schema.columns["ward"].missing) == (("a", "b", "c"), ("?", "NA"))
    assert schema.target == "ward"
    assert schema.undeclared == ("columns.born.missing",)
    said = "\n".join(shown)
    assert not [cell for cell in PRIVATE if cell in said]
    for words in ("is no column", "is no whole number", "in order", "is no type", "age, integer (2 of 5)"):
        assert words in said


def test_what_metadata_says_is_not_asked_again(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text(
        'column,type,values,lower,upper,missing,roles\n,unit,"{name: person, id: MRN}",,,,\n,units,60,,,,\n'
        "MRN,id,,,,,\nage,integer,,0,99,false,target\nward,category,,,,,\nnote,omit,,,,,\nborn,date,,1900-01-01,2000-01-01,true,\n"
    )
    made = drafted(FRAME, tmp_path / "codes.csv")
    dialogue, shown = conversation("y\nbuy\n")
    schema = redrafted(FRAME, ask_for_facts(made, dialogue), made).schema
    assert len(shown) == 3
    assert (schema.columns["ward"].values.learn, schema.columns["ward"].other) == (0.05, "Other")
    assert schema.undeclared == ()


def test_the_end_of_the_answers_leaves_the_rest_open() -> None:
    made = drafted(FRAME)
    dialogue, shown = conversation("")
    schema = redrafted(FRAME, ask_for_facts(made, dialogue), made).schema
    assert schema.columns.keys() == made.schema.columns.keys()
    assert schema.undeclared == made.schema.undeclared
    assert len([line for line in shown if line.endswith(": ")]) == 1


def test_neighbouring_tables_are_asked_about_alike() -> None:
    odd = pd.concat([FRAME, pd.DataFrame([dict.fromkeys(FRAME, "!")])], ignore_index=True).astype(object)
    texts = []
    for frame in (FRAME.astype(object), odd):
        dialogue, shown = conversation(ANSWERS)
        ask_for_facts(drafted(frame), dialogue)
        texts.append(shown)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_the_terminal_asks_on_stderr(tmp_path, monkeypatch, capsys, more) -> None:
    FRAME.to_csv(tmp_path / "visits.csv", index=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(ANSWERS))
    out = tmp_path / "s.yaml"
    assert run_guarded(app, ["schema", "draft", str(tmp_path / "visits.csv"), "--ask", "-o", str(out), *more]) == 0
    said = capsys.readouterr()
    assert "Whom does the guarantee protect?" in said.err
    assert "Whom" not in said.out
    assert not [cell for cell in PRIVATE if cell in said.err + said.out]
    schema = Schema.load(out)
    assert (schema.unit.id, schema.columns["age"].bounds) == ("MRN", (0, 120))


def test_related_tables_are_asked_about_by_table(tmp_path: Path) -> None:
    tables = {
        "town": pd.DataFrame({"town_id": [1], "size": [2]}),
        "stay": pd.DataFrame({"town_id": [1], "nights": [3]}),
    }
    made = drafted(tables)
    dialogue, shown = conversation("9\n\n0..9\nn\n\n0..30\nn\n\n")
    schema = redrafted(tables, ask_for_facts(made, dialogue), made).schema
    assert (schema.columns["town.size"].bounds, schema.columns["stay.nights"].bounds) == ((0, 9), (0, 30))
    assert "stay.nights, integer (4 of 4)" in shown
    assert schema.undeclared == ("tables.stay.max_children",)


def test_what_cannot_be_asked_about_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "codes.csv").write_text("column,type\na,boolean\n")
    words = ["schema", "draft", "--codebook", str(tmp_path / "codes.csv"), "--ask", "-o", str(tmp_path / "s.yaml")]
    assert run_guarded(app, words) == 2
    assert "--ask" in capsys.readouterr().err


def test_what_stands_for_rare_values_is_no_word_that_means_missing(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text(
        "column,type,values,lower,upper,missing,roles\nMRN,omit,,,,,\nage,integer,,0,99,false,target\n"
        "ward,category,,,,,\nnote,omit,,,,,\nborn,omit,,,,,\n,unit,{name: person},,,,\n,units,60,,,,\n"
    )
    made = drafted(FRAME, tmp_path / "codes.csv")
    answers = ask_for_facts(made, conversation("Other|?\nbuy\n")[0])
    column = redrafted(FRAME, answers, made).schema.columns["ward"]
    assert {"Other", "?"} <= {*column.missing_tokens}
    assert column.fallback == "Other value"


def test_lists_of_which_one_begins_the_other_are_asked_about() -> None:
    def asked(grades: str) -> list[str | None]:
        text = f"""
doublure: 1
kind: table
units: 100
columns:
  fine: {{type: category, values: [A1, A2, B1, B2], missing: false}}
  coarse: {{type: category, values: {grades}, missing: false}}
"""
        return [ask.declare for ask in asks_of(Schema.parse(text)) if ask.path == "constraints"]

    assert "{determines: [fine, coarse], map: FILE}" in asked("[A, B]")
    for other in ("[A, C]", "[A, B, C]", "[A, B, B2]"):  # a value begins with none, a group begins none, one with two
        assert not any(said and "determines" in said for said in asked(other))


def test_answers_in_words_are_no_codes() -> None:
    text = """
doublure: 1
kind: table
units: 100
columns:
  rude: {type: category, values: ["No, not at all", "Yes, very"], missing: false}
  more: {type: category, values: ["No, not at all", "Yes, very", "Yes, somewhat"], missing: false}
  children: {type: category, values: ["No", "Yes"], missing: false}
"""
    assert not any(said.declare and "determines" in said.declare for said in asks_of(Schema.parse(text)))


def test_codes_of_related_tables_are_asked_about_table_by_table() -> None:
    text = """
doublure: 1
kind: relational
unit: {name: player}
units: 100
tables:
  players: {key: nr, columns: {nr: {type: id}, hand: {type: category, values: [L, R], missing: false}}}
  salaries:
    parent: players
    foreign_key: nr
    max_children: 3
    columns:
      nr: {type: id}
      team: {type: category, values: [A1, A2, B1, B2], missing: false}
      league: {type: category, values: [A, B], missing: false}
"""
    (ask,) = asks_of(Schema.parse(text))
    assert (ask.path, ask.declare) == ("tables.salaries.constraints", "{determines: [team, league], map: FILE}")
    rule = "{determines: [team, league], map: {A1: A, A2: A, B1: B, B2: B}}"
    assert not [*asks_of(Schema.parse(f"{text}    constraints: [{rule}]\n"))]


TRIPS = """
doublure: 1
kind: table
unit: {id: null, name: trip}
units: 9000
defaults: {missing: false}
columns:
  fare_amount: {type: real, bounds: [0, 500], precision: 2}
  tip_amount: {type: real, bounds: [0, 500], precision: 2}
  total_amount: {type: real, bounds: [0, 999], precision: 2}
  pickup_zone: {type: category, values: [a, b, c]}
  pickup_borough: {type: category, values: [p, q]}
  dropoff_zone: {type: category, values: [a, b, c]}
  arrived: {type: date, bounds: [2020-01-01, 2021-01-01]}
  left: {type: date, bounds: [2020-01-01, 2021-01-01]}
  nights: {type: integer, bounds: [0, 366]}
  monthly_price: {type: real, bounds: [0, 500], precision: 2}
  months: {type: integer, bounds: [1, 12]}
  cost: {type: real, bounds: [0, 6000], precision: 2}
"""


def test_sums_spans_products_and_levels_are_asked_about_by_names() -> None:
    asked = {ask.declare for ask in asks_of(Schema.parse(TRIPS)) if ask.path == "constraints"}
    rules = {
        "- {sum: {total: total_amount, of: [fare_amount, tip_amount]}}",
        "- {determines: [pickup_zone, pickup_borough], map: FILE}",
        "- {difference: {of: nights, from: arrived, to: left, unit: day}}",
        "- {product: {of: cost, from: [monthly_price, months]}}",
    }
    assert rules <= asked
    assert not any(said and "dropoff_zone" in said for said in asked)  # its borough is no column


@pytest.mark.parametrize(
    ("changed", "gone"),
    [("total_amount: {type: real, bounds: [0, 999], precision: 2}", "sum"),  # another unit
     ("pickup_borough: {type: category, values: [p, q]}", "determines"),  # as many values
     ("left: {type: date, bounds: [2020-01-01, 2021-01-01]}", "difference"),  # no time
     ("months: {type: integer, bounds: [1, 12]}", "product")],  # no number
)  # fmt: skip
def test_names_alone_ask_nothing_where_the_facts_do_not_fit(changed: str, gone: str) -> None:
    other = {"sum": "integer, bounds: [0, 999]", "determines": "category, values: [p, q, r]",
             "difference": "category, values: [x, y]", "product": "category, values: [x, y]"}[gone]  # fmt: skip
    text = TRIPS.replace(changed, f"{changed.partition(':')[0]}: {{type: {other}}}")
    assert text != TRIPS
    assert not any(ask.declare and f"{{{gone}:" in ask.declare for ask in asks_of(Schema.parse(text)))


def test_what_is_asked_can_be_declared_and_is_not_asked_again() -> None:
    asked = [ask.declare for ask in asks_of(Schema.parse(TRIPS)) if ask.path == "constraints" and ask.declare]
    rules = [said for said in asked if "FILE" not in said]
    again = asks_of(Schema.parse(f"{TRIPS}constraints:\n" + "".join(f"  {said}\n" for said in rules)))
    assert not {ask.declare for ask in again} & {*rules}
