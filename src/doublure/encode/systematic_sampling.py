"""Numbers in [0, 1) that rows with the same probabilities share out evenly: systematic sampling (Madow 1949).

Drawn each for itself, a thousand rows of one kind would have some fifteen more or fewer of a value than was meant; that
is noise on top of the noise that privacy needs, and need not be. Each row by itself is distributed as before.
"""

from __future__ import annotations

import numpy as np

from doublure.encode.numeric import Floats

_BELOW_ONE = np.nextafter(1.0, 0.0)
_AT_ONCE = 4096


class EvenShares:
    """Draws for rows in groups; rows are of one group if all their numbers are the same.

    Args:
        rows: ``(N, D)``.
        rng: Where the draws come from.

    Attributes:
        kinds: ``(N,)`` which rows are of one group, from 0.
    """

    def __init__(self, rows: Floats, rng: np.random.Generator) -> None:
        self._rng = rng
        # One number a row stands for all of it. Two that differ and share it by chance share out their draws, no more.
        # Added up row by row: a product of matrices may give equal rows other last digits at other places.
        factors = rng.standard_normal(rows.shape[1]).astype(rows.dtype)
        key = np.empty(len(rows), dtype=rows.dtype)
        for first in range(0, len(rows), _AT_ONCE):
            key[first : first + _AT_ONCE] = (rows[first : first + _AT_ONCE] * factors).sum(1)
        _, self.kinds, self._sizes = np.unique(key, return_inverse=True, return_counts=True)
        self._first = np.cumsum(self._sizes) - self._sizes

    def draw(self) -> Floats:
        """Return ``(N,)`` numbers, uniform in [0, 1) for each row, evenly spaced in a group, in a random order."""
        count = len(self.kinds)
        order = np.lexsort((self._rng.random(count), self.kinds))
        place = np.empty(count)
        place[order] = np.arange(count)
        place -= self._first[self.kinds]
        shares = (place + self._rng.random(len(self._sizes))[self.kinds]) / self._sizes[self.kinds]
        return np.minimum(shares, _BELOW_ONE)  # a sum may have been rounded up
