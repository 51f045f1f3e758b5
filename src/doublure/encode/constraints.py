"""Declared rules, kept by every decoded row (post-processing: free).

Most rows keep an ``at_most`` already: numbers that it orders are decoded from the gap between them
(:mod:`doublure.encode.differences`). What else breaks a rule is fixed by :mod:`doublure.data.tables.rules`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from doublure.data.tables.rules import TableRules, snapped_numbers
from doublure.schema import ResolvedSchema


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
    numbers = snapped_numbers(frame, schema.columns, modelled)
    before = dict(numbers)
    rules.fix(numbers, rng)
    frame = frame.copy(deep=False)
    for name in rules.names:
        if name not in before or not np.array_equal(numbers[name], before[name], equal_nan=True):
            frame[name] = schema.columns[name].cells_of(numbers[name])
    return frame
