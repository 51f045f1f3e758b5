"""Rule 14: model inversion is record by record: eval-mode public generator, fixed steps, no dataset-level
normalisation (row 12)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from paying import paid
from tiers import by_tier

from doublure.encode.choice import encoder_for
from doublure.errors import SettingError
from doublure.methods.latentgan import training as latent_training
from doublure.networks.inversion import Inversion
from doublure.private import independence
from doublure.private.records import PrivateRecords
from doublure.schema import Schema
from doublure.training.job import Job, ProgressCounter, encoded_records


def job_of(letters, images, labels, **settings):
    plan = letters.plan(**settings)
    encoder = encoder_for(Schema.parse(letters.PRIVATE).resolve({}), plan.settings.encoding)
    from doublure.data.images import open_images

    loaded = open_images({"images": images, "labels": labels}).load(plan.schema)
    records = encoded_records(encoder, encoder.compact(loaded.content), loaded.unit, loaded.n_units)
    return Job(
        encoder=encoder, records=records, settings=plan.settings, units=900, checkpoints=None,
        check_stop=lambda: None, **paid(plan.training, plan.settings),
    )  # fmt: skip


def latents_of(letters, images, labels, **settings):
    """Return the latents that ``latentgan`` learns from, and the conditions beside them."""
    job = job_of(letters, images, labels, **settings)
    invert = latent_training.latent_view(
        job, job.settings, *latent_training.public_networks(job.encoder, job.settings)[:2]
    )
    latents, conditions, _, _ = invert(job.records).lot(np.arange(len(images)))
    return latents, conditions


def check_no_record_changes_anothers_latent(letters):
    images, labels = letters.private["images"], letters.private["labels"]
    one, conditions = latents_of(letters, images[:120], labels[:120])
    assert one.shape == (120, 6)
    assert one.std(0).min() > 0.1
    assert torch.equal(conditions.argmax(1), torch.from_numpy(labels[:120] // 2))
    # One record more, unlike all others; others in its company; half of them; alone; another order.
    odd = np.concatenate([images[:119], np.full_like(images[:1], 255), images[119:120]])
    more, _ = latents_of(letters, odd, np.append(labels[:120], 0))
    mixed, _ = latents_of(letters, np.concatenate([images[:60], images[600:660]]), labels[:120])
    alone, _ = latents_of(letters, images[:2], labels[:2])
    turned, _ = latents_of(letters, images[:120][::-1].copy(), labels[:120][::-1].copy())
    pairs = ((more[:119], one[:119]), (more[120:], one[119:]), (mixed[:60], one[:60]), (alone, one[:2]))
    for found, wanted in (*pairs, (turned.flip(0), one)):
        assert torch.equal(found, wanted)


def test_no_record_changes_anothers_latent(letters):
    check_no_record_changes_anothers_latent(letters)


def check_no_place_changes_a_latent(letters):
    images, labels = letters.private["images"][:64], letters.private["labels"][:64]
    patient = {"inversion_steps": by_tier(12, 200), "inversion_restarts": 2}
    one, _ = latents_of(letters, images, labels, **patient)
    before = np.concatenate([np.full_like(images[:1], 255), images])
    more, _ = latents_of(letters, before, np.append(0, labels), **patient)
    assert torch.equal(more[1:], one)
    few, _ = latents_of(letters, images[5:8], labels[5:8], **patient)
    assert torch.equal(few, one[5:8])


@pytest.fixture
def places_matter(monkeypatch):
    """Make an error differ a little by its place in a batch and the batch's size, as products of matrices do."""
    exact = Inversion._errors

    def errors(self, records, latents):
        return exact(self, records, latents) + 1e-6 * (torch.arange(len(latents)) + len(latents)) * latents.sum(1)

    monkeypatch.setattr(Inversion, "_errors", errors)


def test_no_record_in_front_changes_anothers_latent(letters):
    check_no_place_changes_a_latent(letters)


def test_a_place_that_follows_from_the_records_in_front_is_caught(lab, letters, places_matter):
    check_no_place_changes_a_latent(letters)
    lab.plant(latent_training.LatentView, "__call__", ("apart=True", "apart=False"))
    with lab.caught():
        check_no_place_changes_a_latent(letters)


def test_a_batch_that_is_as_large_as_it_has_to_be_is_caught(lab, letters, places_matter):
    lab.plant(
        PrivateRecords,
        "mapped",
        (
            "filled.new_zeros(rows, *filled.shape[1:])",
            "filled.new_zeros(int(batches.place[batch].max()) + 1, *filled.shape[1:])",
        ),
    )
    with lab.caught():
        check_no_place_changes_a_latent(letters)


