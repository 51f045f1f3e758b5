"""The releases of ``statistics`` on a table: fourteen at most, with sizes and shares fixed before a record is read.

Later releases adapt to earlier ones: *which* columns, cells and pairs are counted follows from released counts. The
number of tables in a release, and its share of the budget, follow from the schema alone. Places left over are spent on
repeated counts of the same tables, or on tables without information.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from doublure.encode.columns import integer_domain
from doublure.errors import SchemaError
from doublure.methods.statistics.tables.focus import FocusedTables
from doublure.methods.statistics.tables.identities import identities_share
from doublure.methods.statistics.tables.missing_blocks import MOST_BLOCKS, declared_groups
from doublure.schema import Schema

NEIGHBOURS = "count which neighbours are missing together"
PATTERNS = "count which cells are missing together"
CELLS = "count wide columns in public cells"
ROUND = "count round values"
VALUES = "count single values where many are"
REPEATED = "count what else repeats"
CODES = "count codes of long lists, and their groups"
TARGET = "count the target"
COLUMNS = "count each column in groups"
BY_TARGET = "count each column within the target"
SCORES = "score how far each pair of columns is from independence"
IDENTITIES = "count the rows in which identities between numbers hold"
PAIRS = "count the pairs that depend on one another"
TREE = "count the strongest pairs finely"

SHARES = {
    NEIGHBOURS: 0.02,
    PATTERNS: 0.04,
    CELLS: 0.04,
    ROUND: 0.03,
    VALUES: 0.05,
    REPEATED: 0.02,
    COLUMNS: 0.22,
    BY_TARGET: 0.13,
    SCORES: 0.06,
    PAIRS: 0.17,
    TREE: 0.24,
}
"""Shares of the budget, in 1/σ²; the shares of releases that a table does not need go to its pairs."""
TO_CODES, _MOST_TO_CODES = 0.25, 0.4
"""The share for each list of codes, and the most for all: the others share the rest.

With 3,700 rows at ε = 1 and 1,450 codes, of which 190 occur, less leaves too many rows to codes without any."""
_TO_TARGET, _IN_FOCUS = 0.05, 4
"""The share for the target's own count, and how many times as much it is in focus, as for any column in focus.

It gives a class a count at all, where nothing public says how rare a class is. All other noise grows by 2.6 % for it.
A class can be quantified from ten standard deviations on (Currie 1968, Analytical Chemistry 40). Classes whose shares
are declared or bought are known better than by any count, and need none."""
CODE_LEVELS = 2
"""Tables of each list of codes: the codes, and their smallest groups. Groups above follow from those."""
_TO_COLUMNS, _FEW, _MANY = 0.08, 1500.0, 4500.0
"""Share that moves from the tree to columns where units over noise are few (:func:`few_units`), and the range of few.

With few units most pairs are noise at any share, and each pair inherits the errors of its columns."""

COPIES = {CELLS: 3, COLUMNS: 4, BY_TARGET: 3, PAIRS: 2, TREE: 3}
"""Counts of each table of a release, on average. Large tables are counted more often than small ones, and the mean is
used. A table's number of counts follows from its size, and the total from the schema alone."""

SHARES_WITHIN = {
    NEIGHBOURS: 0.02,
    PATTERNS: 0.02,
    CELLS: 0.04,
    ROUND: 0.03,
    VALUES: 0.03,
    REPEATED: 0.01,
    COLUMNS: 0.25,
    SCORES: 0.03,
    PAIRS: 0.54,
    TREE: 0.05,
}
"""Shares where cells are so few that all pairs are counted, each within the target."""

