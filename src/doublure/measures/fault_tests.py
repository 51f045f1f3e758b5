"""Fault tests: shares of records that show a fault, compared with those of correct runs.

Tests of one kind of data stand in its own folder. Here are those shared by rows and series, and the decision.

Several correct runs differ by the noise of their fits. So a share x is taken to z = arcsin √x, whose variance hardly
depends on x (Anscombe 1948), and compared with the runs' mean by t = (z - mean) / (s √(1 + 1/R)): a prediction
interval for one more run. R runs say little about their own variance. So s² is the mean of a test's own variance and
that of its family: the same question asked of each class, or of all records. Both are worth the same degrees of
freedom, and together no more than eight, because shares of fits have heavier tails than a normal. A prior that the
family alone decides (Smyth 2004) flagged a tenth of correct fits on digits (docs/evidence/journal/inspection.md). s² is
never below the variance of the draw of records, 1 / (4 N).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from doublure.errors import printable
from doublure.intervals import Interval, Result, wilson
from doublure.support.arrays import Floats

MARGIN = 0.05
"""Difference from a single correct run, as a share of records, below which nothing counts."""

RARER = 0.5
"""A class is rarer if its share is below this fraction of a single correct run's."""

LEVEL = 0.01
"""Largest p-value that counts, after Holm's correction for all fault tests."""

POINTED_AT = 0.1
"""Without a correct run: the share above which records count as faulty."""

DEGREES = 8
"""Most degrees of freedom of a test against several correct runs.

Student's t of eight has an excess kurtosis of 1.5. Over a hundred correct fits on digits one test in ten came near it
or passed it. With the degrees of twenty correct runs, every twentieth correct fit was flagged.
"""

FEW = 5
"""Number of correct runs below which only gross differences count: Student's t has too few degrees of freedom."""

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
        usual: The limit of correct runs: a share beyond it is found, whatever the other tests say; null with one or
            none.
        p: p-value after Holm's correction: of one more correct run having this share; with a single correct run, of
            the share being within the margin of its own. Null without a correct run, or where the only one is too
            rough.
        found: Whether the test finds the fault.
        classes: Label -> the share of its records; empty without labels.
        of_class: The class whose records alone are tested; null where all are.
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
    of_class: str | None = None


@dataclass(frozen=True, kw_only=True)
class FaultStatistic:
    """Records of each set that show a fault, the inspected set first.

    Attributes:
        clause: The fault, as the rest of a sentence that begins with "some of the records".
        meaning: One sentence for a reader new to the test.
        shown: For each set ``(N,)`` whether a record shows the fault.
        fewer: Whether a low share is the fault.
        learned: Whether the test was fitted on records of the first correct run, which favours its own records.
        family: Name of the tests whose runs vary alike: one question of each class; "" for those of all records.
        of_class: The class whose records alone are tested.
    """

    clause: str
    meaning: str
    shown: Sequence[Mask]
    fewer: bool = False
    learned: bool = False
    family: str = ""
    of_class: str | None = None

    @cached_property
    def shares(self) -> tuple[float, ...]:
        """Share of each set."""
        return tuple(float(each.mean()) if len(each) else 0.0 for each in self.shown)

    @property
    def worst(self) -> int:
        """Index of the correct run that looks most faulty."""
        places = range(1, len(self.shown))
        return (min if self.fewer else max)(places, key=lambda place: self.shares[place])

    @property
    def surprise(self) -> float:
        """The p-value of the hypothesis that the only correct run shows as many, within the margin."""
        inspected, right = self.shown[0], self.shown[1]
        if self.fewer:
            return p_beyond(right, inspected, part=RARER)
        return p_beyond(inspected, right, margin=MARGIN)

    @cached_property
    def angles(self) -> Floats:
        """``(1 + R,)`` the variance-stabilised shares of the inspected run and of the correct ones it is held against.

        The run that a test was fitted on is left out where two others are left.
        """
        favoured = self.learned and len(self.shown) > 3
        held = [self.shown[0], *self.shown[2 if favoured else 1 :]]
        return np.array([_angle(int(each.sum()), len(each)) for each in held])

    @property
    def degrees(self) -> int:
        """Degrees of freedom of the correct runs' own variance."""
        return len(self.angles) - 2

    @cached_property
    def variance(self) -> float:
        """The correct runs' own variance, at least that of the draw of as many records as the smallest set has."""
        fewest = min(len(each) for each in self.shown)
        return max(float(np.var(self.angles[1:], ddof=1)), 1 / (4 * fewest + 2))


