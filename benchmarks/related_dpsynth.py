"""The peer that knows several tables: ``dpsynth.relational``, in an environment of its own (``peers/dpsynth_peer.py``).

It is handed the same rows and the same public facts: values and bounds, the key, ``max_children``. It knows no order
among a unit's rows, so that the order is a number like others and rows are sorted by it afterwards; it knows no rules.
Numbers come back as it draws them and are rounded to the schema's steps.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.relational import open_related
from doublure.schema.columns import Column, label
from doublure.schema.relational import RelationalSchema

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
from run import timed  # noqa: E402 - a module of that folder

INTERPRETER = "DOUBLURE_PEER_DPSYNTH"
SLOTS, PGM_ITERS = 3, 100
"""As in the peer's own example."""
LIMIT = 7_200.0
"""Seconds after which a fit is stopped."""
_MISSING = "missing"


def related(
    schema: RelationalSchema, tables: Mapping[str, pd.DataFrame], epsilon: float, delta: float, seed: int
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """Return what the peer draws, as many units as it has counted, and its seconds and memory.

    Raises:
        RuntimeError: It did not come to an end; the message is its own.
    """
    root, (child,) = schema.root, schema.children
    content = open_related(tables).load(schema).content.handed_out()
    job = {
        "tables": {name: {own: _facts(column) for own, column in _own(schema, name).items()} for name in schema.tables},
        "link": {
            "parent_table": root,
            "parent_primary_key": schema.tables[root].key,
            "child_table": child,
            "child_foreign_key": schema.tables[child].foreign_key,
            "max_children_per_parent": schema.most(child),
        },
        "epsilon": epsilon,
        "delta": delta,
        "seed": seed,
        "slots": SLOTS,
        "pgm_iters": PGM_ITERS,
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job.json").write_text(json.dumps(job))
        for table, frame in content.items():
            _handed(schema, table, frame).to_parquet(folder / f"{table}.parquet", index=False)
        found = timed([os.environ[INTERPRETER], str(HERE / "peers" / "dpsynth_peer.py"), str(folder)], LIMIT)
        if "failed" in found:
            raise RuntimeError(found["failed"])
        made = {table: pd.read_parquet(folder / f"made-{table}.parquet") for table in schema.tables}
        found |= json.loads((folder / "facts.json").read_text())
    return {table: _taken(schema, table, frame) for table, frame in made.items()}, found


def _own(schema: RelationalSchema, table: str) -> dict[str, Column]:
    return {name: column for name, column in schema.tables[table].columns.items() if column.type != "id"}


def _keys(schema: RelationalSchema, table: str) -> list[str]:
    return [name for name, column in schema.tables[table].columns.items() if column.type == "id"]


def _facts(column: Column) -> dict[str, Any]:
    """Return what is public of a column, a missing cell being one of its values."""
    if column.listed:
        values = [label(value) for value in column.domain]
        return {"values": [*values, *([] if column.missing is False else [_MISSING])]}
    lower, upper = column.grid
    return {"bounds": [float(lower), float(upper)], "missing": column.missing is not False}


def _handed(schema: RelationalSchema, table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table as the peer reads it: texts, and numbers; days since 1970 for a date."""
    columns: dict[str, Any] = {name: frame[name] for name in _keys(schema, table)}
    for name, column in _own(schema, table).items():
        if column.listed:
            columns[name] = frame[name].astype(object).where(frame[name].notna(), _MISSING).astype(str)
        else:
            columns[name] = column.numbers_of(frame[name])
    return pd.DataFrame(columns)


def _taken(schema: RelationalSchema, table: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table of the peer in the schema's own dtypes."""
    columns: dict[str, Any] = {name: frame[name] for name in _keys(schema, table)}
    for name, column in _own(schema, table).items():
        if column.listed:
            columns[name] = frame[name].where(frame[name] != _MISSING, "")
        else:
            columns[name] = column.cells_of(column.snap(frame[name].to_numpy(dtype=np.float64)))
    return pd.DataFrame(columns)
