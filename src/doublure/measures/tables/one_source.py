"""Permutation test for two tables of one source, by their mean two-way total variation.

A fitted synthesizer differs from the data by its noise and by the limits of its model, so real rows are further from
its rows than its rows are from one another. If both tables are of one source, each assignment of the pooled rows to the
two is as likely as the actual one (Fisher 1935). The actual distance then exceeds those of ``RELABELLED`` random
assignments with probability at most 1 / (``RELABELLED`` + 1) (Phipson & Smyth 2010).

A synthesizer that spreads its rows evenly draws tables that are closer to one another than random assignments are, and
close to the data it was fitted on. So a table that passes is also compared with as many tables that the run draws with
other seeds: one of these, saved anew, is the furthest with the same probability.

At a large ε all pairs of columns may fit, while triples of columns and numbers within a bin still differ. So boosted
trees are trained on half of both tables, and rank the other halves (Lopez-Paz & Oquab 2017). A Mann-Whitney test
decides whether they tell the tables apart.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd

from doublure.measures.tables.coding import Coded, Coder, Integers
from doublure.measures.tables.counts import Whole
from doublure.measures.tables.features import FeatureTable
from doublure.measures.tables.fidelity import MOST_PAIRED
from doublure.measures.tables.influence import joint_codes
from doublure.measures.tables.marginals import variations
from doublure.measures.tables.quantiles import JOINT_BINS, QuantileBins
from doublure.measures.tables.utility import predict
from doublure.schema import ResolvedSchema
from doublure.support.arrays import Floats

RELABELLED = 19
"""Number of random assignments: 1 pair of tables in 20 from one source is still found to differ."""

RANKED = 0.001
"""Largest p-value of the ranking at which it counts: small beside the 1 in 20 that the distances miss."""

MOST_ROWS = 10_000
"""Most rows of a table used, drawn uniformly, so that the test stays cheap beside an evaluation."""


def differ(
    schema: ResolvedSchema,
    synthetic: pd.DataFrame,
    real: pd.DataFrame,
    *,
    seed: int,
    draw: Callable[[int, int], pd.DataFrame] | None = None,
) -> bool:
    """Return whether two tables are further apart than in every random assignment of their rows to the two.

    With ``draw``, also whether the second is further from a table of the run than other tables of the run are. Also
    whether trees rank unseen rows of the two.

    Args:
        schema: Every fact known.
        synthetic: Rows of one table.
        real: Rows of the other.
        seed: Fixes the assignments.
        draw: Draws a table of so many rows with a seed.

    Raises:
        DataError: A table lacks a column of the schema, or has cells that do not fit it.
    """
    coder = Coder(schema=schema)
    rng = np.random.default_rng(seed)
    one, other = (_some(coder, frame, what, rng) for frame, what in ((synthetic, "synthetic"), (real, "real")))
    both = _together(one, other)
    bins = QuantileBins.of(coder, both, JOINT_BINS)  # of all rows, so that no assignment changes a bin
    assigned = [np.arange(len(both)), *(rng.permutation(len(both)) for _ in range(RELABELLED))]
    found = _distances(bins.read(both), bins.sizes, [order[: len(one)] for order in assigned])
    if found[0] > found[1:].max():
        return True
    if draw is not None and len(real) <= MOST_ROWS and _beyond_draws(coder, real, draw, seed):
        return True
    return _ranked(coder, one, other, seed)


def _beyond_draws(coder: Coder, real: pd.DataFrame, draw: Callable[[int, int], pd.DataFrame], seed: int) -> bool:
    """Return whether a table is further from one that is drawn than others that are drawn are."""
    seeds = np.random.default_rng(seed).integers(1 << 31, size=RELABELLED + 1)
    drawn = [draw(len(real), int(own)) for own in seeds]
    both = _together(coder.read(pd.concat(drawn), "a table"), coder.read(real, "a table"))
    bins = QuantileBins.of(coder, both, JOINT_BINS)
    first, *others = np.split(bins.read(both), np.cumsum([len(each) for each in drawn]))
    codes = {str(place): other for place, other in enumerate(others)}
    found = variations(first, codes, bins.sizes, _sets(len(bins.sizes)))
    *own, given = (float(each.mean()) for each in found.values())
    return given > max(own)


def _together(one: Coded, other: Coded) -> Coded:
    return Coded(
        names=one.names,
        codes=np.concatenate([one.codes, other.codes]),
        numbers={name: np.concatenate([one.numbers[name], other.numbers[name]]) for name in one.numbers},
    )


def _ranked(coder: Coder, one: Coded, other: Coded, seed: int) -> bool:
    """Return whether trees that were trained on half of the rows tell the others' table better than by chance."""
    from scipy.stats import mannwhitneyu

    size = min(len(one), len(other)) // 2
    if not size:
        return False
    halves = []
    for start in (0, 1):
        tables = [table.take(np.arange(start, 2 * size, 2)) for table in (one, other)]
        codes = np.concatenate([table.codes for table in tables])
        scaled = {
            name: np.concatenate([coder.place(name, table.numbers[name]) for table in tables]).astype(np.float32)
            for name in one.numbers
        }
        halves.append(FeatureTable(names=one.names, sizes=coder.sizes, codes=codes, scaled=scaled))
    chances = predict("boosting", halves[0], np.repeat([0, 1], size), halves[1], 2, seed)[:, 1]
    return bool(mannwhitneyu(chances[size:], chances[:size], alternative="greater").pvalue <= RANKED)


def _sets(columns: int) -> list[tuple[int, ...]]:
    """Return the pairs of columns that are compared, or the single column."""
    places = range(columns)[:MOST_PAIRED]
    return [*combinations(places, min(2, len(places)))]


def _some(coder: Coder, frame: pd.DataFrame, what: str, rng: np.random.Generator) -> Coded:
    rows = rng.permutation(len(frame))[:MOST_ROWS]
    return coder.read(frame.iloc[rows], f"the {what} table")


def _distances(codes: Integers, sizes: tuple[int, ...], firsts: list[Whole]) -> Floats:
    """Return the mean total variation of pairs of columns, or that of a single column.

    Args:
        codes: ``(N, P)`` codes of all rows.
        sizes: Number of codes of each column.
        firsts: For each assignment, the rows of the first table; all others are the second's.
    """
    sets = _sets(len(sizes))
    total = np.zeros(len(firsts))
    for places in sets:
        keys, _, cells = joint_codes(codes, codes[:0], sizes, places)
        counts = np.bincount(keys, minlength=cells)
        filled = (np.cumsum(counts > 0) - 1)[keys]
        counts = counts[counts > 0]
        for number, rows in enumerate(firsts):
            first = np.bincount(filled[rows], minlength=len(counts))
            apart = first / len(rows) - (counts - first) / (len(codes) - len(rows))
            total[number] += np.abs(apart).sum() / 2
    return total / len(sets)
