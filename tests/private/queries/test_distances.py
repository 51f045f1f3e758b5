"""Gradient distances: what the mechanism feeds the Bayesian accountant with, and what it never leaves out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from critic_steps import UNITS, Critic, critic_steps, people
from replay_noise import ReplayNoise
from scipy.stats import binom
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.bayesian import BayesianAccountant, log_moment
from doublure.private.clipping import (
    ConstantSchedule,
    GeometricSchedule,
    batch_clip_distance,
    batch_clip_distances,
    clipped_norms,
    clipped_sum,
)  # fmt: skip
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs, per_record_reference
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries import distances
from doublure.private.queries.distances import DistanceSettings
from doublure.private.queries.lot_gradients import unpaired
from doublure.private.records import PrivateRecords
from doublure.private.sampling import FixedSizeSampler, PoissonSampler

NAN = float("nan")
ASKED = DistanceSettings(count=5, orders=(1, 4, 16), gamma=1e-12)


def settings(**changes: object) -> dict[str, object]:
    return {
        "loss": CriticLoss(kind="wgan"), "schedule": ConstantSchedule(max_grad_norm=2.0), "noise_multiplier": 1.5,
        "sample_rate": 0.5, "steps": 6, "expected_units": 4.0, "paired": False, "distances": ASKED,
    } | changes  # fmt: skip


def step_of(body: Tensor, unit: np.ndarray | None = None, **changes: object) -> CriticSteps:
    unit = np.arange(len(body)) if unit is None else unit
    records = PrivateRecords(body, unit, int(unit.max(initial=-1)) + 1, lambda rows: (rows, None))
    more = {key: changes.pop(key) for key in ("taken", "noise", "authorise", "allow_test_noise") if key in changes}
    return critic_steps(records, settings(**changes), **more)


class Fed:
    """Records what accountants are fed with."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[list[float], float, float]] = []
        self.lost: list[int] = []
        step, lost = BayesianAccountant.step, BayesianAccountant.lost

        def fed(accountant, distances, noise_std, sample_rate, steps=1):
            self.steps.append((list(distances), noise_std, sample_rate))
            step(accountant, distances, noise_std, sample_rate, steps)

        def missed(accountant, noise_std, sample_rate, steps):
            self.lost.append(steps)
            lost(accountant, noise_std, sample_rate, steps)

        patch.setattr(BayesianAccountant, "step", fed)
        patch.setattr(BayesianAccountant, "lost", missed)


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> Fed:
    torch.set_num_threads(1)
    return Fed(monkeypatch)


def own_norms(critic: nn.Module, body: Tensor) -> np.ndarray:
    return per_record_reference(critic, CriticLoss(kind="wgan"), RecordPairs(real=body)).norm(dim=1).numpy()


# -- a distance is how far one unit more moves what is noised ----------------------------------------------------------


def test_a_distance_is_a_units_own_clipped_norm_over_the_bound(fed: Fed) -> None:
    body, critic = people(), Critic()
    bound = float(np.median(own_norms(critic, body)))  # some are clipped, some are not
    expected = np.minimum(own_norms(critic, body) / bound, 1.0)
    assert 1.0 in expected
    assert expected.min() < 0.9
    step = step_of(body, schedule=ConstantSchedule(max_grad_norm=bound), distances=replace(ASKED, count=UNITS))
    step.gradient(critic, unpaired)
    found, noise_std, sample_rate = fed.steps[0]
    assert sorted(found) == pytest.approx(sorted(expected), rel=1e-4)
    assert (noise_std, sample_rate) == (1.5, 0.5)


