"""Each step's cumulative shares from noisy trees of counts, by post-processing.

From coarse to fine, each split of a node is shrunk towards its expectation: an even split, or that of all groups
together. Neighbouring steps are similar: splits of one node at all steps are shrunk together, in octaves of their
cosine transform (James and Stein's estimator, positive part). A half that holds no more than noise, over all steps, is
emptied, and a tail below the noise is replaced by a normal one, so that noise makes no extreme values. A cumulative
share is then a sum over a few splits.
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
"""Noise of a level, as a share of a mean node, above which halves are emptied only beside a surely full one."""
_FULL = 1.5
"""Deviations of its noise that a half must hold not to be emptied."""
_SURELY_FULL = 4.0
_SEEN = 4.0
"""Deviations of its noise that make a tail significant."""
_MOST_UNSEEN = 0.2
_FEWEST_CELLS = 2
_LEAST_SLOPE = 0.05
_EVEN = 1e-7
"""Share of each table that is spread evenly, so that every cell has a positive share."""


@dataclass(frozen=True, kw_only=True)
class NoisyTree:
    """The noisy trees of one channel's steps.

    Attributes:
        levels: Differences ``(steps, 2^level)``, coarse to fine.
        deviations: Standard deviation of each level's noise.
        totals: ``(steps,)`` number of records with a value.
    """

    levels: list[Floats]
    deviations: list[float]
    totals: Floats


def octaves(count: int) -> Ints:
    """Return the octave of each frequency: 0, 1, 2 and 3, 4 to 7, and so on."""
    return np.array([0 if k == 0 else int(np.log2(k)) + 1 for k in range(count)], dtype=np.int64)


def shrink(values: Floats, variance: float, *, kept: float = np.inf) -> Floats:
    """Return a block of noisy numbers shrunk towards zero (James and Stein, positive part).

    Args:
        values: Numbers of any shape.
        variance: Variance of the noise.
        kept: Standard deviations beyond which a number is kept by itself.
    """
    size = values.size
    share = 1 - max(size - 2, min(size, 1.5)) * variance / max(float((values**2).sum()), 1e-30)
    found: Floats = np.where(np.abs(values) > kept * np.sqrt(variance), values, values * max(0.0, share))
    return found


def step_masses(tree: NoisyTree, *, expected: Floats | None = None) -> Floats:
    """Return the estimated records of each leaf at each step ``(steps, leaves)``; some may be negative.

    Args:
        tree: The noisy counts.
        expected: ``(steps, leaves)`` shares towards whose splits the counts are shrunk; None: even splits.
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
                apart[octave == one] = shrink(apart[octave == one], deviation**2, kept=kept)
            split = split + idct(apart, axis=0, norm="ortho")
            split = _emptied(nodes, split, deviation)
        halves = np.empty((steps, 2 * nodes.shape[1]))
        halves[:, ::2], halves[:, 1::2] = (nodes + split) / 2, (nodes - split) / 2
        nodes = halves
    return nodes


def _leanings(expected: Floats | None, level: int, steps: int) -> Floats:
    """Return the expected difference of halves, over their sum, of each node ``(steps, 2^level)``, in [-1, 1]."""
    if expected is None:
        return np.zeros((steps, 2**level))
    halves = expected.reshape(steps, 2**level, 2, -1).sum(3)
    whole = halves.sum(2)
    found: Floats = np.where(whole > 0, (halves[:, :, 0] - halves[:, :, 1]) / np.where(whole > 0, whole, 1), 0.0)
    return found


def _emptied(nodes: Floats, split: Floats, deviation: float) -> Floats:
    """Return splits in which a half that is not significant is empty."""
    scale = np.sqrt(len(nodes))
    whole, lean = nodes.sum(0) / scale, split.sum(0) / scale
    left, right = (whole + lean) / 2, (whole - lean) / 2
    noise, least = _FULL * deviation / np.sqrt(2), -np.inf
    if deviation > _NOISY_CELL * whole.mean():  # most nodes are noise: empty a half only beside a surely full one
        least, noise = _SURELY_FULL * noise, 2 * noise
    split = split.copy()
    to_right = (left < noise) & (right > np.maximum(left, least))
    to_left = (right < noise) & (left >= np.maximum(right, least))
    split[:, to_right] = -nodes[:, to_right]
    split[:, to_left & ~to_right] = nodes[:, to_left & ~to_right]
    return split


def unseen_share(tree: NoisyTree) -> float:
    """Return the share of all values, over all steps, below which a tail is not significant."""
    noise = tree.deviations[0] / max(float(tree.totals.sum()) / np.sqrt(len(tree.totals)), 1e-9)
    return float(min(_SEEN * noise, _MOST_UNSEEN))


def with_tails(table: Floats, unseen: float) -> Floats:
    """Return cumulative shares ``(steps, cells + 1)`` with tails that are not significant replaced by normal ones.

    Places of cells are extrapolated linearly in normal scores, from half the score at which the tail begins.

    Args:
        table: Cumulative shares.
        unseen: Share below which a tail is not significant.
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
