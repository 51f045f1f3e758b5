"""Sources of time series: find series in a container, and bound their number for each unit.

As with tables and images, two passes never mix: :meth:`SeriesSource.check` looks at headers alone (before anything is
reserved), :meth:`SeriesSource.load` reads the readings. It returns ``(N, length, channels)`` float64 and attributes in
canonical form, for at most ``max_records`` series of each unit.

No rule looks at more than one series, except the bounding by unit: of a unit with more, ``max_records`` are drawn at
random, from the operating system's entropy, because the first in time would be the winter's. Nothing of the draw is
kept: a run that is resumed draws anew, and evaluations look at all series.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from doublure.data.npz import LARGEST
from doublure.data.records import refuse_repeated
from doublure.data.series import lengths
from doublure.data.series.clock import Flags, Whole
from doublure.data.series.records import Series, SeriesSet, Values
from doublure.data.tables.source import TableSource
from doublure.errors import DataError, DataWarning, printable
from doublure.schema.columns import Column
from doublure.schema.scalars import Misfit
from doublure.schema.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.support.frames import with_columns

_MOST = 20


class BrokenRule(DataError):
    """Series break a rule for windows.

    Args:
        message: What is wrong, without a private value.
        field: The column.
        remedy: What to do about it.
        relaxed: Rules for windows under which it is no refusal.
    """

    def __init__(self, message: str, *, field: object, remedy: str, relaxed: Mapping[str, str]) -> None:
        super().__init__(message, field=field, remedy=remedy)
        self.relaxed = relaxed


def all_refusals(
    first: DataError,
    schema: SeriesSchema,
    tried: Callable[[SeriesSchema, frozenset[str]], None],
    lenient: frozenset[str] = frozenset(),
) -> list[DataError]:
    """Return all that is wrong, the first error first.

    A refusal ends a reading. The series are read again under rules that tolerate it, until nothing else is refused.
    Nothing is learned from these readings.

    Args:
        first: What was refused.
        schema: By which rules.
        tried: Reads the series by other rules, and coerces the cells of some columns.
        lenient: Columns whose cells are coerced already.
    """
    names = {
        printable(name): name for name in (*schema.columns, *schema.moments, schema.unit.id, schema.source) if name
    }
    found, error = [first], first
    while len(found) < _MOST:
        if isinstance(error, BrokenRule):
            windows = schema.series.model_copy(update=dict(error.relaxed))
            schema = schema.model_copy(update={"series": windows})
        elif (name := names.get(error.field or "")) is not None and name not in lenient:
            lenient |= {name}
        else:
            break
        try:
            tried(schema, lenient)
        except DataError as next_one:
            error = next_one
            found.append(error)
        else:
            break
    return found


def _joined(found: Sequence[DataError]) -> DataError:
    """Return one error that says all; the first one itself where nothing else is wrong."""
    first = found[0]
    if len(found) == 1:
        return first
    also = "; and ".join(str(each) for each in found[1:])
    return DataError(first.message, field=first.field, remedy=f"{first.remedy}; and {also}")


_BLOCK_NUMBERS = 2_000_000


class Cut(Protocol):
    """Series in a container, found and not yet read out.

    Attributes:
        attributes: ``(N, …)`` in canonical form.
        unit: The label of each series' unit, ``(N,)``; None where every series is its own.
        changed: ``(N,)``, whether clocks change within the series.
        starts: ``(N,)``, when they begin, in seconds since 1970 on the wall clock; None where that is not known.
    """

    attributes: pd.DataFrame
    unit: pd.Series[Any] | None
    changed: Flags
    starts: Whole | None

    def block(self, first: int, last: int) -> Values:
        """Return the values ``(last - first, length, channels)`` of neighbouring series, NaN for gaps."""


class MissingStep(NamedTuple):
    """A step without a value that the schema refuses. Private.

    Attributes:
        series: The series, from 1.
        channel: The channel.
        moment: The step's moment as the data stamps it; where that is not known its number, from 0.
        why: Which rule refuses it.
    """

    series: int
    channel: str
    moment: str
    why: str


class CellTable(NamedTuple):
    """Cells of series before they are read. Private.

    Attributes:
        columns: How they are read; an empty cell of a channel is left to the rule for gaps.
        table: Where they stand.
        each: How many of its rows are one series; 1 where a row counts by itself.
        needed: Columns without whose cell a row is no reading.
    """

    columns: Mapping[str, Column]
    table: TableSource
    each: int = 1
    needed: Collection[str] = ()


class SeriesSource(ABC):
    """A set of series whose container has been looked at and whose readings have not been read.

    Attributes:
        name: The container's name, for errors.
        lenient: Columns that were refused already, whose cells are coerced to see what else is wrong.
        standing: Whether of a channel's cell only that something stands there is read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.lenient: frozenset[str] = frozenset()
        self.standing = False

    def _misfit(self, name: str, schema: SeriesSchema) -> Misfit:
        return "coerce" if name in self.lenient else schema.misfit

    @abstractmethod
    def check_header(self, schema: SeriesSchema) -> None:
        """Compare the container's header with the schema; raises DataError."""

    @abstractmethod
    def cut(self, schema: SeriesSchema) -> Cut:
        """Find the series; raises DataError."""

    @abstractmethod
    def cell_tables(self, schema: SeriesSchema) -> Iterator[CellTable]:
        """Yield the cells of channels, attributes and moments before they are read; raises DataError. Private."""

    @property
    def names(self) -> list[str]:
        """The columns or arrays that there are."""
        return []

    def check(self, schema: Schema) -> None:
        """Compare the container with the schema.

        Raises:
            DataError: A channel, an attribute or what tells series apart is not there.
        """
        self.check_header(series_schema(schema))

    def coincide(self, schema: SeriesSchema) -> bool:
        """Whether readings that nothing tells apart have one moment, for their owner to know. Private."""
        return False

    def gaps(self, schema: Schema) -> Iterator[MissingStep]:
        """Yield the steps without a value that the schema refuses, for their owner to know. Private.

        A step whose cell cannot be read is none of them.

        Raises:
            DataError: The container cannot be read, or lacks a column.
        """
        described = series_schema(schema)
        self.check_header(described)
        refused = [name for name in described.channels if _refuses(described, name)]
        if not refused:
            return
        lenient = described.model_copy(update={"misfit": "coerce"})
        self.standing = True
        try:
            cut = self.cut(lenient)
        finally:
            self.standing = False
        why = f"{NO_VALUE}, and the schema says {_rule_said(described)}"
        for first, last in _blocks(len(cut.attributes), lenient):
            there, lacking, _ = self._lacking(cut, lenient, first, last)
            for number, name in enumerate(described.channels):
                if name in refused:
                    for row, step in np.argwhere(lacking[:, :, number] & there[:, None]):
                        yield MissingStep(
                            int(first + row) + 1, name, _moment(cut.starts, first + row, step, described), why
                        )

    def refused(self, schema: Schema, listed: Collection[str]) -> list[DataError]:
        """Return what else a fit would be refused for, for the owner to know. Private.

        Args:
            schema: Their windows, channels, attributes and units.
            listed: Columns whose cells are known not to fit, or to be gaps.
        """
        described = series_schema(schema)
        if listed:  # where such a cell is left out, a step has no value
            described = described.model_copy(update={"series": described.series.model_copy(update={"gaps": "drop"})})
        lenient = frozenset(listed)
        try:
            self._tried(described, lenient, at_least=0 if listed else 2)
        except DataError as error:
            return all_refusals(error, described, self._tried, lenient)
        return []

    def _lacking(
        self, cut: Cut, schema: SeriesSchema, first: int, last: int, own: Whole | None = None
    ) -> tuple[Flags, Flags, Whole | None]:
        """Return of neighbouring series which stay, which of their steps have no value, and how many steps each has.

        Lengths are None where all are equal.
        """
        block, steps = cut.block(first, last), None
        if schema.ends_at is not None:
            own = lengths.told(cut.attributes, schema) if own is None else own
            steps = lengths.ends_of(block) if own is None else own[first:last]
            block = lengths.cut(block, steps)
        lacking: Flags = np.isnan(block)
        there: Flags = np.asarray(~lacking.all(axis=(1, 2)))
        if steps is not None:
            there &= lengths.fitting(np.where(there, steps, 0), schema, self.lenient)
            lacking &= np.arange(schema.length)[:, None] < steps[:, None, None]
        if schema.series.clock_changes == "drop":
            there &= ~cut.changed[first:last]
        return there, lacking, steps

    def load(self, schema: Schema, *, at_least: int = 2) -> SeriesSet:
        """Read the series.

        Args:
            schema: Their windows, channels, attributes and units.
            at_least: Fewer series than this are refused.

        Raises:
            DataError: A reading or a gap breaks the schema's rules, of which one error names all that are broken;
                there are too few series.
        """
        schema = series_schema(schema)
        self.check_header(schema)
        try:
            return self._load(schema, at_least)
        except DataError as error:
            raise _joined(all_refusals(error, schema, self._tried)) from None

    def _tried(self, schema: SeriesSchema, lenient: frozenset[str], at_least: int = 0) -> None:
        """Read the series once more, by more lenient rules, to see what else is refused."""
        before, self.lenient = self.lenient, lenient
        try:
            with warnings.catch_warnings(action="ignore", category=DataWarning):
                self._load(schema, at_least)
        finally:
            self.lenient = before

    def _load(self, schema: SeriesSchema, at_least: int) -> SeriesSet:
        cut = self.cut(schema)
        whole, steps = self._whole(cut, schema)
        rows = np.flatnonzero(whole)
        if len(rows) < at_least:
            remedy = "give the set that the schema describes; gaps: drop leaves out every series with a gap"
            raise DataError(f"has fewer than {at_least} series", field=self.name, remedy=remedy)
        unit: Whole = np.arange(len(rows), dtype=np.int64)
        n_units, found = len(rows), len(rows)
        if cut.unit is not None:
            codes, labels = pd.factorize(cut.unit.iloc[rows])
            chosen = at_most(codes, schema.unit.max_records)
            rows, unit, n_units = rows[chosen], codes[chosen].astype(np.int64, copy=False), len(labels)
            refuse_repeated(schema, repeated=n_units < found and schema.unit.id not in self.lenient)
        values = np.empty((self._held(len(rows), schema), schema.length, len(schema.channels)))
        for first, last in _blocks(len(cut.attributes), schema):
            inside = slice(*np.searchsorted(rows, (first, last)))
            if inside.stop > inside.start:
                block = cut.block(first, last)[rows[inside] - first]
                values[inside] = block if steps is None else lengths.cut(block, steps[rows[inside]])
        attributes = cut.attributes.iloc[rows].reset_index(drop=True)
        if schema.ends_at is not None and steps is not None:
            attributes = with_columns(attributes, {schema.ends_at: steps[rows]})[list(schema.attributes)]
        content = Series(
            values=values,
            channels=tuple(schema.channels),
            attributes=attributes,
            states=schema.states,
            ends_at=schema.ends_at,
        )
        return SeriesSet(content=content, unit=unit, n_units=n_units, repeatable=len(rows) == found)

    def _held(self, rows: int, schema: SeriesSchema) -> int:
        if rows * schema.length * len(schema.channels) * 8 > LARGEST:
            raise DataError("holds more than 32 GB of values", field=self.name, remedy="give a part of it")
        return rows

    def _whole(self, cut: Cut, schema: SeriesSchema) -> tuple[Flags, Whole | None]:
        """Return which series stay, and how many steps each has where that differs.

        Those with a reading stay that the rules for gaps and clock changes do not leave out. A gap that is to be
        refused leaves its series out where misfits are coerced.
        """
        kept = np.ones(len(cut.attributes), dtype=np.bool_)
        rule = schema.series.gaps
        steps = None if schema.ends_at is None else np.zeros(len(kept), dtype=np.int64)
        own = lengths.told(cut.attributes, schema)
        for first, last in _blocks(len(kept), schema):
            there, lacking, many = self._lacking(cut, schema, first, last, own)
            if steps is not None and many is not None:
                steps[first:last] = many
            gaps: Flags = np.asarray(lacking.any(axis=1))
            refused = []
            for number, name in enumerate(schema.channels):
                if not _refuses(schema, name):
                    continue
                if schema.misfit == "refuse" and gaps[there, number].any():
                    refused.append(name)
                else:
                    there &= ~gaps[:, number]
            if refused:
                raise _has_gaps(refused, schema)
            kept[first:last] = there & ~gaps.any(axis=1) if rule == "drop" else there
        return kept, steps


