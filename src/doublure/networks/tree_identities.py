"""Identities between numbers that a fit has found, kept by every drawn row.

In each row one column is computed from the others. Where that leaves its bounds, or what is asked for, it stays at the
end, and the others move in turn. A row that cannot keep an identity so takes all columns that identities name from a
row that does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.networks.steering import IntRanges
from doublure.support.arrays import Ints, Mask

Floats: TypeAlias = npt.NDArray[Any]

_LARGEST = 2**62
"""Bound of a weighted sum, which 64 bits hold."""


def equation(names: Sequence[str], weights: Sequence[int]) -> str:
    """Return a weighted sum that is zero as an equation."""
    sides: dict[bool, list[str]] = {True: [], False: []}
    for name, weight in zip(names, weights, strict=True):
        sides[weight > 0].append(name if abs(weight) == 1 else f"{name} × {abs(weight)}")
    return f"{' + '.join(sides[True])} = {' + '.join(sides[False])}"


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptIdentities:
    """Weighted sums of a row's numbers that are zero, within a slack, where none of them is missing.

    Attributes:
        weights: ``(I, P)`` the weight of each part of a row; 0 for parts that an identity does not name.
        slack: ``(I,)`` the largest size of a sum that counts as zero.
        computed: ``(I,)`` the part that follows from the others; no earlier identity names it.
        ends: ``(P, 2)`` the first and the last number of each part; those beyond stand for missing.
    """

    weights: Ints
    slack: Ints
    computed: Ints
    ends: Ints

    def refuse_unfit(self, parts: int) -> None:
        """Refuse arrays that do not fit together.

        Raises:
            ValueError: They do not.
        """
        count = len(self.weights)
        shapes = self.weights.shape, self.slack.shape, self.computed.shape, self.ends.shape
        if shapes != ((count, parts), (count,), (count,), (parts, 2)) or (self.computed < 0).any():
            raise ValueError("identities")
        largest = np.abs(self.ends.astype(np.float64)).max(1)
        small = (np.abs(self.weights.astype(np.float64)) @ largest < _LARGEST).all()
        if not small or (self.computed >= parts).any() or not self.weights[np.arange(count), self.computed].all():
            raise ValueError("identities")

    def equations(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return each as an equation between the named parts of a row."""
        places = [np.flatnonzero(own).tolist() for own in self.weights]
        return tuple(
            equation([names[place] for place in at], own[at].tolist())
            for at, own in zip(places, self.weights, strict=True)
        )

    def broken(self, rows: Floats) -> Mask:
        """Return which rows ``(N,)`` break one."""
        found = np.zeros(len(rows), dtype=np.bool_)
        for number in range(len(self.weights)):
            found |= self._broken(number, rows)
        return found

    def keep(self, rows: Floats, asked: Mapping[int, IntRanges], rng: np.random.Generator) -> Floats:
        """Return rows ``(N, P)`` that keep all identities, if any row of theirs can.

        Args:
            rows: Drawn rows of whole numbers.
            asked: Part -> the numbers that are asked for; they stay within.
            rng: Public randomness, which chooses the rows that lend.
        """
        rows, drawn, settled = rows.copy(), rows, set[int]()
        for number, own in enumerate(self.weights):
            named = np.flatnonzero(own).tolist()
            first = int(self.computed[number])
            for part in [first, *(part for part in named if part != first and part not in settled)]:
                off = np.flatnonzero(self._broken(number, rows))
                low, high = self._range(part, asked)
                rows[off, part] = np.clip(self._solved(number, part, rows[off]), low, high)
            settled |= {*named}
        parts = np.flatnonzero((self.weights != 0).any(0))
        bad = self.broken(rows) | self._unasked(rows, asked)
        known = ~(drawn[:, parts] > self.ends[parts, 1]).any(1)  # a row with a missing cell keeps its own pattern
        good, needs = np.flatnonzero(~bad & known), np.flatnonzero(bad & known)
        if len(good) and len(needs):
            rows[np.ix_(needs, parts)] = rows[np.ix_(rng.choice(good, len(needs)), parts)]
        return rows

    # -- inside ------------------------------------------------------------------------------------------------------

    def _sum(self, number: int, rows: Floats) -> Ints:
        named = np.flatnonzero(self.weights[number])
        found: Ints = rows[:, named].astype(np.int64) @ self.weights[number, named]
        return found

    def _broken(self, number: int, rows: Floats) -> Mask:
        named = np.flatnonzero(self.weights[number])
        present = (rows[:, named] <= self.ends[named, 1]).all(1)
        found: Mask = present & (np.abs(self._sum(number, rows)) > self.slack[number])
        return found

    def _solved(self, number: int, part: int, rows: Floats) -> Ints:
        """Return the number of a part that is nearest to keeping an identity."""
        weight = self.weights[number, part]
        rest = self._sum(number, rows) - weight * rows[:, part].astype(np.int64)
        found: Ints = np.floor_divide(-2 * rest + weight, 2 * weight)  # the nearest whole number
        return found

    def _range(self, part: int, asked: Mapping[int, IntRanges]) -> tuple[int, int]:
        first, last = self.ends[part].tolist()
        own = [(max(low, first), min(high, last)) for low, high in asked.get(part, ()) if low <= last]
        return (min(low for low, _ in own), max(high for _, high in own)) if own else (first, last)

    def _unasked(self, rows: Floats, asked: Mapping[int, IntRanges]) -> Mask:
        found = np.zeros(len(rows), dtype=np.bool_)
        for part in np.flatnonzero((self.weights != 0).any(0)).tolist():
            if part in asked:
                inside = [(low <= rows[:, part]) & (rows[:, part] <= high) for low, high in asked[part]]
                found |= ~np.any(inside, axis=0)
        return found
