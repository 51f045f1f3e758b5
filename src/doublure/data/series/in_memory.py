"""Series that are whole in memory, and what every container's series get: open gaps, attributes from the time."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.series import clock
from doublure.data.series.clock import Changes, Flags, Whole
from doublure.data.series.records import Values
from doublure.data.tables import cells
from doublure.errors import DataError
from doublure.schema.columns import Column, RealColumn
from doublure.schema.distinct_cells import distinct
from doublure.schema.scalars import Misfit, label
from doublure.schema.series import SeriesSchema
from doublure.schema.series_exogenous import ExogenousReadings

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

_CYCLE = 28 * 1461 * 86_400 // 4
_MOST_WINDOWS = 20_000


class InMemorySeries:
    """Series that are whole in memory; see :class:`doublure.data.series.sources.Cut`.

    Args:
        values: ``(N, length, channels)``.
        attributes: In canonical form.
        unit: The label of each series' unit.
        changes: What clock changes do to the series, where it is known when they begin.
        fill: Whether steps that clocks skip repeat the one before them.
        starts: ``(N,)`` when they begin, where it is known.
    """

    def __init__(
        self,
        values: Values,
        attributes: pd.DataFrame,
        unit: pd.Series[Any] | None,
        changes: Changes | None = None,
        *,
        fill: bool = False,
        starts: Whole | None = None,
    ) -> None:
        self._values, self.attributes, self.unit, self.starts = values, attributes, unit, starts
        self.changed: Flags = np.zeros(len(values), dtype=np.bool_) if changes is None else changes.changed
        self._skipped = changes.skipped if fill and changes is not None and changes.skipped.any() else None

    def block(self, first: int, last: int) -> Values:
        """Return the values of neighbouring series."""
        values = np.asarray(self._values[first:last], dtype=np.float64)
        if self._skipped is not None:
            values = values.copy()
            clock.filled(values, self._skipped[first:last])
        return values


def held(
    values: Values, attributes: pd.DataFrame, unit: pd.Series[Any] | None, starts: Whole | None, schema: SeriesSchema
) -> InMemorySeries:
    """Return series that are cut already, under the rules that go by when they begin, where that is known.

    Args:
        values: ``(N, length, channels)``.
        attributes: Those that are read.
        unit: The label of each series' unit.
        starts: ``(N,)`` the wall clock at each series' beginning.
        schema: Attributes that follow from the time, and what clock changes do.

    """
    if starts is None:
        return InMemorySeries(values, attributes, unit)
    fill = schema.series.clock_changes == "fill"
    full, changes = complete(attributes, starts, schema), changes_of(starts, schema)
    return InMemorySeries(values, full, unit, changes, fill=fill, starts=starts)


def changes_of(starts: Whole, schema: SeriesSchema) -> Changes:
    """Return the clock changes within windows that begin at ``starts``."""
    return clock.changes_in(starts, schema.length, schema.series.seconds or 1, schema.series.timezone)


def complete(attributes: pd.DataFrame, starts: Whole, schema: SeriesSchema) -> pd.DataFrame:
    """Return all attributes in the schema's order, those that follow from the time computed."""
    found: dict[str, pd.Series[Any]] = {}
    for name, column in schema.attributes.items():
        if name in attributes:
            found[name] = attributes[name]
        elif column.from_moments:
            found[name] = cells.canonical(of_moments(name, starts, schema), column, name, schema.misfit)
    return pd.DataFrame(found, index=pd.RangeIndex(len(starts)))


def of_moments(
    name: str, starts: Whole, schema: SeriesSchema, exogenous: ExogenousReadings | None = None
) -> pd.Series[Any]:
    """Return the cells ``(N,)`` of an attribute that follows from the moments at which series begin.

    Args:
        name: The attribute's.
        starts: ``(N,)`` in seconds since 1970 on the wall clock.
        schema: It names the attribute.
        exogenous: Other public readings than the schema's; missing where they have none.
    """
    column, public, windows = schema.attributes[name], exogenous or schema.series.exogenous, schema.series
    if column.from_time is not None:
        return clock.derived(starts, column.from_time)
    if column.from_exogenous is None or public is None or windows.duration is None or windows.seconds is None:
        raise TypeError("an attribute follows from no moments")
    return pd.Series(public.of_windows(name, column, starts, windows.duration, windows.seconds))


def readable(column: Column, schema: SeriesSchema, *, standing: bool = False) -> Column:
    """Return a channel's column, its empty cells left to the rule for gaps, unless they are to be refused anyway.

    Args:
        column: The channel.
        schema: Its rule for gaps.
        standing: Read 1 where anything stands in a cell.
    """
    if standing:
        return _StandingChannel(type="real", missing=True, own=maybe_empty(column))
    open_ = schema.series.gaps == "drop" or schema.misfit == "coerce" or schema.ends_at is not None
    return maybe_empty(column) if open_ else column


def maybe_empty(column: Column) -> Column:
    """Return a column that takes empty cells."""
    return column.model_copy(update={"missing": True}) if column.missing is False else column


class _StandingChannel(RealColumn):
    """A channel of which only that something stands in a cell is read: what cannot be read is no gap."""

    own: Any

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        there = ~np.isnan(numbers_of(cells.canonical(raw, self.own, name, "coerce")))
        codes, uniques = distinct(raw[~there])
        there[~there] = np.array([*(self._unreadable(cell, name) for cell in uniques), False])[codes]
        return pd.Series(np.where(there, 1.0, np.nan))

    def _unreadable(self, cell: object, name: str) -> bool:
        try:
            cells.canonical(pd.Series([cell], dtype=object), self.own, name)
        except DataError:
            return True
        return False

    @override
    def read_at_once(self, raw: Any, name: str, misfit: Misfit) -> None:
        return None


def numbers_of(channel: pd.Series[Any]) -> Floats:
    """Return a channel's canonical cells as numbers, NaN for missing: of states their places in the list."""
    if not isinstance(channel.dtype, pd.CategoricalDtype):
        return channel.to_numpy(dtype=np.float64)
    codes = channel.cat.codes.to_numpy()
    return np.where(codes < 0, np.nan, codes)


def calendar_shares(schema: SeriesSchema, name: str) -> Floats:
    """Return how frequent the values of an attribute that follows from the time are in the calendar, by their codes.

    All windows of 28 years are counted, after which weekdays fall on the same days of the year again, but at most
    20,000 of them, evenly chosen. Values that the schema does not list count as ``other`` or not at all.
    """
    column, duration = schema.attributes[name], schema.length * (schema.series.seconds or 1)
    count = max(1, _CYCLE // duration)
    places = np.arange(min(count, _MOST_WINDOWS)) * count // min(count, _MOST_WINDOWS)
    found = clock.derived(schema.series.origin + places * duration, column.from_time or "hour")
    place = {label(value): code for code, value in enumerate(column.domain)}
    rest = -1 if column.fallback is None else place[label(column.fallback)]
    codes = np.array([place.get(label(value), rest) for value in found.tolist()])
    counts = np.bincount(codes[codes >= 0], minlength=len(place)).astype(np.float64)
    shares: Floats = counts / counts.sum() if counts.any() else np.full(len(place), 1 / len(place))
    return shares
