"""Relations between columns: the pairs that clearly depend on one another in real rows, and their remains.

A mean over all pairs drowns the few that hang together: most pairs of a table are independent, and their distances are
chance. Only pairs count whose χ² passes that of independent columns, by its mean and variance under fixed margins and
a gamma distribution of these moments; 5 % of tables without any relation have such a pair (Bonferroni).

A relation is judged among rows in which both columns have a value. In a survey the strongest pairs would else be those
that are skipped together: which columns are missing together is told beside, of columns with missing cells alone.

References:
    Dawson (1954), A simplified expression for the variance of the χ²-function on a contingency table, Biometrika 41.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from doublure.intervals import LEVEL, Result
from doublure.measures.resampling import ROWS_OF
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coder, Integers
from doublure.measures.tables.counts import CodeCounts, Pair, count
from doublure.measures.tables.fidelity import Tables, pair_variation, strength
from doublure.measures.tables.influence import association_influence, variation_influence

MOST_LISTED = 60
"""Most pairs listed: the strongest ones."""

_KEPT = 0.5
_ROLES = {"real": "train", "synthetic": "value", "holdout": "real"}


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
        missing: The strongest pairs of columns that are missing together, or apart, by Cramér's V of being missing.
        missing_found: How many there are.
    """

    variation: Score | None
    association: Score | None
    pairs: tuple[RelatedPair, ...]
    found: int
    lost: int
    missing: tuple[RelatedPair, ...] = ()
    missing_found: int = 0


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
    coded = {"train": train, **codes}
    counts = {role: count(table, sizes, pairs) for role, table in coded.items()}
    holes = _missing_together(coder, coded, sizes, pairs)
    known = {role: {pair: round(strength(own, pair), 4) for pair in pairs} for role, own in counts.items()}
    clear = {role: [pair for pair in pairs if is_clear(own, pair, len(pairs))] for role, own in counts.items()}
    strong = sorted(clear.pop("train"), key=lambda pair: -known["train"][pair])
    if not strong:
        return RelatedPairs(variation=None, association=None, pairs=(), found=0, lost=0, **holes)
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
        **holes,
    )


def _missing_together(
    coder: Coder, codes: Mapping[str, Integers], sizes: Sequence[int], pairs: list[Pair]
) -> dict[str, Any]:
    """Return the pairs of columns that are missing together, or apart, more often than by chance.

    Args:
        coder: Names the columns.
        codes: For each role ``(M, P)`` codes, a missing cell the last of its column.
        sizes: Number of codes of each column.
        pairs: The pairs to look at.
    """
    holes = {role: (table == np.asarray(sizes) - 1).astype(np.int32) for role, table in codes.items()}
    some = {place for place in range(len(sizes)) if holes["train"][:, place].any()}
    looked = [pair for pair in pairs if some.issuperset(pair)]
    # A third code, which no cell has, stands for the missing one: being missing is a value here.
    counts = {role: count(table, [3] * len(sizes), looked) for role, table in holes.items()}
    clear = [pair for pair in looked if is_clear(counts["train"], pair, len(looked))]
    known = {role: {pair: round(strength(own, pair), 4) for pair in clear} for role, own in counts.items()}
    strong = sorted(clear, key=lambda pair: -known["train"][pair])
    listed = tuple(
        RelatedPair(
            names=(coder.names[left], coder.names[right]),
            **{name: known[role][left, right] for name, role in _ROLES.items()},
        )
        for left, right in strong[:MOST_LISTED]
    )
    return {"missing": listed, "missing_found": len(strong)}


def is_lost(real: float, synthetic: float, holdout: float) -> bool:
    """Return whether less than half of an association is left, and less than other real rows show."""
    return synthetic < min(_KEPT * real, holdout)


def _described(coder: Coder, tables: Tables, known: Mapping[str, Mapping[Pair, float]], pair: Pair) -> RelatedPair:
    left, right = names = coder.names[pair[0]], coder.names[pair[1]]
    both = (tables.train, tables.synthetic)
    ranks = [_rank_correlation(own.numbers[left], own.numbers[right]) for own in both if {*names} <= {*own.numbers}]
    rank = (ranks[0], ranks[1]) if ranks else None
    return RelatedPair(names=names, rank=rank, **{name: known[role][pair] for name, role in _ROLES.items()})


def _rank_correlation(left: np.ndarray, right: np.ndarray) -> float:
    """Return Spearman's correlation of the rows that have both numbers; 0 where one of them is constant."""
    from scipy.stats import rankdata

    there = ~(np.isnan(left) | np.isnan(right))
    ranks = [rankdata(values[there]) for values in (left, right)]
    if min((float(np.ptp(own)) for own in ranks if len(own)), default=0.0) == 0:
        return 0.0
    return round(float(np.corrcoef(*ranks)[0, 1]), 4)


def is_clear(counts: CodeCounts, pair: Pair, tests: int) -> bool:
    """Return whether two columns, where both have a value, depend by more than chance in one of so many tests."""
    from scipy.stats import gamma

    counts = counts.answered(pair)
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
