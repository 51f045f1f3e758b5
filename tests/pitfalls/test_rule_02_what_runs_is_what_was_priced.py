"""Rule 2: q, σ, T and C of what ran are the plan's, for every method and however many units turn out to be there.

A number of units that was bought sets a divisor. Whoever takes a rate or a noise from it runs another mechanism than
the one that was priced: measured where a lot is drawn and where noise is, not where somebody says what was meant.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from tiers import exhaustive

import doublure as db
from doublure.errors import NotAsPriced, SettingError
from doublure.ledger import Reservation
from doublure.methods.guided.tables import TableGuided
from doublure.methods.statistics.series.copula_plan import WEIGHT, tree_weights
from doublure.methods.statistics.tables import noisy_tables
from doublure.private import facts, whole_noise
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.executed import as_priced
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.lot_gradients import CriticSettings
from doublure.private.sampling import PoissonSampler
from doublure.training import critic_steps as private_critic_trainer
from doublure.training import gan_loop as adversarial
from doublure.training.checkpoints import KeptTables

MAGNITUDE = 90
TABLE = """
doublure: 1
kind: table
units: UNITS
columns:
  a: {type: category, values: [x, y, z], missing: false}
  b: {type: category, values: [u, v], missing: false, roles: [condition], shares: {u: 0.5, v: 0.5}}
  c: {type: integer, bounds: [0, 9], missing: false}
"""
IMAGES = """
doublure: 1
kind: images
units: UNITS
images: {shape: [8, 8, 1]}
label: {values: [0, 2, 4, 6, 8]}
"""
SERIES = """
doublure: 1
kind: series
unit: {name: meter, id: meter, max_records: 2}
units: UNITS
series: {time: at, length: 4, step: 6h, timezone: UTC}
channels:
  kw: {type: real, bounds: [0, 10], missing: true}
