"""Relations between columns: the pairs that clearly depend on one another in real rows, and their remains.

A mean over all pairs drowns the few that hang together: most pairs of a table are independent, and their distances are
chance. Only pairs count whose χ² passes that of independent columns, by its mean and variance under fixed margins and
a gamma distribution of these moments; 5 % of tables without any relation have such a pair (Bonferroni).

References:
    Dawson (1954), A simplified expression for the variance of the χ²-function on a contingency table, Biometrika 41.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from doublure.intervals import LEVEL, Result
from doublure.measures.resampling import ROWS_OF
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coder, Integers
from doublure.measures.tables.counts import CodeCounts, Pair, count
from doublure.measures.tables.fidelity import Tables, cramers_v, pair_variation
from doublure.measures.tables.influence import association_influence, variation_influence

MOST_LISTED = 60
"""Most pairs listed: the strongest ones."""

_KEPT = 0.5


class RelatedPair(Result):
    """Two columns that depend on one another in real rows, by Cramér's V in quantile bins.

    Attributes:
        names: Both columns.
        real: The association in the real rows that were fitted.
        synthetic: The association in the synthetic rows.
        holdout: The association in other real rows.
        rank: Spearman's correlation of two numbers, real and synthetic; null where a column is no number.
    """

    names: tuple[str, str]
    real: float
    synthetic: float
    holdout: float
    rank: tuple[float, float] | None = None

    @property
    def lost(self) -> bool:
        """Whether less than half of the association is left, and less than other real rows show."""
        return is_lost(self.real, self.synthetic, self.holdout)


class RelatedPairs(Result):
    """All pairs of columns that clearly depend on one another in real rows.

    Attributes:
        variation: Their two-way total variation, the mean; null where there are none.
        association: The error of their Cramér's V, and of associations that are invented, as a share of their sum in
            real rows; null where there are none.
        pairs: The strongest ones, the strongest first.
        found: How many there are.
        lost: How many of those listed are lost.
    """

    variation: Score | None
    association: Score | None
    pairs: tuple[RelatedPair, ...]
    found: int
    lost: int


def relations(
    coder: Coder,
    tables: Tables,
    train: Integers,
    codes: Mapping[str, Integers],
    sizes: Sequence[int],
    pairs: list[Pair],
) -> RelatedPairs:
    """Return the relations of real rows, and their errors in others; keep the resamples.

    Args:
        coder: Reads the schema.
        tables: The tables, for the ranks of numbers.
        train: ``(N, P)`` codes of real rows in quantile bins.
        codes: For each role ``(M, P)`` codes.
        sizes: Number of codes of each column.
        pairs: The pairs to look at.
    """
    counts = {role: count(table, sizes, pairs) for role, table in {"train": train, **codes}.items()}
    known = {role: {pair: strength(own, pair) for pair in pairs} for role, own in counts.items()}
    clear = {role: [pair for pair in pairs if is_clear(own, pair, len(pairs))] for role, own in counts.items()}
    strong = sorted(clear.pop("train"), key=lambda pair: -known["train"][pair])
    if not strong:
        return RelatedPairs(variation=None, association=None, pairs=(), found=0, lost=0)
    apart = {
        role: float(np.mean([pair_variation(counts["train"], counts[role], pair) for pair in strong])) for role in codes
    }
    whole = sum(known["train"][pair] for pair in strong)
    off: dict[str, float] = {}
    for role, table in codes.items():
        looked = [*strong, *(pair for pair in clear[role] if pair not in set(strong))]
        off[role] = sum(abs(known[role][pair] - known["train"][pair]) for pair in looked) / whole
        by_row = [len(looked) * each / whole for each in association_influence(train, table, sizes, looked)]
        tables.resamples.add("association_lost", role, off[role], {"train": by_row[0], ROWS_OF[role]: by_row[1]})
        by_row = [*variation_influence(train, table, sizes, strong)]
        tables.resamples.add("related_pairs", role, apart[role], {"train": by_row[0], ROWS_OF[role]: by_row[1]})
    listed = tuple(_described(coder, tables, known, pair) for pair in strong[:MOST_LISTED])
    return RelatedPairs(
        variation=tables.resamples.sure(
            distance_score(
                "related_pairs",
                "Two-way TVD, related pairs",
                apart,
                "Total variation of two columns together, in quantile bins; mean over the pairs that clearly depend on "
                "one another in real rows.",
            )
        ),
        association=Score(
            key="association_lost", name="Association off", goal="low", range=(0.0, max(1.0, *off.values())), **off
        ),
        pairs=listed,
        found=len(strong),
        lost=sum(pair.lost for pair in listed),
    )


def is_lost(real: float, synthetic: float, holdout: float) -> bool:
    """Return whether less than half of an association is left, and less than other real rows show."""
    return synthetic < min(_KEPT * real, holdout)


def _described(coder: Coder, tables: Tables, known: Mapping[str, Mapping[Pair, float]], pair: Pair) -> RelatedPair:
    left, right = names = coder.names[pair[0]], coder.names[pair[1]]
    both = (tables.train, tables.synthetic)
    ranks = [_rank_correlation(own.numbers[left], own.numbers[right]) for own in both if {*names} <= {*own.numbers}]
    real, synthetic, holdout = (known[role][pair] for role in ("train", "value", "real"))
    rank = (ranks[0], ranks[1]) if ranks else None
    return RelatedPair(names=names, real=real, synthetic=synthetic, holdout=holdout, rank=rank)


def _rank_correlation(left: np.ndarray, right: np.ndarray) -> float:
    """Return Spearman's correlation of the rows that have both numbers; 0 where one of them is constant."""
    from scipy.stats import rankdata

    there = ~(np.isnan(left) | np.isnan(right))
    ranks = [rankdata(values[there]) for values in (left, right)]
    if min((float(np.ptp(own)) for own in ranks if len(own)), default=0.0) == 0:
        return 0.0
    return round(float(np.corrcoef(*ranks)[0, 1]), 4)


def strength(counts: CodeCounts, pair: Pair) -> float:
    """Return Cramér's V of two columns."""
    return round(cramers_v(counts.two[pair], counts.shares(pair[0]), counts.shares(pair[1]), counts.rows), 4)


def is_clear(counts: CodeCounts, pair: Pair, tests: int) -> bool:
    """Return whether two columns depend on one another by more than chance in one of so many tests."""
    from scipy.stats import gamma

    n, cells = counts.rows, counts.two[pair]
    sides = [counts.one[place] for place in pair]
    filled = [own[own > 0].astype(np.float64) for own in sides]
    if n < 4 or min(map(len, filled)) < 2:
        return False
    expected = sides[0][cells.keys // cells.width] * (sides[1][cells.keys % cells.width] / n)
    found = float(np.sum(cells.counts**2 / expected)) - n
    spread = [(len(own) - 1) * (n - len(own)) / (n - 1) for own in filled]
    uneven = [(n * float(np.sum(1 / own)) - len(own) ** 2) / (n - 2) for own in filled]
    mean = n / (n - 1) * (len(filled[0]) - 1) * (len(filled[1]) - 1)
    apart = (spread[0] - uneven[0]) * (spread[1] - uneven[1])
    variance = 2 * n / (n - 3) * apart + n * n / (n - 1) * uneven[0] * uneven[1]
    if variance <= 0:  # every table with these margins has one χ²
        return False
    return bool(found > gamma.isf((1 - LEVEL) / tests, mean * mean / variance, scale=variance / mean))
