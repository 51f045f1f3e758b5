"""``bayesgan``: what it decides, what it touches, and how it learns, measures and annotates."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from paying import paid

from doublure.errors import Interrupted, RunFolderError, SchemaError, SettingError
from doublure.methods import registry as table
from doublure.methods.bayesgan import training as bayesian_training
from doublure.methods.bayesgan.settings import ImageBayesganSettings
from doublure.methods.method import settings_of
from doublure.networks.labelled import LabelledGenerator
from doublure.networks.sizes import seed_sides
from doublure.planning import plan
from doublure.private.bayesian import BayesianAccountant, log_moment
from doublure.schema import Schema
from doublure.training.job import Job

SMALL: dict[str, Any] = {
    "steps": 6, "lot_size": 300, "checkpoints": 3, "noise_width": 4, "channels": [8, 6], "critic_channels": [4, 6],
    "generator_batch": 32, "labeller_steps": 4, "view_images": 100, "view_width": 20, "tries": 2, "distances": 8,
    "noise_multiplier": 0.5, "labeller_noise": 5.0,
}  # fmt: skip
METHOD = table.method("bayesgan")


def settings(text: str, **changes: Any) -> ImageBayesganSettings:
    schema = Schema.parse(text)
    own = METHOD.resolve_defaults(schema, settings_of(METHOD, schema.kind, SMALL | {"features": 5} | changes))
    assert isinstance(own, ImageBayesganSettings)
    return own


def job_of(digits: Any, text: str | None = None, **changes: Any) -> Job:
    """Return what the method trains from, on real digits; ``memory``, ``taken`` and ``authorise`` go to the job."""
    text = text or digits.TEXT
    more = {key: changes.pop(key) for key in ("taken", "authorise", "seed", "rows", "log") if key in changes}
    memory = changes.pop("memory", None) or digits.Memory()
    base = digits.job("guided", text, **({"labeller_share": 0} if "label" not in text else {}))
    own = settings(text, **changes)
    records = base.records
    if "rows" in more:
        records = digits.job("guided", text, rows=more.pop("rows")).records
    found: list[BayesianAccountant] = []
    accesses = METHOD.accesses(Schema.parse(text), own, own.noise_multiplier or 0.0)
    job = replace(
        base, settings=own, records=records, checkpoints=memory, delta_mu=1e-6, measured=found.append,
        **paid(accesses, own, more.pop("authorise", None), more.pop("taken", 0), memory=memory), **more,
    )  # fmt: skip
    object.__setattr__(job, "found", found)
    return job


def found_of(job: Job) -> BayesianAccountant:
    (estimate,) = job.found  # type: ignore[attr-defined]
    return estimate


# -- what it decides ---------------------------------------------------------------------------------------------------


def test_images_with_labels_are_annotated_and_the_gan_sees_none(digits):
    own = settings(digits.TEXT)
    assert (own.annotator, own.conditional, own.full_batches) == (True, False, 4)
    assert own.sample_noise == 2 * own.noise_width
    alone = settings(digits.UNLABELLED)
    assert (alone.annotator, alone.full_batches, alone.sample_noise) == (False, 0, alone.noise_width)
    steered = settings(digits.TEXT, conditional=True, annotator=False)
    assert (steered.annotator, steered.full_batches) == (False, 0)


def test_images_that_nobody_labels_are_refused(digits):
    with pytest.raises(SettingError, match="leaves images without labels") as refused:
        settings(digits.TEXT, annotator=False)
    assert refused.value.field == "annotator"
    with pytest.raises(SchemaError, match="lacks the role condition") as lost:
        settings(digits.UNLABELLED, annotator=True)
    assert lost.value.field == "label"
    target = digits.TEXT.replace("label: {", "label: {roles: [target], ")
    with pytest.raises(SchemaError, match="nothing would make"):
        settings(target)


@pytest.mark.parametrize(("units", "delta"), [(60_000, 1e-6), (1797, 1e-5), (99, 1e-3), (1, 1e-2)])
def test_the_worst_cases_delta_is_a_power_of_ten_below_a_tenth_of_one_in_units(digits, units, delta):
    text = digits.TEXT.replace("1797", str(units))
    assert settings(text).worst_case_delta == pytest.approx(delta)
    assert settings(text, worst_case_delta=1e-9).worst_case_delta == 1e-9


def test_real_records_are_alone_where_weights_bound_the_critic(digits):
    assert settings(digits.TEXT).real_alone
    assert not settings(digits.TEXT).offset
    for changes in ({"loss": "wgan-gp"}, {"loss": "logistic"}, {"loss": "hinge"}, {"paired": True}):
        own = settings(digits.TEXT, **changes)
        assert not own.real_alone
        assert own.offset


def test_the_papers_settings_have_a_name(digits):
    own = settings_of(METHOD, "images", {"recipe": "paper"})
    assert (own.critic_lr, own.generator_lr, own.activation, own.loss) == (1e-4, 1e-4, "selu", "wgan")
    assert (own.max_grad_norm, own.clipping, own.noise_multiplier) == (0.5, "batch", 0.01)
    assert own.max_grad_norm * 2 * own.noise_multiplier == 0.01  # the standard deviation on the mean
    assert own.channels[0] * math.prod(seed_sides((1, 28, 28), len(own.channels))) == 4096  # behind the linear layer
    schema = Schema.parse(digits.TEXT)
    settled = METHOD.resolve_defaults(schema, own)
    assert settled.steps == -(-400 * 1797 // 64)
    assert METHOD.resolve_defaults(schema, settled) == settled
    assert METHOD.resolve_defaults(schema, settings_of(METHOD, "images", {"recipe": "paper", "steps": 7})).steps == 7
    with pytest.raises(SettingError):
        settings_of(METHOD, "table", {"recipe": "paper"})


def test_what_it_touches(digits):
    schema, own = Schema.parse(digits.TEXT), settings(digits.TEXT)
    critic, annotator = METHOD.accesses(schema, own, 0.5)
    assert (critic.estimated, critic.event.steps, critic.event.noise_multiplier) == (True, 6, 0.5)
    assert (annotator.estimated, annotator.event.steps, annotator.event.noise_multiplier) == (False, 4, 5.0)
    assert METHOD.work(schema, own).steps == 10
    assert METHOD.work(schema, settings(digits.TEXT, distances=5000)).flops > METHOD.work(schema, own).flops
    batches = settings(digits.TEXT, clipping="batch")
    assert METHOD.work(schema, batches).flops > 1.5 * METHOD.work(schema, own).flops


# -- how it trains -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"conditional": True}, {"conditional": True, "annotator": False}, {"loss": "wgan-gp"},
        {"loss": "logistic"}, {"paired": True}, {"clipping": "batch", "distances": 3}, {"n_critic": 2},
        {"generator_clip": 0.1, "generator_noise": 0.01}, {"bound": "bernstein"},
    ],
    ids=str,
)  # fmt: skip
def test_every_way_to_train_measures_every_step(digits, changes):
    job = job_of(digits, **changes)
    generator = METHOD.train(job).eval()
    assert found_of(job).steps_taken == 6
    assert np.all(found_of(job).costs > 0)
    own = job.settings
    assert found_of(job).bound == own.bound
    condition = torch.eye(10)[torch.arange(20) % 10] if "label" in digits.TEXT else None
    with torch.inference_mode():
        images = generator(torch.randn(20, own.sample_noise), condition)
    assert images.shape == (20, *digits.SHAPE)
    assert isinstance(generator, LabelledGenerator) == own.annotator
    built = METHOD.build(job.encoder, own, seed=0)
    assert {name: value.shape for name, value in built.state_dict().items()} == {
        name: value.shape for name, value in generator.state_dict().items()
    }


def test_images_without_labels(digits):
    job = job_of(digits, digits.UNLABELLED)
    generator = METHOD.train(job)
    assert generator(torch.randn(3, job.settings.sample_noise), None).shape == (3, *digits.SHAPE)


def test_the_gan_sees_no_labels_unless_it_is_told_to(digits, monkeypatch):
    """Shuffled labels change the annotator and leave the critic's gradients as they are."""
    seen: list[Any] = []
    forward = bayesian_training.MeasuredAdversaries.generated

    def watched(self, size):
        records, condition = forward(self, size)
        seen.append(condition)
        return records, condition

    monkeypatch.setattr(bayesian_training.MeasuredAdversaries, "generated", watched)
    job = job_of(digits)
    METHOD.train(job)
    assert seen == [None] * len(seen) != []
    seen.clear()
    METHOD.train(job_of(digits, conditional=True))
    assert all(condition is not None and condition.shape == (32, 10) for condition in seen)


