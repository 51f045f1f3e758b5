"""Rules 2, 6 and 12 for an annotator that sampled distances price: nothing makes it look cheaper than it is.

Two kinds of noisy steps see the same records. Whoever pays much to one pays much to the other, so that what each costs
by itself does not add up. Mutants beside each check.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import doublure as db
from doublure.errors import SettingError
from doublure.methods.bayesgan import claim as bayesian
from doublure.methods.bayesgan import training as bayesian_training
from doublure.methods.bayesgan.method import Bayesgan
from doublure.methods.bayesgan.settings import BayesianSettings
from doublure.private.bayesian import BayesianAccountant, log_moment
from doublure.private.queries.distances import MeasuredDistances
from doublure.private.queries.sums import BoundedSums
from doublure.private.records import PrivateRecords

TEXT = "doublure: 1\nkind: images\nunits: 60000\nimages: {shape: [28, 28, 1]}\nlabel: {values: [0, 1, 2]}\n"
DELTA, STEPS = 1e-10, 40
FAR = np.repeat([0.0, 1.0], [3600, 400])
"""Of most records nothing is seen at a step of either kind; of some, as much as can be."""


def planned(text=TEXT, **changes):
    given = {"epsilon": 8.0, "delta": DELTA, "accountant": "rdp", "steps": STEPS, "annotator_price": "sampled"}
    return db.plan(db.Schema.parse(text), method="bayesgan", **(given | changes))


@pytest.fixture(scope="module")
def usual():
    return planned()


def measured(plan):
    """Return the accountants of a run, critic's and annotator's, whose records are as far as :data:`FAR` says."""
    own, job = plan.settings, SimpleNamespace(delta_mu=plan.delta)
    found = []
    for power, (steps, sigma, rate) in zip(own.powers, kinds(plan), strict=True):
        accountant = bayesian_training._distances(job, own, power).accountant(steps)
        for _ in range(steps):
            accountant.step(FAR, sigma, rate)
        found.append(accountant)
    return found


def kinds(plan):
    own = plan.settings
    return (own.steps, plan.noise_multiplier, plan.sample_rate), (own.labeller_steps, own.labeller_noise, 1.0)


# -- both kinds of steps together --------------------------------------------------------------------------------------


def check_no_less_than_records_pay(plan):
    """What comes out is at least the mean of what records pay to both, and may fail with its share of δ_μ alone."""
    critic, annotator = measured(plan)
    both = critic.joined(annotator)
    for order, cost in zip(both.orders, both.costs, strict=True):
        paid = sum(steps * log_moment(FAR / sigma, order, rate) for steps, sigma, rate in kinds(plan))
        assert cost >= np.logaddexp.reduce(paid) - math.log(len(paid))
    assert both.steps_taken == both.calls == plan.settings.steps + plan.settings.labeller_steps
    assert both.failure_probability <= plan.settings.gamma_share * plan.delta * (1 + 1e-9)


def test_both_cost_no_less_than_records_pay(usual):
    check_no_less_than_records_pay(usual)


def at_its_own(monkeypatch):
    """Average each kind at the number of its own steps, as if there were no other."""
    monkeypatch.setattr(BayesianSettings, "powers", property(lambda own: (own.steps, own.full_batches)))


def test_powers_of_one_kind_alone_are_refused(usual, monkeypatch):
    at_its_own(monkeypatch)
    with pytest.raises(SettingError, match="more than 1"):
        check_no_less_than_records_pay(usual)


@pytest.mark.parametrize(
    "edit",
    [
        ("inverses > 1", "inverses > 3"),
        ("self.steps_taken / self.total_steps + other.steps_taken / other.total_steps",
         "self.steps_taken / self.total_steps"),
    ],
    ids=["not refused", "the other not counted"],
)  # fmt: skip
def test_powers_of_one_kind_alone_cost_too_little(lab, usual, monkeypatch, edit):
    at_its_own(monkeypatch)
    lab.plant(BayesianAccountant, "joined", edit)
    with lab.caught():
        check_no_less_than_records_pay(usual)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (BayesianAccountant, "joined", ("both._costs += other._costs", "both._costs += 0 * other._costs")),
        (BayesianAccountant, "joined", ("both.calls += other.calls", "both.calls += 0")),
        (BayesianAccountant, "joined", ("both.steps_taken += other.steps_taken", "both.steps_taken += 0")),
        (bayesian_training, "_distances", ("settings.sampled_steps", "(settings.steps or 1)")),
        (bayesian_training, "_distances", ("power=power", "power=None")),
    ],
    ids=["one kind is free", "its bounds never fail", "its steps are not counted", "gamma of one kind", "no power"],
)
def test_a_sum_of_both_that_says_too_little_is_caught(lab, usual, owner, name, edit):
    lab.plant(owner, name, edit)
    with pytest.raises((AssertionError, SettingError)):
        check_no_less_than_records_pay(usual)


# -- what is claimed of them, and what is charged ----------------------------------------------------------------------


def check_a_claim_waits_for_the_annotator(plan):
    """The critic's steps alone make no claim, however little they cost."""
    critic, _ = measured(plan)
    assert bayesian.final_claim(plan.guarantee, plan.settings, plan.touches, critic)[0] == plan.guarantee.worst_case


