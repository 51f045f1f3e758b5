"""Rules 1 to 8 for ``guided`` and ``latentgan``: a neighbour moves a sum by what its noise is for, and nothing else.

Record and replay through the whole fit, as the other rules do it: what a reader could see is equal bit for bit when the
noisy sums are frozen, and before their noise the sums differ by their sensitivity at most. Mutants beside it.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
import pytest
import torch

from doublure import planning as plans
from doublure.data.images import open_images
from doublure.errors import NotAsPriced, SettingError
from doublure.methods.guided import refining
from doublure.methods.latentgan import moments as latent_moments
from doublure.methods.latentgan import training as latent_training
from doublure.methods.latentgan.settings import LatentSettings
from doublure.methods.statistics.images import mean_embedding
from doublure.private import independence
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import sums
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.records import PrivateRecords
from doublure.run import running
from doublure.schema import Schema
from doublure.support.progress import SilentProgress
from doublure.training import critic_steps as private_critic_trainer
from doublure.training import private_classifier as labelling
from doublure.training.gan_loop import Adversaries
from doublure.training.noisy_sums import NoisySums

PAID = "self._pay(access)"
NOISY = "noisy, ran = self._noised(answer, access)"
UNITS, SIDE, CLIP, STEPS = 24, 8, 0.1, 3
TEXT = f"doublure: 1\nkind: images\nunits: {UNITS}\nimages: {{shape: [8, 8, 1]}}\nlabel: {{values: [a, b, c]}}\n"
SEVERAL = TEXT + "unit: {name: writer, id: writer, max_records: 3}\n"
FEW = {
    "features": 32, "fit_steps": 3, "batch": 12, "latent": 3, "hidden": 8, "channels": [4], "labeller_steps": STEPS,
    "labeller_clip": CLIP, "view_images": 100, "view_width": 10, "tries": 2, "labels_compared": False,
}  # fmt: skip

CHECKERS = np.indices((SIDE, SIDE)).sum(0) % 2 * 255
ODD_IMAGES = {
    "black": np.zeros((SIDE, SIDE)),
    "white": np.full((SIDE, SIDE), 255),
    "checkers": CHECKERS,
    "one pixel": np.eye(SIDE * SIDE)[9].reshape(SIDE, SIDE) * 255,
    "noise": np.random.default_rng(4).integers(0, 256, (SIDE, SIDE)),
}


def people(records=1):
    """Return an ordinary set of images; ``writer`` is the unit's key."""
    size, draw = UNITS * records, np.random.default_rng(5)
    down, across = np.indices((SIDE, SIDE))
    label = draw.integers(0, 3, size)
    spots = np.exp(
        -((down - 2 * label[:, None, None] - 1) ** 2 + (across - 4 + draw.normal(size=(size, 1, 1))) ** 2) / 4
    )
    images = (spots * 255).astype(np.uint8)[..., None]
    return {"images": images, "labels": np.array(list("abc"))[label], "writer": np.repeat(np.arange(UNITS), records)}


def with_unit(base, image, label="a", records=1, place=5):
    """Return the neighbour that has one unit more, in the midst of the others."""
    more = {
        "images": np.repeat(image.astype(np.uint8)[None, ..., None], records, axis=0),
        "labels": np.repeat(label, records),
        "writer": np.repeat(1000, records),
    }
    return {name: np.concatenate([base[name][:place], more[name], base[name][place:]]) for name in base}


def without_unit(base, writer):
    return {name: values[base["writer"] != writer] for name, values in base.items()}


