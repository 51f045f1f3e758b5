"""The abstract rule between columns: questions that every rule answers, in place of questions for its type.

A :class:`Rule` is as a schema file writes it; a :class:`NumericRule` is the same on the numbers of cells
(:mod:`doublure.schema.columns`), once every fact of its columns is known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

from pydantic import BeforeValidator, Field, StrictStr

from doublure.errors import printable
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.scalars import label
from doublure.support.guessing import suggest
from doublure.support.views import shorten

if TYPE_CHECKING:
    import numpy as np

    from doublure.schema.columns.sql_words import Expr, RuleCell, SqlWords

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
Rng: TypeAlias = "np.random.Generator"
Follow: TypeAlias = Callable[[Floats], Floats]
Rings: TypeAlias = tuple[tuple[tuple[float, float], ...], ...]
Likeness: TypeAlias = Literal["one name", "a coarser name", "two times", "two coordinates"]
Names: TypeAlias = Annotated[tuple[StrictStr, ...], Field(min_length=2)]


def _text(value: object) -> object:
    return "" if value is None else label(value) if isinstance(value, (bool, int, float, str)) else value


Text: TypeAlias = Annotated[StrictStr, BeforeValidator(_text)]
"""A cell as a CSV file holds it; an empty text is an empty cell."""


def refuse_file(value: object) -> object:
    """Refuse the name of a file, which stands for its rows in a schema's own file alone."""
    if isinstance(value, str):
        raise ValueError("names a file, and only a schema's own file can; load the schema from a file")
    return value


class DerivedColumn(NamedTuple):
    """A column that follows from others.

    Attributes:
        name: The column.
        sources: The others.
        follow: The cells that go with those of the sources: ``(N,)`` each, or of one row, NaN for an empty one.
    """

    name: str
    sources: tuple[str, ...]
    follow: Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class CellSource:
    """The source of new cells for rows that break a rule.

    Attributes:
        rng: None: from the row alone.
        turn: How often the rules were gone through before.
        sound: ``(N,)`` rows that keep all rules, and may lend cells.
        root_of: Column -> the modelled column that it alone follows from (often itself), and the way.
    """

    rng: Rng | None
    turn: int
    sound: Mask
    root_of: Callable[[str], tuple[str, Follow]]


@dataclass(frozen=True, kw_only=True)
class NumericRule(ABC):
    """A rule on the numbers of cells, NaN for an empty one.

    Attributes:
        names: The columns that it is about.
        columns: All columns, every fact of these known.
        tuples: The only cells that they may have together, if these are listed.
        leads: The columns that a search for a row fills first.
    """

    turn: ClassVar[int] = 2
    """Its place among rules that are fixed: lower ones come first."""
    joint: ClassVar[bool] = False
    """Whether it stands for all rules of its word, and after those of others."""
    certain: ClassVar[bool] = False
    """Whether a row that keeps it is found, if there is one, among the ends, middles and values that rules name."""

    names: tuple[str, ...]
    columns: Mapping[str, Column]
    tuples: tuple[tuple[float, ...], ...] = ()
    leads: tuple[str, ...] = ()

    @abstractmethod
    def broken(self, numbers: Mapping[str, Any]) -> Any:
        """Return ``(N,)`` which rows break it, each read by itself; of one row of floats, whether it does."""

    def broken_in_sql(self, cells: Mapping[str, RuleCell]) -> Expr:
        """Return the condition that a record breaks it.

        Raises:
            NotInSql: It is not said in SQL.
        """
        from doublure.schema.columns.sql_words import NotInSql

        raise NotInSql("is not checked in a database; leave it out, make a view that keeps it, or fit an export")

    def fixed_in_sql(self, cells: Mapping[str, RuleCell], turn: int, words: SqlWords) -> Mapping[str, RuleCell]:
        """Return the cells that :meth:`fix` changes, as it makes them of a record that breaks the rule alone.

        Args:
            cells: The columns.
            turn: How often all rules were fixed before.
            words: Of the engine.

        Raises:
            NotInSql: It is not said in SQL.
        """
        from doublure.schema.columns.sql_words import NotInSql

        remedy = "write misfit: refuse, make a view that keeps it, or fit an export"
        raise NotInSql(f"is checked in a database, and changes no record there; {remedy}")

    @abstractmethod
    def fix(self, numbers: dict[str, Floats], off: Mask, source: CellSource) -> None:
        """Change the cells of rows that break it, by replacing whole arrays.

        Rows that still break a rule after the last turn take all columns that rules join from another row.
        """

    @property
    def moves(self) -> tuple[str, ...]:
        """The columns that fixing may change."""
        return self.names

    def possible(self, row: Mapping[str, float]) -> bool:
        """Return whether a row, which may lack columns, may keep it."""
        return not set(self.names) <= set(row) or not self.broken(row)

    def named(self) -> Iterator[tuple[str, Allowed]]:
        """Yield columns and cells of theirs at which a row may keep or break it."""
        yield from ()

    def completed(self, name: str, row: Mapping[str, float]) -> Iterator[float]:
        """Yield numbers of the one column that a row lacks with which it keeps the rule."""
        yield from ()


