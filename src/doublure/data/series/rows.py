"""Series from tables: a row a reading (long), or a row a series (wide).

=================================================  ====================================================================
a header with                                      what is read
=================================================  ====================================================================
``series`` and ``step``                            series that are cut already; a row is step 0, 1, 2, … of one
the schema's ``time``, and each channel            a reading a row; windows are cut by the schema's rule
``litres_0``, ``litres_1``, … for each channel     a series a row
=================================================  ====================================================================
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.series import clock
from doublure.data.series.clock import Flags, Whole
from doublure.data.series.in_memory import changes_of, complete, held, maybe_empty, numbers_of, readable
from doublure.data.series.records import Values
from doublure.data.series.sources import BrokenRule, CellTable, Cut, SeriesSource
from doublure.data.series.two_columns import JoinedSource
from doublure.data.tables import cells
from doublure.data.tables.opening import TableSource
from doublure.errors import DataError, DataWarning, printable
from doublure.schema.columns import Column, IntegerColumn
from doublure.schema.scalars import Misfit
from doublure.schema.series import SERIES, STEP, SeriesSchema

_NO_TOKENS = ("",)
_AVERAGED = {"irregular": "mean"}
COINCIDING = (
    "several readings have one moment, and count as one series, as nothing says where they come from; name "
    "series.source, or unit.id, if they come from several places"
)
"""The notice to the owner of readings of which two have the same moment."""


class RowSource(SeriesSource):
    """A table that holds series.

    Args:
        table: Its header has been looked at.
    """

    def __init__(self, table: TableSource) -> None:
        super().__init__(table.name)
        self.table = table

    @property
    @override
    def names(self) -> list[str]:
        return self.table.columns

    @override
    def check_header(self, schema: SeriesSchema) -> None:
        reader = self._form(schema)
        self.table.check_names(reader.needs)
        if reader.timed and schema.series.time_of_day is not None:
            self.table.check_names([schema.series.time_of_day])

    @override
    def cut(self, schema: SeriesSchema) -> Cut:
        form = self._form(schema)
        form.lenient, form.standing = self.lenient, self.standing
        return form.cut(self._read_by(form))

    @override
    def cell_tables(self, schema: SeriesSchema) -> Iterator[CellTable]:
        form = self._form(schema)
        channels = {name: maybe_empty(column) for name, column in form.values().items()}
        needed = {**form.moments(), **form.counters()}
        yield CellTable({**channels, **form.attributes(), **needed}, self._read_by(form), needed=needed)

    def _read_by(self, form: _Form) -> TableSource:
        day, clock_column = form.schema.series.time, form.schema.series.time_of_day
        if day is None or clock_column is None or not form.timed:
            return self.table
        return JoinedSource(self.table, day, clock_column)

    @override
    def coincide(self, schema: SeriesSchema) -> bool:
        if not (schema.cautions and self._form(schema).timed):
            return False
        cut = self.cut(schema.model_copy(update={"misfit": "coerce"}))
        return isinstance(cut, _CutRows) and cut.readings.coincide

    def _form(self, schema: SeriesSchema) -> _Form:
        names, first = self.table.columns, next(iter(schema.channels))
        if {SERIES, STEP} <= set(names):
            return _Numbered(schema, names)
        if first not in names and _steps_of(first, names):
            return _Wide(schema, names)
        if schema.series.time is None:
            remedy = f"name series.time, or give columns {SERIES} and {STEP}, or {first}_0, {first}_1, … in one row"
            raise DataError("has equal values in different series", field=self.name, remedy=remedy)
        return _Timed(schema, names)


class _Form:
    """The layout of series in a table."""

    timed = False
    lenient: Collection[str] = ()
    """Columns that were refused already, whose cells are coerced to see what else is wrong."""
    standing = False
    """Whether of a channel's cell only that something stands there is read."""

    def __init__(self, schema: SeriesSchema, names: Collection[str]) -> None:
        self.schema = schema
        self.names = names

    @property
    def needs(self) -> list[str]:
        """The columns that must be there."""
        return [*self.values(), *self.attributes(), *self.keys(), *self.moments()]

    def values(self) -> Mapping[str, Column]:
        """The columns that hold values; an empty cell is a gap, which the schema's rule deals with."""
        columns = self.schema.columns
        return {name: readable(columns[name], self.schema, standing=self.standing) for name in self.schema.channels}

    def attributes(self) -> dict[str, Column]:
        """The columns of attributes; those that follow from the time or the length are computed where they are none."""
        found = self.schema.attributes.items()
        return {
            name: column
            for name, column in found
            if not (self.timed and column.from_moments) and not (column.from_length and name not in self.names)
        }

    def keys(self) -> list[str]:
        """The columns that name a unit or a source."""
        return list(dict.fromkeys(name for name in (self.schema.unit.id, self.schema.source) if name is not None))

    def moments(self) -> dict[str, Column]:
        """The column of moments."""
        return dict(self.schema.moments) if self.timed else {}

    def counters(self) -> dict[str, Column]:
        """The column of steps' numbers, which no schema has."""
        return {}

    def read(self, table: TableSource) -> tuple[pd.DataFrame, dict[str, pd.Series[Any]]]:
        """Return the canonical cells of all columns, and the labels of units and sources."""
        needed = {**self.moments(), **self.counters()}
        columns = {**self.values(), **self.attributes(), **needed}
        misfit = self.schema.misfit
        frame, keys = table.read(columns, dict.fromkeys(self.keys(), _NO_TOKENS), misfit, self.lenient)
        there = frame[[*needed]].notna()
        for name, full in there.all().items():
            if misfit == "refuse" and not full and name not in self.lenient:
                remedy = "fill them; misfit: coerce leaves these readings out"
                raise DataError("has empty cells", field=name, remedy=remedy)
        return _taken(frame, keys, there.all(axis=1).to_numpy())

    def cut(self, table: TableSource) -> Cut:
        """Find the series."""
        raise NotImplementedError


