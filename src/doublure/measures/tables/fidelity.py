"""Fidelity of synthetic rows to real ones: columns, pairs of columns, associations.

============  ================================================================================================
columns       total variation between the shares of each column's public bins and values
pairs         the same for the two-way table of each pair of columns
wasserstein   1-Wasserstein distance of a number, in shares of its public range
association   Cramér's V of each pair (one measure for numbers in bins and categories alike), bias-corrected, in the
              rows in which both have a value: two columns that are missing together say nothing of their values
============  ================================================================================================

Each figure stands beside that of independent columns and, as the floor, of real rows kept aside: even other real rows
are not at distance 0, because a finite table is a sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from doublure.intervals import Result
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.counts import CodeCounts, Pair, TwoWayCounts, count
from doublure.measures.tables.influence import association_influence, variation_influence, wasserstein_influence
from doublure.support.arrays import Floats

MOST_PAIRED = 60
"""Most columns whose pairs are compared; of more, a uniform sample."""

_WORST = 12


class ColumnFidelity(Result):
    """One column's distances to the real rows."""

    name: str
    kind: str
    variation: Score
    wasserstein: Score | None = None


class PairFidelity(Result):
    """One pair's total variation to the real rows."""

    names: tuple[str, str]
    variation: Score


class AssociationMatrices(Result):
    """Cramér's V between columns, in [0, 1]; each matrix is symmetric with ones on the diagonal."""

    columns: tuple[str, ...]
    real: tuple[tuple[float, ...], ...]
    synthetic: tuple[tuple[float, ...], ...]


