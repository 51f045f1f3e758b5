"""Composition: the joint cost of events."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from doublure.errors import BeyondPld, SettingError
from doublure.private.accounting.curves import (
    NEAR_ONE,
    Counted,
    LossDistribution,
    Relation,
    RenyiCurve,
    sum_of_deltas,
)
from doublure.private.accounting.events import DiscreteGaussianEvent, Event, GaussianEvent
from doublure.support.checks import require_choice, require_number, require_whole

Accountant = Literal["pld", "rdp"]

_HUGE = 1e4  # an ε above which orders near 1 may show less: ln(1/δ) over their distance from 1 is as much


def epsilon_of(
    events: Sequence[Event], delta: float, *, accountant: Accountant = "pld", relation: Relation = "add-remove"
) -> float:
    """Return the ε of all events together, at the given δ.

    Args:
        events: Equal or different events, in any order, adaptively chosen with fixed parameters.
        delta: Target δ of the whole, in (0, 1).
        accountant: "pld" or "rdp".
        relation: Neighbouring relation; see the table at the top.

    Returns:
        The smallest ε >= 0 that the accountant can show; without Gaussian events never above the sum of their ε.

    Raises:
        SettingError: A value is out of range, the pair is unsupported, or δ is spent by the events themselves.

    Example:
        >>> from doublure.private.accounting import GaussianEvent, PureEvent
        >>> tables = [PureEvent(epsilon=0.1), GaussianEvent(noise_multiplier=20.0, steps=100)]
        >>> round(epsilon_of(tables, 1e-5), 3), round(epsilon_of(tables, 1e-5, accountant="rdp"), 3)
        (2.033, 2.208)
    """
    require_number(delta, "delta", above=0.0, below=1.0)
    return cost_of(events, delta, accountant, relation)


def delta_of(
    events: Sequence[Event], epsilon: float, *, accountant: Accountant = "pld", relation: Relation = "add-remove"
) -> float:
    """Return the δ of all events together, at the given ε >= 0; see :func:`epsilon_of`.

    Example:
        >>> f"{delta_of([GaussianEvent(noise_multiplier=1.1, sample_rate=0.01, steps=10_000)], 5.2):.2g}"
        '9.7e-06'
    """
    require_number(epsilon, "epsilon", least=0.0)
    ready = count_events(events, accountant, relation)
    if not ready:
        return 0.0
    if epsilon >= _sum_of_epsilons(ready):
        return min(1.0, sum_of_deltas(ready))
    if accountant == "rdp":
        return RenyiCurve(ready, relation).delta(epsilon)
    return LossDistribution(ready, relation).delta(epsilon)


def epsilon(
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    delta: float,
    accountant: Accountant = "pld",
    relation: Relation = "add-remove",
) -> float:
    """Return the ε of ``steps`` Poisson lots with Gaussian noise (DP-SGD); see :func:`epsilon_of`.

    For lots of a fixed size give :func:`epsilon_of` a list of events that say ``sampling="without-replacement"``: their
    ε is another.

    Example:
        >>> round(epsilon(1.1, 0.01, 10_000, 1e-5), 3), round(epsilon(1.1, 0.01, 10_000, 1e-5, "rdp"), 3)
        (5.193, 5.632)
    """
    event = GaussianEvent(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps)
    return epsilon_of([event], delta, accountant=accountant, relation=relation)


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
    require_number(epsilon, "epsilon", least=0.0)
    require_number(delta, "delta", least=0.0, below=1.0)
    require_whole(size, "size", least=1)
    if delta == 0.0:
        return size * epsilon, 0.0
    # log of the geometric sum: (e^(kε) − 1) / (e^ε − 1) = e^((k−1)ε) (1 − e^(−kε)) / (1 − e^(−ε))
    log_sum = math.log(size)
    if epsilon > 0.0:
        log_sum = (size - 1) * epsilon + math.log(-math.expm1(-size * epsilon)) - math.log(-math.expm1(-epsilon))
    return size * epsilon, math.exp(min(0.0, math.log(delta) + log_sum))


def log_moments(events: Sequence[Event], orders: Sequence[int]) -> tuple[list[float], float]:
    """Return a bound on log E[e^(λ L)] of all events together for each λ, and the δ that they set aside.

    λ times the Rényi divergence of order λ + 1, for add/remove of one unit. It holds for every record, and is in the
    units of the Bayesian accountant.

    Args:
        events: The events.
        orders: λ, whole numbers >= 1.

    Example:
        >>> from doublure.private.accounting import GaussianEvent
        >>> moments, delta = log_moments([GaussianEvent(noise_multiplier=2.0, steps=4)], [1, 2])
        >>> [round(moment, 9) for moment in moments], delta
        ([1.0, 3.0], 0.0)
    """
    ready = count_events(events, "rdp", "add-remove")
    if not ready:
        return [0.0] * len(orders), 0.0
    curve = RenyiCurve(ready, "add-remove", orders=[order + 1.0 for order in orders])
    moments = [order * float(divergence) for order, divergence in zip(orders, curve.divergence, strict=True)]
    return moments, curve.set_aside


def cost_of(
    events: Sequence[Event], delta: float, accountant: Accountant, relation: Relation, *, coarser: int = 1
) -> float:
    """Return the accountant's ε, or the plain sum where nothing but pure and approximate events makes it smaller."""
    ready = count_events(events, accountant, relation)
    spent = sum_of_deltas(ready)
    if spent >= delta:
        raise SettingError(
            f"{delta:g} is already spent by the events' own delta of {spent:.4g}",
            field="delta",
            remedy="raise it, or give those events a smaller one",
        )
    if not ready:
        return 0.0
    if accountant == "rdp":
        found = RenyiCurve(ready, relation).epsilon(delta)
        if found > _HUGE:
            found = min(found, RenyiCurve(ready, relation, orders=NEAR_ONE).epsilon(delta))
    else:
        found = LossDistribution(ready, relation, coarser=coarser).epsilon(delta)
    return min(found, _sum_of_epsilons(ready))


