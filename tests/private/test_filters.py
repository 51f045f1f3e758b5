"""Individual filters: no unit ever costs more than the bound, whatever its gradients; short ones stay for longer."""

from __future__ import annotations

import pickle
from itertools import repeat
from typing import Any

import numpy as np
import pytest
import torch
from critic_steps import critic_steps
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_noise import ReplayNoise
from scipy.stats import norm
from torch import nn

from doublure.errors import NotAsPriced, RunFolderError, SettingError
from doublure.private import accounting, filters
from doublure.private.accounting import GaussianEvent, event_from_json, event_to_json
from doublure.private.clipping import ConstantSchedule, GeometricSchedule
from doublure.private.filters import UnitFilters
from doublure.private.gradients import CriticLoss
from doublure.private.queries import lot_gradients
from doublure.private.queries.query import Answer
from doublure.private.records import PrivateRecords

C = 2.0
LENGTHS = st.one_of(st.floats(0, 3 * C), st.sampled_from([0.0, C, 1e30, 1e-30, float("inf"), float("nan")]))


class Linear(nn.Module):
    """D(x) = ⟨w, x⟩, whose gradient is the generated record less the real one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, rows: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        return self.score(rows).squeeze(1)


def told(lengths: Any, bound: int, schedule: Any = None, store: Any = None) -> Any:
    """Return what each unit adds in each step, ``(T, n)`` over C_t, of the production's sum without its noise.

    Args:
        lengths: ``(T, n)``: unit i's gradient in a step points along weight i, and is so long.
        bound: B.
        schedule: C_t.
        store: Of what was spent.
    """
    lengths = np.asarray(lengths, dtype=np.float64)
    steps, units = lengths.shape
    schedule = schedule or ConstantSchedule(max_grad_norm=C)
    records = PrivateRecords(torch.zeros(units, units), np.arange(units), units, lambda rows: (rows, None))
    step = critic_steps(
        records,
        {"noise_multiplier": 1.0, "steps": steps, "filter_steps": bound, "loss": CriticLoss(kind="wgan"),
         "schedule": schedule, "expected_units": 1.0},
        noise=ReplayNoise(repeat(np.zeros(units))), allow_test_noise=True, spending=store,
    )  # fmt: skip
    critic = Linear(units)
    rows = [torch.diag(torch.from_numpy(row).float()) for row in lengths]
    seen = [step.gradient(critic, lambda *_, row=row: row).numpy() / schedule.at(t) for t, row in enumerate(rows)]
    return np.stack(seen).astype(np.float64)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4).flatmap(
        lambda units: st.lists(st.lists(LENGTHS, min_size=units, max_size=units), min_size=1, max_size=12)
    ),
    st.integers(1, 4),
)
def test_no_unit_adds_more_than_its_bound(lengths: list[list[float]], bound: int) -> None:
    """Counted from outside: from the sums that leave, not from what the filters say they hold."""
    found = told(lengths, bound)
    assert np.isfinite(found).all()
    assert (found**2 <= 1 + 1e-6).all()
    assert ((found**2).sum(axis=0) <= bound).all()


@pytest.mark.parametrize("length", [C, 50 * C])
def test_a_unit_at_full_length_is_cut_off_at_its_bound(length: float) -> None:
    found = told(np.full((7, 1), length), 3)[:, 0]
    assert found[:3] == pytest.approx([1, 1, 1], abs=1e-4)
    assert (np.abs(found[3:]) < 1e-2).all()  # what was clipped a hair below C leaves a hair


def test_a_unit_of_half_the_length_is_used_four_times_as_often_and_leaves_no_other() -> None:
    found = told(np.tile([C / 2, C], (12, 1)), 2)
    assert found[:7, 0] == pytest.approx([0.5] * 7, abs=1e-5)
    assert (found[9:, 0] < 1e-3).all()
    assert found[:2, 1] == pytest.approx([1, 1], abs=1e-4)


def test_the_last_part_is_shortened_to_what_is_left() -> None:
    found = told(np.full((4, 1), 0.8 * C), 1)[:, 0]
    assert found[:2] == pytest.approx([0.8, 0.6], abs=1e-5)
    assert (np.abs(found[2:]) < 1e-3).all()


def test_lengths_are_measured_in_the_bound_of_their_step() -> None:
    schedule = GeometricSchedule(max_grad_norm=C, decay=0.5, floor=1e-3)
    found = told(np.full((4, 1), 1e3), 2, schedule)[:, 0]
    assert found[:2] == pytest.approx([1, 1], abs=1e-4)
    assert (np.abs(found[2:]) < 1e-2).all()


def test_a_fault_that_ignores_filters_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count from outside sees it, though the filters themselves report that they are there."""
    monkeypatch.setattr(UnitFilters, "shares", lambda self, units, step: np.ones(units))
    monkeypatch.setattr(UnitFilters, "charge", lambda self, lengths, step: None)
    assert (told(np.full((5, 1), C), 2)[:, 0] ** 2).sum() > 4.9