# -- a row a reading -------------------------------------------------------------------------------------------------


class Readings:
    """Readings in the order of their series, and how a block of series is read out of them.

    Args:
        series: ``(R,)``, each reading's series, 0 … N - 1.
        step: ``(R,)``, its step.
        at: ``(R,)``, its moment, or what else comes before and after within a step.
        values: ``(R, channels)``, NaN for an empty cell.
        schema: The rule for several readings in one step.
        changes: Clock changes, for each series.
        name: What is named where a rule is broken: the column of moments or of steps.
    """

    def __init__(
        self,
        series: Whole,
        step: Whole,
        at: Whole,
        values: Values,
        schema: SeriesSchema,
        changes: clock.Changes,
        name: str,
    ) -> None:
        order = np.lexsort((at, series))
        self._series, self._step, self._values = series[order], step[order], values[order]
        self._at = at[order]
        self._schema, self._changes, self._name = schema, changes, name
        self._rule = schema.series.irregular
        self.changed = changes.changed

    def block(self, first: int, last: int) -> Values:
        """Return the values ``(last - first, length, channels)`` of neighbouring series, NaN for gaps."""
        inside = slice(*np.searchsorted(self._series, (first, last)))
        length = self._schema.length
        key = (self._series[inside] - first) * length + self._step[inside]
        size = (last - first) * length
        doubled = self._changes.doubled[first:last]
        if (
            self._rule == "refuse" == self._schema.misfit
            and ((np.bincount(key, minlength=size) > 1) & ~doubled.reshape(-1)).any()
        ):
            remedy = "declare irregular: mean, sum or last, or fix the data"
            if self._schema.source is None and self._schema.series.time is not None:
                remedy = f"name series.source if readings come from several places; if not, {remedy}"
            raise BrokenRule(
                "has several readings in one step of a series", field=self._name, remedy=remedy, relaxed=_AVERAGED
            )
        rules = ["last" if name in self._schema.states else self._rule for name in self._schema.channels]
        columns = [
            self._column(key, cells, size, rule) for rule, cells in zip(rules, self._values[inside].T, strict=True)
        ]
        values = np.stack(columns, axis=1).reshape(last - first, length, len(columns))
        if self._schema.series.clock_changes == "fill":
            clock.filled(values, self._changes.skipped[first:last])
        return values

    @property
    def coincide(self) -> bool:
        """Whether two readings of a series in which no clock changes have one moment. Private."""
        same = (self._series[1:] == self._series[:-1]) & (self._at[1:] == self._at[:-1])
        return bool((same & ~self._changes.changed[self._series[1:]]).any())

    def _column(self, key: Whole, cells: Values, size: int, rule: str) -> Values:
        known = ~np.isnan(cells)
        key, cells = key[known], cells[known]
        if rule == "last":
            column = np.full(size, np.nan)
            column[key] = cells  # of several in one place, the last in time stays
            return column
        count, total = np.bincount(key, minlength=size), np.bincount(key, weights=cells, minlength=size)
        share = 1 if rule == "sum" else np.maximum(count, 1)
        return np.where(count > 0, total / share, np.nan)


