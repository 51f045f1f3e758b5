"""Noisy voting on labels: one release, kept and paid for, and nothing of the true labels behind it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from paying import paid

from doublure.errors import LostRun
from doublure.methods.noisecritic import label_votes
from doublure.methods.noisecritic.method import METHOD, _calibrated
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


def voted(job, event):
    """Return the job on voted labels, where its vote is priced as this event."""
    accesses = (replace(job.accesses[0], event=event), *job.accesses[1:])
    return label_votes.vote_on_labels(
        replace(job, **paid(accesses, job.settings, job.authorise, job.taken, memory=job.checkpoints)),
        accesses[0],
        GROUPS,
    )


def in_order(job):
    """Return the job with its records in the order that votes come in."""
    return replace(job, records=job.records.by_body())


def test_look_alikes_vote_for_what_they_are(digits):
    job = digits.noisy_job(**TINY)
    right = conditions(voted(job, QUIET)) == conditions(in_order(job))
    assert right.mean() > 0.7
    drowned = conditions(voted(digits.noisy_job(**TINY), LOUD)) == conditions(in_order(job))
    assert drowned.mean() < 0.4


def test_images_stay_and_labels_go(digits):
    job = digits.noisy_job(**TINY)
    made = voted(job, QUIET)
    assert torch.equal(bodies(made), bodies(in_order(job)))
    assert torch.equal(bodies(made).flatten(1).sum(1).sort()[0], bodies(job).flatten(1).sum(1).sort()[0])
    assert (conditions(made) != conditions(in_order(job))).any()
    body, condition, _, units = made.records.lot(np.array([5, 900]))
    assert units == 2
    assert torch.equal(body, bodies(made)[[5, 900]])
    assert torch.equal(condition.argmax(1), torch.from_numpy(conditions(made)[[5, 900]]))


def test_fewer_images_than_groups_are_voted_on_too(digits):
    few = digits.noisy_job(**TINY)
    few = replace(few, records=PrivateRecords(few.records._compact[:20], np.arange(20), 20, few.records._expand))
    assert np.array_equal(conditions(voted(few, QUIET)), conditions(in_order(few)))


def test_the_order_of_a_file_says_nothing_of_labels(digits):
    job = digits.noisy_job(**TINY)
    by_class = np.argsort(digits.labels, kind="stable")
    kept = job.records
    sorted_ = replace(job, records=PrivateRecords(kept._compact[by_class], np.arange(len(by_class)), len(by_class),
                                                  kept._expand))  # fmt: skip
    one, other = (voted(replace(each, checkpoints=digits.Memory()), QUIET) for each in (job, sorted_))
    assert torch.equal(bodies(one), bodies(other))
    assert np.array_equal(conditions(one), conditions(other))


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
    assert memory.answers.places() == {(0, 0)}
    assert any(name.startswith("critic/generator.") for name in memory.kept)
    asked.clear()
    job = digits.noisy_job(**TINY, authorise=asked.append, memory=memory, taken=5)
    first, again = (conditions(voted(job, job.accesses[0].event)) for _ in range(2))
    assert first.shape == (digits.UNITS,)
    assert np.array_equal(first, again)
    METHOD.train(job)
    assert asked == [6, 7]


def test_a_vote_is_taken_up_whatever_the_order(digits):
    """Votes are read in the images' own order, which no file's order changes."""
    memory, asked = digits.Memory(), []
    kept = conditions(voted(digits.noisy_job(**TINY, memory=memory), LOUD))
    job = digits.noisy_job(**TINY, memory=memory, taken=1, authorise=asked.append)
    turned = PrivateRecords(
        job.records._compact[::-1].copy(), np.arange(digits.UNITS), digits.UNITS, job.records._expand
    )
    assert np.array_equal(conditions(voted(replace(job, records=turned), LOUD)), kept)
    assert asked == []


def test_a_vote_that_was_lost_is_not_held_again(digits):
    with pytest.raises(LostRun, match="one draw"):
        METHOD.train(digits.noisy_job(**TINY, taken=1))
