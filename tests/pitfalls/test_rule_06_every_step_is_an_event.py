"""Rule 6: every noisy step is an event, n_critic included, and the check comes before the step (rows 13 and 25)."""

from __future__ import annotations

import contextlib
import itertools
import json

import numpy as np
import pytest
import torch

from doublure.errors import InputError, NotAsPriced, SettingError
from doublure.methods.dpgan.method import METHOD, Dpgan
from doublure.methods.dpgan.settings import DpganSettings
from doublure.methods.statistics.tables import noisy_tables
from doublure.private import accounting
from doublure.private.accounting import GaussianEvent, event_to_json
from doublure.private.clipping import ConstantSchedule
from doublure.private.critic_steps import CriticSteps
from doublure.private.gradients import CriticLoss
from doublure.private.mechanism import Mechanism
from doublure.private.noise import ScaledNoise
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.sampling import PoissonSampler
from doublure.run import running
from doublure.schema import Schema
from doublure.training.checkpoints import KeptTables

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


COUNTED = "self._spent[access] = self._taken[access] = taken + 1"
LOT = "sampler.lot()"
RATE = "getattr(event, 'sample_rate', 1.0)"
NORMAL = "self._noise.normal(total.size, event.noise_multiplier * moved.l2)"
ASKED = "self._authorise(access, 0 if access.path is not None else self._before[access] + taken + 1)"
NOISY = "noisy, ran = self._noised(answer, access)"
PAID = "self._pay(access)"
DRAWN_FIRST = [(PAID, "pass"), (NOISY, f"{NOISY}\nself._pay(access)")]


@pytest.mark.parametrize(
    ("owner", "name", "edits"),
    [
        (Mechanism, "_pay", [(COUNTED, COUNTED.replace("+ 1", "+ (next(self._calls) % 5 == 0)"))]),
        (CriticGradients, "answer",
         [(LOT, f"self._kept if self.step % self.settings.n_critic else self.__dict__.update(_kept={LOT}) or self._kept"
          )]),
        (CriticGradients, "answer", [(LOT, f"({LOT}, {LOT})[1]")]),
        (Mechanism, "_noised", [(NORMAL, f"({NORMAL}, {NORMAL})[1]")]),
        (Dpgan, "accesses", [("settings.steps or 1", "settings.steps // settings.n_critic")]),
        (running.FitRun, "_authorise", [("self._reservation.authorised", "self._reservation.authorised + 1")]),
    ],
    ids=["an event an iteration", "one lot for n_critic steps", "a second lot", "a second draw", "priced by iteration",
         "not authorised"],
)  # fmt: skip
def test_a_step_that_is_not_counted_is_caught(lab, monkeypatch, owner, name, edits):
    monkeypatch.setattr(Mechanism, "_calls", itertools.count(1), raising=False)
    lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, lab.REFUSED, NotAsPriced)):
        check_events_are_steps_are_draws(lab, 5)


def check_the_check_comes_first(lab, patch):
    acts, lot = [], PoissonSampler.lot

    class Noise:
        name, for_tests = "watched", True

        def normal(self, size, std):
            acts.append("noise")
            return ScaledNoise(np.zeros(size, dtype=np.float32), std)

    def authorise(step):
        acts.append(step)
        if step == 3:
            raise RuntimeError("the disk is full")

    def settings(steps):
        return dict(
            loss=CriticLoss(kind="wgan"), schedule=ConstantSchedule(max_grad_norm=1.0), noise_multiplier=1.0,
            sample_rate=0.5, steps=steps, expected_units=1.0,
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
        assert acts == ["lot", 1, "noise", "lot", 2, "noise", "lot", 3]
        acts.clear()
        step = lab.mechanism(torch.ones(4, 1), settings(2), noise=Noise(), authorise=authorise)
        for _ in range(2):
            step.gradient(critic, partner)
        assert lab.refusal(SettingError, lambda: step.gradient(critic, partner)).field == "steps"
        assert acts == ["lot", 1, "noise", "lot", 2, "noise"]
        assert step.taken == 2
        resumed = lab.mechanism(torch.ones(4, 1), settings(2), noise=Noise(), authorise=authorise, taken=2)
        assert lab.refusal(SettingError, lambda: resumed.gradient(critic, partner)).field == "steps"


def test_the_check_comes_before_the_step(lab, monkeypatch):
    check_the_check_comes_first(lab, monkeypatch)


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("release", DRAWN_FIRST),
        ("release", [("taken >= steps_of(access)", "taken > steps_of(access)")]),
        ("_pay", [(ASKED, "pass")]),
    ],
    ids=["authorised after the draw", "one step more", "never authorised"],
)
def test_a_check_that_comes_too_late_is_caught(lab, monkeypatch, name, edits):
    lab.plant(Mechanism, name, *edits)
    with lab.caught():
        check_the_check_comes_first(lab, monkeypatch)