class Fidelity(Result):
    """All distances of one table.

    Attributes:
        scores: The means over columns and pairs.
        columns: Each column, the furthest first.
        pairs: The pairs furthest from the real rows.
        n_pairs: Number of pairs compared.
        sampled_columns: Number of columns in the sample, where pairs come from one.
        association: Data of the heat maps.
    """

    scores: tuple[Score, ...]
    columns: tuple[ColumnFidelity, ...]
    pairs: tuple[PairFidelity, ...]
    n_pairs: int
    sampled_columns: int | None
    association: AssociationMatrices


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The four compared tables, over the same columns.

    Attributes:
        train: The real rows that were fitted.
        synthetic: Synthetic rows.
        baseline: Independent columns.
        holdout: Other real rows.
        resamples: Receives resampled figures.
    """

    train: Coded
    synthetic: Coded
    baseline: Coded
    holdout: Coded
    resamples: Resamples = field(default_factory=Resamples)

    def evened(self, rng: np.random.Generator) -> Tables:
        """Return the tables with one number of synthetic, independent and other real rows: the smallest of these.

        Fewer rows are further from the training rows by chance: of sets of unequal sizes, the smaller looks worse.

        Args:
            rng: Draws the rows that stay.
        """
        least = min(map(len, self.others.values()))

        def some(rows: Coded) -> Coded:
            return rows if len(rows) == least else rows.take(np.sort(rng.choice(len(rows), least, replace=False)))

        found = {role: some(rows) for role, rows in self.others.items()}
        return replace(self, synthetic=found["value"], baseline=found["baseline"], holdout=found["real"])

    @property
    def others(self) -> dict[str, Coded]:
        """The tables compared with the training rows."""
        return {"value": self.synthetic, "baseline": self.baseline, "real": self.holdout}


def compare(coder: Coder, tables: Tables, rng: np.random.Generator) -> tuple[Fidelity, CodeCounts]:
    """Return the distances, and the counts of the real rows.

    Args:
        coder: Gives the public bins.
        tables: The tables to compare.
        rng: Draws the columns whose pairs are compared, where there are more than ``MOST_PAIRED``.
    """
    names, sizes = coder.names, coder.sizes
    paired = np.arange(len(names))
    if len(names) > MOST_PAIRED:
        paired = np.sort(rng.choice(len(names), MOST_PAIRED, replace=False))
    pairs = [(int(left), int(right)) for left, right in combinations(paired, 2)]
    train = count(tables.train.codes, sizes, pairs)
    others = {role: count(table.codes, sizes, pairs) for role, table in tables.others.items()}
    columns = _columns(coder, tables, train, others)
    distances = {role: {pair: pair_variation(train, counts, pair) for pair in pairs} for role, counts in others.items()}
    matrices = {role: association_matrix(counts, [int(place) for place in paired]) for role, counts in others.items()}
    matrix = association_matrix(train, [int(place) for place in paired])
    scores = _scores(columns, distances, {role: _mean_gap(matrix, other) for role, other in matrices.items()})
    _resample(coder, tables, scores, pairs)
    fidelity = Fidelity(
        scores=tuple(tables.resamples.sure(score) for score in scores),
        columns=tuple(sorted(columns, key=lambda column: -(column.variation.value or 0.0))),
        pairs=_worst_pairs(names, distances),
        n_pairs=len(pairs),
        sampled_columns=MOST_PAIRED if len(names) > MOST_PAIRED else None,
        association=AssociationMatrices(
            columns=tuple(names[place] for place in paired),
            real=_rows(matrix),
            synthetic=_rows(matrices["value"]),
        ),
    )
    return fidelity, train


# -- distances -------------------------------------------------------------------------------------------------------


def variation(left: Floats, right: Floats) -> float:
    """Return the total variation of two distributions over the same codes, in [0, 1]."""
    return float(np.abs(left - right).sum() / 2)


def wasserstein(left: Floats, right: Floats) -> float | None:
    """Return the 1-Wasserstein distance of two samples, in their own unit; null if one is empty.

    It is the area between the two distribution functions, computed exactly.
    """
    if not len(left) or not len(right):
        return None
    left, right = np.sort(left), np.sort(right)
    points = np.sort(np.concatenate([left, right]))
    below_left = np.searchsorted(left, points[:-1], side="right") / len(left)
    below_right = np.searchsorted(right, points[:-1], side="right") / len(right)
    return float(np.sum(np.abs(below_left - below_right) * np.diff(points)))


def cramers_v(cells: TwoWayCounts, left: Floats, right: Floats, rows: int) -> float:
    """Return the bias-corrected Cramér's V of a two-way table, in [0, 1]; 0 where a column is constant.

    Args:
        cells: The two-way table.
        left: The shares of its first column's codes.
        right: The shares of its second column's codes.
        rows: Number of rows counted.

    References:
        Bergsma (2013), A bias-correction for Cramér's V and Tschuprow's T, equation 3 and below.
    """
    high, wide = int(np.count_nonzero(left)), int(np.count_nonzero(right))
    if min(high, wide) < 2 or rows < 2:
        return 0.0
    expected = left[cells.keys // cells.width] * right[cells.keys % cells.width]
    # Empty cells add exactly 1 in all, so only the filled ones need a visit.
    phi2 = float(np.sum((cells.counts / rows) ** 2 / expected)) - 1.0
    phi2 = max(0.0, phi2 - (high - 1) * (wide - 1) / (rows - 1))
    least = min(high - (high - 1) ** 2 / (rows - 1), wide - (wide - 1) ** 2 / (rows - 1)) - 1
    return min(1.0, float(np.sqrt(phi2 / least))) if least > 0 else 0.0


def pair_variation(train: CodeCounts, other: CodeCounts, pair: Pair) -> float:
    """Return the total variation of two two-way tables, in [0, 1]."""
    left, right = train.two[pair], other.two[pair]
    keys, place = np.unique(np.concatenate([left.keys, right.keys]), return_inverse=True)
    gaps = np.concatenate([left.counts / train.rows, -right.counts / other.rows])
    return float(np.abs(np.bincount(place, weights=gaps, minlength=len(keys))).sum() / 2)


def association_matrix(counts: CodeCounts, places: list[int]) -> Floats:
    """Return the Cramér's V ``(P, P)`` of each pair of the given columns, with ones on the diagonal."""
    matrix = np.eye(len(places))
    for (i, left), (j, right) in combinations(enumerate(places), 2):
        matrix[i, j] = matrix[j, i] = strength(counts, (left, right))
    return matrix


def strength(counts: CodeCounts, pair: Pair) -> float:
    """Return Cramér's V of two columns, in the rows in which neither is missing."""
    own = counts.answered(pair)
    return cramers_v(own.two[pair], own.shares(pair[0]), own.shares(pair[1]), own.rows)


def _mean_gap(real: Floats, other: Floats) -> float | None:
    above = np.triu_indices(len(real), 1)
    return float(np.abs(real - other)[above].mean()) if len(above[0]) else None


def _rows(matrix: Floats) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(float(cell), 4) for cell in row) for row in matrix)


