"""Rényi curves and privacy loss distributions of compositions, both by dp-accounting."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, Literal

from doublure.errors import BeyondPld
from doublure.private.accounting.events import ApproximateEvent, DiscreteGaussianEvent, Event, GaussianEvent

Relation = Literal["add-remove", "replace-one"]
Counted = tuple[Event, int]  # an event (a Gaussian one with steps=1) and how many times it was done

_LARGEST_PLD_EPSILON = 700.0  # of one pure or approximate event; exp() overflows in float64 above
_REACH = 12.0  # deviations of a sum of noise that are looked at; beyond lies a mass of 1e-31
_OUTCOMES = 5e5  # of as many tables as are composed at a time, where one has not more by itself
_MOST_OUTCOMES = 2e7
_BLOCK = 1000  # steps composed at a time, from 20,000 steps on
_ROUNDING = 2e-16  # of δ, per power taken in Fourier space; measured for 1 to 1e8 steps: at most 6e-17
_ROUNDING_A_TABLE = 5e-16  # of δ; measured for 1 to 2e6 tables in one power: at most 1.7e-16
_COARSEST_INTERVAL = 10.0  # a grid for an ε above about 1e5, beyond which exp() overflows
_FINEST_STEP_POINTS = 4e5  # grid points of one step's and of the composed privacy loss
_FINEST_TOTAL_POINTS = 4e6
_LEAST_ORDER = 1.01  # below it dp-accounting's conversion to (ε, δ) says nothing
_SPARSE = 1000  # losses that dp-accounting holds in a dictionary; of more it makes an array
_SERIES = 2e-13  # of e^((α − 1) D): where dp-accounting ends its series, e^-30, doubled

NEAR_ONE = tuple(1.0 + digit * 10.0**power for power in (-5, -4, -3) for digit in (1.0, 2.0, 5.0))
"""Orders for noise so small that a sampled step nearly reveals its lot; only these still depend on q."""


class RenyiCurve:
    """The Rényi curve of a composition, after dp-accounting. Approximate events count as pure, their δ set aside.

    Setting δ aside is sound: an (ε, δ)-DP mechanism is dominated by one that reveals everything with probability δ
    and is ε-randomised response otherwise (Kairouz, Oh and Viswanath 2015).
    """

    def __init__(
        self,
        events: Sequence[Counted],
        relation: Relation,
        *,
        stand_in: bool = False,
        orders: Sequence[float] | None = None,
    ) -> None:
        import numpy as np

        self.set_aside = sum_of_deltas(events)
        total: Any = None
        for event, count in events:
            if isinstance(event, GaussianEvent | DiscreteGaussianEvent):
                done, neighbours = _gaussian_for_renyi(event, relation, stand_in=stand_in)
                self.orders, divergence = _composed(done, count, neighbours, orders)
            else:
                self.orders, divergence = _pure_curve(event.epsilon, count, None if orders is None else tuple(orders))
            # float64 leaves an error of at most 6e-16 a step (measured), which can even be negative
            curve = np.maximum(divergence, 0.0) + 1e-15 * count
            if orders is not None:
                curve = curve + np.where(np.less(orders, _LEAST_ORDER), _SERIES * count / np.subtract(orders, 1.0), 0.0)
            total = curve if total is None else total + curve
        self.divergence = total

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that the curve shows at this δ."""
        from dp_accounting.rdp import rdp_privacy_accountant

        left = delta - self.set_aside
        if left <= 0:
            return math.inf
        found = float(rdp_privacy_accountant.compute_epsilon(self.orders, self.divergence, left)[0])
        # Mironov 2017, Proposition 3.
        near = [
            d - math.log(left) / (a - 1) for a, d in zip(self.orders, self.divergence, strict=True) if a < _LEAST_ORDER
        ]
        return float(min([found, *near]))

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ that the curve shows at this ε."""
        from dp_accounting.rdp import rdp_privacy_accountant

        found = rdp_privacy_accountant.compute_delta(self.orders, self.divergence, epsilon)[0]
        return min(1.0, float(found) + self.set_aside)


class LossDistribution:
    """The privacy loss distribution of a composition, after dp-accounting, on a grid chosen by need."""

    def __init__(self, events: Sequence[Counted], relation: Relation, *, coarser: int = 1) -> None:
        interval = coarser * _grid_interval(events, relation)
        parts = [_distribution(event, count, interval, relation) for event, count in events]
        self.distribution = reduce(lambda so_far, part: so_far.compose(part), parts)
        self.rounding = sum(_rounding(event, count, relation) for event, count in events)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε of the distribution at this δ, the rounding of its Fourier powers taken off δ."""
        found = math.inf
        if self.rounding < delta / 2.0:
            found = float(self.distribution.get_epsilon_for_delta(delta - self.rounding))
        if not math.isfinite(found):
            raise BeyondPld(
                f"{delta:g} is smaller than accountant pld can resolve for these events",
                field="delta",
                remedy='use accountant="rdp" or a larger delta',
            )
        return found

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ of the distribution at this ε, rounding added."""
        return min(1.0, float(self.distribution.get_delta_for_epsilon(epsilon)) + self.rounding)


def sum_of_deltas(events: Sequence[Counted]) -> float:
    """Return the δ of basic composition."""
    return math.fsum(event.delta * count for event, count in events if isinstance(event, ApproximateEvent))


@contextmanager
def _without_excluded_orders() -> Iterator[None]:
    """Keep dp-accounting from logging each order that it leaves out of the minimum; the bound stays valid."""

    def keep(record: logging.LogRecord) -> bool:
        return "Excluding this order" not in str(record.msg)

    logger = logging.getLogger("absl")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


def _moved(event: DiscreteGaussianEvent, relation: Relation) -> float:
    """Return how far one unit moves a table of counts in L2: all of its records may fall in the same cell."""
    return event.records * (math.sqrt(2.0) if relation == "replace-one" else 1.0)


def _composed(done: Any, count: int, neighbours: Any, orders: Sequence[float] | None) -> tuple[Any, Any]:
    """Return the orders, and the divergences of an event of dp-accounting that is done ``count`` times."""
    from dp_accounting import rdp

    spent = rdp.RdpAccountant(orders, neighbours)
    with _without_excluded_orders():
        spent.compose(done, count)
    return spent.orders, spent.rdp


@lru_cache
def _pure_curve(epsilon: float, count: int, orders: tuple[float, ...] | None) -> tuple[Any, Any]:
    """Return :func:`_composed` of a pure event: a calibration asks for the same one at each noise that it tries."""
    import dp_accounting

    return _composed(_pure_for_renyi(epsilon), count, dp_accounting.NeighboringRelation.REPLACE_ONE, orders)


def _gaussian_for_renyi(
    event: GaussianEvent | DiscreteGaussianEvent, relation: Relation, *, stand_in: bool
) -> tuple[Any, Any]:
    """Return dp-accounting's event and relation for one Gaussian step."""
    import dp_accounting

    add_remove = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    if isinstance(event, DiscreteGaussianEvent):
        # its Rényi curve is at most that of the continuous Gaussian (Canonne, Kamath, Steinke 2020, Theorem 4)
        return dp_accounting.GaussianDpEvent(event.scale / _moved(event, relation)), add_remove
    # dp-accounting's RDP takes the multiplier over the sensitivity of the relation: 2C when replacing
    done = dp_accounting.GaussianDpEvent(event.noise_multiplier / (2.0 if relation == "replace-one" else 1.0))
    if event.sample_rate < 1.0 and event.sampling == "poisson":
        done = dp_accounting.PoissonSampledDpEvent(event.sample_rate, done)
    elif event.sample_rate < 1.0:
        rate = Fraction(event.sample_rate)
        done = dp_accounting.SampledWithoutReplacementDpEvent(rate.denominator, rate.numerator, done)
    replaces = relation == "replace-one" and not stand_in
    return done, dp_accounting.NeighboringRelation.REPLACE_ONE if replaces else add_remove


