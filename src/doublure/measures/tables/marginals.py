"""Total variation in quantile bins, of one, two and three columns at a time; the last is NIST's k-marginal score.

The score is 1000 · (1 − the mean total variation over triples of columns), which is NIST's
(2 − mean Σ|difference|) · 500: 1000 where all triples have the real frequencies, 0 where no cell is shared
(Ridgeway et al. 2021, NIST Technical Note 2151). Numbers are cut at the real rows' quantiles
(:mod:`doublure.measures.tables.quantiles`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from doublure.encode.columns import Floats
from doublure.intervals import Result
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coder, Integers
from doublure.measures.tables.counts import Counts, Whole, count
from doublure.measures.tables.fidelity import MOST_PAIRED, Tables, association_matrix, pair_variation, variation
from doublure.measures.tables.quantiles import (
    JOINT_BINS,
    ONE_WAY_BINS,
    QuantileBins,
    QuantileShares,
    quantile_shares,
)

MOST_TRIPLES = 500
"""The most triples of columns that are looked at; of more, so many are drawn uniformly."""

_MOST_CELLS = 1 << 22


class Marginals(Result):
    """Distances in quantile bins of the real rows.

    Attributes:
        scores: Of columns, of pairs, and the k-marginal score.
        columns: Each number's bins, in the schema's order.
        triples: How many triples of columns were looked at.
        association: Each pair's Cramér's V: the mean absolute difference to the real rows' as a share of the real
            rows' mean; null where there is no pair, or no association.
    """

    scores: tuple[Score, ...]
    columns: tuple[QuantileShares, ...]
    triples: int
    association: Score | None


def marginals(coder: Coder, tables: Tables, rng: np.random.Generator) -> Marginals:
    """Return the distances of one, two and three columns at a time.

    Args:
        coder: Reads the schema.
        tables: What to compare.
        rng: Draws the columns whose pairs are looked at, and the triples, where there are too many.
    """
    fine = QuantileBins.of(coder, tables.train, ONE_WAY_BINS)
    singles = {role: fine.count(table) for role, table in tables.others.items()}
    train = fine.count(tables.train)
    places = range(len(coder.names))
    one = {
        role: float(np.mean([variation(train.shares(place), counts.shares(place)) for place in places]))
        for role, counts in singles.items()
    }
    scores = [
        distance_score(
            "quantile_columns",
            "One-way TVD, quantile bins",
            one,
            f"Total variation of a column, numbers in {ONE_WAY_BINS} bins that real rows fill evenly; mean over "
            "columns.",
        )
    ]
    joint = QuantileBins.of(coder, tables.train, JOINT_BINS)
    codes = {role: joint.read(table) for role, table in tables.others.items()}
    real = joint.read(tables.train)
    two, association = _pairs(real, codes, joint.sizes, rng)
    if two is not None:
        scores.append(
            distance_score(
                "quantile_pairs",
                "Two-way TVD, quantile bins",
                two,
                f"Total variation of two columns together, numbers in {JOINT_BINS} bins that real rows fill evenly; "
                "mean over pairs.",
            )
        )
    triples = _triples(len(coder.names), rng)
    if triples:
        scores.append(_k_marginal(variations(real, codes, joint.sizes, triples)))
    return Marginals(
        scores=tuple(scores),
        columns=quantile_shares(fine, train, singles["value"]),
        triples=len(triples),
        association=association,
    )


def variations(
    train: Integers, others: Mapping[str, Integers], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]
) -> dict[str, Floats]:
    """Return the total variation of sets of columns, in [0, 1].

    Args:
        train: ``(N, P)`` codes.
        others: For each role ``(M, P)`` codes.
        sizes: How many codes each column has.
        sets: Which columns belong to each set.

    Returns:
        For each role ``(sets,)``.
    """
    found = {role: np.empty(len(sets)) for role in others}
    for number, places in enumerate(sets):
        keys = _keys(train, sizes, places)
        cells = math.prod(sizes[place] for place in places)
        for role, codes in others.items():
            found[role][number] = _variation(keys, _keys(codes, sizes, places), cells)
    return found


def _keys(codes: Integers, sizes: Sequence[int], places: Sequence[int]) -> Whole:
    keys = np.zeros(len(codes), dtype=np.int64)
    for place in places:
        keys = keys * sizes[place] + codes[:, place]
    return keys


def _variation(left: Whole, right: Whole, cells: int) -> float:
    if cells > _MOST_CELLS:
        values, places = np.unique(np.concatenate([left, right]), return_inverse=True)
        left, right, cells = places[: len(left)], places[len(left) :], len(values)
    shares = [np.bincount(keys, minlength=cells) / len(keys) for keys in (left, right)]
    return variation(*shares)


def _pairs(
    real: Integers, codes: Mapping[str, Integers], sizes: Sequence[int], rng: np.random.Generator
) -> tuple[dict[str, float] | None, Score | None]:
    """Return the mean total variation of pairs, and how much of the real rows' association is off."""
    paired = np.arange(len(sizes))
    if len(sizes) > MOST_PAIRED:
        paired = np.sort(rng.choice(len(sizes), MOST_PAIRED, replace=False))
    places = [int(place) for place in paired]
    pairs = list(combinations(places, 2))
    if not pairs:
        return None, None
    train = count(real, sizes, pairs)
    matrix = association_matrix(train, places)
    above = np.triu_indices(len(places), 1)
    distances, gaps = {}, {}
    for role, table in codes.items():
        counts: Counts = count(table, sizes, pairs)
        distances[role] = float(np.mean([pair_variation(train, counts, pair) for pair in pairs]))
        gaps[role] = float(np.abs(association_matrix(counts, places) - matrix)[above].mean())
    whole = float(matrix[above].mean())
    if not whole:
        return distances, None
    lost = {role: min(1.0, gap / whole) for role, gap in gaps.items()}
    return distances, distance_score("association_lost", "Association off", lost)


def _triples(columns: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if math.comb(columns, 3) <= MOST_TRIPLES:
        return list(combinations(range(columns), 3))
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < MOST_TRIPLES:
        drawn[tuple(sorted(rng.choice(columns, 3, replace=False).tolist()))] = None
    return list(drawn)


def _k_marginal(found: Mapping[str, Floats]) -> Score:
    figures = {role: 1000 * (1 - float(values.mean())) for role, values in found.items()}
    return Score(
        key="k_marginal",
        name="k-marginal score (NIST)",
        value=figures["value"],
        goal="high",
        range=(0.0, 1000.0),
        baseline=figures["baseline"],
        real=figures["real"],
        meaning=f"1000 · (1 − total variation) of three columns together, in {JOINT_BINS} bins that real rows fill "
        "evenly; mean over triples.",
    )
