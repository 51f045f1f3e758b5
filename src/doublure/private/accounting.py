"""What was done to the private data, as plain data, and what it costs.

An **event** says what touched the records; the mathematics of composing events is that of ``dp-accounting`` and
never our own. Every figure returned is an upper bound on the true privacy loss.

Which pairs are supported (all others raise :class:`~doublure.errors.SettingError`, naming the way out):

=====================================  ============  =====  =====
event                                  relation      pld    rdp
=====================================  ============  =====  =====
Gaussian, Poisson lots (q < 1)         add-remove    yes    yes
Gaussian, Poisson lots (q < 1)         replace-one   yes    no
Gaussian, fixed-size lots (q < 1)      add-remove    no     no
Gaussian, fixed-size lots (q < 1)      replace-one   no     yes
Gaussian, full batch (q = 1)           both          yes    yes
Pure, Approximate                      both          yes    yes
=====================================  ============  =====  =====

A noise multiplier is always the noise's standard deviation over the clipping norm C, so the same number under
"replace-one", where one unit can move the sum by 2C, gives a weaker guarantee. The ε of a pure or approximate event
must have been stated for the relation it is analysed under.

``pld`` (privacy loss distributions, numerical) is tight; ``rdp`` (Rényi) is looser, quicker, and the only one of the
two for δ below about 1e-11: the powers in Fourier space behind ``pld`` carry a rounding error, which can make
dp-accounting report too little. A bound on it is taken off δ here, and a δ that this would halve is refused.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any, Literal, get_args

from doublure.errors import SettingError

Accountant = Literal["pld", "rdp"]
Relation = Literal["add-remove", "replace-one"]
Sampling = Literal["poisson", "without-replacement"]

_LEAST_MULTIPLIER = 1e-6  # whose square still has all its digits
_LEAST_NOISE = 1e-2  # calibration does not look below or above these noise multipliers
_MOST_NOISE = 1e8
_TOLERANCE = 1e-3  # relative, of a calibrated noise multiplier
_BRACKET = 0.03  # of the first guess by RDP, which is some per cent off anyway
_LARGEST_PLD_EPSILON = 700.0  # of one pure or approximate event; exp() overflows in float64 above
_BLOCK = 1000  # steps composed at a time, from 20,000 steps on
_ROUNDING = 2e-16  # of δ, per power taken in Fourier space; measured for 1 to 1e8 steps: at most 6e-17
_MOST_STEPS = 10**9
_COARSEST_INTERVAL = 10.0  # a grid for an ε above about 1e5, beyond which exp() overflows
_FINEST_STEP_POINTS = 4e5  # grid points of one step's and of the composed privacy loss
_FINEST_TOTAL_POINTS = 4e6


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """Sums of clipped contributions with Gaussian noise, each over a freshly drawn lot.

    Attributes:
        noise_multiplier: Standard deviation of the noise over the clipping norm C (not 2C), >= 1e-6.
        sample_rate: Probability q of a unit being in a lot, in (0, 1]; 1 is the full batch.
        steps: Number of noisy sums, 0 to 1e9.
        sampling: Independent ("poisson") or fixed-size lots drawn "without-replacement".
    """

    noise_multiplier: float
    sample_rate: float = 1.0
    steps: int = 1
    sampling: Sampling = "poisson"

    def __post_init__(self) -> None:
        _number(self.noise_multiplier, "noise_multiplier", least=_LEAST_MULTIPLIER)
        _number(self.sample_rate, "sample_rate", above=0.0, most=1.0)
        _whole(self.steps, "steps", least=0)
        _choice(self.sampling, "sampling", get_args(Sampling))


@dataclass(frozen=True, kw_only=True)
class PureEvent:
    """One use of any (ε, 0)-DP mechanism: Laplace, geometric, exponential."""

    epsilon: float

    def __post_init__(self) -> None:
        _number(self.epsilon, "epsilon", above=0.0)


@dataclass(frozen=True, kw_only=True)
class ApproximateEvent:
    """One use of any (ε, δ)-DP mechanism of which nothing else is known: a thresholded histogram."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _number(self.epsilon, "epsilon", above=0.0)
        _number(self.delta, "delta", above=0.0, below=1.0)


Event = GaussianEvent | PureEvent | ApproximateEvent
_Counted = tuple[Event, int]  # an event (a Gaussian one with steps=1) and how many times it was done