def test_it_is_how_far_the_sum_moves_whatever_else_is_in_it() -> None:
    body, critic = people(), Critic()
    gradients = RecordGradients(critic, CriticLoss(kind="wgan"))
    lengths = clipped_norms(gradients.lot(RecordPairs(real=body)), max_grad_norm=1.0)
    for others in (slice(0, 0), slice(1, 4), slice(1, UNITS)):
        rest, whole = (clipped_sum(gradients.lot(RecordPairs(real=part)), max_grad_norm=1.0).total
                       for part in (body[others], torch.cat([body[:1], body[others]])))  # fmt: skip
        assert float((whole - rest).norm()) == pytest.approx(float(lengths[0]), rel=1e-4)


def test_a_unit_with_several_records_is_one_distance(fed: Fed) -> None:
    """The accountant's input for user-level accounting: all that one user adds, clipped once."""
    body, critic = people(), Critic()
    unit = np.repeat(np.arange(4), 3)
    sums = per_record_reference(critic, CriticLoss(kind="wgan"), RecordPairs(real=body)).view(4, 3, -1).sum(1)
    step = step_of(body, unit, schedule=ConstantSchedule(max_grad_norm=1e3), distances=replace(ASKED, count=4))
    step.gradient(critic, unpaired)
    assert sorted(fed.steps[0][0]) == pytest.approx(sorted((sums.norm(dim=1) / 1e3).tolist()), rel=1e-4)


@pytest.mark.parametrize("bound", [0.5, 3.0, 1e6])
def test_clipped_together_it_is_how_far_the_mean_moves(bound: float) -> None:
    body, critic = people(), Critic()
    gradients = RecordGradients(critic, CriticLoss(kind="wgan"))
    each = per_record_reference(critic, CriticLoss(kind="wgan"), RecordPairs(real=body))

    def clipped(rows: Tensor) -> Tensor:
        total = rows.sum(0) / 4.0
        return total * min(1.0, bound / float(total.norm()))

    without, alone = gradients.lot(RecordPairs(real=body[1:6])), gradients.lot(RecordPairs(real=body[:1]))
    moved = batch_clip_distance(without, alone, max_grad_norm=bound, per_batch=4.0)
    expected = 4.0 * float((clipped(each[:6]) - clipped(each[1:6])).norm())
    assert moved == pytest.approx(expected, rel=1e-4)
    assert moved <= 2 * 4.0 * bound


