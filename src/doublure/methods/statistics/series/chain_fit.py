"""Fit of Markov chains to noisy tables of neighbouring steps, by post-processing.

The logits of a step are those common to all steps, plus the step's own, plus the effects of attributes. A prior with
long tails holds each of these to its starting point, so that noisy tables move a step away from the others no further
than their precision allows, and with much noise one chain serves all steps. The estimate is the posterior mode under
that prior, given tables with Gaussian noise; Adam finds it. On London's days at ε = 1 this keeps the mean day of each
weekday, which chains fitted step by step lose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from doublure.networks import optimizers
from doublure.networks.chains import UNLIKELY, MarkovChain

_RATE = 0.1
_START_SPREAD, _CLASS_SPREAD, _STEP_SPREAD, _OWN_SPREAD, _EFFECT_SPREAD = 3.0, 0.3, 1.0, 0.3, 0.3
"""Widths of the prior, log(1 + (x / width)²): all steps' logits, a class's, a step's shift, its own transitions,
attributes. A step shifts by its tilt."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainTables:
    """Noisy tables of C chains of S steps and G states, of series in R groups by attributes' values.

    Attributes:
        present: ``(S, G)`` whether a step has a state.
        start: ``(C or 1, G)`` initial logits of the first step.
        transitions: ``(C or 1, S - 1 or 1, G, G)`` initial logits of transitions.
        effects: ``(K, S, G)`` initial effects of each attribute's values.
        pairs: ``(S - 1, C, G, G)`` shares of all series: class, this step's state, the next one's.
        singles: ``(S, K, G)`` shares of all series: value of an attribute, state.
        values: ``(R, K)`` the values of each group, as one-hot blocks, one an attribute.
        weights: ``(R, C)`` shares of all series: group, class; they add up to 1.
        precision: One over the variance of both tables' noise.
        tilt: How far a step tilts the states' logits for a log ratio of 1 of their shares; 1: steps are independent.
    """

    present: Tensor
    start: Tensor
    transitions: Tensor
    effects: Tensor
    pairs: Tensor
    singles: Tensor
    values: Tensor
    weights: Tensor
    precision: float
    tilt: float = 1.0

    @property
    def cells(self) -> int:
        """Number of counted cells."""
        sizes = self.present.sum(1)
        following = int((sizes[:-1] * sizes[1:]).sum()) * self.weights.shape[1]
        return max(1, following + int(sizes.sum()) * self.values.shape[1])


def expected(
    start: Tensor, transitions: Tensor, effects: Tensor, values: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the expected tables of chains.

    Args:
        start: ``(C, G)`` logits of the first step.
        transitions: ``(C, S - 1, G, G)`` logits of transitions.
        effects: ``(K, S, G)`` logits added by an attribute's value.
        values: ``(R, K)`` the values of each group.
        weights: ``(R, C)`` shares of all series: group, class.

    Returns:
        Singles ``(S, R, G)`` by group, all classes together, and pairs ``(S - 1, C, G, G)`` of all groups together.
    """
    added = torch.einsum("rk,ksg->rsg", values, effects)[:, None]
    here = torch.softmax(start + added[:, :, 0], dim=-1) * weights[..., None]
    chances = torch.softmax(transitions + added[:, :, 1:, None], dim=-1)
    singles, pairs = [here.sum(1)], [chances.new_zeros(0, *chances.shape[1:2], *chances.shape[-2:])]
    for step in range(chances.shape[2]):
        both = here[..., None] * chances[:, :, step]
        here = both.sum(2)
        singles.append(here.sum(1))
        pairs.append(both.sum(0)[None])
    return torch.stack(singles), torch.cat(pairs)


def fit_chain(
    chain: MarkovChain, tables: ChainTables, *, steps: int, prior: float, at: Callable[[int], None] = lambda _: None
) -> float:
    """Fit a chain.

    Args:
        chain: Gets the most probable logits.
        tables: The noisy tables.
        steps: Steps of Adam.
        prior: Weight of the prior; 1 for the module's spreads.
        at: Called with each step's number.

    Returns:
        The mean squared error of all tables' cells, in units of the noise's variance.
    """
    cells, masked = tables.cells, torch.where(tables.present, 0.0, UNLIKELY)
    first, common, following, own, shift, added = (
        torch.zeros(shape, requires_grad=True)
        for shape in (
            chain.start.shape,
            (1, 1, *chain.transitions.shape[2:]),
            (len(chain.start), 1, *chain.transitions.shape[2:]),
            chain.transitions.shape,
            chain.effects.shape[1:],
            chain.effects.shape,
        )
    )
    of_step = _STEP_SPREAD * tables.tilt
    spreads = (_START_SPREAD, _START_SPREAD, _CLASS_SPREAD, _OWN_SPREAD, of_step, _EFFECT_SPREAD)
    parameters = (first, common, following, own, shift, added)
    optimiser = optimizers.EagerAdam(parameters, lr=_RATE, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)

    def logits() -> tuple[Tensor, Tensor]:
        """Return logits of the first step ``(C, G)`` and of transitions ``(C, S - 1, G, G)``, without attributes."""
        begins = tables.start + first + (shift + masked)[0]
        return begins, tables.transitions + common + following + own + (shift + masked)[1:, None]

    def misfit() -> Tensor:
        singles, pairs = expected(*logits(), tables.effects + added, tables.values, tables.weights)
        by_value = torch.einsum("srg,rk->skg", singles, tables.values)
        return ((pairs - tables.pairs).square().sum() + (by_value - tables.singles).square().sum()) * tables.precision

    for step in range(steps):
        at(step)
        held = sum((each / spread).square().log1p().sum() for each, spread in zip(parameters, spreads, strict=True))
        loss = (misfit() + prior * held) / cells
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        begins, follows = logits()
        chain.start.copy_(begins)
        chain.transitions.copy_(follows)
        chain.effects.copy_(tables.effects + added)
        return float(misfit()) / cells
