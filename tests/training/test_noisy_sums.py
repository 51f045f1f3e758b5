"""Noisy sums of vectors: one release after the other, of a bounded length, and an estimate that goes on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from paying import paid

from doublure.access import Access
from doublure.errors import SettingError
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent
from doublure.private.noise import ScaledNoise
from doublure.private.queries.distances import DistanceSettings
from doublure.private.records import PrivateRecords
from doublure.training.noisy_sums import NoisySums

BODY = torch.tensor([[3.0, 0.0, 4.0], [0.6, 0.0, 0.0], [0.0, 0.5, 0.0]])
DISTANCES = DistanceSettings(count=3, orders=(1, 4), gamma=1e-12)


class Silence:
    """Adds nothing, and remembers how much noise it was asked for."""

    name, for_tests = "silence", True

    def __init__(self):
        self.asked = []

    def whole(self, size, std, unit):
        """Return zeros."""
        self.asked.append(std)
        return ScaledNoise(np.zeros(size, dtype=np.int64), std)


def access(name, noise, steps=1):
    event = GaussianEvent(noise_multiplier=noise, steps=steps)
    return Access(purpose=name, event=event, whole=True)


def sums_of(*accesses, most=1, distances=None, taken=0):
    noise = Silence()
    pays = paid(accesses, SimpleNamespace(stream="os-keyed"), noise=noise, taken=taken)
    records = PrivateRecords(BODY, np.arange(3), 3, lambda rows: (rows, None))
    job = SimpleNamespace(
        mechanism=pays["mechanism"],
        everyone=records,
        encoder=SimpleNamespace(schema=SimpleNamespace(most_records=most)),
    )
    return NoisySums(job, accesses, distances=distances), noise


class Itself:
    """A record's own numbers."""

    name = "itself"

    def __call__(self, records, condition):
        """Return them."""
        return torch.ones(len(records), 1), records


def test_a_sum_is_of_vectors_of_a_bounded_length():
    for bound, first in ((5.0, 1.0), (1.0, 0.2), (0.25, 0.05)):
        sums, noise = sums_of(access("look", 2.0))
        found = sums.release(Itself(), shape=(1, 3), bound=bound)
        rest = [[0.6, 0.0, 0.0], [0.0, 0.5, 0.0]]
        expected = first * BODY[0] + sum(torch.tensor(row) * min(1.0, bound / max(row)) for row in rest)
        assert torch.allclose(found, expected[None], atol=1e-3)
        assert noise.asked == pytest.approx([2.0 * bound])


def test_without_a_bound_vectors_have_length_one():
    sums, _ = sums_of(access("look", 2.0))
    assert torch.allclose(sums.release(Itself(), shape=(1, 3)), torch.tensor([[1.2, 0.5, 0.8]]), atol=1e-3)


def test_releases_are_paid_one_after_the_other():
    one, other = access("one", 2.0, steps=2), access("other", 3.0)
    sums, noise = sums_of(one, other, most=2)
    assert (sums.releases, sums.taken, sums.next) == (3, 0, one)
    assert sums.deviations == pytest.approx((4.0, 4.0, 6.0))  # of a unit with two records
    for number, pays in enumerate((one, one, other)):
        assert (sums.taken, sums.next) == (number, pays)
        sums.release(Itself(), shape=(1, 3))
    assert noise.asked == pytest.approx([4.0, 4.0, 6.0])
    with pytest.raises(SettingError, match="have been taken"):
        sums.next  # noqa: B018
    assert sums_of(one, other, taken=2)[0].next == other


def test_without_an_accountant_nothing_is_estimated_or_kept():
    sums, _ = sums_of(access("look", 2.0))
    sums.release(Itself(), shape=(1, 3))
    assert sums.estimate is None
    assert sums.state() == {}
    sums.restore(measured_state())
    assert sums.state() == {}


def measured_state():
    sums, _ = sums_of(access("look", 2.0, steps=4), distances=DISTANCES)
    sums.release(Itself(), shape=(1, 3))
    return sums.state()


def test_an_estimate_goes_on_where_it_was():
    whole, _ = sums_of(access("look", 2.0, steps=4), distances=DISTANCES)
    for _ in range(2):
        whole.release(Itself(), shape=(1, 3))
    kept = measured_state()
    assert all(isinstance(value, torch.Tensor) for value in kept.values())
    resumed, _ = sums_of(access("look", 2.0, steps=4), distances=DISTANCES, taken=1)
    resumed.restore({**kept, "weights": torch.zeros(2)})
    resumed.release(Itself(), shape=(1, 3))
    assert resumed.estimate.costs == pytest.approx(whole.estimate.costs)
    assert (resumed.estimate.calls, resumed.estimate.steps_taken) == (2, 2)


def test_steps_of_which_nothing_is_kept_count_as_lost():
    resumed, _ = sums_of(access("look", 2.0, steps=4), distances=DISTANCES, taken=1)
    resumed.restore({"weights": torch.zeros(2)})
    assert (resumed.estimate.calls, resumed.estimate.steps_taken) == (0, 1)
    whole, _ = sums_of(access("look", 2.0, steps=4), distances=DISTANCES)
    whole.release(Itself(), shape=(1, 3))
    assert (resumed.estimate.costs >= whole.estimate.costs * (1 - 1e-9)).all()


def test_distances_are_of_one_gaussian_access():
    with pytest.raises(TypeError, match="no GaussianEvent"):
        sums_of(Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0)), distances=DISTANCES)
