"""Risk of a linkage attack: its gain on seen records over the same attack on unseen ones.

risk = (attack − control) / (1 − control), from rates with Wilson's intervals (Giomi et al. 2023, §3.2; Wilson 1927). An
attack no better than one without the synthetic records shows nothing, and its result says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from doublure.attack.attack_data import AttackData
from doublure.attack.results import AttackResult, RateEstimate, ThreatModel
from doublure.intervals import Interval, wilson

MEASURE = "risk"
DESIRED = "0: members are hit no more often than others"


@dataclass(frozen=True, kw_only=True)
class HitCounts:
    """Numbers of successes of an attack.

    Attributes:
        attack: On seen records.
        control: On unseen records.
        baseline: On seen records, without the synthetic ones.
        trials: Number of trials of each.
    """

    attack: int
    control: int
    baseline: int
    trials: int


def risk(attack: int, control: int, trials: int) -> tuple[float, Interval]:
    """Return the risk and its 95 % interval, by propagation of the half-widths of two Wilson intervals.

    Example:
        >>> value, (low, high) = risk(60, 20, 100)
        >>> round(value, 2), round(low, 2), round(high, 2)
        (0.49, 0.36, 0.62)
    """
    (a, half_a), (c, half_c) = (_wilson(hits, trials) for hits in (attack, control))
    value = (a - c) / (1 - c)
    half = math.hypot(half_a / (1 - c), half_c * (a - 1) / (1 - c) ** 2)
    return max(0.0, value), (max(0.0, value - half), min(1.0, max(0.0, value + half)))


def _wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return the centre and the half-width of Wilson's interval."""
    low, high = wilson(hits, trials) or (0.0, 1.0)
    return (low + high) / 2, (high - low) / 2


def make_result(threat_model: ThreatModel, data: AttackData, hits: HitCounts, note: str) -> AttackResult:
    """Return the result of a linkage attack."""
    n = hits.trials
    value, interval = risk(hits.attack, hits.control, n)
    notes = [note]
    if hits.attack <= hits.baseline:
        notes.append("Not informative: the attack hits no more often than guessing without the synthetic records.")
    elif interval[0] == 0:
        notes.append(
            "Other records are hit as often as members, as far as this many attempts can tell: the attack gains from "
            "what is true of everybody, not from who was in the data. The upper end of the interval is not ruled out."
        )
    counts = {
        "members hit": hits.attack,
        "other records hit (control)": hits.control,
        "members hit by guessing (baseline)": hits.baseline,
    }
    return AttackResult(
        threat_model=threat_model,
        measure=MEASURE,
        value=value,
        interval=interval,
        baseline=risk(hits.baseline, hits.control, n)[0],
        desired=DESIRED,
        rates=tuple(RateEstimate(name=name, value=hit / n, interval=wilson(hit, n)) for name, hit in counts.items()),
        claim=data.claim,
        notes=tuple(notes),
    )
