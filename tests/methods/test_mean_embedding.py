"""The mean embedding of images: what is released, what it asks of a generator, and that the generator gets closer."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from paying import paid
from torch.nn import functional

from doublure.errors import LostRun, RunFolderError
from doublure.methods import registry as table
from doublure.methods.statistics.images import mean_embedding
from doublure.methods.statistics.images.mean_embedding import (
    COUNTED,
    GeneratorFit,
    build_features,
    fit_generator,
    make_target,
)
from doublure.networks import bfloat16
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.training.noisy_sums import NoisySums

KEPT = math.sqrt(1 - COUNTED**2)


def released(digits, **changes):
    """Return the sums without noise, the features and the job."""
    job = digits.job(sigma=1.0, **changes)
    features = build_features(job.encoder, job.settings)
    quiet = replace(job, **paid(job.accesses, job.settings, noise=Silence()))
    return (
        mean_embedding._released(NoisySums(quiet, job.accesses[:1]), features, job.encoder.condition_width),
        features,
        job,
    )


class Silence:
    name, for_tests = "silence", True

    def normal(self, size, std):
        return ScaledNoise(np.zeros(size, dtype=np.float32), std)

    def whole(self, size, std, unit):
        return ScaledNoise(np.zeros(size, dtype=np.int64), std)


# -- the release -------------------------------------------------------------------------------------------------------


def test_sums_are_mean_features_and_class_sizes(digits):
    total, features, job = released(digits)
    images, labels = digits.tensors()
    assert total.shape == (10, job.settings.features + 1)
    wanted = make_target(total, 1.0)
    for label in range(10):
        own = images[labels == label]
        torch.testing.assert_close(wanted.means[label], features(own).mean(0), atol=1e-4, rtol=1e-3)
        assert float(total[label, -1] / COUNTED) == pytest.approx(len(own), rel=1e-3)


def test_images_without_labels_are_one_class(digits):
    total, features, job = released(digits, text=digits.UNLABELLED, labeller_share=0)
    images, _ = digits.tensors()
    assert total.shape == (1, job.settings.features + 1)
    torch.testing.assert_close(make_target(total, 1.0).means[0], features(images).mean(0), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("shares", [{}, {"second_order": 0.5}, {"second_order": 0.25, "fine_detail": 0.5}])
def test_a_record_has_length_one(digits, shares):
    """So that nothing is clipped, and one record moves the sums by as much as the noise is made for."""
    total, *_ = released(digits, rows=slice(0, 5), **shares)
    fewer, *_ = released(digits, rows=slice(0, 4), **shares)
    assert float((total - fewer).norm()) == pytest.approx(1.0, abs=1e-3)
    assert float((total - fewer).norm()) <= 1 + 1e-6


def test_no_image_at_all(digits):
    total, *_ = released(digits, rows=slice(0, 0))
    assert not total.any()


# -- the target --------------------------------------------------------------------------------------------------------


def sums_of(counts, means, noise, draws=1):
    """Return noisy sums of classes of these sizes and mean features."""
    counts = torch.tensor(counts)
    exact = torch.cat([KEPT * counts[:, None] * means, COUNTED * counts[:, None]], dim=1)
    source = torch.Generator().manual_seed(3)
    return [exact + noise * torch.randn(exact.shape, generator=source) for _ in range(draws)]


def test_class_sizes_are_unbiased_and_means_too():
    means = functional.normalize(torch.randn(3, 40, generator=torch.Generator().manual_seed(0)), dim=1)
    counts = [400.0, 100.0, 700.0]
    found = [make_target(total, 0.5) for total in sums_of(counts, means, 0.5, draws=400)]
    torch.testing.assert_close(torch.stack([one.means for one in found]).mean(0), means, atol=0.004, rtol=0)
    sizes = torch.stack([one.weights for one in found]).mean(0)
    torch.testing.assert_close(sizes, torch.tensor([1.0, 0.25, 1.0]), atol=0.05, rtol=0)


def test_the_floor_is_the_length_of_the_noise():
    means = functional.normalize(torch.randn(2, 8192, generator=torch.Generator().manual_seed(0)), dim=1)
    apart, floors = [], []
    for total in sums_of([500.0, 800.0], means, 3.0, draws=60):
        found = make_target(total, 3.0)
        apart.append(float((found.weights * (found.means - means).square().sum(1)).sum()))
        floors.append(found.floor)
    assert sum(floors) / sum(apart) == pytest.approx(1, abs=0.06)


def test_an_empty_class_teaches_hardly_anything():
    means = functional.normalize(torch.randn(3, 40, generator=torch.Generator().manual_seed(0)), dim=1)
    for noise in (0.0, 5.0):
        for total in sums_of([600.0, 0.0, 600.0], means, noise, draws=20):
            found = make_target(total, noise)
            assert torch.isfinite(found.means).all()
            assert torch.isfinite(found.weights).all()
            assert math.isfinite(found.floor)
            assert (found.weights > 0).all()
            assert found.weights[1] < (0.01 if not noise else 0.6)
            assert found.weights[[0, 2]].min() > 0.6
    nothing = make_target(torch.zeros(2, 41), 1.0)
    assert torch.isfinite(nothing.means).all()
    assert torch.isfinite(nothing.weights).all()


# -- training ----------------------------------------------------------------------------------------------------------


def fit_of(digits, total, **changes):
    job = digits.job(**changes)
    own = job.settings
    return GeneratorFit(job, own, build_features(job.encoder, own), make_target(total, 0.01))


def test_teaching_brings_the_generator_closer(digits):
    longer = {
        "fit_steps": 200, "features": 256, "hidden": 64, "batch": 60, "generator_lr": 0.02,
        "channels": [16, 8], "warp": 0,
    }  # fmt: skip
    total, *_ = released(digits, **longer)
    generator_fit = fit_of(digits, total, **longer)
    distances = []
    for _ in range(longer["fit_steps"]):
        generator_fit.step()
        distances.append(generator_fit.distance)
    assert sum(distances[-10:]) < 0.2 * sum(distances[:10])
    images, labels = digits.tensors()
    noise = torch.randn(100, generator_fit.average.noise_width, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        made = [generator_fit.generator(noise, torch.eye(10)[[label] * 100]).mean(0) for label in range(10)]
    means = [images[labels == label].mean(0) for label in range(10)]
    apart = torch.stack([torch.stack([(one - mean).square().mean() for mean in means]) for one in made])
    # So short a while tells most classes apart: by chance, one in ten would be nearest to its own mean.
    assert (apart.argmin(1) == torch.arange(10)).sum() >= 4


def test_the_distance_is_unbiased(digits):
    """A generator that has the target's mean features already is at distance zero on average, whatever the batch."""
    changes = {"batch": 20, "features": 64, "generator_lr": 1e-12}
    total, features, job = released(digits, **changes)
    generator_fit = fit_of(digits, total, **changes)
    noise = torch.randn(3000, job.settings.image_noise, generator=torch.Generator().manual_seed(9))
    with torch.no_grad():
        own = [features(generator_fit.generator(noise, torch.eye(10)[[label] * 3000])) for label in range(10)]
    generator_fit._means, generator_fit._weights, generator_fit._floor = (
        torch.stack([one.mean(0) for one in own]),
        torch.ones(10),
        0.0,
    )
    found = []
    for _ in range(150):
        generator_fit.step()
        found.append(generator_fit.distance)
    seen = torch.tensor(found)
    scatter = sum(float(one.var(0).sum()) for one in own) / 2  # what is taken off, with two images a class
    assert abs(float(seen.mean())) < 5 * float(seen.std()) / 150**0.5 + 1e-3
    assert scatter > 20 * abs(float(seen.mean()))


