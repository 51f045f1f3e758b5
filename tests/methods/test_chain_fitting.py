"""Chains learn what exact tables say, and no more than noisy ones let them believe."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from doublure.methods.statistics.series.chain_fit import ChainTables, expected, fit_chain
from doublure.networks.chains import MarkovChain

CLASSES, STEPS, STATES = 2, 5, 3


def truth(seed=0):
    """Return logits of two classes' chains, each step its own, and what each of two values adds."""
    source = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=source)  # noqa: E731
    return draw(CLASSES, STATES), draw(CLASSES, STEPS - 1, STATES, STATES), 0.7 * draw(2, STEPS, STATES)


def tables(precision=1e6, present=None):
    start, transitions, effects = truth()
    values, weights = torch.eye(2), torch.tensor([[0.3, 0.2], [0.1, 0.4]])
    singles, pairs = expected(start, transitions, effects, values, weights)
    return ChainTables(
        present=torch.ones(STEPS, STATES, dtype=torch.bool) if present is None else present,
        start=torch.zeros(1, STATES),
        transitions=torch.zeros(1, 1, STATES, STATES),
        effects=torch.zeros(2, STEPS, STATES),
        pairs=pairs,
        singles=singles,
        values=values,
        weights=weights,
        precision=precision,
    )


def given_by(chain, known):
    with torch.no_grad():
        singles, pairs = expected(chain.start, chain.transitions, chain.effects, known.values, known.weights)
        return torch.einsum("srg,rk->skg", singles, known.values), pairs


def fitted(known, steps=200, prior=1.0):
    chain = MarkovChain(CLASSES, STEPS, STATES, known.values.shape[1])
    return chain, fit_chain(chain, known, steps=steps, prior=prior)


def test_exact_tables_are_learned():
    known = tables()
    chain, misfit = fitted(known)
    singles, pairs = given_by(chain, known)
    assert (singles - known.singles).abs().max() < 0.004
    assert (pairs - known.pairs).abs().max() < 0.004
    assert misfit < 2


def test_tables_that_are_all_noise_teach_nothing():
    known = tables(precision=1e-3)
    chain, _ = fitted(known)
    assert max(float(own.detach().abs().max()) for own in chain.parameters()) < 0.01


def test_it_ends_where_it_begins_if_that_is_right():
    start, transitions, effects = truth()
    known = replace(tables(precision=1e3), start=start, transitions=transitions, effects=effects)
    chain, misfit = fitted(known, steps=20)
    assert misfit < 0.01
    assert torch.allclose(chain.effects, effects, atol=0.1)


def test_steps_are_held_to_one_another():
    """With a strong prior all steps have one chain, and values of an attribute one profile; with none, their own."""
    known = tables(precision=100.0)
    held, _ = fitted(known, prior=1e4)
    free, _ = fitted(known, prior=0.0)
    spread = lambda chain: float(chain.transitions.detach().std(dim=1).mean())  # noqa: E731
    assert spread(held) < 0.02 < 0.4 < spread(free)
    assert held.effects.detach().abs().max() < 0.02 < 0.1 < free.effects.detach().abs().max()


def test_a_state_that_is_not_there_stays_out():
    present = torch.ones(STEPS, STATES, dtype=torch.bool)
    present[2, 1] = False
    chain, _ = fitted(tables(present=present), steps=50)
    singles, _ = given_by(chain, tables())
    assert singles[2, :, 1].max() == 0


def test_two_attributes_each_add_their_own():
    """Four groups, the combinations of two values of each of two attributes, of different sizes."""
    start, transitions, _ = truth()
    effects = torch.randn(4, STEPS, STATES, generator=torch.Generator().manual_seed(3))
    values = torch.tensor([[1.0, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    weights = torch.tensor([[0.1, 0.1], [0.2, 0.1], [0.1, 0.2], [0.05, 0.15]])
    by_group, pairs = expected(start, transitions, effects, values, weights)
    known = replace(
        tables(), pairs=pairs, singles=torch.einsum("srg,rk->skg", by_group, values), values=values, weights=weights,
        effects=torch.zeros(4, STEPS, STATES),
    )  # fmt: skip
    chain, misfit = fitted(known, steps=400)
    found, _ = expected(chain.start, chain.transitions, chain.effects, values, weights)
    assert misfit < 2
    assert (found - by_group).abs().max() < 0.01  # of each combination, which no table counts


def test_series_without_attributes():
    start, transitions, _ = truth()
    values, weights = torch.zeros(1, 0), torch.tensor([[0.6, 0.4]])
    _, pairs = expected(start, transitions, torch.zeros(0, STEPS, STATES), values, weights)
    known = replace(
        tables(), pairs=pairs, singles=torch.zeros(STEPS, 0, STATES), values=values, weights=weights,
        effects=torch.zeros(0, STEPS, STATES),
    )  # fmt: skip
    chain, misfit = fitted(known)
    assert misfit < 2
    assert torch.allclose(given_by(chain, known)[1], pairs, atol=0.004)


def test_somebody_may_stop_it():
    seen = []

    def at(step):
        seen.append(step)
        if step == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fit_chain(MarkovChain(CLASSES, STEPS, STATES, 2), tables(), steps=10, prior=1.0, at=at)
    assert seen == [0, 1, 2, 3]
