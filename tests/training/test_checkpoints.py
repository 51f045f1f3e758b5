"""What a run goes on from: a state of other networks is refused, and so are tables of which one is lost."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from doublure.access import Access
from doublure.errors import LostRun, RunFolderError
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.training.checkpoints import KeptTables, restoring

LOOK = Access(purpose="look", event=DiscreteGaussianEvent(scale=1.0))
COUNT = Access(purpose="count", event=DiscreteGaussianEvent(scale=2.0))
STEPS = Access(purpose="steps", event=GaussianEvent(noise_multiplier=1.0, steps=2))


@pytest.mark.parametrize(("taken", "lost"), [(0, None), (1, "look"), (2, "look"), (4, "look")])
def test_a_table_that_was_paid_for_and_lost_is_refused_before_anything_else_is_paid(taken, lost):
    mechanism = Mechanism((LOOK, COUNT, STEPS), noise=OsKeyedNoise(), authorise=lambda access, step: None, taken=taken)
    job = SimpleNamespace(accesses=(LOOK, COUNT, STEPS), mechanism=mechanism)
    if lost is None:
        KeptTables(job)
        return
    with pytest.raises(LostRun, match=f"paying for '{lost}'"):
        KeptTables(job)


def test_a_state_of_other_networks_is_refused():
    for error in (KeyError, IndexError, ValueError, RuntimeError):
        with pytest.raises(RunFolderError) as refused, restoring():
            raise error
        assert refused.value.field == "checkpoint"
    with pytest.raises(TypeError), restoring():
        raise TypeError
