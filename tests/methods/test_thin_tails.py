"""Rows that lie thinly over decades of wide bounds are found again, and noise does not fill the bounds' far end."""

from __future__ import annotations

import numpy as np
import pytest

from doublure.methods.statistics.tables import finding
from doublure.methods.statistics.tables.leaves import ColumnLeaves
from doublure.methods.statistics.tables.nodes import Node
from doublure.methods.statistics.tables.tails import BlankRun
from doublure.schema.columns import NumberDomain

ROWS, CENTS, LAST = 20_000, 100, 10**8
CELL_NOISE, PART_NOISE, GROUP_NOISE = 73.0, 61.0, 55.0
"""As a table of 33 columns has them at ε = 1."""


def dollars(rng: np.random.Generator, *, above: float, centre: float, spread: float) -> np.ndarray:
    """Return cents of which most are zero and the rest log-normal."""
    values = np.where(rng.random(ROWS) < above, np.exp(rng.normal(centre, spread, ROWS)), 0.0)
    return np.round(np.minimum(values * CENTS, LAST)).astype(np.int64)


def read(values: np.ndarray, rng: np.random.Generator, last: int = LAST, *, nullable: bool = False) -> Node:
    """Return the column as it is looked for and then counted; ``last + 1`` is missing."""
    domain = NumberDomain(first=0, last=last, nullable=nullable)
    leaves = ColumnLeaves.of(domain, 0, domain.initial_partition())
    seen = leaves.axis(np.arange(leaves.size))
    leaves.mass = counted(seen, values, rng, CELL_NOISE)
    opened = finding.full_cells(leaves, CELL_NOISE)
    parts = counted(opened.axis(leaves), values, rng, PART_NOISE)
    finding.take_values(leaves, opened, parts, CELL_NOISE, PART_NOISE)
    leaves.mark_empty()
    node = Node(leaves=leaves, variance=GROUP_NOISE**2)
    node.join(most=36, noise=GROUP_NOISE, pair_noise=2 * GROUP_NOISE)
    node.counts = counted(node.axis(node.own), values, rng, GROUP_NOISE)
    node.take_counts(float(len(values)), most=16, pair_noise=2 * GROUP_NOISE)
    return node


def counted(axis, values: np.ndarray, rng: np.random.Generator, noise: float) -> np.ndarray:
    cells = np.asarray(axis.cells)[np.searchsorted(axis.starts, values, "right") - 1]
    return np.bincount(cells, minlength=axis.size) + noise * rng.standard_normal(axis.size)


def middle(node: Node) -> float:
    """Return the median of what is above zero."""
    mass = node.leaves.mass[1 : len(node.leaves.starts)]
    return float(node.leaves.starts[1:][np.searchsorted(np.cumsum(mass), mass.sum() / 2)])


def mean(node: Node) -> float:
    leaves, count = node.leaves, len(node.leaves.starts)
    return float(((leaves.starts + leaves.ends) / 2 * leaves.mass[:count]).sum() / leaves.mass[:count].sum())


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(("above", "centre", "spread"), [(0.08, 6.0, 1.5), (0.04, 4.0, 1.0), (0.02, 1.0, 0.7)])
def test_a_thin_tail_lies_where_its_rows_are(above, centre, spread, nullable):
    """No public cell of it is clear: where it lay next to zero, its median was a few cents."""
    far = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values = dollars(rng, above=above, centre=centre, spread=spread)
        values = np.append(values, np.full(3000 * nullable, LAST + 1))
        node = read(values, rng, nullable=nullable)
        real = values[(values > 0) & (values <= LAST)]
        assert node.leaves.mass.sum() == pytest.approx(len(values))
        assert node.leaves.mass[1 : len(node.leaves.starts)].sum() == pytest.approx(len(real), abs=400)
        far.append(abs(np.log(middle(node) / np.median(real))))
    assert np.median(far) < np.log(1.6)
    assert max(far) < np.log(6)


@pytest.mark.parametrize("last", [LAST, 100 * LAST])
def test_noise_does_not_fill_the_far_end(last):
    """A handful of rows of noise near a bound of millions is more than all that is real."""
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = dollars(rng, above=0.75, centre=3.5, spread=1.3)
        ratios.append(mean(read(values, rng, last)) / values.mean())
    assert np.median(ratios) == pytest.approx(1, abs=0.15)
    assert np.quantile(ratios, 0.8) < 1.5


