"""Each declared text of missing is a state of its own: read from any container, encoded, drawn and written back."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import doublure as db
from doublure.data.opening import open_data
from doublure.data.records import handed_out
from doublure.data.tables import arrow_cells
from doublure.data.tables.cells import canonical, canonical_again
from doublure.data.tables.writing import write_table
from doublure.encode.cell_names import MISSING, cell_places
from doublure.encode.columns import encoding
from doublure.encode.table import TableEncoder
from doublure.encode.table_values import TableValues
from doublure.errors import DataError, SchemaError
from doublure.private.queries.facts import make_fact_query
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.missing_states import hole_states, tag_holes

COLUMNS = {
    "count": ("{type: integer, bounds: [0, 3], missing: [-7, -8]}", ["2", "-7", "-8", "", "0"]),
    "wide": ("{type: integer, bounds: [0, 100000], missing: [-7, -8]}", ["200", "-7", "-8", "", "0"]),
    "amount": ("{type: real, bounds: [0, 9], precision: 1, missing: [-7, no]}", ["2.5", "-7", "no", "", "0.5"]),
    "job": ("{type: category, values: [a, b], missing: [-7, none]}", ["a", "-7", "none", "", "b"]),
    "code": ("{type: category, values: [1, 2], missing: [-7, -8]}", ["1", "-7", "-8", "", "2"]),
    "rank": ("{type: ordinal, values: [low, high], missing: [-7, -8]}", ["low", "-7", "-8", "", "high"]),
    "truth": ("{type: boolean, missing: [-7, -8]}", ["True", "-7", "-8", "", "False"]),
    "day": ("{type: date, bounds: [2020-01-01, 2021-12-31], missing: [never, 9999-12-31]}",
            ["2020-02-03", "never", "9999-12-31", "", "2021-12-31"]),
    "at": ("{type: datetime, bounds: [2020-01-01, 2021-12-31], missing: [never, -8]}",
           ["2020-02-03 04:05:06", "never", "-8", "", "2021-01-01 00:00:00"]),
    "clock": ("{type: time, step: 60, missing: [never, -8]}", ["04:05", "never", "-8", "", "23:59"]),
    "born": ("{type: year, bounds: [1900, 2020], missing: [never, -8]}", ["1950", "never", "-8", "", "2020"]),
    "month": ("{type: month, bounds: [2020-01, 2021-12], missing: [never, -8]}",
              ["2020-02", "never", "-8", "", "2021-12"]),
    "took": ("{type: duration, bounds: ['0:00:00', '9:00:00'], missing: [never, -8]}",
             ["1:02:03", "never", "-8", "", "0:00:00"]),
}  # fmt: skip
SCHEMA = ResolvedSchema.parse(
    "doublure: 1\nkind: table\nunits: 9\ncolumns:\n"
    + "".join(f"  {name}: {text}\n" for name, (text, _) in COLUMNS.items())
)
STATES = [0, 1, 2, 0, 0]
"""Of the five cells above: a value, both texts, an empty cell, a value."""


def states(cells: pd.Series, name: str) -> list[int]:
    numbers = SCHEMA.columns[name].kept_numbers(cells)
    assert np.isnan(numbers).tolist() == [False, True, True, True, False]
    return hole_states(numbers).tolist()


@pytest.mark.parametrize("name", COLUMNS)
def test_every_container_and_every_encoding_keeps_the_kinds(name: str) -> None:
    column, texts = SCHEMA.columns[name], COLUMNS[name][1]
    for raw in (pd.Series(texts), pd.Series(texts, dtype=object), pd.Series(pd.Categorical(texts))):
        assert states(canonical(raw, column, name), name) == STATES
    assert states(arrow_cells.canonical(pa.array(texts), column, name), name) == STATES
    read = canonical(pd.Series(texts), column, name)
    assert states(canonical_again(read, column, name), name) == STATES
    for numerics in ("bins", "scaled", "steps"):
        own = encoding(column, numerics, 8)
        parts = own.compact(read)
        back = own.restore(parts, None)
        assert states(back, name) == STATES
        assert states(canonical_again(back, column, name), name) == STATES
        alike = encoding(column, numerics, 8, alike=True)
        assert len({part[1] for part in alike.compact(read)} | {part[2] for part in alike.compact(read)}) <= 2
        assert alike.parts[0].states + 2 == own.parts[0].states
    assert own.domain.nullable == 3


def test_samples_say_in_files_what_the_data_said(tmp_path: Path) -> None:
    texts = pd.DataFrame({name: cells for name, (_, cells) in COLUMNS.items()})
    texts.to_csv(tmp_path / "in.csv", index=False)
    loaded = open_data(tmp_path / "in.csv", "table").load(SCHEMA).content
    encoder = TableValues(SCHEMA)
    rows = encoder.decode(encoder.compact(loaded))
    write_table([rows], tmp_path / "out.csv", SCHEMA)
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(written, texts, check_dtype=False)
    assert rows["count"].dtype == np.float64
    assert rows["count"].isna().tolist() == [False, True, True, True, False]
    assert rows["code"].tolist()[:3] == [1, -7, -8]
    assert rows["day"].tolist()[1] == "never"
    write_table([rows], tmp_path / "out.parquet", SCHEMA)
    stored = pd.read_parquet(tmp_path / "out.parquet")
    assert stored["count"].tolist()[:3] == [2, -7, -8]  # all of its texts are numbers
    assert stored["count"].isna().tolist() == [False, False, False, True, False]
    assert stored["amount"].isna().tolist() == [False, True, True, True, False]
    again = open_data(tmp_path / "out.parquet", "table").load(SCHEMA).content
    for name in set(COLUMNS) - {"amount"}:
        assert states(again[name], name) == STATES


FORMED = {
    "day": ("{type: date, bounds: [2020-01-01, 2021-12-31], date_format: DD.MM.YYYY, missing: [never, -8]}",
            ["03.02.2020", "never", "-8", "", "31.12.2021"], "str"),
    "nr": ("{type: date, bounds: [2020-01-01, 2021-12-31], date_format: YYYYMMDD, dtype: Int64, "
           "missing: [99999999, 88888888]}", ["20200203", "99999999", "88888888", "", "20211231"], "Int64"),
    "at": ("{type: datetime, bounds: [2020-01-01, 2021-12-31], step: 60, date_format: D.M.YYYY h:mm AM, "
           "missing: [never, -8]}", ["3.2.2020 4:05 PM", "never", "-8", "", "1.1.2021 12:00 AM"], "str"),
    "month": ("{type: month, bounds: [2020-01, 2021-12], date_format: MM/YYYY, missing: [never, -8]}",
              ["02/2020", "never", "-8", "", "12/2021"], "str"),
    "small": ("{type: integer, bounds: [0, 99], dtype: Int16, missing: [-7, -8]}", ["3", "-7", "-8", "", "9"], "Int16"),
    "whole": ("{type: integer, bounds: [0, 99], dtype: UInt8, missing: [-7, -8]}", ["3", "-7", "-8", "", "9"], "UInt8"),
    "text": ("{type: integer, bounds: [0, 99], dtype: str, missing: [-7, none]}", ["3", "-7", "none", "", "9"], "str"),
    "pay": ("{type: real, bounds: [0, 9999], precision: 2, format: '$#,##0.00', missing: [-7, none]}",
            ["$1,003.50", "-7", "none", "", "$9.00"], "float64"),
    "yes": ("{type: boolean, written: {true: Y, false: N}, missing: [-7, U]}", ["Y", "-7", "U", "", "N"], "str"),
    "code": ("{type: category, values: [1, 2], dtype: Int64, missing: [-7, -8]}", ["1", "-7", "-8", "", "2"], "Int64"),
    "job": ("{type: category, values: [a, b], dtype: str, missing: [x, y]}", ["a", "x", "y", "", "b"], "str"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMED)
def test_kinds_come_out_in_a_declared_form_and_type(name: str, tmp_path: Path) -> None:
    column, texts, dtype = FORMED[name]
    schema = ResolvedSchema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns:\n  {name}: {column}\n")
    pd.DataFrame({name: texts, "beside": 1}).to_csv(tmp_path / "in.csv", index=False)
    encoder = TableValues(schema)
    rows = encoder.decode(
        encoder.compact(open_data(tmp_path / "in.csv", "table", schema.cell_form).load(schema).content)
    )
    write_table([rows], tmp_path / "out.csv", schema)
    assert (
        pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False, skip_blank_lines=False)[name].tolist()
        == texts
    )
    shown = handed_out(rows, schema)[name]
    assert str(shown.dtype) == dtype
    write_table([rows], tmp_path / "out.parquet", schema)
    stored = pd.read_parquet(tmp_path / "out.parquet")[name]
    assert str(stored.dtype) == dtype
    kept = open_data(tmp_path / "out.parquet", "table", schema.cell_form).load(schema).content[name]
    has_codes = name not in ("pay", "whole")  # a text and a negative number have no place in such a column
    assert hole_states(schema.columns[name].kept_numbers(kept)).tolist() == (STATES if has_codes else [0] * 5)


def test_spreadsheets_run_no_text_of_missing(tmp_path: Path) -> None:
    schema = ResolvedSchema.parse(
        "doublure: 1\nkind: table\nunits: 9\ncolumns: {a: {type: integer, bounds: [0, 9], missing: [-7, '=x']}}"
    )
    rows = pd.DataFrame({"a": schema.columns["a"].kept_cells(np.array([1.0, tag_holes(1), tag_holes(2)]))})
    write_table([rows], tmp_path / "safe.csv", schema, spreadsheet_safe=True)
    assert (tmp_path / "safe.csv").read_text() == 'a\n1\n-7\n""\n'


def test_a_nan_of_another_program_is_an_empty_cell() -> None:
    raw = pd.Series([tag_holes(2), 1954.0, tag_holes(9)])
    assert hole_states(canonical(raw, SCHEMA.columns["wide"], "wide").to_numpy()).tolist() == [0, 0, 0]
    assert hole_states(tag_holes(5)) == 5
    assert hole_states(math.nan) == hole_states(1.0) == 0


def test_one_text_or_none_is_one_state_as_ever() -> None:
    text = "doublure: 1\nkind: table\nunits: 9\ncolumns: {{a: {{type: integer, bounds: [0, 9], missing: {}}}}}"
    for missing, texts in (
        ("true", ("",)),
        ("['?']", ("?",)),
        ("[-9]", ("-9",)),
        ("false", ()),
        ("['']", ("",)),
        ("['', '<0.2']", ("", "<0.2")),
    ):
        assert Schema.parse(text.format(missing)).columns["a"].missing_texts == texts
    styles = {style: Schema.parse(text.format(f"{{style: {style}}}")).columns["a"] for style in ("r", "sql", "sas")}
    assert styles["r"] == Schema.parse(text.format("[NA]")).columns["a"]
    assert styles["sql"].missing_texts == ("NULL",)
    assert styles["sas"].missing_texts[:4] == ("", ".", "._", ".A")
    assert len(styles["sas"].missing_texts) == 29
    with pytest.raises(SchemaError, match="r, sas, stata, sql"):
        Schema.parse(text.format("{style: spss}"))


def test_rules_and_requests_name_a_kind(soft_rows: Any) -> None:
    schema = ResolvedSchema.parse("""