NO_VALUE = "a step has no value"
GAPS_ALLOWED = "declare gaps: drop, or gaps: missing and missing: true, or fill them by a public rule"


def _refuses(schema: SeriesSchema, name: str) -> bool:
    """Return whether a channel's gaps are refused, or leave their series out where misfits are coerced."""
    rule = schema.series.gaps
    return rule == "refuse" or (rule == "missing" and schema.channels[name].missing is False)


def _rule_said(schema: SeriesSchema) -> str:
    return "gaps: refuse" if schema.series.gaps == "refuse" else "missing: false"


def _has_gaps(names: Sequence[str], schema: SeriesSchema) -> BrokenRule:
    return BrokenRule(
        f"has steps without a value, and the schema says {_rule_said(schema)}",
        field=", ".join(map(printable, names)),
        remedy=f"list them by schema check --values FILE; {GAPS_ALLOWED}",
        relaxed={"gaps": "drop"},
    )


def _moment(starts: Whole | None, row: int, step: int, schema: SeriesSchema) -> str:
    """Return a step's moment as the data stamps it; where that is not known its number."""
    seconds = schema.series.seconds
    if starts is None or seconds is None:
        return str(step)
    at = starts[row] + (step + (schema.series.stamp == "end")) * seconds
    return str(pd.Timestamp(int(at), unit="s"))


def _blocks(count: int, schema: SeriesSchema) -> Iterator[tuple[int, int]]:
    """Yield the first and last of neighbouring series that are handled together."""
    size = max(1, _BLOCK_NUMBERS // (schema.length * len(schema.channels)))
    for first in range(0, count, size):
        yield first, min(count, first + size)


def at_most(codes: Whole, max_records: int) -> Whole:
    """Return the places of at most ``max_records`` series of each unit, drawn at random, in their order."""
    order = np.random.default_rng().permutation(len(codes))  # 128 bits of the operating system's entropy
    rank = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    return np.sort(order[rank < max_records])


def series_schema(schema: Schema) -> SeriesSchema:
    """Return the schema, once it is sure that it describes series."""
    wrong = DataError("holds series, and the schema does not describe series", field="data", remedy="fix either")
    return SeriesSchema.of(schema, wrong)