class _CutRows:
    """Series cut out of readings; see :class:`doublure.data.series.sources.Cut`."""

    def __init__(
        self, readings: Readings, attributes: pd.DataFrame, unit: pd.Series[Any] | None, starts: Whole | None = None
    ) -> None:
        self.attributes, self.unit, self.changed, self.starts = attributes, unit, readings.changed, starts
        self.block, self.readings = readings.block, readings


def _taken(
    frame: pd.DataFrame, keys: Mapping[str, pd.Series[Any]], rows: Flags
) -> tuple[pd.DataFrame, dict[str, pd.Series[Any]]]:
    """Return some of the rows, and their labels."""
    return cells.kept_of(frame, rows), {name: cells.kept_of(key, rows) for name, key in keys.items()}


def _of_series(
    frame: pd.DataFrame, keys: Mapping[str, pd.Series[Any]], series: Whole, misfit: Misfit, lenient: Collection[str]
) -> tuple[pd.DataFrame, dict[str, pd.Series[Any]]]:
    """Return each series' attributes, which its readings have to agree on, and its labels.

    Where misfits are coerced, the first of its readings says what they are.
    """
    first = np.unique(series, return_index=True)[1]
    for name, column in frame.items():
        codes = pd.factorize(column)[0]
        if misfit == "refuse" and name not in lenient and (codes != codes[first][series]).any():
            remedy = "cut shorter series, make it a channel, or take it out of the schema"
            raise DataError("changes within a series", field=name, remedy=remedy)
    labels = {name: key.iloc[first].reset_index(drop=True) for name, key in keys.items()}
    return frame.iloc[first].reset_index(drop=True), labels


class _Timed(_Form):
    timed = True

    @override
    def cut(self, table: TableSource) -> Cut:
        schema, windows = self.schema, self.schema.series
        time, seconds = windows.time or "", windows.seconds or 1
        frame, keys = self.read(table)
        moments = frame[time].to_numpy().astype("datetime64[s]").astype(np.int64)
        if windows.stamp == "end":
            moments = moments - seconds
        places = clock.places_of(moments, windows, schema.length)
        if windows.irregular == "refuse" == schema.misfit and places.beside.any():
            remedy = "declare irregular: mean, sum or last, or fix series.step; times that follow no step go as rows "
            remedy += "of a table, kind: relational"
            raise BrokenRule("has moments that stand beside the steps", field=time, remedy=remedy, relaxed=_AVERAGED)
        series = _numbered([*keys.values()], places.start)
        count = int(series.max(initial=-1)) + 1
        starts = np.zeros(count, dtype=np.int64)
        starts[series] = places.start
        values = np.stack([numbers_of(frame[name]) for name in schema.channels], axis=1)
        changes = changes_of(starts, schema)
        readings = Readings(series, places.step, moments, values, schema, changes, time)
        attributes, labels = _of_series(frame[list(self.attributes())], keys, series, schema.misfit, self.lenient)
        full = complete(attributes, starts, schema)
        if schema.cautions and schema.misfit == "refuse" and readings.coincide:
            warnings.warn(f"{printable(time)}: {COINCIDING}", DataWarning, stacklevel=2)
        return _CutRows(readings, full, labels.get(schema.unit.id or ""), starts)


