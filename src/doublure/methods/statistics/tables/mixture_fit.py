"""Fit of a mixture of products to noisy tables, by post-processing.

Adam moves the logits of a mixture's probabilities P (K, W) until its expected tables
(:mod:`doublure.methods.statistics.tables.pair_errors`) agree with the noisy ones as closely as their noise allows, and
no closer: the fit ends when the mean squared error, in units of the noise, falls to one (Morozov's discrepancy
principle). On Adult at ε = 1 this stops within a few steps of the least distance to the true tables; further steps fit
the noise. (Relaxed projection of marginals: Aydore et al. 2021, arXiv:2103.06641; a generator fitted to them: Liu,
Vietri and Wu 2021, arXiv:2106.07153.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doublure.methods.statistics.tables.pair_errors import Floats, PairErrors
from doublure.methods.statistics.tables.score_errors import ScoredPairs

_RATE, _DECAYS, _TINY = 0.05, (0.9, 0.99), 1e-8
"""Settings of Adam (Kingma and Ba 2015, arXiv:1412.6980)."""
_SPREAD = 0.5
_ENOUGH = 0.98
"""Mean squared error, over the noise's variance, at which the fit ends; the components' freedom fits some noise."""
"""A mixture that starts from another one is left where it is if noise explains what is left: one deviation of the mean
squared error above its expectation."""
_LEAST_SHARE, _SCALED = 1e-6, 20
_LOOKED, _WORTH = 100, 0.999
"""Steps that must reduce the loss by a thousandth; else the fit ends. Without this it would not, if columns depend on
one another more closely than the mixture can represent."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMarginals:
    """Noisy one- and two-way tables, as shares; W groups of all columns side by side.

    Attributes:
        sizes: Number of groups of each column.
        single: ``(W,)`` float32, shares of each group, positive, adding up to 1 a column.
        single_precision: ``(W,)`` float32, one over their noise's variance.
        pairs: The shares of each counted pair of groups.
        alike: ``(W - 1,)`` float32, 1 where a group and the next are neighbours in an ordered column; None: nowhere.
        scored: Scores of pairs of the first columns that are not counted; None: there are none.
    """

    sizes: Sequence[int]
    single: Floats
    single_precision: Floats
    pairs: PairErrors
    alike: Floats | None = None
    scored: ScoredPairs | None = None

    @cached_property
    def cells(self) -> int:
        """Number of counted cells of pairs; 1 without pairs."""
        return self.pairs.cells

    @cached_property
    def starts(self) -> Floats:
        """The first group of each column."""
        return np.cumsum(self.sizes) - self.sizes


@dataclass(frozen=True, kw_only=True)
class FittedMixture:
    """A fitted mixture.

    Attributes:
        probabilities: ``(K, W)`` float32.
        steps: Steps taken.
        misfit: The pairs' mean squared error in units of the noise's variance.
    """

    probabilities: Floats
    steps: int
    misfit: float


def squared_errors(probabilities: Floats, moments: NoisyMarginals) -> tuple[Floats, float, Floats]:
    """Return the squared errors of a mixture of equally likely products, in units of the noise's variance.

    Args:
        probabilities: ``(K, W)`` float32.
        moments: The tables.

    Returns:
        The squared error of each group of a column ``(W,)``; the mean squared error of all pairs' cells; and the
        gradient ``(K, W)``, by the probabilities, of the sum of the former over the number of cells plus the latter.
    """
    squared, gradient = moments.pairs.squared(probabilities)
    apart = probabilities.mean(0) - moments.single
    weighted = apart * moments.single_precision
    gradient /= moments.cells
    gradient += weighted * (2 / (len(probabilities) * moments.cells))
    return apart * weighted, squared / moments.cells, gradient


