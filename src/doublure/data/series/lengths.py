"""Series that end before others: how many steps each has, by itself.

A series ends with the last step at which any channel has a value, unless its own column says where. What is missing
before that is a gap, and what is after it is nothing at all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.series.clock import Whole
from doublure.data.series.records import Values
from doublure.errors import DataError
from doublure.schema.series import SeriesSchema

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


def ends_of(values: Values) -> Whole:
    """Return how many steps each series ``(N, length, channels)`` has, up to its last value; 0 for none at all."""
    there: Flags = np.asarray(~np.isnan(values).all(axis=2))
    last: Whole = np.where(there.any(axis=1), values.shape[1] - there[:, ::-1].argmax(axis=1), 0)
    return last


def told(attributes: pd.DataFrame, schema: SeriesSchema) -> Whole | None:
    """Return how many steps each series has, as its own column says; 0 where it says nothing, None without one."""
    if schema.ends_at is None or schema.ends_at not in attributes:
        return None
    cells = attributes[schema.ends_at].to_numpy(dtype=np.float64, na_value=0.0)
    found: Whole = np.clip(cells, 0, schema.length).astype(np.int64)
    return found


def fitting(steps: Whole, schema: SeriesSchema, lenient: Collection[str]) -> Flags:
    """Return which series have as many steps as the schema allows.

    Raises:
        DataError: One has fewer, and is not to be left out.
    """
    name = schema.ends_at or ""
    lower = schema.attributes[name].ends[0]  # type: ignore[index]
    found: Flags = steps >= lower
    if schema.misfit == "refuse" and name not in lenient and not found[steps > 0].all():
        remedy = "lower its bounds, or declare misfit: coerce, which leaves such series out"
        raise DataError("has series of fewer steps than its bounds allow", field=name, remedy=remedy)
    return found


def cut(values: Values, steps: Whole) -> Values:
    """Return values ``(N, length, channels)`` without what stands after each series' end."""
    after = np.arange(values.shape[1]) >= steps[:, None]
    return np.where(after[:, :, None], np.nan, values) if after.any() else values
