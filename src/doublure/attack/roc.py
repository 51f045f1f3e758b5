"""ROC curves of membership attacks, and the bound that a claim puts on them.

(ε, δ)-DP bounds the true positive rate at false positive rate a by min{e^ε a + δ, 1 − e^{−ε}(1 − δ − a)} (Kairouz, Oh,
Viswanath 2015), for every attacker. Logarithmic axes show the relevant region, high true positive rates at tiny false
positive rates (Carlini et al. 2022).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from doublure.attack import bounds
from doublure.intervals import LEVEL, Interval, Result, delong
from doublure.support.arrays import Floats

_LEAST_FALSE_ALARMS = 10
_MOST_POINTS = 200
_RATIO = 1.5
SHOWN_AT = (0.01, 0.001)

Curve: TypeAlias = tuple[tuple[float, float], ...]


class TprAtFpr(Result):
    """True positive rate at one false positive rate.

    Attributes:
        false_positives: The requested false positive rate.
        value: The true positive rate; null where there are too few non-members.
        interval: Clopper and Pearson's 95 % interval.
        allowed: The largest rate that the claim allows; null without a claim.
    """

    false_positives: float
    value: float | None
    interval: Interval | None
    allowed: float | None


class RocBand(Result):
    """Simultaneous 95 % band of an attacker's true curve: between two step functions.

    Attributes:
        lower: The true curve is at least this high from each of these false positive rates on.
        upper: The true curve is at most this high up to each of these.
    """

    lower: Curve
    upper: Curve

    def at(self, false_positives: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the band at ``(n,)`` false positive rates."""
        from_, least = np.array([(0.0, 0.0), *self.lower]).T
        until, most = np.array([*self.upper, (1.0, 1.0)]).T
        low = least[np.searchsorted(from_, false_positives, side="right") - 1]
        return low, most[np.searchsorted(until, false_positives, side="left")]


class RocCurve(Result):
    """An attacker's receiver operating characteristic.

    Attributes:
        curve: (false positive rate, true positive rate), thinned.
        band: The band of the curve with ever more targets; null where there are too few non-members.
        inside: Number of attacked members.
        outside: Number of attacked non-members.
        area: The area under the curve; 0.5 is guessing.
        interval: DeLong's 95 % interval.
        at: The curve at low false positive rates.
    """

    curve: Curve
    band: RocBand | None
    inside: int
    outside: int
    area: float
    interval: Interval | None
    at: tuple[TprAtFpr, ...]

    @property
    def begins(self) -> float:
        """Smallest false positive rate for which there are enough non-members; above 1 if there are never enough."""
        return _LEAST_FALSE_ALARMS / self.outside


def others_needed(false_positives: float) -> int:
    """Return the fewest non-members for a true positive rate at a false positive rate: ten that are taken for members.

    Example:
        >>> others_needed(0.01), others_needed(0.001)
        (1000, 10000)
    """
    return math.ceil(round(_LEAST_FALSE_ALARMS / false_positives, 6))


def ceiling(false_positives: float, epsilon: float, delta: float) -> float:
    """Return the largest true positive rate of any attacker under (ε, δ)-DP at this false positive rate.

    Example:
        >>> [round(ceiling(0.01, epsilon, 0.0), 3) for epsilon in (1, 2, 4)]
        [0.027, 0.074, 0.546]
    """
    return min(
        1.0,
        math.exp(epsilon) * false_positives + delta,
        1 - math.exp(-epsilon) * (1 - delta - false_positives),
    )


def roc(inside: Floats, outside: Floats, epsilon: float | None = None, delta: float | None = None) -> RocCurve:
    """Return the ROC curve of membership scores.

    Args:
        inside: ``(n,)`` scores of members.
        outside: ``(m,)`` scores of non-members.
        epsilon: The claimed ε, if any.
        delta: The claimed δ, likewise.
    """
    member = np.arange(len(inside) + len(outside)) < len(inside)
    area, interval = delong(member, np.concatenate([inside, outside]))
    found = []
    for share in SHOWN_AT:
        allowed = None if epsilon is None else ceiling(share, epsilon, delta or 0.0)
        value = ends = None
        if len(outside) >= others_needed(share):
            hits = int((inside > _threshold(outside, share)).sum())
            value, ends = hits / len(inside), clopper_pearson(hits, len(inside))
        found.append(TprAtFpr(false_positives=share, value=value, interval=ends, allowed=allowed))
    return RocCurve(
        curve=_curve(inside, outside),
        band=_band(inside, outside) if len(outside) > _LEAST_FALSE_ALARMS else None,
        inside=len(inside),
        outside=len(outside),
        area=0.5 if area is None else area,
        interval=interval,
        at=tuple(found),
    )


