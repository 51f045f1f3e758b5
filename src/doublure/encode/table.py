"""ENCODE: rows of a table under a resolved schema -> numbers, and back.

A row is a vector of blocks, in the schema's order with the conditions last::

    [ softmax | tanh | softmax | … ][ condition | condition ]
      body, (N, width - condition_width)

Columns that ``equal`` or ``determines`` derives, and ids, are not encoded; decoding fills them in. Of two numbers that
an ``at_most`` constraint orders, the second is encoded as its gap above the first (:mod:`doublure.encode.differences`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.rules import keep
from doublure.encode.columns import BinnedEncoding, IntegerEncoding, MinMaxEncoding, Numerics, RowEncoding, encodings
from doublure.encode.differences import Gap, in_turn
from doublure.encode.encoder import Encoder
from doublure.encode.numeric import snapped_numbers
from doublure.encode.pairwise_swapping import EvenShares, pairwise_swapped
from doublure.encode.points import PointEncoding
from doublure.errors import InputError
from doublure.schema import ResolvedSchema
from doublure.schema.rules.rule_set import RuleSet
from doublure.support.arrays import Floats, Ints
from doublure.support.tensors import Array, as_array

if TYPE_CHECKING:
    from torch import Tensor

LENDERS = 1_000
"""Rows that are drawn together at least: enough to say what cells of a rule look like where it holds."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One part of the row vector: columns ``start`` to ``start + size`` of the expanded row.

    Attributes:
        column: The column of the table.
        kind: A softmax over codes, or one scalar in [-1, 1].
        start: Its first column of the row.
        size: How many columns of the row.
        states: How many of its last codes have no place in the order of the others (zero, missing).
    """

    column: str
    kind: Literal["softmax", "tanh", "steps"]
    start: int
    size: int
    states: int = 0

    @property
    def place(self) -> slice:
        """The block's columns."""
        return slice(self.start, self.start + self.size)


