"""Rule 3: lots are Poisson over units with a public q; q, T, σ, δ and the divisor never depend on the data
(rows 4, 5, 7, 10 and 24)."""

from __future__ import annotations

import builtins
import math
from dataclasses import replace
from functools import partial
from itertools import pairwise, repeat

import numpy as np
import pytest
import torch
from replay_noise import ReplayNoise
from scipy import stats

from doublure import planning as plans
from doublure.errors import NotAsPriced, SettingError
from doublure.methods.dpgan.method import Dpgan
from doublure.methods.statistics.tables import noisy_tables
from doublure.planning import planner
from doublure.private import accounting, facts, mechanism
from doublure.private.clipping import ConstantSchedule
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss
from doublure.private.queries import lot_gradients
from doublure.private.records import PrivateRecords
from doublure.private.sampling import FixedSizeSampler
from doublure.schema import Schema
from doublure.training import critic_steps as private_critic_trainer
from doublure.training.checkpoints import KeptTables

ALPHA = 1e-6
UNITS, RATE, LOTS = 200, 0.05, 400
RATE_ASKED = "sample_rate=getattr(event, 'sample_rate', 1.0)"
ACCESS = "self._accesses[number - 1]"
OTHER = f"type({ACCESS})(purpose='n', event=type({ACCESS}.event)(scale=1.0 + self._job.records.n_units, tables=20))"
PAIRED = "with torch.no_grad():\n    fake = self.partner(len(real), condition)"


def settings(**changes):
    return {
        "loss": CriticLoss(kind="wgan"), "schedule": ConstantSchedule(max_grad_norm=1.0), "noise_multiplier": 1.0,
        "sample_rate": RATE, "steps": LOTS, "expected_units": UNITS * RATE,
    } | changes  # fmt: skip


def partner(size, condition):
    return torch.zeros(size, 1)


def lots_of(lab, patch, rows=UNITS, **changes):
    """Return the units that took part in each of the mechanism's steps."""
    lot, lots = PrivateRecords.lot, []
    with patch.context() as inner:
        step = lab.mechanism(torch.ones(rows, 1), settings(**changes), noise=ReplayNoise(repeat(torch.zeros(2))))
        critic = lab.OneWeight()
        step._query.engine(critic, step._records)
        inner.setattr(PrivateRecords, "lot", lambda records, units: (lots.append(units), lot(records, units))[1])
        for _ in range(step.steps):
            step.gradient(critic, partner)
    return lots


def check_lots_are_poisson(lab, patch):
    lots = lots_of(lab, patch)
    sizes = np.array([len(units) for units in lots])
    expected, spread = UNITS * RATE, UNITS * RATE * (1 - RATE)
    assert abs(sizes.mean() - expected) < stats.norm.isf(ALPHA / 2) * math.sqrt(spread / LOTS)
    tail = stats.chi2.cdf(((sizes - expected) ** 2).sum() / spread, LOTS)
    assert min(tail, 1 - tail) > ALPHA / 2
    # A unit is in the next lot as often as in any other: nobody waits for his turn, no lot is used twice.
    both = sum(len(np.intersect1d(one, other)) for one, other in pairwise(lots))
    assert stats.poisson.sf(both - 1, (LOTS - 1) * UNITS * RATE**2) > ALPHA
    assert stats.poisson.cdf(both, (LOTS - 1) * UNITS * RATE**2) > ALPHA
    assert all(len(np.unique(units)) == len(units) for units in lots)


def test_lots_are_poisson(lab, monkeypatch):
    check_lots_are_poisson(lab, monkeypatch)


class Shuffled:
    """An epoch is a permutation, cut into equal lots."""

    sampling = "poisson"

    def __init__(self, population, rate):
        self.draw, self.population, self.size, self.left = (
            np.random.default_rng(1),
            population,
            round(rate * population),
            [],
        )
        self.sample_rate = rate

    def lot(self):
        if not self.left:
            self.left = list(self.draw.permutation(self.population).reshape(-1, self.size))
        return np.sort(self.left.pop())


class WithReplacement(Shuffled):
    def lot(self):
        return np.sort(self.draw.integers(self.population, size=self.draw.poisson(self.size)))


class Reused(Shuffled):
    """Each lot serves two steps."""

    def lot(self):
        if not self.left:
            self.left = [np.flatnonzero(self.draw.random(self.population) < RATE)] * 2
        return self.left.pop()


@pytest.mark.parametrize("sampler", [Shuffled, WithReplacement, Reused])
def test_other_lots_are_caught(lab, monkeypatch, sampler):
    monkeypatch.setattr(lot_gradients, "PoissonSampler", sampler)
    with lab.caught():
        check_lots_are_poisson(lab, monkeypatch)


class Fixed(FixedSizeSampler):
    def __init__(self, population, rate):
        super().__init__(population, 3)
        self.sample_rate = rate

    __slots__ = ("sample_rate",)


