"""Real values that a bought or declared list sends away count as lost, and are counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.measures.relational import evaluate_related

TOWNS = tuple("abcdefghijklmnop")

TEXT = """
doublure: 1
kind: table
units: 3000
defaults: {missing: false}
columns:
  town: {type: category, values: [a, b], other: Other, missing: ["?"]}
  icd: {type: code, values: [A00.1, A00.2, B11.0], levels: [1, 3], unlisted: chapter}
  size: {type: category, values: [1, 2, 3], other: 9}
  age: {type: integer, bounds: [0, 99]}
"""


def rows() -> pd.DataFrame:
    draw = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "town": draw.choice([*TOWNS, "?"], 3000),
            "icd": draw.choice(["A00.1", "A00.2", "A00.9", "B11.0"], 3000, p=[0.4, 0.2, 0.3, 0.1]),
            "size": draw.choice(["1", "02", "3.0"], 3000),
            "age": draw.integers(0, 99, 3000),
        }
    )


def fitted(data: object, text: str, folder: object) -> db.Synthesizer:
    plan = db.plan(db.Schema.parse(text), epsilon=10.0, delta=1e-5, accountant="rdp", fit_steps=50)
    ledger = db.Ledger.create(f"{folder}/ledger", dataset="d", epsilon=20.0, delta=0.1)
    return db.fit(data, plan, ledger=ledger, seed=1, progress=False)


@pytest.fixture(scope="module")
def syn(tmp_path_factory):
    return fitted(rows(), TEXT, tmp_path_factory.mktemp("syn"))


@pytest.mark.parametrize("container", ["frame", "csv", "stream"])
def test_values_that_a_list_sends_away_count_as_distance(tmp_path, syn, container):
    frame = rows()
    given: object = frame
    if container == "csv":
        given = tmp_path / "real.csv"
        frame.to_csv(given, index=False)
    elif container == "stream":
        import pyarrow as pa

        given = pa.RecordBatchReader.from_batches((table := pa.table(frame)).schema, table.to_batches())
    report = db.evaluate.report(syn, given, progress=False)
    found = {each.column: each for each in report.table.unlisted}
    assert list(found) == ["town", "icd"]  # 02 and 3.0 are the numbers 2 and 3
    assert found["town"].share == pytest.approx((~frame["town"].isin(["a", "b", "?"])).mean(), abs=0.02)
    assert found["town"].values == 14
    assert found["icd"].share == pytest.approx(0.3, abs=0.03)
    variation = {column.name: column.variation for column in report.table.fidelity.columns}
    assert variation["town"].value > 0.75 > 0.2 > variation["town"].real
    assert variation["icd"].value > 0.25
    assert variation["size"].value < 0.1
    assert any("town, 8" in line and "(14 values)" in line for line in report.verdict.lines)


def test_a_list_that_holds_all_is_not_spoken_of(tmp_path):
    frame = rows().assign(town="a", icd="A00.1")
    report = db.evaluate.report(fitted(frame, TEXT, tmp_path), frame, progress=False)
    assert report.table.unlisted == ()
    assert "unlisted" not in report.to_json()
    assert not any("list lacks" in line for line in report.verdict.lines)


def test_other_spellings_and_decimals_are_read_as_a_fit_reads_them(tmp_path):
    """Misspelt towns counted as lost values, and 8.4690 as another number than the 8.47 that the fit read."""
    text = """
doublure: 1
kind: table
units: 3000
defaults: {missing: false}
columns:
  town: {type: category, values: [port, central], spellings: {Prot: port, Centrl: central}}
  lat: {type: real, bounds: [0, 10], precision: 2}
  day: {type: datetime, bounds: [2020-01-01T00:00:00, 2020-01-02T00:00:00], step: 3600}
"""
    draw = np.random.default_rng(3)
    lat = draw.choice([8.46, 8.47], 3000) + draw.uniform(-0.004, 0.004, 3000)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.choice([7199, 3601], 3000), "s")
    frame = pd.DataFrame({"town": draw.choice(["port", "Prot", "Centrl"], 3000), "lat": lat, "day": day})
    report = db.evaluate.report(fitted(frame, text, tmp_path), frame, progress=False)
    assert report.table.unlisted == ()
    variation = {column.name: column.variation for column in report.table.fidelity.columns}
    assert variation["town"].value < 0.1
    real = {value.label: value.share.real for value in report.table.special_values.values if value.column == "lat"}
    assert any("8.46" in text and share > 0.4 for text, share in real.items()), real


RELATED = """
doublure: 1
kind: relational
unit: {name: customer}
units: 600
defaults: {missing: false}
tables:
  customers:
    key: cid
    columns: {cid: {type: id}, old: {type: boolean}, town: {type: category, values: [a, b], other: z}}
  orders: {parent: customers, foreign_key: cid, max_children: 3, columns: {cid: {type: id}, big: {type: boolean}}}
"""


def test_related_tables_lose_relations_between_rows_in_plain_words(tmp_path):
    draw = np.random.default_rng(2)
    customers = pd.DataFrame({"cid": range(600), "old": draw.random(600) < 0.5, "town": draw.choice(TOWNS, 600)})
    who = np.repeat(np.arange(600), draw.integers(1, 4, 600))
    orders = pd.DataFrame({"cid": who, "big": np.where(draw.random(len(who)) < 0.9, customers["old"][who], False)})
    real = {"customers": customers, "orders": orders}
    syn = fitted(real, RELATED, tmp_path)
    report = db.evaluate.report(syn, real, progress=False, loss=False)
    assert [each.column for each in report.relational.tables["customers"].unlisted] == ["town"]
    made = syn.sample(600, seed=1)
    made["orders"]["big"] = draw.permutation(made["orders"]["big"])
    found = evaluate_related(syn.schema, made, real)
    assert found.verdict.headline.startswith("orders: ")
    assert "old × big, Cramér’s V 0.9" in found.verdict.lines[0]
    (pair,) = (pair for pair in found.relations[0].parent_child if pair.names == ("old", "big"))
    assert pair.lost
