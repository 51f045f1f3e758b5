"""Declared rules, kept by every decoded row (post-processing: free).

Most rows keep an ``at_most`` already: numbers that it orders are decoded from the gap between them
(:mod:`doublure.encode.differences`). What else breaks a rule is fixed by :mod:`doublure.data.tables.rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from doublure.data.tables.numbers import read_all
from doublure.data.tables.rules import TableRules
from doublure.encode.columns import Discrete, Floats, Number, grid_of
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column


def keep(
    frame: pd.DataFrame,
    schema: ResolvedSchema,
    rng: np.random.Generator | None = None,
    rules: TableRules | None = None,
) -> pd.DataFrame:
    """Return the frame with every rule kept in every row and derived columns filled in.

    Args:
        frame: Decoded rows, in the schema's own dtypes.
        schema: Every fact known.
        rng: Lets rows that break a rule draw cells from those that keep it; without it they take the nearest.
        rules: The schema's rules, if they are at hand.
    """
    rules = rules or TableRules(schema)
    if not rules.names:
        return frame
    modelled = [name for name in rules.names if name not in schema.derived]
    numbers = read_all(frame, schema.columns, modelled)
    before = dict(numbers)
    rules.fix(numbers, rng)
    frame = frame.copy(deep=False)
    for name in rules.names:
        if name not in before or not np.array_equal(numbers[name], before[name], equal_nan=True):
            frame[name] = _write(numbers[name], schema.columns[name])
    return frame


def _write(values: Floats, column: Column) -> pd.Series[Any]:
    if not column.discrete:
        return Number(column=column, grid=grid_of(column)).write(values)  # type: ignore[arg-type]
    encoding = Discrete(column=column)  # type: ignore[arg-type]
    return encoding.restore([np.where(np.isnan(values), len(encoding.column.domain), values)], None)
