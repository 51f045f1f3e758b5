"""Multilayer perceptrons: blocks that are distributions, classes with weights of their own, rows that stay apart."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch

from doublure.networks.mlp import MlpCritic, MlpGenerator
from doublure.private.independence import refuse_cross_record

torch.set_num_threads(1)


@dataclass
class Head:
    kind: str
    size: int


BLOCKS = [Head("softmax", 3), Head("tanh", 1), Head("softmax", 1), Head("softmax", 4)]
D = 9


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def generator(condition_width=2, *, blocks=BLOCKS, width=8, depth=2, seed=0):
    shape = {"condition_width": condition_width, "noise_width": 5, "width": width, "depth": depth}
    return MlpGenerator(blocks, generator=source(seed), **shape)


def critic(condition_width=2, *, rows=D, width=8, depth=2, seed=0):
    return MlpCritic(rows, condition_width=condition_width, width=width, depth=depth, generator=source(seed))


def classes(condition_width, codes):
    return torch.eye(condition_width)[codes] if condition_width else None


def weights(module):
    return torch.cat([value.reshape(-1) for value in module.state_dict().values()])


# -- the generator -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loud", [1.0, 1e4])
@pytest.mark.parametrize("condition_width", [0, 2])
@pytest.mark.parametrize("depth", [0, 2])
def test_every_block_is_a_distribution_or_a_number_within_bounds(loud, condition_width, depth):
    made = generator(condition_width, depth=depth)
    noise = torch.randn(40, 5, generator=source(1)) * loud
    rows = made(noise, classes(condition_width, [0, 1] * 20)).detach()
    assert rows.shape == (40, D)
    for block, part in zip(BLOCKS, rows.split([block.size for block in BLOCKS], dim=1), strict=True):
        if block.kind == "softmax":
            assert (part >= 0).all()
            torch.testing.assert_close(part.sum(1), torch.ones(40))
        else:
            assert (part.abs() <= 1).all()
            assert (part < 0).any()
    assert loud > 1 or rows.var(0)[[0, 3, 5]].min() > 0


def test_a_class_moves_its_marginals_directly():
    made = generator()
    with torch.no_grad():
        made.body[-1].weight.zero_()
        made.by_class.weight.copy_(torch.randn(D, 2, generator=source(3)))
    rows = made(torch.randn(4, 5, generator=source(1)), classes(2, [0, 1, 1, 0])).detach()
    logits = made.by_class.weight.T[[0, 1, 1, 0]]
    torch.testing.assert_close(rows[:, :3], torch.softmax(logits[:, :3], 1))
    torch.testing.assert_close(rows[:, 3], torch.tanh(logits[:, 3]))
    assert generator(0).by_class is None


# -- the critic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("condition_width", "inputs"), [(0, D), (1, 2 * D - D + 1), (8, 8 * D + 8), (9, D + 9)])
def test_few_classes_see_the_row_once_each_and_many_beside_it(condition_width, inputs):
    made = critic(condition_width)
    assert made.body[0].in_features == made.straight.in_features == inputs
    codes = [code % max(1, condition_width) for code in range(6)]
    assert made(torch.randn(6, D, generator=source(1)), classes(condition_width, codes)).shape == (6,)


def test_a_class_has_weights_of_its_own():
    made, rows = critic(3), torch.randn(6, D, generator=source(1))
    condition = classes(3, [0, 0, 1, 1, 2, 2])
    before = made(rows, condition).detach()
    with torch.no_grad():
        made.straight.weight[0, D : 2 * D] = 1.0  # what the second class's rows meet
    after = made(rows, condition).detach()
    torch.testing.assert_close(after - before, torch.cat([torch.zeros(2), rows[2:4].sum(1), torch.zeros(2)]))


def test_several_conditions_are_classes_side_by_side():
    """Two columns of two and three values: a row is seen under each of its own two values."""
    made, rows = critic(5), torch.randn(4, D, generator=source(1))
    condition = torch.cat([torch.eye(2)[[0, 1, 1, 0]], torch.eye(3)[[0, 2, 1, 1]]], dim=1)
    by_hand = torch.cat(
        [torch.cat([c[k] * row for k in range(5)] + [c]) for row, c in zip(rows, condition, strict=True)]
    )
    by_hand = by_hand.view(4, -1)
    expected = (made.body(by_hand) + made.straight(by_hand)).squeeze(1)
    torch.testing.assert_close(made(rows, condition), expected)


def test_many_classes_are_told_to_the_critic_too():
    made, row = critic(9), torch.randn(1, D, generator=source(1))
    scores = made(row.expand(9, D), torch.eye(9)).detach()
    assert len(set(scores.tolist())) == 9


def test_the_straight_path_begins_at_nothing_and_can_learn():
    made, rows = critic(), torch.randn(5, D, generator=source(1))
    condition = classes(2, [0, 1, 0, 1, 0])
    assert not made.straight.weight.any()
    made(rows, condition).sum().backward()
    assert made.straight.weight.grad.abs().min() > 0


def test_a_critic_of_depth_none_is_linear():
    made = critic(0, depth=0)
    one, other = torch.randn(2, 1, D, generator=source(1))
    torch.testing.assert_close(made(one + other) + made(0 * one), made(one) + made(other), rtol=1e-4, atol=1e-5)


# -- both --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("condition_width", [0, 2, 8, 9])
def test_no_record_sees_another(condition_width, depth):
    refuse_cross_record(critic(condition_width, depth=depth), (D,), condition_width)
    refuse_cross_record(generator(condition_width, depth=depth), (5,), condition_width)


@pytest.mark.parametrize("make", [generator, critic])
def test_first_weights_follow_from_the_given_source_alone(make):
    found = []
    for seed in (0, 1):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            found.append(weights(make(seed=4)))
    assert torch.equal(*found)
    assert not torch.equal(found[0], weights(make(seed=5)))


@pytest.mark.parametrize("make", [generator, critic])
def test_first_weights_are_hes(make):
    """He et al. 2015, equation 10, and no bias."""
    for layer in make(width=400, depth=2).body:
        if isinstance(layer, torch.nn.Linear) and layer.weight.numel() > 2000:
            assert float(layer.weight.detach().std()) == pytest.approx(math.sqrt(2 / layer.in_features), rel=0.08)
            assert not layer.bias.any()
