"""ENCODE: time series as codes of public bins, step by step, with the bin of each series' level; and back.

What can be counted of a series: at each step of each channel the bin of its value, as a table's number has one, and for
each channel its level, the mean place between the bounds over all steps that have a value. A generated series is codes
alone; its level follows from them.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.series import Series
from doublure.encode.attributes import SeriesRows
from doublure.encode.numeric import BinnedEncoding, Floats
from doublure.encode.series import channel_column
from doublure.errors import InputError
from doublure.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.support.tensors import Array, as_tensor

LEVELS = 64
"""Into how many public bins a series' level falls."""


class SeriesCodes(SeriesRows):
    """The two-way mapping between series and ``(N, width)`` codes, attributes as one-hot blocks behind them.

    Args:
        schema: Every fact known.
        bins: The most bins a channel is cut into.
        curve: Bins of channels that cannot be negative are of equal width in this power of the share of the bounds.

    Attributes:
        body_shape: ``(channels, length)``.
        width: D + K, the length of a row.
        condition_width: K, the attributes' values together.
        sizes: How many codes each channel has: its bins, then zero, then missing, as far as they can be.
        states: How many of them are no bins.
        condition_sizes: Attribute -> how many values it has, in order.
    """

    def __init__(self, schema: Schema, *, bins: int = 128, curve: float = 1.0) -> None:
        schema = SeriesSchema.of(schema)
        super().__init__(schema, len(schema.channels))
        self._curve = curve
        self._numbers = [_binned(schema, name, bins, curve) for name in schema.channels]
        self.sizes = [number.parts[0].size for number in self._numbers]
        self.states = [number.parts[0].states for number in self._numbers]

    @override
    def compact(self, series: Series) -> Array:
        codes, levels = [], []
        for number, name in zip(self._numbers, self.schema.channels, strict=True):
            values = series.channel(name)
            codes.append(number.coded(values.reshape(-1))[0].reshape(values.shape))
            levels.append(self._level(number, values)[:, None])
        return np.concatenate([*codes, *levels, self._attributes.codes(series.attributes)], axis=1).astype(np.float32)

    @override
    def expand(self, compact: Tensor) -> Tensor:
        levels = len(self.sizes)
        return torch.cat([compact[:, : self._flat], self._attributes.one_hot(compact[:, self._flat + levels :])], dim=1)

    @override
    def uniform_bodies(self, numbers: Array, rng: np.random.Generator) -> Array:
        return rng.integers(0, np.repeat(self.sizes, self.schema.length), numbers.shape)

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Series:
        """Return series of the schema's own values.

        Args:
            rows: ``(N, width)``.
            rng: Draws a value within each bin; without it the middle is taken.

        Raises:
            InputError: A code is none of its channel's.
        """
        body, condition = self.split(as_tensor(rows).detach().to("cpu"))
        decoded = np.empty((len(body), self.schema.length, len(self.sizes)))
        for place, (number, size) in enumerate(zip(self._numbers, self.sizes, strict=True)):
            codes = body[:, place].numpy().astype(np.float64)
            if codes.size and not (codes.min() >= 0 and codes.max() <= size - 1):
                raise InputError("makes codes that no channel has", field="generator", remedy="fit again")
            decoded[:, :, place] = number.column.drawn(number.numbers([codes.reshape(-1)], rng)).reshape(codes.shape)
        return self.made(decoded, condition, rng)

    def _level(self, number: BinnedEncoding, values: Floats) -> Floats:
        """Return ``(N,)`` the bin of the mean place between the bounds; 0 for a series without any value."""
        column, (lower, upper) = number.column, number.column.known_grid
        known = ~np.isnan(values)
        places = (column.snap(np.where(known, values, lower)) - lower) / max(upper - lower, column.unit)
        if lower >= 0:
            places = places**self._curve
        means = np.where(known, places, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        bins: Floats = np.minimum(np.floor(means * LEVELS), LEVELS - 1)
        return bins


def _binned(schema: SeriesSchema, name: str, bins: int, curve: float) -> BinnedEncoding:
    column = channel_column(schema, name)
    return BinnedEncoding(column=column, edges=column.bins(bins, curve=curve).edges)