def _resample(coder: Coder, tables: Tables, scores: tuple[Score, ...], pairs: list[Pair]) -> None:
    figures = {score.key: score.value for score in scores}
    codes = tables.train.codes, tables.synthetic.codes, coder.sizes
    found = {"columns": variation_influence(*codes, [(place,) for place in range(len(coder.names))])}
    if pairs:
        found |= {"pairs": variation_influence(*codes, pairs), "association": association_influence(*codes, pairs)}
    if "wasserstein" in figures:
        found["wasserstein"] = _moved_numbers(coder, tables)
    for key, (real, own) in found.items():
        tables.resamples.add(key, "value", figures[key], {"train": real, "value": own})


def _moved_numbers(coder: Coder, tables: Tables) -> tuple[Floats, Floats]:
    """Return the influences on the mean of the numbers' distances, in shares of their public ranges."""
    total = np.zeros(len(tables.train)), np.zeros(len(tables.synthetic))
    known = [
        name
        for name in tables.train.numbers
        if len(present_numbers(tables.train, name)) and len(present_numbers(tables.synthetic, name))
    ]
    for name in known:
        lower, upper, unit = coder.bounds(name)
        found = wasserstein_influence(tables.train.numbers[name], tables.synthetic.numbers[name])
        for one, own in zip(total, found, strict=True):
            one += own / max(upper - lower, unit) / len(known)
    return total


# -- scores ----------------------------------------------------------------------------------------------------------


def _columns(coder: Coder, tables: Tables, train: CodeCounts, others: Mapping[str, CodeCounts]) -> list[ColumnFidelity]:
    columns = []
    for place, (name, column) in enumerate(coder.columns.items()):
        shares = {role: variation(train.shares(place), counts.shares(place)) for role, counts in others.items()}
        moved = None if column.listed else _wasserstein(coder, tables, name)
        columns.append(
            ColumnFidelity(
                name=name,
                kind=column.shown_type,
                variation=distance_score("variation", "total variation", shares),
                wasserstein=None if moved is None else distance_score("wasserstein", "Wasserstein", moved),
            )
        )
    return columns


def _wasserstein(coder: Coder, tables: Tables, name: str) -> dict[str, float | None]:
    lower, upper, unit = coder.bounds(name)
    real = present_numbers(tables.train, name)
    distances = {role: wasserstein(real, present_numbers(table, name)) for role, table in tables.others.items()}
    scale = max(upper - lower, unit)
    # A real value outside bought bounds may be further away than the width of the public range.
    return {role: None if distance is None else min(1.0, distance / scale) for role, distance in distances.items()}


def present_numbers(table: Coded, name: str) -> Floats:
    """Return a column's numbers without missing ones."""
    values = table.numbers[name]
    return values[~np.isnan(values)]


def _worst_pairs(names: tuple[str, ...], distances: Mapping[str, Mapping[Pair, float]]) -> tuple[PairFidelity, ...]:
    worst = sorted(distances["value"], key=lambda pair: -distances["value"][pair])[:_WORST]
    return tuple(
        PairFidelity(
            names=(names[pair[0]], names[pair[1]]),
            variation=distance_score(
                "variation", "total variation", {role: found[pair] for role, found in distances.items()}
            ),
        )
        for pair in worst
    )


def _scores(
    columns: list[ColumnFidelity],
    pairs: Mapping[str, Mapping[Pair, float]],
    association: Mapping[str, float | None],
) -> tuple[Score, ...]:
    roles = ("value", "baseline", "real")

    def mean(scores: list[Score], role: str) -> float | None:
        found = [figure for score in scores if (figure := getattr(score, role)) is not None]
        return float(np.mean(found)) if found else None

    one = [column.variation for column in columns]
    moved = [column.wasserstein for column in columns if column.wasserstein is not None]
    two = {role: float(np.mean(list(found.values()))) if found else None for role, found in pairs.items()}
    scores = [
        distance_score(
            "columns",
            "One-way TVD",
            {role: mean(one, role) for role in roles},
            "The share of rows that would have to change for a column’s frequencies to match; mean over columns.",
        )
    ]
    if two["value"] is not None:
        scores += [
            distance_score(
                "pairs",
                "Two-way TVD",
                two,
                "The share of rows that would have to change for two columns’ joint frequencies to match; mean over "
                "pairs.",
            ),
            distance_score(
                "association",
                "Association error",
                association,
                "How far the strength of association (Cramér's V) of two columns is off; mean over pairs.",
            ),
        ]
    if moved:
        scores.append(
            distance_score(
                "wasserstein",
                "Number distance",
                {role: mean(moved, role) for role in roles},
                "How far numbers would have to move, in shares of the public range (Wasserstein-1); mean over columns.",
            )
        )
    return tuple(scores)
