"""ENCODE: time series as places among public cells, step by step; and back.

Each channel's values are cut into ordered cells. A place is a cell's number and, behind the point, where in the cell
the value stands, so that 12.25 is a quarter into cell 12. The lower bound is a cell of its own, and so is zero where a
channel is often zero; of a channel with few values each value is one. A step without a value has the number behind the
last cell, and one after a series' end the number behind that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.series import Series
from doublure.encode.attributes import SeriesRows
from doublure.encode.numeric import Floats
from doublure.encode.series import channel_column
from doublure.errors import InputError
from doublure.schema import Schema
from doublure.schema.columns import NumberColumn
from doublure.schema.series import SeriesSchema
from doublure.support.tensors import Array, as_tensor

_MIDDLE = 0.5
_LAST_PLACE = 1 - 2.0**-10
"""The largest place within a cell, so that float32 does not round it into the next."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """A channel's cells, in order; cell k holds what is above the end of cell k - 1 and not above its own.

    Attributes:
        column: The channel's facts.
        ends: ``(cells,)`` increasing, each a value of the grid.
        single: ``(cells,)`` whether a cell holds one value alone.
    """

    column: NumberColumn
    ends: Floats
    single: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @classmethod
    def of(cls, column: NumberColumn, *, most: int, curve: float) -> Cells:
        """Return at most so many cells.

        Args:
            column: Its bounds are known.
            most: Cells.
            curve: Of a channel whose lower bound is zero, cells are of equal width in this power of the value.
        """
        (lower, upper), unit = column.known_grid, column.unit
        if unit and round((upper - lower) / unit) < most:
            ends: Floats = column.snap(lower + np.arange(round((upper - lower) / unit) + 1, dtype=np.float64) * unit)
            return cls(column=column, ends=ends, single=np.ones(len(ends), dtype=bool))
        zero = column.zero_inflated and lower < 0 <= upper
        shares = np.linspace(0, 1, most - 2 * zero)
        shares = shares ** (1 / curve) if lower == 0 else shares
        ends, alone = column.snap(lower + shares * (upper - lower)), [lower]
        if zero:
            below = -unit if unit else np.nextafter(0.0, -1.0)
            ends, alone = column.snap(np.append(ends, [below, 0.0])), [lower, 0.0]
        ends = np.unique(ends)
        return cls(column=column, ends=ends, single=np.isin(ends, column.snap(np.array(alone))))

    def __len__(self) -> int:
        return len(self.ends)

    def places(self, values: Floats) -> Floats:
        """Return each value's place; behind the last cell where there is none and the channel may have none."""
        known = ~np.isnan(values)
        snapped = self.column.snap(np.where(known, values, self.column.known_grid[0]))
        cell = np.minimum(np.searchsorted(self.ends, snapped), len(self) - 1)
        begin, width = self._begun(cell), self._width(cell)
        within = np.clip((snapped - begin - self.column.unit / 2) / np.where(width > 0, width, 1), 0, _LAST_PLACE)
        found: Floats = cell + np.where(self.single[cell], _MIDDLE, within)
        return np.where(known, found, len(self) + _MIDDLE) if self.column.may_be_missing else found

    def values(self, places: Floats) -> Floats:
        """Return values of the grid, NaN behind the last cell."""
        cell = np.clip(np.floor(places), 0, len(self) - 1).astype(np.int64)
        begin, width = self._begun(cell), self._width(cell)
        inside = begin + (places - cell) * width + self.column.unit / 2
        lowest = begin + self.column.unit if self.column.unit else begin
        found = np.where(self.single[cell], self.ends[cell], np.clip(inside, lowest, self.ends[cell]))
        found = self.column.snap(found)
        return np.where(places >= len(self), np.nan, self.column.drawn(found))

    def _begun(self, cell: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
        return np.where(cell > 0, self.ends[np.maximum(cell - 1, 0)], self.column.known_grid[0])

    def _width(self, cell: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
        found: Floats = self.ends[cell] - self._begun(cell)
        return found


class SeriesPlaces(SeriesRows):
    """The two-way mapping between series and ``(N, width)`` places, attributes as one-hot blocks behind them.

    Args:
        schema: Every fact known.
        bins: The most cells of a channel.
        curve: See :meth:`Cells.of`.

    Attributes:
        cells: Each channel's.
        body_shape: ``(channels, length)``.
        width: D + K, the length of a row.
        condition_width: K, the attributes' values together.
        sizes: How many codes each channel has: its cells, then missing, if it can be, then what is after the end.
        may_be_missing: Of each channel.
        ends: Whether series may end before the last step.
        shortest: How many steps each has at least.
        condition_sizes: Attribute -> how many values it has, in order.
    """

    def __init__(self, schema: Schema, *, bins: int = 256, curve: float = 1.0) -> None:
        schema = SeriesSchema.of(schema)
        super().__init__(schema, len(schema.channels))
        self.cells = [Cells.of(channel_column(schema, name), most=bins, curve=curve) for name in schema.channels]
        self.may_be_missing = [own.column.may_be_missing for own in self.cells]
        self.ends = schema.ends_at is not None
        self.shortest = schema.length
        if schema.ends_at is not None:
            self.shortest = int(schema.attributes[schema.ends_at].ends[0])  # type: ignore[index]
        self.sizes = [
            len(own) + missing + self.ends for own, missing in zip(self.cells, self.may_be_missing, strict=True)
        ]

    @override
    def compact(self, series: Series) -> Array:
        places = [own.places(series.channel(name)) for own, name in zip(self.cells, self.schema.channels, strict=True)]
        if self.ends:
            inside = series.inside
            places = [np.where(inside, own, size - _MIDDLE) for own, size in zip(places, self.sizes, strict=True)]
        return np.concatenate([*places, self._attributes.codes(series.attributes)], axis=1).astype(np.float32)

    @override
    def expand(self, compact: Tensor) -> Tensor:
        return torch.cat([compact[:, : self._flat], self._attributes.one_hot(compact[:, self._flat :])], dim=1)

    @override
    def uniform_bodies(self, numbers: Array, rng: np.random.Generator) -> Array:
        return rng.integers(0, np.repeat(self.sizes, self.schema.length), numbers.shape)

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Series:
        """Return series of the schema's own values.

        Args:
            rows: ``(N, width)``.
            rng: Draws numbers of attributes within their groups; of values nothing is drawn.

        Raises:
            InputError: A place is none of its channel's.
        """
        body, condition = self.split(as_tensor(rows).detach().to("cpu"))
        places = body.numpy().astype(np.float64)
        decoded = np.empty((len(body), self.schema.length, len(self.sizes)))
        for channel, (own, size) in enumerate(zip(self.cells, self.sizes, strict=True)):
            found = places[:, channel]
            if found.size and not (found.min() >= 0 and found.max() < size):
                raise InputError("makes places that no channel has", field="generator", remedy="fit again")
            decoded[:, :, channel] = own.values(found)
        return self.made(decoded, condition, rng)