def test_short_products_teach_as_long_ones_do(digits, monkeypatch):
    """Where a processor has them; what is released is made with long ones everywhere."""
    found = {}
    for short in (False, True):
        monkeypatch.setattr(bfloat16, "has_units", lambda short=short: short)
        total, *_ = released(digits, batch=200)
        generator_fit = fit_of(digits, total, batch=200)
        loss = generator_fit.loss(generator_fit.generator)
        loss.backward()
        steps = torch.cat([one.grad.flatten() for one in generator_fit.generator.parameters()])
        found[short] = total, loss.detach(), steps
    (total, loss, steps), (total_short, loss_short, steps_short) = found[False], found[True]
    assert torch.equal(total, total_short)
    assert loss.dtype == loss_short.dtype == torch.float32
    assert loss != loss_short
    torch.testing.assert_close(loss, loss_short, rtol=0.02, atol=0)
    assert float(functional.cosine_similarity(steps, steps_short, dim=0)) > 0.99


def test_a_kept_state_goes_on_where_it_was(digits):
    total, *_ = released(digits)
    one, other = fit_of(digits, total, fit_steps=9), fit_of(digits, total, fit_steps=9, seed=7)
    for _ in range(4):
        one.step()
    kept = one.state()
    assert {name.partition(".")[0] for name in kept} == {"generator", "average", "optimizer", "fit_step", "recent"}
    assert all(not value.requires_grad and value.is_contiguous() for value in kept.values())
    other.restore(kept)
    assert other.done == 4
    assert_same(other.state(), kept)
    other._noise.set_state(one._noise.get_state())
    for _ in range(3):
        one.step()
        other.step()
    assert_same(one.state(), other.state())
    assert any(not torch.equal(value, kept[name]) for name, value in one.state().items() if name in kept)


