"""A number's distribution follows from all its noisy counts, and falls back to a smooth, ever thinner curve."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tiers import crossed, exhaustive

from doublure.methods.statistics.tables.cut_cells import CutCells
from doublure.methods.statistics.tables.leaves import ColumnLeaves
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.posterior import ColumnPosterior
from doublure.private.queries.axes import Intervals, Lattices
from doublure.schema.columns import NumberDomain
from doublure.support import lattices

NOISES = {"cells": 35.0, "lattices": 45.0, "parts": 38.0, "repeated": 65.0, "groups": 37.0}
"""As a table of five numbers and 8,000 rows has them at ε = 1."""


def counted(axis: Intervals | Lattices, values: np.ndarray, rng: np.random.Generator, noise: float) -> NoisyCounts:
    counts = np.bincount(axis.of(values[:, None].astype(np.float64)), minlength=axis.size)
    return NoisyCounts(counts=counts + noise * rng.standard_normal(axis.size), variance=noise**2)


def located(node: Node, values: np.ndarray, rng: np.random.Generator, noise: float) -> tuple[NoisyCounts, NoisyCounts]:
    """Return counts of cells and of runs of them, at two thirds and a third of the precision of ``noise``."""
    cells = counted(node.leaves.axis(np.arange(node.leaves.size)), values, rng, math.sqrt(3 / 2) * noise)
    return cells, counted(node.leaves.axis(node.runs()), values, rng, math.sqrt(3) * noise)


def read(values: np.ndarray, first: int, last: int, *, seed: int, nullable: bool = False, times: float = 1.0) -> Node:
    """Return the column as it is looked for, then counted in groups; ``last + 1`` is missing."""
    rng, noise = np.random.default_rng(seed), {name: times * own for name, own in NOISES.items()}
    domain = NumberDomain(first=first, last=last, nullable=nullable)
    node = Node(leaves=ColumnLeaves.of(domain, 0, domain.initial_partition()))
    cells, runs = located(node, values, rng, noise["cells"])
    steps = domain.nested_steps()
    on = counted(Lattices(part=0, steps=steps, mark=last + 1.0 if nullable else None), values, rng, noise["lattices"])
    full = CutCells.of_full(node.leaves, cells.counts[: len(node.leaves.starts)], math.sqrt(cells.variance))
    seen = [(full, counted(full.axis(node.leaves), values, rng, noise["parts"]))]
    node.locate(seen, cells, runs, on)
    again = CutCells.evenly(node.leaves, node.posterior.standing_out(noise["parts"]))
    if len(again.starts):
        seen.append((again, counted(again.axis(node.leaves), values, rng, noise["repeated"])))
        node.locate(seen, cells, runs, on)
    most = int(np.clip(len(values) / (12 * noise["groups"]), 10, 36))
    node.join(most=most, noise=noise["groups"], pair_noise=2 * noise["groups"])
    groups = counted(node.leaves.axis(node.own), values, rng, noise["groups"])
    node.counts, node.variance = groups.counts, groups.variance
    node.take_counts(float(len(values)), most=16, pair_noise=2 * noise["groups"])
    return node


def drawn(node: Node, seed: int = 0, size: int = 40_000) -> np.ndarray:
    """Return present values of a column, as the generator draws them."""
    rng, leaves = np.random.default_rng(seed), node.leaves
    mass = leaves.mass[: len(leaves.starts)]
    at = rng.choice(len(mass), size, p=mass / mass.sum())
    steps = leaves.domain.nested_steps()
    weights = lattices.members(leaves.starts[at], leaves.ends[at], steps) * leaves.pulls
    own = (rng.random((size, 1)) * weights.sum(1, keepdims=True) >= np.cumsum(weights, axis=1)).sum(1)
    return lattices.draw(leaves.starts[at], leaves.ends[at], own, steps, rng.random(size))


def poisson(rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(3, 8000)


def normal(rng: np.random.Generator) -> np.ndarray:
    return np.rint(rng.normal(50, 10, 8000)).clip(0).astype(np.int64)


@pytest.mark.parametrize(
    ("first", "last", "make"),
    [
        (0, 63_071_999, lambda rng: 63_071_999 * (1 - np.sqrt(rng.random(1000)))),  # seconds between two of two years
        (0, 10**8, lambda rng: np.exp(rng.normal(9, 1.5, 1000))),
        (-(10**6), 10**6, lambda rng: rng.normal(2000, 900, 1000)),
    ],
)
def test_few_rows_in_wide_bounds_are_found_wherever_they_are(first, last, make):
    """A thousand rows, counts of cells with a noise of a hundred: at the same budget runs find them, cells do not."""
    apart = {True: [], False: []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = make(rng).astype(np.int64).clip(first, last)
        domain = NumberDomain(first=first, last=last, nullable=False)
        for both in apart:
            node = Node(leaves=ColumnLeaves.of(domain, 0, domain.initial_partition()))
            cells, runs = located(node, values, rng, 100.0)
            if not both:
                cells, runs = counted(node.leaves.axis(np.arange(node.leaves.size)), values, rng, 100.0), None
            node.locate([], cells, runs, None)
            found = np.cumsum(node.leaves.mass) / node.leaves.mass.sum()
            apart[both].append(np.abs(found - np.searchsorted(np.sort(values), node.leaves.ends, "right") / 1000).max())
    assert np.mean(apart[True]) < 0.75 * np.mean(apart[False])


@pytest.mark.parametrize(("make", "times"), crossed([poisson, normal], [20, 1000]))
def test_bounds_that_are_far_too_wide_cost_nothing(make, times):
    """Mean within 3 %, deviation within 5 %, and no row far beyond the largest (``c16_tails``)."""
    found = []
    for seed in range(4):
        values = make(np.random.default_rng(seed))
        made = drawn(read(values, 0, times * 10 if make is poisson else times * 100, seed=seed))
        found.append(
            (made.mean() / values.mean() - 1, made.std() / values.std() - 1, (made > 1.5 * values.max()).mean())
        )
    mean, deviation, beyond = np.abs(found).T
    assert np.median(mean) < 0.03
    assert np.median(deviation) < 0.05
    assert beyond.max() < 0.001


def test_both_sides_of_zero_keep_their_rows():
    """Cells are finest at zero, so that a cell's rows rise on either side of it where values are even."""
    shares = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        even = read(np.linspace(-295, 295, 60).round().astype(np.int64), -500, 500, seed=seed, times=0.06)
        warm = read(np.rint(rng.normal(100, 90, 8000)).astype(np.int64), -600, 600, seed=seed)
        losses = np.where(rng.random(8000) < 0.05, -rng.lognormal(4, 1, 8000), rng.lognormal(6, 1, 8000))
        few = read(np.rint(losses).astype(np.int64), -100_000, 100_000, seed=seed, times=0.3)
        shares.append([(drawn(node) < 0).mean() for node in (even, warm, few)])
    even, warm, few = np.median(shares, axis=0)
    assert even == pytest.approx(0.5, abs=0.1)
    assert np.abs(np.array(shares)[:, 0] - 0.5).max() < 0.2
    assert warm == pytest.approx(0.133, abs=0.03)
    assert few == pytest.approx(0.05, abs=0.02)


