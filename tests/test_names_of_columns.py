"""Columns have the names that people give them: what Python, pandas or a page calls otherwise goes the whole way."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import doublure as db

NAMES = (
    "self", "index", "cls", "name", "columns", "values", "frame", "count", "level_0", "dtype", "None", "nan", "true",
    "class", "a.b", "a b", "__class__", "0", "row", "table", "label", "series", "step", "file", "kind", "unit",
)  # fmt: skip
HALF = len(NAMES) // 2


def column(place: int) -> dict[str, object]:
    """Return the public facts of a column, of each nature in turn."""
    return [
        {"type": "integer", "bounds": [0, 9], "missing": False},
        {"type": "category", "values": ["a", "b"], "missing": False},
        {"type": "real", "bounds": [0, 1], "precision": 1, "missing": True},
        {"type": "boolean", "missing": False},
        {"type": "date", "bounds": ["2020-01-01", "2020-01-09"], "missing": False},
    ][place % 5]  # type: ignore[return-value]


def cells(place: int, rows: int, rng: np.random.Generator) -> object:
    """Return cells of such a column."""
    return [
        lambda: rng.integers(0, 10, rows),
        lambda: rng.choice(["a", "b"], rows),
        lambda: np.where(rng.random(rows) < 0.1, np.nan, np.round(rng.random(rows), 1)),
        lambda: rng.random(rows) < 0.5,
        lambda: pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, rows), "D"),
    ][place % 5]()


def went_through(schema: db.Schema, data: object, folder, *, n: int) -> None:
    """Plan, fit, write each form, evaluate, release and verify."""
    plan = db.plan(schema, method="statistics", epsilon=5.0, delta=1e-4)
    ledger = db.Ledger.create(folder / "a.ledger", dataset="a", epsilon=9.0, delta=1e-2)
    syn = db.fit(data, plan, ledger=ledger, out=folder / "run", seed=1)
    assert syn.sample(n, seed=1) is not None
    db.release(syn, folder / "bundle", n=n)
    db.verify(folder / "bundle", ledger=ledger)
    db.evaluate.report(syn, real=data)


@pytest.mark.parametrize("names", [NAMES[:HALF], NAMES[HALF:]], ids=["python's", "ours"])
def test_a_table_goes_the_whole_way(names, tmp_path):
    rng = np.random.default_rng(0)
    columns = {name: column(place) for place, name in enumerate(names)}
    schema = db.Schema.from_plain(
        {"doublure": 1, "kind": "table", "unit": {"id": None}, "units": 300, "columns": columns}
    )
    data = pd.DataFrame({name: cells(place, 300, rng) for place, name in enumerate(names)})
    went_through(schema, data, tmp_path, n=50)


def test_related_tables_go_the_whole_way(tmp_path):
    rng = np.random.default_rng(0)
    own = {"self": 0, "index": 1, "name": 3}
    columns = {"cls": {"type": "id"}} | {name: column(place) for name, place in own.items()}
    tables = {
        "self": {"key": "cls", "columns": columns},
        "index": {"parent": "self", "foreign_key": "cls", "max_children": 2, "columns": columns},
    }
    plain = {"doublure": 1, "kind": "relational", "unit": {"name": "self"}, "units": 120, "tables": tables}

    def rows(keys):
        return pd.DataFrame({"cls": keys} | {name: cells(place, len(keys), rng) for name, place in own.items()})

    data = {"self": rows(np.arange(120)), "index": rows(np.repeat(np.arange(120), 2))}
    went_through(db.Schema.from_plain(plain), data, tmp_path, n=20)


def test_series_go_the_whole_way(tmp_path):
    rng = np.random.default_rng(0)
    channel = {"type": "real", "bounds": [0, 1], "precision": 2, "missing": True}
    plain = {
        "doublure": 1, "kind": "series", "unit": {"id": None}, "units": 200,
        "series": {"length": 4, "gaps": "missing"}, "channels": {"self": channel, "index": channel},
        "attributes": {"name": {"type": "boolean", "missing": False}},
    }  # fmt: skip
    data = {name: np.round(rng.random((200, 4)), 2) for name in ("self", "index")} | {"name": rng.random(200) < 0.5}
    went_through(db.Schema.from_plain(plain), data, tmp_path, n=20)
