"""Calibration: the smallest noise for an ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from doublure.errors import SettingError
from doublure.private.accounting.composition import Accountant, cost_of, count_events
from doublure.private.accounting.curves import Relation, RenyiCurve
from doublure.private.accounting.events import Event, GaussianEvent
from doublure.support.checks import require_number

_LEAST_NOISE = 1e-2  # calibration does not look below or above these noise multipliers
_MOST_NOISE = 1e8
_TOLERANCE = 1e-3  # relative, of a calibrated noise multiplier
_BRACKET = 0.03  # of the first guess by RDP, which is some per cent off anyway


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
        >>> from doublure.private.accounting import PureEvent, epsilon_of
        >>> def run(noise):
        ...     return [PureEvent(epsilon=0.2), GaussianEvent(noise_multiplier=noise, sample_rate=0.02, steps=500)]
        >>> noise = calibrate(run, epsilon=1.0, delta=1e-5)
        >>> round(noise, 2), epsilon_of(run(noise), 1e-5) <= 1.0
        (2.16, True)
    """
    require_number(epsilon, "epsilon", above=0.0)
    require_number(delta, "delta", above=0.0, below=1.0)

    def cost(noise: float, *, rough: bool = False) -> float:
        return cost_of(events_at(noise), delta, accountant, relation, coarser=8 if rough else 1)

    def bracketing_cost(noise: float) -> float:
        ready = count_events(events_at(noise), accountant, relation)
        return RenyiCurve(ready, relation, stand_in=True).epsilon(delta) if ready else 0.0

    if accountant == "rdp":
        return _smallest_feasible(cost, 1.0, 1.0, epsilon, _TOLERANCE)[0]
    try:
        found = _smallest_feasible(bracketing_cost, 1.0, 1.0, epsilon, _BRACKET)
    except SettingError:  # RDP is looser: the accountant asked for has the last word
        found = (_MOST_NOISE, 1.0)
    found = _smallest_feasible(lambda noise: cost(noise, rough=True), *found, epsilon, _TOLERANCE / 4.0)
    return _smallest_feasible(cost, *found, epsilon, _TOLERANCE)[0]


def noise_multiplier(
    epsilon: float,
    delta: float,
    sample_rate: float,
    steps: int,
    accountant: Accountant = "pld",
    relation: Relation = "add-remove",
) -> float:
    """Return the smallest noise multiplier for ``steps`` Poisson lots to cost at most ε; see :func:`calibrate`.

    For lots of a fixed size give :func:`calibrate` events that say ``sampling="without-replacement"``: they need other
    noise.

    Example:
        >>> round(noise_multiplier(1.0, 1e-5, 0.01, 1000), 2)
        1.42
    """

    def run(noise: float) -> list[Event]:
        return [GaussianEvent(noise_multiplier=noise, sample_rate=sample_rate, steps=steps)]

    return calibrate(run, epsilon=epsilon, delta=delta, accountant=accountant, relation=relation)


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