class TableEncoder(Encoder):
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

    schema: ResolvedSchema

    def __init__(self, schema: ResolvedSchema, *, numerics: Numerics = "bins", bins: int = 32) -> None:
        self.schema = schema
        steering = schema.with_role("condition")
        follow = {*schema.derived, *(schema.beside if numerics == "steps" else ())}
        modelled = [n for n, c in schema.columns.items() if c.modelled and n not in follow]
        self.columns = [*(n for n in modelled if n not in steering), *(n for n in modelled if n in steering)]
        self._rules = RuleSet(schema.constraints, schema.columns)
        self.fewest_rows = LENDERS if self._rules.movable else 0
        self._encodings = encodings(schema, self.columns, numerics, bins)
        gaps = {name: each for name, each in self._encodings.items() if isinstance(each, Gap)}
        self._turns = in_turn(self.columns, gaps)
        self._firsts = {gap.first for gap in gaps.values()}
        self.blocks = tuple(_blocks(self._encodings))
        self._places: dict[str, list[int]] = {name: [] for name in self.columns}
        for place, block in enumerate(self.blocks):
            self._places[block.column].append(place)
        self.width = sum(block.size for block in self.blocks)
        self.condition_blocks = tuple(block for block in self.blocks if block.column in steering)
        self.condition_sizes = {block.column: block.size for block in self.condition_blocks}
        self.condition_width = sum(self.condition_sizes.values())
        self.body_shape = (self.width - self.condition_width,)
        self.body_blocks = self.blocks[: len(self.blocks) - len(self.condition_blocks)]

    # -- encoding ------------------------------------------------------------------------------------------------

    @override
    def compact(self, frame: pd.DataFrame) -> Array:
        return self._compact(frame).astype(np.float32)

    def _compact(self, frame: pd.DataFrame) -> Floats:
        compact = np.empty((len(frame), len(self.blocks)))
        before: dict[str, Floats] = {}
        for name in self._turns:
            coded = self._coded(name, frame, before)
            for place, values in zip(self._places[name], coded, strict=True):
                compact[:, place] = values
        return compact

    def _coded(self, name: str, frame: pd.DataFrame, before: dict[str, Floats]) -> list[Floats]:
        """Return a column's codes, and note in ``before`` what later columns are measured from."""
        own, cells = self._encodings[name], frame[name]
        if isinstance(own, PointEncoding):
            return own.coded([column.kept_numbers(frame[each]) for each, column in own.columns.items()])
        if isinstance(own, Gap):
            numbers, base = snapped_numbers(own.own, own.own.kept_numbers(cells)), before[own.first]
            before[name] = own.reached(numbers, base)
            return own.coded(numbers, base)
        if name in self._firsts and isinstance(own, (BinnedEncoding, MinMaxEncoding, IntegerEncoding)):
            before[name] = snapped_numbers(own.column, own.column.kept_numbers(cells))
        return own.compact(cells)

    @override
    def expand(self, compact: Tensor) -> Tensor:
        rows = compact.new_zeros(len(compact), self.width)
        softmax = [number for number, block in enumerate(self.blocks) if block.kind == "softmax"]
        if softmax:
            starts = compact.new_tensor([float(self.blocks[number].start) for number in softmax])
            rows.scatter_(1, (compact[:, softmax] + starts).long(), 1.0)
        for number, block in enumerate(self.blocks):
            if block.kind == "tanh":
                rows[:, block.start] = compact[:, number]
        return rows

    @override
    def uniform(self, n: int, rng: np.random.Generator) -> Array:
        one_hot = np.repeat([block.kind == "softmax" for block in self.blocks], [block.size for block in self.blocks])
        return np.where(one_hot, 1.0, rng.uniform(-1, 1, (n, self.width))).astype(np.float32)

    # -- decoding ------------------------------------------------------------------------------------------------

    @override
    def decode(self, rows: Array | Tensor, rng: np.random.Generator | None = None) -> pd.DataFrame:
        """Return rows of the schema's own dtypes, every constraint kept.

        Args:
            rows: ``(N, width)``; softmax blocks hold probabilities.
            rng: Draws a value from each softmax block, evenly among rows with the same probabilities, and a number
                within its bin; without it the likeliest value and the middle of the bin are taken.

        Raises:
            InputError: A value is not finite.
        """
        return self._decoded(self._drawn(as_array(rows), rng), rng)

    def _decoded(self, parts: list[Floats], rng: np.random.Generator | None) -> pd.DataFrame:
        """Return rows from the code or scalar ``(N,)`` of each block."""
        by_column: dict[str, list[Floats]] = {name: [] for name in self.columns}
        for block, part in zip(self.blocks, parts, strict=True):
            by_column[block.column].append(part)
        before: dict[str, Floats] = {}
        decoded: dict[str, pd.Series[Any]] = {}
        for name in self._turns:
            decoded |= self._restored(name, by_column[name], rng, before)
        # Numbers stand in the place of all that is made anew; derived columns follow below.
        numbered = pd.Series(np.arange(1, len(parts[0]) + 1, dtype=np.int64))
        frame = pd.DataFrame({name: decoded.get(name, numbered) for name in self.schema.columns})
        return keep(frame, self.schema, rng, self._rules)

    def _drawn(self, values: Array, rng: np.random.Generator | None) -> list[Floats]:
        """Return the code or scalar of each block."""
        shares = None if rng is None else EvenShares(values, rng)
        soft = [block for block in self.blocks if block.kind == "softmax"]
        codes = [_draw(values[:, block.place], shares) for block in soft]
        if shares is not None and rng is not None and codes:
            chances = np.concatenate([values[:, block.place] for block in soft], axis=1)
            codes = list(
                pairwise_swapped(np.stack(codes, axis=1), chances, [block.size for block in soft], shares.kinds, rng).T
            )
        turn = iter(codes)
        return [
            _scalar(values[:, block.place]) if block.kind == "tanh" else next(turn).astype(np.float64)
            for block in self.blocks
        ]

    def _restored(
        self, name: str, values: list[Floats], rng: np.random.Generator | None, before: dict[str, Floats]
    ) -> dict[str, pd.Series[Any]]:
        """Return a column from its codes, or both of a point, and note what later columns are measured from."""
        own = self._encodings[name]
        if isinstance(own, PointEncoding):
            both = zip(own.columns.items(), own.numbers(values), strict=True)
            return {each: column.kept_cells(numbers) for (each, column), numbers in both}
        if isinstance(own, Gap):
            base = before[own.first]
            numbers = own.numbers(values, rng, base)
            before[name] = own.reached(numbers, base)
            return {name: own.own.kept_cells(numbers)}
        if name in self._firsts and isinstance(own, (BinnedEncoding, MinMaxEncoding, IntegerEncoding)):
            before[name] = own.numbers(values, rng)
            return {name: own.column.kept_cells(before[name])}
        return {name: own.restore(values, rng)}


def _blocks(encoded: Mapping[str, RowEncoding]) -> Iterator[Block]:
    start = 0
    for name, column_encoding in encoded.items():
        for part in column_encoding.parts:
            yield Block(column=name, kind=part.kind, start=start, size=part.size, states=part.states)
            start += part.size


def _draw(probabilities: Array, shares: EvenShares | None) -> Ints:
    """Return one code a row: drawn from the row's probabilities, or the likeliest."""
    cumulative = probabilities.cumsum(axis=1, dtype=np.float64)
    totals = _scalar(cumulative[:, -1:])
    if shares is None:
        codes = probabilities.argmax(axis=1)
    else:
        codes = (cumulative <= (shares.draw() * totals)[:, None]).sum(axis=1)
    drawn: Ints = np.minimum(codes, probabilities.shape[1] - 1)
    return drawn


def _scalar(cells: Array) -> Floats:
    values: Floats = cells[:, 0].astype(np.float64)
    if not np.isfinite(values).all():
        raise InputError("has values that are not finite", field="generator", remedy="fit again, with smaller steps")
    return values