def check_what_was_done_is_what_was_paid_for(lab, plan, folder):
    (done,) = lab.fit(lab.people(), plan, folder).events
    (event,) = [access.event for access in plan.touches if isinstance(access.event, GaussianEvent)]
    assert event == done
    ran = json.loads((folder / "run" / "executed.json").read_text())
    assert ran[-1]["expected"] == event_to_json(event)
    assert ran[-1]["event"] == pytest.approx(event_to_json(event))
    spent = accounting.epsilon_of([access.event for access in plan.touches], plan.delta, accountant=plan.accountant)
    assert spent <= plan.epsilon


def test_what_was_done_is_what_was_paid_for(lab, plan, tmp_path):
    check_what_was_done_is_what_was_paid_for(lab, plan, tmp_path)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (Mechanism, "_noised", (NORMAL, NORMAL.replace("event", "0.9 * event"))),
        (Mechanism, "release", (RATE, f"min(1.0, 1.1 * {RATE})")),
        (CriticSteps, "steps", ("self.event.steps", "self.event.steps + 1")),
    ],
    ids=["less noise", "larger lots", "more steps"],
)
def test_doing_more_than_was_paid_for_is_caught(lab, plan, tmp_path, owner, name, edit):
    lab.plant(owner, name, edit)
    with pytest.raises((SettingError, NotAsPriced)):  # before anything of it is given out
        check_what_was_done_is_what_was_paid_for(lab, plan, tmp_path)


def test_a_step_beyond_the_plan_is_refused_by_the_ledger_too(lab, plan, tmp_path):
    """Two locks: a mechanism that does not stop is stopped by the reservation."""
    lab.plant(Mechanism, "release", ("taken >= steps_of(access)", "False"))
    lab.plant(CriticSteps, "steps", ("self.event.steps", "self.event.steps + 1"))
    with pytest.raises(lab.REFUSED):
        lab.fit(lab.people(), plan, tmp_path)


# -- releases of tables ------------------------------------------------------------------------------------------------


def check_releases_are_events_are_draws(lab, plan):
    trace = lab.count(lab.people())
    events = [access.event for access in plan.touches]
    assert trace.public["authorised"] == list(range(1, plan.steps + 1))
    assert trace.allowed == [event.scale for event in events]
    assert trace.order == ["authorise", "noise"] * len(events)  # leave first, then one draw a release
    assert accounting.epsilon_of(events, plan.delta, accountant=plan.accountant) <= plan.epsilon


def test_releases_are_events_are_draws(lab, counting_plan):
    check_releases_are_events_are_draws(lab, counting_plan)


WHOLE = "whole_noise.gaussian(total, scale=event.scale)"
RELEASED = "job.mechanism.release(counts, access, job.everyone)"
SPARE = "event.tables - len(repeated)"
TWICE = (KeptTables, "released", (RELEASED, f"({RELEASED}, {RELEASED})[1]"))


@pytest.mark.parametrize(
    "planted",
    [
        [(Mechanism, "_pay", (COUNTED, "pass")), TWICE],
        [(Mechanism, "_pay", (ASKED, "pass"))],
        [(Mechanism, "release", *DRAWN_FIRST)],
        [(Mechanism, "_noised", (WHOLE, f"({WHOLE}, {WHOLE})[1]"))],
        [(KeptTables, "released", ("self._accesses[number - 1]", "self._accesses[-1]"))],
        [TWICE],
        [(noisy_tables.NoisyTables, "_released", (SPARE, SPARE.replace("- len", "+ 1 - len")))],
    ],
    ids=["not counted", "not authorised", "authorised afterwards", "two draws", "another release's noise",
         "released twice", "more than were priced"],
)  # fmt: skip
def test_a_release_that_is_not_counted_is_caught(lab, planted):
    for owner, name, *edits in planted:
        lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, lab.REFUSED, InputError, NotAsPriced)):
        check_releases_are_events_are_draws(lab, lab.counting_plan())
