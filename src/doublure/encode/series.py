"""ENCODE: time series under a resolved schema -> planes over time, and back.

A series is a stack of planes ``(P, length)``, channel by channel, then its attributes as one-hot condition. A channel
is one plane of places between its bounds, in [-1, 1]. Where a step may be missing, or is often exactly zero, planes of
states stand before it, a softmax over (value, zero, missing) at each step: the mask. A step without a value has place
0, so that values behind a mask do not tell real from generated.

A series that ends before the others goes on with its last value, and what is made of it is cut where it ends.

``curve`` bends the places of channels that cannot be negative: a step takes its share of the bounds to that power, so
that with 0.5 the small readings, which are most of a meter's, are spread over more of the plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from doublure.data.series.records import Series
from doublure.encode.attributes import SeriesRows
from doublure.encode.numeric import Floats, MinMaxEncoding
from doublure.errors import InputError
from doublure.schema import Schema
from doublure.schema.columns import NumberColumn
from doublure.schema.series import SeriesSchema
from doublure.support.tensors import Array, as_tensor


@dataclass(frozen=True, kw_only=True)
class Planes:
    """One channel's planes: its states, if a step has a choice, then its places.

    Attributes:
        channel: The channel.
        first: The first of its planes.
        states: How many planes of states: value, zero, missing as far as they can be; 0 for none.
    """

    channel: str
    first: int
    states: int

    @property
    def place(self) -> int:
        """The plane of places, the channel's last."""
        return self.first + self.states


class SeriesEncoder(SeriesRows):
    """The two-way mapping between series and ``(N, width)`` float32 tensors.

    Args:
        schema: Every fact known.
        curve: The power that shares of the bounds of a channel that cannot be negative are taken to; 1 is none.

    Attributes:
        planes: The channels' planes, in order.
        body_shape: ``(P, length)``.
        width: D + K, the length of an expanded row.
        condition_width: K, the attributes' values together.
    """

    def __init__(self, schema: Schema, *, curve: float = 1.0) -> None:
        schema = SeriesSchema.of(schema)
        self.planes = planes_of(schema)
        super().__init__(schema, self.planes[-1].place + 1)
        self._curve = curve
        self._numbers = {name: MinMaxEncoding(column=channel_column(schema, name)) for name in schema.channels}
        self._held = len(schema.channels) * schema.length
        self._codes = sum(planes.states > 0 for planes in self.planes) * schema.length

    # -- encoding ------------------------------------------------------------------------------------------------

    @override
    def compact(self, series: Series) -> Array:
        places, states = [], []
        for planes in self.planes:
            number = self._numbers[planes.channel]
            parts = number.coded(series.held(planes.channel).reshape(-1))
            shape = (len(series), self.schema.length)
            places.append(self._bent(parts[-1], number, parts[0] if planes.states else None).reshape(shape))
            states += [parts[0].reshape(shape)] if planes.states else []
        codes = self._attributes.codes(series.attributes)
        return np.concatenate([*places, *states, codes], axis=1).astype(np.float32)

    @override
    def expand(self, compact: Tensor) -> Tensor:
        length = self.schema.length
        places = torch.split(compact[:, : self._held], length, dim=1)
        states = iter(torch.split(compact[:, self._held : self._held + self._codes].long(), length, dim=1))
        body = torch.zeros(len(compact), *self.body_shape, device=compact.device)
        for planes, place in zip(self.planes, places, strict=True):
            if planes.states:
                body[:, planes.first : planes.place].scatter_(1, next(states)[:, None], 1.0)
            body[:, planes.place] = place
        attributes = self._attributes.one_hot(compact[:, self._held + self._codes :])
        return torch.cat([body.flatten(1), attributes], dim=1)

    def _bent(self, places: Floats, number: MinMaxEncoding, states: Floats | None) -> Floats:
        """Return places in [-1, 1] with their shares of the bounds taken to the power of the curve."""
        if not self._bends(number):
            return places
        bent = 2 * ((places + 1) / 2) ** self._curve - 1
        return bent if states is None else np.where(states == 0, bent, 0.0)

    def _bends(self, number: MinMaxEncoding) -> bool:
        return self._curve != 1 and number.column.known_grid[0] >= 0

    @override
    def uniform_bodies(self, numbers: Array, rng: np.random.Generator) -> Array:
        body = numbers.reshape(len(numbers), *self.body_shape)
        for planes in self.planes:
            body[:, planes.first : planes.place] = 1.0
        return body.reshape(len(numbers), -1)

    # -- decoding ------------------------------------------------------------------------------------------------

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> Series:
        """Return series of the schema's own values.

        Args:
            rows: ``(N, width)``; planes of states hold probabilities.
            rng: Draws states. One draw serves all steps of a channel of a series, so that what is missing is missing
                for a while, and each step as often as it should be. Without it the likeliest state is taken.

        Raises:
            InputError: A value is not finite.
        """
        values = as_tensor(rows).detach().to("cpu")
        if not bool(torch.isfinite(values).all()):
            raise InputError("has values that are not finite", field="generator", remedy="fit with smaller steps")
        body, condition = self.split(values)
        decoded = np.empty((len(values), self.schema.length, len(self.planes)))
        for place, planes in enumerate(self.planes):
            number = self._numbers[planes.channel]
            bent = np.clip(body[:, planes.place].numpy().astype(np.float64), -1, 1)
            straight = 2 * ((bent + 1) / 2) ** (1 / self._curve) - 1 if self._bends(number) else bent
            states = [_states(body[:, planes.first : planes.place], rng).reshape(-1)] if planes.states else []
            numbers = number.numbers([*states, straight.reshape(-1)], rng)
            decoded[:, :, place] = number.column.drawn(numbers).reshape(straight.shape)
        return self.made(decoded, condition, rng)


def planes_of(schema: SeriesSchema) -> tuple[Planes, ...]:
    """Return the channels' planes, as far as what may be missing is known: bought facts count as missing."""
    found, first = [], 0
    for name, channel in schema.channels.items():
        extra = int(channel.zero_apart) + int(schema.may_be_missing(name))
        planes = Planes(channel=name, first=first, states=extra + 1 if extra else 0)
        found.append(planes)
        first = planes.place + 1
    return tuple(found)


def channel_column(schema: SeriesSchema, name: str) -> NumberColumn:
    """Return a channel's facts; no step is missing where gaps were refused or left out."""
    column: NumberColumn = schema.channels[name]
    if column.may_be_missing and not schema.may_be_missing(name):
        column = column.model_copy(update={"missing": False})
    return column


def _states(chances: Tensor, rng: np.random.Generator | None) -> Floats:
    """Return one state ``(N, length)`` a step from chances ``(N, states, length)``."""
    if rng is None:
        likeliest: Floats = chances.argmax(dim=1).numpy().astype(np.float64)
        return likeliest
    cumulative = np.cumsum(chances.clamp(min=0).numpy().astype(np.float64), axis=1)
    threshold = rng.random(len(chances))[:, None, None] * cumulative[:, -1:]
    drawn: Floats = (cumulative[:, :-1] <= threshold).sum(axis=1).astype(np.float64)
    return drawn
