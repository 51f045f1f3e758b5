"""Individual privacy filters: each unit takes part until its own loss reaches a public bound.

A unit whose gradient has length l after clipping loses (l / σC)² of squared μ-Gaussian DP in a step on all units
(Feldman and Zrnic 2021; Koskela, Tobaben and Honkela 2023). Its filter adds up (l / C)², and has room for B: what B
steps at full length cost. Its bound in a step is the smaller of C and what is left, √(B − spent) C; then it is zero.

Guarantee: whatever the gradients, and however they follow from earlier outputs, T filtered steps cost every unit
together what B steps on all units cost, √B/σ-Gaussian DP (proof: ``docs/evidence/promise.md``). It needs that a unit's
lengths follow from its own records, secret draws of its own and earlier outputs: no other unit, and no private number.

Clipping to what is left, and not leaving out who would pass the bound, makes a unit's part continuous in what it has
spent: the last digits of a length, in which others' places in a batch show, move nothing but last digits.

=====================================  ==========================================================================
edge case                              what happens
=====================================  ==========================================================================
nothing left                           the unit adds exactly zero; its gradient's length is computed as ever, and only
                                       the weighted sum leaves it out (timing is not covered by the promise)
a gradient that is not finite          adds exactly zero, and costs nothing
charged, then cut off before a draw    stays charged
a resumed run that lacks what it kept  is refused: what units have spent cannot be computed again
=====================================  ==========================================================================

What a unit has spent is as private as its record: it is neither shown nor logged, is in no checkpoint, and steers
nothing but this sum. A run keeps it in its internal folder until it ends (mode 0600).
"""

from __future__ import annotations

from typing import NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from doublure.errors import RunFolderError

Spent = npt.NDArray[np.float64]

_ROUNDED_UP = 1 + 2.0**-29
"""More than what adding up ten million numbers in float64 rounds off: (1e7 − 1) · 2^-53 of the sum."""


class SpendingStore(Protocol):
    """Private storage of what units have spent."""

    def load(self, units: int) -> tuple[Spent, int] | None:
        """Return what each unit has spent ``(units,)`` and the steps charged so far, if an earlier session kept it."""

    def save(self, spent: Spent, steps: int) -> None:
        """Replace it durably."""


class UnitFilters:
    """The spending of each unit, and the share of C that is left to it.

    Args:
        steps: B, public: steps at full length that a unit pays for.
        store: Keeps it durably; None: nothing is kept, and a run cannot be resumed.
    """

    __slots__ = ("_charged", "_spent", "_store", "steps")

    def __init__(self, steps: int, store: SpendingStore | None = None) -> None:
        self.steps = steps
        self._store = store
        self._charged = 0
        self._spent: Spent | None = None

    def shares(self, units: int, step: int) -> Spent:
        """Return the share of C that bounds each unit in a step, ``(units,)`` in [0, 1]. Private.

        Args:
            units: Number of units.
            step: Counted from 0.

        Raises:
            RunFolderError: An earlier step was not charged here.
        """
        if self._spent is None:
            kept = None if self._store is None else self._store.load(units)
            self._spent, self._charged = (np.zeros(units), 0) if kept is None else kept
        if self._charged < step or len(self._spent) != units:
            remedy = "the run folder was edited or is damaged: bring it back as fit left it"
            raise RunFolderError("does not hold what units have spent so far", field="internal", remedy=remedy)
        left: Spent = np.sqrt(np.clip(self.steps - self._spent, 0.0, 1.0))
        return left

    def charge(self, lengths: Spent, step: int) -> None:
        """Charge each unit, durably, before its part is used.

        Args:
            lengths: ``(units,)`` over C, after clipping.
            step: Counted from 0.
        """
        if self._spent is None:
            raise TypeError("nothing was clipped to what is left")
        self._spent = self._spent + lengths**2 * _ROUNDED_UP
        self._charged = step + 1
        if self._store is not None:
            self._store.save(self._spent, self._charged)

    def __repr__(self) -> str:
        return f"UnitFilters(steps={self.steps})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("what units have spent is never copied or saved elsewhere")