doublure: 1
kind: table
units: 9
columns:
  flies: {type: category, values: [never, often], missing: false}
  Q1: {type: integer, bounds: [1, 5], missing: [-7, -8]}
  Q2: {type: category, values: [a, b], missing: [-7, -8]}
constraints:
  - {implies: {when: {flies: never}, then: {Q*: -7}}}
""")
    assert schema.constraints[0].names == ("flies", "Q1", "Q2")
    encoder = TableEncoder(schema, bins=8)
    for rng in (np.random.default_rng(1), None):
        rows = encoder.decode(soft_rows(encoder, 300, 3), rng)
        grounded = rows[rows.flies == "never"]
        assert len(grounded)
        for name in ("Q1", "Q2"):
            assert set(hole_states(schema.columns[name].kept_numbers(grounded[name])).tolist()) == {1}
    asked = schema.columns["Q1"].asked("-8")
    assert asked.states == (2,)
    assert asked.has(np.array([1.0, tag_holes(1), tag_holes(2), math.nan])).tolist() == [False, False, True, False]
    assert schema.columns["Q1"].asked("-7, 3").has(np.array([tag_holes(1), tag_holes(2), 3.0])).tolist() == [
        True,
        False,
        True,
    ]
    assert schema.columns["Q1"].asked(None).has(np.array([tag_holes(1), 2.0, math.nan])).tolist() == [True, False, True]


def test_declared_groups_hold_for_any_generator(soft_rows: Any) -> None:
    schema = ResolvedSchema.parse("""
