"""A generator that knows how frequent its conditions are beside one another."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doublure.networks.shares import WithJointShares
from doublure.networks.steering import ConditionPrior

TOGETHER = torch.tensor([0.1, 0.2, 0.3, 0.05, 0.05, 0.3])  # of a grouped 2 x 3
WITHIN = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.2, 0.8]])


def made() -> WithJointShares:
    """Return conditions of 2, 2 and 3 values, of which the first and the last make groups."""
    return WithJointShares(nn.Identity(), [2, 2, 3], [True, False, True]).knowing_groups(TOGETHER, WITHIN)


def drawn(known: torch.Tensor) -> torch.Tensor:
    """Return how frequent each combination is, ``(2, 2, 3)``."""
    found = made().draw_conditions(known, torch.Generator().manual_seed(1))
    assert (found.sum(1) == 3).all()
    first, middle, last = (block.argmax(1) for block in torch.split(found, [2, 2, 3], dim=1))
    counts = torch.bincount(first * 6 + middle * 3 + last, minlength=12)
    return counts.reshape(2, 2, 3) / len(known)


def expected() -> torch.Tensor:
    return TOGETHER.reshape(2, 1, 3) * WITHIN.reshape(2, 3, 2).transpose(1, 2)


def test_conditions_are_as_frequent_together_as_they_are_known_to_be() -> None:
    assert isinstance(made(), ConditionPrior)
    assert (drawn(torch.zeros(60_000, 7)) - expected()).abs().max() < 0.01
    assert made().draw_conditions(torch.zeros(0, 7), torch.Generator()).shape == (0, 7)


@pytest.mark.parametrize(("asked", "index"), [(2, (slice(None), 0)), (3, (slice(None), 1)), (0, (0,)), (6, (..., 2))])
def test_what_is_asked_for_says_how_frequent_the_others_are(asked: int, index: tuple) -> None:
    known = torch.zeros(60_000, 7)
    known[:, asked] = 1.0
    wanted = torch.zeros(2, 2, 3)
    wanted[index] = expected()[index]
    assert (drawn(known) - wanted / wanted.sum()).abs().max() < 0.01


def test_of_several_that_will_do_each_is_as_frequent_as_beside_the_others() -> None:
    known = torch.zeros(60_000, 7)
    known[:, [4, 6]] = 1.0
    wanted = expected()
    wanted[:, :, 1] = 0
    assert (drawn(known) - wanted / wanted.sum()).abs().max() < 0.01


def test_weights_are_kept_and_taken_up() -> None:
    again = WithJointShares(nn.Identity(), [2, 2, 3], [True, False, True])
    again.load_state_dict(made().state_dict())
    assert torch.equal(again.together, TOGETHER)
    assert torch.equal(again.within, WITHIN)