class Theatre:
    """Runs ``guided`` as ``fit`` does, in memory; with the settings of ``more``, if there are any."""

    def __init__(self, lab, **more):
        parts = sys.modules[type(lab).__module__]
        self.lab, self.Trace, self.Memory = lab, parts.Trace, parts.Memory
        self.plans = {text: self.planned(text, **more) for text in (TEXT, SEVERAL)}

    @staticmethod
    def planned(text, **more):
        schema = Schema.parse(text)
        return plans.plan(schema, method="guided", epsilon=3.0, delta=1e-3, accountant="rdp", **(FEW | more))

    def fit(self, data, text=TEXT, *, like=None):
        """Fit, and return what happened.

        A query is a sum before its noise, and what is allowed is the noise's standard deviation over the planned σ.

        Args:
            data: The private images.
            text: The schema's text.
            like: A trace whose noisy sums are used instead of this run's own.
        """
        plan, trace = self.plans[text], self.Trace()
        memory = self.Memory(trace, plan.steps)
        sigmas = [touch.event.noise_multiplier for touch in plan.touches for _ in range(touch.event.steps)]
        release, opened, mapped = NoisySums.release, PrivateRecords.placed, PrivateRecords.mapped

        def normal(source, size, std):
            trace.order.append("noise")
            trace.allowed.append(std / sigmas[len(trace.allowed)])
            return ScaledNoise(np.zeros(size, dtype=np.float32), std)

        def whole(source, size, std, unit):
            normal(source, size, std)
            return ScaledNoise(np.zeros(size, dtype=np.int64), std)

        def placed(records, rows):
            trace.order.append("open")
            return opened(records, rows)

        def computed(records, *given, **named):
            trace.order.append("open")
            return mapped(records, *given, **named)

        def released(made, factors, **named):
            number = len(trace.outputs)
            exact = release(made, factors, **named)
            trace.queries.append(exact.double())
            noise = np.random.default_rng([7, number]).normal(size=exact.shape) * trace.allowed[-1] * sigmas[number]
            trace.outputs.append(exact + torch.from_numpy(noise).float() if like is None else like.outputs[number])
            return trace.outputs[-1]

        keys = list(dict.fromkeys(data["writer"]))
        most, draw, step = plan.schema.unit.max_records, Adversaries._noise, CriticSteps.gradient

        def paired(adversaries, size, draws):
            """What meets a record goes by its writer: the same in both sets, or in neither."""
            if draws is not adversaries._paired:
                return draw(adversaries, size, draws)
            met = dict(zip(*np.unique(data["writer"], return_counts=True), strict=True))
            rows = [
                np.random.default_rng([11, len(trace.outputs), int(key), number]).normal(
                    size=adversaries._settings.noise_width
                )
                for key in keys
                for number in range(min(most, met[key]))
            ]
            assert len(rows) == size
            return torch.tensor(np.array(rows), dtype=torch.float32)

        def stepped(made, critic, partner):
            number = len(trace.outputs)
            trace.settings.append(made.settings)
            trace.events.append(made.event)
            exact = step(made, critic, partner)
            trace.queries.append(exact.double() * made.settings.expected_units)
            std = trace.allowed[-1] * sigmas[number] / made.settings.expected_units
            noise = np.random.default_rng([7, number]).normal(size=exact.shape) * std
            trace.outputs.append(exact + torch.from_numpy(noise).float() if like is None else like.outputs[number])
            return trace.outputs[-1]

        with self.lab._patch.context() as patch:
            patch.setattr(Adversaries, "_noise", paired)
            patch.setattr(CriticSteps, "gradient", stepped)
            patch.setattr(CriticGradients, "_mix", lambda made, size: torch.full((size,), 0.5))
            patch.setattr(OsKeyedNoise, "normal", normal)
            patch.setattr(OsKeyedNoise, "whole", whole)
            patch.setattr(PrivateRecords, "placed", placed)
            patch.setattr(PrivateRecords, "mapped", computed)
            patch.setattr(NoisySums, "release", released)
            run = running.FitRun(memory, plan, memory, 1)
            images = open_images(data).load(plan.schema, at_least=0)
            generator = run._train(images, run._resolve(images, SilentProgress()), "cpu", SilentProgress())
        trace.public |= {"generator": generator.state_dict()}
        return trace


@pytest.fixture
def theatre(lab):
    return Theatre(lab)


def check_neighbours(theatre, least=0.99):
    """Nothing but the sums differs, and these by no more than their noise is made for, wherever the unit stands."""
    lab, base = theatre.lab, people()
    kept = theatre.fit(base)
    worst = 0.0
    for number, image in enumerate(ODD_IMAGES.values()):
        other = theatre.fit(with_unit(base, image, "abc"[number % 3], place=5 * number), like=kept)
        lab.assert_same_public(kept, other)
        worst = max(worst, lab.assert_within_sensitivity(kept, other))
    other = theatre.fit(without_unit(base, 7), like=kept)
    lab.assert_same_public(kept, other)
    worst = max(worst, lab.assert_within_sensitivity(kept, other))
    assert worst > least  # the bound is reached, so that a smaller one would not do
    return kept


