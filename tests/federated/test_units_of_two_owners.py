"""A unit that two owners have records of moves a sum of vectors twice as far, and twice as much noise is added."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from owned_cases import PICTURES, SMALL, UNITS
from owners import Federation
from planting import plant

import doublure as db
from doublure.federated.steps import OwnerComputation
from doublure.private.mechanism import Mechanism
from doublure.training.noisy_sums import NoisySums

SILOS = 2


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


NOISE = {"little": 30.0, "much": 0.5}  # ε; where there is much, the steps of a sum's grid follow it


@functools.cache
def planned(noise):
    schema = db.Schema.parse(PICTURES.replace("max_silos: 1", f"max_silos: {SILOS}"))
    return db.plan(schema, method="statistics", epsilon=NOISE[noise], delta=1e-4, accountant="rdp", **SMALL)


def dealt(folder, more):
    """Write each owner's images, and the same one more, if it is there, to each."""
    draw = np.random.default_rng(0)
    folder.mkdir(parents=True)
    images, labels = draw.integers(0, 256, (UNITS, 8, 8, 1), dtype=np.uint8), draw.integers(0, 2, UNITS)
    for owner in range(SILOS):
        own = [*range(owner, UNITS, SILOS), *([0] if more else [])]
        np.savez(folder / f"owner-{owner}.npz", images=images[own], labels=labels[own])
    return sorted(folder.iterdir())


def first_release(patch, folder, plan, more):
    """Return the first sum before its noise, and that noise's standard deviation."""
    found, noised = [], Mechanism._noised

    def watched(mechanism, answer, access):
        noisy, ran = noised(mechanism, answer, access)
        found.append((answer.total * answer.unit, ran.noise_multiplier * answer.sensitivity.l2))
        return noisy, ran

    with patch.context() as inner:
        inner.setattr(Mechanism, "_noised", watched)
        made = Federation(folder, plan, dealt(folder / "clients", more))
        made.fitted(inner)
    assert made.lines == []
    return found[0]


def check_a_unit_moves_a_sum_as_far_as_its_noise_is_made_for(patch, folder, plan):
    (without, std), (there, _) = (first_release(patch, folder / str(more), plan, more) for more in (False, True))
    moved, allowed = float(np.linalg.norm(there - without)), std / plan.training[0].event.noise_multiplier
    assert moved <= allowed * (1 + 1e-9)
    assert moved == pytest.approx(SILOS, rel=0.01)  # a record's length is one: a smaller bound would be none


@pytest.mark.parametrize("noise", NOISE)
def test_a_unit_of_two_owners_moves_a_sum_as_far_as_its_noise_is_made_for(monkeypatch, tmp_path, noise):
    plan = planned(noise)
    assert plan.guarantee.max_records == SILOS
    assert (plan.training[0].event.noise_multiplier > 1) == (noise == "much")
    check_a_unit_moves_a_sum_as_far_as_its_noise_is_made_for(monkeypatch, tmp_path, plan)


ONE = ("job.encoder.schema.most_records", "job.encoder.schema.unit.max_records")
MUTANTS = {
    "noise for a unit of one owner": (NoisySums, "__init__", ONE, "little"),
    "a sum that is read in other steps": (NoisySums, "__init__", ONE, "much"),
    "an owner that sums in other steps": (
        OwnerComputation, "sums", ("self._plan.schema.most_records", "self._plan.schema.unit.max_records"), "much",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_sum_that_moves_further_is_caught(monkeypatch, tmp_path, mutant):
    *edit, noise = MUTANTS[mutant]
    plant(monkeypatch, *edit)
    with pytest.raises(AssertionError):
        check_a_unit_moves_a_sum_as_far_as_its_noise_is_made_for(monkeypatch, tmp_path, planned(noise))