class Family(NamedTuple):
    """The mean variance of tests whose runs vary alike, and how many tests they are."""

    variance: float
    tests: int

    @classmethod
    def of(cls, signs: Sequence[FaultStatistic]) -> Self:
        """Return the family of these tests."""
        return cls(float(np.mean([sign.variance for sign in signs])), len(signs))

    def predict(self, sign: FaultStatistic) -> tuple[float, int]:
        """Return the standard error of one more run, and its degrees of freedom."""
        runs, degrees = len(sign.angles) - 1, sign.degrees
        if self.tests > 1:
            degrees = min(2 * degrees, DEGREES)
        return math.sqrt((sign.variance + self.variance) / 2 * (1 + 1 / runs)), degrees


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
    several = any(len(sign.shown) > 2 for sign in signs.values())
    limits = dict[str, float]()
    corrected = dict[str, float]()
    if tested and several:
        families = defaultdict[str, list[FaultStatistic]](list)
        for sign in signs.values():
            families[sign.family].append(sign)
        shared = {name: Family.of(members) for name, members in families.items()}
        found = {key: _among_runs(sign, shared[sign.family], LEVEL / len(signs)) for key, sign in signs.items()}
        corrected = holm({key: p for key, (p, _) in found.items()})
        limits = {key: limit for key, (_, limit) in found.items()}
    elif tested:
        corrected = holm({key: sign.surprise for key, sign in signs.items()})
    return tuple(_decide(key, sign, corrected.get(key), limits.get(key), codes, labels) for key, sign in signs.items())


def _among_runs(sign: FaultStatistic, family: Family, level: float) -> tuple[float, float]:
    """Return the p-value of one more correct run having the inspected share, and the share where it is ``level``."""
    from scipy.special import stdtr, stdtrit

    error, degrees = family.predict(sign)
    way, middle = (-1 if sign.fewer else 1), float(sign.angles[1:].mean())
    p = float(stdtr(degrees, -way * (sign.angles[0] - middle) / error))
    reach = -float(stdtrit(degrees, level)) * error
    limit = min(max(middle + way * reach, 0.0), math.pi / 2)
    return p, math.sin(limit) ** 2


def _angle(shown: int, records: int) -> float:
    """Return the variance-stabilised share of some records.

    References:
        Anscombe (1948), The transformation of Poisson, binomial and negative-binomial data.
    """
    return math.asin(math.sqrt((shown + 0.375) / (records + 0.75)))


def _decide(
    key: str,
    sign: FaultStatistic,
    p: float | None,
    limit: float | None,
    codes: np.ndarray[Any, np.dtype[np.int64]] | None,
    labels: Sequence[str],
) -> FaultTest:
    shown, right = sign.shown[0], len(sign.shown) > 1
    interval = wilson(int(shown.sum()), len(shown))
    pointed_at = not right and interval is not None and interval[0] > POINTED_AT
    whole = codes is not None and not sign.fewer and sign.of_class is None
    present = [code for code in range(len(labels)) if np.any(codes == code)] if whole else []
    return FaultTest(
        key=key,
        clause=sign.clause,
        meaning=sign.meaning,
        share=sign.shares[0],
        fewer=sign.fewer,
        interval=interval,
        references=sign.shares[1:],
        reference=sign.shares[sign.worst] if right else None,
        usual=limit,
        p=p,
        found=pointed_at if p is None else p < LEVEL,
        classes={labels[code]: float(shown[codes == code].mean()) for code in present},
        of_class=sign.of_class,
    )


def class_by_class(
    signs: Mapping[str, FaultStatistic], codes: Sequence[np.ndarray[Any, np.dtype[np.int64]]], labels: Sequence[str]
) -> dict[str, FaultStatistic]:
    """Return each statistic for the records of each class alone; the classes are a family.

    A class that one of the sets has no record of is left out.

    Args:
        signs: Statistics of all records.
        codes: For each set ``(N,)`` the class of each record.
        labels: The classes.
    """
    whole = [code for code in range(len(labels)) if all(np.any(own == code) for own in codes)]
    return {
        f"{key}_of_{code}": FaultStatistic(
            clause=sign.clause,
            meaning=sign.meaning,
            shown=[shown[own == code] for shown, own in zip(sign.shown, codes, strict=True)],
            learned=sign.learned,
            family=f"{key} by class",
            of_class=labels[code],
        )
        for key, sign in signs.items()
        for code in whole
    }


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
