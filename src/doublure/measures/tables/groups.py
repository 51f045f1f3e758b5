"""Subgroup accuracy: for each public group, after training on synthetic and on real rows.

A group is a value of a discrete column with few of them. A model trained on synthetic rows that is as good as one
trained on real rows on the whole can still be much worse for a small group: noise hides the few before the many.
"""

from __future__ import annotations

from collections.abc import Mapping

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
        clear: Whether the loss is above 0 even after allowing for how many groups were looked at (Bonferroni).
        share: The group's share of the synthetic rows, beside the real training rows'.
    """

    column: str | None
    value: str | None
    rows: int
    accuracy: Score
    real_interval: Interval | None
    loss: float
    loss_interval: Interval | None
    clear: bool
    share: Score | None = None


class Groups(Result):
    """All groups, the worst served first.

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
    right: dict[TrainedOn, np.ndarray[tuple[int], np.dtype[np.bool_]]] = {
        role: guess == training_sets.truth for role, guess in guesses.items()
    }
    columns = [
        name
        for name, column, size in zip(coder.names, coder.columns.values(), coder.sizes, strict=True)
        if column.discrete and name != target.column and size - 1 <= MOST_VALUES
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
        found.append(_group(name, value, {role: hits[rows] for role, hits in right.items()}, level, shares))
    return Groups(
        everybody=_group(None, None, right, LEVEL, None),
        groups=tuple(sorted(found, key=lambda group: (-group.loss, group.rows))),
        columns=tuple(columns),
        too_small=too_small,
    )


def _group(
    column: str | None,
    value: str | None,
    right: Mapping[TrainedOn, np.ndarray[tuple[int], np.dtype[np.bool_]]],
    level: float,
    shares: Mapping[TrainedOn, float] | None,
) -> Group:
    n = len(right["value"])
    hits: dict[str, int] = {role: int(found.sum()) for role, found in right.items()}
    only_real = int((right["real"] & ~right["value"]).sum())
    only_synthetic = int((right["value"] & ~right["real"]).sum())
    strict = paired_difference(only_real, only_synthetic, n, level=level)
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
        clear=strict is not None and strict[0] > 0,
        share=share,
    )
