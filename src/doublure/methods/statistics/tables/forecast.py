"""Forecasts of what noise hides, from public figures and released counts.

A table of N rows has noise s in each cell. Of a difference D (total variation) from what is drawn without the table,
D² / (D² + h²) is kept (James and Stein 1961): half of the difference h. A relation between two columns of m groups lies
in a ridge of m of the m² cells, so that h = m^1.5 s / 2N. A value of the target with n rows differs from the others in
all m groups of a column, so that h = m s / 2n. A pair is not counted where its score is below its threshold of two
deviations; a score is 2 N D.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, product

from doublure.access import Access
from doublure.encode.columns import integer_domain
from doublure.encode.differences import Gap, gaps_of
from doublure.errors import counted, printable
from doublure.intervals import IN_95_OF_100
from doublure.methods.method import QuestionForecast, Released
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.focus import FocusedTables, often, refused_slopes
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.schema import Schema
from doublure.schema.rules.at_most import orders
from doublure.schema.rules.rule import list_names
from doublure.schema.scalars import label

_STRONG = 0.18
"""Total variation from independence of two normal numbers with a correlation of 0.5, a large effect (Cohen 1988)."""
_SEEN, _HALF = 3.0, 0.5
"""Standard deviations from which on a count is detected (Currie 1968, Analytical Chemistry 40), and the difference of a
value's rows that is kept by half."""
_NAMED = 5
_MEAN_OF_NORMAL = math.sqrt(2 / math.pi)
_CELLS = 20
"""Cells in which a column of many values is judged, as ``benchmarks/dominance.py`` judges it."""
_KNOWN = (plan.COLUMNS, plan.BY_TARGET)
"""The releases whose tables are known before any is drawn: one a column."""
_ANY, _MANY, _FEW = "columns", f"columns of more than {plan.NARROW} values", f"columns of at most {plan.NARROW} values"


