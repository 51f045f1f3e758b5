"""The distribution of a channel's values over all steps, from noisy differences of a tree of its cells.

The logarithm of the density bends seldom: second differences along the cells have a Laplace prior, whose rate is
averaged over by its evidence. So a density is smooth as far as noise hides what it is, and beyond the last values that
are seen it falls on as it fell before them. A cell that holds a channel's zero may stand out by itself.

The parts have their sources in Tibshirani (2014, Annals of Statistics 42), few turns, and MacKay (1992, Neural
Computation 4), evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import linalg

Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]

_RATES = 10.0 ** np.arange(3, -1.5, -0.5)
"""Candidates of the prior's rate, smooth to rough: log densities bend by 0.001 to 10 from a cell to the next."""
_CORNER = 0.02
"""Second difference below which the prior is quadratic."""
_STANDS_OUT = 3.0
"""Deviation of the logarithm by which a zero stands out: a factor of twenty is ordinary."""
_ROUNDS, _STILL, _LONGEST = 40, 1e-3, 2.0
_DAMPING = 1e-6


def smooth_shares(
    differences: Sequence[Floats], deviations: Sequence[float], *, total: float, base: Floats, zero: int | None
) -> Floats:
    """Return the shares of cells ``(cells,)``.

    Args:
        differences: ``(2^level,)`` left halves less right ones of each level's nodes, coarse to fine, with noise.
        deviations: Standard deviation of each level's noise.
        total: The values in all cells.
        base: ``(cells,)`` logarithm of how many more values a cell holds than its neighbours do.
        zero: The cell that may stand out.
    """
    cells = len(base)
    if cells < 2:
        return np.ones(cells)
    signs = _signs(len(differences), cells)
    seen = np.concatenate([own.ravel() for own in differences])
    noise = np.repeat(np.square(deviations), [own.size for own in differences])
    kept = np.delete(np.arange(cells), [] if zero is None else zero)
    bends = _bends(kept, cells)
    curve, found, evidence = np.zeros(cells), [], []
    for rate in _RATES:
        curve, likely = _mode(curve, signs, seen, noise, total, base, bends, kept, rate, zero)
        shares = np.exp(curve + base - (curve + base).max())
        found.append(shares / shares.sum())
        evidence.append(likely)
    chances = np.exp(np.array(evidence) - max(evidence))
    mean: Floats = (chances / chances.sum()) @ np.array(found)
    return mean


def _signs(depth: int, cells: int) -> Floats:
    """Return ``(nodes, cells)``: 1 where a cell is in a node's left half, -1 in its right one, else 0."""
    place, rows = np.arange(cells), []
    for level in range(depth):
        half = place >> (depth - level - 1)
        for node in range(2**level):
            rows.append((half == 2 * node) * 1.0 - (half == 2 * node + 1) * 1.0)
    return np.array(rows)


def _bends(kept: Places, cells: int) -> Floats:
    """Return the second differences ``(m, cells)`` of a curve's cells without the one that may stand out."""
    found = np.zeros((max(0, len(kept) - 2), cells))
    for row, (one, two, three) in enumerate(zip(kept, kept[1:], kept[2:], strict=False)):
        found[row, [one, two, three]] = 1.0, -2.0, 1.0
    return found


def _held(weights: Floats, kept: Places, cells: int) -> Floats:
    """Return the products ``(cells, cells)`` of second differences by weights: five bands, of those that are kept."""
    found = np.zeros((cells, cells))
    if len(weights):
        middle, beside = np.zeros(len(kept)), np.zeros(len(kept) - 1)
        middle[2:] += weights
        middle[1:-1] += 4 * weights
        middle[:-2] += weights
        beside[1:] -= 2 * weights
        beside[:-1] -= 2 * weights
        for off, band in enumerate((middle, beside, weights)):
            one, other = kept[: len(band)], kept[off:]
            found[one, other] = found[other, one] = band
    return found


def _mode(
    curve: Floats, signs: Floats, seen: Floats, noise: Floats, total: float, base: Floats, bends: Floats, kept: Places,
    rate: float, zero: int | None,
) -> tuple[Floats, float]:  # fmt: skip
    """Return the most likely log density ``(cells,)`` under a prior's rate, and the logarithm of its evidence."""
    apart = np.zeros((1, len(curve)))
    if zero is not None:
        apart[0, zero], apart[0, zero + 1 if zero + 1 < len(curve) else zero - 1] = 1.0, -1.0
    # Counts vary by themselves, too; and so a curve is not bent for what chance alone makes.
    precision = 1 / (noise + np.maximum(np.abs(signs) @ np.full(len(curve), total / len(curve)), 1.0))

    def loss(curve: Floats) -> float:
        missed = seen - signs @ _masses(curve, base, total)
        bend = np.sqrt((bends @ curve) ** 2 + _CORNER**2)
        return float(precision @ missed**2 / 2 + rate * bend.sum() + ((apart @ curve / _STANDS_OUT) ** 2).sum() / 2)

    best, curvature, every = loss(curve), np.eye(len(curve)), np.arange(len(curve))
    for _ in range(_ROUNDS):
        mass = _masses(curve, base, total)
        masses = signs @ mass
        slopes = signs * mass - np.outer(masses, mass) / total
        weights = rate / np.sqrt((bends @ curve) ** 2 + _CORNER**2)
        held = _held(weights, kept, len(curve)) + apart.T @ apart / _STANDS_OUT**2
        curvature = slopes.T @ (precision[:, None] * slopes) + held
        curvature[every, every] += _DAMPING
        pull = slopes.T @ (precision * (seen - masses)) - held @ curve
        _, step, _ = linalg.lapack.dposv(curvature, pull)
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-12))
        size = 1.0
        while (reached := loss(curve + size * step)) > best and size > 1e-3:
            size /= 2
        if reached > best:
            break
        curve, gained, best = curve + size * step, best - reached, reached
        curve -= curve.mean()
        if gained < _STILL:
            break
    turned = len(bends) * math.log(rate)
    return curve, turned - best - float(np.linalg.slogdet(curvature)[1]) / 2


def _masses(curve: Floats, base: Floats, total: float) -> Floats:
    shares = np.exp(curve + base - (curve + base).max())
    found: Floats = shares * (total / shares.sum())
    return found
