"""``guided`` on tables: two releases, a critic of whole rows, and a mixture that follows it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import special

import doublure as db
from doublure.errors import SchemaError, SettingError
from doublure.methods.guided.method import METHOD
from doublure.methods.guided.refining import with_gradient
from doublure.methods.statistics.tables import fitting
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent

CRITIC = {"critic_share": 0.3, "critic_steps": 8, "critic_lot": 100, "critic_width": 8}


def test_what_is_done_is_what_is_declared(world, steps):
    job = world.job("guided", sigma=2.0, **CRITIC)
    made = METHOD.train(job)
    *counted, critic = (access.event for access in METHOD.accesses(job.encoder.schema, job.settings, 2.0))
    assert all(isinstance(event, DiscreteGaussianEvent) for event in counted)
    (step,) = steps
    assert step.event == critic == job.settings.critic_event(job.encoder.schema, 2.0)
    assert critic.sample_rate == 0.25
    assert step.taken == critic.steps == 8
    assert METHOD.work(job.encoder.schema, job.settings).steps == len(counted) + 8
    assert all(np.isfinite(table).all() for table in made.state_dict().values())


def test_tables_have_the_noise_of_their_share(world):
    job = world.job("guided", **CRITIC)
    whole, left = (
        METHOD.accesses(job.encoder.schema, job.settings.model_copy(update={"critic_share": share}), 2.0)
        for share in (0.0, 0.3)
    )
    assert len(left) == len(whole) + 1
    for all_of_it, some in zip(whole, left, strict=False):
        assert some.event.scale == pytest.approx(all_of_it.event.scale / 0.7**0.5)


def test_without_a_critic_it_is_statistics(world, steps):
    ours = METHOD.train(world.job("guided", sigma=1e-3))
    theirs = db.methods.registry.method("statistics").train(world.job("statistics", sigma=1e-3))
    assert steps == []
    for name, table in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name], table)


def test_a_critic_moves_the_mixture_towards_rows_that_pairs_do_not_tell(world, monkeypatch):
    """Begun at a mixture that knows nothing, it learns from the critic alone."""
    found, fitted = {}, fitting.release_and_fit

    def blank(job, settings):
        fit = fitted(job, settings)
        fit = replace(fit, probabilities=disturbed(fit, np.ones_like(fit.probabilities), 0.1))
        found["before"] = fit.distance(fit.probabilities)[0]
        return fit

    def last(job, fit):
        found["after"] = fit.distance(fit.probabilities)[0]
        return finished(job, fit)

    finished = fitting.build_generator
    monkeypatch.setattr(fitting, "release_and_fit", blank)
    monkeypatch.setattr(fitting, "build_generator", last)
    strong = {"critic_steps": 60, "critic_lot": 200, "critic_lr": 0.03, "refine_lr": 0.1, "anchor": 0.0}
    METHOD.train(world.job("guided", sigma=1e-4, **(CRITIC | strong)))
    assert found["after"] < 0.85 * found["before"]


def disturbed(fit, probabilities, by):
    """Return a mixture's probabilities, moved by as much in their logarithms."""
    logits = np.log(probabilities) + by * np.random.default_rng(4).standard_normal(probabilities.shape)
    parts = np.split(logits, np.cumsum(fit.sizes)[:-1], axis=1)
    return np.concatenate([special.softmax(part, axis=1) for part in parts], axis=1).astype(np.float32)


def test_the_anchor_is_how_far_it_is_from_the_tables(world):
    job = world.job("guided", sigma=0.3, critic_share=0.0)
    fit = fitting.release_and_fit(job.stage("statistics", after=0), job.settings)
    near = fit.distance(fit.probabilities)[0]
    far = disturbed(fit, fit.probabilities, 1.0)
    assert fit.distance(far)[0] > 2 * near
    moving = torch.from_numpy(far).double().requires_grad_()
    found = with_gradient(moving, lambda rows: fit.distance(rows.astype(np.float32)))
    (3 * found).backward()
    towards = fit.probabilities - far
    step = 1e-3
    moved = (fit.distance(far + step * towards)[0] - fit.distance(far - step * towards)[0]) / (2 * step)
    assert float((moving.grad.numpy() * towards).sum()) == pytest.approx(3 * moved, rel=0.02)


def test_steps_that_were_lost_count(world, steps):
    memory, authorised = world.Memory(), []
    job = world.job("guided", memory=memory, **CRITIC)
    METHOD.train(job)
    before = len(METHOD.accesses(job.encoder.schema, job.settings, 2.0)) - 1
    assert {name.split("/")[0] for name in memory.kept} == {"critic"}
    assert memory.answers.places() == {(place, 0) for place in range(before)}
    steps.clear()
    memory.kept["critic/steps"] = torch.tensor([3])  # the state is older than what was paid for
    METHOD.train(world.job("guided", memory=memory, taken=before + 4, authorise=authorised.append, **CRITIC))
    (step,) = steps
    assert step.taken == 8
    assert authorised == [before + number for number in (5, 6, 7, 8)]


@pytest.mark.parametrize(
    "wrong", [{"critic_share": 1.0}, {"critic_share": 0.001}, {"critic_width": 0}, {"critic_depth": -1}, {"tries": 3}]
)
def test_wrong_settings_are_refused_in_one_line(world, wrong):
    refused = world.refusal(lambda given: world.settled("guided", **given), wrong)
    assert refused.field == next(iter(wrong))


def test_the_readmes_and_the_designs_example_plans():
    made = db.plan(db.datasets.adult_schema_path(), method="guided", epsilon=1.0, delta=1e-5, accountant="rdp")
    assert made.guarantee.kind == "dp"
    assert made.kind == "table"
    critic = db.plan(
        db.datasets.adult_schema_path(), method="guided", epsilon=1.0, delta=1e-5, accountant="rdp", critic_share=0.2
    )
    assert isinstance(critic.touches[-1].event, GaussianEvent)
    assert critic.guarantee.noise_source == "exact discrete Gaussian; os-keyed for the critic"


def test_a_table_with_nothing_to_generate_is_refused_before_the_charge():
    schema = db.Schema.parse(
        "doublure: 1\nkind: table\nunits: 100\ncolumns: {a: {type: boolean, missing: false, roles: [condition]}}"
    )
    with pytest.raises((SettingError, SchemaError)) as refused:
        db.plan(schema, method="guided", epsilon=1.0, delta=1e-4, accountant="rdp", critic_share=0.2)
    assert "\n" not in str(refused.value)
