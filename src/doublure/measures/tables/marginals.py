"""Total variation in quantile bins of one, two and three columns, and NIST's k-marginal score.

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

from doublure.intervals import Result
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coder, Integers
from doublure.measures.tables.counts import Pair, count
from doublure.measures.tables.fidelity import MOST_PAIRED, Tables, variation
from doublure.measures.tables.influence import joint_codes, variation_influence
from doublure.measures.tables.quantiles import (
    JOINT_BINS,
    ONE_WAY_BINS,
    QuantileBins,
    QuantileShares,
    quantile_shares,
)
from doublure.measures.tables.relations import RelatedPairs, relations
from doublure.support.arrays import Floats

MOST_TRIPLES = 500
"""Most triples of columns compared; of more, a uniform sample."""


class FurthestColumns(Result):
    """The column, or pair of columns, whose distance exceeds that of other real rows most.

    Attributes:
        names: The column, or both.
        variation: Total variation in quantile bins.
    """

    names: tuple[str, ...]
    variation: Score


class Marginals(Result):
    """Distances in quantile bins of the real rows.

    Attributes:
        scores: Of columns, of pairs, and the k-marginal score.
        furthest: The column whose distance exceeds that of other real rows most, then the pair, if there are pairs.
        columns: Each number's bins, in the schema's order.
        triples: Number of triples of columns compared.
        relations: The pairs that clearly depend on one another in real rows; null where there is no pair.
    """

    scores: tuple[Score, ...]
    furthest: tuple[FurthestColumns, ...]
    columns: tuple[QuantileShares, ...]
    triples: int
    relations: RelatedPairs | None


def marginals(coder: Coder, tables: Tables, rng: np.random.Generator) -> Marginals:
    """Return the distances of one, two and three columns at a time.

    Args:
        coder: Reads the schema.
        tables: The tables to compare.
        rng: Draws the columns whose pairs are compared, and the triples, where there are too many.
    """
    fine = QuantileBins.of(coder, tables.train, ONE_WAY_BINS)
    read = {role: fine.read(table) for role, table in {"train": tables.train, **tables.others}.items()}
    train = read.pop("train")
    alone = [(place,) for place in range(len(coder.names))]
    one = variations(train, read, fine.sizes, alone)
    scores = [
        distance_score(
            "quantile_columns",
            "One-way TVD, quantile bins",
            _means(one),
            f"Total variation of a column, numbers in {ONE_WAY_BINS} bins that real rows fill evenly; mean over "
            "columns.",
        )
    ]
    found = {"quantile_columns": variation_influence(train, read["value"], fine.sizes, alone)}
    furthest = [_furthest(coder.names, alone, one)]
    joint = QuantileBins.of(coder, tables.train, JOINT_BINS)
    codes = {role: joint.read(table) for role, table in tables.others.items()}
    real = joint.read(tables.train)
    pairs = _pairs(len(coder.names), rng)
    related = None
    if pairs:
        two = variations(real, codes, joint.sizes, pairs)
        scores.append(
            distance_score(
                "quantile_pairs",
                "Two-way TVD, quantile bins",
                _means(two),
                f"Total variation of two columns together, numbers in {JOINT_BINS} bins that real rows fill evenly; "
                "mean over pairs.",
            )
        )
        found["quantile_pairs"] = variation_influence(real, codes["value"], joint.sizes, pairs)
        single = variations(real, codes, joint.sizes, alone)
        furthest.append(_furthest(coder.names, pairs, two, single))
        related = relations(coder, tables, real, codes, joint.sizes, pairs)
    triples = _triples(len(coder.names), rng)
    if triples:
        scores.append(_k_marginal(variations(real, codes, joint.sizes, triples)))
        of_triples = variation_influence(real, codes["value"], joint.sizes, triples)
        found["k_marginal"] = -1000 * of_triples[0], -1000 * of_triples[1]
    figures = {score.key: score.value for score in scores}
    for key, (of_real, own) in found.items():
        tables.resamples.add(key, "value", figures[key], {"train": of_real, "value": own})
    shown = [count(each, fine.sizes, []) for each in (train, read["value"])]
    return Marginals(
        scores=tuple(tables.resamples.sure(score) for score in scores),
        furthest=tuple(furthest),
        columns=quantile_shares(fine, *shown),
        triples=len(triples),
        relations=related,
    )


def _means(found: Mapping[str, Floats]) -> dict[str, float | None]:
    return {role: float(values.mean()) for role, values in found.items()}


def _furthest(
    names: tuple[str, ...],
    sets: Sequence[tuple[int, ...]],
    found: Mapping[str, Floats],
    single: Mapping[str, Floats] | None = None,
) -> FurthestColumns:
    """Return the set of columns furthest beyond other real rows; what one of its columns is off by itself is no news.

    Args:
        names: The columns' names.
        sets: The sets.
        found: For each role the distance of each set.
        single: Of pairs: for each role the distance of each column.
    """
    apart = {
        role: values - (0 if single is None else np.array([max(single[role][place] for place in own) for own in sets]))
        for role, values in found.items()
    }
    worst = int(np.argmax(apart["value"] - apart["real"]))
    figures: dict[str, float | None] = {role: float(values[worst]) for role, values in found.items()}
    return FurthestColumns(
        names=tuple(names[place] for place in sets[worst]),
        variation=distance_score("variation", "total variation", figures),
    )


def variations(
    train: Integers, others: Mapping[str, Integers], sizes: Sequence[int], sets: Sequence[tuple[int, ...]]
) -> dict[str, Floats]:
    """Return the total variation of sets of columns, in [0, 1].

    Args:
        train: ``(N, P)`` codes.
        others: For each role ``(M, P)`` codes.
        sizes: Number of codes of each column.
        sets: The columns of each set.

    Returns:
        For each role ``(sets,)``.
    """
    found = {role: np.empty(len(sets)) for role in others}
    for number, places in enumerate(sets):
        for role, codes in others.items():
            left, right, cells = joint_codes(train, codes, sizes, places)
            shares = [np.bincount(keys, minlength=cells) / len(keys) for keys in (left, right)]
            found[role][number] = variation(*shares)
    return found


def _pairs(columns: int, rng: np.random.Generator) -> list[Pair]:
    paired = np.arange(columns)
    if columns > MOST_PAIRED:
        paired = np.sort(rng.choice(columns, MOST_PAIRED, replace=False))
    return [(int(left), int(right)) for left, right in combinations(paired, 2)]


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
        goal="high",
        range=(0.0, 1000.0),
        **figures,
        meaning=f"1000 · (1 − total variation) of three columns together, in {JOINT_BINS} bins that real rows fill "
        "evenly; mean over triples.",
    )
