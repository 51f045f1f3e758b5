"""Rules 1 to 3 and 15 for ``evolution``: one image changes one vote of a round, and nothing else.

Record and replay: the rounds run on a set of images, then on a neighbour that is told the same noisy votes. Exact votes
differ by one in one cell, and all that follows from the answers is equal bit for bit. Mutants beside it.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from paying import paid
from planting import plant

import doublure as db
from doublure.data.images import open_images
from doublure.encode.choice import encoder_for
from doublure.errors import SettingError
from doublure.methods.evolution import evolving
from doublure.methods.evolution.embedding import ImageEmbedding
from doublure.methods.evolution.method import METHOD
from doublure.private.queries.counts import Counts
from doublure.schema import Schema
from doublure.training.job import Job, encoded_records

SIDE, UNITS = 8, 30
TEXT = f"doublure: 1\nkind: images\nunits: {UNITS}\nimages: {{shape: [8, 8, 1]}}\nlabel: {{values: [a, b, c]}}\n"
CHECKERS = np.indices((SIDE, SIDE)).sum(0) % 2 * 255
ODD_IMAGES = {"black": CHECKERS * 0, "white": CHECKERS * 0 + 255, "checkers": CHECKERS}


def images(count, seed):
    return np.random.default_rng(seed).integers(0, 256, (count, SIDE, SIDE, 1), dtype=np.uint8)


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    place = tmp_path_factory.mktemp("public") / "public.npz"
    np.savez(place, images=images(60, 1))
    few = {"candidates": str(place), "rounds": 3, "population": 16, "kept": 20}
    return db.plan(Schema.parse(TEXT), method="evolution", epsilon=3.0, delta=1e-3, accountant="rdp", **few)


def played(plan, data, labels, told=None):
    """Return the exact votes of each round, the noisy ones, and the generator's state.

    Args:
        plan: The plan.
        data: The private images.
        labels: Their labels.
        told: Noisy votes that are handed out instead of this run's own.
    """
    schema = plan.schema.resolve({})
    encoder, exact, noisy = encoder_for(schema, plan.settings.encoding), [], []
    loaded = open_images({"images": data, "labels": labels}).load(schema)
    records = encoded_records(encoder, encoder.compact(loaded.content), loaded.unit, loaded.n_units)
    own = paid(plan.training, plan.settings)
    mechanism = own["mechanism"]

    def release(query, access, voters):
        query.refuse_unfit(voters)
        answer = query.answer(voters, sample_rate=1.0)
        assert answer.sensitivity == query.sensitivity
        exact.append(answer.total)
        noise = np.random.default_rng(len(exact)).normal(0, 1, len(answer.total)).round().astype(np.int64)
        noisy.append(answer.total + noise if told is None else told[len(noisy)])
        return noisy[-1]

    own["mechanism"] = SimpleNamespace(
        release=release, refuse_lost=mechanism.refuse_lost, deviation=mechanism.deviation
    )
    job = Job(
        encoder=encoder, records=records, settings=plan.settings, units=UNITS, checkpoints=None,
        check_stop=lambda: None, seed=4, **own,
    )  # fmt: skip
    return exact, noisy, METHOD.train(job).state_dict()


def with_image(data, labels, image, label, place=5):
    more = image.astype(np.uint8)[None, ..., None]
    return np.concatenate([data[:place], more, data[place:]]), np.insert(labels, place, label)


def check_neighbours(plan):
    data, labels = images(UNITS, 2), np.array(list("abc"))[np.arange(UNITS) % 3]
    exact, noisy, state = played(plan, data, labels)
    assert len(exact) == 3
    for odd in ODD_IMAGES.values():
        more, _, other = played(plan, *with_image(data, labels, odd, "c"), told=noisy)
        for one, two in zip(exact, more, strict=True):
            assert np.abs(two - one).sum() == 1
            assert (two - one)[32:].sum() == 1  # a candidate of its own label has the vote
        assert all(np.array_equal(state[name], other[name]) for name in state)
    fewer, _, _ = played(plan, data[1:], labels[1:], told=noisy)
    assert all(np.abs(one - two).sum() == 1 for one, two in zip(exact, fewer, strict=True))


def test_one_image_changes_one_vote_of_each_round(planned):
    check_neighbours(planned)


MUTANTS = {
    "a vote that counts twice": (
        Counts, "answer",
        ("found[key] += np.bincount(places(table, cells), minlength=len(found[key]))",
         "found[key] += 2 * np.bincount(places(table, cells), minlength=len(found[key]))"),
    ),
    "an embedding standardised by private images": (
        evolving, "evolve",
        ("_images(source, together)", "torch.cat([body for body, _ in job.records.expanded(7)])"),
    ),
    "candidates that follow the exact number of images": (
        evolving, "evolve",
        ("degree = 1 - number / len(job.accesses)", "degree = 1 - number / (3 + job.records.n_units)"),
    ),
    "features that depend on the batch": (
        ImageEmbedding, "__call__",
        ("(self._view(self._extract(images)) * LARGEST).round()",
         "(self._view(self._extract(images)) * LARGEST * (1 + images.mean() * 4)).round()"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_planted_faults_are_found(planned, monkeypatch, mutant):
    owner, name, *edits = MUTANTS[mutant]
    plant(monkeypatch, owner, name, *edits)
    with pytest.raises((AssertionError, SettingError)):
        check_neighbours(planned)


def test_a_round_beyond_the_plan_is_refused(planned):
    mechanism = paid(planned.training, planned.settings)["mechanism"]
    voters = encoded_voters()
    query = Counts(tables=[(voters.axis,)], max_records=1)
    for access in planned.training:
        assert mechanism.release(query, access, voters.records).shape == (2,)
        with pytest.raises(SettingError, match="all noisy steps"):
            mechanism.release(query, access, voters.records)
    assert [ran["drawn"] for ran in mechanism.ran()] == [1, 1, 1]


def encoded_voters():
    """Return two candidates and five records that vote for one of them."""
    from doublure.private.queries.nearest import NearestCandidate
    from doublure.private.records import PrivateRecords

    axis = NearestCandidate(features=np.array([[0, 9], [9, 0]]), classes=np.zeros(2, np.int64), kinds=0)
    held = np.array([[1, 8], [8, 1], [9, 9], [0, 0], [3, 5]], dtype=np.float16)
    return SimpleNamespace(axis=axis, records=PrivateRecords(held, np.arange(5), 5, lambda rows: (rows, None)))