SEEN, SEEN_ALONE = 12.0, 5.0
"""Signal-to-noise ratio that a group's count should have in pairs, and in a column alone.

A column's posterior smooths its groups, so that they may be finer than those of pairs."""
_DEPENDENT = 1 / 3
"""Largest total variation distance of a pair from independence that is expected: the mean of five tables is .057 to
.272, and that of numbers even below a third .167."""
_JUDGED = 5
"""Measures of columns and of pairs by which tables are judged (one-way, two-way, three-way, means, deviations), for one
of the target (its AUC)."""
NARROW = 40
"""Most values of a column that is counted value by value."""
LISTED = 512
"""Most categories of a list that is counted value by value; categories have no neighbours to be searched by."""
_PAIRS_A_COLUMN, _FEWEST_A_COLUMN = 8, 2
_SEEN_SCORE = 0.2
"""Noise of a score, as a share of the units, up to which all pairs are scored; beyond it, pairs of near columns are.

Columns that determine one another score about 1, and stand out among a hundred thousand pairs."""
_SEEN_CELL = 1 / 64
"""Noise of a pair's cell, as a share of the units, up to which eight pairs a column are counted."""
GROUPS, FEWEST_PAIRED = 16, 8
"""Groups of a column in pairs, unless units over noise are many, and the fewest, where they are few."""
_MOST_GROUPS, _SEEN_PAIR = 48, 400.0
"""Most groups, and units over the noise of a pair's cell up to which there are ``GROUPS``.

A pair's error is the noise in each cell plus the variation within groups. For a column of many values paired with one
of few, their sum is least if groups grow with the square root of units over noise."""
_FINE, _MOST_FINE, _SEEN_EDGE = 48, 96, 1500.0
"""Groups of the tree's pairs where units are so many times the noise of a cell, and the most.

Their number follows the same root, with many units and with few. A ridge of m of m² cells loses to noise what grows
with m^1.5, and what is coarser than noise allows is lost for nothing."""
_CELLS_A_UNIT = 3.6
"""Most cells a unit of all pairs within the target, for which all pairs are counted."""
_WIDE_GROUPS = 16


@dataclass(frozen=True, kw_only=True)
class PlannedReleases:
    """Number of tables of each release, by purpose, in order; releases without tables are left out.

    The patterns of missing cells are paired as one column more.

    Attributes:
        tables: Purpose -> number of tables.
        shares: Purpose -> share of the budget; they add up to 1.
        pairs_within: Whether all pairs are counted, within the values of the column that is drawn last.
    """

    tables: dict[str, int]
    shares: dict[str, float]
    pairs_within: bool