"""
GAN = {"steps": 4, "lot_size": 20, "width": 8, "depth": 1, "critic_width": 8, "critic_depth": 1, "noise_width": 4,
       "generator_batch": 8, "checkpoints": 2, "bins": 4, "max_grad_norm": 0.25}  # fmt: skip
IMAGE_GAN = {"steps": 4, "lot_size": 20, "noise_width": 4, "generator_batch": 8, "checkpoints": 2, "features": 6,
             "critic_channels": [4], "channels": [6, 4], "max_grad_norm": 0.25}  # fmt: skip
COUNTED = {"components": 2, "fit_steps": 3, "groups": 2}
EMBEDDED = {"features": 64, "fit_steps": 2, "batch": 20, "latent": 4, "hidden": 8, "channels": [6, 4]}
LABELLER = {"labeller_steps": 3, "view_images": 100, "view_width": 5, "tries": 2, "labeller_clip": 0.125}
CRITIC = {"critic_share": 0.4, "critic_steps": 3, "critic_lot": 30, "critic_clip": 0.5}

# A record moves the root and a difference a level of each of four steps' trees: of 256 cells, and of a group's 64.
TREES = tuple(math.sqrt(4 * np.square(tree_weights(leaves) / WEIGHT).sum()) for leaves in (256, 64))


@dataclass(frozen=True, kw_only=True)
class Case:
    """A method on a kind of data.

    Attributes:
        text: The schema.
        settings: The method's.
        clips: Of each access, C; None where tables are counted.
        lots: Of each access, whether it draws lots.
    """

    method: str
    text: str
    settings: dict[str, Any]
    clips: tuple[float | None, ...]
    lots: tuple[bool, ...] = (False, False, False)


CASES = {
    "statistics, table": Case(method="statistics", text=TABLE, settings=COUNTED, clips=(None,) * 3),
    "statistics, images": Case(method="statistics", text=IMAGES, settings=EMBEDDED, clips=(1.0,)),
    "statistics, series": Case(
        method="statistics", text=SERIES, settings={"level_groups": 2, "own_tables": True}, clips=(*TREES, 1.0, 1.0),
        lots=(False,) * 4,
    ),
    "statistics, series by chains": Case(
        method="statistics", text=SERIES, clips=(None, None),
        settings={"model": "chains", "fit_steps": 2, "groups": 2, "levels": 2, "bins": 4},
    ),
    "guided, table": Case(
        method="guided", text=TABLE, settings=COUNTED | CRITIC | {"critic_width": 8}, clips=(None, None, None, 0.5),
        lots=(False, False, False, True),
    ),
    "guided, images": Case(
        method="guided", text=IMAGES, clips=(1.0, 0.5, 0.125), lots=(False, True, False),
        settings=EMBEDDED | CRITIC | LABELLER
        | {"critic_channels": [4], "labeller_share": 0.3, "labels_compared": False},
    ),
    "dpgan, table": Case(method="dpgan", text=TABLE, settings=GAN, clips=(0.25,), lots=(True,)),
    "dpgan, images": Case(method="dpgan", text=IMAGES, settings=IMAGE_GAN, clips=(0.25,), lots=(True,)),
    "dpgan, series": Case(
        method="dpgan", text=SERIES, clips=(0.25,), lots=(True,),
        settings={key: GAN[key] for key in ("steps", "lot_size", "noise_width", "generator_batch", "max_grad_norm")},
    ),
    "bayesgan, table": Case(
        method="bayesgan", text=TABLE, settings=GAN | {"distances": 5}, clips=(0.25,), lots=(True,)
    ),
    "bayesgan, images": Case(
        method="bayesgan", text=IMAGES, settings=IMAGE_GAN | LABELLER | {"distances": 5}, clips=(0.25, 0.125),
        lots=(True, False),
    ),
    "latentgan, critic": Case(
        method="latentgan", text=IMAGES, clips=(0.25, 0.125), lots=(True, False),
        settings=LABELLER | {key: GAN[key] for key in ("steps", "lot_size", "width", "critic_width", "max_grad_norm")}
        | {"teacher": "critic", "labeller_share": 0.5, "inversion_steps": 1},
    ),
    "latentgan, mixture": Case(
        method="latentgan", text=IMAGES, settings={"labeller_share": 0, "inversion_steps": 1}, clips=(1.0, 1.0)
    ),
}  # fmt: skip
"""Each draws lots of so few units that no rate comes to 1 at any of the sizes below."""


@dataclass
class Ran:
    """What was handed to the primitives, in order."""

    rates: list[float] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    torch.set_num_threads(1)
    found = Ran()
    lot, normal, whole, gaussian = PoissonSampler.lot, OsKeyedNoise.normal, OsKeyedNoise.whole, whole_noise.gaussian

    def drawn(sampler: PoissonSampler) -> Any:
        found.rates.append(sampler.sample_rate)
        return lot(sampler)

    def noisy(source: OsKeyedNoise, size: int, std: float) -> Any:
        found.noise.append(std)
        return normal(source, size, std)

    def noisy_in_steps(source: OsKeyedNoise, size: int, std: float, unit: float) -> Any:
        found.noise.append(std)
        return whole(source, size, std, unit)

    def counted(counts: Any, *, scale: float) -> Any:
        found.noise.append(scale)
        return gaussian(counts, scale=scale)

    monkeypatch.setattr(PoissonSampler, "lot", drawn)
    monkeypatch.setattr(OsKeyedNoise, "normal", noisy)
    monkeypatch.setattr(OsKeyedNoise, "whole", noisy_in_steps)
    monkeypatch.setattr(whole_noise, "gaussian", counted)
    return found


def data_of(case: Case, units: int) -> Any:
    draw = np.random.default_rng(0)
    if case.text == IMAGES:
        digits = load_digits()
        even = np.resize(np.flatnonzero(digits.target % 2 == 0), units)
        pixels = (digits.images * 255 / 16).round().astype(np.uint8)[..., None]
        return {"images": pixels[even], "labels": digits.target[even]}
    if case.text == SERIES:
        steps = pd.date_range("2024-01-01", periods=8, freq="6h", tz="UTC")  # two days
        meters = np.repeat([f"m{unit}" for unit in range(units)], len(steps))
        return pd.DataFrame(
            {
                "meter": meters,
                "at": np.tile(steps.strftime("%Y-%m-%dT%H:%MZ"), units),
                "kw": draw.random(8 * units) * 10,
            }
        )
    return pd.DataFrame(
        {"a": draw.choice(list("xyz"), units), "b": draw.choice(list("uv"), units), "c": draw.integers(0, 10, units)}
    )


def check_what_runs_is_what_was_priced(letters, ran, tmp_path, name, units, times):
    case = CASES[name]
    said = str(MAGNITUDE) if units == "declared" else f"{{learn: 9.0, magnitude: {MAGNITUDE}}}"
    text = case.text.replace("UNITS", said)
    public = {"public": str(letters.folder)} if case.method == "latentgan" else {}
    plan = db.plan(
        db.Schema.parse(text), method=case.method, epsilon=20.0, delta=1e-4, accountant="rdp", **case.settings, **public
    )
    ledger = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=1e6, delta=0.1)
    syn = db.fit(data_of(case, round(MAGNITUDE * times)), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    if units == "bought":
        assert syn.schema.public_units == pytest.approx(MAGNITUDE * times, rel=0.5)
    rates, noise = [], []
    records = syn.schema.unit.max_records
    for access, clip, lots in zip(plan.training, case.clips, case.lots, strict=False):
        event = access.event
        if isinstance(event, DiscreteGaussianEvent):
            noise += [event.scale]
            continue
        assert isinstance(event, GaussianEvent)
        noise += [event.noise_multiplier * clip * (1 if lots else records)] * event.steps
        rates += [event.sample_rate] * event.steps if lots else []
        assert not lots or 0 < event.sample_rate < 0.5
    assert len(plan.training) == len(case.clips)
    assert ran.noise == pytest.approx(noise, rel=1e-12)
    assert ran.rates == pytest.approx(rates, rel=1e-12)


def cases():
    """Return each method with units declared and bought, and with few and many: each pair of them, not each three."""
    for number, name in enumerate(CASES):
        for turn, units in enumerate(["declared", "bought"]):
            for times in (0.1, 10):
                paired = (times == 10) == ((number + turn) % 2 == 0)
                yield pytest.param(name, units, times, marks=() if paired else exhaustive)


@pytest.mark.parametrize(("name", "units", "times"), list(cases()))
def test_what_runs_is_what_was_priced(letters, ran, tmp_path, name, units, times):
    check_what_runs_is_what_was_priced(letters, ran, tmp_path, name, units, times)


# -- what was bought is answered otherwise than anybody expected ------------------------------------------------------

BOUGHT = f"""
doublure: 1
kind: table
units: {{learn: 1.0, magnitude: {MAGNITUDE}}}
columns:
  a: {{type: category, values: {{learn: 1.0}}, other: Other, missing: {{learn: 1.0}}}}
  b: {{type: category, values: [u, v], missing: false, roles: [condition], shares: {{learn: 1.0}}}}
  c: {{type: integer, bounds: {{learn: 1.0}}, missing: false}}
  d: {{type: real, bounds: {{learn: 1.0}}, missing: false}}
