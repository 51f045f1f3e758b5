"""Fault tests: shares of records that show a fault, compared with those of correct runs.

Tests of one kind of data stand in its own folder. Here are those shared by rows and series, and the decision.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist, mean, stdev
from typing import Any, TypeAlias

import numpy as np

from doublure.encode.columns import Floats
from doublure.errors import printable
from doublure.intervals import Interval, Result, wilson

MARGIN = 0.05
"""Difference between two runs, as a share of records, below which nothing counts."""

RARER = 0.5
"""A class is rarer if its share is below this fraction of another run's."""

LEVEL = 1e-3
"""Largest p-value that counts, after Holm's correction for all fault tests."""

POINTED_AT = 0.1
"""Without a correct run: the share above which records count as faulty."""

USUAL = 0.99
"""Coverage of the prediction interval over several correct runs, if their shares are normal."""

_PLACES = 10
_TAIL = 0.01

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class FaultTest(Result):
    """One possible fault of records, and how many show it.

    Attributes:
        key: A stable name for programs.
        clause: The fault, as the rest of a sentence that begins with "some of the records".
        meaning: One sentence for a reader new to the test.
        share: The share of the inspected records with the fault; for a class that may be too rare, its own share.
        fewer: Whether a low share is the fault, as for a class; otherwise a high one.
        interval: Wilson's 95 % interval over the draw of records.
        references: The shares of the correct runs.
        reference: The worst of these; null without one.
        usual: The limit that 99 in 100 correct runs would keep, as several show; null with one or none.
        p: p-value of the share being within the margin of the reference, after Holm's correction; null without a
            correct run, or where the only one is too rough.
        found: Whether the test finds the fault.
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
        """Whether the fault would be found if correct runs varied less, or if there were more of them."""
        return self.p is not None and self.p < LEVEL and not self.found


@dataclass(frozen=True, kw_only=True)
class FaultStatistic:
    """Records of each set that show a fault, the inspected set first.

    Attributes:
        clause: The fault, as the rest of a sentence that begins with "some of the records".
        meaning: One sentence for a reader new to the test.
        shown: For each set ``(N,)`` whether a record shows the fault.
        fewer: Whether a low share is the fault.
        learned: Whether the test was fitted on records of the first correct run, which favours its own records.
    """

    clause: str
    meaning: str
    shown: Sequence[Mask]
    fewer: bool = False
    learned: bool = False

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """Share of each set."""
        return tuple(float(each.mean()) for each in self.shown)

    @property
    def worst(self) -> int:
        """Index of the correct run that looks most faulty."""
        places = range(1, len(self.shown))
        return (min if self.fewer else max)(places, key=lambda place: self.shares[place])

    @property
    def surprise(self) -> float:
        """The p-value of the hypothesis that the worst correct run shows as many, within the margin."""
        inspected, right = self.shown[0], self.shown[self.worst]
        if self.fewer:
            return p_beyond(right, inspected, part=RARER)
        return p_beyond(inspected, right, margin=MARGIN)

    @cached_property
    def usual(self) -> float | None:
        """Limit of correct runs: the end of a normal prediction interval for one more of them."""
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
        """Whether the inspected run exceeds that limit; true where a single correct run gives none."""
        if self.usual is None:
            return True
        return self.shares[0] < self.usual if self.fewer else self.shares[0] > self.usual


def decide(
    signs: Mapping[str, FaultStatistic],
    *,
    tested: bool,
    codes: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    labels: Sequence[str] = (),
) -> tuple[FaultTest, ...]:
    """Return the decision on each statistic.

    Args:
        signs: Statistics by a stable name.
        tested: Whether there are correct runs fit for a test.
        codes: ``(N,)`` the class of each inspected record, for shares by class.
        labels: The classes.
    """
    corrected = holm({key: sign.surprise for key, sign in signs.items()}) if tested else {}
    return tuple(_decide(key, sign, corrected.get(key), codes, labels) for key, sign in signs.items())


def _decide(
    key: str,
    sign: FaultStatistic,
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


# -- tests of rows and of series -------------------------------------------------------------------------------------


def numeric_shift_tests(name: str, training: Floats, seen: Sequence[Floats], verb: str) -> dict[str, FaultStatistic]:
    """Return the tests for a changed unit or scale of a number; none where the number has no values.

    Args:
        name: Name of the column or channel.
        training: ``(N,)`` values of a correct run, NaN where missing.
        seen: The same of each run.
        verb: Verb of the clause: is, or has a mean.
    """
    there, shown = training[~np.isnan(training)], printable(name)
    if not len(there):
        return {}
    low, middle, high = np.quantile(there, (_TAIL, 0.5, 1 - _TAIL))
    shifts = {
        "outside": ("outside where 98 in 100 of a correct run lie", [(each < low) | (each > high) for each in seen]),
        "above": ("above the median of a correct run", [each > middle for each in seen]),
        "below": ("below the median of a correct run", [each < middle for each in seen]),
    }
    return {
        f"{key}_{name}": FaultStatistic(
            clause=f"are of those whose {shown} {verb} {where}",
            meaning="Another unit, another scale, or another source.",
            shown=masks,
        )
        for key, (where, masks) in shifts.items()
    }


def swap_tests(
    pair: tuple[str, str], training: tuple[Floats, Floats], seen: Sequence[tuple[Floats, Floats]]
) -> dict[str, FaultStatistic]:
    """Return the test for two swapped numbers.

    Args:
        pair: Their names.
        training: ``(N,)`` values each, of a correct run.
        seen: The same of each run.
    """
    both = np.concatenate(training)
    both = both[~np.isnan(both)]
    if not len(both):
        return {}
    edges = np.unique(np.quantile(both, np.linspace(0, 1, _PLACES + 1)[1:-1]))
    size = len(edges) + 1

    def places(values: tuple[Floats, Floats]) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], ...]:
        return tuple(np.searchsorted(edges, each, side="right").clip(0, size - 1) for each in values)

    first, second = places(training)
    counts = np.ones((size, size))
    np.add.at(counts, (first, second), 1)
    shown: list[Mask] = []
    for each in seen:
        one, other = places(each)
        there = ~(np.isnan(each[0]) | np.isnan(each[1]))
        shown.append((counts[other, one] > counts[one, other]) & there)
    names = " and ".join(printable(name) for name in pair)
    clause, meaning = (
        f"are likelier with {names} exchanged",
        "Two columns changed places, in a part of the rows or in all.",
    )
    return {f"exchanged_{pair[0]}_{pair[1]}": FaultStatistic(clause=clause, meaning=meaning, shown=shown, learned=True)}


def copy_tests(seen: Sequence[Floats], record: str) -> dict[str, FaultStatistic]:
    """Return the test for records copied from one another.

    Args:
        seen: ``(N, P)`` all numbers of each run's records, NaN where missing.
        record: The word for one record: row, or series.
    """
    shown: list[Mask] = []
    for each in seen:
        whole = np.nan_to_num(each, nan=np.inf)
        _, place, counts = np.unique(whole, axis=0, return_inverse=True, return_counts=True)
        shown.append(counts[place.ravel()] > 1)
    return {
        "alike": FaultStatistic(
            clause=f"are the same as another {record} of their run",
            meaning=f"One {record} stands where many should: it was copied, or the fit collapsed.",
            shown=shown,
        )
    }


# -- significance ----------------------------------------------------------------------------------------------------


def p_beyond(more: Mask, fewer: Mask, *, margin: float = 0.0, part: float = 1.0) -> float:
    """Return the p-value of the hypothesis that ``part`` of the first share is at most the second share plus a margin.

    Args:
        more: ``(N,)`` whether each record counts.
        fewer: ``(M,)`` the same for the other records.
        margin: In shares.
        part: Fraction of the first share.

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
    # The upper tail as 1 - cdf would round to 0.
    return NormalDist().cdf(-(part * first - second - margin) / math.sqrt(variance))


def holm(found: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for multiple tests.

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
