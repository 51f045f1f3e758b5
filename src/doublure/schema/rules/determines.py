"""``{determines: [INDP, INDP_CAT], map: FILE}``: a column that follows from another by a list, and is not modelled.

The first may be a group of codes: ``{determines: [{column: diagnosis, level: 1}, ward], map: FILE}``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StrictStr
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import MOST_VALUES, Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.rule import DerivedColumn, Floats, Likeness, Rule, Text, make_reader, refuse_file
from doublure.schema.scalars import Positive

if TYPE_CHECKING:
    from doublure.schema.columns.sql_words import Expr, RuleCell, SqlWords


class CodeGroup(Frozen):
    """The groups of a column's codes at one level."""

    column: StrictStr
    level: Positive


class Determines(Rule):
    """The second column follows from the first by a list."""

    word: ClassVar[str] = "determines"
    deriving: ClassVar[bool] = True
    file_key: ClassVar[str | None] = "map"
    suggested_by: ClassVar[Likeness | None] = "a coarser name"

    determines: Annotated[tuple[StrictStr | CodeGroup, StrictStr], Field()]
    map: Annotated[Mapping[Text, Text], Field(min_length=1), BeforeValidator(refuse_file)]

    @property
    @override
    def names(self) -> tuple[str, ...]:
        first, second = self.determines
        return first.column if isinstance(first, CodeGroup) else first, second

    @property
    def _pair(self) -> str:
        return " and ".join(map(printable, self.names))

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        first, second = (columns[name] for name in self.names)
        if "condition" in second.roles:
            name = printable(self.determines[1])
            raise ValueError(f"{name} is a condition, and determines derives it; remove the role")
        every = f"determines lists every value of the first of {self._pair}"
        if not (first.listed or first.integral):
            raise ValueError(f"{every}; take a category or an integer")
        if (first.size or 0) > MOST_VALUES:
            raise ValueError(f"{every}, more than {MOST_VALUES}; group them")
        if isinstance(self.determines[0], CodeGroup) and first.domain:
            self._groups(first, self.determines[0])

    def _groups(self, column: Column, group: CodeGroup) -> tuple[str, ...]:
        """Return the group of each value of the first column."""
        try:
            return column.grouped(group.level)
        except ValueError as error:
            raise ValueError(f"determines at {printable(group.column)} {error}") from None

    def _by_group(self, column: Column, group: CodeGroup) -> Callable[[str], Iterator[float]]:
        """Return what reads a key of the map into the places of a group's values; an empty key into a missing cell."""
        places: dict[str, list[float]] = {}
        for place, name in enumerate(self._groups(column, group)):
            places.setdefault(name, []).append(float(place))

        def read(key: str) -> Iterator[float]:
            if key and key not in places:
                raise ValueError(f"the map of {self._pair} names a group that no code is in; fix the level or the map")
            yield from places[key] if key else (math.nan,)

        return read

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        source, name = map(printable, self.names)
        return f"{name} must be what the list gives for {source}"

    @property
    @override
    def listed(self) -> tuple[str, ...]:
        return tuple(f"{printable(source)} gives {printable(name)}" for source, name in self.map.items())

    @override
    def derivations(self, columns: Mapping[str, Column]) -> Iterator[DerivedColumn]:
        source, name = self.names
        yield DerivedColumn(name, (source,), self._listed(columns))

    def _listed(self, columns: Mapping[str, Column]) -> _ListedCells:
        """Return the cells of the second column.

        Raises:
            ValueError: The map has cells that a column does not have, or lacks one; ``message; remedy``.
        """
        source, name = self.names
        first, second, pair = columns[source], columns[name], f"the map of {self._pair}"
        read_key, read = (make_reader(columns[each], f"{pair} at {printable(each)}") for each in self.names)
        group = self.determines[0]
        keys = self._by_group(first, group) if isinstance(group, CodeGroup) else lambda key: iter((read_key(key),))
        every: dict[float, float] = {}
        for key, cell in self.map.items():
            every |= dict.fromkeys(keys(key), read(cell))
        hole = next((cell for key, cell in every.items() if math.isnan(key)), math.nan)
        pairs = {key: cell for key, cell in every.items() if not math.isnan(key)}
        count = first.size or 0
        if len(pairs) < count:
            raise ValueError(f"{pair} lacks {count - len(pairs)} of the first's {count} values; give each a line")
        if first.may_be_missing and math.isnan(hole) and not second.may_be_missing:
            raise ValueError(f"{pair} does not say what goes with an empty cell; give a line that begins empty")
        return _ListedCells(pairs, hole)

    @override
    def broken_in_sql(
        self, columns: Mapping[str, Column], cells: Mapping[str, RuleCell], words: SqlWords
    ) -> Iterator[Expr]:
        from doublure.schema.columns import sql_words as sql

        source, own = (cells[name].number for name in self.names)
        listed = self._listed(columns)
        wanted: dict[float | None, list[float]] = {}
        for key, cell in listed.pairs.items():
            wanted.setdefault(None if math.isnan(cell) else cell, []).append(key)
        hole = None if math.isnan(listed.hole) else listed.hole
        right = [sql.both(sql.is_null(source), _is(hole, own))]
        right += [
            sql.both(sql.no(sql.is_null(source)), sql.among(source, map(sql.real, keys)), _is(cell, own))
            for cell, keys in wanted.items()
        ]
        yield sql.no(sql.case((sql.either(*right), sql.no(sql.never())), otherwise=sql.never()))

    @classmethod
    @override
    def from_file(cls, rows: Sequence[Sequence[str]], written: Mapping[Any, Any]) -> Any:
        header, *pairs = rows
        names = written.get("determines")
        pair = names if isinstance(names, list) else list(header)
        wanted = [str(name.get("column") if isinstance(name, Mapping) else name) for name in pair]
        if sorted(header) != sorted(wanted):
            raise ValueError("needs a header that names the two columns")
        found: dict[str, str] = {}
        for line in pairs:
            first, second = line if list(header) == wanted else reversed(line)
            if found.setdefault(first, second) != second:
                raise ValueError("gives one value two")
        return found


def _is(cell: float | None, number: Expr) -> Expr:
    """Return the condition that a number is a cell, None for an empty one."""
    from doublure.schema.columns import sql_words as sql
    from doublure.schema.rules.rule_sql import is_among

    if cell is None:
        return sql.is_null(number)
    return is_among(Allowed(values=(cell,), slack=1e-9 * max(1.0, abs(cell))), sql.RuleCell(number))


@dataclass(frozen=True)
class _ListedCells:
    pairs: Mapping[float, float]
    hole: float

    def __call__(self, numbers: Any) -> Any:
        if isinstance(numbers, float):
            return self.hole if math.isnan(numbers) else self.pairs[numbers]
        import numpy as np

        keys, cells = self._sorted
        places = np.clip(np.searchsorted(keys, numbers), 0, len(keys) - 1)
        return np.where(np.isnan(numbers), self.hole, cells[places])

    @cached_property
    def _sorted(self) -> tuple[Floats, ...]:
        import numpy as np

        return tuple(map(np.array, zip(*sorted(self.pairs.items()), strict=True)))