def check_units_with_several_records(theatre):
    lab, base = theatre.lab, people(records=2)
    kept = theatre.fit(base, SEVERAL)
    for records in (1, 3, 6):
        other = theatre.fit(with_unit(base, CHECKERS, "b", records=records), SEVERAL, like=kept)
        lab.assert_same_public(kept, other)
        moved = lab.assert_within_sensitivity(kept, other)
        assert moved > 0.99 * min(3, records) / 3
    return kept


def test_neighbours_differ_by_what_the_noise_is_made_for(theatre):
    kept = check_neighbours(theatre)
    assert kept.allowed == pytest.approx([1.0] + [CLIP] * STEPS)
    assert kept.public["authorised"] == [1, 2, 3, 4]


def test_units_with_several_records_do_too(theatre):
    kept = check_units_with_several_records(theatre)
    assert kept.allowed == pytest.approx([3.0] + [3 * CLIP] * STEPS)


def check_noise_is_drawn_once_it_is_paid_for(theatre):
    order = theatre.fit(people()).order
    first, rest = ["open", "authorise", "noise"], ["open", "authorise", "noise"] * STEPS
    # Between the two, features are computed of what has been paid for, and nothing of it is looked at.
    assert order == [*first, "open", *rest]


@pytest.mark.parametrize("check", [check_neighbours, check_units_with_several_records])
def test_moments_of_a_gaussian_are_moved_as_little(lab, check):
    theatre = Theatre(lab, model="gaussian")
    assert theatre.plans[TEXT].settings.model == "gaussian"
    check(theatre)


def test_noise_is_drawn_once_it_is_paid_for(theatre):
    check_noise_is_drawn_once_it_is_paid_for(theatre)


def test_a_release_before_its_payment_is_caught(theatre):
    theatre.lab.plant(Mechanism, "release", (PAID, "pass"), (NOISY, f"{NOISY}\nself._pay(access)"))
    with theatre.lab.caught():
        check_noise_is_drawn_once_it_is_paid_for(theatre)


def test_the_plan_declares_each_release(theatre):
    events = [touch.event for touch in theatre.plans[TEXT].touches]
    assert all(isinstance(event, GaussianEvent) and event.sample_rate == 1 for event in events)
    assert [event.steps for event in events] == [1, STEPS]


WHOLE = "product_upwards(event.noise_multiplier, moved.l2)"
NORMAL = "self._noise.normal(total.size, event.noise_multiplier * moved.l2)"
LONGER = (
    (
        "fits = (_squared(left) <= _LONGEST * 4.0 ** bits[0]) & (_squared(right) <= _LONGEST * 4.0 ** bits[1])",
        "fits = counts",
    ),
)
RELEASED = "return sums.release(summand, shape=summand.shape)"
COUNTED = (
    "found = sums.release(summand, shape=summand.shape)\n"
    "    found[:, -1] = COUNTED * sum((labels.sum(0) for _, labels in sums._records.expanded(100)))\n"
    "    return found"
)
VIEW = "view = _view(job, settings, generator, noise_width, features)"
ALL = "next(job.records.expanded(10000))[0]"
SPREAD = "(images - images.mean(0)) / (images.std(0) + 0.01)"
MUTANTS = {
    "no clip": (
        sums,
        "_in_whole_numbers",
        ("weights = clip_factors(lengths, bound)", "weights = torch.ones_like(lengths)"),
        *LONGER,
    ),
    "a looser clip": (
        sums,
        "_in_whole_numbers",
        ("clip_factors(lengths, bound)", "clip_factors(lengths, 2 * bound)"),
        *LONGER,
    ),
    "noise halved": (Mechanism, "_noised", (WHOLE, WHOLE.replace("event.", "0.5 * event."))),
    "class sizes are counted": (mean_embedding, "_released", (RELEASED, COUNTED)),
    "features normalised over the data set": (
        mean_embedding.FeatureSum,
        "__call__",
        ("self._features(records)", f"self._features({SPREAD.replace('images', 'records')})"),
    ),
    "features of the labeller normalised over the data set": (
        labelling._Looked,
        "__call__",
        ("self._view(self._features(images).cpu())", f"self._view(self._features({SPREAD}).cpu())"),
    ),
    "the centre of private images": (
        labelling,
        "train_labeller",
        (VIEW, f"{VIEW}; view = FeatureView(features({ALL}).mean(dim=0), view.directions)"),
    ),
    "the directions of private images": (
        labelling,
        "train_labeller",
        (VIEW, f"{VIEW}; view = FeatureView(view.centre, torch.linalg.svd(features({ALL}))[2][:10].T)"),
    ),
    "divided by the exact number": (
        labelling,
        "train_labeller",
        ("total / (bound * job.units)", "total / (bound * job.records.n_units)"),
    ),
    "as many steps as there are records": (
        mean_embedding,
        "fit_generator",
        ("fit.done < settings.fit_steps", "fit.done < job.records.n_units"),
    ),
    "a record counted twice": (sums, "_sum", ("product.to(torch.int64)", "2 * product.to(torch.int64)")),
}