def _numbered(keys: Iterable[pd.Series[Any]], starts: Whole) -> Whole:
    """Return a number for each reading's series: in the order in which units and sources appear, then in time."""
    code: Whole = np.zeros(len(starts), dtype=np.int64)
    for key in keys:
        labels, found = pd.factorize(key)
        code = pd.factorize(code * max(1, len(found)) + labels)[0].astype(np.int64)
    distinct, window = np.unique(starts, return_inverse=True)
    numbers = np.unique(code * max(1, len(distinct)) + window, return_inverse=True)[1]
    return np.asarray(numbers.reshape(-1), dtype=np.int64)


class _Numbered(_Form):
    @property
    @override
    def needs(self) -> list[str]:
        return [*super().needs, SERIES, STEP]

    @override
    def keys(self) -> list[str]:
        named = super().keys()
        return [*(name for name in named if name == self.schema.unit.id or name in self.names), SERIES]

    @override
    def counters(self) -> dict[str, Column]:
        return {STEP: IntegerColumn()}

    @override
    def cut(self, table: TableSource) -> Cut:
        schema, length = self.schema, self.schema.length
        frame, keys = self.read(table)
        inside = frame[STEP].between(0, length - 1).to_numpy()
        if schema.misfit == "refuse" and not inside.all():
            raise DataError("has steps outside 0 … length - 1", field=STEP, remedy="number them from 0")
        frame, keys = _taken(frame, keys, inside)
        step = frame[STEP].to_numpy().astype(np.int64)
        series = _numbered([*keys.values()], np.zeros(len(step), dtype=np.int64))
        count = int(series.max(initial=-1)) + 1
        values = np.stack([numbers_of(frame[name]) for name in schema.channels], axis=1)
        readings = Readings(series, step, step, values, schema, clock.Changes.none(count, length), STEP)
        attributes, labels = _of_series(frame[list(self.attributes())], keys, series, schema.misfit, self.lenient)
        return _CutRows(readings, attributes, labels.get(schema.unit.id or ""))


# -- a row a series --------------------------------------------------------------------------------------------------


class _Wide(_Form):
    def __init__(self, schema: SeriesSchema, columns: list[str]) -> None:
        super().__init__(schema, columns)
        self.timed = schema.series.time in columns
        self._columns = {name: _columns_of(name, columns, schema) for name in schema.channels}

    @override
    def values(self) -> Mapping[str, Column]:
        open_ = super().values()
        return {column: open_[name] for name, columns in self._columns.items() for column in columns}

    @override
    def keys(self) -> list[str]:
        return [] if self.schema.unit.id is None else [self.schema.unit.id]

    @override
    def cut(self, table: TableSource) -> Cut:
        frame, keys = self.read(table)
        parts = [np.stack([numbers_of(frame[name]) for name in columns], axis=1) for columns in self._columns.values()]
        values = np.stack(parts, axis=2)
        starts: Whole | None = None
        if self.timed:
            starts = frame[self.schema.series.time].to_numpy().astype("datetime64[s]").astype(np.int64)
        return held(values, frame[list(self.attributes())], keys.get(self.schema.unit.id or ""), starts, self.schema)


def _steps_of(channel: str, columns: list[str]) -> list[tuple[int, str]]:
    """Return the columns that hold a step of a channel, named by it, ``_`` and the step's number, with that number."""
    form = re.compile(re.escape(channel) + r"_0*(\d+)", re.ASCII)
    return [(int(match.group(1)), name) for name in columns if (match := form.fullmatch(name))]


def _columns_of(channel: str, columns: list[str], schema: SeriesSchema) -> list[str]:
    """Return the columns of a channel's steps, from 0.

    Raises:
        DataError: There are more steps than the schema says, or one has two columns.
    """
    others = {*schema.columns, schema.unit.id, schema.source, schema.series.time}
    found = _steps_of(channel, [name for name in columns if name not in others])
    of_step = dict(found)
    if max(of_step, default=0) >= schema.length:
        remedy = "number them from 0 and fix series.length, or rename columns that are no steps"
        raise DataError("has columns of steps beyond series.length", field=channel, remedy=remedy)
    if len(of_step) < len(found):
        raise DataError("has two columns for one step", field=channel, remedy="rename one of the columns")
    return [of_step.get(step, f"{channel}_{step}") for step in range(schema.length)]
