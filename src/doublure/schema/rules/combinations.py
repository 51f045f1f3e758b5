"""``{combinations: FILE}``: the tuples of some columns that there are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.rule import (
    CellSource,
    Floats,
    Ints,
    Mask,
    Names,
    NumericRule,
    Rule,
    Text,
    list_names,
    make_reader,
    refuse_file,
)

if TYPE_CHECKING:
    from doublure.schema.columns.sql_words import Expr, RuleCell, SqlWords


class Tuples(Frozen):
    """The tuples that some columns can have."""

    columns: Names
    rows: Annotated[tuple[tuple[Text, ...], ...], Field(min_length=1)]


class Combinations(Rule):
    """Columns that have only the listed tuples."""

    word: ClassVar[str] = "combinations"
    takes_derived: ClassVar[bool] = False
    file_key: ClassVar[str | None] = "combinations"

    combinations: Annotated[Tuples, BeforeValidator(refuse_file)]

    @property
    @override
    def names(self) -> tuple[str, ...]:
        return self.combinations.columns

    @override
    def check(self, columns: Mapping[str, Column]) -> None:
        super().check(columns)
        for name in self.names:
            if columns[name].plain and not columns[name].integral:
                raise ValueError(f"combinations names {printable(name)}, a real number; take values that can be listed")

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{list_names(self.names)} must be one of the listed combinations"

    @property
    @override
    def listed(self) -> tuple[str, ...]:
        return tuple(" with ".join(map(printable, row)) for row in self.combinations.rows)

    @override
    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        readers = [make_reader(columns[name], f"combinations at {printable(name)}") for name in self.names]
        if any(len(row) != len(readers) for row in self.combinations.rows):
            raise ValueError("combinations has a row of another length than its columns; fix it")
        tuples = (tuple(read(cell) for read, cell in zip(readers, row, strict=True)) for row in self.combinations.rows)
        yield ListedTuples(names=self.names, columns=columns, tuples=tuple(tuples))

    @classmethod
    @override
    def from_file(cls, rows: Sequence[Sequence[str]], written: Mapping[Any, Any]) -> Any:
        header, *cells = rows
        return {"columns": header, "rows": cells}


@dataclass(frozen=True, kw_only=True)
class ListedTuples(NumericRule):
    """``combinations``: the listed tuple that agrees in the most columns; of several, one as frequent as among rows."""

    turn: ClassVar[int] = 0
    certain: ClassVar[bool] = True

    @override
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        cells = [numbers[name] for name in self.names]
        return _key(cells) not in self._lines if isinstance(cells[0], float) else self._found(numbers) < 0

    @override
    def broken_in_sql(self, cells: Mapping[str, RuleCell]) -> Expr:
        from doublure.schema.columns import sql_words as sql
        from doublure.schema.rules.rule_sql import is_among

        kinds = []
        for row in self._known.tolist():
            listed = (Allowed(missing=True) if math.isnan(value) else Allowed(values=(value,)) for value in row)
            kinds.append(sql.both(*(is_among(own, cells[name]) for name, own in zip(self.names, listed, strict=True))))
        return sql.no(sql.either(*kinds))

    @override
    def fixed_in_sql(self, cells: Mapping[str, RuleCell], turn: int, words: SqlWords) -> Mapping[str, RuleCell]:
        from doublure.schema.columns import sql_words as sql
        from doublure.schema.rules.rule_sql import exactly

        listed = [row for row, _ in sorted(self._lines.items(), key=lambda each: each[1])]
        if len(listed) > sql.MOST_CASES:
            remedy = "write misfit: refuse, make a view that keeps it, or fit an export"
            raise sql.NotInSql(f"changes records, and lists more than {sql.MOST_CASES} tuples; {remedy}")
        agree = [
            reduce(add, (sql.case((exactly(cell, cells[name]), sql.whole(1)), otherwise=sql.whole(0))
                         for name, cell in zip(self.names, row, strict=True)))
            for row in listed
        ]  # fmt: skip
        best = sql.call("GREATEST", *agree)

        def taken(place: int) -> Expr:
            cells = [row[place] for row in listed]
            values = (sql.nothing() if cell is None else sql.real(cell) for cell in cells)
            return sql.case(*((own.copy().eq(best.copy()), value) for own, value in zip(agree, values, strict=True)))

        return {name: sql.RuleCell(taken(place), sql.whole(0)) for place, name in enumerate(self.names)}

    @override
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Take the tuple that is nearest."""
        import numpy as np

        rows, places, known = np.flatnonzero(off), self._found(numbers), self._known
        counts = np.bincount(places[source.sound & (places >= 0)], minlength=len(known)) + 1e-3
        listed = np.nan_to_num(known, nan=np.inf)
        chosen = np.empty(len(rows), dtype=np.int64)
        kinds, which = _kinds(np.stack([numbers[name][rows] for name in self.names], axis=1))
        together = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for kind, members in zip(kinds, together, strict=True):
            agree = (listed == kind).sum(axis=1)
            best = np.flatnonzero(agree == agree.max())
            if source.rng is None:
                first = [self._lines[_key(known[place])] for place in best]
                chosen[members] = best[np.argmin(first)]
            else:
                chosen[members] = source.rng.choice(best, len(members), p=counts[best] / counts[best].sum())
        for place, name in enumerate(self.names):
            numbers[name] = numbers[name].copy()
            numbers[name][rows] = known[chosen, place]

    @cached_property
    def _lines(self) -> dict[tuple[float | None, ...], int]:
        """Each tuple's first line."""
        return {_key(row): line for line, row in reversed(list(enumerate(self.tuples)))}

    @cached_property
    def _known(self) -> Floats:
        import numpy as np

        return np.unique(np.asarray(self.tuples), axis=0, equal_nan=True)

    @cached_property
    def _places(self) -> dict[tuple[float | None, ...], int]:
        return {_key(row): place for place, row in enumerate(self._known)}

    def _found(self, numbers: Mapping[str, Floats]) -> Ints:
        """Return ``(N,)`` the place of each row's tuple, -1 for none."""
        import numpy as np

        kinds, which = _kinds(np.stack([numbers[name] for name in self.names], axis=1))
        return np.array([self._places.get(_key(row), -1) for row in kinds], dtype=np.int64)[which]


def _kinds(rows: Floats) -> tuple[Floats, Ints]:
    """Return ``(K, W)`` distinct rows of ``(N, W)``, infinity for an empty cell, and ``(N,)`` the place of each."""
    import numpy as np

    kinds, which = np.unique(np.nan_to_num(rows, nan=np.inf), axis=0, return_inverse=True)
    return kinds, which.reshape(-1)


def _key(row: Iterable[float]) -> tuple[float | None, ...]:
    return tuple(None if math.isnan(cell) or cell == math.inf else float(cell) for cell in row)