def _sum_of_epsilons(events: Sequence[Counted]) -> float:
    """Return the ε of basic composition, which is infinite with a Gaussian among the events."""
    gaussian = GaussianEvent | DiscreteGaussianEvent
    return math.fsum(math.inf if isinstance(event, gaussian) else event.epsilon * count for event, count in events)


def count_events(events: Sequence[Event], accountant: Accountant, relation: Relation) -> list[Counted]:
    """Refuse unsupported events, join equal ones, and drop those without effect."""
    require_choice(accountant, "accountant", get_args(Accountant))
    require_choice(relation, "relation", get_args(Relation))
    counts: dict[Event, int] = {}
    for event in events:
        if not isinstance(event, Event):
            raise SettingError("is not an event", field="events", remedy="give GaussianEvent, PureEvent or the like")
        count = 1
        if isinstance(event, GaussianEvent):
            _refuse_unsupported(event, accountant, relation)
            event, count = replace(event, steps=1, filter_steps=None), event.paid_steps
        elif isinstance(event, DiscreteGaussianEvent):
            _refuse_several(event, accountant)
            event, count = replace(event, tables=1), event.tables
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
            raise BeyondPld(
                "is not supported for fixed-size lots", field="accountant pld", remedy='use accountant="rdp"'
            )
    elif relation == "replace-one" and accountant == "rdp":
        raise SettingError(
            "is not supported for Poisson lots under replace-one",
            field="accountant rdp",
            remedy='use accountant="pld"',
        )


def _refuse_several(event: DiscreteGaussianEvent, accountant: Accountant) -> None:
    """Refuse several records a unit with pld: several cells that move are proved for Rényi divergences alone."""
    if event.records > 1 and accountant == "pld":
        raise BeyondPld(
            "is not supported for tables in which a unit has several records",
            field="accountant pld",
            remedy='use accountant="rdp"',
        )