def plan_releases(
    schema: Schema,
    within: str,
    *,
    scored: int | None = None,
    paired: int | None = None,
    seen: float | None = None,
    round_values: bool = True,
    times_of_day: bool = True,
    together: bool = True,
    given: int = 0,
    told: int = 0,
    target: float = 0.0,
    beside: bool = False,
    identities: int = 0,
) -> PlannedReleases:
    """Return the releases of a schema's table.

    Args:
        schema: The public facts, as planned; some may be bought later.
        within: The column that is drawn last, or an empty text.
        scored: Most pairs to score; None: all.
        paired: Most pairs to count; None: eight a column.
        seen: Units over the noise of all releases together; None: many.
        round_values: Whether round values are counted; if not, cells and single values are counted as much better.
        times_of_day: Whether, with them, moments are counted by hour.
        together: Whether pairs of columns are counted, besides the columns.
        given: How many of the first columns are known already, with all their pairs, and not counted.
        told: How many of the others have pairs among themselves that are known already, and not counted.
        target: The share of the target's own count.
        beside: Whether pairs are counted beside the target, and never within it.
        identities: How many identities between numbers are counted, once ``seen`` is known.
    """
    units = schema.public_units
    names = [name for name in counted_columns(schema) if name != within][given:]
    columns = len(names)
    lists = [name for name in names if has_groups(schema, name)]
    wide = [name for name in names if may_be_wide(schema, name)]
    numbers = [name for name in wide if schema.columns[name].bounded]
    held = {*names, within} if target else {*names}  # the target's missing cells are known from its own count
    nullable = [n for n in counted_columns(schema) if n in held and schema.columns[n].missing is not False]
    blocks = declared_groups(schema.constraints, nullable)
    patterns = int(sum(map(len, blocks)) > 1)
    nodes = columns + patterns
    pairs = (nodes * given + math.comb(nodes, 2) - math.comb(told, 2)) * together
    pairs_within = bool(within) and pairs > 0 and not beside
    pairs_within = pairs_within and _cells_within(schema, names, within) <= _CELLS_A_UNIT * units
    beside = bool(within) and together and not pairs_within
    tables = {
        NEIGHBOURS: len(blocks) - 1 if len(blocks) > MOST_BLOCKS else 0,
        PATTERNS: patterns,
        CELLS: sum(is_located(schema, name) for name in wide),
        ROUND: (len(numbers) + times_of_day * sum(_tells_hour(schema, name) for name in numbers)) * round_values,
        VALUES: len(numbers),
        REPEATED: len(numbers),
        CODES: CODE_LEVELS * len(lists),
        TARGET: int(target > 0),
        COLUMNS: columns,
        BY_TARGET: nodes if beside else 0,
        SCORES: min(pairs, scored or pairs) if nodes + given > 2 else 0,
        IDENTITIES: 0 if seen is None else identities,
        PAIRS: pairs if pairs_within else min(pairs, paired or _PAIRS_A_COLUMN * nodes),
        TREE: (nodes if given else max(0, nodes - 1)) * together,
    }
    tables = {purpose: number * COPIES.get(purpose, 1) for purpose, number in tables.items() if number}
    all_shares = SHARES_WITHIN if pairs_within else _shares_for(seen)
    if lists:
        taken = min(_MOST_TO_CODES, TO_CODES * len(lists))
        all_shares = {purpose: round(share * (1 - taken), 4) for purpose, share in all_shares.items()} | {CODES: taken}
    known = {TARGET: target} if target else {}
    if identities and seen is not None:
        known[IDENTITIES] = identities_share(identities, seen)
    if known:
        rest = 1 - sum(known.values())
        all_shares = {purpose: round(share * rest, 4) for purpose, share in all_shares.items()} | known
    shares = {purpose: all_shares[purpose] for purpose in tables}
    if not round_values and VALUES in shares:
        shares[CELLS] = round(shares[CELLS] + all_shares[ROUND] / 3, 4)
        shares[VALUES] = round(shares[VALUES] + all_shares[ROUND] * 2 / 3, 4)
    if not together:
        fixed = sum(known.values())
        scale = (1 - fixed) / (sum(shares.values()) - fixed)
        shares = {name: share if name in known else round(share * scale, 4) for name, share in shares.items()}
    shares[PAIRS if PAIRS in tables else COLUMNS] += 1 - sum(shares.values())
    return PlannedReleases(tables=tables, shares=shares, pairs_within=pairs_within)


def counted_target(schema: Schema, within: str) -> str:
    """Return the column whose values may have a count of their own; empty for none.

    Args:
        schema: The public facts.
        within: The column that is drawn last, or an empty text.
    """
    if within:
        return within
    for name in schema.with_role("target"):
        column = schema.columns[name]
        alone = column.listed and column.domain and not is_located(schema, name) and not has_groups(schema, name)
        if alone and name in counted_columns(schema):
            return name
    return ""


def target_share(schema: Schema, target: str, focus: FocusedTables) -> float:
    """Return the share of the target's own count by the public rule.

    Args:
        schema: The public facts.
        target: The column of :func:`counted_target`, or an empty text.
        focus: Columns and pairs in focus.
    """
    if not target or schema.columns[target].fact("shares") is not None or len(counted_columns(schema)) < 2:
        return 0.0
    return _TO_TARGET * (_IN_FOCUS if [target] in focus else 1)


def few_units(seen: float | None) -> float:
    """Return 1 if units over noise are few, 0 if they are many or unknown, and a value between on a log scale."""
    return 0.0 if seen is None else min(1.0, max(0.0, math.log(_MANY / seen) / math.log(_MANY / _FEW)))


def _shares_for(seen: float | None) -> dict[str, float]:
    moved = round(_TO_COLUMNS * few_units(seen), 4)
    return {**SHARES, COLUMNS: SHARES[COLUMNS] + moved, TREE: SHARES[TREE] - moved}