def test_the_critics_weights_stay_within_their_bound(digits, monkeypatch):
    kept: list[float] = []
    follow = bayesian_training.MeasuredAdversaries.follow

    def watched(self, gradient):
        follow(self, gradient)
        kept.append(float(self.flat.detach().abs().max()))

    monkeypatch.setattr(bayesian_training.MeasuredAdversaries, "follow", watched)
    METHOD.train(job_of(digits, weight_clip=0.02))
    assert len(kept) == 6
    assert max(kept) <= 0.02 + 1e-9


def test_it_learns_through_no_noise_to_speak_of(digits):
    """The mean image comes nearer to the real one, by the halves' way and by the paired one."""
    real = digits.tensors()[0].mean(0)

    def apart(**changes: Any) -> float:
        job = job_of(digits, noise_multiplier=1e-3, steps=60, critic_lr=3e-3, generator_lr=3e-3, annotator=None,
                     text=digits.UNLABELLED, checkpoints=1, **changes)  # fmt: skip
        generator = METHOD.train(job)
        with torch.inference_mode():
            made = generator(torch.randn(300, 4, generator=torch.Generator().manual_seed(1)), None)
        return float((made.mean(0) - real).abs().mean())

    untaught = METHOD.build(job_of(digits, digits.UNLABELLED).encoder, settings(digits.UNLABELLED), seed=1)
    with torch.inference_mode():
        before = float((untaught(torch.randn(300, 4), None).mean(0) - real).abs().mean())
    assert apart() < 0.5 * before
    assert apart(paired=True) < 0.5 * before


