"""Rule 6: every noisy step is an event, n_critic included, and the check comes before the step (rows 13 and 25)."""

from __future__ import annotations

import contextlib
import itertools

import pytest
import torch

from doublure import fitting
from doublure.errors import SettingError
from doublure.methods import table_statistics
from doublure.methods.dpgan import METHOD, Dpgan, DpganSettings
from doublure.methods.kept_tables import KeptTables
from doublure.private import accounting, mechanism
from doublure.private.accounting import GaussianEvent
from doublure.private.clipping import Constant
from doublure.private.gradients import CriticLoss
from doublure.private.sampling import PoissonSampler
from doublure.private.tabulation import PrivateTables
from doublure.schema import Schema

STEPS = 11  # no multiple of n_critic: the last iteration is cut short


def check_events_are_steps_are_draws(lab, n_critic):
    trace = lab.train(lab.people(), steps=STEPS, n_critic=n_critic)
    assert trace.count("noise") == trace.count("lot") == len(trace.outputs) == STEPS
    assert trace.public["authorised"][-1] == STEPS
    drawn, authorised, ahead = 0, 0, iter(trace.public["authorised"])
    for act in trace.order:
        authorised = next(ahead) if act == "authorise" else authorised
        drawn += act == "noise"
        assert drawn <= authorised
    (access,) = METHOD.accesses(
        Schema.parse(lab.PUBLIC), DpganSettings(**(lab.TINY | {"steps": STEPS, "n_critic": n_critic})), 1.5
    )
    assert access.event == GaussianEvent(noise_multiplier=1.5, sample_rate=1 / 3, steps=STEPS)


@pytest.mark.parametrize("n_critic", [1, 5])
def test_events_are_steps_are_draws(lab, n_critic):
    check_events_are_steps_are_draws(lab, n_critic)


COUNTED = "self.taken, self.taken + 1"
LOT = "self._records.lot(self._sampler.lot())"
NORMAL = "self._noise.normal(clipped.total.numel(), std).to(clipped.total.device)"


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (mechanism.PrivateStep, "gradient",
         [(COUNTED, "self.taken, self.taken + (next(self._calls) % self.settings.n_critic == 0)")]),
        (mechanism.PrivateStep, "gradient",
         [(LOT, "self._records.lot(self._kept if step % self.settings.n_critic else"
                " self.__dict__.update(_kept=self._sampler.lot()) or self._kept)")]),
        (mechanism.PrivateStep, "gradient",
         [(LOT, f"(self._sampler.lot(), {LOT})[1]")]),
        (mechanism.PrivateStep, "gradient",
         [(NORMAL, f"self._noise.normal(1, std) * 0 + {NORMAL}")]),
        (Dpgan, "accesses",
         [("self._own(settings).steps or 1", "self._own(settings).steps // self._own(settings).n_critic")]),
        (fitting._Run, "_authorise", [("step - 1 + every", "1 + every")]),
    ],
    ids=["an event an iteration", "one lot for n_critic steps", "a second lot", "a second draw", "priced by iteration",
         "not authorised"],
)  # fmt: skip
def test_a_step_that_is_not_counted_is_caught(lab, monkeypatch, owner, name, edits):
    monkeypatch.setattr(mechanism.PrivateStep, "_calls", itertools.count(1), raising=False)
    lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, lab.REFUSED)):
        check_events_are_steps_are_draws(lab, 5)


def check_the_check_comes_first(lab, patch):
    acts, lot = [], PoissonSampler.lot

    class Noise:
        name, for_tests = "watched", True

        def normal(self, size, std, *, device="cpu"):
            acts.append("noise")
            return torch.zeros(size)

    def authorise(step):
        acts.append(step)
        if step == 3:
            raise RuntimeError("the disk is full")

    def settings(steps):
        return mechanism.StepSettings(
            loss=CriticLoss(kind="wgan"), schedule=Constant(max_grad_norm=1.0), noise_multiplier=1.0, sample_rate=0.5,
            steps=steps, expected_units=1.0,
        )  # fmt: skip

    def partner(size, condition):
        return torch.zeros(size, 1)

    with patch.context() as inner:
        inner.setattr(PoissonSampler, "lot", lambda sampler: (acts.append("lot"), lot(sampler))[1])
        step, critic = lab.mechanism(torch.ones(4, 1), settings(5), noise=Noise(), authorise=authorise), lab.OneWeight()
        step.gradient(critic, partner)
        step.gradient(critic, partner)
        with contextlib.suppress(RuntimeError):
            step.gradient(critic, partner)
        assert acts == [1, "lot", "noise", 2, "lot", "noise", 3]
        acts.clear()
        step = lab.mechanism(torch.ones(4, 1), settings(2), noise=Noise(), authorise=authorise)
        for _ in range(2):
            step.gradient(critic, partner)
        assert lab.refusal(SettingError, lambda: step.gradient(critic, partner)).field == "steps"
        assert acts == [1, "lot", "noise", 2, "lot", "noise"]
        assert step.event.steps == 2
        resumed = lab.mechanism(torch.ones(4, 1), settings(2), noise=Noise(), authorise=authorise, taken=2)
        assert lab.refusal(SettingError, lambda: resumed.gradient(critic, partner)).field == "steps"


def test_the_check_comes_before_the_step(lab, monkeypatch):
    check_the_check_comes_first(lab, monkeypatch)