doublure: 1
kind: table
units: 9
columns:
  a1: {type: integer, bounds: [0, 9], missing: [-7, -8]}
  a2: {type: integer, bounds: [0, 9], missing: [-7, -8]}
  b: {type: category, values: [x, y], missing: true}
missing_together: [[a*, b]]
""")
    encoder = TableEncoder(schema, bins=4)
    for rng in (np.random.default_rng(0), None):
        rows = encoder.decode(soft_rows(encoder, 200, 1), rng)
        gone = rows.isna()
        assert (gone.all(axis=1) | ~gone.any(axis=1)).all()
        assert 0 < rows.b.isna().mean() < 1


def test_texts_of_missing_are_neither_bought_values_nor_bounds() -> None:
    schema = Schema.parse("""
doublure: 1
kind: table
units: 9
columns:
  job: {type: category, values: {learn: 1}, other: Other, missing: [-7, -8]}
  day: {type: date, bounds: {learn: 1}, missing: [never, 9999-12-31]}
  pay: {type: integer, bounds: {learn: 1}, missing: [-7, -8]}
""")
    raw = {
        "job": ["cook", "-7", "-8", "", "cook"],
        "day": ["2001-01-01", "never", "9999-12-31", "", "2001-01-01"],
        "pay": ["5", "-7", "-8", "", "6"],
    }
    cells = {name: canonical(pd.Series(own), schema.columns[name], name) for name, own in raw.items()}
    records: Any = SimpleNamespace(cells=lambda name, fact: cells[name], n_units=5)
    counted = {each.column: make_fact_query(each, schema, {}).counted(records) for each in schema.questions}
    assert counted["job"] == {"cook": 2}
    assert counted["day"].sum() == counted["pay"].sum() == 2
    resolved = schema.resolve({
        "columns.job.values": ("cook",), "columns.pay.bounds": (0, 9),
        "columns.day.bounds": (dt.datetime(2001, 1, 1), dt.datetime(2002, 1, 1)),
    })  # fmt: skip
    for name, column in resolved.columns.items():
        back = encoding(column, "steps", 1).restore(encoding(column, "steps", 1).compact(cells[name]), None)
        assert hole_states(column.kept_numbers(back)).tolist() == STATES


def test_shares_of_the_kinds_come_out(tmp_path: Path) -> None:
    rng, n = np.random.default_rng(0), 3000
    kind = rng.choice([0, 1, 2, 3], n, p=[0.6, 0.3, 0.06, 0.04])
    text = np.array(["", "-7", "-8", "-9"])
    data = pd.DataFrame(
        {
            "answer": np.where(kind == 0, rng.integers(0, 4, n).astype(str), text[kind]),
            "why": np.where(kind == 1, "-7", rng.choice(["x", "y"], n)),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    schema = db.Schema.parse("""