_EVENT_TYPES: dict[str, type[GaussianEvent] | type[PureEvent] | type[ApproximateEvent]] = {
    "gaussian": GaussianEvent,
    "pure": PureEvent,
    "approximate": ApproximateEvent,
}


def event_to_json(event: Event) -> dict[str, object]:
    """Return the event as a JSON object.

    Example:
        >>> event_to_json(PureEvent(epsilon=0.5))
        {'type': 'pure', 'epsilon': 0.5}
    """
    name = next(name for name, kind in _EVENT_TYPES.items() if isinstance(event, kind))
    return {"type": name} | {field: getattr(event, field) for field in event.__dataclass_fields__}


def event_from_json(data: Mapping[str, object]) -> Event:
    """Return the event that :func:`event_to_json` wrote.

    Raises:
        SettingError: The type is unknown, or a field is missing, unknown or out of range.

    Example:
        >>> event_from_json({"type": "gaussian", "noise_multiplier": 1.1, "steps": 100})
        GaussianEvent(noise_multiplier=1.1, sample_rate=1.0, steps=100, sampling='poisson')
    """
    if not isinstance(data, Mapping):
        raise SettingError("must be an object", field="event", remedy='write {"type": "gaussian", …}')
    fields: dict[str, Any] = {key: value for key, value in data.items() if key != "type"}
    name = data.get("type")
    kind = _EVENT_TYPES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise SettingError("is unknown", field="event type", remedy=f"use one of {', '.join(_EVENT_TYPES)}")
    try:
        return kind(**fields)
    except TypeError:
        known = ", ".join(kind.__dataclass_fields__)
        raise SettingError("has missing or unknown keys", field=f"{name} event", remedy=f"known are {known}") from None


def epsilon_of(
    events: Sequence[Event], delta: float, *, accountant: Accountant = "pld", relation: Relation = "add-remove"
) -> float:
    """Return the ε of all events together, at the given δ.

    Args:
        events: What was done, alike or unlike, in any order and adaptively chosen with fixed parameters.
        delta: Target δ of the whole, in (0, 1).
        accountant: "pld" or "rdp".
        relation: Neighbouring relation; see the table at the top.

    Returns:
        The smallest ε >= 0 that the accountant can show; without Gaussian events never above the sum of their ε.

    Raises:
        SettingError: A value is out of range, the pair is unsupported, or δ is spent by the events themselves.

    Example:
        >>> tables = [PureEvent(epsilon=0.1), GaussianEvent(noise_multiplier=20.0, steps=100)]
        >>> round(epsilon_of(tables, 1e-5), 3), round(epsilon_of(tables, 1e-5, accountant="rdp"), 3)
        (2.033, 2.208)
    """
    _number(delta, "delta", above=0.0, below=1.0)
    return _cost(events, delta, accountant, relation)


def delta_of(
    events: Sequence[Event], epsilon: float, *, accountant: Accountant = "pld", relation: Relation = "add-remove"
) -> float:
    """Return the δ of all events together, at the given ε >= 0; see :func:`epsilon_of`.

    Example:
        >>> f"{delta_of([GaussianEvent(noise_multiplier=1.1, sample_rate=0.01, steps=10_000)], 5.2):.2g}"
        '9.7e-06'
    """
    _number(epsilon, "epsilon", least=0.0)
    ready = _ready(events, accountant, relation)
    if not ready:
        return 0.0
    if epsilon >= _sum_of_epsilons(ready):
        return min(1.0, _sum_of_deltas(ready))
    if accountant == "rdp":
        return _RenyiCurve(ready, relation).delta(epsilon)
    return _LossDistribution(ready, relation).delta(epsilon)


