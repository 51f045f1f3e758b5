"""Votes on labels: groups that know no label, one release, and nothing of the true labels behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from doublure.access import Access
from doublure.errors import LedgerError, SettingError
from doublure.private import whole_noise
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise, ScaledNoise
from doublure.private.queries import votes as module
from doublure.private.queries.votes import LabelVotes
from doublure.private.records import PrivateRecords

KINDS, WIDTH, ROWS = 3, 4, 90
QUIET = DiscreteGaussianEvent(scale=0.01, tables=2)
LABELS = np.arange(ROWS) % KINDS
LOOKS = np.random.default_rng(1).normal(size=(ROWS, WIDTH)) + 20 * np.eye(KINDS, WIDTH)[LABELS]


def records(labels=LABELS, looks=LOOKS, unit=None):
    compact = np.column_stack([looks, labels]).astype(np.float32)
    unit = np.arange(len(compact)) if unit is None else unit

    def expand(rows):
        return rows[:, :-1], torch.eye(KINDS)[rows[:, -1].long()]

    return PrivateRecords(compact, unit, len(np.unique(unit)), expand)


class Ballot:
    """One vote of some records, as one access pays for it."""

    def __init__(self, kept, event=QUIET, groups=6, authorise=lambda access, step: None, taken=0):
        self.kept, self.access = kept, Access(purpose="vote", event=event)
        self.mechanism = Mechanism([self.access], noise=OsKeyedNoise(), authorise=authorise, taken=taken)
        self.query = LabelVotes(groups=groups, seed=3, see=lambda bodies: bodies, width=WIDTH)

    def release(self):
        return self.query.winners(self.mechanism.release(self.query, self.access, self.kept), self.kept)


def vote(kept, *args, **named):
    return Ballot(kept, *args, **named).release()


def labels_of(kept):
    """Return the true labels, in the order that votes come in."""
    return torch.cat([labels for _, labels in kept.by_body().expanded(50)]).argmax(1).numpy()


@pytest.fixture
def counted(monkeypatch):
    """Patch the noise to nothing; what is counted is kept."""
    seen = []

    def nothing(counts, *, scale):
        seen.append((counts.reshape(-1, KINDS), scale))
        return ScaledNoise(counts, scale)

    monkeypatch.setattr(whole_noise, "gaussian", nothing)
    return seen


def test_look_alikes_vote_for_what_they_are():
    wrong = LABELS.copy()
    wrong[::10] = (wrong[::10] + 1) % KINDS
    assert np.array_equal(vote(records(wrong)).numpy(), labels_of(records()))


def check_one_label_moves_one_vote(counted):
    wrong, places = np.r_[(LABELS[0] + 1) % KINDS, LABELS[1:]], np.arange(ROWS)
    # In a folder by class an image whose label is another stands elsewhere.
    for labels, order in ((LABELS, places), (wrong, places), (wrong, np.r_[places[1:60], 0, places[60:]])):
        vote(records(labels[order], LOOKS[order]))
    (one, sigma), *others = counted
    assert one.shape == (6, KINDS)
    assert sigma == QUIET.scale
    assert one.sum() == ROWS
    for other, _ in others:
        assert np.array_equal(one.sum(axis=1), other.sum(axis=1))  # each image is in the group that it was in
        assert np.abs(other - one).sum() == 2


def test_one_label_moves_one_vote(counted):
    check_one_label_moves_one_vote(counted)


def test_groups_that_follow_labels_are_caught(counted, monkeypatch):
    def peeking(self, records):
        labels = records._compact[:, -1].astype(np.int64)
        return labels, labels

    monkeypatch.setattr(LabelVotes, "_grouped", peeking)
    with pytest.raises(AssertionError):
        check_one_label_moves_one_vote(counted)


def test_groups_that_follow_the_order_of_a_file_are_caught(counted, monkeypatch):
    monkeypatch.setattr(PrivateRecords, "by_body", lambda self: self)
    with pytest.raises(AssertionError):
        check_one_label_moves_one_vote(counted)


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_fewer_images_than_groups_vote_in_fewer_groups(rows):
    few = records(LABELS[:rows], LOOKS[:rows])
    assert np.array_equal(vote(few).numpy(), labels_of(few) if rows else [])


@pytest.mark.parametrize("chunk", [40, 10])
def test_a_last_chunk_that_is_short_is_labelled_too(monkeypatch, chunk):
    """The first chunk holds an image for each group, however small chunks are."""
    monkeypatch.setattr(module, "_CHUNK", chunk)
    assert np.array_equal(vote(records(), groups=20).numpy(), labels_of(records()))


def test_a_price_of_one_table_is_refused(counted):
    """A label moves two cells."""
    asked = []
    ballot = Ballot(
        records(), DiscreteGaussianEvent(scale=9.0, tables=1), authorise=lambda access, step: asked.append(step)
    )
    with pytest.raises(SettingError, match=r"moves 1\.41421 in L2, more than the 1 that was priced") as refused:
        ballot.release()
    assert refused.value.field == "vote"
    assert asked == counted == []


def test_what_was_not_planned_or_paid_is_not_counted(counted):
    ballot = Ballot(records())
    ballot.release()
    with pytest.raises(SettingError, match="steps"):
        ballot.release()
    with pytest.raises(SettingError, match="steps"):
        vote(records(), taken=1)

    def unpaid(access, step):
        raise LedgerError("not paid", field="ledger")

    with pytest.raises(LedgerError):
        vote(records(), authorise=unpaid)
    assert len(counted) == 1  # that is, drawn


def refused_before_it_is_paid(kept, error, match):
    asked = []
    with pytest.raises(error, match=match):
        vote(kept, authorise=lambda access, step: asked.append(step))
    assert asked == []


def test_several_images_of_a_unit_are_refused():
    refused_before_it_is_paid(records(unit=np.arange(ROWS) // 2), SettingError, "max_records")


def test_images_without_labels_are_refused():
    refused_before_it_is_paid(records().bodies(), TypeError, "labels")


def test_nobody_has_a_label_before_the_vote():
    query = LabelVotes(groups=6, seed=3, see=lambda bodies: bodies, width=WIDTH)
    nobody = records().of_units(np.zeros(ROWS, dtype=bool))
    assert query.winners(np.zeros(6 * KINDS, dtype=np.int64), nobody).tolist() == []


def test_votes_of_an_earlier_session_give_the_same_labels():
    votes = np.random.default_rng(0).integers(0, 9, 6 * KINDS)

    def query():
        return LabelVotes(groups=6, seed=3, see=lambda bodies: bodies, width=WIDTH)

    counted = query()
    counted.answer(records(), sample_rate=1.0)
    assert query().winners(votes, records()).tolist() == counted.winners(votes, records()).tolist()


def test_groups_follow_from_images_and_the_seed():
    kept = records(np.zeros(ROWS, dtype=np.int64), np.random.default_rng(0).normal(size=(ROWS, WIDTH)))
    one, again, other = (
        LabelVotes(groups=6, seed=seed, see=lambda bodies: bodies, width=WIDTH).answer(kept, sample_rate=1.0).total
        for seed in (3, 3, 4)
    )
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_lot_is_no_place_for_a_vote_of_everybody():
    query = LabelVotes(groups=6, seed=3, see=lambda bodies: bodies, width=WIDTH)
    with pytest.raises(SettingError) as refused:
        query.answer(records(), sample_rate=0.5)
    assert refused.value.field == "sample_rate"


def test_no_image_votes_without_its_label():
    with pytest.raises(TypeError, match="labels"):
        list(module._bodies(records().bodies(), 50))
