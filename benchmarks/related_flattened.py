"""The peer that needs no relational kind: one flat table, a row a child with its parent's columns repeated.

It is fitted by ``statistics`` for tables at the same ε and δ, with the unit's key and ``max_children`` as
``max_records``: its units are protected alike. Beside the parent's columns stands how many rows a unit has; a unit
without any has one row whose child's cells are missing. What is drawn are loose rows. Those of one number of rows are
put in order by their parent's columns and taken together, as many as they say, with the first one's parent: rows that
look alike are a unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from doublure.schema.relational import RelationalSchema

_SIGN = " of "
_COUNT = "rows"


def flat_schema(schema: RelationalSchema) -> db.Schema:
    """Return the flat table's schema: the same facts, and no other."""
    root, (child,) = schema.root, schema.children
    plain, key = schema.to_plain(), schema.tables[schema.root].key or ""
    columns: dict[str, Any] = {key: {"type": "id"}}
    columns |= {_flat(root, own): plain["tables"][root]["columns"][own] for own in _own(schema, root)}
    columns[_COUNT] = {"type": "integer", "bounds": [0, schema.most(child)], "missing": False}
    for own in _own(schema, child):
        facts = plain["tables"][child]["columns"][own]
        columns[_flat(child, own)] = facts if facts["missing"] else facts | {"missing": True}
    unit = {"name": schema.unit.name, "id": key, "max_records": schema.most(child)}
    rules = [
        {"at_most": [_flat(*name.split(".")) for name in each["at_most"]]} for each in plain.get("constraints", ())
    ]
    facts = {"doublure": 1, "kind": "table", "unit": unit, "units": plain["units"], "columns": columns}
    return db.Schema.from_plain(facts | ({"constraints": rules} if rules else {}))


def flattened(schema: RelationalSchema, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the flat table of real ones."""
    root, (child,) = schema.root, schema.children
    key = schema.tables[root].key or ""
    parents = tables[root].rename(columns={own: _flat(root, own) for own in _own(schema, root)})
    rows = tables[child].rename(columns={own: _flat(child, own) for own in _own(schema, child)})
    many = rows.groupby(key).size().clip(upper=schema.most(child))
    parents[_COUNT] = parents[key].map(many).fillna(0).astype(np.int64)
    return parents.merge(rows, on=key, how="left")


def unfolded(schema: RelationalSchema, rows: pd.DataFrame, units: int) -> dict[str, pd.DataFrame]:
    """Return units from loose rows, at most so many, picked evenly."""
    root, (child,) = schema.root, schema.children
    key, own = schema.tables[root].key or "", [_flat(child, name) for name in _own(schema, child)]
    must = [_flat(child, name) for name in _own(schema, child) if schema.tables[child].columns[name].missing is False]
    rows = rows[(rows[_COUNT] == 0) | rows[must].notna().all(axis=1)]
    rows = rows.sort_values([_COUNT, *(_flat(root, name) for name in _own(schema, root))], kind="stable")
    size = rows[_COUNT].clip(lower=1).astype(np.int64)
    turn = size.groupby(size.to_numpy()).cumcount() if rows[_COUNT].min() > 0 else rows.groupby(_COUNT).cumcount()
    number = rows.groupby([_COUNT, turn // size], sort=False, observed=True).ngroup()
    whole = number.map(number.value_counts()) == size
    rows, number = rows[whole], number[whole]
    kept = np.linspace(0, number.nunique() - 1, min(units, number.nunique())).astype(np.int64)
    wanted = number.isin(number.unique()[kept])
    rows = rows[wanted].assign(**{key: number[wanted]})
    parents = rows.drop_duplicates(key)[[key, *(_flat(root, name) for name in _own(schema, root))]]
    children = rows.loc[rows[_COUNT] > 0, [key, *own]]
    return {
        root: parents.rename(columns=lambda name: name.removesuffix(_SIGN + root)).reset_index(drop=True),
        child: children.rename(columns=lambda name: name.removesuffix(_SIGN + child)).reset_index(drop=True),
    }


def _own(schema: RelationalSchema, table: str) -> list[str]:
    return [name for name, column in schema.tables[table].columns.items() if column.type != "id"]


def _flat(table: str, name: str) -> str:
    return name + _SIGN + table