def calibrate(
    events_at: Callable[[float], Sequence[Event]],
    *,
    epsilon: float,
    delta: float,
    accountant: Accountant = "pld",
    relation: Relation = "add-remove",
) -> float:
    """Return the smallest noise multiplier whose events cost at most ε, to a relative 0.001.

    The result was itself evaluated: ``epsilon_of(events_at(result), delta, …) <= epsilon`` always holds.

    Args:
        events_at: The whole run as a function of one noise multiplier; its cost must fall as the noise grows.
        epsilon: The ε that must not be passed, > 0.
        delta: Target δ of the whole, in (0, 1).
        accountant: "pld" or "rdp". The search brackets by RDP and on a coarse grid first.
        relation: Neighbouring relation.

    Returns:
        A noise multiplier in [0.01, 1e8].

    Raises:
        SettingError: No amount of noise is enough, because the events without adjustable noise cost too much.

    Example:
        >>> def run(noise):
        ...     return [PureEvent(epsilon=0.2), GaussianEvent(noise_multiplier=noise, sample_rate=0.02, steps=500)]
        >>> noise = calibrate(run, epsilon=1.0, delta=1e-5)
        >>> round(noise, 2), epsilon_of(run(noise), 1e-5) <= 1.0
        (2.16, True)
    """
    _number(epsilon, "epsilon", above=0.0)
    _number(delta, "delta", above=0.0, below=1.0)

    def cost(noise: float, *, rough: bool = False) -> float:
        return _cost(events_at(noise), delta, accountant, relation, coarser=8 if rough else 1)

    def bracketing_cost(noise: float) -> float:
        ready = _ready(events_at(noise), accountant, relation)
        return _RenyiCurve(ready, relation, stand_in=True).epsilon(delta) if ready else 0.0

    if accountant == "rdp":
        return _smallest_feasible(cost, 1.0, 1.0, epsilon, _TOLERANCE)[0]
    try:
        found = _smallest_feasible(bracketing_cost, 1.0, 1.0, epsilon, _BRACKET)
    except SettingError:  # RDP is looser: the accountant asked for has the last word
        found = (_MOST_NOISE, 1.0)
    found = _smallest_feasible(lambda noise: cost(noise, rough=True), *found, epsilon, _TOLERANCE / 4.0)
    return _smallest_feasible(cost, *found, epsilon, _TOLERANCE)[0]


def epsilon(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: Accountant = "pld",
    relation: Relation = "add-remove",
) -> float:
    """Return the ε of ``steps`` Poisson lots with Gaussian noise (DP-SGD); see :func:`epsilon_of`.

    Example:
        >>> round(epsilon(1.1, 0.01, 10_000, 1e-5), 3), round(epsilon(1.1, 0.01, 10_000, 1e-5, "rdp"), 3)
        (5.193, 5.632)
    """
    event = GaussianEvent(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps)
    return epsilon_of([event], delta, accountant=accountant, relation=relation)


def noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    accountant: Accountant = "pld",
    relation: Relation = "add-remove",
) -> float:
    """Return the smallest noise multiplier for ``steps`` Poisson lots to cost at most ε; see :func:`calibrate`.

    Example:
        >>> round(noise_multiplier(1.0, 1e-5, 0.01, 1000), 2)
        1.42
    """

    def run(noise: float) -> list[Event]:
        return [GaussianEvent(noise_multiplier=noise, sample_rate=sample_rate, steps=steps)]

    return calibrate(run, epsilon=epsilon, delta=delta, accountant=accountant, relation=relation)