def fit_mixture(
    moments: NoisyMarginals,
    *,
    components: int,
    steps: int,
    prior: float,
    rng: np.random.Generator,
    base: Floats | None = None,
    at: Callable[[int], None] = lambda _: None,
) -> FittedMixture:
    """Fit a mixture of ``components`` equally likely products.

    Args:
        moments: The noisy tables.
        components: K.
        steps: Most steps.
        prior: Weight of two penalties: on each component's difference from the columns' shares, and on changes of that
            difference between neighbouring groups.
        rng: Public randomness for the start.
        base: ``(K, W)`` another mixture, to start from and be held to, with the shares of this one's columns; None:
            components are held to those shares, and start near them at random.
        at: Called with each step's number.
    """
    shape = (components, len(moments.single))
    if base is None:
        base, enough = np.log(np.maximum(moments.single, _LEAST_SHARE)), _ENOUGH
        apart = _SPREAD * rng.standard_normal(shape, dtype=np.float32)
    else:
        base, enough = _with_shares(base, moments), 1 + math.sqrt(2 / moments.cells)
        apart = np.zeros(shape, dtype=np.float32)
    first, second = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    misfit, before = 0.0, math.inf
    for step in range(steps):
        at(step)
        probabilities = _softmax(base + apart, moments)
        single, misfit, gradient = squared_errors(probabilities, moments)
        if misfit < enough and _singles_fit(single):
            return FittedMixture(probabilities=probabilities, steps=step, misfit=misfit)
        scored = 0.0
        if moments.scored is not None:
            scored, at_groups, pulled = moments.scored.errors(probabilities, step)
            gradient[:, at_groups] += pulled / moments.cells
        rough, held = _roughness(apart, moments.alike)
        if step % _LOOKED == 0:
            loss = misfit + (float(single.sum()) + scored) / moments.cells + prior * rough
            if loss > before * _WORTH:
                return FittedMixture(probabilities=probabilities, steps=step, misfit=misfit)
            before = loss
        gradient *= probabilities  # from probabilities to logits: the softmax's Jacobian, column by column
        gradient -= probabilities * _of_columns(np.add.reduceat(gradient, moments.starts, axis=1), moments)
        gradient += prior * held
        _step(apart, gradient, first, second, step + 1)
    return FittedMixture(probabilities=_softmax(base + apart, moments), steps=steps, misfit=misfit)


def _with_shares(base: Floats, moments: NoisyMarginals) -> Floats:
    """Return logits ``(K, W)`` of a mixture, scaled group by group to these shares of each column."""
    shares = np.log(np.maximum(moments.single, _LEAST_SHARE))
    found: Floats = np.log(np.maximum(base, _LEAST_SHARE)).astype(np.float32)
    for _ in range(_SCALED):
        found += shares - np.log(np.maximum(_softmax(found.copy(), moments).mean(0), _LEAST_SHARE))
    return found


def _singles_fit(errors: Floats) -> bool:
    """Say whether one-way tables fit as closely as their own noise allows."""
    return float(errors.mean()) < 1.0


def _roughness(apart: Floats, alike: Floats | None) -> tuple[float, Floats]:
    """Return the penalty on differences from the columns' shares and between neighbours, and its gradient."""
    rough = float(np.vdot(apart, apart)) / apart.size
    gradient = apart * (2 / apart.size)
    if alike is not None and apart.shape[1] > 1:
        steps = np.diff(apart, axis=1)
        weighted = steps * alike
        rough += float(np.vdot(steps, weighted)) / steps.size
        weighted *= 2 / steps.size
        gradient[:, 1:] += weighted
        gradient[:, :-1] -= weighted
    return rough, gradient


def _step(moving: Floats, gradient: Floats, first: Floats, second: Floats, number: int) -> None:
    """Take one step of Adam, in place; both moments are updated in place."""
    for moment, decay, seen in ((first, _DECAYS[0], gradient), (second, _DECAYS[1], gradient * gradient)):
        moment *= decay
        moment += (1 - decay) * seen
    scale = np.sqrt(second)
    scale /= math.sqrt(1 - _DECAYS[1] ** number)
    scale += _TINY
    moving -= (_RATE / (1 - _DECAYS[0] ** number)) * first / scale


def _softmax(logits: Floats, moments: NoisyMarginals) -> Floats:
    """Return the softmax over each column's groups, for all columns at once; ``logits`` are overwritten."""
    logits -= _of_columns(np.maximum.reduceat(logits, moments.starts, axis=1), moments)
    found: Floats = np.exp(logits, out=logits)
    found /= _of_columns(np.add.reduceat(found, moments.starts, axis=1), moments)
    return found


def _of_columns(each: Floats, moments: NoisyMarginals) -> Floats:
    """Return a number for each column ``(K, columns)``, repeated for each of its groups ``(K, W)``."""
    return np.repeat(each, moments.sizes, axis=1)
