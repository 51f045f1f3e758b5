"""What may be wrong with synthetic records, and how sure it is: shares of them, held against those of other runs.

The signs themselves depend on the kind of data and stand in its own folder; what is made of them stands here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, mean, stdev
from typing import Any, TypeAlias

import numpy as np

from doublure.intervals import Interval, Result, wilson

MARGIN = 0.05
"""What two runs may differ by, in shares of records, before a difference counts."""

RARER = 0.5
"""A class is rarer if its share is below this part of another run's."""

LEVEL = 1e-3
"""What p must be below, after Holm's correction for all fault tests."""

POINTED_AT = 0.1
"""Without another run, the share that is pointed at once the records surely pass it."""

USUAL = 0.99
"""Of right runs, how many lie where several of them say that right runs lie, if their shares spread normally."""

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class FaultTest(Result):
    """One way in which records can be wrong, and how many are.

    Attributes:
        key: A stable name for programs.
        clause: What these records do, after "some of the records".
        meaning: One sentence for a reader who meets it for the first time.
        share: Of the inspected records, those that are wrong in this way; for a class that may be too rare, its own.
        fewer: Whether fewer than usual would be wrong, as of a class; otherwise more.
        interval: Wilson's, 95 of 100, over the draw of records.
        references: The same shares of the runs that are known to be right.
        reference: The worst of these; null without one.
        usual: How far 99 in 100 right runs would go, as several say; null where there is one or none.
        p: How surprising such a difference would be if it were within the margin, after Holm's correction; null without
            another run, or where a single one is too rough.
        found: Whether it stands out.
        classes: Label -> the share of its records; empty without labels.
    """

    key: str
    clause: str
    meaning: str
    share: float
    fewer: bool = False
    interval: Interval | None
    references: tuple[float, ...] = ()
    reference: float | None = None
    usual: float | None = None
    p: float | None = None
    found: bool
    classes: Mapping[str, float] = {}

    @property
    def open(self) -> bool:
        """Whether it would stand out, if right runs did not differ so much, or more of them said what is usual."""
        return self.p is not None and self.p < LEVEL and not self.found


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Which records of each set that is looked at show a sign, the inspected set first.

    Attributes:
        clause: What these records do, after "some of the records".
        meaning: One sentence for a reader who meets it for the first time.
        shown: For each set ``(N,)`` whether a record shows it.
        fewer: Whether fewer than usual would be wrong.
        learned: Whether it was learned of records like the first right run's, whose own look better for it.
    """

    clause: str
    meaning: str
    shown: Sequence[Mask]
    fewer: bool = False
    learned: bool = False

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """The share of each set."""
        return tuple(float(each.mean()) for each in self.shown)

    @property
    def worst(self) -> int:
        """Which set, of those of right runs, looks most as if it were wrong."""
        places = range(1, len(self.shown))
        return (min if self.fewer else max)(places, key=lambda place: self.shares[place])

    @property
    def surprise(self) -> float:
        """The p-value of: the worst right run shows as many, within the margin."""
        inspected, right = self.shown[0], self.shown[self.worst]
        if self.fewer:
            return p_beyond(right, inspected, part=RARER)
        return p_beyond(inspected, right, margin=MARGIN)

    @cached_property
    def usual(self) -> float | None:
        """How far right runs go: the end of a normal prediction interval for one more of them."""
        from scipy.stats import t as student_t

        right = self.shares[1:]
        if len(right) < 2:
            return None
        if self.learned and len(right) > 2:
            right = right[1:]
        reach = float(student_t.ppf(USUAL, len(right) - 1)) * stdev(right) * math.sqrt(1 + 1 / len(right))
        return max(0.0, mean(right) - reach) if self.fewer else min(1.0, mean(right) + reach)

    @property
    def unusual(self) -> bool:
        """Whether the inspected run goes further than that; of a single right run it is not known."""
        if self.usual is None:
            return True
        return self.shares[0] < self.usual if self.fewer else self.shares[0] > self.usual


def judged(
    signs: Mapping[str, Evidence],
    *,
    tested: bool,
    codes: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    labels: Sequence[str] = (),
) -> tuple[FaultTest, ...]:
    """Return the verdict on each sign.

    Args:
        signs: By a stable name.
        tested: Whether there are right runs that are fit to be tested by.
        codes: ``(N,)`` the class of each inspected record, for shares by class.
        labels: The classes.
    """
    corrected = holm({key: sign.surprise for key, sign in signs.items()}) if tested else {}
    return tuple(_judged(key, sign, corrected.get(key), codes, labels) for key, sign in signs.items())


def _judged(
    key: str,
    sign: Evidence,
    p: float | None,
    codes: np.ndarray[Any, np.dtype[np.int64]] | None,
    labels: Sequence[str],
) -> FaultTest:
    shown, right = sign.shown[0], len(sign.shown) > 1
    interval = wilson(int(shown.sum()), len(shown))
    pointed_at = not right and interval is not None and interval[0] > POINTED_AT
    present = [] if codes is None or sign.fewer else [code for code in range(len(labels)) if np.any(codes == code)]
    return FaultTest(
        key=key,
        clause=sign.clause,
        meaning=sign.meaning,
        share=sign.shares[0],
        fewer=sign.fewer,
        interval=interval,
        references=sign.shares[1:],
        reference=sign.shares[sign.worst] if right else None,
        usual=sign.usual,
        p=p,
        found=pointed_at if p is None else p < LEVEL and sign.unusual,
        classes={labels[code]: float(shown[codes == code].mean()) for code in present},
    )


# -- how sure it is --------------------------------------------------------------------------------------------------


def p_beyond(more: Mask, fewer: Mask, *, margin: float = 0.0, part: float = 1.0) -> float:
    """Return the p-value of: ``part`` of the first share is no more than the second share and a margin.

    Args:
        more: ``(N,)`` whether each is of the kind that is counted.
        fewer: ``(M,)`` likewise, of others.
        margin: In shares.
        part: Of the first share.

    References:
        Agresti & Caffo (2000), Simple and effective confidence intervals for proportions and differences of
        proportions: Wald's test after adding a success and a failure to each sample.

    Example:
        >>> quarter, none = np.arange(1000) < 250, np.zeros(1000, dtype=bool)
        >>> p_beyond(quarter, none, margin=0.05) < 1e-9, p_beyond(none, quarter, margin=0.05) > 0.999
        (True, True)
    """
    first, second = (float(each.sum() + 1) / (len(each) + 2) for each in (more, fewer))
    variance = part**2 * first * (1 - first) / (len(more) + 2) + second * (1 - second) / (len(fewer) + 2)
    # The far tail of a difference from 1 would be 0.
    return NormalDist().cdf(-(part * first - second - margin) / math.sqrt(variance))


def holm(found: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for their number.

    References:
        Holm (1979), A simple sequentially rejective multiple test procedure.

    Example:
        >>> holm({"one": 0.01, "two": 0.03, "three": 0.02})
        {'one': 0.03, 'three': 0.04, 'two': 0.04}
    """
    corrected, largest = {}, 0.0
    for place, key in enumerate(sorted(found, key=lambda each: found[each])):
        largest = max(largest, min(1.0, (len(found) - place) * found[key]))
        corrected[key] = largest
    return corrected