class Rule(Frozen):
    """A public rule between columns, as a schema file writes it: a mapping with the rule's word among its keys."""

    word: ClassVar[str]
    """The key that tells it from other rules."""
    encoded: ClassVar[bool] = False
    """Whether the encoding takes care of it: records that break it are taken, and facts of its columns bought."""
    deriving: ClassVar[bool] = False
    """Whether all of its columns follow from the first."""
    repeats: ClassVar[bool] = False
    """Whether columns that it derives say the same as their source, value by value."""
    across_tables: ClassVar[bool] = False
    """Whether it may stand between columns of several related tables."""
    takes_derived: ClassVar[bool] = True
    """Whether it may name a column that another rule derives."""
    file_key: ClassVar[str | None] = None
    """The key that may name a CSV file beside the schema."""
    needs_file: ClassVar[bool] = True
    """Whether a draft that proposes it names that file."""
    suggested_by: ClassVar[Likeness | None] = None
    """The likeness of two columns by which a draft proposes it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that it is about, each once."""
        return tuple(getattr(self, self.word))

    @property
    def derives(self) -> tuple[str, ...]:
        """The columns that follow from :attr:`sources`, and are not modelled."""
        return self.names[1:] if self.deriving else ()

    def ordered_ends(self, columns: Mapping[str, Column]) -> tuple[str, str] | None:
        """Return two columns whose order, low and high, follows from public bounds; None where none does."""
        return None

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that are counted together with the first of :attr:`names`, as one variable."""
        return ()

    @property
    def rings(self) -> Rings:
        """The corners of a public region's rings, in which places of its columns lie; none for the whole map."""
        return ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The columns from which those that it derives follow."""
        return self.names[:1]

    @property
    def missing_as_one(self) -> tuple[str, ...]:
        """The columns that it says are missing in the same rows."""
        return ()

    def across_calendars(self, columns: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
        """Yield the pairs ``(low, high)`` of its columns that are times of different calendars, in order."""
        del columns
        yield from ()

    def settled(self, columns: Mapping[str, Column]) -> bool:
        """Return whether every fact of its columns is declared."""
        return all(columns[name].settled for name in self.names)

    def check(self, columns: Mapping[str, Column]) -> None:
        """Refuse a rule that no row could keep.

        Raises:
            ValueError: ``message; remedy``, for the schema's author.
        """
        for name in self.names:
            if name not in columns:
                remedy = suggest(name, columns) or "fix the name"
                raise ValueError(f"{self.word} names {printable(name)}, which is not a column; {remedy}")
            if not columns[name].modelled:
                raise ValueError(f"{self.word} names {printable(name)}, which is not modelled; leave it out")
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{self.word} names a column twice; name it once")
        for name in () if self.encoded else self.names:
            if columns[name].learned:
                fact = f"{self.word} needs declared facts of {printable(name)}"
                raise ValueError(f"{fact}, and one is learned; declare it")

    @classmethod
    def check_together(cls, rules: Sequence[Rule], columns: Mapping[str, Column]) -> None:
        """Refuse rules of this word that no row could keep together, among all rules.

        Raises:
            ValueError: ``message; remedy``, for the schema's author.
        """

    def derivations(self, columns: Mapping[str, Column]) -> Iterator[DerivedColumn]:
        """Yield the columns that it derives, every fact of its columns known.

        Raises:
            ValueError: It has cells that a column does not have; ``message; remedy``.
        """
        yield from ()

    def in_numbers(self, columns: Mapping[str, Column], beside: Sequence[Rule]) -> Iterator[NumericRule]:
        """Yield it on numbers, unless it derives columns.

        Args:
            columns: Every fact of its own known.
            beside: All rules that are asked, this one among them.

        Raises:
            ValueError: It has cells that a column does not have; ``message; remedy``.
        """
        yield from ()

    def broken_in_sql(
        self, columns: Mapping[str, Column], cells: Mapping[str, RuleCell], words: SqlWords
    ) -> Iterator[Expr]:
        """Yield conditions on one of which a record breaks it, every fact of its columns known.

        Raises:
            NotInSql: It is not said in SQL.
        """
        yield from (rule.broken_in_sql(cells) for rule in self.in_numbers(columns, [self]))

    def distances(self, columns: Mapping[str, Column]) -> Iterator[tuple[str, str, float, float]]:
        """Yield ``(from, to, least, most)``: columns of one calendar, and how far apart their numbers may lie."""
        yield from ()

    def explain(self, columns: Mapping[str, Column]) -> str:
        """Return the rule in a line, with what it lists, long lists shortened."""
        said = self.requirement(columns)
        return f"{said}: {shorten(self.listed)}" if self.listed else said

    @property
    def listed(self) -> Sequence[str]:
        """The entries of its list; empty without one."""
        return ()

    def requirement(self, columns: Mapping[str, Column]) -> str:
        """Return what it asks of a row, in the words of a data steward: ``in must not be after out``."""
        named = list_names(self.names)
        return f"{named} must keep {self.word}"

    @classmethod
    def from_file(cls, rows: Sequence[Sequence[str]], written: Mapping[Any, Any]) -> Any:
        """Return what stands in the place of a file's name.

        Args:
            rows: The file's header and lines, all of one length.
            written: The rule that names it.

        Raises:
            ValueError: They do not fit; the end of a sentence that begins with the file.
        """
        return rows


def list_names(names: Sequence[str]) -> str:
    """Return columns in a sentence: ``a, b and c``."""
    *first, last = map(printable, names)
    return f"{', '.join(first)} and {last}" if first else last


def make_reader(column: Column, where: str) -> Callable[[str], float]:
    """Return what reads a column's cells as a file holds them into numbers; an empty text is an empty cell.

    Args:
        column: Every fact known.
        where: The begin of the message of its ValueErrors.
    """
    known = {label(value): float(code) for code, value in enumerate(column.domain)}

    def read(text: str) -> float:
        if text not in known:
            try:
                found = column.one_of([text or None])
            except ValueError as error:
                raise ValueError(f"{where} {error}") from None
            if len(found.values) > 1:
                raise ValueError(f"{where} names a group of codes; name each code, or the level")
            known[text] = math.nan if found.missing else found.values[0]
        return known[text]

    return read
