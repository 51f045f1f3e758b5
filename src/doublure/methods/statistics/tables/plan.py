"""What ``statistics`` releases of a table: nine releases, whose sizes and shares are fixed before a record is read.

Later releases look where earlier ones found something: *which* columns, cells and pairs are counted follows from what
was released. How many tables a release has, and what it may spend, does not: it follows from the schema, and places
that are left over are spent on tables that say nothing, or on the strongest pairs once more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from doublure.encode.columns import integer_domain
from doublure.errors import SchemaError, SettingError, printable
from doublure.schema import Schema

PATTERNS = "count which cells are missing together"
CELLS = "count wide columns in public cells"
VALUES = "count single values where many are"
REPEATED = "count what else repeats"
COLUMNS = "count each column in groups"
BY_TARGET = "count each column within the target"
SCORES = "score how far each pair of columns is from independence"
PAIRS = "count the pairs that depend on one another"
TREE = "count the strongest pairs finely"

SHARES = {
    PATTERNS: 0.04,
    CELLS: 0.05,
    VALUES: 0.07,
    REPEATED: 0.02,
    COLUMNS: 0.22,
    BY_TARGET: 0.13,
    SCORES: 0.06,
    PAIRS: 0.17,
    TREE: 0.24,
}
"""Of the budget, in 1/σ²; what a table has no use for goes to its pairs."""
_TO_COLUMNS, _FEW, _MANY = 0.08, 1500.0, 4500.0
"""What columns get of the tree's share where units over noise are few (:func:`few_seen`), and how many that is.

Where they are few, most pairs are noise whatever is spent on them, and each is off by what its columns are off."""

COPIES = {CELLS: 3, COLUMNS: 4, BY_TARGET: 3, PAIRS: 2, TREE: 3}
"""Places for each table of a release, on average. Large tables are counted more often than small ones, and the mean is
taken: how often follows from their sizes, and how many places there are from the schema alone."""
_COLUMNS_AS_THEY_ARE = 0.1
"""The share of the columns where all of them are narrow, and their own counts are no finer than those of pairs."""

SHARES_WITHIN = {
    PATTERNS: 0.02,
    CELLS: 0.05,
    VALUES: 0.05,
    REPEATED: 0.01,
    COLUMNS: 0.25,
    SCORES: 0.03,
    PAIRS: 0.54,
    TREE: 0.05,
}
"""The same where cells are so few that all pairs are counted, each within the target."""

SEEN = 12.0
"""A group should have that many deviations of its noise."""
NARROW = 40
"""A column of so many values is counted as it is."""
LISTED = 512
"""A list of categories up to which they are, too: they have no neighbours to be looked for among."""
MOST_PATTERNS = 16
"""Columns whose missing cells are counted together; of more, none are."""
_PAIRS_A_COLUMN, _FEWEST_A_COLUMN = 8, 2
_SEEN_SCORE = 0.2
"""Noise of a score, as a share of the units, up to which all pairs are scored; of more, those of near columns are.

Columns that say all of one another score about 1, and stand out from a hundred thousand others."""
_SEEN_CELL = 1 / 64
"""Noise of a pair's cell, as a share of the units, up to which eight pairs a column are counted."""
GROUPS = 16
"""Groups of a column in pairs, unless units are many beside their noise."""
_MOST_GROUPS, _SEEN_PAIR = 48, 400.0
"""Groups at most, and units over the noise of a pair's cell up to which there are no more than usual.

A pair's error is its noise, in each of its cells, and what lies within a group and is not told apart; of a column of
many values beside one of few their sum is least where groups grow with the root of units over noise."""
_FINE, _FINE_OF_FEW, _FEW_UNITS = 48, 24, 10_000
_MOST_FINE, _SEEN_EDGE = 96, 1500.0
"""The same in the tree's pairs: usual groups, those of few units, the most, and units over noise from which on there
are more than usual."""
_CELLS_A_UNIT = 3.6
"""So many cells a unit are counted within the target, and no more."""
_WIDE_GROUPS = 16


@dataclass(frozen=True, kw_only=True)
class Releases:
    """How many tables each release has, by its purpose, in order; those without any are left out.

    Which cells are missing together is a column more, wherever columns are paired.

    Attributes:
        tables: Purpose -> how many.
        shares: Purpose -> its share of the budget; they add up to 1.
        pairs_within: Whether all pairs are counted, within the values of the column that is drawn last.
    """

    tables: dict[str, int]
    shares: dict[str, float]
    pairs_within: bool


def releases(
    schema: Schema, within: str, *, scored: int | None = None, paired: int | None = None, seen: float | None = None
) -> Releases:
    """Return the releases of a schema's table.

    Args:
        schema: The public facts, as planned: some may still be to be learned.
        within: The column that is drawn last, or an empty text.
        scored: How many pairs are scored at most; None: all.
        paired: How many are counted at most; None: eight a column.
        seen: Units over the noise of all releases together; None: many.
    """
    units = schema.public_units
    names = [name for name in counted_columns(schema) if name != within]
    columns = len(names)
    numbers = [name for name in names if schema.columns[name].bounded and may_be_wide(schema, name)]
    nullable = sum(schema.columns[name].missing is not False for name in names)
    patterns = int(2 <= nullable <= MOST_PATTERNS)
    nodes = columns + patterns
    pairs = math.comb(nodes, 2)
    pairs_within = bool(within) and pairs > 0 and _cells_within(schema, names, within) <= _CELLS_A_UNIT * units
    beside = bool(within) and not pairs_within
    tables = {
        PATTERNS: patterns,
        CELLS: sum(looked_for(schema, name) for name in names),
        VALUES: len(numbers),
        REPEATED: len(numbers),
        COLUMNS: columns,
        BY_TARGET: nodes if beside else 0,
        SCORES: min(pairs, scored or pairs) if nodes > 2 else 0,
        PAIRS: pairs if pairs_within else min(pairs, paired or _PAIRS_A_COLUMN * nodes),
        TREE: max(0, nodes - 1),
    }
    tables = {purpose: number * COPIES.get(purpose, 1) for purpose, number in tables.items() if number}
    all_shares = SHARES_WITHIN if pairs_within else _shares_for(seen)
    shares = {purpose: all_shares[purpose] for purpose in tables}
    if not any(may_be_wide(schema, name) for name in names) and PAIRS in tables:
        shares[COLUMNS] = _COLUMNS_AS_THEY_ARE
    shares[PAIRS if PAIRS in tables else COLUMNS] += 1 - sum(shares.values())
    return Releases(tables=tables, shares=shares, pairs_within=pairs_within)