def _pure_for_renyi(epsilon: float) -> Any:
    """Return randomised response, which dominates every ε-DP mechanism; its limits where it loses its digits."""
    import dp_accounting

    if epsilon < 1e-4:
        return dp_accounting.ZCDpEvent(rho=epsilon**2 / 2.0)  # Bun and Steinke 2016, Proposition 1.4
    if epsilon > 30.0:
        return dp_accounting.ZCDpEvent(rho=0.0, xi=epsilon)
    return dp_accounting.RandomizedResponseDpEvent(2.0 / (1.0 + math.exp(epsilon)), 2)


def _distribution(event: Event, count: int, interval: float, relation: Relation) -> Any:
    """Return the privacy loss distribution of one event done ``count`` times."""
    import dp_accounting
    from dp_accounting import pld

    if isinstance(event, GaussianEvent):
        # here the multiplier is over C under either relation: dp-accounting moves the sum by 2C itself
        neighbours = dp_accounting.NeighboringRelation[
            "REPLACE_ONE" if relation == "replace-one" else "ADD_OR_REMOVE_ONE"
        ]
        whole = event.sample_rate == 1.0
        if not whole and relation == "add-remove":
            from doublure.private.accounting.sampled_gaussian import of_sampled_gaussian  # which takes NumPy

            return _self_composed(of_sampled_gaussian(event.noise_multiplier, event.sample_rate, interval), count)
        single = pld.privacy_loss_distribution.from_gaussian_mechanism(
            event.noise_multiplier / (math.sqrt(count) if whole else 1.0),
            value_discretization_interval=interval,
            sampling_prob=event.sample_rate,
            neighboring_relation=neighbours,
        )
        return single if whole else _self_composed(single, count)
    if isinstance(event, DiscreteGaussianEvent):
        return _of_tables(event.scale, _cells_moved(count, relation), interval)
    if event.epsilon > _LARGEST_PLD_EPSILON:
        raise BeyondPld(
            f"an event's {event.epsilon:g} is more than accountant pld can hold",
            field="epsilon",
            remedy='use accountant="rdp"',
        )
    # the dominating pair of pld.from_privacy_parameters, at ε rounded up to the grid: both of its losses, ε and −ε,
    # then lie on the grid, whereas rounding each of them up would cost an ε near the interval many times over
    cells = max(1, math.ceil(event.epsilon / interval - 1e-9))
    delta = event.delta if isinstance(event, ApproximateEvent) else 0.0
    odds = math.exp(-cells * interval)
    masses = {cells: (1.0 - delta) / (1.0 + odds), -cells: (1.0 - delta) * odds / (1.0 + odds)}
    single = pld.privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability(
        masses, delta, interval
    )
    return _self_composed(single, count)


