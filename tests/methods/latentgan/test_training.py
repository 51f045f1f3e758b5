"""What a run keeps of its latents half-way, what is read back of it, and what starts an inversion."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from doublure.methods.latentgan import training
from doublure.methods.latentgan.training import _LatentStore
from doublure.support.tensors import as_array


class Workspace:
    """What a run's folder keeps, in memory."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], Any] = {}
        self.writes = 0

    def kept(self, name, key):
        return self.held.get((name, key))

    def keep(self, name, arrays, key):
        self.held[name, key] = {part: as_array(array).copy() for part, array in arrays.items()}
        self.writes += 1


class Stopped(Exception):
    """Somebody asks the run to stop."""


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(training.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def job():
    seen: list[int] = []
    made = SimpleNamespace(workspace=Workspace(), units=60, progress=SimpleNamespace(at=seen.append), seen=seen)
    made.check_stop = lambda: None
    return made


def rows(number: int, width: int = 3) -> torch.Tensor:
    return torch.arange(number * width, dtype=torch.float32).reshape(number, width)


def test_latents_that_were_kept_are_read_back(clock, job):
    store = _LatentStore(job, "key", 10)
    assert store.load((60, 3)) is None
    store.save(rows(20), 2, last=True)
    assert torch.equal(_LatentStore(job, "key", 10).load((60, 3)), rows(20))
    assert torch.equal(store.load((20, 3)), rows(20))
    assert _LatentStore(job, "of other records", 10).load((60, 3)) is None


@pytest.mark.parametrize("shape", [(19, 3), (60, 2), (60, 4)])
def test_latents_of_another_shape_are_not_read(clock, job, shape):
    store = _LatentStore(job, "key", 10)
    store.save(rows(20), 2, last=True)
    assert store.load(shape) is None


def test_what_is_no_matrix_is_not_read(clock, job):
    job.workspace.keep("latents", {"latents": np.zeros((20, 3, 1))}, "key")
    assert _LatentStore(job, "key", 10).load((60, 3)) is None
    job.workspace.keep("latents", {"other": np.zeros((20, 3))}, "key")
    assert _LatentStore(job, "key", 10).load((60, 3)) is None


def test_latents_are_kept_twice_a_minute_and_at_the_end(clock, job):
    store, written = _LatentStore(job, "key", 10), []
    for now in (110.0, 130.0, 130.1, 131.0, 160.1, 160.2):
        clock[0] = now
        store.save(rows(10), 1, last=False)
        written.append(job.workspace.writes)
    assert written == [0, 0, 1, 1, 1, 2]
    store.save(rows(60), 6, last=True)
    assert job.workspace.writes == 3
    assert job.seen[-1] == 60


def test_whoever_is_stopped_keeps_what_is_finished(clock, job):
    store = _LatentStore(job, "key", 10)

    def stop():
        raise Stopped

    job.check_stop = stop
    with pytest.raises(Stopped):
        store.save(rows(30), 3, last=False)
    job.check_stop = lambda: None
    assert torch.equal(store.load((60, 3)), rows(30))


def test_an_inversion_is_as_the_plan_has_it():
    asked = {"inversion_steps": 7, "inversion_restarts": 3, "at_a_time": 5}
    how = training._how(SimpleNamespace(**asked))
    assert (how.steps, how.restarts, how.rate, how.seed, how.batch) == (7, 3, 0.1, 0, 5)
    without = training._how(SimpleNamespace(**asked | {"inversion_steps": None, "inversion_restarts": None}))
    assert (without.steps, without.restarts) == (0, 1)