def few_seen(seen: float | None) -> float:
    """Return whether units over noise are few: 0 where they are many or not known, 1 where they are few, or between."""
    return 0.0 if seen is None else min(1.0, max(0.0, math.log(_MANY / seen) / math.log(_MANY / _FEW)))


def _shares_for(seen: float | None) -> dict[str, float]:
    moved = round(_TO_COLUMNS * few_seen(seen), 4)
    return {**SHARES, COLUMNS: SHARES[COLUMNS] + moved, TREE: SHARES[TREE] - moved}


def seen_pairs(schema: Schema, within: str, noise_multiplier: float) -> tuple[int, int]:
    """Return how many pairs to score and to count: of a wide table no more than their noise lets say something.

    The noise of a score grows with the root of how many there are. Where all of a wide table's were scored, the pairs
    that looked strongest would be those with the largest noise.

    Args:
        schema: The public facts.
        within: The column that is drawn last, or an empty text.
        noise_multiplier: σ, of all releases together.
    """
    found = releases(schema, within)
    nodes, most = found.tables.get(TREE, 0) // COPIES[TREE] + 1, found.tables.get(SCORES, 0)
    seen = schema.public_units / noise_multiplier
    scored = found.shares.get(SCORES, 0.0) * (_SEEN_SCORE * seen) ** 2
    paired = found.shares.get(PAIRS, 0.0) * (_SEEN_CELL * seen) ** 2
    return (
        min(most, max(int(scored), _PAIRS_A_COLUMN * nodes)),
        min(_PAIRS_A_COLUMN * nodes, max(int(paired), _FEWEST_A_COLUMN * nodes)),
    )


def groups_for(over_noise: float) -> int:
    """Return into how many groups a column is joined for pairs.

    Args:
        over_noise: Units over the noise of a cell of a pair; of those within a value of the target, where that is.
    """
    return int(min(_MOST_GROUPS, GROUPS * math.sqrt(max(1.0, over_noise / _SEEN_PAIR))))


def fine_groups(over_noise: float, units: float) -> int:
    """Return into how many groups a column is joined for the tree's pairs.

    Args:
        over_noise: Units over the noise of a cell.
        units: How many there are.
    """
    usual = _FINE if units > _FEW_UNITS else _FINE_OF_FEW
    return int(min(_MOST_FINE, max(usual, _FINE * math.sqrt(over_noise / _SEEN_EDGE))))


def focused(schema: Schema, focus: tuple[str, ...], within: str) -> tuple[frozenset[str], ...]:
    """Return the columns and pairs that matter most, each as the names of its columns.

    Args:
        schema: The public facts.
        focus: A column's name, or two joined by ``" & "``.
        within: The column that is drawn last, or an empty text.

    Raises:
        SettingError: One is no column that is counted, or no pair of two.
    """
    counted = counted_columns(schema)
    found = []
    for text in focus:
        names = [text] if text in counted else [name.strip() for name in text.split(" & ")]
        unknown = [name for name in names if name not in counted]
        if unknown or len(set(names)) != len(names) or len(names) > 2:
            raise SettingError(
                f"{printable(text)} is no column that is counted, and no pair of two",
                field="focus",
                remedy='name columns of the schema, a pair as "one & other"',
            )
        if names == [within]:
            raise SettingError(
                f"{printable(text)} is drawn last: all others are counted within its values already",
                field="focus",
                remedy=f'leave it out, or name what it should go with: "{printable(text)} & ..."',
            )
        found.append(frozenset(names))
    return tuple(found)


def _cells_within(schema: Schema, names: list[str], within: str) -> float:
    """Return about how many cells all pairs of columns have within the values of another."""
    groups = [_groups(schema, name) for name in names]
    values = _groups(schema, within)
    return values * (sum(groups) ** 2 - sum(own**2 for own in groups)) / 2


def _groups(schema: Schema, name: str) -> int:
    return _WIDE_GROUPS if may_be_wide(schema, name) else min(_WIDE_GROUPS, integer_domain(schema, name).size)


def counted_columns(schema: Schema) -> list[str]:
    """Return the columns that are counted: an id and what follows from another column are not."""
    return [n for n, c in schema.columns.items() if c.modelled and n not in schema.derived]


def looked_for(schema: Schema, name: str) -> bool:
    """Return whether a column's rows are, or may have to be, looked for before they are counted."""
    column = schema.columns[name]
    listed = column.listed and not column.ordered and 0 < len(column.domain) < LISTED  # beside them, it may be missing
    return may_be_wide(schema, name) and not listed


def may_be_wide(schema: Schema, name: str) -> bool:
    """Return whether a column has, or may turn out to have, too many values to be counted as it is."""
    column = schema.columns[name]
    if column.listed and not column.domain:
        return True
    try:
        return integer_domain(schema, name).size > NARROW
    except SchemaError:
        return True
