"""Subgroup accuracy of downstream classifiers trained on synthetic and on real rows.

A group is a value of a discrete column with few values. A model trained on synthetic rows can match one trained on
real rows overall and still be much worse for a small group: noise hides small groups first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from doublure.intervals import LEVEL, Interval, Result, paired_difference, wilson
from doublure.measures.classification import Labels
from doublure.measures.scores import Score, rate_score
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.features import TargetClasses
from doublure.measures.tables.utility import TrainedOn, TrainingSets

FEWEST_ROWS = 50
"""Smallest number of test rows of a group: below, its intervals would say nothing."""

MOST_VALUES = 20
"""Most values of a column that form groups."""

_Marks: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class Subgroup(Result):
    """One group.

    Attributes:
        column: The column; null for all test rows together.
        value: Its value; null for all test rows together.
        rows: Number of its test rows.
        accuracy: Accuracy of gradient boosting trained on synthetic rows, beside the other training sets.
        real_interval: The interval of the accuracy after training on real rows.
        loss: Accuracy lost against training on real rows, in shares of the group's rows.
        loss_interval: Its interval, paired over the same rows.
        excess: The loss beyond that of all test rows; 0 for all test rows together.
        excess_interval: Its interval.
        clear: Whether the excess is significant after correction for the number of groups (Bonferroni).
        share: The group's share of the synthetic rows, beside the real training rows'.
    """

    column: str | None
    value: str | None
    rows: int
    accuracy: Score
    real_interval: Interval | None
    loss: float
    loss_interval: Interval | None
    excess: float
    excess_interval: Interval | None
    clear: bool
    share: Score | None = None


class Subgroups(Result):
    """All groups, the largest loss first.

    Attributes:
        everybody: All test rows together.
        groups: Each group.
        columns: The columns that form groups.
        too_small: Number of groups with fewer than ``FEWEST_ROWS`` test rows.
    """

    everybody: Subgroup
    groups: tuple[Subgroup, ...]
    columns: tuple[str, ...]
    too_small: int


def by_group(
    coder: Coder,
    target: TargetClasses,
    training_sets: TrainingSets,
    guesses: Mapping[TrainedOn, Labels],
    tables: Mapping[TrainedOn, Coded],
) -> Subgroups:
    """Return the accuracy for every group.

    Args:
        coder: Reads the schema.
        target: Forms no groups itself.
        training_sets: The test rows and their classes.
        guesses: Predictions of gradient boosting for the test rows, by training set.
        tables: Tables for the groups' shares: synthetic rows, independent columns and real training rows.
    """
    right: dict[TrainedOn, _Marks] = {role: guess == training_sets.truth for role, guess in guesses.items()}
    columns = [
        name
        for name, column, size in zip(coder.names, coder.columns.values(), coder.sizes, strict=True)
        if column.listed and name != target.column and size - 1 <= MOST_VALUES
    ]
    members = {}
    too_small = 0
    for name in columns:
        codes = training_sets.test.codes[:, coder.names.index(name)]
        for code, value in enumerate(coder.labels(name)):
            rows = codes == code
            if rows.sum() >= FEWEST_ROWS:
                members[name, code, value] = rows
            else:
                too_small += bool(rows.any())
    level = 1 - (1 - LEVEL) / max(1, len(members))
    found = []
    for (name, code, value), rows in members.items():
        place = coder.names.index(name)
        shares = {role: float((table.codes[:, place] == code).mean()) for role, table in tables.items()}
        found.append(_group(name, value, right, rows, level, shares))
    return Subgroups(
        everybody=_group(None, None, right, np.ones(len(training_sets.truth), dtype=np.bool_), LEVEL, None),
        groups=tuple(sorted(found, key=lambda group: (-group.loss, group.rows))),
        columns=tuple(columns),
        too_small=too_small,
    )


def excess_loss(right: Mapping[TrainedOn, _Marks], rows: _Marks, level: float) -> tuple[float, Interval | None]:
    """Return a group's loss beyond that of all test rows, and its interval.

    All test rows are the group and the rest, so the excess is the difference of these two, times the rest's share. Both
    are measured on their own rows, paired.

    Args:
        right: By training set, an ``(N,)`` mask of the test rows predicted correctly.
        rows: ``(N,)`` mask of the group's rows.
        level: The interval's coverage.

    Returns:
        The excess in shares of rows, and its interval; 0 and none where the group is all test rows.

    References:
        Zou & Donner (2008), Construction of confidence limits about effect measures: the limits of a difference from
        those of its two parts.
    """
    losses: list[float] = []
    limits: list[Interval] = []
    for part in (rows, ~rows):
        only_real, only_synthetic = _swapped(right, part)
        ends = paired_difference(only_real, only_synthetic, int(part.sum()), level=level)
        if ends is None:
            return 0.0, None
        losses.append((only_real - only_synthetic) / int(part.sum()))
        limits.append(ends)
    rest, excess = float((~rows).mean()), losses[0] - losses[1]
    low = excess - math.hypot(losses[0] - limits[0][0], limits[1][1] - losses[1])
    high = excess + math.hypot(limits[0][1] - losses[0], losses[1] - limits[1][0])
    return rest * excess, (rest * low, rest * high)


def _swapped(right: Mapping[TrainedOn, _Marks], rows: _Marks) -> tuple[int, int]:
    """Return the number of rows that only training on real rows predicts correctly, and only training on synthetic."""
    real, own = right["real"][rows], right["value"][rows]
    return int((real & ~own).sum()), int((own & ~real).sum())


def _group(
    column: str | None,
    value: str | None,
    right: Mapping[TrainedOn, _Marks],
    rows: _Marks,
    level: float,
    shares: Mapping[TrainedOn, float] | None,
) -> Subgroup:
    n = int(rows.sum())
    hits: dict[str, int] = {role: int(found[rows].sum()) for role, found in right.items()}
    only_real, only_synthetic = _swapped(right, rows)
    excess, interval = excess_loss(right, rows, LEVEL)
    strict = excess_loss(right, rows, level)[1]
    share = None
    if shares is not None:
        share = Score(
            key="share",
            name="share",
            value=shares["value"],
            goal="near",
            range=(0.0, 1.0),
            baseline=shares["baseline"],
            real=shares["real"],
        )
    return Subgroup(
        column=column,
        value=value,
        rows=n,
        accuracy=rate_score("accuracy", "accuracy", hits, n),
        real_interval=wilson(hits["real"], n),
        loss=(only_real - only_synthetic) / n,
        loss_interval=paired_difference(only_real, only_synthetic, n),
        excess=excess,
        excess_interval=interval,
        clear=strict is not None and strict[0] > 0,
        share=share,
    )