def test_a_fit_ends_once_its_distance_is_within_its_error(digits, monkeypatch):
    """The mean of a hundred distances lies below their spread over ten; a kept state of before goes on without them."""
    total, *_ = released(digits)
    fit = fit_of(digits, total, fit_steps=9)
    waves = torch.tensor([0.3, -0.3] * 50)
    for shift, ended in ((0.02, True), (0.04, False)):
        fit._recent = waves + shift  # the mean's standard error is .03
        assert fit.within_noise == ended
    fit._recent = waves[:99]
    assert not fit.within_noise
    fit.restore({name: value for name, value in fit.state().items() if name != "recent"})
    assert not fit.within_noise
    taken = []
    monkeypatch.setattr(GeneratorFit, "step", lambda self: taken.append(1))
    monkeypatch.setattr(GeneratorFit, "within_noise", property(lambda self: len(taken) == 5))
    job = digits.job(fit_steps=9)
    fit_generator(job, job.settings, NoisySums(job, job.accesses[:1]))
    assert len(taken) == 5


def assert_same(one, other):
    assert one.keys() == other.keys()
    assert all(torch.equal(value, other[name]) for name, value in one.items())


def test_the_rate_falls_to_a_twentieth(digits):
    total, *_ = released(digits)
    generator_fit = fit_of(digits, total, fit_steps=50, generator_lr=0.2)
    rates = []
    for generator_fit.done in range(51):
        rates.append(generator_fit._rate())
    assert (rates[0], rates[-1]) == (pytest.approx(0.2), pytest.approx(0.01))
    assert rates == sorted(rates, reverse=True)


def test_each_step_is_as_long_as_the_rate_says_and_the_average_follows_soon(digits):
    def flat(network):
        return torch.cat([value.detach().flatten() for value in network.parameters()])

    small = {"features": 64, "hidden": 16, "batch": 20, "channels": [8, 8], "warp": 0}
    total, *_ = released(digits, **small)
    generator_fit = fit_of(digits, total, fit_steps=5, generator_lr=0.01, generator_average=0.6, **small)
    kept = flat(generator_fit.generator)
    for past in (0.0, 0.5, 0.6, 0.6):
        rate = generator_fit._rate()
        generator_fit.step()
        assert [group["lr"] for group in generator_fit._optimizer.param_groups] == [rate]
        kept = past * kept + (1 - past) * flat(generator_fit.generator)
        torch.testing.assert_close(flat(generator_fit.average), kept, rtol=1e-5, atol=1e-6)
    assert generator_fit.done == 4


