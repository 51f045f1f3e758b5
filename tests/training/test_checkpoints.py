"""Releases that are kept: drawn once, and after a stop before the noise once more, if the ledger allows it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from doublure.access import Access
from doublure.errors import Interrupted, LostRun, RunFolderError
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.training.checkpoints import KeptReleases, restoring

LOOK = Access(purpose="look", event=DiscreteGaussianEvent(scale=1.0))
STEPS = Access(purpose="steps", event=GaussianEvent(noise_multiplier=1.0, steps=2))
NOISE = np.array([1.0, 2.0])


class Memory:
    """Keeps one state."""

    def __init__(self):
        self.kept, self.steps = None, []

    def save(self, step, state):
        """Replace it."""
        self.steps.append(step)
        self.kept = dict(state)

    def load(self):
        """Return it."""
        return self.kept


class Mechanism:
    """Counts what was paid for."""

    def __init__(self):
        self.spent, self.forgiven = {LOOK: 0, STEPS: 0}, []

    def taken(self, access):
        """Return how often."""
        return self.spent[access]

    def not_drawn(self, access, before):
        """Remember it."""
        self.forgiven.append((access.purpose, before))
        self.spent[access] = before


class Run:
    """A run of three releases, over several sessions."""

    def __init__(self, *, used=False):
        self.memory, self.mechanism, self.asked, self.drawn = Memory(), Mechanism(), [], []
        self.used, self.session = used, "first"

    def releases(self, session="first"):
        """Return the releases as a session finds them."""
        self.session = session
        job = SimpleNamespace(
            accesses=(LOOK, STEPS), checkpoints=self.memory, mechanism=self.mechanism, session=session,
            check_stop=lambda: None, restore_undrawn=lambda name: self.asked.append(name) or not self.used,
        )  # fmt: skip
        return KeptReleases(job, (LOOK, STEPS))

    def draw(self, number, *, stop=None):
        """Return what draws a release: stopped before its noise, or after, or not at all."""

        def drawn():
            access = LOOK if number == 1 else STEPS
            if stop == "before":
                raise Interrupted("stop", field="signal", remedy="resume")
            self.mechanism.spent[access] += 1
            if stop == "after":
                raise Interrupted("stop", field="signal", remedy="resume")
            self.drawn.append(number)
            return [NOISE * number]

        return drawn

    def make(self, kept, number, **more):
        """Make a release."""
        (found,) = kept.drawn(number, [f"r{number}"], self.draw(number, **more), doing="things were counted")
        return found.tolist()


def test_a_release_is_drawn_once_and_kept():
    run = Run()
    for session in ("first", "second"):
        kept = run.releases(session)
        assert [run.make(kept, number) for number in (1, 2, 3)] == [[1, 2], [2, 4], [3, 6]]
    assert run.drawn == [1, 2, 3]
    assert run.memory.steps == [1, 2, 3]
    assert sorted(run.memory.kept) == ["r1", "r2", "r3"]


def test_what_was_paid_for_and_lost_is_not_drawn_again():
    run = Run()
    run.mechanism.spent[LOOK] = 1
    with pytest.raises(LostRun, match="was cut off while things were counted"):
        run.make(run.releases(), 1)
    assert run.drawn == run.asked == []


@pytest.mark.parametrize("number", [1, 2, 3])
def test_what_was_stopped_before_its_noise_is_drawn_after_all(number):
    run = Run()
    kept = run.releases()
    for earlier in range(1, number):
        run.make(kept, earlier)
    with pytest.raises(Interrupted):
        run.make(kept, number, stop="before")
    run.mechanism.spent[LOOK if number == 1 else STEPS] += 1  # the ledger had authorised it
    assert run.make(run.releases("second"), number) == [number, 2 * number]
    assert run.asked == ["first"]
    assert run.mechanism.forgiven == [("look", 0) if number == 1 else ("steps", number - 2)]


def test_a_stop_after_the_noise_leaves_no_mark():
    run = Run()
    with pytest.raises(Interrupted):
        run.make(run.releases(), 1, stop="after")
    assert run.memory.kept is None
    with pytest.raises(LostRun):
        run.make(run.releases("second"), 1)


def test_a_mark_that_was_used_draws_nothing():
    run = Run(used=True)
    with pytest.raises(Interrupted):
        run.make(run.releases(), 1, stop="before")
    run.mechanism.spent[LOOK] = 1
    with pytest.raises(LostRun):
        run.make(run.releases("second"), 1)
    assert run.asked == ["first"]
    assert run.drawn == run.mechanism.forgiven == []


@pytest.mark.parametrize(("stopped", "lost"), [(1, 2), (2, 1), (2, 3), (3, 2)])
def test_a_mark_is_of_one_release_alone(stopped, lost):
    run = Run()
    kept = run.releases()
    for number in range(1, stopped):
        run.make(kept, number)
    with pytest.raises(Interrupted):
        run.make(kept, stopped, stop="before")
    run.memory.kept = {name: value for name, value in run.memory.kept.items() if name != f"r{lost}"}
    run.mechanism.spent, drawn = {LOOK: 1, STEPS: 2}, list(run.drawn)
    with pytest.raises(LostRun):
        run.make(run.releases("second"), lost)
    assert run.asked == []
    assert run.drawn == drawn


def test_a_state_of_other_networks_is_refused():
    for error in (KeyError, IndexError, ValueError, RuntimeError):
        with pytest.raises(RunFolderError) as refused, restoring():
            raise error
        assert refused.value.field == "checkpoint"
    with pytest.raises(TypeError), restoring():
        raise TypeError


def test_a_damaged_mark_is_refused():
    run = Run()
    with pytest.raises(Interrupted):
        run.make(run.releases(), 1, stop="before")
    (mark,) = run.memory.kept
    run.memory.kept[mark] = np.array([0, 0, 300])
    run.mechanism.spent[LOOK] = 1
    with pytest.raises(RunFolderError):
        run.make(run.releases("second"), 1)
