"""The grids of privacy loss distributions: any gives an upper bound, these were found to be tight, small and exact."""

import math
from statistics import NormalDist

import pytest

from doublure.private.accounting import curves
from doublure.private.accounting.curves import LossDistribution, RenyiCurve, _blocks, _cells_together, _grid_interval
from doublure.private.accounting.events import ApproximateEvent, DiscreteGaussianEvent, GaussianEvent, PureEvent


def noisy(multiplier, rate=1.0, steps=1):
    return [(GaussianEvent(noise_multiplier=multiplier, sample_rate=rate), steps)]


def counts(scale, tables):
    return [(DiscreteGaussianEvent(scale=scale), tables)]


def pure(epsilon, times=1):
    return [(PureEvent(epsilon=epsilon), times)]


@pytest.mark.parametrize(
    ("events", "added", "replaced"),
    [
        (noisy(1.0), 1e-2, 2e-2),
        (noisy(5.0), 2e-3, 2e-3),
        (noisy(0.05), 2e-1, 2e-1),
        (noisy(2.0, steps=400), 1e-1, 2e-1),
        (noisy(1.0, 0.01, 1000), 1e-4, 5e-4),
        (noisy(0.6, 0.001, 10**6), 1e-4, 5e-4),
        (noisy(20.0, 0.1, 50), 1e-4, 1e-4),
        (noisy(0.02, 0.5, 3), 2e-1, 5e-1),
        (noisy(0.3, 0.001, 10), 5e-3, 2e-2),
        (noisy(1000.0, 0.01, 10**9), 1e-5, 2e-5),
        (counts(1.5, 1), 5e-3, 5e-3),
        (counts(30.0, 66), 2e-3, 2e-3),
        (counts(300.0, 5000), 1e-3, 2e-3),
        (counts(2000.0, 20), 1e-4, 1e-4),
        (counts(2.0, 1000), 1e-1, 1e-1),
        (counts(25_000.0, 10**6), 2e-5, 2e-5),
        (counts(30.0, 66) + pure(0.1), 1e-4, 1e-4),
        (pure(0.5), 1e-4, 1e-4),
        (pure(3.0, 2), 1e-4, 1e-4),
        ([(ApproximateEvent(epsilon=0.5, delta=2e-5), 1)], 1e-4, 1e-4),
        (pure(0.01, 40) + noisy(3.0), 1e-5, 2e-5),
    ],
)
def test_grids(events, added, replaced):
    assert _grid_interval(events, "add-remove") == pytest.approx(added)
    assert _grid_interval(events, "replace-one") == pytest.approx(replaced)


@pytest.mark.parametrize(
    ("steps", "blocks"),
    [(1, (1, 1, 0)), (19_999, (19_999, 1, 0)), (20_000, (1000, 20, 0)), (123_456, (1000, 123, 456))],
)
def test_many_steps_are_composed_in_blocks(steps, blocks):
    assert _blocks(steps) == blocks
    size, number, rest = blocks
    assert size * number + rest == steps


@pytest.mark.parametrize(
    ("one", "other", "added", "replaced"),
    [
        (counts(1.5, 1), counts(300.0, 1), 2e-3, 5e-3),
        (noisy(0.4), noisy(50.0), 2e-2, 5e-2),
        (counts(30.0, 66), noisy(0.2, 0.01, 5), 2e-2, 5e-2),
    ],
)
def test_the_widest_loss_decides_wherever_it_stands(one, other, added, replaced):
    for events in (one + other, other + one):
        assert _grid_interval(events, "add-remove") == pytest.approx(added)
        assert _grid_interval(events, "replace-one") == pytest.approx(replaced)


@pytest.mark.parametrize(("scale", "together"), [(100.0, 43_402), (5000.0, 17), (25_000.0, 1)])
def test_noise_of_many_outcomes_is_summed_for_few_cells_at_a_time(scale, together):
    """A sum's outcomes reach 12 deviations to either side: no more than 500,000 of them, or those of one cell."""
    assert _cells_together(scale, 10**6) == together
    assert _cells_together(scale, 10) == min(10, together)
    assert together == 1 or 2 * 12 * scale * math.sqrt(together) <= 5e5 < 2 * 12 * scale * math.sqrt(together + 1)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_a_delta_is_that_of_the_gaussian(epsilon):
    """Balle and Wang 2018, Theorem 5."""
    below = NormalDist().cdf
    exact = below(0.25 - 2.0 * epsilon) - math.exp(epsilon) * below(-0.25 - 2.0 * epsilon)
    assert exact <= LossDistribution(noisy(2.0), "add-remove").delta(epsilon) <= exact * (1.0 + 1e-6)


def test_a_delta_is_a_probability():
    assert LossDistribution(noisy(0.02), "add-remove").delta(0.0) == 1.0


def test_every_order_of_a_curve_grows_with_the_steps():
    orders = [1.00001, 1.001, 1.5, 4.0, 32.0]
    one, fifty = (RenyiCurve(noisy(1.0, 0.01, steps), "add-remove", orders=orders).divergence for steps in (1, 50))
    assert fifty == pytest.approx(50 * one, rel=1e-9)


def test_orders_near_one_pay_for_where_the_series_ends():
    assert RenyiCurve(noisy(1e6), "add-remove", orders=[1.00001]).divergence[0] >= 2e-13 / 1e-5 * (1.0 - 1e-9)


@pytest.mark.parametrize("epsilon", [1e-5, 0.3, 40.0])
def test_a_pure_event_s_curve_is_computed_once_and_stays_the_same(epsilon):
    """A calibration changes the Gaussian beside it alone."""
    curves._pure_curve.cache_clear()
    fresh = RenyiCurve(pure(epsilon, 3) + noisy(2.0), "add-remove").divergence
    again = [RenyiCurve(pure(epsilon, 3) + noisy(noise), "add-remove") for noise in (2.0, 3.0)]
    assert curves._pure_curve.cache_info().misses == 1
    assert (again[0].divergence == fresh).all()
    assert (again[1].divergence <= fresh).all()
    other = RenyiCurve(pure(epsilon, 3), "add-remove", orders=[2.0, 3.0])
    assert list(other.orders) == [2.0, 3.0]  # other orders are another curve
