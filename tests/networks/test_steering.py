"""A generator that knows how frequent its conditions are."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doublure.networks.shares import WithShares
from doublure.networks.steering import ConditionPrior
from doublure.networks.tree import TreeGenerator


class Echo(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, noise: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        return noise * self.weight


def test_open_conditions_are_as_frequent_as_their_shares_and_known_ones_stay() -> None:
    made = WithShares(Echo(), [2, 3]).knowing(torch.tensor([1.0, 3.0, 5.0, 0.5, 4.5]))
    assert made.shares.tolist() == pytest.approx([0.25, 0.75, 0.5, 0.05, 0.45])
    known = torch.zeros(20_000, 5)
    known[:, 1] = 1.0
    drawn = made.draw_conditions(known, torch.Generator().manual_seed(1))
    assert torch.equal(drawn[:, :2], known[:, :2])
    assert drawn[:, 2:].mean(0).tolist() == pytest.approx([0.5, 0.05, 0.45], abs=0.02)
    assert (drawn[:, 2:].sum(1) == 1).all()
    assert made.draw_conditions(known[:0], torch.Generator()).shape == (0, 5)


def test_weights_of_an_earlier_version_are_taken_up_with_equal_shares() -> None:
    old, new = Echo(), WithShares(Echo(), [4])
    with torch.no_grad():
        old.weight.fill_(7.0)
    new.load_state_dict(old.state_dict())
    assert new(torch.ones(1)).tolist() == [7.0]
    assert new.shares.tolist() == [0.25] * 4
    again = WithShares(Echo(), [4])
    again.load_state_dict(new.knowing(torch.tensor([1.0, 1, 1, 5])).state_dict())
    assert again.shares.tolist() == pytest.approx([0.125, 0.125, 0.125, 0.625])


def test_of_several_values_that_will_do_each_is_as_frequent_as_its_share() -> None:
    made = WithShares(Echo(), [3, 2]).knowing(torch.tensor([0.2, 0.3, 0.5, 0.5, 0.5]))
    known = torch.tensor([1.0, 0, 1, 0, 0]).repeat(20_000, 1)
    drawn = made.draw_conditions(known, torch.Generator().manual_seed(1))
    assert drawn[:, :3].mean(0).tolist() == pytest.approx([2 / 7, 0, 5 / 7], abs=0.02)


def test_who_offers_what() -> None:
    tree = TreeGenerator(3, [2])
    assert isinstance(tree, ConditionPrior)
    assert isinstance(WithShares(Echo(), [2]), ConditionPrior)
    assert not isinstance(Echo(), ConditionPrior)