@dataclass(frozen=True, kw_only=True)
class NoiseForecast:
    """Forecast of what the releases of a table will show.

    Attributes:
        schema: The public facts.
        events: The releases by purpose.
        within: The column that is drawn last, or an empty text.
        groups: Most groups of a column in pairs, if they are given.
        given: How many of the first columns are not counted.
        focus: What is counted more often.
    """

    schema: Schema
    events: Mapping[str, DiscreteGaussianEvent]
    within: str = ""
    groups: int | None = None
    given: int = 0
    focus: FocusedTables = field(default_factory=FocusedTables)

    @classmethod
    def of(
        cls, schema: Schema, accesses: Iterable[Access], prefix: str = "", **more: str | int | FocusedTables | None
    ) -> NoiseForecast:
        """Return the forecast of planned accesses whose purposes have a prefix."""
        events = {
            access.purpose.removeprefix(prefix): access.event
            for access in accesses
            if access.purpose.startswith(prefix) and isinstance(access.event, DiscreteGaussianEvent)
        }
        return cls(schema=schema, events=events, **more)  # type: ignore[arg-type]

    @cached_property
    def columns(self) -> list[str]:
        """The columns whose errors are forecast: those that are counted."""
        return plan.counted_columns(self.schema)

    @cached_property
    def target(self) -> str:
        """The column whose values may have a count of their own, or an empty text."""
        return plan.counted_target(self.schema, self.within)

    @property
    def questions(self) -> tuple[QuestionForecast, ...]:
        """The forecast of each column and pair in focus, in the order of the setting."""
        found = []
        for asked in self.focus.asked:
            names = tuple(name for name in self.columns if name in asked)
            pair = len(names) > 1 and self._is_counted(names)
            cell = self._of_pair_cell(names) if pair else self.spread(names[0])
            found.append(
                QuestionForecast(
                    columns=names, distance=self.distance(names), margin=IN_95_OF_100 * cell,
                    hidden=min(1.0, self._relation(names)) if pair else None, measured=self._measured(names),
                    refused=tuple(self._refused(names)) if pair else (),
                )
            )  # fmt: skip
        return tuple(found)

    def _measured(self, names: Sequence[str]) -> dict[str, str]:
        """Return those of a pair that are counted by how far they are from a third column, and that one."""
        gaps = {name: self._gaps[name].first for name in names if name in self._gaps} if len(names) > 1 else {}
        return {name: first for name, first in gaps.items() if first not in names}

    @cached_property
    def _gaps(self) -> dict[str, Gap]:
        return gaps_of(self.schema, "steps", 1)

    def gap_limits(self) -> tuple[str, ...]:
        """Return a sentence about each column that may be missing, and from which others are measured all the same."""
        found: dict[str, list[str]] = {}
        for name, gap in self._gaps.items():
            first = gap.first
            while first in self._gaps:
                first = self._gaps[first].first
            if self.schema.columns[first].may_be_missing and name in self.columns:
                found.setdefault(first, []).append(name)
        chosen = {rule.measured_from for rule in orders(self.schema.constraints)}
        return tuple(
            f"Where {printable(first)} is missing, nothing but a bound is left to measure {list_names(names)} from. If "
            "that is often so, their relations to other columns are weak: write measured_from: COLUMN into their "
            "at_most, and name the one that is there most often"
            for first, names in found.items()
            if first not in chosen
        )

    def hidden_relations(self) -> dict[str, float]:
        """Return the total variation from independence of which half is lost, by kind of columns; 1 if all is lost."""
        names = self._others[self.given :]
        wide = [name for name in names if plan.may_be_wide(self.schema, name)]
        kinds = {_MANY: wide, _FEW: [name for name in names if name not in wide]}
        kinds = {kind: own for kind, own in kinds.items() if len(own) > 1} or {_ANY: names} if len(names) > 1 else {}
        if len(kinds) == 1:
            kinds = {_ANY: next(iter(kinds.values()))}
        if plan.PAIRS not in self.events:
            return dict.fromkeys(kinds, 1.0)
        unseen = self.events[plan.SCORES].scale / self._rows if plan.SCORES in self.events else 0.0
        sides = {kind: sum(self._sizes(own)) / len(own) for kind, own in kinds.items()}
        return {kind: min(1.0, max(unseen, self._halved(side))) for kind, side in sides.items()}

    def hidden_given(self) -> dict[str, float]:
        """Return the same of pairs of a column that is given and one that is counted; nothing without such pairs.

        A relation of m groups with n fills the longer side of a table of m by n cells: m^1.5 becomes (m n max(m, n))^½.
        """
        names = self._others
        sizes = self._sizes(names)
        wide = [plan.may_be_wide(self.schema, name) for name in names]
        sides: dict[str, list[float]] = {}
        for one, other in product(range(min(self.given, len(names))), range(self.given, len(names))):
            m, n = sizes[one], sizes[other]
            sides.setdefault(_MANY if wide[one] or wide[other] else _FEW, []).append((m * n * max(m, n)) ** (1 / 3))
        if plan.PAIRS not in self.events:
            return dict.fromkeys(sides, 1.0)
        return {kind: min(1.0, self._halved(sum(own) / len(own))) for kind, own in sides.items()}

    def hidden_rows(self) -> float:
        """Return the rows of a value of the target up to which its columns are mostly those of all rows; 0: unknown."""
        names = self._others
        if not self.within or len(names) < 2:
            return 0.0
        sizes = self._sizes(names)
        side = sum(sizes) / len(sizes)
        if plan.BY_TARGET in self.events:
            return side * self._noise(plan.BY_TARGET)
        precision = sum(1 / size for size in sizes) * (1 - 1 / len(sizes))  # of a margin of all of a column's pairs
        return side * self._noise(plan.PAIRS) / math.sqrt(precision)

    def rare_values(self, released: Released) -> tuple[str, ...]:
        """Return a sentence about values of the target that noise hides.

        Args:
            released: Reads the noisy tables; none before a fit.
        """
        name = self.target
        column = self.schema.columns.get(name)
        if column is None:
            return ()
        shares, spread, rows = column.fact("shares"), 0.0, dict[str, float]()
        if isinstance(shares, Mapping):
            rows = {label(value): shares[label(value)] * self.schema.public_units for value in column.domain}
        elif plan.TARGET in self.events:
            spread = self._noise(plan.TARGET)
            own = next((table for table in released() if table.columns == (name,)), None)
            rows = {} if own is None else dict(zip(own.cells[0], own.counts.tolist(), strict=True))
        hidden = max(self.hidden_rows(), _SEEN * spread)
        rare = [value for value, own in rows.items() if own < hidden]
        if not rare:
            return ()
        named = [f"{printable(value)} (about {max(0, round(rows[value])):,})" for value in rare[:_NAMED]]
        more = f" and {len(rare) - _NAMED} more" if len(rare) > _NAMED else ""
        noise = f"; counts have a standard deviation of {spread:,.0f}" if spread else ""
        return (
            f"{printable(name)}: values of fewer than about {counted(_rounded(hidden), 'row')} are below the noise, "
            f"and their other columns are mostly those of all rows: {', '.join(named)}{more}{noise}",
        )

    def described_target(self) -> tuple[str, ...]:
        """Return a line about the counts of the target's values."""
        if plan.TARGET not in self.events:
            return ()
        name, spread = self.target, self._noise(plan.TARGET)
        hidden = max(self.hidden_rows(), _SEEN * spread)
        return (
            f"Forecast: rows of each value of {printable(name)} are counted with a standard deviation of "
            f"{spread:,.0f}; values of fewer than about {counted(_rounded(hidden), 'row')} are below the noise",
        )

    def spread(self, name: str) -> float:
        """Return the standard deviation of the count of a listed value, in rows: of all its counts together."""
        precision = sum(1 / self._noise(each, (name,)) ** 2 for each in self._counts_of(name))
        if name == self.within:  # the margin of each column's table within it
            every = plan.BY_TARGET if plan.BY_TARGET in self.events else plan.PAIRS
            precision += sum(1 / size for size in self._sizes(self._others)) / self._noise(every) ** 2
        return 1 / math.sqrt(precision) if precision else math.inf

    def distance(self, names: Sequence[str]) -> float:
        """Return the expected total variation of a column or a pair, of as many rows as units; 1 without pairs."""
        alone = [self._of_column(name) for name in names]
        if len(names) < 2:
            return alone[0]
        return min(1.0, math.hypot(self._relation(names), *alone)) if self._is_counted(names) else 1.0

    # -- inside ------------------------------------------------------------------------------------------------------

    def _refused(self, on: Sequence[str]) -> Iterator[str]:
        """Yield a sentence about each column whose regression on two others is refused once rows miss it.

        It needs the tables of all three pairs, and no table of all three columns.
        """
        for target in self.columns:
            column, three = self.schema.columns[target], {*on, target}
            if target in on or not column.listed or column.missing is False:
                continue
            sides = [{name, target} for name in on]
            if (self._pairs_within and self.within in three) or not all(
                side in self.focus or (self.within in side and self._is_counted([*side])) for side in sides
            ):
                continue
            if (refused := refused_slopes(self.schema.columns, target, on, of_pairs=True)) is not None:
                named = " and ".join(map(printable, on))
                yield f"Where rows miss {printable(target)}, its regression on {named} is refused: {refused}"

    def _is_counted(self, names: Sequence[str]) -> bool:
        """Say whether a pair has a table: of two columns, one of them the target, only those within it are there."""
        return plan.PAIRS in self.events or (plan.BY_TARGET in self.events and self.within in names)

    def _relation(self, names: Sequence[str]) -> float:
        """Return the total variation from independence of which half is lost, of two columns."""
        sizes = self._sizes([name for name in names if name != self.within] or names)
        if self.within not in names:
            return self._halved(sum(sizes) / len(sizes), names)
        values = integer_domain(self.schema, self.within).size
        cells = sizes[0] * values * max(sizes[0], values)  # as in hidden_given
        return math.sqrt(cells) * self._of_pair_cell(names) / (2 * self._rows)

    def _of_pair_cell(self, names: Sequence[str]) -> float:
        """Return the standard deviation of a cell of two columns, in rows: of the table with least noise."""
        others = tuple(name for name in names if name != self.within)
        if plan.BY_TARGET in self.events and len(others) < len(names):
            return self._noise(plan.BY_TARGET, others)
        if len(others) == len(names):
            return self._noise(plan.PAIRS, names) * math.sqrt(self._classes)
        # The margin of all pairs of the column, within the target.
        beside = [name for name in self._others if name not in others]
        precision = sum(
            1 / (size * self._noise(plan.PAIRS, (*others, name)) ** 2)
            for name, size in zip(beside, self._sizes(beside), strict=True)
        )
        return 1 / math.sqrt(precision)

    @cached_property
    def _others(self) -> list[str]:
        """The counted columns but for the one that is drawn last."""
        return [name for name in self.columns if name != self.within]

    def _counts_of(self, name: str) -> list[str]:
        """Return the releases that count each value of a column."""
        own = plan.TARGET if name == self.target else ""
        wide = plan.CODES if plan.has_groups(self.schema, name) else plan.COLUMNS
        return [purpose for purpose in (own, "" if name == self.within else wide) if purpose in self.events]

    def _of_column(self, name: str) -> float:
        """Return half the sum of a column's errors in cells: its values, or 20 of about equal rows.

        Drawn are as many rows as there are units, so that they vary as the private ones do.
        """
        noise = self.spread(name)
        if plan.may_be_wide(self.schema, name):
            cells, counted = _CELLS, max(_CELLS, self._rows / (plan.SEEN_ALONE * noise))
        else:
            cells = counted = integer_domain(self.schema, name).size
        half = math.sqrt(cells) * _MEAN_OF_NORMAL / (2 * self._rows)
        hidden = half * math.sqrt(counted) * noise  # of a distance of 1 from what is public, a part is kept
        return min(1.0, math.hypot(hidden / math.hypot(1, hidden), half * math.sqrt(self._rows)))

    @property
    def _rows(self) -> int:
        return self.schema.public_units * self.schema.most_records

    @property
    def _classes(self) -> int:
        return integer_domain(self.schema, self.within).size if self._pairs_within else 1

    def _noise(self, purpose: str, names: Sequence[str] = ()) -> float:
        """Return the standard deviation of a cell of a release's table, by how often it is counted.

        Args:
            purpose: The release.
            names: The table's columns; none for a table of mean size with nothing in focus.
        """
        times = 1.0
        shares = self._places(purpose) if self.focus.asked or (names and purpose in _KNOWN) else []
        if shares:
            own = self._often(purpose, names) if names else often(self._mean_cells(purpose))
            times = own / (sum(shares) / len(shares))
        copies: float = plan.COPIES.get(purpose, 1)
        return self.events[purpose].scale / math.sqrt(max(1.0, copies * times))

    def _mean_noise(self, purpose: str) -> float:
        return self.events[purpose].scale / math.sqrt(plan.COPIES.get(purpose, 1))

    def _places(self, purpose: str) -> list[float]:
        """Return the places of a release's tables, up to a factor; none where it is not known how they are shared.

        Which pairs are chosen beside those in focus is not known: they are taken to be of mean size, as many as may be.
        """
        if purpose not in self.events:
            return []
        if purpose in (plan.PAIRS, plan.TREE) and not self._pairs_within:
            tables: list[tuple[str, ...]] = [tuple(names) for names in self.focus.apart(self.within)]
        elif purpose == plan.PAIRS:
            tables = [*combinations(self._others, 2)]
        elif purpose in _KNOWN:
            tables = [(name,) for name in self._others]
        else:
            return []
        most = max(1, self.events[purpose].tables // plan.COPIES.get(purpose, 1))
        rest = often(self._mean_cells(purpose))
        return [*(self._often(purpose, names) for names in tables[:most]), *([rest] * (most - len(tables)))]

    def _often(self, purpose: str, names: Sequence[str]) -> float:
        weight = self.focus.weight(names, self.within, pairs_within=self._pairs_within)
        return often(weight * math.prod(self._cells(purpose, name) for name in names))

    def _cells(self, purpose: str, name: str) -> float:
        if purpose == plan.COLUMNS and plan.may_be_wide(self.schema, name):
            return max(_CELLS, self._rows / (plan.SEEN_ALONE * self._mean_noise(purpose)))
        return self._sizes([name])[0]

    def _mean_cells(self, purpose: str) -> float:
        each = [self._cells(purpose, name) for name in self._others]
        return float((sum(each) / len(each)) ** (2 if purpose in (plan.PAIRS, plan.TREE) else 1))

    @property
    def _pairs_within(self) -> bool:
        return bool(self.within) and plan.BY_TARGET not in self.events

    @property
    def _groups(self) -> float:
        """The approximate number of groups of a column of many values in pairs."""
        joint = next(each for each in (plan.PAIRS, plan.BY_TARGET, plan.COLUMNS) if each in self.events)
        most = self.groups or plan.groups_for(self._rows / (self._mean_noise(joint) * self._classes))
        seen = self._rows / (plan.SEEN * self._mean_noise(plan.COLUMNS))
        return min(most, max(min(plan.FEWEST_PAIRED, most), seen))

    def _sizes(self, names: Sequence[str]) -> list[float]:
        """Return the number of groups of columns in pairs."""
        most, schema = self._groups, self.schema
        wide = [plan.may_be_wide(schema, name) for name in names]
        return [
            most if many else min(most, integer_domain(schema, name).size)
            for name, many in zip(names, wide, strict=True)
        ]

    def _halved(self, side: float, names: Sequence[str] = ()) -> float:
        precision = 1 / (self._noise(plan.PAIRS, names) ** 2 * self._classes)
        if plan.TREE in self.events and not self.given:  # its finer cells, added up; much of it is given otherwise
            noise = self._noise(plan.TREE, names)
            fine = max(1.0, plan.fine_groups(self._rows / noise) / self._groups)
            precision += 1 / (fine * noise) ** 2
        return float(side**1.5 / math.sqrt(precision) / (2 * self._rows))


def _rounded(rows: float) -> int:
    return int(float(f"{rows:.1e}"))


def keeps_relations(within: Mapping[str, float], beside: Mapping[str, float]) -> bool:
    """Say whether pairs within the target keep strong relations, or as much of any as pairs beside it do.

    Args:
        within: What :meth:`NoiseForecast.hidden_relations` returns if all pairs are counted within the target.
        beside: The same if chosen pairs are counted beside it.
    """
    return all(distance <= max(_STRONG, beside[kind]) for kind, distance in within.items())


def relation_limits(hidden: Mapping[str, float], of: str = "") -> tuple[str, ...]:
    """Return a sentence about relations that are mostly lost; none if a strong one keeps more than half.

    Args:
        hidden: What :meth:`NoiseForecast.hidden_relations` returns.
        of: Words about the columns' table.
    """
    lost = [kind for kind, distance in hidden.items() if distance > _STRONG]
    if not lost:
        return ()
    kind = "columns" if len(lost) == len(hidden) else lost[0]
    if all(hidden[each] == 1.0 for each in lost):
        return (f"Relations between {kind}{of} are lost: they are drawn as independent",)
    return (f"Relations between {kind}{of} are below the noise: a correlation of 0.5 loses more than half of itself",)


def described_relations(hidden: Mapping[str, float], of: str = "") -> tuple[str, ...]:
    """Return a line about the relations that noise hides by half."""
    said = [f"{distance:.2g} ({kind}{of})" for kind, distance in hidden.items() if distance < 1]
    if not said:
        return ()
    return (
        f"Forecast: noise takes half of a relation whose total variation from independence is {', '.join(said)}; a "
        f"correlation of 0.5 has {_STRONG}",
    )