def test_few_rows_do_not_reach_the_bounds():
    """1,000 rows of a Poisson number in [0, 365]: 12 of 60,000 rows were at 365, and twice the deviation."""
    found = []
    for seed in range(3):
        values = np.random.default_rng(seed).poisson(3, 1000)
        made = drawn(read(values, 0, 365, seed=seed))
        found.append((made.std() / values.std(), (made > 1.5 * values.max()).mean()))
    deviation, beyond = np.array(found).T
    assert 0.8 < np.median(deviation) < 1.2
    assert beyond.max() < 0.001


@pytest.mark.parametrize(("times", "share"), crossed([1, 100, 10_000], [0.05, 0.15, 0.5]))
def test_a_number_that_is_mostly_missing_stays_where_its_rows_are(share, times):
    """No cell of it may be clear: it came back evenly over its declared bounds, with forty times its mean."""
    found = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        last = 300_000 * times
        values = np.rint(rng.lognormal(11.6, 0.5, 7500)).clip(0, 300_000).astype(np.int64)
        node = read(np.where(rng.random(7500) < share, values, last + 1), 0, last, seed=seed, nullable=True)
        found.append(drawn(node).mean() / values.mean())
        assert abs(node.leaves.mass[-1] / 7500 - (1 - share)) < 0.02
    assert 0.5 < np.median(found) < (4.0 if share == 0.05 else 2.0)  # 375 rows under a noise of 37 a count