def _cells_moved(tables: int, relation: Relation) -> int:
    """Return how many cells move by one: one of each table, and two where one unit takes another's place."""
    return tables * (2 if relation == "replace-one" else 1)


def _of_tables(scale: float, cells: int, interval: float) -> Any:
    """Return the privacy loss distribution of k noisy counts that move by one each, summed in as few blocks as fit."""
    together = _cells_together(scale, cells)
    blocks, rest = divmod(cells, together)
    whole = _self_composed(_of_block(scale, together, interval), blocks)
    return whole.compose(_of_block(scale, rest, interval)) if rest else whole


def _cells_together(scale: float, cells: int) -> int:
    """Return how many cells' noise is summed at a time."""
    outcomes = 2.0 * _REACH * scale
    if outcomes > _MOST_OUTCOMES:
        raise BeyondPld("is too much noise for accountant pld", field="scale", remedy='use accountant="rdp"')
    return min(cells, max(1, int((_OUTCOMES / outcomes) ** 2)))


def _of_block(scale: float, cells: int, interval: float) -> Any:
    """Return the privacy loss distribution of k noisy counts by way of their sum.

    The loss of outcomes y is Σ (1 + 2 y_i) / 2σ² = (k + 2 S) / 2σ², where S is the sum of k discrete Gaussians: its
    distribution is one power in Fourier space. An outcome whose loss lies between two points of the grid is split
    into two outcomes on them with the same probabilities in sum, for both of the neighbours. To join them again is
    post-processing, so that the split pair is at least as easy to tell apart, by a variance of at most interval²/4.
    """
    import numpy as np
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
    from scipy.fft import next_fast_len

    reach = math.ceil(_REACH * scale * math.sqrt(cells)) + 1
    size = next_fast_len(2 * reach + 1, real=True)
    outcomes = np.arange(size) - size // 2
    mass = np.exp(-((outcomes / scale) ** 2) / 2)
    spectrum = np.fft.rfft(np.fft.ifftshift(mass / mass.sum()))
    sums = np.fft.fftshift(np.fft.irfft(spectrum**cells, n=size))
    sums = np.maximum(sums, 0.0) + _ROUNDING / size
    losses = (cells + 2 * outcomes) / (2 * scale**2) / interval
    below = np.floor(losses)
    above = sums * np.expm1(-interval * (losses - below)) / math.expm1(-interval)
    places = (below - below[0]).astype(np.int64)
    masses = np.bincount(places, sums - above, minlength=places[-1] + 2) + np.bincount(places + 1, above)
    lowest, held = int(below[0]), np.flatnonzero(masses)
    if len(held) > _SPARSE:  # the array at once: by way of a dictionary it takes several times as long
        first, last = int(held[0]), int(held[-1])
        dense = pld_pmf.DensePLDPmf(interval, lowest + first, masses[first : last + 1], 0.0, pessimistic_estimate=True)
        return PrivacyLossDistribution(dense)
    sparse = dict(zip((lowest + held).tolist(), masses[held].tolist(), strict=True))
    return PrivacyLossDistribution.create_from_rounded_probability(sparse, 0.0, interval)


