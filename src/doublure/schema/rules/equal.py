"""``{equal: [education, education-num]}``: columns that say the same, the first of which is modelled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.fact_states import Learn
from doublure.schema.rules.rule import DerivedColumn, Likeness, Names, Rule, list_names


class Equal(Rule):
    """The columns carry the same information, value by value in the order listed."""

    word: ClassVar[str] = "equal"
    deriving: ClassVar[bool] = True
    encoded: ClassVar[bool] = True
    across_tables: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    suggested_by: ClassVar[Likeness | None] = "one name"

    equal: Names

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        for name in self.derives:
            _check_pair(self.equal[0], name, columns)

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{list_names(self.derives)} must say the same as {printable(self.equal[0])}"

    @override
    def derivations(self, columns: Mapping[str, Column]) -> Iterator[DerivedColumn]:
        for name in self.derives:
            yield DerivedColumn(name, self.equal[:1], _make_conversion(columns[self.equal[0]], columns[name]))


def _check_pair(source: str, name: str, columns: Mapping[str, Column]) -> None:
    first, column, pair = columns[source], columns[name], f"{printable(source)} and {printable(name)}"
    if "condition" in column.roles:
        raise ValueError(f"{printable(name)} is a condition; name it first in equal")
    if column.learned:
        raise ValueError(f"{printable(name)} is derived by equal, so nothing of it is learned; declare its facts")
    if isinstance(first.missing, Learn) or column.may_be_missing != first.may_be_missing:
        raise ValueError(f"{pair} are equal; declare the same missing for both")
    sizes = first.size, column.size
    if sizes[0] is None or sizes[1] is None:
        if first.bounded and column.bounded and not first.alike(column):
            raise ValueError(f"equal needs {pair} to be of one type; change one, or leave the rule out")
        if not first.alike(column) or first.listed:
            raise ValueError(f"equal needs declared values or bounds for {pair}; declare them")
        if _meaning(first) != _meaning(column):
            raise ValueError(f"{pair} are equal; declare the same bounds, precision and step for both")
    elif sizes[0] != sizes[1]:
        raise ValueError(f"{printable(source)} has {sizes[0]} values and {printable(name)} has {sizes[1]}; fix one")


def _meaning(column: Column) -> tuple[object, ...]:
    """Return what its facts mean, however they are written."""
    return column.ends, column.unit, column.decimals, column.zone


def _make_conversion(source: Column, column: Column) -> Callable[[Any], Any]:
    """Return what turns numbers of a column into those of another with as many values."""
    times, shift = 1.0, 0.0
    if source.size is not None:
        times = column.unit / source.unit
        first, begin = (0.0 if each.grid is None else each.grid[0] for each in (source, column))
        shift = begin - first * times
    return lambda numbers: numbers * times + shift