MEETING = ("features normalised over the data set", "features of the labeller normalised over the data set")


def unlock(patch):
    """Let rows meet in what is applied to records, which is refused before a record is looked at."""
    for owner in (sums, independence):
        patch.setattr(owner, "refuse_meeting_rows", lambda *given, **named: None)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(theatre, monkeypatch, mutant):
    owner, name, *edits = MUTANTS[mutant]
    theatre.lab.plant(owner, name, *edits)
    if mutant in MEETING:
        unlock(monkeypatch)
    with pytest.raises(NotAsPriced if mutant == "noise halved" else AssertionError):
        check_neighbours(theatre)


@pytest.mark.parametrize("mutant", MEETING)
def test_features_in_which_records_meet_are_refused_by_a_second_lock(theatre, mutant):
    owner, name, *edits = MUTANTS[mutant]
    theatre.lab.plant(owner, name, *edits)
    assert "not independent" in theatre.lab.refusal(SettingError, lambda: theatre.fit(people())).message


ANOTHER = "__import__('dataclasses').replace(access, event=__import__('dataclasses').replace(access.event, {}))"
RELEASES = "[access for access in accesses for _ in range(steps_of(access))]"
OTHER_EVENTS = {"less noise": "noise_multiplier=0.9 * access.event.noise_multiplier", "more steps": "steps=99"}


@pytest.mark.parametrize("event", OTHER_EVENTS)
def test_sums_that_another_event_pays_for_are_refused(theatre, event):
    """Nobody but the plan says what noise there is: an access of a method's own is none."""
    own = ANOTHER.format(OTHER_EVENTS[event])
    theatre.lab.plant(NoisySums, "__init__", (RELEASES, RELEASES.replace("access for", f"{own} for", 1)))
    assert "no access of the plan" in theatre.lab.refusal(SettingError, lambda: theatre.fit(people())).message


ADDS = ("self.max_records * self.bound", "self.bound")


def test_noise_for_one_record_of_several_is_caught(theatre):
    theatre.lab.plant(sums.BoundedSums, "sensitivity", ADDS)
    with pytest.raises(NotAsPriced):
        check_units_with_several_records(theatre)
    theatre.lab.plant(sums.BoundedSums, "answer", ADDS)
    with theatre.lab.caught():
        check_units_with_several_records(theatre)


def test_a_unit_that_is_not_bounded_is_refused_by_a_second_lock(theatre):
    """Should the loader let too many records through, the sums refuse them before they are paid for."""
    loose = Schema.parse(SEVERAL.replace("max_records: 3", "max_records: 6"))
    images = open_images(with_unit(people(records=2), CHECKERS, records=6)).load(loose, at_least=0)
    plan, trace = theatre.plans[SEVERAL], theatre.Trace()
    memory = theatre.Memory(trace, plan.steps)
    run = running.FitRun(memory, plan, memory, 1)
    train = partial(run._train, images, plan.schema.resolve({}), "cpu", SilentProgress())
    refused = theatre.lab.refusal(SettingError, train)
    assert refused.field == "max_records"
    assert trace.order == []


