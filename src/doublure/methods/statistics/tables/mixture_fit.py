"""Fit a mixture of products to noisy tables: all of it post-processing.

Adam moves the logits of a mixture's probabilities P (K, W) until the tables that it expects
(:mod:`doublure.methods.statistics.tables.pair_errors`) agree with the noisy ones as closely as their noise allows, and
no closer: the fit ends when the mean squared error, in units of the noise, falls to one (Morozov's discrepancy
principle). On Adult at ε = 1 this stops within a few steps of where the distance to the true tables is least; to go on
is to learn the noise. (Relaxed projection of marginals: Aydore et al. 2021, arXiv:2103.06641; a generator fitted to
them: Liu, Vietri and Wu 2021, arXiv:2106.07153.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doublure.methods.statistics.tables.pair_errors import Floats, PairErrors

_RATE, _DECAYS, _TINY = 0.05, (0.9, 0.99), 1e-8
"""Of Adam (Kingma and Ba 2015, arXiv:1412.6980)."""
_SPREAD = 0.5
_ENOUGH = 0.98
"""Of the noise's own variance: the components' freedom takes up some of it."""
_LEAST_SHARE = 1e-6
_LOOKED, _WORTH = 100, 0.999
"""So many steps have to bring a thousandth; else it ends, as it never will where columns depend on one another more
closely than the mixture can say."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """What is known of one- and two-way tables, as shares; W groups of all columns side by side.

    Attributes:
        sizes: How many groups each column has.
        single: ``(W,)`` float32, shares of each group, positive, adding up to 1 a column.
        single_precision: ``(W,)`` float32, one over their noise's variance.
        pairs: The shares of each pair of groups that was counted.
        alike: ``(W - 1,)`` float32, 1 where a group and the next are neighbours of an ordered column; None: nowhere.
    """

    sizes: Sequence[int]
    single: Floats
    single_precision: Floats
    pairs: PairErrors
    alike: Floats | None = None

    @cached_property
    def cells(self) -> int:
        """How many cells of pairs were counted; 1 where there is no pair."""
        return self.pairs.cells

    @cached_property
    def starts(self) -> Floats:
        """Where each column's groups begin."""
        return np.cumsum(self.sizes) - self.sizes


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A mixture, and how it was reached.

    Attributes:
        probabilities: ``(K, W)`` float32.
        steps: Steps taken.
        misfit: The pairs' mean squared error in units of the noise's variance.
    """

    probabilities: Floats
    steps: int
    misfit: float


def misfits(probabilities: Floats, moments: Moments) -> tuple[Floats, float, Floats]:
    """Return how far a mixture of equally likely products is from noisy tables, in units of their noise's variance.

    Args:
        probabilities: ``(K, W)`` float32.
        moments: The tables.

    Returns:
        The squared error of each group of a column ``(W,)``; the mean squared error of all pairs' cells; and what the
        sum of the former over the number of cells, and the latter, change by with each probability ``(K, W)``.
    """
    squared, gradient = moments.pairs.squared(probabilities)
    apart = probabilities.mean(0) - moments.single
    weighted = apart * moments.single_precision
    gradient /= moments.cells
    gradient += weighted * (2 / (len(probabilities) * moments.cells))
    return apart * weighted, squared / moments.cells, gradient


def fit_mixture(
    moments: Moments,
    *,
    components: int,
    steps: int,
    prior: float,
    rng: np.random.Generator,
    at: Callable[[int], None] = lambda _: None,
) -> Fitted:
    """Fit a mixture of ``components`` equally likely products.

    Args:
        moments: The noisy tables.
        components: K.
        steps: Steps at most.
        prior: How strongly each component is held to the columns' own shares, and as strongly to departing alike from
            them in groups that are neighbours.
        rng: Public randomness for the start.
        at: Called with each step's number.
    """
    base = np.log(np.maximum(moments.single, _LEAST_SHARE))
    shape = (components, len(base))
    apart = _SPREAD * rng.standard_normal(shape, dtype=np.float32)
    first, second = np.zeros(shape, dtype=np.float32), np.zeros(shape, dtype=np.float32)
    misfit, before = 0.0, math.inf
    for step in range(steps):
        at(step)
        probabilities = _softmax(base + apart, moments)
        single, misfit, gradient = misfits(probabilities, moments)
        if misfit < _ENOUGH and _singles_fit(single):
            return Fitted(probabilities=probabilities, steps=step, misfit=misfit)
        rough, held = _roughness(apart, moments.alike)
        if step % _LOOKED == 0:
            loss = misfit + float(single.sum()) / moments.cells + prior * rough
            if loss > before * _WORTH:
                return Fitted(probabilities=probabilities, steps=step, misfit=misfit)
            before = loss
        gradient *= probabilities
        gradient -= probabilities * _of_columns(np.add.reduceat(gradient, moments.starts, axis=1), moments)
        gradient += prior * held
        _step(apart, gradient, first, second, step + 1)
    return Fitted(probabilities=_softmax(base + apart, moments), steps=steps, misfit=misfit)


def _singles_fit(errors: Floats) -> bool:
    """Say whether one-way tables fit as closely as their own noise allows."""
    return float(errors.mean()) < 1.0


def _roughness(apart: Floats, alike: Floats | None) -> tuple[float, Floats]:
    """Return how far components are from the columns' shares, and neighbours from one another, and its gradient."""
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
    """Take one step of Adam, in place; both moments are kept."""
    for moment, decay, seen in ((first, _DECAYS[0], gradient), (second, _DECAYS[1], gradient * gradient)):
        moment *= decay
        moment += (1 - decay) * seen
    scale = np.sqrt(second)
    scale /= math.sqrt(1 - _DECAYS[1] ** number)
    scale += _TINY
    moving -= (_RATE / (1 - _DECAYS[0] ** number)) * first / scale


def _softmax(logits: Floats, moments: Moments) -> Floats:
    """Return the probabilities of each column's groups, of all columns at once."""
    logits -= _of_columns(np.maximum.reduceat(logits, moments.starts, axis=1), moments)
    found: Floats = np.exp(logits, out=logits)
    found /= _of_columns(np.add.reduceat(found, moments.starts, axis=1), moments)
    return found


def _of_columns(each: Floats, moments: Moments) -> Floats:
    """Return what is said of each column ``(K, columns)``, of each of its groups ``(K, W)``."""
    return np.repeat(each, moments.sizes, axis=1)