doublure: 1
kind: table
units: 3000
columns:
  answer: {type: integer, bounds: [0, 3], missing: [-7, -8, -9]}
  why: {type: category, values: [x, y], missing: [-7, -8]}
  sex: {type: category, values: [f, m], missing: false}
""")
    data.to_csv(tmp_path / "data.csv", index=False)
    plan = db.plan(schema, method="statistics", epsilon=5.0, delta=1e-6, accountant="rdp")
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=5.0, delta=1e-6)
    syn = db.fit(tmp_path / "data.csv", plan, ledger=ledger, out=tmp_path / "run")
    db.release(syn, tmp_path / "bundle", n=3000, seed=1)
    assert db.verify(tmp_path / "bundle")["files"]
    rows = pd.read_csv(tmp_path / "bundle" / "data.csv", dtype=str, keep_default_na=False)
    for each in text[1:]:
        assert (rows.answer == each).mean() == pytest.approx((data.answer == each).mean(), abs=0.02)
    assert ((rows.answer == "-7") == (rows.why == "-7")).mean() > 0.97
    assert hole_states(syn.sample(50, seed=2, given={"answer": "-8"}).answer.to_numpy()).tolist() == [2] * 50
    assert db.evaluate.report(syn, data[:1500], data[1500:]).scores.loc["columns", "synthetic"] < 0.1


@pytest.mark.parametrize(
    "column", ["{type: category, values: [a, b], missing: false}", "{type: boolean, missing: true}"]
)
def test_a_refused_list_names_the_cells_of_r_whatever_is_in_it(column: str) -> None:
    schema = Schema.parse(f"{{doublure: 1, kind: table, columns: {{a: {column}}}}}")
    said = set()
    for cell in ("NA", "x"):
        with pytest.raises(DataError) as refused:
            canonical(pd.Series([cell]), schema.columns["a"], "a")
        said.add(str(refused.value))
    (message,) = said  # which of the two it was must not show
    assert "write missing: {style: r} if NA is an empty cell" in message


@pytest.mark.parametrize("kinds", [1, 2])
@pytest.mark.parametrize("name", COLUMNS)
def test_cells_of_tables_tell_kinds_of_missing(name, kinds):
    """Rows lie in the cell of their kind: by its name, by its place in earlier versions' tables, or in one for all."""
    schema, texts = SCHEMA, SCHEMA.columns[name].missing_texts
    if kinds == 1:
        told = SCHEMA.to_plain()
        told["columns"][name]["missing"] = [texts[1]]
        schema = ResolvedSchema.from_plain(told)
    column, encoder = schema.columns[name], TableValues(schema)
    part = [*encoder.columns].index(name)
    first, last = encoder.domains[part].first, encoder.domains[part].last
    starts = np.array([first, *range(last + 1, last + 1 + encoder.domains[part].nullable)], dtype=float)
    _, names = encoder.axis(part, starts, np.arange(len(starts)), len(starts))
    assert names[1:] == ((MISSING,) if kinds == 1 else (MISSING, f"(missing: {texts[1]})", f"(missing: {texts[2]})"))
    numbers = [column.number_of(cell) for cell in column.domain[:1] or [COLUMNS[name][1][0]]]
    holes = tag_holes(np.array([1, 2, 0]) if kinds == 2 else np.zeros(3, dtype=int))
    cells = column.kept_cells(np.array([*numbers, *holes]))
    for own, places in [
        (names, [0, 2, 3, 1] if kinds == 2 else [0, 1, 1, 1]),
        ((names[0], *[MISSING] * (len(names) - 1)), [0, 2, 3, 1] if kinds == 2 else [0, 1, 1, 1]),
        ((f"{names[0]} | {MISSING}",), [0, 0, 0, 0]),
    ]:
        assert cell_places(column, own, cells).tolist() == places
