"""The one place where numbers leave private records: paid for, noised once, as priced, or not at all."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from critic_steps import critic_steps
from paying import Remembered
from planting import plant
from replay_noise import ReplayNoise
from scipy import stats
from torch import nn

from doublure.access import Access
from doublure.errors import Interrupted, LedgerError, NotAsPriced, RunFolderError, SettingError
from doublure.private import whole_noise
from doublure.private.accounting import (
    ApproximateEvent,
    DiscreteGaussianEvent,
    GaussianEvent,
    PureEvent,
    event_from_json,
    event_to_json,
)
from doublure.private.clipping import ConstantSchedule
from doublure.private.executed import Executed, as_priced
from doublure.private.gradients import CriticLoss
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.partitions import SinglePartition
from doublure.private.queries.counts import Axis, Counts
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.queries.query import Answer, Sensitivity
from doublure.private.queries.sums import BoundedSums
from doublure.private.records import PrivateRecords
from doublure.private.sampling import PoissonSampler

ALPHA = 1e-6
EVENTS = {
    "gaussian": GaussianEvent(noise_multiplier=2.0, sample_rate=0.25, steps=3),
    "discrete": DiscreteGaussianEvent(scale=5.0, tables=4, records=2),
    "pure": PureEvent(epsilon=0.5),
    "approximate": ApproximateEvent(epsilon=0.5, delta=1e-6),
}
CELLS = Sensitivity.of_cells(4, 2)
MOVED = {
    "gaussian": Sensitivity.of_length(1.5, 4), "discrete": CELLS, "pure": CELLS, "approximate": CELLS,
}  # fmt: skip
EXACT = {
    "gaussian": np.array([1.0, -2.0, 0.5, 4e3]),
    "discrete": np.array([7, 0, 1_000, 3]),
    "pure": np.array([7, 0, 1_000, 3]),
    "approximate": {"often": 5_000, "seldom": 1},
}
SECRET = 31_415_926
KINDS = list(EVENTS)


class Asked:
    """A query of any kind, which tells when it is asked, and may lie."""

    def __init__(
        self, kind, total=None, acts=None, stated=None, moved=None, rate=None, sampling="poisson", unfit=None, unit=None
    ):
        self.sensitivity = stated or MOVED[kind]
        self._moved = moved or self.sensitivity
        self._total = EXACT[kind] if total is None else total
        self._acts = [] if acts is None else acts
        self._rate, self._sampling, self._unfit, self._unit = rate, sampling, unfit, unit

    def refuse_unfit(self, records):
        self._acts.append("look")
        if self._unfit:
            raise self._unfit

    def answer(self, records, *, sample_rate):
        self._acts.append("ask")
        if isinstance(self._total, BaseException):
            raise self._total
        rate = sample_rate if self._rate is None else self._rate
        return Answer(
            total=self._total, sensitivity=self._moved, sample_rate=rate, sampling=self._sampling, unit=self._unit
        )


class Watched:
    """A source of no noise that tells when it is asked."""

    name, for_tests = "watched", True

    def __init__(self, acts):
        self._acts = acts

    def normal(self, size, std):
        self._acts.append("noise")
        return ScaledNoise(np.zeros(size, dtype=np.float32), std)


def access_of(kind, purpose=None, path=None):
    return Access(purpose=purpose or kind, event=EVENTS[kind], path=path)


@pytest.fixture
def acts(monkeypatch):
    """What was done, in order; noise for whole numbers included, which stays what it is."""
    done = []
    for name in ("gaussian", "laplace", "thresholded"):
        drawn = getattr(whole_noise, name)
        monkeypatch.setattr(
            whole_noise, name, lambda *given, drawn=drawn, **named: (done.append("noise"), drawn(*given, **named))[1]
        )
    return done


def mechanism_of(*accesses, acts=None, taken=0, **named):
    done = [] if acts is None else acts
    given = {"noise": Watched(done), "authorise": lambda access, step: done.append((access.purpose, step))} | named
    return Mechanism(accesses, taken=taken, allow_test_noise=True, **given)


def nothing_ran(mechanism):
    return all(entry["event"] is None for entry in mechanism.executed.to_json())


# -- one release -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_is_looked_at_asked_paid_for_and_noised_once_in_this_order(acts, kind):
    access = access_of(kind)
    mechanism = mechanism_of(access, acts=acts)
    mechanism.release(Asked(kind, acts=acts), access, None)
    assert acts == ["look", "ask", (kind, 1), "noise"]
    assert mechanism.taken(access) == 1
    (entry,) = mechanism.executed.to_json()
    assert (entry["drawn"], entry["sensitivity"]) == (1, MOVED[kind].l2)
    ran, priced = event_from_json(entry["event"]), EVENTS[kind]
    if kind == "gaussian":
        assert not as_priced([entry])  # one step of three
        priced = replace(priced, steps=1)
    else:
        assert as_priced([entry])
    for name in priced.__dataclass_fields__:
        told, planned = getattr(ran, name), getattr(priced, name)
        if planned is None:
            assert told is None
        else:
            assert told == pytest.approx(planned, rel=1e-9) if name not in ("delta", "sampling") else told <= planned


@pytest.mark.parametrize("keep", [False, True])
def test_who_holds_records_hears_which_access_pays_before_it_is_asked(acts, keep):
    class Elsewhere(SinglePartition):
        def paid_by(self, access):
            acts.append(("hears", access.purpose))

    access = access_of("gaussian")
    mechanism_of(access, acts=acts).release(Asked("gaussian", acts=acts), access, Elsewhere(None), keep=keep)
    assert acts == ["look", ("hears", "gaussian"), "ask", ("gaussian", 1), "noise"]


def check_steps_are_told_again_from_a_checkpoint_on():
    """Three steps are drawn and the checkpoint stands for one of them: two are told again, and nobody pays."""
    kept, access, asked = Remembered(), access_of("gaussian"), Asked("gaussian")
    first = mechanism_of(access, noise=ReplayNoise(np.eye(4)[:3]), answers=kept)
    drawn = [first.release(asked, access, None, keep=False) for _ in range(2)]
    acts = []
    again = mechanism_of(access, acts=acts, taken=2, answers=kept)
    again.skip(access, 1)
    assert np.array_equal(again.release(Asked("gaussian", acts=acts), access, None, keep=False), drawn[1])
    assert acts == []
    assert (again.taken(access), again.executed.draws(access)) == (2, 2)
    again.saved()
    assert kept.places() == frozenset()
    again.release(Asked("gaussian", acts=acts), access, None, keep=False)
    assert acts == ["look", "ask", ("gaussian", 3), "noise"]
    with pytest.raises(RunFolderError, match="that are not paid for"):
        mechanism_of(access, taken=2).skip(access, 3)


def test_steps_are_told_again_from_a_checkpoint_on():
    check_steps_are_told_again_from_a_checkpoint_on()


@pytest.mark.parametrize(
    "planted",
    [
        ("skip", ("max(steps, taken)", "steps - 1")),
        ("saved", ("self._taken[access]", "0")),
        ("release", ("if self.keeps(access):\n    return self._recalled(query, access, keep=keep)", "pass")),
    ],
)
def test_steps_that_are_drawn_or_followed_again_are_caught(monkeypatch, planted):
    name, change = planted
    plant(monkeypatch, Mechanism, name, change)
    with pytest.raises((AssertionError, NotAsPriced, SettingError, IndexError)):
        check_steps_are_told_again_from_a_checkpoint_on()


def test_gaussian_noise_is_added_to_the_answer_as_it_was_drawn():
    draw = np.array([1.0, -1.0, 2.0, 0.25])
    access, noise = access_of("gaussian"), ReplayNoise([draw])
    found = mechanism_of(access, noise=noise).release(Asked("gaussian"), access, None)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, EXACT["gaussian"] + 2.0 * 1.5 * draw, rtol=1e-6)
    assert noise.asked == [(4, 2.0 * 1.5)]


WHOLE = {"total": np.array([3, -2, 0, 8_000]), "unit": 0.5}


def test_noise_of_a_sum_in_steps_of_a_grid_is_whole_and_of_what_was_priced():
    draw = np.array([1.0, -1.0, 2.0, 0.3])
    access, noise = access_of("gaussian"), ReplayNoise([draw])
    mechanism = mechanism_of(access, noise=noise)
    found = mechanism.release(Asked("gaussian", **WHOLE), access, None)
    assert found.dtype == np.float32
    assert found.tolist() == (0.5 * (WHOLE["total"] + np.round(2.0 * 1.5 / 0.5 * draw))).tolist()
    (entry,) = mechanism.ran()
    ran = event_from_json(entry["event"])
    assert (ran.noise_multiplier, ran.sample_rate) == (pytest.approx(2.0, rel=1e-12), 0.25)


@pytest.mark.parametrize("source", [OsKeyedNoise])
def test_gaussian_noise_has_the_deviation_that_was_priced(source):
    """20,000 numbers: right to 3 %, rejecting what is right once in a million."""
    access, size = Access(purpose="sum", event=GaussianEvent(noise_multiplier=0.8)), 20_000
    moved = Sensitivity.of_length(2.5, size)
    mechanism = Mechanism([access], noise=source(), authorise=lambda access, step: None)
    query = Asked("gaussian", total=np.full(size, 3.0), stated=moved)
    noise = mechanism.release(query, access, None).astype(np.float64) - 3.0
    assert mechanism.deviation(access, moved) == 2.0
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], size)
    share = float(np.square(noise / 2.0).sum())
    assert low < share < high
    assert not low < share * 1.06**2 < high
    assert stats.kstest(noise / 2.0, "norm").pvalue > ALPHA


def test_counts_get_whole_noise_of_the_planned_scale():
    access, size = access_of("discrete"), 20_000
    counted = Asked("discrete", total=np.full(size, 9))
    noise = mechanism_of(access).release(counted, access, None) - 9
    assert noise.dtype == np.int64
    low, high = stats.chi2.ppf([ALPHA / 2, 1 - ALPHA / 2], size)
    assert low < np.square(noise / 5.0).sum() < high
    assert not low < np.square(noise / 4.6).sum() < high
    assert mechanism_of(access).deviation(access, CELLS) == 5.0


@pytest.mark.parametrize("kind", ["pure", "approximate"])
def test_laplace_noise_is_for_all_that_a_unit_moves(kind):
    """By 8 in L1, at ε = 1/2: |noise| is 16 on average."""
    access, size = access_of(kind), 20_000
    total = np.zeros(size, dtype=np.int64) if kind == "pure" else dict.fromkeys(map(str, range(size)), 10**6)
    found = mechanism_of(access).release(Asked(kind, total=total), access, None)
    noise = found if kind == "pure" else np.array(list(found.values())) - 10**6
    assert len(noise) == size
    error = 6 * 16 / math.sqrt(size)
    assert abs(np.abs(noise).mean() - 16) < error < 1
    with pytest.raises(TypeError, match="no Gaussian noise"):
        mechanism_of(access).deviation(access, CELLS)


def test_thresholded_counts_come_by_name_and_hide_the_rare():
    access = access_of("approximate")
    found = mechanism_of(access).release(Asked("approximate"), access, None)
    assert list(found) == ["often"]
    assert abs(found["often"] - 5_000) < 500


# -- edge cases --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_no_record_at_all_is_noise_alone_and_counts(kind):
    access = access_of(kind)
    empty = {} if kind == "approximate" else np.zeros(4, dtype=EXACT[kind].dtype)
    steps = getattr(EVENTS[kind], "steps", 1)
    mechanism = mechanism_of(access, noise=ReplayNoise([np.ones(4)] * steps))
    for _ in range(steps):
        found = mechanism.release(Asked(kind, total=empty), access, None)
    if kind == "gaussian":
        assert found.tolist() == [3.0] * 4
    elif kind == "approximate":
        assert found == {}
    else:
        assert found.shape == (4,)
    assert mechanism.taken(access) == steps
    assert as_priced(mechanism.ran())


GRADIENTS = {
    "loss": CriticLoss(kind="wgan"), "schedule": ConstantSchedule(max_grad_norm=0.5), "noise_multiplier": 2.0,
    "sample_rate": 0.25, "steps": 3, "expected_units": 1.0,
}  # fmt: skip


class Line(nn.Linear):
    def forward(self, x, condition=None):
        return super().forward(x).squeeze(1)


def as_they_are(body, condition):
    return condition, body


def test_no_record_at_all_is_noise_alone_in_every_query():
    nobody = PrivateRecords(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), 0, lambda rows: (rows.float(), rows.float()))
    counts = Counts(tables=[(Axis.of_codes(0, 2),), (Axis.of_codes(1, 3),)], max_records=1)
    sums = BoundedSums(factors=as_they_are, shape=(3, 3), max_records=1)
    counted, summed = (
        Access(purpose="count", event=DiscreteGaussianEvent(scale=50.0, tables=2)),
        Access(purpose="sum", event=GaussianEvent(noise_multiplier=1.0)),
    )
    mechanism = mechanism_of(counted, summed, noise=ReplayNoise([np.arange(9.0), np.ones(4)]))
    assert mechanism.release(counts, counted, nobody).any()
    assert mechanism.release(sums, summed, nobody).tolist() == list(range(9))
    steps = critic_steps(nobody, GRADIENTS, noise=ReplayNoise([np.ones(4)]), allow_test_noise=True)
    assert steps.gradient(Line(3, 1), lambda size, condition: torch.zeros(size, 3)).tolist() == [1.0] * 4
    assert as_priced(mechanism.executed.to_json())


FURTHER = {
    "more tables": Sensitivity.of_cells(5, 2),
    "larger units": Sensitivity.of_cells(4, 3),
    "a little": Sensitivity(l1=8.0, l2=4.0 * (1 + 1e-8)),
    "more than is rounded": Sensitivity(l1=8.0, l2=4.0 * (1 + 1.5e-9)),
    "a vector": Sensitivity.of_length(4.1, 9),
    "no end": Sensitivity(l1=math.inf, l2=math.inf),
    "no number": Sensitivity(l1=math.nan, l2=math.nan),
}


@pytest.mark.parametrize("further", FURTHER)
def test_a_query_that_moves_further_than_was_priced_is_refused_before_anything_is_asked(acts, further):
    access = access_of("discrete")
    mechanism = mechanism_of(access, acts=acts)
    with pytest.raises(SettingError) as refused:
        mechanism.release(Asked("discrete", acts=acts, stated=FURTHER[further]), access, None)
    assert refused.value.field == "discrete"
    assert acts == ["look"]
    assert mechanism.taken(access) == 0
    assert nothing_ran(mechanism)


def test_what_is_rounded_moves_no_further():
    access = access_of("discrete")
    stated = Sensitivity(l1=8.0, l2=4.0 * (1 + 1e-9))
    mechanism = mechanism_of(access)
    mechanism.release(Asked("discrete", stated=stated), access, None)
    assert as_priced(mechanism.ran())


@pytest.mark.parametrize("length", [0.0, 1e-40, 1e40, math.inf, math.nan])
def test_noise_that_could_not_be_drawn_is_refused_before_anything_is_asked(acts, length):
    access = access_of("gaussian")
    mechanism = mechanism_of(access, acts=acts)
    with pytest.raises(SettingError) as refused:
        mechanism.release(Asked("gaussian", acts=acts, stated=Sensitivity.of_length(length, 4)), access, None)
    assert refused.value.field == "sensitivity"
    assert acts == ["look"]
    assert nothing_ran(mechanism)


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_does_not_fit_is_refused_before_anything_is_asked(acts, kind):
    access = access_of(kind)
    mechanism = mechanism_of(access, acts=acts)
    with pytest.raises(SettingError, match="does not fit"):
        mechanism.release(Asked(kind, acts=acts, unfit=SettingError("does not fit")), access, None)
    assert acts == ["look"]
    assert mechanism.taken(access) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_beyond_the_plan_is_refused_before_anything_is_asked(acts, kind):
    access = access_of(kind)
    steps = getattr(EVENTS[kind], "steps", 1)
    mechanism = mechanism_of(access, acts=acts)
    for _ in range(steps):
        mechanism.release(Asked(kind), access, None)
    done = list(acts)
    for _ in range(2):
        with pytest.raises(SettingError, match="all noisy steps") as refused:
            mechanism.release(Asked(kind, acts=acts), access, None)
        assert refused.value.field == "steps"
    assert acts == done
    assert mechanism.taken(access) == steps


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_paid_for_is_not_drawn(acts, kind):
    def unpaid(access, step):
        raise LedgerError("the disk is full")

    access = access_of(kind)
    mechanism = mechanism_of(access, acts=acts, authorise=unpaid)
    with pytest.raises(LedgerError):
        mechanism.release(Asked(kind, acts=acts), access, None)
    assert acts == ["look", "ask"]
    assert mechanism.taken(access) == 0
    assert nothing_ran(mechanism)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ended", [Interrupted("stopped"), KeyboardInterrupt(), MemoryError()])
def test_what_fails_before_it_is_paid_for_costs_nothing_and_is_asked_again(acts, kind, ended):
    access = access_of(kind)
    mechanism = mechanism_of(access, acts=acts)
    with pytest.raises(type(ended)):
        mechanism.release(Asked(kind, total=ended, acts=acts), access, None)
    assert acts == ["look", "ask"]
    assert mechanism.taken(access) == 0
    assert nothing_ran(mechanism)
    mechanism.release(Asked(kind, acts=acts), access, None)
    assert acts[2:] == ["look", "ask", (kind, 1), "noise"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_paid_for_and_fails_is_spent_and_never_drawn(acts, kind, monkeypatch):
    access = access_of(kind)
    mechanism = mechanism_of(access, acts=acts)
    with monkeypatch.context() as patch:
        patch.setattr(Mechanism, "_noised", lambda *given: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            mechanism.release(Asked(kind, acts=acts), access, None)
    assert mechanism.taken(access) == 1
    assert nothing_ran(mechanism)
    assert mechanism.ran()[0]["lost"] == 1
    if kind != "gaussian":
        with pytest.raises(SettingError, match="all noisy steps"):
            mechanism.release(Asked(kind, acts=acts), access, None)
    assert acts == ["look", "ask", (kind, 1)]


def test_two_equal_accesses_could_not_be_told_apart():
    with pytest.raises(ValueError, match="cannot be separated"):
        mechanism_of(access_of("gaussian"), access_of("pure"), access_of("gaussian"))
    clear = Access(purpose="clear", event=None)
    mechanism_of(access_of("gaussian"), clear, clear)


def test_an_access_that_the_plan_does_not_have_is_refused(acts):
    mine = access_of("gaussian")
    mechanism = mechanism_of(mine, Access(purpose="train in the clear", event=None), acts=acts)
    strangers = [
        replace(mine, purpose="other"),
        replace(mine, event=replace(mine.event, steps=4)),
        Access(purpose="train in the clear", event=None),
    ]
    for access in strangers:
        with pytest.raises(SettingError, match="no access of the plan") as refused:
            mechanism.release(Asked("gaussian", acts=acts), access, None)
        assert refused.value.field == access.purpose
    assert acts == []
    assert len(mechanism.executed.to_json()) == 1


def test_noise_for_tests_is_refused():
    for noise in (ReplayNoise([]), Watched([])):
        with pytest.raises(SettingError, match="tests only") as refused:
            Mechanism([access_of("gaussian")], noise=noise, authorise=lambda access, step: None)
        assert refused.value.field == "noise"
    assert mechanism_of(access_of("gaussian")).for_tests
    assert not Mechanism([], noise=OsKeyedNoise(), authorise=lambda access, step: None).for_tests


# -- several accesses --------------------------------------------------------------------------------------------------


def plan():
    """Return a plan that trains three times and learns two facts: before, between."""
    return [
        access_of("pure", "bounds", path="columns.age.bounds"),
        Access(purpose="train", event=replace(EVENTS["gaussian"], steps=2)),
        access_of("approximate", "values", path="columns.job.values"),
        access_of("discrete", "count"),
        Access(purpose="clear", event=None),
        access_of("gaussian", "refine"),
    ]


KIND_OF = {
    "bounds": "pure", "train": "gaussian", "values": "approximate", "count": "discrete", "refine": "gaussian",
}  # fmt: skip


def test_steps_are_numbered_over_all_accesses_that_train_and_facts_have_no_number():
    accesses = {access.purpose: access for access in plan()}
    asked = []
    mechanism = mechanism_of(*accesses.values(), acts=asked)
    for purpose in ("refine", "bounds", "train", "count", "refine", "train", "values", "refine"):
        mechanism.release(Asked(KIND_OF[purpose]), accesses[purpose], None)
    numbers = [act for act in asked if act != "noise"]
    assert numbers == [
        ("refine", 4), ("bounds", 0), ("train", 1), ("count", 3), ("refine", 5), ("train", 2), ("values", 0),
        ("refine", 6),
    ]  # fmt: skip
    mechanism.executed.refuse_unequal(6)
    assert as_priced(mechanism.executed.to_json())
    for purpose, kind in KIND_OF.items():
        with pytest.raises(SettingError, match="all noisy steps"):
            mechanism.release(Asked(kind), accesses[purpose], None)


@pytest.mark.parametrize(
    ("taken", "expected"),
    [(0, (0, 0, 0)), (1, (1, 0, 0)), (2, (2, 0, 0)), (3, (2, 1, 0)), (4, (2, 1, 1)), (6, (2, 1, 3)), (99, (2, 1, 3))],
)
def test_what_an_interrupted_run_has_spent_is_spent_access_by_access(taken, expected):
    accesses = {access.purpose: access for access in plan()}
    asked = []
    mechanism = mechanism_of(*accesses.values(), acts=asked, taken=taken)
    assert tuple(mechanism.taken(accesses[purpose]) for purpose in ("train", "count", "refine")) == expected
    assert mechanism.taken(accesses["bounds"]) == mechanism.taken(accesses["values"]) == 0
    for purpose, spent, most, before in zip(("train", "count", "refine"), expected, (2, 1, 3), (0, 2, 3), strict=True):
        for _ in range(most - spent):
            mechanism.release(Asked(KIND_OF[purpose]), accesses[purpose], None)
        with pytest.raises(SettingError, match="all noisy steps"):
            mechanism.release(Asked(KIND_OF[purpose]), accesses[purpose], None)
        own = [act[1] for act in asked if act[0] == purpose]
        assert own == list(range(before + spent + 1, before + most + 1))


def test_what_earlier_sessions_did_is_gone_on_with():
    access = access_of("gaussian")
    first = mechanism_of(access)
    first.release(Asked("gaussian"), access, None)
    kept = Executed([access])
    kept.restore(first.ran())
    resumed = mechanism_of(access, taken=2, executed=kept)  # one more was authorised, and lost
    resumed.release(Asked("gaussian"), access, None)
    (entry,) = resumed.ran()
    assert (entry["drawn"], entry["lost"], entry["event"]["steps"]) == (2, 1, 3)
    resumed.executed.refuse_unequal(3)


def test_draws_that_earlier_sessions_hide_end_the_run():
    """Nobody told this session that the steps were taken, but they were written down."""
    access = access_of("gaussian")
    first = mechanism_of(access)
    for _ in range(3):
        first.release(Asked("gaussian"), access, None)
    resumed = mechanism_of(access, taken=0, executed=first.executed)
    with pytest.raises(NotAsPriced):
        resumed.release(Asked("gaussian"), access, None)


# -- another event than was priced -------------------------------------------------------------------------------------

NORMAL = "self._noise.normal(total.size, event.noise_multiplier * moved.l2)"
GAUSSIAN = "whole_noise.gaussian(total, scale=event.scale)"
LAPLACE = "whole_noise.laplace(total, epsilon=event.epsilon, moved=round(moved.l1))"
THRESHOLDED = "whole_noise.thresholded(total, epsilon=event.epsilon, delta=event.delta, moved=round(moved.l1))"
MUTANTS = {
    "gaussian": {
        "0.7 of the noise": (NORMAL, NORMAL.replace("moved.l2", "moved.l2 * 0.7")),
        "noise for C alone": (NORMAL, NORMAL.replace("moved.l2", "1.0")),
        "noise by the data": (NORMAL, NORMAL.replace("moved.l2", "abs(total).max()")),
        "too much noise": (NORMAL, NORMAL.replace("moved.l2", "moved.l2 * 1.01")),
    },
    "discrete": {
        "0.7 of the noise": (GAUSSIAN, GAUSSIAN.replace("event.scale", "event.scale * 0.7")),
        "noise by the data": (GAUSSIAN, GAUSSIAN.replace("event.scale", "float(total.max())")),
    },
    "pure": {
        "0.7 of the noise": (LAPLACE, LAPLACE.replace("event.epsilon", "event.epsilon / 0.7")),
        "noise for one record": (LAPLACE, LAPLACE.replace("round(moved.l1)", "1")),
        "noise for the length": (LAPLACE, LAPLACE.replace("moved.l1", "moved.l2")),
    },
    "approximate": {
        "0.7 of the noise": (THRESHOLDED, THRESHOLDED.replace("event.epsilon", "event.epsilon / 0.7")),
        "noise for one record": (THRESHOLDED, THRESHOLDED.replace("round(moved.l1)", "1")),
        "a larger delta": (THRESHOLDED, THRESHOLDED.replace("event.delta", "event.delta / 0.7")),
    },
}


@pytest.mark.parametrize(("kind", "mutant"), [(kind, name) for kind, own in MUTANTS.items() for name in own])
def test_noise_other_than_was_priced_stops_the_run_before_anything_is_given_out(monkeypatch, kind, mutant):
    access = access_of(kind)
    mechanism = mechanism_of(access, noise=OsKeyedNoise())
    plant(monkeypatch, Mechanism, "_noised", MUTANTS[kind][mutant])
    given_out = []
    with pytest.raises(NotAsPriced) as refused:
        given_out.append(mechanism.release(Asked(kind), access, None))
    assert given_out == []
    assert refused.value.field == kind
    assert nothing_ran(mechanism)  # what did is in no list of what did as priced; the step is spent
    assert not as_priced(mechanism.executed.to_json())


COPIED = {
    "gaussian": ("noise_multiplier=real.scale / moved.l2", "noise_multiplier=event.noise_multiplier"),
    "discrete": ("scale=whole.scale", "scale=event.scale"),
    "pure": ("PureEvent(epsilon=moved.l1 / whole.scale)", "PureEvent(epsilon=event.epsilon)"),
    "approximate": ("epsilon=moved.l1 / found.scale", "epsilon=event.epsilon"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_of_the_plans_own_event_would_hide_it(monkeypatch, kind):
    """What makes the mutants above be caught: what ran is measured, and never copied."""
    access = access_of(kind)
    mechanism = mechanism_of(access, noise=OsKeyedNoise())
    plant(monkeypatch, Mechanism, "_noised", MUTANTS[kind]["0.7 of the noise"], COPIED[kind])
    mechanism.release(Asked(kind), access, None)


LIES = {
    "moves less than it states": ("gaussian", {"moved": Sensitivity.of_length(0.5, 4)}),
    "moves further than it states": ("gaussian", {"moved": Sensitivity.of_length(1.6, 4)}),
    "moves further by a little": ("gaussian", {"moved": Sensitivity.of_length(1.5 * (1 + 1e-6), 4)}),
    "does not move": ("gaussian", {"moved": Sensitivity.of_length(0.0, 4)}),
    "a sampler of a higher rate": ("gaussian", {"rate": 0.5}),
    "a sampler of a lower rate": ("gaussian", {"rate": 0.2}),
    "a sampler of no rate": ("gaussian", {"rate": 1.0}),
    "a sampler of lots of one size": ("gaussian", {"sampling": "without-replacement"}),
    "whole numbers of a higher rate": ("gaussian", {"rate": 0.5, "unit": 1.0}),
    "whole numbers of lots of one size": ("gaussian", {"sampling": "without-replacement", "unit": 1.0}),
    "more tables than it states": ("discrete", {"moved": Sensitivity.of_cells(9, 2)}),
    "larger units than it states": ("discrete", {"moved": Sensitivity.of_cells(4, 3)}),
    "as far, by other units": ("discrete", {"stated": Sensitivity.of_cells(1, 4)}),
    "as far, by other tables": ("discrete", {"moved": Sensitivity.of_cells(1, 4)}),
    "smaller units than were priced": ("discrete", {"stated": Sensitivity.of_cells(4, 1)}),
    "less in sum than it states": ("pure", {"moved": Sensitivity(l1=4.0, l2=4.0)}),
    "less than it states": ("pure", {"moved": Sensitivity.of_cells(1, 1)}),
    "no whole number": ("pure", {"stated": Sensitivity(l1=1.4, l2=1.4)}),
    "fewer names than it states": ("approximate", {"moved": Sensitivity.of_cells(1, 1)}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_query_that_lies_is_stopped_before_anything_is_given_out(lie):
    kind, lies = LIES[lie]
    access = access_of(kind)
    mechanism = mechanism_of(access, noise=OsKeyedNoise())
    dtype = np.int64 if "unit" in lies or kind != "gaussian" else np.float64
    total = {"often": SECRET} if kind == "approximate" else np.full(4, SECRET, dtype=dtype)
    with pytest.raises(NotAsPriced) as refused:
        mechanism.release(Asked(kind, total=total, **lies), access, None)
    assert refused.value.field == kind
    assert str(SECRET) not in str(refused.value)
    assert "\n" not in str(refused.value)
    assert nothing_ran(mechanism)


def test_an_access_that_promises_whole_numbers_gives_out_no_others():
    access = replace(access_of("gaussian"), whole=True)
    mechanism = mechanism_of(access, noise=OsKeyedNoise())
    with pytest.raises(NotAsPriced, match="whole numbers"):
        mechanism.release(Asked("gaussian"), access, None)
    assert nothing_ran(mechanism)
    mechanism.release(Asked("gaussian", **WHOLE), access, None)


def test_an_event_of_another_kind_is_no_protection():
    access = Access(purpose="odd", event=object())
    mechanism = mechanism_of(access)
    with pytest.raises(TypeError, match="nothing is protected"):
        mechanism.release(Asked("pure"), access, None)
    assert mechanism.executed.draws(access) == 0


@pytest.mark.parametrize("kind", ["discrete", "pure"])
def test_an_answer_that_is_not_whole_gets_no_whole_noise(kind):
    """Rounded, it moves by more than it was said to."""
    access = access_of(kind)
    mechanism = mechanism_of(access)
    with pytest.raises(SettingError, match="whole numbers"):
        mechanism.release(Asked(kind, total=np.array([0.99, 1.5, 2.0, 3.0])), access, None)
    assert nothing_ran(mechanism)


# -- the same of real queries ------------------------------------------------------------------------------------------

RECORDS = PrivateRecords(
    np.arange(24.0, dtype=np.float32).reshape(8, 3) % 5, np.arange(8), 8, lambda rows: (rows, rows[:, :2])
)
TWICE = "self.max_records * self.bound"
CELLS_OF = "Sensitivity.of_cells(len(counts), self.max_records)"
SAMPLER = "PoissonSampler(records.n_units, sample_rate)"
REAL = {
    "sums of longer records": (BoundedSums, "answer", (TWICE, f"2 * {TWICE}")),
    "sums that state less": (BoundedSums, "sensitivity", (TWICE, f"0.5 * {TWICE}")),
    "counts that state fewer tables": (Counts, "sensitivity", ("len(self.tables)", "1")),
    "counts of smaller units": (Counts, "answer", (CELLS_OF, CELLS_OF.replace("self.max_records", "1"))),
    "gradients that state less": (CriticGradients, "sensitivity", ("self.settings.moved(self.step)", "0.1")),
    "gradients of a higher rate": (CriticGradients, "answer", (SAMPLER, SAMPLER.replace("sample_rate", "0.5"))),
    "gradients of everybody": (CriticGradients, "answer", (SAMPLER, SAMPLER.replace("sample_rate", "1.0"))),
    "a clip that is looser": (
        CriticGradients, "_clipped", ("self.settings.bound(self.step)", "2 * self.settings.bound(self.step)"),
    ),
    "a rate of its own": (PoissonSampler, "__init__", ("self.sample_rate = sample_rate", "self.sample_rate = 0.3")),
}  # fmt: skip


def release_all():
    """Release one number of each kind of query; return whether all was as priced."""
    summed = Access(purpose="sum", event=GaussianEvent(noise_multiplier=1.0))
    counted = Access(purpose="count", event=DiscreteGaussianEvent(scale=5.0, tables=2, records=2))
    mechanism = mechanism_of(summed, counted, noise=OsKeyedNoise())
    mechanism.release(BoundedSums(factors=as_they_are, shape=(2, 3), max_records=2, bound=0.5), summed, RECORDS)
    tables = [(Axis.of_codes(0, 5),), (Axis.of_codes(1, 5), Axis.of_codes(2, 5))]
    mechanism.release(Counts(tables=tables, max_records=2), counted, RECORDS)
    steps = critic_steps(RECORDS.bodies(), GRADIENTS)
    critic = Line(3, 1)
    for _ in range(GRADIENTS["steps"]):
        steps.gradient(critic, lambda size, condition: torch.zeros(size, 3))
    return as_priced([*mechanism.ran(), *steps._mechanism.ran()])


def test_real_queries_are_as_priced():
    assert release_all()


@pytest.mark.parametrize("mutant", REAL)
def test_real_queries_that_are_not_as_priced_are_stopped(monkeypatch, mutant):
    owner, name, edit = REAL[mutant]
    plant(monkeypatch, owner, name, edit)
    with pytest.raises(NotAsPriced):
        release_all()


def test_lots_that_are_drawn_otherwise_are_stopped(monkeypatch):
    monkeypatch.setattr(PoissonSampler, "sampling", "without-replacement")
    with pytest.raises(NotAsPriced):
        release_all()


# -- what it rests on --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["mechanism", "executed", "whole_noise", "queries.counts", "queries.query", "records", "noise"]
)
def test_counting_needs_no_torch(name):
    heavy = "{'torch', 'pandas', 'sklearn', 'opendp', 'dp_accounting', 'scipy.stats'}"
    code = f"import sys, doublure.private.{name}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_release_of_counts_imports_no_torch():
    code = """
import sys
import numpy as np
from doublure.access import Access
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.counts import Axis, Counts
from doublure.private.records import PrivateRecords

access = Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0))
mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
kept = PrivateRecords(np.zeros((5, 1)), np.arange(5), 5, lambda rows: (rows, None))
found = mechanism.release(Counts(tables=[(Axis.of_codes(0, 2),)], max_records=1), access, kept)
print(found.shape, "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["(2,)", "False"]


def test_what_is_priced_can_be_written_down_and_read():
    for event in itertools.chain(EVENTS.values(), [access.event for access in plan() if access.event]):
        assert event_from_json(event_to_json(event)) == event