# -- with a critic -----------------------------------------------------------------------------------------------------

CRITIC = {"critic_share": 0.3, "labeller_share": 0.3, "critic_lot": UNITS, "critic_steps": 3, "critic_clip": 0.01}


@pytest.fixture
def critical(lab):
    """All three stages; the critic's lots are the whole set, so that a neighbour is in each of them."""
    return Theatre(lab, critic_channels=[3], **CRITIC)


def test_neighbours_differ_by_what_the_critics_noise_is_made_for_too(critical):
    kept = check_neighbours(critical)
    assert kept.allowed == pytest.approx([1.0] + [0.01] * 3 + [CLIP] * STEPS)
    assert kept.public["authorised"] == list(range(1, 8))
    assert [touch.event.steps for touch in critical.plans[TEXT].touches] == [1, 3, STEPS]


def test_units_with_several_records_move_a_critic_as_one(critical):
    kept = check_units_with_several_records(critical)
    assert kept.allowed == pytest.approx([3.0] + [0.01] * 3 + [3 * CLIP] * STEPS)


START = "adversaries = prepare(job, settings, start=generator, anchor=anchor if weight else None)"
LIGHT = "generator.body[0].bias.data.add_(float(next(job.records.expanded(10000))[0].mean()))"
TAUGHT = "private_critic_trainer(job, settings, access, adversaries)"
CRITIC_MUTANTS = {
    "divided by the exact number": (
        private_critic_trainer,
        "private_critic_trainer",
        ("access.event.sample_rate * job.units", "access.event.sample_rate * job.records.n_units"),
    ),
    "begun with private images": (refining, "refine", (START, f"{LIGHT}; {START}")),
    "steps that no one counts": (
        Mechanism,
        "_pay",
        ("self._before[access] + taken + 1", "self._before[access] + 1"),
    ),
    "steps that the next stage pays for": (refining, "refine", (TAUGHT, TAUGHT.replace("access", "job.accesses[-1]"))),
}


@pytest.mark.parametrize("mutant", CRITIC_MUTANTS)
def test_a_mutant_of_the_critics_stage_is_caught(critical, mutant):
    owner, name, *edits = CRITIC_MUTANTS[mutant]
    critical.lab.plant(owner, name, *edits)
    with pytest.raises((AssertionError, NotAsPriced)):
        assert check_neighbours(critical).public["authorised"] == list(range(1, 8))


@pytest.mark.parametrize("event", OTHER_EVENTS)
def test_a_critic_that_another_event_pays_for_is_refused(critical, event):
    own = TAUGHT.replace("access", ANOTHER.format(OTHER_EVENTS[event]))
    critical.lab.plant(refining, "refine", (TAUGHT, own))
    assert "no access of the plan" in critical.lab.refusal(SettingError, lambda: critical.fit(people())).message


# -- latents of a public generator -------------------------------------------------------------------------------------


class Synthesizers(Theatre):
    """Runs ``latentgan`` as ``fit`` does, through a public generator."""

    @staticmethod
    def planned(text, **more):
        return plans.plan(
            Schema.parse(text),
            method="latentgan",
            epsilon=3.0,
            delta=1e-3,
            accountant="rdp",
            inversion_steps=4,
            **more,
        )


@pytest.fixture
def latents(lab, letters, monkeypatch):
    """Two sums of moments, the second in cells that the first has cut."""
    monkeypatch.setattr(latent_training, "INVERSION_RATE", 2.0)
    monkeypatch.setattr(latent_moments, "_BELIEVED", 1e9)  # of so few units the noise would leave no cell
    return Synthesizers(lab, public=letters.folder, splits=1, labeller_share=0)


@pytest.fixture
def learned_latents(lab, letters, monkeypatch):
    """The paper's critic; its lots are the whole set, so that a neighbour is in each of them."""
    monkeypatch.setattr(latent_training, "INVERSION_RATE", 2.0)
    sizes = {"width": 8, "critic_width": 8, "generator_batch": 8, "steps": 3, "lot_size": UNITS, "max_grad_norm": 0.01}
    return Synthesizers(lab, public=letters.folder, teacher="critic", labeller_share=0, **sizes)


