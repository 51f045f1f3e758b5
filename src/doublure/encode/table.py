"""ENCODE: rows of a table under a resolved schema -> tensors, and back.

A row is a vector of blocks, in the schema's order with the conditions last::

    [ softmax | tanh | softmax | … ][ condition | condition ]
      body, (N, width - condition_width)

Columns that an ``equal`` constraint derives, and ids, are not encoded; decoding fills them in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from doublure.encode import conditions, constraints
from doublure.encode.columns import ColumnEncoding, Floats, Numerics, encoding
from doublure.errors import InputError
from doublure.schema import ResolvedSchema
from doublure.schema.columns import IdColumn


@dataclass(frozen=True, kw_only=True)
class Block:
    """One part of the row vector: columns ``start`` to ``start + size`` of the expanded row."""

    column: str
    kind: Literal["softmax", "tanh"]
    start: int
    size: int

    @property
    def place(self) -> slice:
        """The block's columns."""
        return slice(self.start, self.start + self.size)


class TableEncoder:
    """The two-way mapping between a table and ``(N, width)`` float32 tensors.

    Args:
        schema: Every fact known.
        numerics: Numbers as public bins or as scaled values.
        bins: The most bins a number is cut into.

    Attributes:
        blocks: The row's blocks, in order.
        width: D, the length of an expanded row.
        condition_width: K, the length of its last part, the conditions.
    """

    def __init__(self, schema: ResolvedSchema, *, numerics: Numerics = "bins", bins: int = 32) -> None:
        self.schema = schema
        steering = schema.with_role("condition")
        modelled = [n for n, c in schema.columns.items() if not isinstance(c, IdColumn) and n not in schema.derived]
        self.columns = [*(n for n in modelled if n not in steering), *(n for n in modelled if n in steering)]
        self._encodings = {name: encoding(schema.columns[name], numerics, bins) for name in self.columns}
        self.blocks = tuple(_blocks(self._encodings))
        self.width = sum(block.size for block in self.blocks)
        self.condition_blocks = tuple(block for block in self.blocks if block.column in steering)
        self.condition_width = sum(block.size for block in self.condition_blocks)
        self.body_blocks = self.blocks[: len(self.blocks) - len(self.condition_blocks)]

    @property
    def body_shape(self) -> tuple[int, ...]:
        """``(D,)``: the row without its conditions."""
        return (self.width - self.condition_width,)

    # -- encoding ------------------------------------------------------------------------------------------------

    def compact(self, frame: pd.DataFrame) -> Tensor:
        """Return ``(N, P)`` float32: one code or scalar a part. Small enough to keep the whole data set in."""
        compact = np.empty((len(frame), len(self.blocks)), dtype=np.float32)
        place = 0
        for name in self.columns:
            for values in self._encodings[name].compact(frame[name]):
                compact[:, place] = values
                place += 1
        return torch.from_numpy(compact)

    def expand(self, compact: Tensor) -> Tensor:
        """Return ``(B, width)`` float32: codes as one-hot blocks, scalars as they are."""
        rows = torch.zeros(len(compact), self.width, device=compact.device)
        softmax = [number for number, block in enumerate(self.blocks) if block.kind == "softmax"]
        if softmax:
            starts = torch.tensor([float(self.blocks[number].start) for number in softmax], device=compact.device)
            rows.scatter_(1, (compact[:, softmax] + starts).long(), 1.0)
        for number, block in enumerate(self.blocks):
            if block.kind == "tanh":
                rows[:, block.start] = compact[:, number]
        return rows

    def encode(self, frame: pd.DataFrame) -> Tensor:
        """Return ``(N, width)`` float32."""
        return self.expand(self.compact(frame))

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the body ``(B, D - K)`` and the conditions ``(B, K)``, None where there are none."""
        body = self.width - self.condition_width
        return (rows, None) if self.condition_width == 0 else (rows[:, :body], rows[:, body:])

    # -- decoding ------------------------------------------------------------------------------------------------

    def decode(self, rows: Tensor, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Return rows of the schema's own dtypes, every constraint kept.

        Args:
            rows: ``(N, width)``; softmax blocks hold probabilities.
            rng: Draws a value from each softmax block and a number within its bin; without it the likeliest value
                and the middle of the bin are taken.

        Raises:
            InputError: A value is not finite.
        """
        values = rows.detach().to("cpu")
        by_column: dict[str, list[Floats]] = {name: [] for name in self.columns}
        for block in self.blocks:
            cells = values[:, block.place]
            by_column[block.column].append(_scalar(cells) if block.kind == "tanh" else _draw(cells, rng))
        decoded = {name: self._encodings[name].restore(by_column[name], rng) for name in self.columns}
        numbered = pd.Series(np.arange(1, len(values) + 1, dtype=np.int64))  # ids; derived columns follow below
        frame = pd.DataFrame({name: decoded.get(name, numbered) for name in self.schema.columns})
        return constraints.keep(frame, self.schema)

    # -- conditions ----------------------------------------------------------------------------------------------

    def condition_codes(self, given: Mapping[str, object]) -> dict[str, int]:
        """Return the code of each given value of a discrete column.

        Raises:
            SettingError: There is no such column, it has no list of values, or the value is not in its list.
        """
        return conditions.condition_codes(self.schema, given)

    def draw_conditions(self, n: int, rng: np.random.Generator, fixed: Mapping[str, int] | None = None) -> Tensor:
        """Return ``(n, K)`` one-hot conditions from public or bought shares, uniform where there are none."""
        fixed = fixed or {}
        drawn = np.zeros((n, self.condition_width), dtype=np.float32)
        start = self.width - self.condition_width
        for block in self.condition_blocks:
            column, asked = self.schema.columns[block.column], fixed.get(block.column)
            codes = conditions.drawn_codes(column, block.size, n, rng, asked)
            drawn[np.arange(n), block.start - start + codes] = 1.0
        return torch.from_numpy(drawn)


def _blocks(encodings: Mapping[str, ColumnEncoding]) -> Iterator[Block]:
    start = 0
    for name, column_encoding in encodings.items():
        for part in column_encoding.parts:
            yield Block(column=name, kind=part.kind, start=start, size=part.size)
            start += part.size


def _draw(probabilities: Tensor, rng: np.random.Generator | None) -> Floats:
    """Return one code a row: drawn from the row's probabilities, or the likeliest."""
    cumulative = probabilities.cumsum(dim=1, dtype=torch.float64)
    totals = _scalar(cumulative[:, -1:])
    if rng is None:
        codes = probabilities.argmax(dim=1)
    else:
        thresholds = torch.from_numpy(rng.random(len(totals)) * totals)
        codes = torch.searchsorted(cumulative, thresholds[:, None], right=True)[:, 0]
    drawn: Floats = codes.clamp(max=probabilities.shape[1] - 1).numpy().astype(np.float64)
    return drawn


def _scalar(cells: Tensor) -> Floats:
    values: Floats = cells[:, 0].numpy().astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("has values that are not finite", field="generator", remedy="fit again, with smaller steps")
    return values
