"""A job as one of several stages sees it: its own noisy steps, its own state, and how far it says that it is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from doublure.access import Access
from doublure.private.accounting import GaussianEvent
from doublure.training.job import Job, ProgressCounter, StageCheckpoints

PRIVATE = Access(purpose="train", event=GaussianEvent(noise_multiplier=1.0))
PLAIN = Access(purpose="look", event=None)


class Memory:
    """Keeps one state."""

    def __init__(self, kept=None):
        self.kept, self.steps = kept, []

    def save(self, step, state):
        """Replace it."""
        self.steps.append(step)
        self.kept = dict(state)

    def load(self):
        """Return it."""
        return self.kept


def job(**changes):
    nothing = dict.fromkeys(("encoder", "records", "settings", "mechanism"))
    usual = {"accesses": (), "units": 10, "authorise": [].append, "check_stop": lambda: None, "checkpoints": Memory()}
    return Job(**{**nothing, **usual, **changes})


def test_a_job_begins_at_nothing_and_with_everybody():
    plain = job()
    assert (plain.taken, plain.seed, plain.sample_rate, plain.device) == (0, 0, 1.0, "cpu")
    assert plain.workspace.kept("latents", "key") is None


def test_a_job_is_private_if_all_that_it_touches_is_protected():
    assert job(accesses=(PRIVATE, PRIVATE)).private
    assert not job(accesses=(PRIVATE, PLAIN)).private
    assert not job().private


@pytest.mark.parametrize(("taken", "own"), [(0, 0), (3, 0), (4, 0), (5, 1), (9, 5)])
def test_a_stage_counts_its_own_steps(taken, own):
    asked = []
    stage = job(taken=taken, authorise=asked.append).stage("second", after=4)
    assert stage.taken == own
    stage.authorise(own + 1)
    assert asked == [4 + own + 1]


def test_a_stage_keeps_its_state_beside_that_of_others():
    whole = Memory()
    first = StageCheckpoints(whole, "first", 0)
    assert first.load() is None
    first.save(2, {"a": 1})
    second = job(checkpoints=whole).stage("second", after=2).checkpoints
    assert second.load() is None
    second.save(3, {"a": 7, "b": 8})
    assert whole.steps == [2, 5]
    assert whole.kept == {"first/a": 1, "second/a": 7, "second/b": 8}
    assert second.load() == {"a": 7, "b": 8}
    assert StageCheckpoints(whole, "first", 0).load() == {"a": 1}
    second.save(4, {"b": 9})
    assert whole.kept == {"first/a": 1, "second/b": 9}


def test_progress_is_told_in_public_units():
    told = []
    counter = ProgressCounter(job(units=1000, progress=SimpleNamespace(at=told.append)), rows=100)
    assert counter.load((10, 3)) is None
    for batches in (1, 5, 10_000):
        counter.save(None, batches, last=False)
    counter.save(None, 1, last=True)
    assert 0 < told[0] < told[1] < 1000
    assert told[2:] == [1000, 1000]
    assert told[0] == pytest.approx(1000 / 20, abs=5)  # the fullest of ten places on average holds about twenty