def test_a_claim_waits_for_the_annotator(lab, usual):
    check_a_claim_waits_for_the_annotator(usual)
    lab.plant(bayesian, "final_claim", ("own.sampled_steps", "(own.steps or 1)"))
    with lab.caught():
        check_a_claim_waits_for_the_annotator(usual)


def check_the_worst_case_holds_it(plan):
    """Whatever prices the annotator in ε_μ, the ledger is charged its worst case."""
    assert len(plan.touches) == 2
    assert plan.guarantee.worst_case == planned(annotator_price="worst-case").guarantee.worst_case


def test_the_worst_case_holds_the_annotator(lab, usual):
    check_the_worst_case_holds_it(usual)
    lab.plant(
        Bayesgan,
        "accesses",
        ("not settings.full_batches", "not settings.full_batches or settings.samples_full_batches"),
    )
    with lab.caught():
        check_the_worst_case_holds_it(planned())


# -- a distance --------------------------------------------------------------------------------------------------------

UNITS, BOUND = 8, 0.8


class Told:
    """Keeps the distances that it is told."""

    count = UNITS

    def charge(self, found, *, sample_rate, step):
        self.found = list(found)


def sums(each, told=None):
    return BoundedSums(
        factors=lambda body, _: (body[:, :2], body[:, 2:]), shape=(2, 3), max_records=each, bound=BOUND, measured=told
    )


def records_of(body, unit):
    names = np.unique(unit, return_inverse=True)[1]
    return PrivateRecords(body, names, int(names.max()) + 1, lambda rows: (torch.as_tensor(rows), None))


def check_distances_are_no_shorter_than_what_units_move(each):
    body = torch.randn(UNITS * each, 5, generator=torch.Generator().manual_seed(2)) * 0.6
    unit, told = np.repeat(np.arange(UNITS), each), Told()
    whole = sums(each, told).answer(records_of(body, unit), sample_rate=1.0)
    moved = []
    for one in range(UNITS):
        rest = sums(each).answer(records_of(body[unit != one], unit[unit != one]), sample_rate=1.0)
        moved.append(float(np.linalg.norm((whole.total - rest.total) * whole.unit)) / (each * BOUND))
    assert all(found >= real for found, real in zip(sorted(told.found), sorted(moved), strict=True))


@pytest.mark.parametrize("each", [1, 3], ids=["a record", "three records"])
@pytest.mark.parametrize(
    "edit",
    [
        None,
        ("self.max_records * self.bound", "2 * self.max_records * self.bound"),
        ("(share + step) * (1 + _ROUNDED_UP)", "share * (1 - _ROUNDED_UP)"),
        ("((share + step) * (1 + _ROUNDED_UP)).clamp(max=1.0)", "share.clamp(max=0.5)"),
    ],
    ids=["as it is", "over twice the bound", "rounded down", "cut off"],
)
def test_distances_are_no_shorter_than_what_units_move(lab, each, edit):
    if edit is None:
        check_distances_are_no_shorter_than_what_units_move(each)
        return
    lab.plant(BoundedSums, "_moved", edit)
    with lab.caught():
        check_distances_are_no_shorter_than_what_units_move(each)


def check_missing_ones_are_the_largest(plan):
    """Steps on fewer units than distances cost no less than steps on units that are as far as can be."""
    own, (_, power) = plan.settings, plan.settings.powers
    asked = bayesian_training._distances(SimpleNamespace(delta_mu=plan.delta), own, power)
    steps, sigma, _ = kinds(plan)[1]
    few, largest = asked.measured(noise_multiplier=sigma, steps=steps), asked.accountant(steps)
    few.charge([], sample_rate=1.0, step=3)
    for _ in range(4):  # three before it were lost
        largest.step([1.0] * own.distances, sigma, 1.0)
    assert np.all(few.accountant(4, 1.0).costs >= largest.costs * (1 - 1e-9))


@pytest.mark.filterwarnings("ignore:all sampled distances")
def test_missing_distances_are_the_largest(lab, usual):
    check_missing_ones_are_the_largest(usual)
    lab.plant(MeasuredDistances, "charge", ("[1.0]", "[0.0]"))
    with lab.caught():
        check_missing_ones_are_the_largest(usual)


def test_lost_steps_are_the_largest(lab, usual):
    at = "self._accountant.lost(self._noise_multiplier, sample_rate, {})"
    lab.plant(MeasuredDistances, "accountant", (at.format("lost"), at.format("1")))
    with lab.caught():
        check_missing_ones_are_the_largest(usual)


def test_owners_are_not_asked_how_far_they_move_an_annotator():
    text = TEXT + "federated: {max_silos: 1}\n"
    assert planned(text, annotator_price="worst-case").schema.max_silos == 1
    with pytest.raises(SettingError, match="cannot be asked of owners"):
        planned(text)