def test_the_generators_gradient_is_clipped_and_noised_as_told(digits, monkeypatch):
    gradients = [torch.full((3,), 10.0), torch.full((1,), -10.0)]
    job = job_of(digits, generator_clip=1.0)
    made: list[Any] = []
    monkeypatch.setattr(bayesian_training, "train", lambda job, own, teacher, adversaries: made.append(adversaries))
    bayesian_training.train_generator(job, job.settings)
    (adversaries,) = made
    clipped = adversaries.tempered(gradients)
    assert float(torch.cat(list(clipped)).norm()) == pytest.approx(1.0, rel=1e-5)
    small = [torch.full((3,), 1e-3), torch.full((1,), -1e-3)]
    assert all(torch.equal(one, other) for one, other in zip(adversaries.tempered(small), small, strict=True))
    adversaries._clip, adversaries._blur = None, 0.5
    noised = torch.cat(list(adversaries.tempered([torch.zeros(4000)])))
    assert float(noised.std()) == pytest.approx(0.5, rel=0.1)


# -- cut off and resumed -----------------------------------------------------------------------------------------------


class Cut:
    """Authorises steps until one of them, from which on it refuses as a process that ends does."""

    def __init__(self, before: int | None) -> None:
        self.asked: list[int] = []
        self._before = before

    def __call__(self, step: int) -> None:
        if self._before is not None and step >= self._before:
            raise Interrupted("stopped")
        self.asked.append(step)


def test_a_run_that_was_stopped_goes_on_with_its_estimate(digits):
    memory = digits.Memory()
    with pytest.raises(Interrupted):
        METHOD.train(job_of(digits, memory=memory, authorise=Cut(before=4)))
    kept = {name: value.clone() for name, value in memory.kept.items()}
    assert int(kept["critic/estimate.steps_taken"][0]) == 3
    again = Cut(None)
    job = job_of(digits, memory=memory, taken=3, authorise=again)
    METHOD.train(job)
    assert again.asked == [4, 5, 6, 7, 8, 9, 10]  # three of the critic, four of the annotator
    estimate = found_of(job)
    assert (estimate.steps_taken, estimate.calls) == (6, 6)
    assert np.all(estimate.costs > kept["critic/estimate.costs"].numpy())


def test_steps_lost_in_a_crash_count_as_the_dearest_there_are(digits):
    memory = digits.Memory()
    with pytest.raises(Interrupted):
        METHOD.train(job_of(digits, memory=memory, authorise=Cut(before=3), max_grad_norm=1e6))
    # The ledger authorised 5; what came after the kept step 2 is lost.
    job = job_of(digits, memory=memory, taken=5, max_grad_norm=1e6)
    METHOD.train(job)
    estimate = found_of(job)
    assert (estimate.steps_taken, estimate.calls) == (6, 3)
    rate = job.accesses[0].event.sample_rate
    worst = [3 * log_moment(np.array([2.0]), order, rate)[0] for order in estimate.orders]
    assert np.all(estimate.costs >= worst)
    assert np.all(estimate.costs < np.array(worst) * 1.01)  # under so wide a bound, measured steps cost next to nothing


def test_all_steps_of_the_critic_may_be_lost(digits):
    job = job_of(digits, taken=6)
    METHOD.train(job)
    assert (found_of(job).steps_taken, found_of(job).calls) == (6, 0)


