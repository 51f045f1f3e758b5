"""The private labeller: what it learns, the noise it learns through, and where it looks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from paying import written

from doublure.errors import SettingError
from doublure.methods import registry as table
from doublure.methods.guided.method import METHOD
from doublure.methods.statistics.images import mean_embedding
from doublure.networks.fixed_features import LabelFeatures
from doublure.networks.labelled import LabelledGenerator, Labeller
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.axes import OneRight
from doublure.private.queries.counts import Counts
from doublure.private.records import PrivateRecords
from doublure.schema import Schema
from doublure.support.messages import Message
from doublure.training import feature_view, label_check
from doublure.training import private_classifier as labelling
from doublure.training.classifier_settings import images_compared
from doublure.training.label_check import labels_pay
from doublure.training.noisy_sums import NoisySums
from doublure.training.private_classifier import train_labeller

LONGER = {"labeller_steps": 15, "view_images": 300, "view_width": 120, "fit_steps": 20}


def accuracy(digits, labeller):
    images, labels = digits.tensors()
    return float((labeller(images).argmax(1) == labels).double().mean())


def made_by(digits, **changes):
    """Return the labelled generator, without the shares of its labels, and its job."""
    job = digits.job(**changes)
    return METHOD.train(job).generator, job


def test_it_learns_through_little_noise(digits):
    made, _ = made_by(digits, **LONGER)
    assert accuracy(digits, made.labeller) > 0.85
    blind, _ = made_by(digits, sigma=1e4, **LONGER)
    assert accuracy(digits, blind.labeller) < 0.4


def test_a_generator_that_makes_one_image_only_leaves_it_finite(digits):
    """What it looks at tells nothing then, and a record still moves it by no more than its bound."""
    job = digits.job()
    made = train_labeller(job, job.settings, Blank(), job.settings.image_noise, NoisySums(job, job.accesses[-1:]))
    assert torch.isfinite(made.weights).all()
    assert torch.isfinite(made(digits.tensors()[0][:5])).all()


class Blank(torch.nn.Module):
    def forward(self, noise, condition):
        return torch.zeros(len(noise), 1, 8, 8)


class Grey(torch.nn.Module):
    def forward(self, noise, condition):
        return 2 * torch.rand(len(noise), 1, 8, 8, generator=torch.Generator().manual_seed(len(noise))) - 1


class Looked(Exception):
    """Enough was seen."""


def looked_at(digits, first):
    """Return what is seen of the digits from one on, where what is seen follows a little from the place in a batch."""
    job, found = digits.job(**LONGER), []
    kept, count = job.records, 150 - first
    job = replace(job, records=PrivateRecords(kept._compact[first:150], np.arange(count), count, kept._expand))

    class Sums:
        releases, deviations, taken, all_paid = 1, (1.0,), 0, False

        def restore(self, kept):
            assert set(kept) == {"centre", "directions"}

        def see(self, job):
            found.append(job.records)
            raise Looked

    with pytest.raises(Looked):
        train_labeller(job, job.settings, Grey(), job.settings.image_noise, Sums())
    return found[0].lot(np.arange(count))[0]


def test_no_digit_in_front_changes_what_is_seen_of_another(digits, monkeypatch):
    exact, mapped = LabelFeatures.forward, PrivateRecords.mapped
    monkeypatch.setattr(LabelFeatures, "forward", lambda self, images: exact(self, images) + 0.1 * torch.arange(
        len(images))[:, None])  # fmt: skip
    assert torch.equal(looked_at(digits, 1), looked_at(digits, 0)[1:])
    monkeypatch.setattr(PrivateRecords, "mapped", lambda self, *args, **named: mapped(self, *args, **(
        named | {"apart": False})))  # fmt: skip
    assert not torch.equal(looked_at(digits, 1), looked_at(digits, 0)[1:])


@pytest.fixture
def asked(monkeypatch):
    """What noise is asked for."""
    calls, whole = [], OsKeyedNoise.whole

    def watched(source, size, std, unit):
        calls.append((size, std))
        return whole(source, size, std, unit)

    monkeypatch.setattr(OsKeyedNoise, "whole", watched)
    return calls


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_the_noise_is_that_of_the_plan(digits, asked, share, monkeypatch):
    believed, target, loud, rate = [], mean_embedding.make_target, [], labelling._rate
    monkeypatch.setattr(
        mean_embedding, "make_target", lambda total, noise: believed.append(noise) or target(total, noise)
    )
    monkeypatch.setattr(labelling, "_rate", lambda *public: loud.append(public[-1]) or rate(*public))
    sigma, steps, clip, most = 3.0, 4, 0.25, 2
    text = digits.TEXT + f"unit: {{name: writer, id: writer, max_records: {most}}}\n"
    made_by(
        digits, text=text, sigma=sigma, labeller_share=share, labeller_steps=steps, labeller_clip=clip, view_width=20
    )
    first, each = sigma / math.sqrt(1 - share), sigma * math.sqrt(steps / share)
    assert [size for size, _ in asked] == [10 * 129] + [10 * 20] * steps
    assert [std for _, std in asked] == pytest.approx([first * most] + [each * clip * most] * steps)
    assert believed == pytest.approx([first * most])
    assert loud == pytest.approx([each * most])
    assert 1 / first**2 + steps / each**2 == pytest.approx(1 / sigma**2)


def test_what_is_done_is_what_is_declared(digits, monkeypatch):
    made, init = [], NoisySums.__init__

    def watched(sums, *arguments, **named):
        init(sums, *arguments, **named)
        made.append(sums)

    monkeypatch.setattr(NoisySums, "__init__", watched)
    for share in (0.4, 0):
        made.clear()
        _, job = made_by(digits, sigma=4.0, labeller_share=share)
        declared = [access.event for access in METHOD.accesses(job.encoder.schema, job.settings, 4.0)]
        assert len(made) == len(declared) == 1 + (share > 0)
        assert [sums.releases for sums in made] == [event.steps for event in declared]
        done = job.mechanism.executed.to_json()
        assert [each["event"] for each in done] == [written(event) for event in declared]
        assert [(each["drawn"], each["lost"]) for each in done] == [(event.steps, 0) for event in declared]


def test_the_rate_follows_from_public_numbers():
    assert labelling._rate(60_000, 100.0) == pytest.approx(0.036 * 600)
    assert labelling._rate(60_000, 1e-9) == 100.0


def test_where_it_looks_follows_from_what_was_released(digits):
    """The same generator shows it the same view, whatever the private images are."""
    views = []
    for rows in (slice(0, 900), slice(900, None), slice(0, 0)):
        job = digits.job(rows=rows)
        generator = METHOD.build(job.encoder, job.settings, 3).generator.generator
        views.append(
            labelling._view(job, job.settings, generator, job.settings.image_noise, LabelFeatures(digits.SHAPE))
        )
    for view in views[1:]:
        assert torch.equal(view.centre, views[0].centre)
        assert torch.equal(view.directions, views[0].directions)
    seen = views[0](LabelFeatures(digits.SHAPE)(digits.tensors()[0][:50]))
    assert seen.shape == (50, 20)
    torch.testing.assert_close(seen.norm(dim=1), torch.ones(50), atol=1e-3, rtol=0)
    assert (seen.norm(dim=1) <= 1 + 1e-6).all()


def test_images_are_warped_and_spread_once_all_is_learned(digits, monkeypatch):
    """The labeller's view knows what the generator learned with; what is built for a saved run warps and spreads."""
    seen, look = [], labelling._view

    def watched(job, settings, generator, noise_width, features):
        seen.append((generator.warp, generator.spread))
        return look(job, settings, generator, noise_width, features)

    monkeypatch.setattr(labelling, "_view", watched)
    made, job = made_by(digits, warp=0.5, sampled_warp=2.0, sampled_spread=1.5)
    assert seen == [(0.5, 1.0)]
    for generator in (made.generator, METHOD.build(job.encoder, job.settings, 1).generator.generator):
        assert (generator.warp, generator.spread) == (2.0, 1.5)