def test_round_values_are_seen_together():
    """No single multiple of 500 stands out of its noise; all of them do."""
    rng = np.random.default_rng(0)
    values = np.rint(rng.lognormal(9, 0.8, 8000)).astype(np.int64)
    values = np.where(rng.random(8000) < 0.9, values // 500 * 500, values)
    made = drawn(read(values, 0, 10**6, seed=1, times=2.0))
    assert (made % 500 == 0).mean() == pytest.approx((values % 500 == 0).mean(), abs=0.08)


def test_a_value_that_repeats_is_found_though_it_is_not_round():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(8000) < 0.4, 249_347, rng.integers(100_000, 400_000, 8000))
    made = drawn(read(values, 0, 6 * 10**6, seed=1))
    assert (np.abs(made - 249_347) < 100).mean() == pytest.approx(0.4, abs=0.05)


def test_a_top_code_stays_apart():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(8000) < 0.1, 99_999, rng.poisson(300, 8000))
    made = drawn(read(values, 0, 100_000, seed=1))
    assert (made == 99_999).mean() == pytest.approx(0.1, abs=0.02)
    assert np.isin(made, np.arange(400, 99_000)).mean() < 0.02


def posterior(values: np.ndarray, last: int, *, seed: int, noise: float = 20.0) -> ColumnPosterior:
    """Return a column that is counted in its public cells, in four ranges, and on lattices."""
    rng, domain = np.random.default_rng(seed), NumberDomain(first=0, last=last, nullable=False)
    starts = domain.initial_partition()
    found = ColumnPosterior(domain, starts)
    cells = Intervals(part=0, starts=starts.astype(np.float64), cells=np.arange(len(starts)), size=len(starts))
    found.see_cells(counted(cells, values, rng, noise).counts, noise**2)
    found.see_lattices(counted(Lattices(part=0, steps=found.steps), values, rng, noise).counts, noise**2)
    first = np.arange(0, len(starts), len(starts) // 4)[:4]
    groups = np.searchsorted(first, np.arange(len(starts)), side="right") - 1
    axis = Intervals(part=0, starts=starts.astype(np.float64), cells=groups, size=4)
    found.see_ranges(
        starts[first], np.append(starts[first[1:]] - 1, last), counted(axis, values, rng, noise).counts, 400.0
    )
    return found


def test_the_gradient_is_the_loss_s():
    """A step's slope along itself agrees with the loss's differences."""
    found = posterior(np.random.default_rng(0).poisson(40, 3000), 5000, seed=0)
    found._begin()
    density, own, pull = found._unknown
    rng = np.random.default_rng(1)
    point = found._point(
        density, own + 0.3 * rng.standard_normal(len(own)), pull + 0.2 * rng.standard_normal(len(pull))
    )
    (up, aside, towards), slope = found._step(point, 1e-3)
    tiny = 1e-6
    ahead, behind = (
        found._point(point.density + way * up, point.own + way * aside, point.pull + way * towards).loss
        for way in (tiny, -tiny)
    )
    assert slope < 0
    assert (ahead - behind) / (2 * tiny) == pytest.approx(slope, rel=1e-4)


def test_without_noise_counts_are_what_they_are():
    values = np.random.default_rng(0).poisson(40, 3000)
    found = posterior(values, 100, seed=0, noise=0.5)
    found.fit()
    assert np.abs(found.mass - np.bincount(values, minlength=101)[: len(found.mass)]).max() < 5


def test_variances_say_how_far_groups_are_off():
    """Over repeated counts, squared errors are what the posterior says, within a factor of two."""
    values, last = np.random.default_rng(0).poisson(40, 3000), 5000
    starts = NumberDomain(first=0, last=last, nullable=False).initial_partition()
    edges = starts[np.searchsorted(starts, [30, 36, 40, 44, 50])]
    groups = np.searchsorted(edges, starts, side="right")
    truth = np.bincount(np.searchsorted(edges, values, side="right"), minlength=6)
    errors, said = [], []
    for seed in range(12):
        found = posterior(values, last, seed=seed)
        found.fit()
        errors.append((np.bincount(groups, found.mass, 6) - truth) ** 2)
        said.append(found.variances(groups))
    ratio = np.mean(errors, axis=0)[:5] / np.mean(said, axis=0)[:5]
    assert 0.4 < np.exp(np.log(ratio).mean()) < 2.5
    assert (np.mean(said, axis=0)[:5] < 20.0**2 * 6).all()


def test_without_evidence_a_column_is_the_mean_of_simple_curves():
    """313 rows under a noise of 80 a count: single curves that fit noise best put all rows at one end or the other."""
    values = np.rint(np.random.default_rng(0).normal(252, 95, 313)).clip(1, 2000).astype(np.int64)
    made = [drawn(read(values, 0, 2000, seed=seed, times=2.2), size=20_000) for seed in range(5)]
    shares = np.array([[(own < 30).mean(), (own > 1500).mean()] for own in made])
    assert shares.max() < 0.75
    assert 0.3 < np.mean([own.mean() for own in made]) / values.mean() < 3


def toll(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.full(size, 576)


def fee(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.full(size, 35)


def gain(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.where(rng.random(size) < 0.4, 15_024, np.rint(rng.lognormal(8.3, 0.9, size)).clip(1, 99_999))


def fine(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.choice([-4000, -6500], size, p=[0.7, 0.3])


def factors(make, first: int, last: int, share: float, *, noise: float = 1.0, seeds: int = 3) -> list[float]:
    """Return the decimal logarithms of a mean's ratio to the real one, of a number that is mostly zero."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        values = np.where(rng.random(5000) < share, make(rng, 5000), 0).astype(np.int64)
        leaves = read(values, first, last, seed=seed, times=noise).leaves
        mean = leaves.mass @ ((leaves.starts + leaves.ends) / 2) / leaves.mass.sum()
        found.append(np.log10(mean / values.mean()))
    return found


KINDS = [(toll, 0, 10_000), (fee, 0, 500), (gain, 0, 100_000), (fine, -20_000, 0)]


@pytest.mark.parametrize(("times", "kind"), crossed([1, 100, 10_000], KINDS))
def test_few_values_beside_zero_keep_their_size(times, kind):
    """Rows of which counts say only that they are not zero were all drawn next to it: the mean was 200 times less."""
    make, first, last = kind
    assert np.abs(factors(make, first * times, last * times, 0.15)).max() < np.log10(2)
    assert np.abs(factors(make, first * times, last * times, 0.05)).max() < np.log10(3)
    assert abs(np.median(factors(make, first * times, last * times, 0.15, noise=2.0))) < np.log10(2)


@pytest.mark.parametrize("times", [10_000, pytest.param(1, marks=exhaustive), pytest.param(100, marks=exhaustive)])
def test_one_amount_is_found_under_twice_the_noise(times):
    """A taxi's toll, 250 of 5,000 rows under a noise of 74 a count."""
    assert abs(np.median(factors(toll, 0, 10_000 * times, 0.05, noise=2.0, seeds=5))) < np.log10(2)
    assert abs(np.median(factors(fee, 0, 500 * times, 0.05, noise=2.0, seeds=5))) < np.log10(3)


def test_where_noise_hides_the_values_their_size_is_off_to_neither_side():
    """50 rows under a noise of 37 a count: the factor is 1 in the middle of such columns, where it was 1/100."""
    found = [factors(make, first, last, 0.01, seeds=2) for make, first, last in KINDS for times in (1, 100, 10_000)]
    assert abs(np.mean(found)) < 1.0