ROWS = "best = torch.zeros(len(records), self.width, device=records.device)"
LAST = "return best"


LOOK_AT_OTHERS = {
    "centred": ("_inverted", (LAST, "return project_to_ball(best - best.mean(0), math.sqrt(self.width))")),
    "by the longest": ("_inverted", (LAST, "return best / best.norm(dim=1).max()")),
    "by the spread": ("_inverted", (LAST, "return project_to_ball(best / best.std(), math.sqrt(self.width))")),
    "better than most": ("_inverted", ("better = errors < least", "better = errors < errors.median()")),
    "records centred": ("_inverted", (ROWS, f"{ROWS}\n    records = records - records.mean(0)")),
    "the worst descends": (
        "_descended",
        ("self._errors(records, latents).sum()", "self._errors(records, latents).max()"),
    ),
    "steps by the records": (
        "_descended",
        ("range(self.settings.steps)", "range(self.settings.steps - int(records.abs().sum()) % 2)"),
    ),
    "slopes of all": ("_descended", ("slope.square", "slope.square().mean")),
}


@pytest.mark.parametrize("mutant", LOOK_AT_OTHERS)
def test_an_inversion_that_looks_at_others_is_caught(lab, letters, monkeypatch, mutant):
    name, edit = LOOK_AT_OTHERS[mutant]
    lab.plant(Inversion, name, edit)
    monkeypatch.setattr(independence, "refuse_meeting_rows", lambda *given, **named: None)
    with lab.caught():
        check_no_record_changes_anothers_latent(letters)


@pytest.mark.parametrize("mutant", sorted(LOOK_AT_OTHERS.keys() - {"the worst descends"}))
def test_most_of_them_are_refused_by_a_second_lock(lab, letters, mutant):
    """Made-up records meet in it before a private one does; they show what is done to each, not to the worst alone."""
    name, edit = LOOK_AT_OTHERS[mutant]
    lab.plant(Inversion, name, edit)
    few = letters.private["images"][:2], letters.private["labels"][:2]
    assert "not independent" in str(lab.refusal(SettingError, lambda: latents_of(letters, *few)))


def told_of(letters, count):
    """Return what somebody who watches the progress of inverting so many records is told."""
    told = []

    class Listens:
        def stage(self, name, total=None):
            told.append(total)

        def at(self, done):
            told.append(done)

    images, labels = (letters.private[name][:count] for name in ("images", "labels"))
    job = replace(job_of(letters, images, labels), progress=Listens())
    invert = latent_training.latent_view(
        job, job.settings, *latent_training.public_networks(job.encoder, job.settings)[:2]
    )
    invert(job.records)
    return told


def check_progress_tells_no_count(letters):
    one, other = told_of(letters, 400), told_of(letters, 399)
    assert one == other
    assert one[0] == one[-1] == 900  # of the public number
    assert len(one) > 8


def test_progress_tells_no_count(letters):
    check_progress_tells_no_count(letters)


@pytest.mark.parametrize("told", ["len(rows)", "units * len(rows) // 400"])
def test_progress_that_tells_a_count_is_caught(lab, letters, told):
    shown = "units * min(batches, self._planned) // self._planned"
    lab.plant(ProgressCounter, "save", (shown, told))
    with lab.caught():
        check_progress_tells_no_count(letters)


def check_networks_are_evaluated(letters):
    images, labels = letters.private["images"][:4], letters.private["labels"][:4]
    job = job_of(letters, images, labels)
    for network in latent_training.public_networks(job.encoder, job.settings):
        assert not any(layer.training for layer in network.modules())
        assert not any(weight.requires_grad for weight in network.parameters())


def test_the_public_networks_are_in_evaluation_mode(letters):
    check_networks_are_evaluated(letters)


def test_a_generator_in_training_mode_is_refused(lab, letters):
    lab.plant(latent_training, "public_networks", ("network.to(device).eval", "network.to(device).train"))
    with lab.caught():
        check_networks_are_evaluated(letters)
    error = lab.refusal(
        SettingError, lambda: latents_of(letters, letters.private["images"][:4], letters.private["labels"][:4])
    )
    assert error.remedy


def test_steps_and_beginnings_are_in_the_plan(letters):
    settings = letters.plan(inversion_steps=3, inversion_restarts=2).to_json()["settings"]
    assert [settings[f"inversion_{name}"] for name in ("steps", "restarts", "seed", "rate")] == [3, 2, 0, 0.1]
    assert settings["public_facts"]["generator_sha256"] == letters.facts.generator_sha256