def test_a_step_without_filters_is_not_what_was_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        lot_gradients, "Answer", lambda **given: Answer(**{k: v for k, v in given.items() if k != "filter_steps"})
    )
    with pytest.raises(NotAsPriced):
        told(np.ones((2, 1)), 1)


# -- the price ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("noise", "bound", "steps"), [(9.0, 60, 180), (1.5, 2, 6), (40.0, 600, 100_000)])
def test_the_price_is_that_of_one_gaussian_mechanism(noise: float, bound: int, steps: int) -> None:
    """δ(ε) of μ-Gaussian DP in closed form (Dong, Roth, Su 2022; Balle, Wang 2018), with μ = √B/σ."""
    event = GaussianEvent(noise_multiplier=noise, steps=steps, filter_steps=bound)
    mu = np.sqrt(bound) / noise
    for epsilon in (0.5, 2.0, 6.0):
        exact = norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert accounting.delta_of([event], epsilon) == pytest.approx(exact, rel=5e-3, abs=1e-12)
    assert event.paid_steps == bound


def test_fewer_steps_than_the_bound_cost_what_they_are() -> None:
    few = GaussianEvent(noise_multiplier=3.0, steps=4, filter_steps=10)
    assert accounting.epsilon_of([few], 1e-6) == accounting.epsilon_of(
        [GaussianEvent(noise_multiplier=3.0, steps=4)], 1e-6
    )


def test_lots_have_no_filters() -> None:
    with pytest.raises(SettingError, match="full batches"):
        GaussianEvent(noise_multiplier=1.0, sample_rate=0.5, filter_steps=3)


def test_an_event_is_read_as_it_was_written() -> None:
    event = GaussianEvent(noise_multiplier=2.0, steps=9, filter_steps=3)
    assert event_from_json(event_to_json(event)) == event
    assert "filter_steps" not in event_to_json(GaussianEvent(noise_multiplier=2.0))


# -- what was spent ----------------------------------------------------------------------------------------------------


class Kept:
    """Storage as a run's internal folder is."""

    def __init__(self) -> None:
        self.held: tuple[Any, int] | None = None

    def load(self, units: int) -> tuple[Any, int] | None:
        return self.held

    def save(self, spent: Any, steps: int) -> None:
        self.held = spent.copy(), steps


def test_what_was_spent_is_kept_before_the_step_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    store, paid = Kept(), []
    records = PrivateRecords(torch.full((1, 1), -5.0), np.arange(1), 1, lambda rows: (rows, None))
    step = critic_steps(
        records,
        {"noise_multiplier": 1.0, "steps": 3, "filter_steps": 2, "loss": CriticLoss(kind="wgan"), "paired": False,
         "schedule": ConstantSchedule(max_grad_norm=C), "expected_units": 1.0},
        authorise=lambda number: paid.append((number, store.held)), spending=store,
    )  # fmt: skip
    for _ in range(3):
        step.gradient(Linear(1), lambda size, _: None)
    assert [(number, held[1]) for number, held in paid] == [(1, 1), (2, 2), (3, 3)]
    assert [held[0][0] for _, held in paid] == pytest.approx([1, 2, 2], abs=1e-5)
    assert all(held[0][0] <= 2 * (1 + 1e-8) for _, held in paid)


def test_a_session_goes_on_with_what_was_spent() -> None:
    whole = UnitFilters(3)
    store = Kept()
    for step in range(6):
        one = UnitFilters(3, store)  # another session each step
        lengths = np.minimum(np.array([0.7, 1.0, 0.0]), one.shares(3, step))
        assert one.shares(3, step) == pytest.approx(whole.shares(3, step), abs=0)
        one.charge(lengths, step)
        whole.charge(lengths, step)


@pytest.mark.parametrize("held", [None, (np.zeros(3), 1), (np.zeros(2), 5)], ids=["gone", "older", "of others"])
def test_a_session_that_lacks_what_was_spent_is_refused(held: Any) -> None:
    store = Kept()
    store.held = held
    with pytest.raises(RunFolderError, match="what units have spent"):
        UnitFilters(3, store).shares(3, 2)


def test_rounding_never_lets_a_unit_pass() -> None:
    """0.1² a thousand times and more, in exact rational numbers beside."""
    from fractions import Fraction

    found, spent = UnitFilters(7), Fraction(0)
    for step in range(2_000):
        length = np.minimum(np.array([0.1]), found.shares(1, step))
        found.charge(length, step)
        spent += Fraction(float(length[0])) ** 2
    assert spent <= 7
    assert spent > 7 - Fraction(1, 10**6)


def test_filters_show_and_hand_over_nothing() -> None:
    found = UnitFilters(5)
    found.shares(2, 0)
    found.charge(np.array([0.123456, 1.0]), 0)
    assert repr(found) == "UnitFilters(steps=5)"
    with pytest.raises(TypeError, match="never copied"):
        pickle.dumps(found)
    assert filters.UnitFilters.__slots__ == ("_charged", "_spent", "_store", "steps")