def test_a_batch_is_shared_out_among_the_labels(digits):
    alone = {"text": digits.UNLABELLED, "labeller_share": 0}
    for changes, each in (({"batch": 60}, [6] * 10), ({"batch": 3}, [2] * 10), ({"batch": 60, **alone}, None)):
        total, *_ = released(digits, **changes)
        generator_fit, seen = fit_of(digits, total, **changes), []
        generator_fit.generator.register_forward_hook(lambda module, given, made, seen=seen: seen.append(given))
        generator_fit.loss(generator_fit.generator)
        ((noise, labels),) = seen
        assert len(noise) == (60 if each is None else sum(each))
        assert labels is None if each is None else labels.sum(0).tolist() == each


# -- interruption ------------------------------------------------------------------------------------------------------


def draws(monkeypatch):
    asked, whole = [], OsKeyedNoise.whole

    def watched(source, size, std, unit):
        asked.append((size, std))
        return whole(source, size, std, unit)

    monkeypatch.setattr(OsKeyedNoise, "whole", watched)
    return asked


def test_it_releases_once_and_keeps_it(digits, monkeypatch):
    asked, memory, authorised = draws(monkeypatch), digits.Memory(), []
    stops = itertools.count()
    job = digits.job(
        "statistics", memory=memory, sigma=2.0, authorise=authorised.append, check_stop=lambda: next(stops), fit_steps=5
    )
    made = table.method("statistics").train(job)
    assert asked == [(10 * 129, 2.0)]
    assert authorised == [1]  # the release alone costs
    assert next(stops) == 6  # before the release and each step, whether to stop
    assert memory.steps == [1]
    assert memory.kept["fit_step"].tolist() == [5]
    again = table.method("statistics").train(digits.job("statistics", memory=memory, sigma=2.0, taken=1, fit_steps=5))
    assert len(asked) == 1
    assert_same(again.state_dict(), made.state_dict())
    alone = digits.Memory()
    alone.answers = memory.answers  # and no state
    other = digits.job("statistics", memory=alone, sigma=2.0, taken=1, fit_steps=5)
    assert_same(table.method("statistics").train(other).state_dict(), made.state_dict())
    assert len(asked) == 1


def test_a_release_that_was_lost_is_not_drawn_again(digits, monkeypatch):
    asked, authorised = draws(monkeypatch), []
    job = digits.job("statistics", taken=1, authorise=authorised.append)
    with pytest.raises(LostRun, match="one draw"):
        fit_generator(job, job.settings, NoisySums(job, job.accesses))
    assert (asked, authorised) == ([], [])


def test_states_are_kept_on_the_way(digits, monkeypatch):
    monkeypatch.setattr(mean_embedding, "_KEPT_EVERY", 2)
    memory, lines = digits.Memory(), []
    table.method("statistics").train(digits.job("statistics", memory=memory, log=lines.append, fit_steps=5))
    assert memory.steps == [1] * 3  # steps 2 and 4, the end
    assert [line["fit_step"] for line in lines] == [2, 4]
    assert set(lines[0]) == {"fit_step", "distance"}


@pytest.mark.parametrize("damage", ["another shape", "a part is missing"])
def test_a_state_that_does_not_fit_is_refused(digits, damage):
    memory = digits.Memory()
    table.method("statistics").train(digits.job("statistics", memory=memory))
    if damage == "another shape":
        memory.kept["generator.body.0.bias"] = torch.zeros(3)
    else:
        del memory.kept["average.body.0.bias"]
    with pytest.raises(RunFolderError) as refused:
        table.method("statistics").train(digits.job("statistics", memory=memory, taken=1))
    assert "\n" not in str(refused.value)
    assert refused.value.remedy