@pytest.mark.parametrize("bound", [0.5, 3.0, 1e6])
@pytest.mark.parametrize("grouped", [False, True])
def test_all_lots_at_once_move_as_one_after_the_other(bound: float, grouped: bool) -> None:
    """One pass gives what a loop over the lots gives, clipped or not, of units with one record or with two."""
    body, lots = people(12), [[0, 1, 2], [], [3, 4, 5, 3], [1]]
    gradients = RecordGradients(Critic(), CriticLoss(kind="wgan"))

    def lot(units: list[int]):
        if not grouped:
            return gradients.lot(RecordPairs(real=body[units]))
        rows = [2 * unit + record for unit in units for record in (0, 1)]
        return gradients.lot(RecordPairs(real=body[rows]), group=torch.arange(len(rows)) // 2, groups=len(units))

    together, own = lot([unit for units in lots for unit in units]), {"max_grad_norm": bound, "per_batch": 4.0}
    before, more = together.sums([len(units) for units in lots]), lot([5, 4, 0, 2]).sums([1, 1, 1, 1])
    expected = [
        batch_clip_distance(lot(units), lot([one]), **own) for units, one in zip(lots, (5, 4, 0, 2), strict=True)
    ]
    assert batch_clip_distances(before, more, **own).tolist() == pytest.approx(expected, rel=1e-4)
    assert min(expected) > 0


def test_a_lot_with_a_gradient_that_is_not_finite_is_looked_at_unit_by_unit(
    fed: Fed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a rate of 1 every lot but the unit's own has it, so that one pass says nothing of them."""
    asked, slow = [], distances.batch_clip_distance
    monkeypatch.setattr(
        distances, "batch_clip_distance", lambda *lots, **named: asked.append(1) or slow(*lots, **named)
    )
    body = people(4)
    changes = {"per_batch": True, "sample_rate": 1.0, "distances": replace(ASKED, count=11)}
    step_of(body, **changes).gradient(Critic(), unpaired)
    assert not asked
    body[3] = NAN
    step_of(body, **changes).gradient(Critic(), unpaired)
    assert len(asked) == 11
    found = fed.steps[1][0]
    assert all(0 <= one <= 1 for one in found)
    finite = people(4)[:3]
    each = per_record_reference(Critic(), CriticLoss(kind="wgan"), RecordPairs(real=finite)).sum(0)
    largest = 2.0 * 4.0
    of_units = [0.0] + [
        float((_short(each, largest) - _short(each - one, largest)).norm()) / (2 * largest)
        for one in per_record_reference(Critic(), CriticLoss(kind="wgan"), RecordPairs(real=finite))
    ]
    assert all(min(abs(one - other) for other in of_units) < 1e-4 for one in found)


def _short(vector: Tensor, largest: float) -> Tensor:
    return vector * min(1.0, largest / float(vector.norm()))


def test_one_unit_can_turn_a_sum_that_is_clipped_together_round() -> None:
    """Why its sensitivity is 2 C, however large the lot: C is only half of what one record can do."""
    gradients = RecordGradients(Straight(), CriticLoss(kind="wgan"))
    many, one = torch.ones(500, 1), torch.full((1, 1), -1e6)
    sums = [
        clipped_sum(gradients.lot(RecordPairs(real=rows)), max_grad_norm=0.5, per_batch=500.0)
        for rows in (many, torch.cat([many, one]))
    ]
    assert {made.sensitivity for made in sums} == {2 * 0.5 * 500}
    assert float((sums[1].total - sums[0].total).norm()) == pytest.approx(2 * 0.5 * 500, rel=1e-5)
    each = [
        clipped_sum(gradients.lot(RecordPairs(real=rows)), max_grad_norm=0.5) for rows in (many, torch.cat([many, one]))
    ]
    assert float((each[1].total - each[0].total).norm()) == pytest.approx(0.5, rel=1e-3)


def test_clipped_together_a_distance_is_that_of_one_unit_among_all_others(fed: Fed) -> None:
    """At a rate of 1 everybody else is in each lot, so that a unit has one distance."""
    body, bound, n = people(3), 0.3, 2.5
    each = per_record_reference(Critic(), CriticLoss(kind="wgan"), RecordPairs(real=body)).double()

    def clipped(rows: Tensor) -> Tensor:
        return rows.sum(0) * min(1.0, n * bound / float(rows.sum(0).norm()))

    of_units = [
        float((clipped(each) - clipped(each[[other for other in range(3) if other != unit]])).norm()) / (2 * bound * n)
        for unit in range(3)
    ]
    assert max(of_units) - min(of_units) > 0.01
    asked = replace(ASKED, count=60)
    step_of(
        body,
        per_batch=True,
        schedule=ConstantSchedule(max_grad_norm=bound),
        expected_units=n,
        sample_rate=1.0,
        distances=asked,
    ).gradient(Critic(), unpaired)
    (found, _, _) = fed.steps[0]
    nearest = [min(range(3), key=lambda unit: abs(of_units[unit] - one)) for one in found]
    assert found == pytest.approx([of_units[unit] for unit in nearest], rel=1e-4)
    assert set(nearest) == {0, 1, 2}  # but once in 10^10 times


class Straight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(1, 1, bias=False)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.line(x).squeeze(1)


def test_batches_are_measured_with_fresh_lots(fed: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, lot = [], PoissonSampler.lot
    monkeypatch.setattr(PoissonSampler, "lot", lambda sampler: drawn.append(lot(sampler)) or drawn[-1])
    body, critic = people(), Critic()
    step = step_of(body, per_batch=True, schedule=ConstantSchedule(max_grad_norm=0.5))
    for _ in range(3):
        step.gradient(critic, unpaired)
    assert len(drawn) == 3 * (ASKED.count + 1)
    assert len({tuple(one) for one in drawn}) > 10
    for found, _, _ in fed.steps:
        assert len(found) == ASKED.count
        assert all(0 < one <= 1 for one in found)


def test_the_noise_of_a_lot_that_is_clipped_together_is_made_for_2_c() -> None:
    critic = Straight()
    noise = ReplayNoise([torch.zeros(1)])
    step = step_of(
        torch.ones(4, 1) * 1e4, per_batch=True, schedule=ConstantSchedule(max_grad_norm=0.5), noise=noise,
        allow_test_noise=True, distances=None, sample_rate=1.0,
    )  # fmt: skip
    found = step.gradient(critic, unpaired)
    ((size, std),) = noise.asked
    assert (size, std / 4.0) == (1, pytest.approx(1.5 * 2 * 0.5))
    assert float(found.norm()) == pytest.approx(0.5, rel=1e-5)


def test_the_distance_follows_the_clipping_schedule(fed: Fed) -> None:
    """Relative to C_t, as the noise is: a step with a smaller C costs the same where everything is clipped."""
    body, critic = people() * 100, Critic()
    step = step_of(body, schedule=GeometricSchedule(max_grad_norm=1.0, decay=0.1, floor=1e-9))
    for _ in range(3):
        step.gradient(critic, unpaired)
    assert [found for found, _, _ in fed.steps] == [[1.0] * ASKED.count] * 3


# -- nothing is left out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [0, 2])
@pytest.mark.parametrize("per_batch", [False, True])
@pytest.mark.filterwarnings("ignore:all sampled distances")  # of two units they are, now and then, and that is said
def test_too_few_units_count_as_the_largest_distance(fed: Fed, units: int, per_batch: bool) -> None:
    """How many there are is private: the step is taken all the same, and what is missing is charged in full."""
    step = step_of(people(units), per_batch=per_batch)
    step.gradient(Critic(), unpaired)
    (found, _, _) = fed.steps[0]
    assert len(found) == ASKED.count
    if not units or not per_batch:
        assert found.count(1.0) >= ASKED.count - units


def test_a_gradient_that_is_not_finite_moves_nothing(fed: Fed) -> None:
    body = people()
    body[3] = NAN
    for per_batch in (False, True):
        step_of(body, per_batch=per_batch, distances=replace(ASKED, count=UNITS)).gradient(Critic(), unpaired)
    assert fed.steps[0][0].count(0.0) == 1
    assert all(math.isfinite(one) for found, _, _ in fed.steps for one in found)


def test_each_step_is_measured_once_and_beside_its_lot(fed: Fed, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    for owner, name in ((FixedSizeSampler, "lot"), (PoissonSampler, "lot")):
        drawn = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda self, d=drawn, o=owner: order.append(o.__name__) or d(self))
    noise = OsKeyedNoise.normal
    monkeypatch.setattr(OsKeyedNoise, "normal", lambda *a, **k: order.append("noise") or noise(*a, **k))
    step = step_of(people(), authorise=lambda number: order.append(f"authorise {number}"))
    for _ in range(3):
        step.gradient(Critic(), unpaired)
    each = ["FixedSizeSampler", "PoissonSampler"]
    assert order == [act for step in (1, 2, 3) for act in (*each, f"authorise {step}", "noise")]
    assert len(fed.steps) == step.estimate.steps_taken == step.taken == 3
    assert fed.lost == []


def test_steps_of_an_interrupted_run_that_nobody_kept_cost_the_most(fed: Fed) -> None:
    body, critic = people() * 0.01, Critic()  # short gradients: what is measured costs much less
    first = step_of(body, schedule=ConstantSchedule(max_grad_norm=50.0))
    first.gradient(critic, unpaired)
    first.gradient(critic, unpaired)
    kept = first.estimate.state()
    # Two more were authorised and lost in a crash.
    resumed = step_of(body, schedule=ConstantSchedule(max_grad_norm=50.0), taken=4)
    resumed.restore(kept)
    resumed.gradient(critic, unpaired)
    resumed.gradient(critic, unpaired)
    assert fed.lost == [2]
    accountant = resumed.estimate
    assert accountant.steps_taken == resumed.taken == 6
    worst = [log_moment(np.array([1 / 1.5]), order, 0.5)[0] for order in ASKED.orders]
    assert np.all(accountant.costs >= 2 * np.array(worst))
    assert np.all(accountant.costs < 2.5 * np.array(worst))
    # One step alone counts, too.
    again = step_of(body, schedule=ConstantSchedule(max_grad_norm=50.0), taken=3)
    again.restore(kept)
    assert again.estimate.steps_taken == 3
    assert fed.lost == [2, 1]
    # Nothing kept at all: everything before counts as lost, even if nobody asks for it.
    forgotten = step_of(body, schedule=ConstantSchedule(max_grad_norm=50.0), taken=5)
    forgotten.gradient(critic, unpaired)
    assert forgotten.estimate.steps_taken == 6
    assert np.all(forgotten.estimate.costs >= 5 * np.array(worst))
    assert np.all(step_of(body, taken=6).estimate.costs == pytest.approx(6 * np.array(worst)))


def test_the_worst_case_of_the_same_run_is_its_event(fed: Fed) -> None:
    step = step_of(people())
    step.gradient(Critic(), unpaired)
    ((_, ran),) = step._mechanism.executed._ran.items()
    assert (ran.event.steps, ran.event.noise_multiplier, ran.event.sample_rate) == (1, 1.5, 0.5)
    assert step.event == replace(ran.event, steps=6)


def test_without_distances_nothing_is_measured(fed: Fed) -> None:
    step = step_of(people(), distances=None)
    step.gradient(Critic(), unpaired)
    step.restore({})
    assert step.estimate is None
    assert fed.steps == []


# -- what is asked for -------------------------------------------------------------------------------------------------


def test_too_few_distances_are_refused_before_anything_is_drawn() -> None:
    with pytest.raises(SettingError) as refused:
        DistanceSettings(count=2, orders=(1,), gamma=0.1)
    assert refused.value.field == "distances"


def test_three_distances_are_enough() -> None:
    assert DistanceSettings(count=3, orders=(1,), gamma=0.1).count == 3


def test_what_is_asked_for_reaches_the_accountant() -> None:
    plain = ASKED.accountant(7)
    assert (plain.orders, plain.total_steps, plain.gamma, plain.max_distance) == ((1, 4, 16), 7, 1e-12, 1.0)
    assert (plain.bound, plain.paper_literal, plain.union) == ("student-t", False, False)
    other = replace(ASKED, bound="bernstein", paper_literal=True).accountant(7)
    assert (other.bound, other.paper_literal) == ("bernstein", True)


@pytest.mark.parametrize("union", [False, True])
def test_how_the_confidence_is_spent_reaches_the_accountant(union: bool) -> None:
    assert replace(ASKED, union=union).accountant(7).union is union


def test_the_estimate_shows_nothing(fed: Fed) -> None:
    step = step_of(people())
    step.gradient(Critic(), unpaired)
    shown = repr([step, step.estimate, step.settings, step._query, step._distances, step._mechanism.executed.to_json()])
    assert not any(f"{one:.6g}" in shown for one in fed.steps[0][0] if 0 < one < 1)


@pytest.mark.parametrize(("count", "units"), [(16, 300), (64, 1_000), (64, 100_000)])
def test_owners_draw_hardly_ever_fewer_units_than_are_asked_for_and_not_many_more(count, units):
    rate = distances.distance_sample_rate(count, units)
    assert binom.cdf(count - 1, units, rate) < 1e-3
    assert rate * units < 2.1 * count
    assert distances.distance_sample_rate(count, count) == 1.0
