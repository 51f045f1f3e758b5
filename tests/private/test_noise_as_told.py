"""Noise of every kind of event, as :meth:`Mechanism.release` gives it out, is scaled as the event says.

What ran is measured by what a source of noise says of itself, so a source that draws less than it says would pass every
comparison with the plan. Here the noise itself is measured: its scale, from as many draws as tell one that is off by
2 %. A false alarm has a chance of one in a million, and such a fault one of 10⁻⁵ of passing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from planting import plant
from scipy import stats

from doublure.access import Access
from doublure.private import noise as sources
from doublure.private import whole_noise
from doublure.private.accounting import ApproximateEvent, DiscreteGaussianEvent, GaussianEvent, PureEvent
from doublure.private.executed import as_priced
from doublure.private.mechanism import Mechanism
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries.query import Answer, Sensitivity

ALPHA, MISSED = 1e-6, 1e-5
OFF = 0.02
FAR = stats.norm.isf(ALPHA / 2) + stats.norm.isf(MISSED)


@dataclass(frozen=True)
class Kind:
    """One way to add noise.

    Attributes:
        event: What pays for it.
        moved: How far a unit moves the answer.
        spread: The noise's standard deviation, or the mean of a Laplacian's distance from zero.
        power: Of the distance from zero that is averaged: 2 of normals, 1 of Laplacians. Of n independent draws the
            mean over its expectation has the variance 2/n of a chi-square, or 1/n of an exponential law.
        unit: Of the answer, where it is a sum in whole numbers.
        total: What is noised: one number, many times.
        named: Whether the answer is counts by name.
    """

    event: GaussianEvent | DiscreteGaussianEvent | PureEvent | ApproximateEvent
    moved: Sensitivity
    spread: float
    power: int
    total: float | int = 40
    unit: float | None = None
    named: bool = False

    def draws(self, off: float) -> int:
        """Return how many draws tell a scale that is off by a share from one that is not."""
        return round(self.power * (FAR / abs((1 - off) ** self.power - 1)) ** 2)

    def answer(self, size: int) -> Answer:
        """Return the answer that is noised."""
        whole = self.unit is not None or not isinstance(self.event, GaussianEvent)
        total = np.full(size, self.total, dtype=np.int64 if whole else np.float32)
        totals = {str(place): int(count) for place, count in enumerate(total)} if self.named else total
        return Answer(total=totals, sensitivity=self.moved, unit=self.unit)


def mean_distance(scale):
    """Return E|X| of the discrete Laplace law."""
    a = np.exp(-1 / scale)
    return 2 * a / (1 - a * a)


SUMS = {"event": GaussianEvent(noise_multiplier=2.0), "moved": Sensitivity.of_length(1.5, 4), "spread": 3.0, "power": 2}
COUNTS = Sensitivity.of_cells(1, 3)
KINDS = {
    "sums in whole numbers": Kind(**SUMS, unit=2.0**-20),
    "real sums": Kind(**SUMS),
    "counts": Kind(event=DiscreteGaussianEvent(scale=8.0, tables=4, records=2), moved=Sensitivity.of_cells(4, 2),
                   spread=8.0, power=2),
    "one count": Kind(event=PureEvent(epsilon=0.5), moved=COUNTS, spread=mean_distance(3 / 0.5), power=1),
    "counts by name": Kind(event=ApproximateEvent(epsilon=0.5, delta=1e-6), moved=COUNTS, named=True,
                           spread=mean_distance(3 / 0.5), power=1, total=10_000),
}  # fmt: skip


class Fixed:
    """A query whose answer is known."""

    def __init__(self, answer):
        self.sensitivity, self._answer = answer.sensitivity, answer

    def refuse_unfit(self, records):
        """Take any."""

    def answer(self, records, *, sample_rate):
        """Return it."""
        return self._answer


def drawn(kind, off):
    """Return the noise that a release adds, in as many draws as tell such a fault."""
    size, access = kind.draws(off), Access(purpose="audit", event=kind.event)
    mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda *_: None)
    noisy = mechanism.release(Fixed(kind.answer(size)), access, None)
    assert as_priced(mechanism.executed.to_json())  # by what the source says of itself
    if kind.named:
        assert len(noisy) == size  # all of them are far above the threshold
        noisy = list(noisy.values())
    return np.asarray(noisy, dtype=np.float64) - kind.total * (kind.unit or 1)


def p_of(kind, noise):
    """Return how likely noise of the right scale is to be so far from it."""
    found = np.mean(np.abs(noise / kind.spread) ** kind.power)
    return 2 * stats.norm.sf(abs(found - 1) * np.sqrt(len(noise) / kind.power))


@pytest.mark.parametrize("name", KINDS)
def test_noise_is_scaled_as_its_event_says(name):
    noise = drawn(KINDS[name], OFF)
    assert p_of(KINDS[name], noise) > ALPHA
    assert abs(noise.mean()) < stats.norm.isf(ALPHA / 2) * noise.std() / np.sqrt(len(noise))


MUTANTS = {
    "sums in whole numbers": (sources, "_in_steps", ("rounded_normals(size, scale)",
                              "rounded_normals(size, {} * scale)")),
    "real sums": (sources, "_scaled", ("np.float32(std)", "np.float32({} * std)")),
    "counts": (whole_noise, "gaussian", ("discrete_normals(exact.size, used)",
               "discrete_normals(exact.size, {} * used)")),
    "one count": (whole_noise, "laplace", ("measurement(whole(counts).tolist())",
                  "_laplace(epsilon / {}, moved)(whole(counts).tolist())")),
    "counts by name": (whole_noise, "thresholded", ("make_laplace_threshold(*space, scale, high + 1)",
                       "make_laplace_threshold(*space, {} * scale, high + 1)")),
}  # fmt: skip
SLOW = ("one count", "counts by name")  # ten microseconds a draw: a greater fault is planted


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("more", [False, True], ids=["less", "more"])
def test_a_source_that_says_another_scale_than_it_draws_is_caught(monkeypatch, name, more):
    off = (5 if name in SLOW else 1) * OFF
    owner, function, (old, new) = MUTANTS[name]
    plant(monkeypatch, owner, function, (old, new.format(1 + off if more else 1 - off)))
    assert p_of(KINDS[name], drawn(KINDS[name], off)) < ALPHA


WEAKENED = {
    "sums in whole numbers": ("whole_noise.whole(total) + whole.values",
                              "whole_noise.whole(total) + np.rint(0.7 * whole.values).astype(np.int64)"),
    "real sums": ("_sum(total, real.values)", "_sum(total, 0.7 * real.values)"),
    "counts": ("whole_noise.gaussian(total, scale=event.scale)",
               "(lambda drawn: drawn._replace(values=total + np.rint(0.7 * (drawn.values - total)).astype(np.int64)))"
               "(whole_noise.gaussian(total, scale=event.scale))"),
}  # fmt: skip


@pytest.mark.parametrize("name", WEAKENED)
def test_a_mechanism_that_adds_a_part_of_what_was_drawn_is_caught(monkeypatch, name):
    plant(monkeypatch, Mechanism, "_noised", WEAKENED[name])
    assert p_of(KINDS[name], drawn(KINDS[name], 0.2)) < ALPHA


def test_as_many_draws_are_made_as_tell_the_fault():
    """What is said of chances is true: of draws that are known to be off, and of draws that are not."""
    for power in (1, 2):
        kind, draw = Kind(event=PureEvent(epsilon=1.0), moved=COUNTS, spread=1.0, power=power), np.random.default_rng(0)
        size = kind.draws(0.2)
        law = draw.normal if power == 2 else draw.laplace
        found = (np.abs(law(size=(400, size))) ** power).mean(axis=1)
        z = stats.norm.isf(ALPHA / 2)
        assert (np.abs(found - 1) * np.sqrt(size / power) < z).all()
        assert (np.abs(0.8**power * found - 1) * np.sqrt(size / power) > z).all()
