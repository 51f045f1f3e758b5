"""Subgroup accuracy: for each public group, after training on synthetic and on real rows.

A group is a value of a discrete column with few of them. A model trained on synthetic rows that is as good as one
trained on real rows on the whole can still be much worse for a small group: noise hides the few before the many.
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
from doublure.measures.tables.features import Target
from doublure.measures.tables.utility import TrainedOn, TrainingSets

FEWEST_ROWS = 50
"""Groups with fewer test rows are left out: their intervals would say nothing."""

MOST_VALUES = 20
"""Columns with more values form no groups."""

_Marks: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class Group(Result):
    """One group.

    Attributes:
        column: The column, and
        value: its value; both null for all test rows together.
        rows: How many test rows belong to it.
        accuracy: Of gradient boosting trained on synthetic rows, beside the other training sets.
        real_interval: The interval of the accuracy after training on real rows.
        loss: By how much training on real rows is better, in shares of the group's rows.
        loss_interval: Its interval, from the same rows twice (paired).
        excess: By how much the loss passes everybody's; 0 for all test rows together.
        excess_interval: Its interval.
        clear: Whether it passes everybody's even after allowing for how many groups were looked at (Bonferroni).
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


class Groups(Result):
    """All groups, the one that loses most first.

    Attributes:
        everybody: All test rows.
        groups: Each group.
        columns: The columns that form groups.
        too_small: How many groups had fewer than ``FEWEST_ROWS`` test rows.
    """

    everybody: Group
    groups: tuple[Group, ...]
    columns: tuple[str, ...]
    too_small: int


def by_group(
    coder: Coder,
    target: Target,
    training_sets: TrainingSets,
    guesses: Mapping[TrainedOn, Labels],
    tables: Mapping[TrainedOn, Coded],
) -> Groups:
    """Return how every group is served.

    Args:
        coder: Reads the schema.
        target: Forms no groups itself.
        training_sets: The test rows and their classes.
        guesses: What gradient boosting predicted for the test rows from each training set.
        tables: Where the groups' shares come from: synthetic rows, independent columns and real training rows.
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
    return Groups(
        everybody=_group(None, None, right, np.ones(len(training_sets.truth), dtype=np.bool_), LEVEL, None),
        groups=tuple(sorted(found, key=lambda group: (-group.loss, group.rows))),
        columns=tuple(columns),
        too_small=too_small,
    )


def excess_loss(right: Mapping[TrainedOn, _Marks], rows: _Marks, level: float) -> tuple[float, Interval | None]:
    """Return by how much a group loses more than everybody does, and its interval.

    Everybody is the group and the rest, so that the excess is the difference of these two, times the rest's share. Both
    are measured on rows of their own, each row twice (paired).

    Args:
        right: Of each training set ``(N,)`` which test rows are predicted right.
        rows: ``(N,)`` which of them the group has.
        level: The interval's coverage.

    Returns:
        The excess in shares of rows, and its interval; 0 and none where nobody else is there.

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
    """Return how many rows only training on real rows gets right, and how many only training on synthetic rows does."""
    real, own = right["real"][rows], right["value"][rows]
    return int((real & ~own).sum()), int((own & ~real).sum())


def _group(
    column: str | None,
    value: str | None,
    right: Mapping[TrainedOn, _Marks],
    rows: _Marks,
    level: float,
    shares: Mapping[TrainedOn, float] | None,
) -> Group:
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
    return Group(
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
