"""The ε of a card's accesses by dp-accounting alone, without any code of our own accountant."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

TOLERANCE = 0.005
"""The share by which this grid may exceed a correct claim.

A loss between two grid points, h apart, is shared out among both (Doroshenko et al. 2022, "Connect the Dots"), which
adds at most h²/4 to its variance, and h²/6 on average. Over steps of standard deviation s that widens their sum by a
share h²/(12 s²) of its standard deviation, which is :data:`_WIDENED` at most. ε grows as that or, where it is large, as
its square: .2 %. A loss that is one number is rounded up by a spacing, which is .1 % of such losses, or 1e-4 where
they are small. The rest is room for rounding.
"""

_WIDENED = 0.001
_COARSEST, _FINEST = 1e-4, 1e-5  # a finer grid takes minutes; sampling rates of 1e-5 and less would need one
_EQUAL_STEPS = 64
LEAST_DELTA = 1e-11  # below it, powers in Fourier space leave a loss distribution too few digits


def recompute_epsilon(touches: Iterable[Mapping[str, Any]], delta: float) -> float | None:
    """Return the ε of accesses at a δ, composed as privacy loss distributions.

    Args:
        touches: The card's accesses; each has an event.
        delta: The claim's δ.

    Returns:
        An upper bound up to :data:`TOLERANCE`; None where this accountant has too few digits: a δ below 1e-11.

    Raises:
        KeyError, TypeError, ValueError, ArithmeticError: An event is unknown or missing.
    """
    priced = [touch["event"] for touch in touches]
    if not priced or not all(priced):
        raise ValueError("something is not priced")
    if delta < LEAST_DELTA:
        return None
    events = _joined(priced)
    interval = _interval(events)
    losses = [_loss(event, interval) for event in events]
    together = functools.reduce(lambda one, other: one.compose(other), losses)
    return float(together.get_epsilon_for_delta(delta))


def _joined(events: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the events, with all Gaussian noise on whole data as equal steps.

    Together they are one Gaussian: the squares of their shifts, each over its noise, add up (Dong et al. 2022,
    "Gaussian Differential Privacy", Corollary 3.3). Composed one by one they take several times as long; so does one
    step, whose losses fill a long grid.
    """
    squares, others = 0.0, []
    for event in events:
        square = _squared_shift(event)
        if square is None:
            others.append(event)
        else:
            squares += square
    if not squares:
        return others
    multiplier = math.sqrt(_EQUAL_STEPS / squares)
    whole = {"sampling": "poisson", "sample_rate": 1, "steps": _EQUAL_STEPS, "noise_multiplier": multiplier}
    return [*others, {"type": "gaussian", **whole}]


def _squared_shift(event: Mapping[str, Any]) -> float | None:
    """Return the square of what one unit moves, over the noise, of all steps; None unless these are whole Gaussians."""
    if event["type"] == "gaussian" and event["sampling"] and event["sample_rate"] == 1:
        return _positive(_paid_steps(event)) / _positive(event["noise_multiplier"]) ** 2
    if event["type"] == "discrete-gaussian" and (event["records"] != 1 or event["scale"] >= _SMOOTH):
        moved = operator.index(event["records"])  # a fraction of a record moves nothing
        return _positive(int(event["tables"])) * (_positive(moved) / _positive(event["scale"])) ** 2
    return None


def _interval(events: Iterable[Mapping[str, Any]]) -> float:
    """Return the spacing of the grid, so fine that it widens the sum of all steps by little."""
    largest, steps, variance, rounded = 1.0, 0.0, 0.0, list[float]()
    for event in events:
        spread = _spread(event)
        largest = max(largest, spread)
        if event["type"] in ("pure", "approximate"):
            rounded.append(spread)
            continue
        number = float(_paid_steps(event) if event["type"] == "gaussian" else event.get("tables", 1))
        steps += number
        variance += number * (float(event.get("sample_rate", 1.0)) * min(spread, _deviation(event))) ** 2
    near = math.sqrt(12 * _WIDENED * variance / steps) if steps else math.inf
    alone = sum(rounded) / len(rounded) if rounded else largest
    return min(max(_COARSEST * largest, _WIDENED * alone), max(_FINEST * largest, near))


def _paid_steps(event: Mapping[str, Any]) -> int:
    """Return the steps at full length that one unit pays for: those of its filter, which only full batches have."""
    steps, filtered = int(event["steps"]), event.get("filter_steps")
    if filtered is None:
        return steps
    if event["sample_rate"] != 1:
        raise ValueError(filtered)
    return min(steps, int(_positive(filtered)))


def _deviation(event: Mapping[str, Any]) -> float:
    """Return an upper bound on the standard deviation of a step's loss, at full batch."""
    if event["type"] == "gaussian":
        return 1 / _positive(event["noise_multiplier"])
    if event["type"] == "discrete-gaussian":
        return _positive(event["records"]) / _positive(event["scale"])
    return _positive(event["epsilon"])


def _loss(event: Mapping[str, Any], interval: float) -> PrivacyLossDistribution:
    """Return the privacy loss distribution of one event, under add/remove of one unit."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as losses

    kind = event["type"]
    if kind == "gaussian":
        if event["sampling"] != "poisson" and event["sample_rate"] != 1:
            raise ValueError(kind)
        one = losses.from_gaussian_mechanism(
            _positive(event["noise_multiplier"]),
            sampling_prob=float(event["sample_rate"]),
            value_discretization_interval=interval,
        )
        return one.self_compose(_paid_steps(event))
    if kind == "discrete-gaussian":
        few = losses.from_discrete_gaussian_mechanism(_positive(event["scale"]), value_discretization_interval=interval)
        return few.self_compose(int(event["tables"]))
    if kind in ("pure", "approximate"):
        parameters = common.DifferentialPrivacyParameters(_positive(event["epsilon"]), float(event.get("delta", 0.0)))
        return losses.from_privacy_parameters(parameters, value_discretization_interval=interval)
    raise ValueError(kind)


_SMOOTH = 4.0  # above it the discrete Gaussian's losses are the Gaussian's to many digits


def _spread(event: Mapping[str, Any]) -> float:
    """Return the approximate size of an event's losses."""
    if event["type"] == "gaussian":
        return _of_gaussian(_positive(event["noise_multiplier"]))
    if event["type"] == "discrete-gaussian":
        return _of_gaussian(_positive(event["scale"]) / _positive(event["records"]))
    return _positive(event["epsilon"])


def _of_gaussian(multiplier: float) -> float:
    return 1 / multiplier + 1 / (2 * multiplier**2)


def _positive(number: Any) -> float:
    found = float(number)
    if not 0 < found < math.inf:
        raise ValueError(number)
    return found
