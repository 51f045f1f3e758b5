"""Relations between rows: their number, their dependence on the parent, and on the previous row.

=============  =================================================================================================
children       total variation of the number of rows of a child table per unit
parent_child   total variation of the two-way tables of a column of the root and one of its children, the mean over
               the 30 most dependent pairs in real rows
transitions    the same of a column and itself in the next row, the mean over columns
gaps           total variation of the gap between successive rows, in tenths of the real ones
counts         the number of units with some values and a row with some values: mean error of random counts
=============  =================================================================================================

Each figure stands beside that of independent tables, and of real units kept aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from doublure.intervals import Result
from doublure.measures.relational.units import CodedUnits, ComparedUnits, UnitCoder
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.count_queries import LEAST_SHARE, TRIES, QueryCondition, draw_condition
from doublure.measures.tables.counts import CodeCounts, count
from doublure.measures.tables.fidelity import pair_variation, strength, variation
from doublure.measures.tables.influence import variation_influence
from doublure.measures.tables.relations import is_clear, is_lost
from doublure.measures.tables.verdict import MOST_NAMED, say_pair
from doublure.support.arrays import Floats, Ints

MOST_DEPENDENT = 30
"""Number of pairs of a parent's and a child's column compared, the most dependent ones."""

_TENTHS = 10
_NONE: Mapping[str, float | None] = {"value": 1.0, "baseline": None, "real": None}
"""The distance of a set without such rows: it shares nothing with real ones."""


class PairDependence(Result):
    """One pair of columns: its dependence in real rows, and its error in others.

    Attributes:
        names: Both columns; of a transition the same twice.
        association: Cramér's V in real rows.
        synthetic: Cramér's V in synthetic rows; null where there are none.
        holdout: Cramér's V in other real rows; null where there are none.
        clear: Whether the columns of real rows depend on one another by more than chance.
        variation: The total variation.
    """

    names: tuple[str, str]
    association: float
    synthetic: float | None
    holdout: float | None
    clear: bool
    variation: Score

    @property
    def lost(self) -> bool:
        """Whether a clear relation has less than half of its association left, and less than other real rows show."""
        holdout = self.association if self.holdout is None else self.holdout
        return self.clear and is_lost(self.association, self.synthetic or 0.0, holdout)


class ChildRelation(Result):
    """The relation of one child table to the root.

    Attributes:
        child: The table.
        scores: The scores of the module's table that apply to it.
        parent_child: The compared pairs, the most dependent first.
        transitions: Each column and itself in the next row.
        children: Number of rows of a unit, from none to the most -> shares of real and of synthetic units.
    """

    child: str
    scores: tuple[Score, ...]
    parent_child: tuple[PairDependence, ...]
    transitions: tuple[PairDependence, ...]
    children: tuple[tuple[float, float], ...]


def relation(coders: UnitCoder, sides: ComparedUnits, child: str, seed: int, resamples: Resamples) -> ChildRelation:
    """Return the similarity of synthetic rows of a child table to real ones in their relations.

    Args:
        coders: Read the schema.
        sides: The units.
        child: The child table.
        seed: Fixes the count queries.
        resamples: Receives the figures' resamples, in which whole units are drawn.
    """
    schema = sides.train.content.schema
    most = schema.most(child)
    shares = {role: _numbers(units, child, most) for role, units in sides.others.items()}
    train = _numbers(sides.train, child, most)
    scores = [
        distance_score(
            "children",
            f"Rows of {child}, TVD",
            {role: variation(train, own) for role, own in shares.items()},
            f"The share of units that would have to have another number of {child} for the numbers to match.",
        )
    ]
    pairs = _parent_child(coders, sides, child)
    if pairs:
        scores.append(
            _mean(
                "parent_child",
                f"Parent and {child}, TVD",
                pairs,
                f"Joint frequencies of a column of the root and one of {child}: the share of rows that would have to "
                f"change; mean over the {len(pairs)} most dependent pairs.",
            )
        )
    steps = _transitions(coders, sides, child) if most > 1 else ()
    if steps:
        scores.append(
            _mean(
                "transitions",
                f"Successive {child}, TVD",
                steps,
                f"Joint frequencies of a column in one row of {child} and in the next: the share of pairs that would "
                "have to change; mean over columns.",
            )
        )
    gaps = _gaps(sides, child)
    counts = counts_across(coders, sides, child, np.random.default_rng(seed))
    scores += [score for score in (gaps, counts) if score is not None]
    _resample(coders, sides, child, {score.key: score for score in scores}, pairs, resamples)
    scores = [resamples.sure(score, f"{score.key} {child}") for score in scores]
    shown = tuple((round(float(one), 4), round(float(two), 4)) for one, two in zip(train, shares["value"], strict=True))
    return ChildRelation(child=child, scores=tuple(scores), parent_child=pairs, transitions=steps, children=shown)


def _resample(
    coders: UnitCoder,
    sides: ComparedUnits,
    child: str,
    scores: Mapping[str, Score],
    pairs: tuple[PairDependence, ...],
    resamples: Resamples,
) -> None:
    """Store the resamples of the relation's distances: rows are drawn with their unit.

    Counts across tables and gaps have none.
    """
    both = {"train": sides.train, "value": sides.synthetic}
    most = sides.train.content.schema.most(child)
    counted = [np.minimum(units.content.counts(child), most).astype(np.int32)[:, None] for units in both.values()]
    found = {"children": variation_influence(counted[0], counted[1], [most + 1], [(0,)])}
    rows = [units.children[child] for units in both.values()]
    owners = [units.owners(child) for units in both.values()]
    sizes, own = [*coders.root.sizes, *coders.children[child].sizes], coders.children[child]
    if "parent_child" in scores and None not in rows:
        names = [*((True, name) for name in coders.root.names), *((False, name) for name in own.names)]
        places = [(names.index((True, one)), names.index((False, other))) for one, other in (p.names for p in pairs)]
        codes = [
            np.concatenate([units.root.codes[whose], each.codes], axis=1)
            for units, whose, each in zip(both.values(), owners, rows, strict=True)
            if each is not None
        ]
        found["parent_child"] = _by_unit(variation_influence(codes[0], codes[1], sizes, places), owners, both)
    if "transitions" in scores and None not in rows:
        firsts = [units.successive(child) for units in both.values()]
        if all(map(len, firsts)):
            codes = [
                np.concatenate([each.codes[first], each.codes[first + 1]], axis=1)
                for each, first in zip(rows, firsts, strict=True)
                if each is not None
            ]
            steps = [(place, len(own.names) + place) for place in range(len(own.names))]
            whose = [owner[first] for owner, first in zip(owners, firsts, strict=True)]
            moved = variation_influence(codes[0], codes[1], [*own.sizes] * 2, steps)
            found["transitions"] = _by_unit(moved, whose, both)
    for key, (real, artificial) in found.items():
        resamples.add(f"{key} {child}", "value", scores[key].value, {"train": real, "value": artificial})


def _by_unit(
    influence: tuple[Floats, Floats], owners: list[Ints], both: Mapping[str, CodedUnits]
) -> tuple[Floats, Floats]:
    """Return the influences of units, on shares of all rows, from those of their rows."""
    found: list[Floats] = [
        np.asarray(np.bincount(whose, weights=each - each.mean(), minlength=len(units)), dtype=np.float64)
        * (len(units) / len(each))
        for each, whose, units in zip(influence, owners, both.values(), strict=True)
    ]
    return found[0], found[1]


def _numbers(units: CodedUnits, child: str, most: int) -> Floats:
    many = np.minimum(units.content.counts(child), most)
    return np.bincount(many, minlength=most + 1) / len(units)


def _parent_child(coders: UnitCoder, sides: ComparedUnits, child: str) -> tuple[PairDependence, ...]:
    """Return the most dependent pairs of a column of the root and one of a child."""
    parent, own = coders.root, coders.children[child]
    names, sizes = [*parent.names, *own.names], [*parent.sizes, *own.sizes]
    places = [(one, len(parent.names) + other) for one in range(len(parent.names)) for other in range(len(own.names))]

    def codes(units: CodedUnits) -> Ints | None:
        rows = units.children[child]
        return None if rows is None else np.concatenate([units.root.codes[units.owners(child)], rows.codes], axis=1)

    return _pairs(sides, codes, sizes, places, lambda pair: (names[pair[0]], names[pair[1]]))[:MOST_DEPENDENT]


def _transitions(coders: UnitCoder, sides: ComparedUnits, child: str) -> tuple[PairDependence, ...]:
    """Return each column of a child table paired with itself in the next row."""
    own = coders.children[child]
    many = len(own.names)

    def codes(units: CodedUnits) -> Ints | None:
        rows, first = units.children[child], units.successive(child)
        if rows is None or not len(first):
            return None
        return np.concatenate([rows.codes[first], rows.codes[first + 1]], axis=1)

    places = [(place, many + place) for place in range(many)]
    return _pairs(sides, codes, [*own.sizes] * 2, places, lambda pair: (own.names[pair[0]],) * 2)


def _pairs(
    sides: ComparedUnits,
    codes: Callable[[CodedUnits], Ints | None],
    sizes: list[int],
    places: list[tuple[int, int]],
    names: Callable[[tuple[int, int]], tuple[str, str]],
) -> tuple[PairDependence, ...]:
    """Return pairs of columns, the most dependent in real rows first; none where no unit has such rows."""
    found: dict[str, CodeCounts] = {}
    for role, units in {"train": sides.train, **sides.others}.items():
        own = codes(units)
        if own is not None:
            found[role] = count(own.astype(np.int32), sizes, places)
    if "train" not in found:
        return ()
    train = found.pop("train")
    pairs = [
        PairDependence(
            names=names(pair),
            association=round(strength(train, pair), 4),
            synthetic=round(strength(found["value"], pair), 4) if "value" in found else None,
            holdout=round(strength(found["real"], pair), 4) if "real" in found else None,
            clear=is_clear(train, pair, len(places)),
            variation=distance_score(
                "variation",
                "total variation",
                {
                    role: pair_variation(train, found[role], pair)
                    if role in found
                    else 1.0
                    if role == "value"
                    else None
                    for role in sides.others
                },
            ),
        )
        for pair in places
    ]
    return tuple(sorted(pairs, key=lambda pair: -pair.association))


def say_lost_pairs(found: ChildRelation) -> list[str]:
    """Return how many relations between rows are lost, and the strongest of them; nothing where none is."""
    lost = [pair for pair in (*found.parent_child, *found.transitions) if pair.lost]
    if not lost:
        return []
    named = [
        f"{say_pair(pair.names, pair.association, pair.synthetic or 0.0)}"
        f"{', from row to row' if pair in found.transitions else ''}"
        for pair in sorted(lost, key=lambda pair: -pair.association)[:MOST_NAMED]
    ]
    more = f"; and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    looked = sum(pair.clear for pair in (*found.parent_child, *found.transitions))
    return [
        f"{found.child}: {len(lost)} of {looked} relations between rows lose at least half of their association.",
        f"Lost: {'; '.join(named)}{more}.",
    ]


def _mean(key: str, name: str, pairs: tuple[PairDependence, ...], meaning: str) -> Score:
    figures: dict[str, float | None] = {}
    for role in ("value", "baseline", "real"):
        known = [figure for pair in pairs if (figure := getattr(pair.variation, role)) is not None]
        figures[role] = float(np.mean(known)) if known else None
    return distance_score(key, name, figures, meaning)


def _gaps(sides: ComparedUnits, child: str) -> Score | None:
    """Return the error of gaps between successive rows; None without an order, or without a next row."""
    order = sides.train.content.schema.tables[child].order
    if order is None:
        return None

    def gaps(units: CodedUnits) -> Floats:
        rows, first = units.children[child], units.successive(child)
        return np.zeros(0) if rows is None else rows.numbers[order][first + 1] - rows.numbers[order][first]

    real = gaps(sides.train)
    if not len(real):
        return None
    edges = np.unique(np.quantile(real, np.arange(1, _TENTHS) / _TENTHS))

    def shares(values: Floats) -> Floats:
        return np.bincount(np.searchsorted(edges, values, side="left"), minlength=len(edges) + 1) / max(1, len(values))

    figures: Mapping[str, float | None] = {
        role: variation(shares(real), shares(own)) if len(own := gaps(units)) else _NONE[role]
        for role, units in sides.others.items()
    }
    return distance_score(
        "gaps",
        f"Gaps between {child}, TVD",
        figures,
        f"How long it takes from one row of {child} to the next, in tenths of the real gaps.",
    )


QUERIES = 200
"""Number of queries for a child table, where so many can be drawn."""

_Marks = npt.NDArray[np.bool_]


def counts_across(coders: UnitCoder, sides: ComparedUnits, child: str, rng: np.random.Generator) -> Score | None:
    """Return the error of counts of units, as a share of all units.

    A query asks for the number of units with some values in the root and a row with some values in a child table. It
    names some values of a column of the root, and of one or two columns that must hold in the same child row.

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
