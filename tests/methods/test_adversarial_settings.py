"""The settings of the GANs: refused in one line, and decided from public numbers alone."""

from __future__ import annotations

import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods.dpgan.settings import DpganSettings
from doublure.schema import Schema
from doublure.training.gan_settings import TableAdversarialSettings

ODD = {
    "loss": "gan",
    "gradient_penalty": -1,
    "weight_clip": 0,
    "n_critic": 0,
    "lot_size": 0,
    "critic_optimizer": "adamw",
    "generator_lr": 0,
    "generator_batch": 0,
    "generator_average": 1.0,
    "width": 0,
    "depth": 11,
    "critic_width": 10**6,
    "critic_depth": -1,
    "noise_width": 0,
    "numerics": "log",
    "bins": 1,
    "checkpoints": 0,
}


def schema(units: object = 400) -> Schema:
    return Schema.parse(
        f"doublure: 1\nkind: table\nunits: {units}\ncolumns:\n  job: {{type: category, values: [a, b], missing: false}}"
    )


@pytest.mark.parametrize("name", ODD)
def test_a_value_out_of_range_is_refused(world, name):
    assert world.refusal(TableAdversarialSettings.read, {name: ODD[name]}).field == name


def test_a_loss_or_an_optimizer_that_is_none_is_refused_with_those_that_are(world):
    for name, known in (("loss", ("wgan-gp", "wgan", "logistic", "hinge")), ("critic_optimizer", ("adam", "sgd"))):
        line = str(world.refusal(TableAdversarialSettings.read, {name: "magic"}))
        assert all(value in line for value in known)


def test_the_penalty_follows_the_loss_unless_it_is_given():
    penalties = {
        loss: TableAdversarialSettings(loss=loss).penalty for loss in ("wgan-gp", "wgan", "logistic", "hinge")
    }  # fmt: skip
    assert penalties.pop("wgan") == 0  # it clips weights instead
    assert all(penalty > 0 for penalty in penalties.values())
    assert TableAdversarialSettings(gradient_penalty=0.0).penalty == 0
    assert TableAdversarialSettings(loss="hinge", gradient_penalty=3.0).penalty == 3


@pytest.mark.parametrize(("units", "lot"), [(10_000, 64), (300, 30), (50, 8), (5, 5)])
def test_lots_are_a_share_of_the_public_units_within_limits(units, lot):
    sizes = {"lot_share": 0.1, "smallest_lot": 8, "largest_lot": 64, "steps": 77}
    decided = TableAdversarialSettings().resolve_defaults(schema(units), **sizes)
    assert (decided.lot_size, decided.steps, decided.gradient_penalty) == (lot, 77, TableAdversarialSettings().penalty)
    asked = TableAdversarialSettings(lot_size=20, steps=3).resolve_defaults(schema(units), **sizes)
    assert (asked.lot_size, asked.steps) == (min(20, units), 3)  # no lot is larger than everybody
    bought = f"{{learn: 0.1, magnitude: {units}}}"  # a count that is yet to be bought decides nothing
    assert TableAdversarialSettings().resolve_defaults(schema(bought), **sizes) == decided


@pytest.mark.parametrize(
    ("steps", "checkpoints", "n_critic", "every"),
    [(600, 50, 1, 12), (600, 50, 5, 15), (7, 2, 3, 6), (6, 50, 1, 1), (6, 1, 1, 6)],
)
def test_states_are_kept_after_whole_iterations(steps, checkpoints, n_critic, every):
    settings = TableAdversarialSettings(steps=steps, checkpoints=checkpoints, n_critic=n_critic)
    assert settings.checkpoint_every == every


@pytest.mark.parametrize(
    "more",
    [
        {"steps": 60},
        {"lot_size": 200},
        {"critic_width": 64},
        {"critic_depth": 5},
        {"width": 2048},
        {"generator_batch": 9999},
    ],
    ids=str,
)
def test_more_work_is_estimated_for_more(world, more):
    base = TableAdversarialSettings(**(world.TINY | {"gradient_penalty": 1.0}))
    little, much = (settings.work(schema()) for settings in (base, base.model_copy(update=more)))
    assert 0 < little.flops < much.flops
    assert much.steps == more.get("steps", base.steps)
    assert 0 < little.memory_bytes <= much.memory_bytes
    assert base.work(schema(4000)).memory_bytes > little.memory_bytes  # the records themselves
    assert base.model_copy(update={"n_critic": 3}).work(schema()).flops < little.flops  # fewer steps of the generator


# -- what dpgan adds ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"clipping_decay": 0.0}, "clipping_decay"),
        ({"clipping_decay": 1.5}, "clipping_decay"),
        ({"noise_source": "urandom"}, "noise_source"),
        ({"chunk_size": 0}, "chunk_size"),
        ({"max_grad_norm": float("inf")}, "max_grad_norm"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"noise_multiplier": 2e7}, "noise_multiplier"),
    ],
    ids=str,
)
def test_what_the_mechanism_cannot_take_is_refused(world, given, field):
    assert world.refusal(DpganSettings.read, given).field == field


def test_weight_clipping_and_a_penalty_do_not_go_together(world):
    error = world.refusal(DpganSettings.read, {"loss": "wgan", "gradient_penalty": 5})
    assert "use wgan-gp, or gradient_penalty=0" in str(error)
    assert DpganSettings.read({"loss": "wgan", "gradient_penalty": 0}).penalty == 0


@pytest.mark.parametrize(("steps", "n_critic"), [(600, 1), (600, 4), (7, 3), (2, 5)])
def test_clipping_decays_to_its_share_over_the_iterations(steps, n_critic):
    settings = DpganSettings(max_grad_norm=2.0, clipping_decay=0.25, steps=steps, n_critic=n_critic)
    iterations = max(1, steps // n_critic)
    bounds = [settings.schedule.at(iteration) for iteration in range(iterations + 2)]
    assert bounds[:-1] == pytest.approx([2 * 0.25 ** (number / iterations) for number in range(iterations + 1)])
    assert bounds[-2:] == pytest.approx([0.5, 0.5])  # and it stays there


def test_without_decay_the_bound_stays():
    schedule = DpganSettings(max_grad_norm=3.0, steps=10).schedule
    assert {schedule.at(iteration) for iteration in range(12)} == {3.0}


@pytest.mark.parametrize("method", ["dpgan", "gan"])
def test_a_table_with_nothing_to_generate_is_refused_before_anything_is_spent(method):
    schema = db.Schema.parse(
        """
        doublure: 1
        kind: table
        unit: {id: key}
        units: 400
        columns:
          a: {type: category, values: [x, y], missing: false, roles: [condition], shares: {x: 0.5, y: 0.5}}
          b: {type: category, values: [x, y], missing: false}
          key: {type: id}
        constraints: [{equal: [a, b]}]
        """
    )
    budget = {"epsilon": 2.0, "delta": 1e-4} if method == "dpgan" else {}
    with pytest.raises(SettingError, match="no column to generate"):
        db.plan(schema, method=method, **budget)