def test_directions_of_which_there_is_little_are_lengthened_and_noise_is_not(digits, monkeypatch):
    """By the fourth root of how much less there is, and of a thousandth at most."""
    seen = []

    def found(centred, width):
        seen.append(centred.mean(0).abs().max())
        return torch.tensor([16.0, 1.0, 0.0]), torch.eye(centred.shape[1])[:, :3]

    monkeypatch.setattr(feature_view, "_main_directions", found)
    job = digits.job()
    view = labelling._view(job, job.settings, Grey(), job.settings.image_noise, LabelFeatures(digits.SHAPE))
    assert view.directions.norm(dim=0).tolist() == pytest.approx([1.0, 2.0, 1000**0.25], rel=0.01)
    assert float(seen[0]) < 1e-5
    assert view.centre.shape == (view.directions.shape[0],)


def test_an_owner_looks_where_it_is_told_and_no_further_than_planned(digits):
    job = digits.job()
    width, most = LabelFeatures(digits.SHAPE).width, job.settings.view_width
    asked = labelling.at_owner(job.encoder, job.settings)
    assert asked.bounds == {"errors of labels": job.settings.labeller_clip}

    def told(columns):
        arrays = {"centre": np.zeros(width, np.float32), "directions": np.ones((width, columns), np.float32)}
        return asked.views["looked at"](Message({}, arrays))

    for columns in (1, most):
        assert told(columns).to_message().arrays["directions"].shape == (width, columns)
    for columns in (0, most + 1):
        with pytest.raises(SettingError):
            told(columns)
    weights = np.zeros((10, most), np.float32)
    assert asked.summands["errors of labels"](Message({}, {"weights": weights})).shape == (10, most)
    with pytest.raises(SettingError):
        asked.summands["errors of labels"](Message({}, {"weights": weights[:9]}))


