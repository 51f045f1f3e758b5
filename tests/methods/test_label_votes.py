"""Noisy voting on labels: one release, kept and paid for, and nothing of the true labels behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from doublure.errors import RunFolderError
from doublure.methods import label_votes
from doublure.methods.noisecritic import METHOD, _calibrated
from doublure.private import accounting
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.records import PrivateRecords

QUIET = DiscreteGaussianEvent(scale=0.01, tables=2)
LOUD = DiscreteGaussianEvent(scale=1e5, tables=2)
GROUPS = 30
TINY = {
    "labels": "votes", "label_epsilon": 3.0, "label_delta": 1e-5, "label_groups": GROUPS, "steps": 6, "n_critic": 2,
    "lot_size": 20, "generator_batch": 8, "critic_channels": [4], "channels": [6, 4], "features": 6, "noise_width": 4,
    "checkpoints": 3,
}  # fmt: skip


def conditions(job):
    return torch.cat([condition for _, condition in job.records.expanded(500)]).argmax(1).numpy()


def bodies(job):
    return torch.cat([body for body, _ in job.records.expanded(500)])


def test_look_alikes_vote_for_what_they_are(digits):
    voted = label_votes.voted(digits.noisy_job(**TINY), QUIET, GROUPS)
    right = (conditions(voted) == digits.labels).mean()
    assert right > 0.7
    drowned = label_votes.voted(digits.noisy_job(**TINY), LOUD, GROUPS)
    assert (conditions(drowned) == digits.labels).mean() < 0.4


def test_images_stay_and_labels_go(digits):
    job = digits.noisy_job(**TINY)
    voted = label_votes.voted(job, QUIET, GROUPS)
    assert torch.equal(bodies(voted), bodies(job))
    assert (conditions(voted) != digits.labels).any()
    body, condition, _, units = voted.records.lot(np.array([5, 900]))
    assert units == 2
    assert torch.equal(body, bodies(job)[[5, 900]])
    assert torch.equal(condition.argmax(1), torch.from_numpy(conditions(voted)[[5, 900]]))


def test_fewer_images_than_groups_are_voted_on_too(digits):
    few = digits.noisy_job(**TINY)
    few = replace(few, records=PrivateRecords(few.records._compact[:20], np.arange(20), 20, few.records._expand))
    assert np.array_equal(conditions(label_votes.voted(few, QUIET, GROUPS)), digits.labels[:20])


def test_the_price_is_that_of_a_vote_taken_and_a_vote_given(digits):
    event = _calibrated(1.0, 1e-6)
    assert 0.99 < accounting.epsilon_of([event], 1e-6) <= 1.0
    once = DiscreteGaussianEvent(scale=event.scale)
    assert accounting.epsilon_of([once], 1e-6) < 0.75  # what a sensitivity of 1 would claim


def test_one_release_is_paid_for_before_the_first_step(digits):
    asked = []
    job = digits.noisy_job(**TINY, authorise=asked.append)
    METHOD.train(job)
    assert asked == list(range(1, 8))  # the vote, then six steps of the critic


def test_a_resumed_run_keeps_the_vote(digits):
    asked, memory = [], digits.Memory()

    def stops(step):
        asked.append(step)
        if step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        METHOD.train(digits.noisy_job(**TINY, authorise=stops, memory=memory))
    kept = memory.kept["votes/labels"]
    assert kept.shape == (digits.UNITS,)
    assert any(name.startswith("critic/generator.") for name in memory.kept)
    asked.clear()
    job = digits.noisy_job(**TINY, authorise=asked.append, memory=memory, taken=5)
    assert np.array_equal(conditions(label_votes.voted(job, LOUD, GROUPS)), kept.numpy())
    METHOD.train(job)
    assert asked == [6, 7]


def test_a_vote_that_was_lost_is_not_held_again(digits):
    with pytest.raises(RunFolderError, match="labels were voted on"):
        METHOD.train(digits.noisy_job(**TINY, taken=1))