def group_privacy(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    """Return what an (ε, δ)-DP mechanism guarantees to a group of ``size`` units that change together.

    It is (kε, δ(1 + e^ε + … + e^((k−1)ε)))-DP (Vadhan, *The Complexity of Differential Privacy*, 2017, Lemma 2.2),
    whatever the accountant that gave (ε, δ). A δ of 1 means that nothing is guaranteed.

    Example:
        >>> group_privacy(0.5, 0.0, 4)
        (2.0, 0.0)
        >>> f"{group_privacy(0.5, 1e-6, 4)[1]:.3g}"
        '9.85e-06'
    """
    _number(epsilon, "epsilon", least=0.0)
    _number(delta, "delta", least=0.0, below=1.0)
    _whole(size, "size", least=1)
    if delta == 0.0:
        return size * epsilon, 0.0
    # log of the geometric sum: (e^(kε) − 1) / (e^ε − 1) = e^((k−1)ε) (1 − e^(−kε)) / (1 − e^(−ε))
    log_sum = math.log(size)
    if epsilon > 0.0:
        log_sum = (size - 1) * epsilon + math.log(-math.expm1(-size * epsilon)) - math.log(-math.expm1(-epsilon))
    return size * epsilon, math.exp(min(0.0, math.log(delta) + log_sum))


def group_epsilon_of(
    events: Sequence[Event],
    delta: float,
    *,
    size: int,
    accountant: Accountant = "pld",
    relation: Relation = "add-remove",
) -> float:
    """Return the ε, at the given δ, for a group of ``size`` units that change together.

    The least of :func:`group_privacy` over the whole curve of (ε, δ) that the accountant gives for one unit.

    Raises:
        SettingError: As :func:`epsilon_of`, or the curve does not reach this δ for a group so large.

    Example:
        >>> lots = [GaussianEvent(noise_multiplier=4.0, sample_rate=0.01, steps=1000)]
        >>> [round(group_epsilon_of(lots, 1e-5, size=size), 2) for size in (1, 2, 4)]
        [0.27, 0.58, 1.25]
    """
    _whole(size, "size", least=1)
    single = epsilon_of(events, delta, accountant=accountant, relation=relation)
    ready = _ready(events, accountant, relation)
    if size == 1 or not ready:
        return group_privacy(single, delta, size)[0]
    curve = _RenyiCurve(ready, relation) if accountant == "rdp" else _LossDistribution(ready, relation)
    for step in range(1001):
        one = single * (1.0 + step / 100.0)
        group_epsilon, group_delta = group_privacy(one, curve.delta(one), size)
        if group_delta <= delta:
            return group_epsilon
    raise SettingError("is too large for this delta", field="size", remedy="use a smaller group or more noise")


def _cost(
    events: Sequence[Event], delta: float, accountant: Accountant, relation: Relation, *, coarser: int = 1
) -> float:
    """Return the accountant's ε, or the plain sum where nothing but pure and approximate events makes it smaller."""
    ready = _ready(events, accountant, relation)
    spent = _sum_of_deltas(ready)
    if spent >= delta:
        raise SettingError(
            f"{delta:g} is already spent by the events' own delta of {spent:.4g}",
            field="delta",
            remedy="raise it, or give those events a smaller one",
        )
    if not ready:
        return 0.0
    if accountant == "rdp":
        found = _RenyiCurve(ready, relation).epsilon(delta)
    else:
        found = _LossDistribution(ready, relation, coarser=coarser).epsilon(delta)
    return min(found, _sum_of_epsilons(ready))


def _sum_of_epsilons(events: Sequence[_Counted]) -> float:
    """Return the ε of basic composition, which is infinite with a Gaussian among the events."""
    return math.fsum(math.inf if isinstance(event, GaussianEvent) else event.epsilon * count for event, count in events)


def _sum_of_deltas(events: Sequence[_Counted]) -> float:
    return math.fsum(event.delta * count for event, count in events if isinstance(event, ApproximateEvent))


class _RenyiCurve:
    """The Rényi curve of a composition, after dp-accounting. Approximate events count as pure, their δ set aside.

    Setting δ aside is sound: an (ε, δ)-DP mechanism is dominated by one that reveals everything with probability δ
    and is ε-randomised response otherwise (Kairouz, Oh and Viswanath 2015).
    """

    def __init__(self, events: Sequence[_Counted], relation: Relation, *, stand_in: bool = False) -> None:
        import dp_accounting
        import numpy as np
        from dp_accounting import rdp

        replace_one = dp_accounting.NeighboringRelation.REPLACE_ONE
        add_remove = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
        self.set_aside = _sum_of_deltas(events)
        total: Any = None
        for event, count in events:
            if isinstance(event, GaussianEvent):
                # dp-accounting's RDP takes the multiplier over the sensitivity of the relation: 2C when replacing
                noise = event.noise_multiplier / (2.0 if relation == "replace-one" else 1.0)
                done = dp_accounting.GaussianDpEvent(noise)
                neighbours = replace_one if relation == "replace-one" and not stand_in else add_remove
                if event.sample_rate < 1.0 and event.sampling == "poisson":
                    done = dp_accounting.PoissonSampledDpEvent(event.sample_rate, done)
                elif event.sample_rate < 1.0:
                    rate = Fraction(event.sample_rate)
                    done = dp_accounting.SampledWithoutReplacementDpEvent(rate.denominator, rate.numerator, done)
            else:
                done, neighbours = _pure_for_renyi(event.epsilon), replace_one
            spent = rdp.RdpAccountant(neighboring_relation=neighbours)
            with _without_excluded_orders():
                spent.compose(done, count)
            # float64 leaves an error of at most 6e-16 a step (measured), which can even be negative
            curve = np.maximum(spent.rdp, 0.0) + 1e-15 * count
            self.orders = spent.orders
            total = curve if total is None else total + curve
        self.divergence = total

    def epsilon(self, delta: float) -> float:
        from dp_accounting.rdp import rdp_privacy_accountant

        if self.set_aside >= delta:
            return math.inf
        return float(rdp_privacy_accountant.compute_epsilon(self.orders, self.divergence, delta - self.set_aside)[0])

    def delta(self, epsilon: float) -> float:
        from dp_accounting.rdp import rdp_privacy_accountant

        found = rdp_privacy_accountant.compute_delta(self.orders, self.divergence, epsilon)[0]
        return min(1.0, float(found) + self.set_aside)


class _LossDistribution:
    """The privacy loss distribution of a composition, after dp-accounting, on a grid chosen by need."""

    def __init__(self, events: Sequence[_Counted], relation: Relation, *, coarser: int = 1) -> None:
        interval = coarser * _grid_interval(events, relation)
        parts = [_distribution(event, count, interval, relation) for event, count in events]
        self.distribution = reduce(lambda so_far, part: so_far.compose(part), parts)
        self.rounding = _ROUNDING * sum(100 + sum(_blocks(count)) for _, count in events)

    def epsilon(self, delta: float) -> float:
        found = math.inf
        if self.rounding < delta / 2.0:
            found = float(self.distribution.get_epsilon_for_delta(delta - self.rounding))
        if not math.isfinite(found):
            raise SettingError(
                f"{delta:g} is smaller than accountant pld can resolve for these events",
                field="delta",
                remedy='use accountant="rdp" or a larger delta',
            )
        return found

    def delta(self, epsilon: float) -> float:
        return min(1.0, float(self.distribution.get_delta_for_epsilon(epsilon)) + self.rounding)


@contextmanager
def _without_excluded_orders() -> Iterator[None]:
    """Keep dp-accounting from logging each order that it leaves out of the minimum, which costs nothing in validity."""

    def keep(record: logging.LogRecord) -> bool:
        return "Excluding this order" not in str(record.msg)

    logger = logging.getLogger("absl")
    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


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
        single = pld.privacy_loss_distribution.from_gaussian_mechanism(
            event.noise_multiplier / (math.sqrt(count) if whole else 1.0),
            value_discretization_interval=interval,
            sampling_prob=event.sample_rate,
            neighboring_relation=neighbours,
        )
        return single if whole else _self_composed(single, count)
    if event.epsilon > _LARGEST_PLD_EPSILON:
        raise SettingError(
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


def _grid_interval(events: Sequence[_Counted], relation: Relation) -> float:
    """Return a grid on which the discretisation costs at most about 0.04 % of ε, within bounds on memory and rounding.

    Any grid gives an upper bound. Each of T steps widens the loss's variance μ² by about interval²/6, and a pure
    event's ε grows by at most one interval. 1e-4, the default of dp-accounting, is kept where it fits. Too fine a
    grid costs memory and, in float64, spurious mass of about 1e-16/interval a point.
    """
    curve = _RenyiCurve(events, relation, stand_in=True)
    # a Gaussian's divergence is order · μ² / 2, the smaller orders being the less misled by rare, large losses; where
    # these decide ε, the Gaussian of that ε matters: ε = μ²/2 + 5μ
    scale = max(math.sqrt(2.0 * float((curve.divergence / curve.orders).min())), 1e-7)
    scale = max(scale, math.sqrt(25.0 + 2.0 * max(curve.epsilon(1e-5 + curve.set_aside) - 0.01, 0.0)) - 5.0)
    steps, discrete, widest = 1, 0, 0.0
    for event, count in events:
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
        raise SettingError(
            "is too small for accountant pld, which ends at an epsilon of about 1e5",
            field="noise_multiplier",
            remedy='use accountant="rdp" or more noise',
        )
    # a round number, so that an ε of few digits lies on the grid and is not rounded up at all
    decade = 10.0 ** math.floor(math.log10(interval))
    return max(digit * decade for digit in (1.0, 2.0, 5.0) if digit * decade <= interval * (1 + 1e-12))


def _smallest_feasible(
    cost: Callable[[float], float], start: float, slope: float, target: float, tolerance: float
) -> tuple[float, float]:
    """Return the smallest noise whose measured cost is at most the target, and −d log cost / d log noise there.

    Secants in log-log, aimed a little past the root on the side that closes the bracket.
    """
    high: tuple[float, float] | None = None  # feasible (noise, log(cost / target))
    low: tuple[float, float] | None = None
    noise, nudge = start, 0.4 * tolerance
    for turn in range(200):
        spent = cost(noise)
        excess = math.log(spent / target) if 0.0 < spent < math.inf else math.copysign(math.inf, spent - target)
        if excess <= 0.0:
            high = (noise, excess)
        else:
            low = (noise, excess)
        if low and high and low[0] < high[0] and math.isfinite(low[1] - high[1]):
            slope = min(max((low[1] - high[1]) / math.log(high[0] / low[0]), 0.01), 10.0)
        # the second condition also holds where the cost is flat to within its grid, and the two have crossed
        if high and (high[0] <= _LEAST_NOISE or (low and high[0] <= low[0] * (1.0 + tolerance))):
            return high[0], slope
        if low and low[0] >= _MOST_NOISE:
            raise SettingError(
                f"no noise is enough: {spent:.4g} is the least this accountant can show at this delta",
                field="epsilon",
                remedy=f"raise it above {spent:.4g} or spend less on the events whose noise is fixed",
            )
        if low and high:
            width = math.log(high[0] / low[0])
            share = low[1] / (low[1] - high[1]) if math.isfinite(low[1] - high[1]) and turn % 4 != 3 else 0.5
            root = low[0] * math.exp(width * share)
            noise = root * (1.0 - nudge if high[0] <= root * (1.0 + 1.5 * nudge) else 1.0 + nudge)
            if not low[0] < noise < high[0]:
                noise = math.sqrt(low[0] * high[0])
        else:  # the guess fell short on this side: twice as far each time
            step = min(8.0, math.exp(min(2.0**turn * (abs(excess) / slope + nudge), 3.0)))
            noise = min(_MOST_NOISE, noise * step) if low else max(_LEAST_NOISE, noise / step)
    raise SettingError("cannot be calibrated", field="epsilon", remedy="the cost must fall as the noise grows")


def _ready(events: Sequence[Event], accountant: Accountant, relation: Relation) -> list[_Counted]:
    """Refuse what is unsupported, join what is alike, and drop what does nothing."""
    _choice(accountant, "accountant", get_args(Accountant))
    _choice(relation, "relation", get_args(Relation))
    counts: dict[Event, int] = {}
    for event in events:
        if not isinstance(event, Event):
            raise SettingError("is not an event", field="events", remedy="give GaussianEvent, PureEvent or the like")
        count = 1
        if isinstance(event, GaussianEvent):
            _refuse_unsupported(event, accountant, relation)
            event, count = replace(event, steps=1), event.steps
        counts[event] = counts.get(event, 0) + count
    return [(event, count) for event, count in counts.items() if count]


def _refuse_unsupported(event: GaussianEvent, accountant: Accountant, relation: Relation) -> None:
    if event.sample_rate == 1.0:
        return
    if event.sampling == "without-replacement":
        if relation == "add-remove":
            raise SettingError(
                "is not supported for fixed-size lots, which add/remove does not keep",
                field="relation add-remove",
                remedy='use relation="replace-one" with accountant="rdp", or Poisson lots',
            )
        if accountant == "pld":
            raise SettingError(
                "is not supported for fixed-size lots", field="accountant pld", remedy='use accountant="rdp"'
            )
    elif relation == "replace-one" and accountant == "rdp":
        raise SettingError(
            "is not supported for Poisson lots under replace-one",
            field="accountant rdp",
            remedy='use accountant="pld"',
        )


def _number(
    value: object,
    field: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse what is not a finite number in the range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError("must be a finite number", field=field)
    if not (above < value < below and least <= value <= most):
        limits = {"above": above, "at least": least, "below": below, "at most": most}
        text = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit))
        raise SettingError(f"is out of range: {value:g}", field=field, remedy=f"give a number {text}")


def _whole(value: object, field: str, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_STEPS:
        raise SettingError("must be a whole number", field=field, remedy=f"give {least} to {_MOST_STEPS}")


def _choice(value: object, field: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingError("is unknown", field=field, remedy=f"use one of {', '.join(known)}")
