"""Time series from arrays: an NPZ file or a mapping.

Each channel has an array of its name, or one array holds all channels.

=====================================  ================================================================================
an array                               is
=====================================  ================================================================================
``litres`` ``(…, length)``             one channel
``values`` ``(…, length, channels)``   all channels, in the schema's order; ``series``, ``x`` and ``data`` do too
``weekday`` ``(…)``                    an attribute, a unit's id, or the time at which each series begins
=====================================  ================================================================================

``(…)`` is the number of series, or two axes, such as meters by days: then an attribute may have either of them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data import npz
from doublure.data.npz import Header
from doublure.data.series.clock import Whole
from doublure.data.series.in_memory import held, maybe_empty, numbers_of, readable
from doublure.data.series.records import Values
from doublure.data.series.sources import CellTable, Cut, SeriesSource
from doublure.data.splits import beside, named, only, several
from doublure.data.tables import cells
from doublure.data.tables.opening import open_table
from doublure.data.tables.rewriting import rewritten, rule_of
from doublure.errors import DataError
from doublure.schema.columns import Column
from doublure.schema.series import SERIES, STATES, VALUES, SeriesSchema

VALUE_NAMES = (VALUES, SERIES, "x", "data")


@dataclass(frozen=True, kw_only=True)
class _Layout:
    """Where things stand.

    Attributes:
        split: What stands behind the names.
        values: The arrays of values: one for each channel, or one for all.
        lead: The axes before the steps.
    """

    split: str
    values: tuple[str, ...]
    lead: tuple[int, ...]


class ArraySource(SeriesSource):
    """Arrays that hold series.

    Args:
        name: The container's name.
        headers: Shapes and types of its arrays.
        split: The split that is asked for.
    """

    def __init__(self, name: str, headers: Mapping[str, Header], split: str | None) -> None:
        super().__init__(name)
        self._headers = headers
        self._split = split

    @abstractmethod
    def array(self, name: str) -> Any:
        """Return one array, whole."""

    def refuse_form(self, name: str) -> None:
        """Refuse an array by its header; raises DataError."""
        npz.refuse_fields(name, self._headers[name])

    @property
    @override
    def names(self) -> list[str]:
        return list(self._headers)

    def storage(self) -> tuple[dict[str, str], set[int]]:
        """Return how each array is stored, by its header alone, and the lengths of their series: for a draft.

        Of a split that is asked for its arrays alone, by their names without it.
        """
        found, lengths = {}, set()
        for whole, header in self._headers.items():
            name = whole if not self._split else whole.removesuffix(f"_{self._split}")
            if self._split and name == whole:
                continue
            kind = header.dtype.kind
            if len(header.shape) >= 2 and header.shape[-1] > 1 and kind in "uifO":
                found[name] = "integer" if kind in "ui" else "real"
                lengths.add(header.shape[-1])
            elif len(header.shape) == 1:
                found[name] = {"M": "datetime", "b": "boolean"}.get(kind, "text")
        return found, lengths

    @override
    def check_header(self, schema: SeriesSchema) -> None:
        if schema.series.time_of_day is not None:
            remedy = "give an array of moments, and leave time_of_day out"
            raise DataError("is for tables alone", field="series.time_of_day", remedy=remedy)
        layout = self._layout(schema)
        for name in self._beside(schema, layout):
            found = self._found(name, layout)
            if found is None:
                raise DataError("is not among the arrays", field=name, remedy="fix the schema, or name the array so")
            self.refuse_form(found)
            if not _fits(self._headers[found].shape, layout.lead):
                raise DataError("has another length than the series", field=found, remedy="give each series one")

    @override
    def cut(self, schema: SeriesSchema) -> Cut:
        layout = self._layout(schema)
        attributes = {
            name: self._cells(name, schema.attributes[name], layout, schema) for name in self._steering(schema)
        }
        count = int(np.prod(layout.lead))
        frame = pd.DataFrame(attributes, index=pd.RangeIndex(count))
        time = self._time(schema, layout)
        starts: Whole | None = None
        kept = np.ones(count, dtype=np.bool_)
        if time is not None:
            moments = self._cells(time, schema.moments[time], layout, schema)
            starts = moments.to_numpy().astype("datetime64[s]").astype(np.int64)
            kept &= moments.notna().to_numpy()
            if schema.misfit == "refuse" and time not in self.lenient and not kept.all():
                remedy = "fill them; misfit: coerce leaves these series out"
                raise DataError("has empty cells", field=time, remedy=remedy)
        unit = None
        if schema.unit.id is not None:
            unit = cells.unit_ids(
                self._raw(schema.unit.id, layout), schema.unit.id, misfit=self._misfit(schema.unit.id, schema)
            )
            kept &= unit.notna().to_numpy()
            unit = cells.kept_of(unit, kept)
        values = self._values(schema, layout, count)
        if not kept.all():
            values, starts = values[kept], None if starts is None else starts[kept]
        return held(values, cells.kept_of(frame, kept), unit, starts, schema)

    @override
    def cell_tables(self, schema: SeriesSchema) -> Iterator[CellTable]:
        layout = self._layout(schema)
        channels = pd.DataFrame(dict(self._raw_values(schema, layout, int(np.prod(layout.lead)))))
        columns = {name: maybe_empty(schema.columns[name]) for name in schema.channels}
        yield CellTable(columns, open_table(channels), each=schema.length)
        time = self._time(schema, layout)
        needed = {} if time is None else {time: schema.moments[time]}
        beside_ = {**{name: schema.attributes[name] for name in self._steering(schema)}, **needed}
        if not beside_:
            return
        frame = pd.DataFrame({name: self._raw(name, layout) for name in beside_})
        yield CellTable(beside_, open_table(frame, schema.written), needed=needed)

    # -- where things stand --------------------------------------------------------------------------------------

    def _layout(self, schema: SeriesSchema) -> _Layout:
        found = {}
        for split in self._splits(schema):
            each = tuple(f"{name}_{split}" if split else name for name in schema.channels)
            together = named(self._headers, VALUE_NAMES, split, before=False).get(split, [])
            if all(name in self._headers for name in each):
                found[split] = each
            elif together:
                found[split] = (only(together, self.name),)
        if not found:
            shown = " or ".join([*list(schema.channels)[:1], VALUES])
            remedy = f"name the array of values {shown}" if self._split is None else "name a split that is there"
            raise DataError("holds no array of series", field=self.name, remedy=remedy)
        if len(found) > 1:
            raise several(self.name, found, "series")
        ((split, values),) = found.items()
        lead = {self._lead(name, schema, alone=len(values) == len(schema.channels)) for name in values}
        if len(lead) > 1:
            raise DataError("have channels of different shapes", field=self.name, remedy="give all the same series")
        return _Layout(split=split, values=values, lead=lead.pop())

    def _splits(self, schema: SeriesSchema) -> list[str]:
        if self._split is not None:
            return [self._split]
        behind = [name.partition(f"{channel}_") for channel in schema.channels for name in self._headers]
        return list(
            dict.fromkeys(
                ["", *named(self._headers, VALUE_NAMES, None, before=False), *(b for a, s, b in behind if s and not a)]
            )
        )

    def _lead(self, name: str, schema: SeriesSchema, *, alone: bool) -> tuple[int, ...]:
        """Return the axes before the steps of an array of values."""
        header, length, channels = self._headers[name], schema.length, len(schema.channels)
        self.refuse_form(name)
        shape = header.shape
        if alone and len(shape) > 2 and shape[-1] == 1 and channels == 1:
            shape = shape[:-1]
        ends = (length,) if alone else (length, channels)
        if header.dtype.kind not in ("buifOU" if schema.states else "buifO") or len(shape) - len(ends) not in (1, 2):
            form = ", ".join(["series", "length", *(["channels"] if channels > 1 else [])])
            raise DataError("is no array of series", field=name, remedy=f"give numbers of shape ({form})")
        if shape[-len(ends) :] != ends:
            wanted = " x ".join(map(str, ends))
            remedy = "fix series.length and channels, or give the array that the schema describes"
            raise DataError(f"does not hold series of {wanted} numbers", field=name, remedy=remedy)
        return shape[: -len(ends)]

    def _found(self, name: str, layout: _Layout) -> str | None:
        return next((each for each in beside(name, layout.split) if each in self._headers), None)

    def _time(self, schema: SeriesSchema, layout: _Layout) -> str | None:
        time = schema.series.time
        return time if time is not None and self._found(time, layout) is not None else None

    def _steering(self, schema: SeriesSchema) -> list[str]:
        """Return the attributes that are read: those that follow from the time only where that is not known.

        How many steps a series has is counted where no array says it.
        """
        known = self._time(schema, self._layout(schema)) is not None
        return [
            name
            for name, column in schema.attributes.items()
            if not (known and column.from_moments)
            and not (column.from_length and self._found(name, self._layout(schema)) is None)
        ]

    def _beside(self, schema: SeriesSchema, layout: _Layout) -> list[str]:
        named_ = (self._time(schema, layout), schema.unit.id)
        return [*self._steering(schema), *(name for name in named_ if name is not None)]

    # -- what stands there ---------------------------------------------------------------------------------------

    def _raw_values(self, schema: SeriesSchema, layout: _Layout, count: int) -> Iterator[tuple[str, pd.Series[Any]]]:
        """Yield each channel's cells, series after series."""
        arrays = [np.asarray(self.array(name)) for name in layout.values]
        length, channels = schema.length, len(schema.channels)
        parts = [*arrays[0].reshape(count, length, channels).transpose(2, 0, 1)] if len(arrays) == 1 else arrays
        for name, part in zip(schema.channels, parts, strict=True):
            named = self._headers.get(f"{STATES}{name}")
            if named is not None and len(layout.values) == 1 and name in schema.states:
                part = _of_places(part, np.asarray(self.array(f"{STATES}{name}")))
            yield name, cells.raw_column(part.reshape(-1))

    def _values(self, schema: SeriesSchema, layout: _Layout, count: int) -> Values:
        values, columns = np.empty((count, schema.length, len(schema.channels))), schema.columns
        for number, (name, raw) in enumerate(self._raw_values(schema, layout, count)):
            own = readable(columns[name], schema, standing=self.standing)
            column = cells.canonical(raw, own, name, self._misfit(name, schema))
            values[:, :, number] = numbers_of(column).reshape(count, schema.length)
        return values

    def _cells(self, name: str, column: Column, layout: _Layout, schema: SeriesSchema) -> pd.Series[Any]:
        raw = self._raw(name, layout)
        if schema.written is not None:
            raw = rewritten(raw, rule_of(column, schema.written))
        return cells.canonical(raw, column, name, self._misfit(name, schema))

    def _raw(self, name: str, layout: _Layout) -> pd.Series[Any]:
        """Return an array beside the values, one cell a series."""
        raw = np.asarray(self.array(self._found(name, layout) or name))
        if raw.shape != layout.lead and raw.size != np.prod(layout.lead):
            rows, columns = layout.lead
            raw = np.repeat(raw, columns) if len(raw) == rows else np.tile(raw, rows)
        return cells.raw_column(raw.reshape(-1))


