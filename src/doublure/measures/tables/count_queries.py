"""Count queries over two or three columns, answered by real and by synthetic rows.

Each query is drawn at random: two or three columns; of a number, the values between two of the real rows' own; of other
columns, some of the values. Queries that match fewer than one real row in two hundred are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from doublure.intervals import Result
from doublure.measures.resampling import ROWS_OF
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coded, Coder
from doublure.measures.tables.fidelity import Tables
from doublure.support.arrays import Floats

QUERIES = 500
"""Number of queries, where so many can be drawn."""

LEAST_SHARE = 0.005
"""Smallest share of real rows that a query has to match."""

TRIES = 20
"""Most queries drawn for each one asked."""

_ROWS = {"train": "train", **ROWS_OF}
_Marks: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class CountQueries(Result):
    """Errors of the answers.

    Attributes:
        scores: The mean absolute error, in shares of all rows, and the median relative error.
        asked: Number of queries.
    """

    scores: tuple[Score, ...]
    asked: int


@dataclass(frozen=True, kw_only=True)
class QueryCondition:
    """The condition of a query on one column.

    Attributes:
        column: The column.
        place: Its index in a row's codes.
        ends: Numbers between these two, both included; None: codes.
        codes: Any of these.
    """

    column: str
    place: int
    ends: tuple[float, float] | None
    codes: frozenset[int]

    def fits(self, table: Coded) -> _Marks:
        """Return an ``(N,)`` mask of the matching rows."""
        if self.ends is not None:
            numbers = table.numbers[self.column]
            return np.asarray((numbers >= self.ends[0]) & (numbers <= self.ends[1]), dtype=np.bool_)
        codes = table.codes[:, self.place]
        wanted = np.zeros(1 + max(int(codes.max(initial=0)), *self.codes), dtype=np.bool_)
        wanted[list(self.codes)] = True
        return wanted[codes]


def count_queries(coder: Coder, tables: Tables, rng: np.random.Generator) -> CountQueries:
    """Return the errors of random conjunctions.

    Args:
        coder: Reads the schema.
        tables: The tables to query; the training rows' answers are the reference.
        rng: Draws the queries.
    """
    shares: dict[str, list[float]] = {role: [] for role in ("train", *tables.others)}
    everybody = {"train": tables.train, **tables.others}
    sums: dict[str, list[Floats]] = {role: [] for role in everybody}
    if len(coder.names) >= 2:
        for _ in range(TRIES * QUERIES):
            query = _drawn(coder, tables.train, rng)
            matching = _fits(query, tables.train)
            if matching.mean() < LEAST_SHARE:
                continue
            for role, table in everybody.items():
                rows = matching if role == "train" else _fits(query, table)
                shares[role].append(float(rows.mean()))
                sums[role].append(tables.resamples.parts(_ROWS[role], rows))
            if len(shares["train"]) == QUERIES:
                break
    asked = len(shares["train"])
    if not asked:
        return CountQueries(scores=(), asked=0)
    _resample(tables, sums, shares)
    return CountQueries(scores=tuple(tables.resamples.sure(score) for score in _scores(shares)), asked=asked)


def _fits(query: Sequence[QueryCondition], table: Coded) -> _Marks:
    rows = query[0].fits(table)
    for part in query[1:]:
        rows = rows & part.fits(table)
    return rows


def _resample(tables: Tables, sums: Mapping[str, Sequence[Floats]], shares: Mapping[str, Sequence[float]]) -> None:
    """Store the resamples of both errors; every answer is resampled, because a median is not smooth.

    Args:
        tables: The queried tables.
        sums: Table -> for every query, the number of matching rows of each part.
        shares: Table -> its answers.
    """

    def answers(role: str, rows: int) -> Floats:
        moved = tables.resamples.part_shifts(_ROWS[role], np.stack(sums[role], axis=1))
        return np.asarray(shares[role]) + moved / rows

    real = np.maximum(answers("train", len(tables.train)), np.finfo(float).tiny)
    for role in ("value", "real"):
        gaps = np.abs(answers(role, len(tables.others[role])) - real)
        tables.resamples.keep("count_queries", role, gaps.mean(axis=1))
        tables.resamples.keep("count_queries_relative", role, np.minimum(1.0, np.median(gaps / real, axis=1)))


def _drawn(coder: Coder, train: Coded, rng: np.random.Generator) -> list[QueryCondition]:
    most = min(3, len(coder.names))
    places = rng.choice(len(coder.names), int(rng.integers(2, most + 1)), replace=False)
    return [draw_condition(coder, train, int(place), rng) for place in places]


def draw_condition(coder: Coder, train: Coded, place: int, rng: np.random.Generator) -> QueryCondition:
    """Return a condition on a column, drawn from its values in real rows.

    Args:
        coder: Reads the schema.
        train: The real rows, one or more.
        place: The column's index among the coder's.
        rng: Draws them.
    """
    name = coder.names[place]
    if name in train.numbers:
        numbers = train.numbers[name]
        drawn = numbers[rng.integers(0, len(numbers), 2)]
        if not np.isnan(drawn).any():
            low, high = np.sort(drawn).tolist()
            return QueryCondition(column=name, place=place, ends=(low, high), codes=frozenset())
        # The drawn row has no number: ask for missing cells.
        return QueryCondition(column=name, place=place, ends=None, codes=frozenset({coder.sizes[place] - 1}))
    known = np.unique(train.codes[:, place])
    wanted = rng.choice(known, int(rng.integers(1, max(2, len(known)))), replace=False)
    return QueryCondition(column=name, place=place, ends=None, codes=frozenset(wanted.tolist()))


def _scores(shares: Mapping[str, Sequence[float]]) -> tuple[Score, ...]:
    real = np.asarray(shares["train"])
    gaps = {role: np.abs(np.asarray(found) - real) for role, found in shares.items() if role != "train"}
    relative = {role: min(1.0, float(np.median(gap / real))) for role, gap in gaps.items()}
    return (
        distance_score(
            "count_queries",
            "Count queries, absolute error",
            {role: float(gap.mean()) for role, gap in gaps.items()},
            "How far the count of rows with given values in two or three columns is off, in shares of all rows; mean "
            f"over {len(real)} random queries.",
        ),
        distance_score(
            "count_queries_relative",
            "Count queries, relative error",
            relative,
            "The same in shares of the real count; the median over the queries.",
        ),
    )