def _rounding(event: Event, count: int, relation: Relation) -> float:
    """Return a bound on what powers in Fourier space take off δ."""
    if not isinstance(event, DiscreteGaussianEvent):
        return _ROUNDING * (100 + sum(_blocks(count)))
    cells = _cells_moved(count, relation)
    blocks = cells // _cells_together(event.scale, cells)
    return _ROUNDING * (100 + sum(_blocks(blocks))) + _ROUNDING_A_TABLE * cells


def _self_composed(single: Any, count: int) -> Any:
    """Return ``count`` compositions.

    In blocks: that keeps the rounding error of the powers small, and dp-accounting also computes a pmf's size to the
    power of the count as an exact integer, which takes minutes for 1e7.
    """
    size, blocks, rest = _blocks(count)
    whole = single if size == 1 else single.self_compose(size, tail_mass_truncation=1e-15 / blocks)
    if blocks > 1:
        whole = whole.self_compose(blocks)
    return whole.compose(_self_composed(single, rest)) if rest else whole


def _blocks(count: int) -> tuple[int, int, int]:
    """Return size, number and remainder of the blocks in which ``count`` steps are composed."""
    return (count, 1, 0) if count < 20 * _BLOCK else (_BLOCK, *divmod(count, _BLOCK))


def _grid_interval(events: Sequence[Counted], relation: Relation) -> float:
    """Return a grid on which the discretisation costs at most about 0.04 % of ε, within bounds on memory and rounding.

    Any grid gives an upper bound. Each of T steps widens the loss's variance μ² by about interval²/6, and a pure
    event's ε grows by at most one interval. 1e-4, the default of dp-accounting, is kept where it fits. Too fine a
    grid costs memory and, in float64, spurious mass of about 1e-16/interval a point.
    """
    curve = RenyiCurve(events, relation, stand_in=True)
    # a Gaussian's divergence is order · μ² / 2, the smaller orders being the less misled by rare, large losses; where
    # these decide ε, the Gaussian of that ε matters: ε = μ²/2 + 5μ
    scale = max(math.sqrt(2.0 * float((curve.divergence / curve.orders).min())), 1e-7)
    scale = max(scale, math.sqrt(25.0 + 2.0 * max(curve.epsilon(1e-5 + curve.set_aside) - 0.01, 0.0)) - 5.0)
    steps, discrete, widest = 1, 0, 0.0
    for event, count in events:
        if isinstance(event, DiscreteGaussianEvent):
            cells = _cells_moved(count, relation)
            steps += cells // _cells_together(event.scale, cells)
            noise = event.scale / math.sqrt(cells)
            widest = max(widest, (0.5 + 10.0 * noise) / noise**2)
            continue
        if not isinstance(event, GaussianEvent):
            discrete += count
            continue
        noise, q = event.noise_multiplier, event.sample_rate
        if q == 1.0:
            noise /= math.sqrt(count)
        else:
            steps += count
        noise /= 2.0 if relation == "replace-one" else 1.0
        reach = (0.5 + 10.0 * noise) / noise**2  # the loss at ten standard deviations
        widest = max(widest, reach + math.log(q) if reach > 30.0 else math.log1p(q * math.expm1(reach)))
    coarse, fine = scale * math.sqrt(4.8e-3 / steps), scale * math.sqrt(1.2e-4 / steps)  # 0.04 % and 0.001 % of ε
    wanted = max(fine, min(1e-4, coarse))
    if discrete:
        wanted = min(wanted, 1e-4 * max(1.0, scale), 2e-3 * scale / discrete)
    whole = scale**2 + 20.0 * scale + widest
    bounds = (widest / _FINEST_STEP_POINTS, whole / _FINEST_TOTAL_POINTS, math.sqrt(2e-15 * widest * steps))
    interval = max(wanted, *bounds)
    if not interval < _COARSEST_INTERVAL:
        raise BeyondPld(
            "is too small for accountant pld, which ends at an epsilon of about 1e5",
            field="noise_multiplier",
            remedy='use accountant="rdp" or more noise',
        )
    # a round number, so that an ε of few digits lies on the grid and is not rounded up at all
    decade = 10.0 ** math.floor(math.log10(interval))
    return max(digit * decade for digit in (1.0, 2.0, 5.0) if digit * decade <= interval * (1 + 1e-12))
