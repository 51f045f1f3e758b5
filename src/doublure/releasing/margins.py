"""How far a count is off by the noise that was bought: what a reader of a card asks first, in people.

A run that bought tables of counts keeps them with their standard error
(:class:`doublure.training.noisy_tables.NoisyTable`), which follows from the plan's noise and from how often a table was
counted. 1.96 of those around a noisy count hold the count of the private data with a confidence of 95 %: the noise is
(discrete) Gaussian. That is an answer's own noise: it costs nothing and tells nothing of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from doublure.schema import ResolvedSchema
from doublure.training.noisy_tables import NoisyTable

_QUANTILE = 1.96
CONFIDENCE = 0.95


def margins_of(schema: ResolvedSchema, tables: Iterable[NoisyTable]) -> dict[str, Any] | None:
    """Return the margin of a count of one column, for each column whose counts were bought.

    A count that is put together from several tables of a column, such as those of first and of later rows, has the
    noise of all of them; it is at most their root of squares.

    Args:
        schema: Whose columns these are.
        tables: As they were bought.

    Returns:
        ``confidence``, ``units`` (how many there are: declared or bought) and ``columns``: name -> margin in records;
        None where no column was counted.
    """
    squares: dict[str, float] = {}
    for table in tables:
        if len(table.columns) == 1 and table.columns[0] in schema.columns:
            name = table.columns[0]
            squares[name] = squares.get(name, 0.0) + table.standard_error**2
    if not squares:
        return None
    columns = {name: math.ceil(_QUANTILE * math.sqrt(square)) for name, square in squares.items()}
    return {"confidence": CONFIDENCE, "units": schema.public_units, "columns": columns}


def middle(margins: Iterable[int]) -> int:
    """Return the (upper) median of margins.

    Example:
        >>> middle([80, 20, 40]), middle([80, 20, 40, 60])
        (40, 60)
    """
    ordered = sorted(margins)
    return ordered[len(ordered) // 2]
