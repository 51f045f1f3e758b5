"""Chains draw what their logits say, within what is there, and go on where they were."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from doublure.methods.statistics.series.chain_fit import expected
from doublure.networks.chains import UNLIKELY, ChainGenerator, MarkovChain


def random_chain(classes=2, steps=4, states=3, attributes=2):
    source = torch.Generator().manual_seed(0)
    chain = MarkovChain(classes, steps, states, attributes)
    with torch.no_grad():
        for own in (chain.start, chain.transitions, chain.effects):
            own.copy_(1.5 * torch.randn(own.shape, generator=source))
    return chain


def test_draws_are_as_frequent_as_expected():
    """Every cell of every table of neighbours, within the sampling error of 200,000 draws."""
    chain, n = random_chain(), 200_000
    source = torch.Generator().manual_seed(1)
    of = (torch.rand(n, generator=source) < 0.3).long()
    value = (torch.rand(n, generator=source) < 0.5).long()
    with torch.no_grad():
        drawn = chain(of, torch.rand(n, 4, generator=source).double(), torch.eye(2)[value])
        weights = torch.tensor([[0.35, 0.15], [0.35, 0.15]])  # value, class
        singles, pairs = expected(chain.start, chain.transitions, chain.effects, torch.eye(2), weights)
    for step in range(4):
        for group in range(2):
            shares = torch.bincount(drawn[value == group, step], minlength=3) / n
            assert torch.allclose(shares, singles[step, group], atol=0.006)
    for step in range(3):
        cells = of * 9 + drawn[:, step] * 3 + drawn[:, step + 1]
        assert torch.allclose(torch.bincount(cells, minlength=18).view(2, 3, 3) / n, pairs[step], atol=0.006)


def test_a_state_that_a_step_does_not_have_is_never_drawn():
    chain = random_chain()
    with torch.no_grad():
        chain.start[:, 1] = UNLIKELY
        chain.transitions[:, 1, :, 0] = UNLIKELY
        edges = torch.tensor([[0.0] * 4, [1 - 1e-12] * 4]).double()
        uniform = torch.cat([torch.rand(5_000, 4).double(), edges])
        drawn = chain(torch.zeros(len(uniform), dtype=torch.long), uniform, None)
    assert 1 not in drawn[:, 0]
    assert 0 not in drawn[:, 2]
    assert drawn.max() == 2


def generator(persistence=0.9, **changes):
    sizes = {"length": 6, "levels": 2, "groups": 3, "condition_width": 0} | changes
    made = ChainGenerator([10, 4], persistence=persistence, **sizes)
    with torch.no_grad():
        made.shares[0].copy_(torch.tensor([0.1] * 10))
        made.ends[0] = torch.tensor([0.2, 0.8, 1.0])  # codes 0 and 1; 2 to 7; 8 and 9
    return made


def drawn_from(made, n=20_000):
    noise = torch.randn(n, made.noise_width, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        return made(noise)


def test_codes_are_those_of_their_groups():
    made = generator()
    with torch.no_grad():
        made.steps[0].start[:] = torch.tensor([0.0, UNLIKELY, UNLIKELY])
        made.steps[0].transitions[:] = torch.tensor([UNLIKELY, UNLIKELY, 0.0])
    found = drawn_from(made)[:, 0]
    assert set(found[:, 0].tolist()) == {0.0, 1.0}
    assert set(found[:, 1:].unique().tolist()) == {8.0, 9.0}
    assert (found[:, 0] == 0).float().mean() == pytest.approx(0.5, abs=0.02)


def test_the_level_of_a_series_chooses_its_chain_and_channels_go_together_by_it():
    made = generator()
    with torch.no_grad():
        made.levels.transitions[0, 0] = torch.tensor([[9.0, 0.0], [0.0, 9.0]])  # the same level in both channels
        for chain in made.steps:
            chain.start[:] = torch.tensor([[9.0, 0, 0], [0, 0, 9.0]])
            chain.transitions[:] = torch.tensor([[9.0, 0, 0], [0, 0, 9.0]])[:, None, None]
    found = drawn_from(made).mean(dim=2)
    assert np.corrcoef(found[:, 0], found[:, 1])[0, 1] > 0.9
    assert ((found[:, 0] < 2) | (found[:, 0] >= 8)).float().mean() > 0.99  # never between the two


@pytest.mark.parametrize("persistence", [0.0, 0.9])
def test_a_place_within_a_group_persists(persistence):
    made = generator(persistence)
    with torch.no_grad():
        made.steps[0].start[:] = made.steps[0].transitions[:] = torch.tensor([UNLIKELY, 0.0, UNLIKELY])
    found = drawn_from(made)[:, 0]
    assert np.corrcoef(found[:, 3], found[:, 4])[0, 1] == pytest.approx(persistence, abs=0.04)
    shares = torch.bincount(found[:, 5].long(), minlength=10)[2:8] / len(found)
    assert torch.allclose(shares, torch.full((6,), 1 / 6), atol=0.02)


def test_noise_is_as_wide_as_it_says():
    made = generator()
    assert made.noise_width == 2 * (1 + 2 * 6)
    assert drawn_from(made, 3).shape == (3, 2, 6)
    assert drawn_from(made, 0).shape == (0, 2, 6)
