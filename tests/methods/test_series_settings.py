"""Settings for series: chosen from public numbers, refused in one line, their estimates; and that both kinds learn."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import doublure as db
from doublure.errors import SettingError
from doublure.schema import Schema
from doublure.training import series_gan_settings as series_settings
from doublure.training.gan_loop import Adversaries

TEXT = """
doublure: 1
kind: series
units: 20000
series: {time: when, length: 96, step: 15min, timezone: Europe/Paris, gaps: drop}
channels: {kw: {type: real, bounds: [0, 10], missing: false}}
attributes: {weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}}
"""
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "accountant": "rdp"}


def plan(method="gan", text=TEXT, **settings):
    return db.plan(Schema.parse(text), method=method, **({} if method == "gan" else BUDGET), **settings)


def test_series_have_their_own_settings():
    made = plan()
    assert made.kind == "series"
    assert made.settings.generator_type == "conv"
    with pytest.raises(SettingError, match="not a setting of this method"):
        plan(bins=3)
    with pytest.raises(SettingError, match="takes no series"):
        plan("guided")


def test_auto_is_statistics_and_says_why():
    made = plan("auto")
    assert made.method == "statistics"
    assert made.warnings[0].startswith("method auto is statistics here")
    assert made.settings.groups == 18


@pytest.mark.parametrize("generator", ["conv", "lstm"])
def test_a_plan_is_written_and_read_back(tmp_path, generator):
    made = plan("dpgan", steps=50, generator_type=generator, critic_type="conv")
    made.save(tmp_path / "plan.json")
    assert db.Plan.load(tmp_path / "plan.json") == made
    assert "one series" in made.explain()


def test_an_lstm_has_noise_for_every_step():
    assert plan(generator_type="lstm").settings.noise_width == 96 + 8
    assert plan(generator_type="lstm", noise_width=200).settings.noise_width == 200
    assert plan().settings.noise_width == 32
    with pytest.raises(SettingError, match=r"^noise_width"):
        plan(generator_type="lstm", noise_width=95)


def test_estimates_grow_with_what_is_asked(monkeypatch):
    monkeypatch.setattr("doublure.planning.machine._flops_a_second", lambda: 1e10)
    small, large = plan(steps=100), plan(steps=1000)
    assert large.seconds_estimate > 5 * small.seconds_estimate
    longer = plan(text=TEXT.replace("length: 96", "length: 9600").replace("15min", "9s"), steps=100)
    assert longer.memory_bytes > small.memory_bytes + 20_000 * 9_500 * 4
    several = TEXT.replace("units: 20000", "units: 20000\nunit: {name: meter, id: meter, max_records: 30}")
    assert plan(text=several, steps=100).seconds_estimate > 3 * small.seconds_estimate
    for one, other in (("mlp", "conv"), ("conv", "mlp")):
        assert plan(critic_type=one, steps=100).seconds_estimate != plan(critic_type=other, steps=100).seconds_estimate


def test_what_may_be_bought_counts_among_the_planes():
    text = TEXT.replace("gaps: drop", "gaps: missing").replace("missing: false}}\nat", "missing: {learn: 0.1}}}\nat")
    schema = Schema.parse(text)
    assert series_settings.count_planes(schema) == 3
    assert series_settings.count_values(schema) == 7
    assert series_settings.count_planes(Schema.parse(TEXT)) == 1


WAVES = """
doublure: 1
kind: series
units: 400
series: {length: 12, gaps: refuse}
channels: {a: {type: real, bounds: [-3, 3], precision: 2, missing: false}}
attributes: {phase: {type: category, values: [early, late], missing: false}}
"""


def waves(n=400):
    draw = np.random.default_rng(0)
    late = draw.random(n) < 0.5
    turns = 2 * np.pi * (np.arange(12) / 12 + np.where(late, 0.4, 0.0)[:, None])
    return {"a": np.sin(turns) + 0.2 * draw.standard_normal((n, 12)), "phase": np.where(late, "late", "early")}


@pytest.mark.parametrize(("generator", "critic"), [("conv", "mlp"), ("lstm", "conv")])
def test_a_synthesizer_learns_each_attributes_profile(tmp_path, generator, critic):
    """Large noise, seventy steps: the profile of each phase is there, and they are told apart."""
    torch.set_num_threads(1)
    made = db.plan(
        Schema.parse(WAVES), method="dpgan", epsilon=50.0, delta=1e-3, accountant="rdp", steps=70, lot_size=100,
        generator_batch=48, generator_type=generator, critic_type=critic, generator_lr=2e-3, lstm_units=16,
        critic_width=32, checkpoints=1, lr_decay=1.0, generator_average=0.9,
    )  # fmt: skip
    ledger = db.Ledger.create(tmp_path / "l", dataset="waves", epsilon=60.0, delta=1e-2)
    syn = db.fit(waves(), made, ledger=ledger, seed=1)
    private = waves()
    for phase in ("early", "late"):
        real = private["a"][private["phase"] == phase].mean(0)
        found = syn.sample(500, given={"phase": phase}, seed=2).values[:, :, 0].mean(0)
        assert np.corrcoef(real, found)[0, 1] > 0.9


def test_learning_rates_fall_with_the_iteration_alone(world):
    """Geometric, to a tenth at the end, and resumed where a run was cut off; other kinds keep theirs, unless asked."""
    own = plan("dpgan", steps=100, n_critic=2).settings
    assert [own.rate_left(number) for number in (0, 25, 50)] == pytest.approx([1, 0.1**0.5, 0.1])
    assert world.settled("dpgan").rate_left(50) == 1
    table = world.job("gan", steps=10, n_critic=1, lr_decay=0.5**10)
    settings, adversaries = table.settings, Adversaries(table, table.settings)
    adversaries.improve_generator()
    adversaries.improve_generator()
    rates = [optimizer.param_groups[0]["lr"] for optimizer in adversaries._optimizers().values()]
    assert rates == pytest.approx([settings.critic_lr / 4, settings.generator_lr / 4])
    kept = adversaries.state()
    again = Adversaries(table, table.settings)
    again.restore(kept)
    assert [optimizer.param_groups[0]["lr"] for optimizer in again._optimizers().values()] == pytest.approx(rates)
