"""Updates of units that take several steps of a critic by themselves: as a plain loop makes them, clipped once."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from planting import plant
from torch import nn

from doublure.errors import SettingError
from doublure.private.clipping import ConstantSchedule
from doublure.private.gradients import CriticLoss, LocalSteps, LocalUpdates
from doublure.private.gradients.local_updates import UnitUpdate
from doublure.private.queries.distances import DistanceSettings, MeasuredDistances
from doublure.private.queries.lot_gradients import CriticGradients, CriticSettings
from doublure.private.records import PrivateRecords

C, UNIT = 0.3, [0, 0, 1, 2, 2, 2, 3]


class Critic(nn.Module):
    """Two layers."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))

    def forward(self, x, condition=None):
        return self.body(x).squeeze(1)


def records(rows=None, unit=UNIT):
    rows = np.random.default_rng(1).random((len(UNIT), 4), dtype=np.float32) if rows is None else rows
    return PrivateRecords(rows, np.array(unit), max(unit) + 1, lambda some: (some, None))


def asked(critic, steps=3, rate=0.05, bound=C, **more):
    settings = CriticSettings(
        loss=CriticLoss(kind="wgan", gradient_penalty=0.0), schedule=ConstantSchedule(max_grad_norm=bound),
        expected_units=4.0, paired=False, local=LocalSteps(count=steps, rate=rate),
    )  # fmt: skip
    return CriticGradients(settings, **more).at(0, critic, None)


def by_hand(critic, of, steps, rate):
    """Return each unit's update before it is clipped, in float64."""
    updates = []
    for unit in range(of.n_units):
        own, found = copy.deepcopy(critic).double(), []
        rows = of.lot(np.array([unit]))[0].double()
        for _ in range(steps):
            gradients = torch.autograd.grad(-own(rows).sum(), list(own.parameters()))
            found.append(torch.cat([each.reshape(-1) for each in gradients]))
            with torch.no_grad():
                for parameter, gradient in zip(own.parameters(), gradients, strict=True):
                    parameter -= rate * gradient
        updates.append(torch.stack(found).mean(0))
    return torch.stack(updates)


def check_as_by_hand(steps, rate=0.05):
    critic, of = Critic(), records()
    before = copy.deepcopy(critic.state_dict())
    answer = asked(critic, steps, rate).answer(of, sample_rate=1.0)
    updates = by_hand(critic, of, steps, rate)
    lengths = updates.norm(dim=1)
    assert (lengths > C).any()
    short = asked(critic, steps, rate, bound=100.0).answer(of, sample_rate=1.0).total
    assert np.allclose(short, updates.sum(0).numpy(), rtol=0, atol=2e-5)  # where nothing is clipped
    wanted = (updates * (C / lengths).clamp(max=1)[:, None]).sum(0)
    assert np.allclose(answer.total, wanted.numpy(), rtol=0, atol=5e-6)
    assert answer.sensitivity.l2 == C
    assert all(torch.equal(before[name], value) for name, value in critic.state_dict().items())


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_sum_is_that_of_a_plain_loop(steps):
    check_as_by_hand(steps)


MUTANTS = {
    "the critic is moved on from unit to unit": ("self._moved.load_state_dict(self._critic.state_dict())", "None"),
    "units send a sum": ("torch.stack(found).mean(dim=0)", "torch.stack(found).sum(dim=0)"),
    "units send their last gradient": ("torch.stack(found).mean(dim=0)", "found[-1]"),
    "units climb": ("self._steps.rate * own.view_as(parameter)", "-self._steps.rate * own.view_as(parameter)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_update_is_caught(monkeypatch, mutant):
    plant(monkeypatch, LocalUpdates, "_update", MUTANTS[mutant])
    with pytest.raises(AssertionError):
        check_as_by_hand(5, 0.5)


def check_one_unit_more(rate):
    critic, rows = Critic(), records()._compact
    more = np.concatenate([rows, np.full((2, 4), 1e3, dtype=np.float32)])
    one, two = (
        asked(critic, rate=rate).answer(each, sample_rate=1.0).total.astype(np.float64)
        for each in (records(), records(more, [*UNIT, 4, 4]))
    )
    assert 0 < np.linalg.norm(two - one) <= C * (1 + 1e-6)


@pytest.mark.parametrize("rate", [1e-3, 0.5])
def test_one_unit_more_moves_the_sum_by_its_bound_at_most(rate):
    check_one_unit_more(rate)


def test_an_update_that_looks_shorter_than_it_is_is_caught(monkeypatch):
    plant(monkeypatch, UnitUpdate, "norms", ("(1 + _ROUNDING)", "1e-3"))
    with pytest.raises(AssertionError):
        check_one_unit_more(1e-3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_an_update_that_is_not_finite_counts_for_zero(bad):
    critic, rows = Critic(), records()._compact
    spoilt = np.concatenate([rows, np.full((1, 4), bad, dtype=np.float32)])
    one, two = (asked(critic).answer(each, sample_rate=1.0).total for each in (records(), records(spoilt, [*UNIT, 4])))
    assert np.isfinite(two).all()
    assert np.allclose(one, two, atol=C + 1e-6)
    if not np.isfinite(bad):
        assert np.array_equal(one, two)


def test_an_empty_lot_is_zero():
    empty = PrivateRecords(
        np.zeros((0, 4), dtype=np.float32), np.zeros(0, dtype=np.int64), 0, lambda some: (some, None)
    )
    total = asked(Critic()).answer(empty, sample_rate=1.0).total
    assert total.dtype == np.float32
    assert not total.any()


def test_the_accountant_is_fed_with_updates():
    critic, of, found = Critic(), records(), []
    measured = MeasuredDistances(DistanceSettings(count=4, orders=(2,), gamma=1e-3), noise_multiplier=1.0, steps=1)
    measured.charge = lambda lengths, **_: found.append(sorted(lengths))
    asked(critic, distances=measured).answer(of, sample_rate=1.0)
    wanted = sorted((by_hand(critic, of, 3, 0.05).norm(dim=1) / C).clamp(max=1).tolist())
    assert found[0] == pytest.approx(wanted, rel=1e-4)


def test_updates_are_not_clipped_together():
    with pytest.raises(SettingError, match="not clipped together"):
        CriticSettings(
            loss=CriticLoss(kind="wgan", gradient_penalty=0.0), schedule=ConstantSchedule(max_grad_norm=C),
            expected_units=4.0, per_batch=True, local=LocalSteps(count=2, rate=0.1),
        )  # fmt: skip
    with pytest.raises(SettingError, match="at least 1"):
        LocalSteps(count=0, rate=0.1)