def test_a_crash_while_the_annotator_learns_keeps_the_gan_and_the_estimate(digits):
    memory = digits.Memory()
    with pytest.raises(Interrupted):
        METHOD.train(job_of(digits, memory=memory, authorise=Cut(before=9)))
    assert memory.steps[-1] == 6  # the annotator's answers are kept instead
    assert sorted(memory.answers.places()) == [(1, 0), (1, 1)]
    kept = {name: value.clone() for name, value in memory.kept.items()}
    again = Cut(None)
    job = job_of(digits, memory=memory, taken=9, authorise=again)  # step 9 was lost
    generator = METHOD.train(job)
    assert again.asked == [10]
    assert (found_of(job).steps_taken, found_of(job).calls) == (6, 6)
    assert found_of(job).costs.tolist() == kept["critic/estimate.costs"].tolist()
    state = generator.state_dict()
    for name, value in kept.items():
        if name.startswith("critic/average."):
            assert torch.equal(state[f"generator.generator.{name.removeprefix('critic/average.')}"], value)


SAMPLED: dict[str, Any] = {"annotator_price": "sampled", "labeller_clip": 1.5}


def test_an_annotator_whose_distances_are_sampled_costs_less_than_its_worst_case(digits):
    """Under a bound that no gradient reaches; the critic's noise is so large here that it costs next to nothing."""
    job = job_of(digits, noise_multiplier=1e3, **SAMPLED)
    assert [access.estimated for access in METHOD.accesses(Schema.parse(digits.TEXT), job.settings, 0.5)] == [True] * 2
    METHOD.train(job)
    found, own = found_of(job), job.settings
    assert (found.steps_taken, found.calls) == (10, 10)
    assert found.gamma == pytest.approx(own.gamma_share * job.delta_mu / 10)
    orders = np.array(own.orders)
    worst = own.labeller_steps * orders * (orders + 1) / 2 / own.labeller_noise**2
    assert np.all((0.05 * worst < found.costs) & (found.costs < 0.8 * worst))
    longer = job_of(digits, noise_multiplier=1e3, annotator_price="sampled", labeller_clip=1e-3)  # than all of which
    METHOD.train(longer)
    assert np.all(found_of(longer).costs >= worst * (1 - 1e-9))
    assert np.all(found_of(longer).costs < 1.1 * worst)


def test_a_crash_while_the_annotator_learns_keeps_its_estimate_too(digits):
    memory = digits.Memory()
    with pytest.raises(Interrupted):
        METHOD.train(job_of(digits, memory=memory, authorise=Cut(before=9), **SAMPLED))
    assert "annotator/estimate.costs" in memory.kept
    assert int(memory.kept["annotator/estimate.steps_taken"][0]) == 2
    job = job_of(digits, memory=memory, taken=9, **SAMPLED)  # step 9 was lost
    METHOD.train(job)
    assert (found_of(job).steps_taken, found_of(job).calls) == (10, 9)
    own = job.settings
    largest = np.array([order * (order + 1) / 2 for order in own.orders]) / own.labeller_noise**2
    assert np.all(found_of(job).costs > largest)  # it counts as if all its distances were the largest
    memory.kept["annotator/estimate.costs"] = memory.kept["annotator/estimate.costs"][:-1]
    with pytest.raises(RunFolderError, match="annotator"):
        METHOD.train(job_of(digits, memory=memory, taken=10, **SAMPLED))


def test_nobodys_price_is_refused(digits):
    with pytest.raises(SettingError) as refused:
        settings(digits.UNLABELLED, annotator_price="sampled")
    assert refused.value.field == "annotator_price"


def test_another_plans_state_is_refused(digits):
    memory = digits.Memory()
    METHOD.train(job_of(digits, memory=memory))
    with pytest.raises(RunFolderError, match="does not fit"):
        METHOD.train(job_of(digits, memory=memory, taken=10, orders=[2, 4]))
    with pytest.raises(RunFolderError, match="does not fit"):
        METHOD.train(job_of(digits, memory=memory, taken=10, channels=[6, 4]))


# -- tables ------------------------------------------------------------------------------------------------------------


def test_tables_are_taken_too(world):
    schema = Schema.parse(world.SCHEMA)
    made = plan(schema, method="bayesgan", epsilon=3.0, delta=1e-6, accountant="rdp", **world.TINY)
    assert [touch.purpose for touch in made.touches] == ["train the critic"]
    assert made.guarantee.kind == "bayesian-dp"
    found: list[BayesianAccountant] = []
    base = world.job("dpgan", steps=6)
    job = replace(
        base, settings=made.settings, delta_mu=1e-6, measured=found.append, **paid(made.training, made.settings)
    )
    generator = METHOD.train(job)
    assert found[0].steps_taken == 6
    assert generator(torch.randn(2, made.settings.noise_width), torch.eye(2)).shape[0] == 2


def test_a_job_without_its_delta_is_refused(digits):
    with pytest.raises(TypeError, match="δ_μ"):
        METHOD.train(replace(job_of(digits), delta_mu=None))