def affordable_pairs(
    schema: Schema, within: str, noise_multiplier: float, *, round_values: bool = True, beside: bool = False
) -> tuple[int, int]:
    """Return how many pairs to score and to count; for a wide table, no more than their noise allows.

    The noise of a score grows with the square root of the number of scores. If all pairs of a wide table were scored,
    the strongest scores would be those with the largest noise.

    Args:
        schema: The public facts.
        within: The column that is drawn last, or an empty text.
        noise_multiplier: σ of all releases together.
        round_values: Whether round values are counted.
        beside: Whether pairs are counted beside the target.
    """
    found = plan_releases(schema, within, round_values=round_values, beside=beside)
    nodes, most = found.tables.get(TREE, 0) // COPIES[TREE] + 1, found.tables.get(SCORES, 0)
    seen = schema.public_units / noise_multiplier
    scored = found.shares.get(SCORES, 0.0) * (_SEEN_SCORE * seen) ** 2
    paired = found.shares.get(PAIRS, 0.0) * (_SEEN_CELL * seen) ** 2
    return (
        min(most, max(int(scored), _PAIRS_A_COLUMN * nodes)),
        min(_PAIRS_A_COLUMN * nodes, max(int(paired), _FEWEST_A_COLUMN * nodes)),
    )


def better_together(
    schema: Schema, ways: Sequence[str], noise_multiplier: float, *, round_values: bool = True
) -> str | None:
    """Return the column to draw last, if a forecast of error is lower where pairs are counted; None for columns alone.

    The forecast knows public facts only, so that distances are even a priori: of a column from its public cells over
    [0, 1], and of a pair from independence over [0, ``_DEPENDENT``]. A table of c cells with noise s, as shares, is
    shrunk towards what is known without it as James and Stein (1961) do, which takes a part κ / (D² + κ) of a distance
    D. κ = c s² / 4 is a lower bound, since squares of differences add up to (2 D)² at most. A table by itself may lose
    more (κ = c² s² / 2π where all cells differ), but one fit to all tables leaves less noise than each has alone: the
    larger κ calls for columns alone where pairs are far ahead (docs/evidence/methods.md).

    A pair's error is that of two columns, and of what is left of its dependence: all of it where it is not counted.
    With the column's own error, which counts as much, a column's is met three times. Counted pairs are taken as any:
    where noise decides, the strongest are not known.

    Where it is open whether a declared target is drawn last, it is judged besides: by how much of what tells it is lost
    (:func:`_told`), with the weight of one measure beside ``_JUDGED``. A target of few values is drawn last wherever
    pairs are counted. There the error of pairs decides alone, which is what was measured on such tables.

    Args:
        schema: The public facts.
        ways: Columns that may be drawn last; an empty text for none.
        noise_multiplier: σ of all releases together.
        round_values: Whether round values are counted.
    """
    seen = schema.public_units / noise_multiplier
    names = counted_columns(schema)
    groups = [_groups(schema, name) for name in names]
    side, pairs = sum(groups) / max(1, len(groups)), math.comb(len(groups), 2)
    target = counted_target(schema, "") if len(ways) > 1 else ""
    values = _groups(schema, target) if target else 0

    def kappa(planned: PlannedReleases, purpose: str, cells: float) -> float:
        return cells * planned.tables[purpose] / COPIES[purpose] / planned.shares[purpose] / seen**2 / 4

    def left(kappa: float, most: float = 1.0) -> float:
        return kappa * math.log1p(most**2 / kappa) / (2 * most)

    def error(within: str) -> float:
        scored, paired = affordable_pairs(schema, within, noise_multiplier, round_values=round_values)
        own = plan_releases(schema, within, scored=scored, paired=paired, seen=seen, round_values=round_values)
        if not pairs or PAIRS not in own.tables:
            return -math.inf
        share = min(1.0, own.tables[PAIRS] / COPIES[PAIRS] / pairs)
        of_pair = kappa(own, PAIRS, side**2 * (_groups(schema, within) if own.pairs_within else 1))
        columns = len(names) - 1
        if not target:
            told = 0.0
        elif within != target:
            told = _told(columns * share, of_pair)
        elif own.pairs_within:  # a column's table within the target is the margin of those of all its pairs
            told = _told(columns, of_pair / max(1, columns - 1))
        else:
            told = _told(columns, kappa(own, BY_TARGET, side * values))
        lost = (_told(columns, 0.0) - told) / _JUDGED if target else 0.0
        together = share * left(of_pair, _DEPENDENT) + (1 - share) * _DEPENDENT / 2
        return 3 * left(kappa(own, COLUMNS, side)) + together + lost

    other = plan_releases(schema, "", seen=seen, round_values=round_values, together=False)
    apart = 3 * left(kappa(other, COLUMNS, side)) + _DEPENDENT / 2
    apart += _told(len(names) - 1, 0.0) / _JUDGED if target else 0.0
    errors = {within: error(within) for within in ways}
    best = min(errors, key=lambda within: errors[within])
    return best if errors[best] < apart else None