def clopper_pearson(hits: int, trials: int, confidence: float = 0.95) -> Interval:
    """Return Clopper and Pearson's interval of a rate.

    Example:
        >>> [round(end, 4) for end in clopper_pearson(0, 100)]
        [0.0, 0.0362]
    """
    alpha = (1 - confidence) / 2
    return 1 - bounds.upper_rate(trials - hits, trials, alpha), bounds.upper_rate(hits, trials, alpha)


def shown_epsilon(inside: Floats, outside: Floats, delta: float, rng: np.random.Generator) -> float:
    """Return the lower bound on ε that an attacker's scores show, at 95 % confidence.

    A threshold is chosen on one half of the scores. The other half gives the bound, by Clopper and Pearson's bounds on
    both error rates.

    Args:
        inside: ``(n,)`` scores of members.
        outside: ``(m,)`` scores of non-members.
        delta: δ of the claim.
        rng: Draws the halves.
    """
    halves = [np.array_split(rng.permutation(scores), 2) for scores in (inside, outside)]
    if min(len(half) for pair in halves for half in pair) < 2:
        return 0.0
    (choose_in, judge_in), (choose_out, judge_out) = halves

    def shown(rates: bounds.ErrorRates) -> float:
        return bounds.epsilon_from_rates(rates.upper_false_positives, rates.upper_false_negatives, delta)

    chosen = bounds.best_threshold(choose_in, choose_out, shown)
    return shown(bounds.error_rates(judge_in, judge_out, chosen))


def _threshold(outside: Floats, share: float) -> float:
    """Return a threshold that at most this share of the non-members exceeds."""
    place = math.floor(share * len(outside))
    return float(np.sort(outside)[::-1][place])


def _curve(inside: Floats, outside: Floats) -> Curve:
    thresholds = np.unique(np.concatenate([inside, outside]))[::-1]
    hits = 1 - np.searchsorted(np.sort(inside), thresholds, side="left") / len(inside)
    alarms = 1 - np.searchsorted(np.sort(outside), thresholds, side="left") / len(outside)
    kept = np.unique(np.concatenate([_even(len(thresholds)), _logarithmic(len(thresholds))]))
    points = [(0.0, 0.0), *((float(alarms[place]), float(hits[place])) for place in kept)]
    return _rounded(points)


def _band(inside: Floats, outside: Floats) -> RocBand:
    """Return the simultaneous band of the true curve.

    At some thresholds, each with a false positive rate fixed beforehand, both rates get Clopper and Pearson's bounds,
    with Bonferroni's correction. Between the thresholds the true curve can only rise.
    """
    ranked = np.sort(outside)[::-1]
    places = np.unique([0, *(math.floor(_RATIO**step) for step in range(math.ceil(math.log(len(outside), _RATIO))))])
    level = 1 - (1 - LEVEL) / (2 * len(places))
    lower, upper = set(), set()
    for threshold in ranked[places]:
        alarms = clopper_pearson(int((outside > threshold).sum()), len(outside), level)
        hits = clopper_pearson(int((inside > threshold).sum()), len(inside), level)
        lower.add((alarms[1], hits[0]))
        upper.add((alarms[0], hits[1]))
    return RocBand(lower=_rounded(sorted(lower)), upper=_rounded(sorted(upper)))


def _rounded(points: Iterable[tuple[float, float]]) -> Curve:
    return tuple((round(x, 6), round(y, 6)) for x, y in points)


def _even(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.linspace(0, n - 1, min(n, _MOST_POINTS)).round().astype(np.int64)


def _logarithmic(n: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.geomspace(1, n, min(n, _MOST_POINTS)).round().astype(np.int64) - 1
