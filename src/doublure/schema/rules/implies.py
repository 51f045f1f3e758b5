"""``{implies: {when: {x: missing}, then: {y: [0, 9]}}}``: rows with such cells have such others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, StrictStr
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed, Cells
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.missing_states import tag_holes
from doublure.schema.rules.rule import CellSource, Floats, Follow, Mask, NumericRule, Rule
from doublure.schema.scalars import label
from doublure.support.views import in_words

if TYPE_CHECKING:
    from doublure.schema.columns.sql_words import Expr, RuleCell, SqlWords


_FEW = 3


class Implication(Frozen):
    """Cells that others follow from."""

    when: Annotated[Mapping[StrictStr, Cells], Field(min_length=1)]
    then: Annotated[Mapping[StrictStr, Cells], Field(min_length=1)]


class Implies(Rule):
    """A row that has all cells of ``when`` has all of ``then``."""

    word: ClassVar[str] = "implies"

    implies: Implication

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.implies.when, *self.implies.then)))

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        both = set(self.implies.when) & set(self.implies.then)
        if both:
            raise ValueError(f"implies has {printable(min(both))} on both sides; take it from one")
        for name in self.implies.then:
            if "condition" in columns[name].roles:
                change = f"implies may change {printable(name)}"
                raise ValueError(f"{change}, and a condition stays as asked for; turn it round")

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        when, then = (
            " and ".join(f"{printable(name)} {word} {_said(columns[name], cells)}" for name, cells in side.items())
            for word, side in (("is", self.implies.when), ("must be", self.implies.then))
        )
        return f"if {when}, then {then}"

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        when, then = (
            {name: _allowed(columns[name], name, cells) for name, cells in side.items()}
            for side in (self.implies.when, self.implies.then)
        )
        yield ImpliedCells(names=self.names, columns=columns, leads=tuple(when), when=when, then=then)


def _said(column: Column, cells: object) -> str:
    """Return cells that a rule names: one, several, or of numbers and times a range, as :meth:`Column.ruled` has it."""
    if not isinstance(cells, (list, tuple)):
        return _one(cells)
    if column.bounded and len(cells) == 2 and not any(map(column.means_missing, cells)):
        low, high = cells
        ends = [f"at least {_one(low)}"] * (low is not None) + [f"at most {_one(high)}"] * (high is not None)
        return " and ".join(ends) if None in cells else f"from {_one(low)} to {_one(high)}"
    return " or ".join(map(_one, cells)) if len(cells) <= _FEW else f"one of {in_words(list(cells))}"


def _one(cell: object) -> str:
    return printable(label(cell)) if isinstance(cell, (bool, int, float, str)) else printable(str(cell))


def _allowed(column: Column, name: str, cells: object) -> Allowed:
    try:
        return Allowed.from_answer(column.ruled(cells))
    except ValueError as error:
        raise ValueError(f"implies at {printable(name)} {error}") from None


@dataclass(frozen=True, kw_only=True)
class ImpliedCells(NumericRule):
    """``implies``: the cells that should follow are drawn anew from rows where they do."""

    turn: ClassVar[int] = 1
    certain: ClassVar[bool] = True

    when: Mapping[str, Allowed]
    then: Mapping[str, Allowed]

    @override
    def named(self) -> Iterator[tuple[str, Allowed]]:
        yield from self.then.items()
        yield from self.when.items()

    @property
    @override
    def moves(self) -> tuple[str, ...]:
        return tuple(self.then)

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        return _all_of(self.when, numbers) > _all_of(self.then, numbers)  # true, and false

    @override
    def broken_in_sql(self, cells: Mapping[str, RuleCell]) -> Expr:
        from doublure.schema.columns import sql_words as sql
        from doublure.schema.rules.rule_sql import is_among

        fires, follows = (
            sql.both(*(is_among(own, cells[name]) for name, own in side.items())) for side in (self.when, self.then)
        )
        return sql.both(fires, sql.no(follows))

    @override
    def fixed_in_sql(self, cells: Mapping[str, RuleCell], turn: int, words: SqlWords) -> Mapping[str, RuleCell]:
        from doublure.schema.columns import sql_words as sql
        from doublure.schema.rules.rule_sql import is_among, nearest

        found = {}
        for name, allowed in self.then.items():
            fits, moved = is_among(allowed, cells[name]), nearest(allowed, cells[name], even=self.columns[name].ordered)
            found[name] = sql.RuleCell(
                sql.case((fits, cells[name].number), otherwise=moved.number),
                sql.case((fits.copy(), cells[name].held_state), otherwise=moved.held_state),
            )
        return found

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Draw from sound rows with the same cells; else from any row that has what follows; else take the nearest."""
        import numpy as np

        fires = _all_of(self.when, numbers)
        for name, cells in self.then.items():
            root, follow = source.root_of(name)
            fits = cells.has(numbers[name])
            rows = np.flatnonzero(off & ~fits)
            if not len(rows):
                continue
            moved = numbers[root].copy()
            lenders = np.flatnonzero(source.sound & fires & fits)
            lenders = lenders if len(lenders) else np.flatnonzero(fits)
            if source.rng is not None and len(lenders):
                moved[rows] = numbers[root][source.rng.choice(lenders, len(rows))]
            else:
                target = cells if root == name else _followed(cells, self.columns[root], follow)
                moved[rows] = _nearest(target, numbers[root][rows], even=self.columns[root].ordered)
            numbers[root] = moved


def _all_of(side: Mapping[str, Allowed], numbers: Mapping[str, Any]) -> Any:
    return reduce(and_, (cells.has(numbers[name]) for name, cells in side.items()))


def _followed(cells: Allowed, root: Column, follow: Follow) -> Allowed:
    """Return the cells of a modelled column from which some cells of another follow, if its values can be listed."""
    import numpy as np

    if root.size is None:
        return cells
    values = root.limits[0] + root.unit * np.arange(root.size, dtype=np.float64)
    hole = root.may_be_missing and bool(cells.has(follow(np.array([np.nan])))[0])
    return Allowed(values=tuple(values[cells.has(follow(values))]), missing=hole, slack=1e-6)


def _nearest(cells: Allowed, numbers: Floats, *, even: bool) -> Floats:
    """Return the nearest of some cells to each number: the first of them where there is no order, or no number."""
    import numpy as np

    if cells.span is not None:
        return np.clip(np.nan_to_num(numbers, nan=cells.span[0]), *cells.span)
    if not cells.values:
        return np.full(len(numbers), tag_holes(min(cells.states, default=0)))
    if not even:
        return np.full(len(numbers), cells.values[0])
    values = np.asarray(cells.values)
    best, found = np.full(len(numbers), np.inf), np.full(len(numbers), values[0])
    for value in values:
        closer = np.abs(numbers - value) < best
        best, found = np.where(closer, np.abs(numbers - value), best), np.where(closer, value, found)
    return found