def _told(columns: float, kappa: float) -> float:
    """Return by how much a classifier of the target is better than chance, from 0 to 1: 2 AUC - 1.

    A column at a distance D from independence tells two even classes apart by 4 D standard deviations, and D² has the
    mean m = ``_DEPENDENT``² / 3. Noise of κ in each of n columns leaves 4 n m / √(n (m + κ)) of them together. Two
    normal classes d apart have 2 AUC - 1 = erf(d / 2) (Green and Swets 1966).

    Args:
        columns: How many are counted with the target.
        kappa: Their noise, in units of D².
    """
    mean = _DEPENDENT**2 / 3
    return math.erf(2 * mean * math.sqrt(columns / (mean + kappa)))


def groups_for(over_noise: float) -> int:
    """Return the number of groups of a column in pairs.

    Args:
        over_noise: Units over the noise of a pair's cell; units of one value where pairs are counted within the target.
    """
    return int(min(_MOST_GROUPS, GROUPS * math.sqrt(max(1.0, over_noise / _SEEN_PAIR))))


def fine_groups(over_noise: float) -> int:
    """Return the number of groups of a column in the tree's pairs; where it has more in other pairs, those are used.

    Args:
        over_noise: Units over the noise of a cell.
    """
    return int(min(_MOST_FINE, max(1.0, _FINE * math.sqrt(over_noise / _SEEN_EDGE))))


def _cells_within(schema: Schema, names: list[str], within: str) -> float:
    """Return the approximate number of cells of all pairs of columns within the values of another column."""
    groups = [_groups(schema, name) for name in names]
    values = _groups(schema, within)
    return values * (sum(groups) ** 2 - sum(own**2 for own in groups)) / 2


def _groups(schema: Schema, name: str) -> int:
    size = _domain_size(schema, name)
    return _WIDE_GROUPS if size is None or size > NARROW else min(_WIDE_GROUPS, size)


def counted_columns(schema: Schema) -> list[str]:
    """Return the columns that are counted: all but ids, derived columns, and those counted together with another."""
    others = {*schema.derived, *schema.beside}
    return [name for name, column in schema.columns.items() if column.modelled and name not in others]


def has_groups(schema: Schema, name: str) -> bool:
    """Return whether a column is a long list of codes with public groups above them."""
    column = schema.columns[name]
    return bool(column.level_numbers) and len(column.domain) > NARROW


def is_located(schema: Schema, name: str) -> bool:
    """Return whether a column may first be counted in public cells, to find those that hold rows."""
    column = schema.columns[name]
    listed = column.listed and not column.ordered and 0 < len(column.domain) < LISTED  # one more value may be missing
    return not listed and not has_groups(schema, name) and may_be_wide(schema, name)


def _tells_hour(schema: Schema, name: str) -> bool:
    """Return whether a column has a time of day, or may turn out to have one."""
    try:
        return integer_domain(schema, name).hours() > 0
    except SchemaError:
        return schema.columns[name].tells_hour


def may_be_wide(schema: Schema, name: str) -> bool:
    """Return whether a column has, or may turn out to have, too many values to be counted value by value."""
    size = _domain_size(schema, name)
    return size is None or size > NARROW


def _domain_size(schema: Schema, name: str) -> int | None:
    """Return how many values a column has; None where they are not known yet."""
    column = schema.columns[name]
    if column.listed and not column.domain:
        return None
    try:
        return integer_domain(schema, name).size
    except SchemaError:
        return None
