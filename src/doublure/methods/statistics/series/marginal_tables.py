"""From noisy trees of counts to each step's cumulative shares: all of it post-processing.

Coarse to fine, each split of a node is what was counted as far as that is no noise, and otherwise what it was expected
to be: even, or as all groups together have it. Steps are neighbours: splits of one node at all steps are shrunk
together, octave by octave of their cosine transform (James and Stein's estimator, its positive part). A half that holds
no more, all steps together, than noise is empty, and a tail that is not seen is that of a normal, so that no far values
are made of noise. A cumulative share is then a few splits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.fft import dct, idct
from scipy.special import ndtr, ndtri

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

_NOISY_CELL = 0.3
"""A level whose noise is more than this share of a usual node is emptied with care alone."""
_FULL = 1.5
"""How many times its noise a half must hold not to be emptied."""
_SURELY_FULL = 4.0
_SEEN = 4.0
"""How many standard deviations of its noise a tail must have to be seen."""
_MOST_UNSEEN = 0.2
_FEWEST_CELLS = 2
_LEAST_SLOPE = 0.05
_EVEN = 1e-7
"""What of each table is spread evenly, so that no cell is without a share."""


@dataclass(frozen=True, kw_only=True)
class NoisyTree:
    """The noisy trees of one channel's steps.

    Attributes:
        levels: Differences ``(steps, 2^level)``, coarse to fine.
        deviations: Of each level's noise.
        totals: ``(steps,)`` how many records have a value.
    """

    levels: list[Floats]
    deviations: list[float]
    totals: Floats


def octaves(count: int) -> Ints:
    """Return the octave of each frequency: 0, 1, 2 and 3, 4 to 7, and so on."""
    return np.array([0 if k == 0 else int(np.log2(k)) + 1 for k in range(count)], dtype=np.int64)


def shrunk(values: Floats, variance: float, *, kept: float = np.inf) -> Floats:
    """Return a block of noisy numbers, shrunk to zero by as much as they are noise (James and Stein, positive part).

    Args:
        values: Of any shape.
        variance: Of the noise.
        kept: Standard deviations beyond which a number stands out by itself and stays.
    """
    size = values.size
    share = 1 - max(size - 2, min(size, 1.5)) * variance / max(float((values**2).sum()), 1e-30)
    found: Floats = np.where(np.abs(values) > kept * np.sqrt(variance), values, values * max(0.0, share))
    return found


def step_masses(tree: NoisyTree, *, expected: Floats | None = None) -> Floats:
    """Return how many records are in each leaf at each step ``(steps, leaves)``; some may be negative.

    Args:
        tree: What was counted.
        expected: ``(steps, leaves)`` shares that splits are held to; None: even splits.
    """
    steps = len(tree.totals)
    octave = octaves(steps)
    kept = np.sqrt(2 * np.log(steps * 2 ** len(tree.levels)))
    nodes = tree.totals[:, None].astype(np.float64)
    for place, (counted, deviation) in enumerate(zip(tree.levels, tree.deviations, strict=True)):
        split = nodes * _leanings(expected, place, steps)
        if deviation > 0:
            apart = dct(counted - split, axis=0, norm="ortho")
            for one in range(int(octave[-1]) + 1):
                apart[octave == one] = shrunk(apart[octave == one], deviation**2, kept=kept)
            split = split + idct(apart, axis=0, norm="ortho")
            split = _emptied(nodes, split, deviation)
        halves = np.empty((steps, 2 * nodes.shape[1]))
        halves[:, ::2], halves[:, 1::2] = (nodes + split) / 2, (nodes - split) / 2
        nodes = halves
    return nodes


def _leanings(expected: Floats | None, level: int, steps: int) -> Floats:
    """Return by how much each node is expected to lean to its left half, from -1 to 1, ``(steps, 2^level)``."""
    if expected is None:
        return np.zeros((steps, 2**level))
    halves = expected.reshape(steps, 2**level, 2, -1).sum(3)
    whole = halves.sum(2)
    found: Floats = np.where(whole > 0, (halves[:, :, 0] - halves[:, :, 1]) / np.where(whole > 0, whole, 1), 0.0)
    return found


def _emptied(nodes: Floats, split: Floats, deviation: float) -> Floats:
    """Return splits of which a half that is nothing but noise gets nothing."""
    scale = np.sqrt(len(nodes))
    whole, lean = nodes.sum(0) / scale, split.sum(0) / scale
    left, right = (whole + lean) / 2, (whole - lean) / 2
    noise, least = _FULL * deviation / np.sqrt(2), -np.inf
    if deviation > _NOISY_CELL * whole.mean():  # a usual node is noise itself: only beside a surely full half
        least, noise = _SURELY_FULL * noise, 2 * noise
    split = split.copy()
    to_right = (left < noise) & (right > np.maximum(left, least))
    to_left = (right < noise) & (left >= np.maximum(right, least))
    split[:, to_right] = -nodes[:, to_right]
    split[:, to_left & ~to_right] = nodes[:, to_left & ~to_right]
    return split


def unseen_share(tree: NoisyTree) -> float:
    """Return what share of all values, all steps together, a tail must have to be seen through the noise."""
    noise = tree.deviations[0] / max(float(tree.totals.sum()) / np.sqrt(len(tree.totals)), 1e-9)
    return float(min(_SEEN * noise, _MOST_UNSEEN))


def with_tails(table: Floats, unseen: float) -> Floats:
    """Return cumulative shares ``(steps, cells + 1)`` whose tails beyond what is seen are those of a normal.

    Places of cells are taken to be straight in normal scores from half the score at which tails end on.

    Args:
        table: Cumulative shares.
        unseen: A tail's share that is not seen.
    """
    if unseen <= 0:
        return table
    flipped = 1 - _with_upper_tail(1 - table[:, ::-1], unseen)[:, ::-1]
    return _with_upper_tail(flipped, unseen)


def _with_upper_tail(table: Floats, unseen: float) -> Floats:
    found, edges = table.copy(), np.arange(table.shape[1], dtype=np.float64)
    score = ndtri(1 - unseen)
    for own in found:
        begins, inner = np.interp([1 - unseen, ndtr(score / 2)], own, edges)
        beyond = edges > begins
        if beyond.sum() < _FEWEST_CELLS:
            continue
        slope = max((begins - inner) / (score / 2), _LEAST_SLOPE)
        tail = ndtr(score + (edges[beyond] - begins) / slope) - (1 - unseen)
        own[beyond] = 1 - unseen + unseen * tail / max(tail[-1], 1e-12)
    return found


def cumulative(masses: Floats) -> Floats:
    """Return increasing cumulative shares ``(steps, cells + 1)`` from 0 to 1 of noisy masses ``(steps, cells)``."""
    from sklearn.isotonic import isotonic_regression

    totals = np.maximum(masses.sum(1), 1e-9)
    sums = np.cumsum(masses / totals[:, None], axis=1)
    rising = np.stack([isotonic_regression(own, y_min=0, y_max=1) for own in sums])
    rising[:, -1] = 1
    cells = masses.shape[1]
    found = np.concatenate([np.zeros((len(rising), 1)), rising], axis=1)
    mixed: Floats = (1 - _EVEN) * found + _EVEN * np.linspace(0, 1, cells + 1)
    return mixed