def test_what_an_image_adds_is_how_wrong_its_label_is_times_what_was_seen():
    errors = labelling._Errors(torch.tensor([[math.log(3.0), 0.0], [0.0, 0.0]]))
    assert errors.shape == (2, 2)
    wrong, seen = errors(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    torch.testing.assert_close(wrong, torch.tensor([[-0.25, 0.25], [0.5, -0.5]]))
    assert seen.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(TypeError, match="needs labels"):
        errors(torch.ones(1, 2), None)


@pytest.mark.parametrize("rows", [12, 50])
def test_main_directions_are_those_of_the_covariance(rows):
    """Found among the rows where they are fewer than numbers, and the same."""
    content = torch.randn(rows, 20, generator=torch.Generator().manual_seed(1)) * torch.linspace(3, 0.5, 20)
    content -= content.mean(0)
    values, directions = feature_view._main_directions(content, 5)
    expected, vectors = np.linalg.eigh(np.cov(content.double().T, ddof=0))
    assert values.numpy() == pytest.approx(expected[:-6:-1], rel=1e-4)
    assert np.abs(directions.T.double().numpy() @ vectors[:, :-6:-1]) == pytest.approx(np.eye(5), abs=1e-3)


def test_images_that_do_not_differ_have_finite_directions():
    for rows in (3, 30):
        values, directions = feature_view._main_directions(torch.zeros(rows, 20), 5)
        assert values.eq(0).all()
        assert directions.isfinite().all()


def test_its_scores_are_those_of_the_view(digits, monkeypatch):
    """What is saved looks at whole features; learning looked at a view of them, up to a factor a record."""
    monkeypatch.setattr(labelling, "_rate", lambda units, noise: 50.0)
    made, job = made_by(digits, labeller_steps=1)
    images, _ = digits.tensors(slice(0, 40))
    # What learning looked at was warped no more than it learned with, and not spread.
    made.generator.warp, made.generator.spread = job.settings.warp, 1.0
    view = labelling._view(job, job.settings, made.generator, job.settings.image_noise, made.labeller.features)
    features = made.labeller.features(images)
    answer = torch.from_numpy(job.checkpoints.answers.read((1, 0)).noisy).view(10, -1)
    learned = -50.0 * answer / (job.settings.labeller_clip * digits.UNITS)  # one step from nothing
    expected = view(features) @ learned.T * ((features - view.centre) @ view.directions).norm(dim=1, keepdim=True)
    assert expected.std() > 0.1
    torch.testing.assert_close(made.labeller(images), expected, atol=1e-3, rtol=1e-2)


# -- interruption ------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone."""


def test_steps_that_were_lost_count(digits, asked):
    memory, authorised = digits.Memory(), []

    def until_the_fifth(step):
        if step == 5:
            raise Killed

    with pytest.raises(Killed):
        made_by(digits, memory=memory, labeller_steps=6, authorise=until_the_fifth)
    assert memory.answers.places() == {(0, 0), (1, 0), (1, 1), (1, 2)}
    asked.clear()
    job = digits.job(memory=memory, labeller_steps=6, taken=5, authorise=authorised.append)  # the fifth was lost
    made = METHOD.train(job).generator.labeller
    assert [size for size, _ in asked] == [10 * 20] * 2
    assert authorised == [6, 7]
    assert memory.answers.places() == {(0, 0), (1, 0), (1, 1), (1, 2), (1, 4), (1, 5)}
    assert [(each["drawn"], each["lost"]) for each in job.mechanism.ran()] == [(1, 0), (5, 1)]
    again = METHOD.train(digits.job(memory=memory, labeller_steps=6, taken=7)).generator.labeller
    assert torch.equal(made.weights, again.weights)  # of what was kept, whichever session drew it


def test_a_finished_labeller_is_not_taught_again(digits, asked, monkeypatch):
    memory = digits.Memory()
    one, _ = made_by(digits, memory=memory)
    asked.clear()
    monkeypatch.setattr(labelling, "_Looked", None)  # no image is read for it
    again = METHOD.train(digits.job(memory=memory, taken=5)).generator
    assert asked == []
    assert all(torch.equal(value, one.state_dict()[name]) for name, value in again.state_dict().items())


def test_labels_are_as_frequent_as_the_sums_say(digits):
    """Of the first 900 images and a few more of one label."""
    _, labels = digits.tensors()
    rows = np.concatenate([np.arange(900), np.flatnonzero(labels.numpy() == 3)])
    wanted = np.bincount(labels.numpy()[rows], minlength=10) / len(rows)
    shares = METHOD.train(digits.job(rows=rows.tolist(), sigma=0.01, fit_steps=2, labeller_steps=1)).shares
    assert shares.tolist() == pytest.approx(wanted.tolist(), abs=0.01)


def test_no_image_at_all(digits):
    made, _ = made_by(digits, rows=slice(0, 0), sigma=2.0)
    assert torch.isfinite(made.labeller.weights).all()


def test_what_is_built_takes_the_weights(digits):
    made, job = made_by(digits)
    built = table.method("guided").build(job.encoder, job.settings, 9).generator
    built.load_state_dict(made.state_dict())
    noise = torch.randn(6, job.settings.noise_width, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(built(noise, torch.eye(10)[:6]), made(noise, torch.eye(10)[:6]))


class Shown(torch.nn.Module):
    """Draws real digits for a label, or those of the next label."""

    def __init__(self, digits, wrong):
        super().__init__()
        self.images, self.labels = digits.tensors()
        self.wrong = wrong

    def forward(self, noise, condition):
        label = (condition.argmax(dim=1) + self.wrong) % 10
        place = ((1 + torch.erf(noise[:, 0] / 2**0.5)) * 50).long().clamp(max=99)
        return torch.stack([self.images[self.labels == own][at] for own, at in zip(label, place, strict=True)])


@pytest.mark.parametrize("worse", ["labels", "labeller"])
def test_a_labeller_is_asked_where_its_labels_teach_more_about_private_images(digits, worse):
    """Images are drawn for the wrong label, and a good labeller sets them right; or the labeller is wrong."""
    job, (images, labels) = digits.job(labels_compared=True), digits.tensors()
    labeller = Labeller(digits.SHAPE, classes=10)
    known = labeller.features(images)
    labeller.centre.copy_(known.mean(dim=0))
    means = torch.stack([known[labels == label].mean(dim=0) - labeller.centre for label in range(10)])
    labeller.weights.copy_(means.roll(int(worse == "labeller"), dims=0))
    made = LabelledGenerator(Shown(digits, int(worse == "labels")), labeller, noise_width=5, tries=3)
    assert labels_pay(job, job.accesses[2], made, 15) == (worse == "labels")
    compared = job.mechanism.ran()[-1]
    assert compared["purpose"] == "count images that one classifier recognises"
    assert compared["drawn"] == 1
    assert labels_pay(job, job.accesses[2], made, 15)  # an answer that is lost counts for the labeller


def test_one_image_is_in_one_cell_of_the_answer_and_the_answer_follows_from_it_alone():
    draw = np.random.default_rng(0)
    held = np.column_stack([draw.integers(0, 3, (400, 2)), np.eye(3)[draw.integers(0, 3, 400)]]).astype(np.float16)
    axis = OneRight(kinds=3)
    cells = axis.of(held)
    label = held[:, 2:].argmax(1)
    wanted = [0 if a == k != b else 1 if b == k != a else 2 for (a, b), k in zip(held[:, :2], label, strict=True)]
    assert cells.tolist() == wanted
    private = PrivateRecords(held, np.arange(400), 400, lambda rows: (rows, None))
    more = PrivateRecords(held[1:], np.arange(399), 399, lambda rows: (rows, None))
    query = Counts(tables=[(axis,)], max_records=1)
    one, two = (query.answer(records, sample_rate=1.0).total for records in (private, more))
    assert np.abs(one - two).sum() == query.sensitivity.l2 == 1
    with pytest.raises(SettingError):
        Counts(tables=[(OneRight(kinds=4),)], max_records=1).refuse_unfit(private)


def test_a_plan_pays_for_the_comparison_out_of_the_labellers_share(digits):
    apart, together = (digits.job(labels_compared=compared) for compared in (False, True))
    before, labeller = (access.event for access in apart.accesses)
    first, trains, compares = (access.event for access in together.accesses)
    assert first == before
    whole = trains.steps / trains.noise_multiplier**2 + 1 / compares.scale**2
    assert whole == pytest.approx(labeller.steps / labeller.noise_multiplier**2)


def test_a_labelled_generator_of_an_earlier_version_asks_its_labeller(digits):
    made, job = made_by(digits)
    kept = {name: value for name, value in made.state_dict().items() if name != "asked"}
    built = table.method("guided").build(job.encoder, job.settings, 9).generator
    built.asked.fill_(0)
    built.load_state_dict(kept)
    assert bool(built.asked)


def test_labels_are_judged_by_as_many_images_as_are_drawn(digits, monkeypatch):
    """What labels are worth shows late: 2,000 images of 60,000 told nothing (docs/evidence/journal/images.md)."""
    seen, trained = [], label_check._trained

    def watched(job, made, classifier, noise_width, count):
        seen.append(count)
        return trained(job, made, classifier, noise_width, 10)

    monkeypatch.setattr(label_check, "_trained", watched)
    job = digits.job(labels_compared=True)
    made = LabelledGenerator(Shown(digits, 0), Labeller(digits.SHAPE, classes=10), noise_width=5, tries=3)
    labels_pay(job, job.accesses[2], made, 15)
    assert seen == [digits.UNITS] * 2
    assert images_compared(Schema.parse(digits.TEXT.replace(str(digits.UNITS), "60000"))) == 30_000
