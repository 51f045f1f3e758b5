"""Votes on labels: groups that know no label, one release, and nothing of the true labels behind it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from doublure.errors import LedgerError, SettingError
from doublure.private import statistics, voting
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.records import PrivateRecords
from doublure.private.voting import PrivateVotes

KINDS, WIDTH, ROWS = 3, 4, 90
QUIET = DiscreteGaussianEvent(scale=0.01, tables=2)
LABELS = np.arange(ROWS) % KINDS
LOOKS = np.random.default_rng(1).normal(size=(ROWS, WIDTH)) + 20 * np.eye(KINDS, WIDTH)[LABELS]


def records(labels=LABELS, looks=LOOKS, unit=None):
    compact = torch.from_numpy(np.column_stack([looks, labels])).float()
    unit = np.arange(len(compact)) if unit is None else unit

    def expand(rows):
        return rows[:, :-1], torch.eye(KINDS)[rows[:, -1].long()]

    return PrivateRecords(compact, unit, len(np.unique(unit)), expand)


def votes_of(kept, event=QUIET, groups=6, authorise=lambda release: None, **named):
    return PrivateVotes(kept, event, groups=groups, seed=3, authorise=authorise, **named)


def vote(kept, *args, **named):
    return votes_of(kept, *args, **named).release(lambda bodies: bodies, WIDTH)


def labels_of(kept):
    """Return the true labels, in the order that votes come in."""
    return torch.cat([labels for _, labels in kept.by_body().expanded(50)]).argmax(1).numpy()


@pytest.fixture
def counted(monkeypatch):
    """Patch the noise to nothing; what is counted is kept."""
    seen = []
    monkeypatch.setattr(statistics, "noisy_histogram", lambda counts, sigma: (seen.append((counts, sigma)), counts)[1])
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
    def peeking(self, records, see, width):
        return records._compact[:, -1].long().numpy(), records._compact[:, -1].long().numpy()

    monkeypatch.setattr(PrivateVotes, "_grouped", peeking)
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


def test_a_last_chunk_that_is_short_is_labelled_too(monkeypatch):
    monkeypatch.setattr(voting, "_CHUNK", 40)
    assert np.array_equal(vote(records(), groups=20).numpy(), labels_of(records()))


def test_a_price_of_one_table_is_refused():
    with pytest.raises(SettingError, match="two"):
        votes_of(records(), DiscreteGaussianEvent(scale=9.0, tables=1))


def test_what_was_not_planned_or_paid_is_not_counted(counted):
    kept = votes_of(records())
    kept.release(lambda bodies: bodies, WIDTH)
    with pytest.raises(SettingError, match="releases"):
        kept.release(lambda bodies: bodies, WIDTH)
    with pytest.raises(SettingError, match="releases"):
        vote(records(), taken=1)

    def unpaid(release):
        raise LedgerError("not paid", field="ledger")

    with pytest.raises(LedgerError):
        vote(records(), authorise=unpaid)
    assert len(counted) == 1


def test_several_images_of_a_unit_are_refused():
    with pytest.raises(SettingError, match="max_records"):
        vote(records(unit=np.arange(ROWS) // 2))


def test_images_without_labels_are_refused():
    with pytest.raises(TypeError, match="labels"):
        vote(records().bodies())