def check_the_event_says_how_lots_are_drawn(lab, patch):
    with patch.context() as inner:
        inner.setattr(lot_gradients, "PoissonSampler", Fixed)
        step = lab.mechanism(torch.ones(10, 1), settings(steps=1), noise=ReplayNoise([torch.zeros(2)]))
        refused = lab.refusal(NotAsPriced, lambda: step.gradient(lab.OneWeight(), partner))
    assert "without-replacement" in refused.message


def test_sampler_and_accountant_cannot_disagree(lab, monkeypatch):
    check_the_event_says_how_lots_are_drawn(lab, monkeypatch)


def test_an_event_that_always_says_poisson_is_caught(lab, monkeypatch):
    lab.plant(lot_gradients.CriticGradients, "answer", ("sampling=sampler.sampling", "sampling='poisson'"))
    with lab.caught():
        check_the_event_says_how_lots_are_drawn(lab, monkeypatch)


def check_the_divisor_is_public(lab):
    base = lab.people()
    kept = lab.train(base)
    for frame in (lab.with_unit(base, lab.ODD_RECORDS["duplicate"]), lab.without_unit(base, "p7"), base[:1], base[:0]):
        found = lab.train(frame, like=kept)
        assert found.settings == kept.settings
        assert found.settings[0].expected_units == pytest.approx(8.0)
        lab.assert_same_public(kept, found)
    lab.assert_within_sensitivity(kept, lab.train(lab.without_unit(base, "p7"), like=kept))


def test_the_divisor_is_public(lab):
    check_the_divisor_is_public(lab)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (
            private_critic_trainer,
            "private_critic_trainer",
            ("access.event.sample_rate * job.units", "access.event.sample_rate * max(1, job.records.n_units)"),
        ),
        (mechanism.Mechanism, "release", (RATE_ASKED, "sample_rate=min(1.0, 8 / max(1, records.n_units))")),
        (CriticSteps, "steps", ("self.event.steps", "min(self.event.steps, self._records.n_units)")),
        (CriticSteps, "gradient", ("self.settings.expected_units", "max(1, self._records.n_units - 16) ** 3 / 64")),
    ],
    ids=["len(D)", "q from n", "T from n", "divided by n"],
)  # fmt: skip
def test_sizes_taken_from_the_data_are_caught(lab, owner, name, edit):
    lab.plant(owner, name, edit)
    with pytest.raises((AssertionError, NotAsPriced)):
        check_the_divisor_is_public(lab)


def check_a_bought_count_sets_the_divisor_alone(lab, patch):
    found, learn = [], facts.learn
    for count in (20, 5000):
        with patch.context() as inner:
            inner.setattr(facts, "learn", lambda q, *a, n=count, **k: n if q.fact == "units" else learn(q, *a, **k))
            found.append(lab.train(lab.people(), lab.BOUGHT))
    settings, events = zip(*((one.settings[0], one.events[0]) for one in found), strict=True)
    assert [one.expected_units for one in settings] == pytest.approx([20 / 3, 5000 / 3])
    assert settings[0] == replace(settings[1], expected_units=settings[0].expected_units)
    assert events[0] == events[1]


def test_a_bought_count_sets_the_divisor_alone(lab, monkeypatch):
    check_a_bought_count_sets_the_divisor_alone(lab, monkeypatch)


def test_a_bought_count_in_the_rate_is_caught(lab, monkeypatch):
    taken = ("job.accesses[0]", "type(job.accesses[0])(purpose='q', event=type(job.accesses[0].event)("
             "noise_multiplier=1.5, sample_rate=min(1.0, 8 / job.units), steps=settings.steps))")  # fmt: skip
    lab.plant(Dpgan, "train", taken)
    with pytest.raises(SettingError, match="no access of the plan"):
        check_a_bought_count_sets_the_divisor_alone(lab, monkeypatch)


def check_small_tables_leave_the_same_trace(lab):
    """Lots that hold nobody: as many steps, authorisations and draws of noise, whoever is there to be drawn."""
    traces = []
    for rows in (0, 1, 50):
        asked, noise = [], ReplayNoise(repeat(torch.ones(2)))
        step = lab.mechanism(
            torch.ones(rows, 1), settings(steps=20, sample_rate=1e-12), noise=noise, authorise=asked.append
        )
        out = [step.gradient(lab.OneWeight(), partner).tolist() for _ in range(20)]
        traces.append((asked, noise.asked, out, step._mechanism.executed.to_json()))
    assert traces[0] == traces[1] == traces[2]
    assert traces[0][0] == list(range(1, 21))
    assert traces[0][1] == [(2, 1.0)] * 20
    assert traces[0][3][0]["event"]["steps"] == traces[0][3][0]["drawn"] == 20
    assert traces[0][2][0] == pytest.approx([1 / (UNITS * RATE)] * 2)


