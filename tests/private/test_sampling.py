"""Lots are Poisson: every assertion at alpha = 1e-6, and each statistic is shown to catch a wrong sampler."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from doublure.errors import SettingError
from doublure.private.sampling import FixedSizeSampler, PoissonSampler

ALPHA = 1e-6
UNITS, RATE, LOTS = 20, 0.2, 20_000


def indicators(sampler, lots=LOTS, units=UNITS):
    """One row a lot, one column a unit."""
    rows = np.zeros((lots, units), dtype=np.int64)
    for row in rows:
        row[sampler.lot()] += 1
    return rows


def two_sided(cdf):
    return 2 * min(cdf, 1 - cdf)


def inclusion_p(rows):
    lots, units = rows.shape
    statistic = ((rows.sum(0) - lots * RATE) ** 2).sum() / (lots * RATE * (1 - RATE))
    return two_sided(stats.chi2.cdf(statistic, units))


def lot_size_p(rows):
    """The variance of the lot's size is n q (1 − q); shuffling or a fixed size makes it nought."""
    lots, units = rows.shape
    sizes = rows.sum(1)
    variance = units * RATE * (1 - RATE)
    fourth = variance * (1 + (3 * units - 6) * RATE * (1 - RATE))
    deviation = np.sqrt((fourth - variance**2) / lots)
    return 2 * stats.norm.sf(abs(((sizes - units * RATE) ** 2).mean() - variance) / deviation)


def pairs_p(rows):
    """Neighbouring units meet in q² of all lots."""
    lots, units = rows.shape
    together = np.array([(rows[:, i] * rows[:, i + 1]).sum() for i in range(0, units, 2)])
    statistic = ((together - lots * RATE**2) ** 2).sum() / (lots * RATE**2 * (1 - RATE**2))
    return two_sided(stats.chi2.cdf(statistic, units // 2))


def successive_p(rows):
    """A unit's place in one lot says nothing about the next."""
    again = sum((one * two).sum() for one, two in pairwise(rows))
    trials = (len(rows) - 1) * rows.shape[1]
    return stats.binomtest(int(again), trials, RATE**2).pvalue


class Shuffled:
    """The usual data loader: an epoch is a permutation, cut into equal lots."""

    def __init__(self):
        self.generator, self.left = np.random.default_rng(1), []

    def lot(self):
        if not self.left:
            self.left = list(self.generator.permutation(UNITS).reshape(-1, int(UNITS * RATE)))
        return self.left.pop()


class Blocks:
    """Poisson over pairs of neighbours: right inclusion counts, dependent units."""

    def __init__(self):
        self.generator = np.random.default_rng(2)

    def lot(self):
        chosen = np.flatnonzero(self.generator.random(UNITS // 2) < RATE)
        return np.concatenate([2 * chosen, 2 * chosen + 1])


class Reused:
    """Each lot is used twice."""

    def __init__(self):
        self.sampler, self.last = PoissonSampler(UNITS, RATE), None

    def lot(self):
        self.last, lot = (self.sampler.lot(), self.last) if self.last is None else (None, self.last)
        return self.last if lot is None else lot


@pytest.fixture(scope="module")
def poisson():
    return indicators(PoissonSampler(UNITS, RATE))


@pytest.mark.parametrize("p_value", [inclusion_p, lot_size_p, pairs_p, successive_p])
def test_lots_are_poisson(poisson, p_value):
    assert p_value(poisson) > ALPHA


@pytest.mark.parametrize(
    ("mutant", "p_value"),
    [
        (Shuffled, inclusion_p),
        (Shuffled, lot_size_p),
        (Shuffled, successive_p),
        (Blocks, pairs_p),
        (Blocks, lot_size_p),
        (Reused, successive_p),
        (lambda: PoissonSampler(UNITS, RATE * 1.1), inclusion_p),
        (lambda: FixedSizeSampler(UNITS, int(UNITS * RATE)), lot_size_p),
    ],
)
def test_wrong_samplers_are_caught(mutant, p_value):
    assert p_value(indicators(mutant())) < ALPHA


def test_the_sparse_branch_is_poisson_too():
    """Above 10,000 units numpy draws a set in another way."""
    units, rate, lots = 20_000, 0.005, 2_000
    sampler = PoissonSampler(units, rate)
    drawn = [sampler.lot() for _ in range(lots)]
    tenths = np.bincount(np.concatenate(drawn) // (units // 10), minlength=10)
    deviation = np.sqrt(lots * units / 10 * rate * (1 - rate))
    assert two_sided(stats.chi2.cdf((((tenths - lots * units / 10 * rate) / deviation) ** 2).sum(), 10)) > ALPHA
    spread = np.var([len(lot) for lot in drawn]) / (units * rate * (1 - rate))
    assert two_sided(stats.chi2.cdf(spread * lots, lots - 1)) > ALPHA
    assert all((np.diff(lot) > 0).all() for lot in drawn)


def test_empty_lots_happen():
    empty = sum(PoissonSampler(3, 0.5).lot().size == 0 for _ in range(2000))
    assert stats.binomtest(empty, 2000, 0.125).pvalue > ALPHA


def test_no_unit_means_empty_lots():
    lot = PoissonSampler(0, 0.5).lot()
    assert lot.shape == (0,)
    assert lot.dtype == np.int64


def test_one_unit_is_a_coin():
    lots = [PoissonSampler(1, 0.5).lot() for _ in range(2000)]
    assert all(lot.tolist() in ([], [0]) for lot in lots)
    assert stats.binomtest(sum(map(len, lots)), 2000, 0.5).pvalue > ALPHA


def test_full_rate_takes_everyone():
    assert PoissonSampler(5, 1.0).lot().tolist() == [0, 1, 2, 3, 4]


def test_samplers_do_not_share_a_stream():
    one, two = PoissonSampler(10_000, 0.5), PoissonSampler(10_000, 0.5)
    assert not np.array_equal(one.lot(), two.lot())


def test_fixed_size_lots_are_even():
    sampler = FixedSizeSampler(UNITS, 4)
    rows = indicators(sampler)
    assert (rows.sum(1) == 4).all()
    assert rows.max() == 1
    # given the fixed size, the counts' covariance loses one dimension and grows by n/(n − 1)
    statistic = ((rows.sum(0) - LOTS * 0.2) ** 2).sum() / (LOTS * 0.2 * 0.8) * (UNITS - 1) / UNITS
    assert two_sided(stats.chi2.cdf(statistic, UNITS - 1)) > ALPHA
    assert FixedSizeSampler(3, 0).lot().size == 0
    assert FixedSizeSampler(3, 3).lot().tolist() == [0, 1, 2]


def test_a_sampler_says_how_it_draws():
    assert PoissonSampler(4, 0.5).sampling == "poisson"
    assert FixedSizeSampler(4, 2).sampling == "without-replacement"


@pytest.mark.parametrize("sampler", [PoissonSampler(4321, 0.5), FixedSizeSampler(4321, 2)])
def test_the_population_is_neither_shown_nor_saved(sampler):
    assert "4321" not in repr(sampler)
    for save in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never saved"):
            save(sampler)


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, float("nan")])
def test_bad_rates_are_refused(rate):
    with pytest.raises(SettingError, match="sample_rate"):
        PoissonSampler(10, rate)


def test_errors_do_not_show_the_population():
    with pytest.raises(SettingError, match=r"^size") as too_large:
        FixedSizeSampler(4321, 5000)
    with pytest.raises(SettingError, match=r"^population"):
        PoissonSampler(-4321, 0.5)
    assert "4321" not in str(too_large.value)