@pytest.mark.parametrize(
    "edits",
    [
        [
            ("self._authorise(self.taken + 1)", "pass"),
            (
                "return (clipped.total + noise) / self.settings.expected_units",
                ("self._authorise(self.taken)\nreturn (clipped.total + noise) / self.settings.expected_units"),
            ),
        ],
        [("self.taken >= self.settings.steps", "self.taken > self.settings.steps")],
        [("self._authorise(self.taken + 1)", "pass")],
    ],
    ids=["authorised after the draw", "one step more", "never authorised"],
)
def test_a_check_that_comes_too_late_is_caught(lab, monkeypatch, edits):
    lab.plant(mechanism.PrivateStep, "gradient", *edits)
    with lab.caught():
        check_the_check_comes_first(lab, monkeypatch)


def check_what_was_done_is_what_was_paid_for(lab, plan, folder):
    (done,) = lab.fit(lab.people(), plan, folder).settings
    (event,) = [access.event for access in plan.touches if isinstance(access.event, GaussianEvent)]
    assert event == GaussianEvent(
        noise_multiplier=done.noise_multiplier, sample_rate=done.sample_rate, steps=done.steps
    )
    spent = accounting.epsilon_of([access.event for access in plan.touches], plan.delta, accountant=plan.accountant)
    assert spent <= plan.epsilon


def test_what_was_done_is_what_was_paid_for(lab, plan, tmp_path):
    check_what_was_done_is_what_was_paid_for(lab, plan, tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        ("noise_multiplier=job.noise_multiplier or 0.0", "noise_multiplier=0.9 * job.noise_multiplier"),
        ("sample_rate=job.sample_rate,", "sample_rate=min(1.0, 1.1 * job.sample_rate),"),
        ("steps=settings.steps or 1", "steps=settings.steps + 1"),
    ],
    ids=["less noise", "larger lots", "more steps"],
)
def test_doing_more_than_was_paid_for_is_caught(lab, plan, tmp_path, edit):
    lab.plant(Dpgan, "train", edit)
    with pytest.raises((AssertionError, lab.REFUSED)):
        check_what_was_done_is_what_was_paid_for(lab, plan, tmp_path)


def test_a_step_beyond_the_plan_is_refused_by_the_ledger_too(lab, plan, tmp_path):
    """Two locks: a mechanism that does not stop is stopped by the reservation."""
    lab.plant(mechanism.PrivateStep, "gradient", ("self.taken >= self.settings.steps", "False"))
    lab.plant(mechanism.PrivateStep, "steps", ("return self.settings.steps", "return self.settings.steps + 1"))
    with pytest.raises(lab.REFUSED):
        lab.fit(lab.people(), plan, tmp_path)


# -- releases of tables ------------------------------------------------------------------------------------------------


def check_releases_are_events_are_draws(lab, patch, plan):
    made, built = [], PrivateTables.__init__

    def kept(tables, *arguments, **named):
        built(tables, *arguments, **named)
        made.append(tables)

    with patch.context() as inner:
        inner.setattr(PrivateTables, "__init__", kept)
        trace = lab.count(lab.people())
    (tables,) = made
    events = [access.event for access in plan.touches]
    assert list(tables.events) == events
    assert trace.public["authorised"] == list(range(1, plan.steps + 1))
    scales = [event.scale for event in events for _ in range(event.tables)]
    assert trace.allowed == scales
    expected = [act for event in events for act in ["authorise", *["noise"] * event.tables]]
    assert trace.order == expected  # leave first, then one draw a table
    assert accounting.epsilon_of(events, plan.delta, accountant=plan.accountant) <= plan.epsilon


def test_releases_are_events_are_draws(lab, monkeypatch, counting_plan):
    check_releases_are_events_are_draws(lab, monkeypatch, counting_plan)


RELEASED = "return [statistics.noisy_histogram(counts, sigma=event.scale) for counts in counted]"
TWICE = RELEASED.replace("return ", "made = ").replace(
    "[statistics", "[statistics.noisy_histogram(counts, sigma=event.scale) + 0 * statistics"
)


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (PrivateTables, "release", [("self.taken += 1", "pass")]),
        (PrivateTables, "release", [("self._authorise(self.taken + 1)", "pass")]),
        (PrivateTables, "release", [("self._authorise(self.taken + 1)", "pass"),
                                    (RELEASED, RELEASED.replace("return ", "made = ")
                                     + "\n    self._authorise(self.taken)\n    return made")]),
        (PrivateTables, "release", [(RELEASED, TWICE + "\n    return made")]),
        (PrivateTables, "release", [("event = self._releases[self.taken]", "event = self._releases[-1]")]),
        (KeptTables, "released", [("counted = self._tables.release(wanted)",
                                                "self._tables.release(wanted)\n"
                                                "        counted = self._tables.release(wanted)")]),
        (table_statistics, "counting", [("tables=tables", "tables=tables - 1")]),
    ],
    ids=["not counted", "not authorised", "authorised afterwards", "two draws", "another release's noise",
         "released twice", "priced as fewer"],
)  # fmt: skip
def test_a_release_that_is_not_counted_is_caught(lab, monkeypatch, counting_plan, owner, name, edits):
    lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, lab.REFUSED, SettingError)):
        check_releases_are_events_are_draws(lab, monkeypatch, counting_plan)