def test_an_empty_lot_is_a_lot(lab):
    check_small_tables_leave_the_same_trace(lab)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (lot_gradients.CriticGradients, "gradients", (PAIRED, f"1 / len(real)\n{PAIRED}")),
        (
            mechanism.Mechanism,
            "release",
            (
                "noisy, ran = self._noised(answer, access)",
                "if not answer.total.any():\n    return answer.total\nnoisy, ran = self._noised(answer, access)",
            ),
        ),
        (
            mechanism.Mechanism,
            "release",
            (
                "noisy, ran = self._noised(answer, access)",
                "self._taken[access] -= not answer.total.any()\nnoisy, ran = self._noised(answer, access)",
            ),
        ),
    ],
    ids=["crash", "no noise", "not counted"],
)
def test_a_skipped_empty_lot_is_caught(lab, owner, name, edit):
    lab.plant(owner, name, edit)
    with pytest.raises((AssertionError, ZeroDivisionError, NotAsPriced)):
        check_small_tables_leave_the_same_trace(lab)


def check_a_plan_opens_nothing(lab, patch):
    """A plan is made, explained and hashed with no file opened but the library's own, and the kernel's on memory."""
    opened, real = [], builtins.open
    with patch.context() as inner:
        inner.setattr(builtins, "open", lambda file, *a, **k: (opened.append(str(file)), real(file, *a, **k))[1])
        inner.setattr("io.open", builtins.open)
        made = plans.plan(
            Schema.parse(lab.PUBLIC), method="dpgan", epsilon=3.0, delta=1e-3, accountant="rdp", **lab.TINY
        )
        made.explain()
    assert [name for name in opened if not name.endswith((".py", ".pyc")) and not name.startswith("/sys/")] == []
    return made


def test_a_plan_reads_no_data(lab, monkeypatch):
    assert check_a_plan_opens_nothing(lab, monkeypatch).delta == 1e-3


def test_a_plan_that_looks_at_a_file_is_caught(lab, monkeypatch, tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("age\n3\n")
    opened = f"open({str(data)!r}).close()\n    chosen = registry.method(name)"
    lab.plant(planner, "plan_contents", ("chosen = registry.method(name)", opened))
    with lab.caught():
        check_a_plan_opens_nothing(lab, monkeypatch)


def check_delta_is_the_users_and_below_one_in_the_public_units(lab, patch):
    with patch.context() as inner:
        inner.setattr(accounting, "calibrate", lambda *arguments, **named: 1.0)
        made = partial(plans.plan, Schema.parse(lab.PUBLIC), method="dpgan", epsilon=1.0, accountant="rdp", steps=1)
        for delta in (None, 0.5, 1 / 24):
            assert lab.refusal(SettingError, partial(made, delta=delta)).field == "delta"
        large = made(delta=0.04)
        assert large.delta == 0.04
        assert any("1/units" in warning for warning in large.warnings)


def test_delta_is_the_users_and_below_one_in_the_public_units(lab, monkeypatch):
    check_delta_is_the_users_and_below_one_in_the_public_units(lab, monkeypatch)


def test_a_large_delta_let_through_is_caught(lab, monkeypatch):
    monkeypatch.setattr(Schema, "public_units", 1)
    with lab.caught():
        check_delta_is_the_users_and_below_one_in_the_public_units(lab, monkeypatch)


# -- tables ------------------------------------------------------------------------------------------------------------


def check_tables_and_their_noise_are_public(lab):
    """As many tables of the same shape and noise, whoever is in them: nobody, one unit, or one more."""
    base = lab.people()
    kept = lab.count(base)
    for frame in (lab.with_unit(base, lab.ODD_RECORDS["duplicate"]), base[:1], base[:0]):
        found = lab.count(frame, like=kept)
        lab.assert_same_public(kept, found)
        assert [query.shape for query in found.queries] == [query.shape for query in kept.queries]


def test_tables_and_their_noise_are_public(lab):
    check_tables_and_their_noise_are_public(lab)


WANTED = "[*repeated, *spare]"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (KeptTables, "released", (ACCESS, OTHER)),
        (
            noisy_tables.NoisyTables,
            "_released",
            (WANTED, f"{WANTED} * (self._tables._job.records.n_units > 3)"),
        ),
        (
            noisy_tables.NoisyTables,
            "_released",
            ("event.tables - len(repeated)", "event.tables - len(repeated) + (self._tables._job.records.n_units > 3)"),
        ),
    ],
    ids=["noise from n", "small tables left out", "a table from n"],
)  # fmt: skip
def test_tables_that_depend_on_the_data_are_caught(lab, owner, name, edit):
    lab.plant(owner, name, edit)
    with pytest.raises(
        (AssertionError, RuntimeError, ValueError, SettingError, StopIteration)
    ):  # tables of other shapes cannot be replayed
        check_tables_and_their_noise_are_public(lab)