def _of_places(places: Any, values: Any) -> Any:
    """Return states by their places in a list; None where there is none."""
    found = np.asarray(places, dtype=np.float64)
    known = np.isin(found, np.arange(len(values)))
    with_none = np.array([*values.tolist(), None], dtype=object)
    return with_none[np.where(known, found, len(values)).astype(np.int64)]


def _fits(shape: tuple[int, ...], lead: tuple[int, ...]) -> bool:
    """Whether an array has a cell for each series, or for each row or column of series where those differ."""
    if shape in (lead, (*lead, 1)):
        return True
    return len(lead) == 2 and lead[0] != lead[1] and shape in ((lead[0],), (lead[1],))


class MappingSource(ArraySource):
    """Arrays in memory."""

    def __init__(self, name: str, arrays: Mapping[str, Any]) -> None:
        try:
            self._arrays = {key: npz.in_memory(values) for key, values in arrays.items()}
        except (TypeError, ValueError, AttributeError):  # the message of the original could show a value
            raise DataError("holds what is no array", field=name, remedy="give arrays of numbers or texts") from None
        shapes = {key: Header(shape=values.shape, dtype=values.dtype) for key, values in self._arrays.items()}
        super().__init__(name, shapes, None)

    @override
    def array(self, name: str) -> Any:
        return self._arrays[name]


class NpzSource(ArraySource):
    """Arrays in an NPZ file."""

    def __init__(self, path: Path, split: str | None) -> None:
        self._path = path
        super().__init__(path.name, npz.headers(path), split)

    @override
    def refuse_form(self, name: str) -> None:
        npz.refuse_objects(name, self._headers[name])

    @override
    def array(self, name: str) -> Any:
        return npz.array(self._path, name)
