"""Kullback-Leibler divergence between two sets of records, from nearest-neighbour distances (Pérez-Cruz 2008).

The estimator needs a density, which equal records do not have. It is refused where one record in a hundred has a twin;
below that, a distance of 0 counts as the smallest positive one.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from doublure.errors import DataError
from doublure.support.arrays import Floats

Rows: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_MOST_TWINS = 0.01
_TINY = 1e-6  # of the median distance: records closer than this differ by rounding alone


def divergence(first: Floats, second: Floats, order: int = 1, *, named: str = "the first records") -> float:
    """Return Pérez-Cruz's estimate of KL(P‖Q) in nats; it may be negative (2008, equation 14).

    Args:
        first: ``(n, d)`` draws from P.
        second: ``(m, d)`` other draws, from Q.
        order: k of the nearest-neighbour distances.
        named: Name of the first records in errors.

    Raises:
        DataError: There are too few draws, or too many of the first are equal.
    """
    if len(first) <= order or len(second) < order:
        raise DataError("has too few records to compare", field=named, remedy="give more")
    within = nearest(first, first, order + 1)[0][:, order]  # the first is the record itself
    across = nearest(second, first, order)[0][:, order - 1]
    scale = _scale(within, named)
    ratios = np.log(_lifted(across, *scale) / _lifted(within, *scale))
    return float(first.shape[1] * ratios.mean() + math.log(len(second) / (len(first) - 1)))


class Neighbourhood:
    """Synthetic records with their neighbour lists, so that removing a few is cheap.

    Args:
        records: ``(n, d)`` features.
        most_removed: Largest number of records removed at a time.

    Raises:
        DataError: Too many records have a twin.
    """

    def __init__(self, records: Floats, most_removed: int) -> None:
        self._records = records
        far, who = nearest(records, records, min(len(records), most_removed + 2))
        own = who == np.arange(len(records))[:, None]
        own[~own.any(axis=1), -1] = True  # with many twins a record may be missing from its own list
        keep = (len(records), far.shape[1] - 1)
        self._far, self._who = far[~own].reshape(keep), who[~own].reshape(keep)
        self._far = _lifted(self._far, *_scale(self._far[:, 0], "the synthetic set"))

    def nearest(self, real: Floats, k: int) -> Rows:
        """Return the ``(B, k)`` synthetic records nearest to real ones ``(B, d)``, the nearest first."""
        return nearest(self._records, real, k)[1]

    def loss(self, removed: Rows) -> float:
        """Return the estimated divergence of all records from the remaining ones.

        A remaining record is not its own neighbour in either set, so it has one other neighbour fewer among those left.
        """
        n, width = self._records.shape
        gone = np.zeros(n, dtype=bool)
        gone[removed] = True
        # Other records keep their nearest neighbour, so their distance ratio is 1.
        touched = np.flatnonzero(gone | gone[self._who[:, 0]])
        left = ~gone[self._who[touched]]
        ratios = np.log(self._far[touched, left.argmax(axis=1)] / self._far[touched, 0])
        sizes = np.where(gone, n - len(removed), n - len(removed) - 1)
        return float(width * ratios.sum() / n + np.log(sizes / (n - 1)).mean())


def nearest(points: Floats, queries: Floats, k: int) -> tuple[Floats, Rows]:
    """Return the ``(B, k)`` distances and indices of the nearest points, the nearest first.

    Few features use a k-d tree (Bentley 1975). With many, a tree visits every point, and a matrix product is faster.
    """
    from sklearn.neighbors import NearestNeighbors

    centre = points.mean(axis=0)  # a common offset would cost digits
    found = NearestNeighbors(n_neighbors=k, algorithm="auto").fit(points - centre)
    far, who = found.kneighbors(queries - centre)
    return np.asarray(far, dtype=np.float64), np.asarray(who, dtype=np.int64)


def _scale(nearest: Floats, named: str) -> tuple[float, float]:
    """Return the distance that counts as zero, and the smallest above it.

    Raises:
        DataError: More than one record in a hundred has a twin.
    """
    zero = float(_TINY * np.median(nearest))
    apart = nearest[nearest > zero]
    if len(apart) < (1 - _MOST_TWINS) * len(nearest):
        raise DataError(
            "has too many records that equal another, so that they have no density",
            field=named,
            remedy="no loss is estimated for such records",
        )
    return zero, float(apart.min())


def _lifted(distances: Floats, zero: float, smallest: float) -> Floats:
    return np.where(distances > zero, distances, smallest)
