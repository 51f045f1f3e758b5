"""Whether two tables can be told apart: a permutation test of their mean two-way total variation.

A fitted synthesizer differs from the data by the noise that was paid for and by what its model leaves out, so real rows
are further from its rows than its rows are from one another. If both tables are of one source, each assignment of the
pooled rows to the two is as likely as the one that is given (Fisher 1935). Then the distance that is given exceeds
those of ``RELABELLED`` random assignments once in ``RELABELLED + 1`` times at most (Phipson & Smyth 2010).
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd

from doublure.encode.columns import Floats
from doublure.measures.tables.coding import Coded, Coder, Integers
from doublure.measures.tables.counts import Whole
from doublure.measures.tables.fidelity import MOST_PAIRED
from doublure.measures.tables.influence import codes_of_both
from doublure.measures.tables.quantiles import JOINT_BINS, QuantileBins
from doublure.schema import ResolvedSchema

RELABELLED = 19
"""Of one source, 1 pair of tables in 20 is told apart nevertheless."""

MOST_ROWS = 10_000
"""The most rows of a table that are looked at, drawn uniformly, so that the test stays cheap beside an evaluation."""


def told_apart(schema: ResolvedSchema, synthetic: pd.DataFrame, real: pd.DataFrame, *, seed: int) -> bool:
    """Whether two tables are further apart than every random assignment of their rows to two tables of that size.

    Args:
        schema: Every fact known.
        synthetic: Rows of one table.
        real: Rows of the other.
        seed: Fixes the assignments.

    Raises:
        DataError: A table lacks a column of the schema, or has cells that do not fit it.
    """
    coder = Coder(schema=schema)
    rng = np.random.default_rng(seed)
    one, other = (_some(coder, frame, what, rng) for frame, what in ((synthetic, "synthetic"), (real, "real")))
    both = Coded(
        names=coder.names,
        codes=np.concatenate([one.codes, other.codes]),
        numbers={name: np.concatenate([one.numbers[name], other.numbers[name]]) for name in one.numbers},
    )
    bins = QuantileBins.of(coder, both, JOINT_BINS)  # of all rows: an assignment of them changes no bin
    assigned = [np.arange(len(both)), *(rng.permutation(len(both)) for _ in range(RELABELLED))]
    found = _distances(bins.read(both), bins.sizes, [order[: len(one)] for order in assigned])
    return bool(found[0] > found[1:].max())


def _some(coder: Coder, frame: pd.DataFrame, what: str, rng: np.random.Generator) -> Coded:
    rows = rng.permutation(len(frame))[:MOST_ROWS]
    return coder.read(frame.iloc[rows], f"the {what} table")


def _distances(codes: Integers, sizes: tuple[int, ...], firsts: list[Whole]) -> Floats:
    """Return the mean total variation of pairs of columns, of a single column where there is one.

    Args:
        codes: ``(N, P)`` codes of all rows.
        sizes: How many codes each column has.
        firsts: Of each assignment, the rows of the first table; all others are the second's.
    """
    columns = range(len(sizes))[:MOST_PAIRED]
    sets: list[tuple[int, ...]] = [*combinations(columns, min(2, len(columns)))]
    total = np.zeros(len(firsts))
    for places in sets:
        keys, _, cells = codes_of_both(codes, codes[:0], sizes, places)
        counts = np.bincount(keys, minlength=cells)
        filled = (np.cumsum(counts > 0) - 1)[keys]
        counts = counts[counts > 0]
        for number, rows in enumerate(firsts):
            first = np.bincount(filled[rows], minlength=len(counts))
            apart = first / len(rows) - (counts - first) / (len(codes) - len(rows))
            total[number] += np.abs(apart).sum() / 2
    return total / len(sets)