"""
SMALL = {
    "units": 20, "columns.a.values": ("x",), "columns.a.missing": False, "columns.b.shares": {"u": 0.9, "v": 0.1},
    "columns.c.bounds": (0, 1), "columns.d.bounds": (0.0, 0.1),
}  # fmt: skip
LARGE = {
    "units": 5000, "columns.a.values": tuple("xyzstw"), "columns.a.missing": True,
    "columns.b.shares": {"u": 0.2, "v": 0.8}, "columns.c.bounds": (-400, 90_000), "columns.d.bounds": (-1e9, 1e9),
}  # fmt: skip
ANSWERED = ("dpgan, table", "statistics, table", "guided, table")


@dataclass
class Answered:
    """What a run did, and what it was built of.

    Attributes:
        order: What was marked, authorised, drawn and noised, in order, each with its figure.
        critics: A critic's settings, step by step.
        sizes: How many numbers each noise was for.
        executed: As it was written down.
        schema: With the answers.
    """

    order: list[tuple[str, Any]] = field(default_factory=list)
    critics: list[CriticSettings] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    executed: Any = None
    schema: Any = None


def answered(patch: pytest.MonkeyPatch, plan: db.Plan, data: Any, answers: dict[str, Any], folder: Path) -> Answered:
    """Fit a plan with these answers in the place of what was learned, which is asked and paid for all the same."""
    found = Answered()
    learn, advance, marked = facts.learn, Reservation.advance, Reservation.noise_drawn
    lot, normal, gaussian, step = PoissonSampler.lot, OsKeyedNoise.normal, whole_noise.gaussian, CriticSteps.gradient

    def learned(question: Any, *given: Any, **named: Any) -> Any:
        learn(question, *given, **named)
        return answers[question.path]

    def before(act: str, run: Any, figure: Any = lambda self, *given, **named: given[-1]) -> Any:
        def recorded(*given: Any, **named: Any) -> Any:
            found.order.append((act, figure(*given, **named)))
            return run(*given, **named)

        return recorded

    def noisy(source: OsKeyedNoise, size: int, std: float) -> Any:
        found.sizes.append(size)
        return normal(source, size, std)

    def counted(counts: Any, *, scale: float) -> Any:
        found.sizes.append(counts.size)
        return gaussian(counts, scale=scale)

    def stepped(made: CriticSteps, *given: Any) -> Any:
        found.critics.append(made.settings)
        return step(made, *given)

    with patch.context() as inner:
        inner.setattr(facts, "learn", learned)
        inner.setattr(Reservation, "noise_drawn", before("mark", marked))
        inner.setattr(Reservation, "advance", before("authorise", advance))
        inner.setattr(PoissonSampler, "lot", before("lot", lot, lambda sampler: sampler.sample_rate))
        inner.setattr(OsKeyedNoise, "normal", before("noise", noisy))
        inner.setattr(whole_noise, "gaussian", before("noise", counted, lambda counts, *, scale: scale))
        inner.setattr(CriticSteps, "gradient", before("step", stepped, lambda made, *given: made.event))
        folder.mkdir()
        ledger = db.Ledger.create(folder / "ledger", dataset="d", epsilon=1e6, delta=0.1)
        found.schema = db.fit(data, plan, ledger=ledger, out=folder / "run", seed=1).schema
    found.executed = json.loads((folder / "run" / "executed.json").read_text())
    return found


def check_answers_set_the_divisor_and_the_encoding_alone(patch: pytest.MonkeyPatch, folder: Path, name: str) -> None:
    """Rates, noise, steps and C are the same bit for bit, whatever is learned."""
    case = CASES[name]
    plan = db.plan(
        db.Schema.parse(BOUGHT), method=case.method, epsilon=20.0, delta=1e-4, accountant="rdp", **case.settings
    )
    data = data_of(case, MAGNITUDE).assign(d=0.5)
    small, large = (answered(patch, plan, data, answers, folder / str(answers["units"])) for answers in (SMALL, LARGE))
    assert small.order == large.order
    assert small.executed == large.executed
    assert as_priced(small.executed)
    divisors = [[each.expected_units for each in one.critics] for one in (small, large)]
    assert np.divide(*divisors[::-1]) == pytest.approx(np.full(len(small.critics), 5000 / 20))
    assert [replace(each, expected_units=1.0) for each in small.critics] == [
        replace(each, expected_units=1.0) for each in large.critics
    ]
    assert small.schema != large.schema
    assert small.sizes != large.sizes
    acts = [act for act, _ in small.order]
    assert acts.count("noise") == plan.steps
    assert acts.count("mark") == len(SMALL)
    assert acts.count("step") == acts.count("lot") == len(small.critics)
    assert bool(small.critics) == any(case.lots)


@pytest.mark.parametrize("name", ANSWERED)
def test_answers_set_the_divisor_and_the_encoding_alone(monkeypatch, tmp_path, name):
    check_answers_set_the_divisor_and_the_encoding_alone(monkeypatch, tmp_path, name)


EVENT = "job.accesses[-1].event"
REBUILT = (
    f"type({EVENT})(noise_multiplier={EVENT}.noise_multiplier, sample_rate=min(1.0, settings.critic_lot / job.units), "
    f"steps={EVENT}.steps)"
)
STEP = "critic_settings(settings, expected_units=access.event.sample_rate * job.units, **special)"
OTHER = f"__import__('dataclasses').replace({STEP}, schedule=type(settings.schedule)(max_grad_norm=%s))"
BY_ANSWERS = {
    "C by the units": (
        "dpgan, table", private_critic_trainer, "private_critic_trainer",
        (STEP, OTHER % "job.units / 100"),
    ),
    "C by the domain": (
        "dpgan, table", private_critic_trainer, "private_critic_trainer",
        (STEP, OTHER % "1 / job.encoder.body_shape[0]"),
    ),
    "steps by the units": (
        "dpgan, table", adversarial, "train",
        ("teacher.taken < teacher.steps", "teacher.taken < min(teacher.steps, job.units // 10)"),
    ),
    "a rate by the units": (
        "guided, table", TableGuided, "train",
        ("job.accesses[-1]", f"type(job.accesses[-1])(purpose='teach the critic', event={REBUILT})"),
    ),
    "pairs by the units": (
        "statistics, table", noisy_tables.NoisyTables, "_released",
        ("[*repeated, *spare]", "[*repeated, *spare][: 1 + self._tables._job.units // 1000]"),
    ),
    "a release by the units": (
        "statistics, table", noisy_tables.NoisyTables, "count",
        ("self._count_pairs()", "self._count_pairs() if self._tables._job.units > 100 else None"),
    ),
    "records by the units": (
        "statistics, table", KeptTables, "released",
        ("job.encoder.schema.most_records", "max(1, job.units // 1000)"),
    ),
    "C by the divisor": (
        "guided, table", CriticSettings, "bound",
        ("self.schedule.at(step // self.n_critic)", "self.schedule.at(step // self.n_critic) * self.expected_units"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", BY_ANSWERS)
def test_a_mechanism_that_follows_from_an_answer_is_caught(lab, monkeypatch, tmp_path, mutant):
    name, owner, function, edit = BY_ANSWERS[mutant]
    lab.plant(owner, function, edit)
    with pytest.raises((AssertionError, NotAsPriced, SettingError, RuntimeError, IndexError)):
        check_answers_set_the_divisor_and_the_encoding_alone(monkeypatch, tmp_path, name)
