"""An axis of candidates: a record counts for the nearest one of its class.

Private Evolution (Lin et al. 2024) asks for such votes. Features are whole numbers, and so are squared distances, which
float64 holds exactly: a vote follows from its own record to the last digit, wherever the record lies among others.

==========================================  =======================================================
edge case                                   what happens
==========================================  =======================================================
a feature that is not finite                counts as zero
a feature beyond the largest                counts as the largest
candidates at the same distance             the first has the vote
a class without a candidate                 refused before anything is counted
==========================================  =======================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.support.arrays import Ints

LARGEST = 1024
"""Bound on a feature's size: records hold them as float16, which has every integer up to 2048."""

_MOST_FEATURES = 2**30
"""Squared distances of so many features, each at most (2 · 1024)², stay below 2^53."""

_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class NearestCandidate:
    """The candidates of all classes, each with its features.

    A compact record has the same features, then its class as a one-hot block.

    Attributes:
        features: ``(C, D)`` whole numbers from -1024 to 1024.
        classes: ``(C,)`` the class of each candidate, from 0 on.
        kinds: Number of classes; 0: records have none, and all candidates are of class 0.
    """

    features: Ints
    classes: Ints
    kinds: int

    @property
    def size(self) -> int:
        """Number of candidates."""
        return len(self.features)

    def of(self, records: npt.NDArray[Any]) -> Ints:
        """Return the candidate ``(N,)`` that each record votes for, from that record alone."""
        width = self.features.shape[1]
        own = records[:, width:].argmax(axis=1) if self.kinds else np.zeros(len(records), dtype=np.int64)
        found = np.zeros(len(records), dtype=np.int64)
        for kind in range(max(1, self.kinds)):
            candidates, voters = np.flatnonzero(self.classes == kind), np.flatnonzero(own == kind)
            there = self.features[candidates].astype(np.float64)
            squares = np.square(there).sum(axis=1)
            for first in range(0, len(voters), _ROWS):
                rows = voters[first : first + _ROWS]
                distances = squares - 2 * _whole(records[rows, :width]) @ there.T
                found[rows] = candidates[distances.argmin(axis=1)]
        return found

    def refuse_unfit(self, parts: int) -> None:
        """Refuse candidates of other features than the records', beyond the largest, or a class without one."""
        if self.features.ndim != 2 or not 0 < self.features.shape[1] == parts - self.kinds <= _MOST_FEATURES:
            raise SettingError("are not those of the records", field="features", remedy="give each candidate as many")
        if not np.issubdtype(self.features.dtype, np.integer) or np.abs(self.features).max(initial=0) > LARGEST:
            remedy = "round them, and bound them"
            raise SettingError(f"must be whole numbers up to {LARGEST}", field="features", remedy=remedy)
        if self.classes.shape != self.features.shape[:1] or {*self.classes.tolist()} != {*range(max(1, self.kinds))}:
            raise SettingError("must be one a candidate, and have one each", field="classes", remedy="add candidates")


def _whole(features: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return features as whole numbers within the bound."""
    finite = np.nan_to_num(features.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.rint(finite).clip(-LARGEST, LARGEST)
