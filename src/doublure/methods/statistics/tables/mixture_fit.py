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

import torch
from torch import Tensor

from doublure.methods.statistics.tables.pair_errors import PairErrors

_RATE = 0.05
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
        single: ``(W,)`` shares of each group, positive, adding up to 1 a column.
        single_precision: ``(W,)`` one over their noise's variance.
        pairs: The shares of each pair of groups that was counted.
        alike: ``(W - 1,)`` 1 where a group and the next one are neighbours of an ordered column; None: nowhere.
    """

    sizes: Sequence[int]
    single: Tensor
    single_precision: Tensor
    pairs: PairErrors
    alike: Tensor | None = None

    @cached_property
    def cells(self) -> int:
        """How many cells of pairs were counted; 1 where there is no pair."""
        return self.pairs.cells

    @cached_property
    def columns(self) -> Tensor:
        """``(W,)`` which column each group is of."""
        return torch.arange(len(self.sizes)).repeat_interleave(torch.tensor(list(self.sizes)))


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A mixture, and how it was reached.

    Attributes:
        probabilities: ``(K, W)``.
        steps: Steps taken.
        misfit: The pairs' mean squared error in units of the noise's variance.
    """

    probabilities: Tensor
    steps: int
    misfit: float


def misfits(probabilities: Tensor, moments: Moments) -> tuple[Tensor, Tensor]:
    """Return how far a mixture of equally likely products is from noisy tables, in units of their noise's variance.

    Args:
        probabilities: ``(K, W)``.
        moments: The tables.

    Returns:
        The squared error of each group of a column ``(W,)``, and the mean squared error of all pairs' cells.
    """
    single = (probabilities.mean(0) - moments.single).square() * moments.single_precision
    return single, moments.pairs.squared(probabilities) / moments.cells


def fit_mixture(
    moments: Moments,
    *,
    components: int,
    steps: int,
    prior: float,
    generator: torch.Generator,
    at: Callable[[int], None] = lambda _: None,
) -> Fitted:
    """Fit a mixture of ``components`` equally likely products.

    Args:
        moments: The noisy tables.
        components: K.
        steps: Steps at most.
        prior: How strongly each component is held to the columns' own shares, and as strongly to departing alike from
            them in groups that are neighbours.
        generator: Public randomness for the start.
        at: Called with each step's number.
    """
    base = moments.single.clamp(min=_LEAST_SHARE).log()[None]
    logits = base + _SPREAD * torch.randn(components, len(moments.single), generator=generator)
    logits.requires_grad_()
    optimiser = torch.optim.Adam([logits], lr=_RATE, betas=(0.9, 0.99))
    misfit, before = 0.0, math.inf
    for step in range(steps):
        at(step)
        probabilities = _softmax(logits, moments)
        single, pairs = misfits(probabilities, moments)
        misfit = float(pairs.detach())
        if misfit < _ENOUGH and _singles_fit(single.detach()):
            return Fitted(probabilities=probabilities.detach(), steps=step, misfit=misfit)
        apart = logits - base
        rough = apart.square().mean()
        if moments.alike is not None:
            rough = rough + (apart.diff(dim=1).square() * moments.alike).mean()
        loss = pairs + single.sum() / moments.cells + prior * rough
        if step % _LOOKED == 0:
            if float(loss.detach()) > before * _WORTH:
                return Fitted(probabilities=probabilities.detach(), steps=step, misfit=misfit)
            before = float(loss.detach())
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return Fitted(probabilities=_softmax(logits.detach(), moments), steps=steps, misfit=misfit)


def _singles_fit(errors: Tensor) -> bool:
    """Say whether one-way tables fit as closely as their own noise allows."""
    return float(errors.mean()) < 1.0


def _softmax(logits: Tensor, moments: Moments) -> Tensor:
    """Return the probabilities of each column's groups, of all columns at once."""
    of, count = moments.columns, len(moments.sizes)
    most = torch.full((len(logits), count), -math.inf)
    most.scatter_reduce_(1, of.expand_as(logits), logits.detach(), "amax")
    each = (logits - most[:, of]).exp()
    return each / torch.zeros(len(logits), count).index_add(1, of, each)[:, of]