def test_a_tail_of_a_few_rows_stays_near():
    """Where nothing is counted, what little there may be lies next to what was seen."""
    means = [mean(read(np.zeros(ROWS, dtype=np.int64), np.random.default_rng(seed))) for seed in range(12)]
    assert np.median(means) < 0.1 * CENTS


@pytest.mark.parametrize(("last", "most"), [(2 * 10**6, 0.25), (2 * 10**8, 0.45)])
def test_a_tail_goes_on_as_rows_decrease_towards_it(last, most):
    """Noise far beyond the last clear rows made the mean nine times what it is, where bounds are wide."""
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = np.where(rng.random(ROWS) < 0.2, 0, np.exp(rng.normal(7.6, 1.45, ROWS))).astype(np.int64)
        ratios.append(mean(read(np.minimum(values, last), rng, last)) / values.mean())
    assert np.median(ratios) == pytest.approx(1, abs=0.15)
    assert np.sqrt(np.mean((np.array(ratios) - 1) ** 2)) < most


def test_values_that_nobody_has_stay_rare():
    """Of 0 to 20 children, 6 to 20 are noise alone: their sum was one row in a hundred."""
    domain = NumberDomain(first=0, last=20, nullable=False)
    beyond, apart = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = np.minimum(rng.poisson(0.6, ROWS), 5)
        node = Node(leaves=ColumnLeaves.of(domain, 0, np.arange(21)), variance=GROUP_NOISE**2)
        node.join(most=36, noise=GROUP_NOISE, pair_noise=2 * GROUP_NOISE)
        node.counts = counted(node.axis(node.own), values, rng, GROUP_NOISE)
        node.take_counts(float(ROWS), most=16, pair_noise=2 * GROUP_NOISE)
        beyond.append(node.leaves.mass[6:].sum())
        apart.append(mean(node) / values.mean() - 1)
    assert np.mean(beyond) < 0.001 * ROWS
    assert np.abs(apart).max() < 0.06


def test_what_is_expected_of_a_tail_gives_way_to_its_counts():
    """A third of what is expected, or much more: as many as are counted, in the same places or where they are."""
    tail = BlankRun(groups=np.arange(4), expected=np.array([60.0, 20, 5, 1]), before=True, after=False)
    assert tail.held(np.array([20.0, 7, 2, 0]), 29.0, 5.0) == pytest.approx(tail.expected * 29 / 86)
    held = tail.held(np.array([60.0, 20, 405, 1]), 486.0, 20.0)
    assert held[2] > 400
    assert held.sum() == pytest.approx(486)


def test_what_blocks_hold_lies_where_their_counts_are():
    """Three blocks of 150 among noise of 55, neither of them clear."""
    counts = np.array([0.0, 20, -30, 150, 140, 160, -40, 10])
    share = BlankRun(groups=np.arange(8), expected=np.zeros(8), before=True, after=False).shares(counts, 450.0, 55.0)
    assert share.sum() == pytest.approx(1)
    assert share[3:6].sum() > 0.9


@pytest.mark.parametrize(("before", "after", "order"), [(True, False, -1), (False, True, 1), (True, True, 0)])
def test_without_rows_nearer_is_likelier(before, after, order):
    share = BlankRun(groups=np.arange(6), expected=np.zeros(6), before=before, after=after).shares(
        np.zeros(6), 0.0, 55.0
    )
    assert (np.sign(np.round(np.diff(share), 9)) == order).all() or (order == 0 and share == pytest.approx(share[::-1]))


def test_regions_are_blocks_of_cells():
    """Beyond what was seen and in long gaps, six public cells a block; short gaps belong to what is around them."""
    domain = NumberDomain(first=0, last=99, nullable=False)
    leaves = ColumnLeaves.of(domain, 0, np.arange(100))
    leaves.mass[[30, 34, 60]] = 50.0
    leaves.mark_empty()
    below, gap, above = leaves.empty[:30], leaves.empty[35:60], leaves.empty[61:]
    assert np.bincount(below)[1:].tolist() == [6] * 5
    assert leaves.empty[30:35].tolist() == [0] * 5
    assert np.bincount(gap)[6:].tolist() == [6, 6, 6, 6, 1]
    assert np.bincount(above)[11:].tolist() == [6, 6, 6, 6, 6, 6, 3]