def test_a_record_more_is_one_latent_more(latents):
    kept = check_neighbours(latents, 0.9)  # 1 for a latent on the edge of the ball
    assert kept.allowed == pytest.approx([1.0, 1.0])
    assert kept.public["authorised"] == [1, 2]


def test_a_record_more_moves_the_critic_of_latents_within_its_bound(learned_latents):
    kept = check_neighbours(learned_latents)
    assert kept.allowed == pytest.approx([0.01] * 3)


@pytest.fixture
def labelled_latents(lab, letters):
    """One sum of moments, and a labeller of what comes out."""
    own = {name: FEW[name] for name in ("labeller_steps", "labeller_clip", "view_images", "view_width", "tries")}
    return Synthesizers(lab, public=letters.folder, splits=0, labeller_share=0.5, **own)


def check_a_labeller_of_latents_has_its_own_noise(theatre):
    kept = check_neighbours(theatre, 0.9)
    assert kept.allowed == pytest.approx([1.0] + [CLIP] * STEPS)
    latent, *steps = [touch.event.noise_multiplier for touch in theatre.plans[TEXT].touches]
    assert latent == pytest.approx(steps[0] / np.sqrt(STEPS), rel=1e-6)  # half of the budget each, in 1/σ²


def test_a_labeller_of_latents_has_its_own_noise(labelled_latents):
    check_a_labeller_of_latents_has_its_own_noise(labelled_latents)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (latent_training, "_labelled", ("job.accesses[-1:]", "job.accesses[:1]")),
        (LatentSettings, "latent_events", ("share = 1 - self.later_share", "share = 1.0")),
    ],
)
def test_a_labeller_of_latents_without_its_noise_is_caught(lab, letters, request, owner, name, edit):
    lab.plant(owner, name, edit)
    theatre = request.getfixturevalue("labelled_latents")  # the plan is made with the mutant, as a user's would be
    with lab.caught():
        check_a_labeller_of_latents_has_its_own_noise(theatre)


def test_units_with_several_latents_move_a_sum_together(latents):
    lab, base = latents.lab, people(records=2)
    kept = latents.fit(base, SEVERAL)
    assert kept.allowed == pytest.approx([3.0, 3.0])
    for records in (1, 3, 6):
        other = latents.fit(with_unit(base, CHECKERS, "b", records=records), SEVERAL, like=kept)
        lab.assert_same_public(kept, other)
        assert lab.assert_within_sensitivity(kept, other) > 0.9 * min(3, records) / 3


PRIVATE_LATENTS = "next(job.records.expanded(10000))[0]"
LATENT_MUTANTS = {
    "latents spread over the data set": (
        latent_training.LatentView,
        "__call__",
        (
            "records.mapped",
            "(lambda f, *a, **k: records.mapped(lambda images: f(images) / f(images).std(0), *a, **k))",
        ),
    ),
    "cut along directions of private latents": (
        latent_moments,
        "estimate_mixture",
        (
            "classes.directions[:, :, :splits].contiguous()",
            f"torch.linalg.svd({PRIVATE_LATENTS})[2][:splits].T.expand(kinds, -1, -1).contiguous()",
        ),
    ),
    "how often each class is met": (
        latent_moments,
        "estimate_mixture",
        (
            "cell_shares(cells.counts, kinds)",
            "cell_shares(cells.counts + next(job.records.expanded(10000))[1].sum(0).repeat_interleave(2), kinds)",
        ),
    ),
    "a covariance of private latents": (
        latent_moments,
        "estimate_mixture",
        ("factor_covariances(covariances)", f"factor_covariances(covariances + {PRIVATE_LATENTS}.T.cov())"),
    ),
}


@pytest.mark.parametrize("mutant", LATENT_MUTANTS)
def test_a_mutant_of_latents_is_caught(latents, monkeypatch, mutant):
    owner, name, *edits = LATENT_MUTANTS[mutant]
    latents.lab.plant(owner, name, *edits)
    if mutant == "latents spread over the data set":
        unlock(monkeypatch)
    with latents.lab.caught():
        check_neighbours(latents, 0.9)
