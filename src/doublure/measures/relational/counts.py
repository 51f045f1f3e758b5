"""Count queries across tables, answered by real and by synthetic units.

A query asks for the number of units with some values in the root and a row with some values in a child table. Queries
are drawn at random, as those of one table (:mod:`doublure.measures.tables.count_queries`): some values of a column of
the root, and of one or two columns of a child table that must hold in the same row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from doublure.measures.relational.units import CodedUnits, ComparedUnits, UnitCoder
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.count_queries import LEAST_SHARE, TRIES, QueryCondition, draw_condition

QUERIES = 200
"""Number of queries for a child table, where so many can be drawn."""

_Marks = npt.NDArray[np.bool_]


def counts_across(coders: UnitCoder, sides: ComparedUnits, child: str, rng: np.random.Generator) -> Score | None:
    """Return the error of counts of units, as a share of all units.

    Args:
        coders: Read the schema.
        sides: The units; the real ones' answers are the reference.
        child: The child table.
        rng: Draws the queries.

    Returns:
        The mean over queries; None where none can be drawn.
    """
    train, others = sides.train, sides.others
    rows = train.children[child]
    own = coders.children[child]
    if rows is None or not own.names or not coders.root.names:
        return None
    off: dict[str, list[float]] = {role: [] for role in others}
    asked = 0
    for _ in range(TRIES * QUERIES):
        of_root = draw_condition(coders.root, train.root, int(rng.integers(len(coders.root.names))), rng)
        of_rows = [draw_condition(own, rows, place, rng) for place in _some(own, rng)]
        real = _share(train, child, of_root, of_rows)
        if real < LEAST_SHARE:
            continue
        for role, units in others.items():
            off[role].append(abs(_share(units, child, of_root, of_rows) - real))
        asked += 1
        if asked == QUERIES:
            break
    if not asked:
        return None
    return distance_score(
        "counts",
        f"Counts across, {child}",
        {role: float(np.mean(gaps)) for role, gaps in off.items()},
        f"How far the count of units with given values that have a row of {child} with given values is off, in shares "
        f"of all units; mean over {asked} random queries.",
    )


def _some(coder: Coder, rng: np.random.Generator) -> list[int]:
    most = min(2, len(coder.names))
    return [int(place) for place in rng.choice(len(coder.names), int(rng.integers(1, most + 1)), replace=False)]


def _share(units: CodedUnits, child: str, of_root: QueryCondition, of_rows: list[QueryCondition]) -> float:
    rows = units.children[child]
    if rows is None:
        return 0.0
    fits: _Marks = np.ones(len(rows), dtype=np.bool_)
    for part in of_rows:
        fits &= part.fits(rows)
    has = np.bincount(units.owners(child)[fits], minlength=len(units)) > 0
    return float((has & of_root.fits(units.root)).mean())
