"""Series that are whole in memory, and what every container's series get: open gaps, attributes from the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from doublure.data import cells
from doublure.data.series import clock
from doublure.data.series.clock import Flags, Whole
from doublure.data.series.records import Values
from doublure.schema.columns import Column, DatetimeColumn, IntegerColumn, RealColumn
from doublure.schema.series import SeriesSchema


class Held:
    """Series that are whole in memory; see :class:`doublure.data.series.sources.Cut`."""

    def __init__(self, values: Values, attributes: pd.DataFrame, unit: pd.Series[Any] | None) -> None:
        self._values, self.attributes, self.unit = values, attributes, unit
        self.changed: Flags = np.zeros(len(values), dtype=np.bool_)

    def block(self, first: int, last: int) -> Values:
        """Return the values of neighbouring series."""
        return np.asarray(self._values[first:last], dtype=np.float64)


def complete(attributes: pd.DataFrame, starts: Whole, schema: SeriesSchema) -> pd.DataFrame:
    """Return all attributes in the schema's order, those that follow from the time computed."""
    found: dict[str, pd.Series[Any]] = {}
    for name, column in schema.attributes.items():
        if name in attributes:
            found[name] = attributes[name]
        elif column.from_time is not None:
            found[name] = cells.canonical(clock.derived(starts, column.from_time), column, name)
    return pd.DataFrame(found, index=pd.RangeIndex(len(starts)))


def readable(channel: IntegerColumn | RealColumn, schema: SeriesSchema) -> Column:
    """Return a channel whose empty cells are left to the rule for gaps, unless they are to be refused anyway."""
    if channel.missing is False and schema.series.gaps == "drop":
        return channel.model_copy(update={"missing": True})
    return channel


def moments_column(schema: SeriesSchema) -> DatetimeColumn:
    """Return how moments are read: on the wall clock of the schema's time zone."""
    return DatetimeColumn(timezone=schema.series.timezone, missing=False)
