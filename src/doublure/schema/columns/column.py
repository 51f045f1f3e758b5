"""The abstract column: questions that every column type answers, in place of questions for its type."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure.errors import SchemaError
from doublure.schema.allowed import MISSING, Allowed
from doublure.schema.columns.bins import PublicBins
from doublure.schema.columns.column_facts import ColumnFacts
from doublure.schema.columns.integer_domain import IntegerDomain
from doublure.schema.columns.missing_kinds import (
    canonical_with_states,
    numbers_with_states,
    sampled_with_states,
    stored_with_states,
)
from doublure.schema.missing_states import hole_states, keep_holes
from doublure.schema.scalars import Misfit, is_plain_number, label

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from doublure.noisy_counts import CandidateGrid
    from doublure.schema.columns.made_rows import MadeRows
    from doublure.schema.columns.spelling import CellSpelling, TextMarks
    from doublure.schema.columns.sql_words import Expr, SqlCell, SqlReading, SqlWords

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


class MissingState(int):
    """A kind of missing cells that is asked for, by its number."""


class Column(ColumnFacts):
    """A column: its facts, how its cells are read and written, and what may be asked of them.

    Every cell has a number: a listed value its place in the list, a number itself, a date the days and a moment the
    seconds since 1970. NaN stands for a missing cell.
    """

    def opened(self, texts: Sequence[str]) -> Column | None:
        """Return a column whose list holds further values; None where cells need no list."""
        return None

    def stand_in_sql(self, said: Expr, words: SqlWords) -> Expr | None:
        """Return the place that a text outside the list counts as by its group; None where none does."""
        return None

    def ready(self, name: str, rows: int) -> None:
        """Refuse, before anything is charged, what would keep synthetic cells from being made.

        Args:
            name: The column's name.
            rows: A public number of rows that are to be made; 0 where none is known.

        Raises:
            SettingError: Naming the column.
            MissingExtra: A library is not installed.
        """

    @property
    def found_by(self) -> str | None:
        """The column by whose value its cells are found, where nothing is learned of them; None for most."""
        return None

    def check_beside(self, columns: Mapping[str, Column], name: str) -> None:
        """Refuse a column that does not fit the others of its table.

        Raises:
            ValueError: ``message; remedy``.
        """

    def made(self, rows: MadeRows, name: str) -> pd.Series[Any]:
        """Return ``(N,)`` synthetic cells, where nothing is learned of them.

        Raises:
            SchemaError: They are drawn.
        """
        raise SchemaError("is drawn", field=name)

    @abstractmethod
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        """Return ``(N,)`` raw cells in canonical form, each read by itself.

        Args:
            raw: Cells of NumPy's or pandas' own types, or Python's objects.
            name: The column's name.
            misfit: What becomes of a cell that does not fit.

        Raises:
            DataError: A cell does not fit; it names the column and the rule, never the cell.
            TypeError: A cell is none of this type; like it what else ``distinct_cells.UNREADABLE`` names.
        """

    def read_at_once(self, raw: pa.Array, name: str, misfit: Misfit) -> pd.Series[Any] | None:
        """Return what :meth:`read` returns of Arrow's cells, all read together; None where it has to be asked.

        Raises:
            DataError: As :meth:`read`.
        """
        return None

    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        """Return how a raw cell of a table in a database is read, as :meth:`read` reads it.

        Args:
            cell: The cell.
            words: Of the engine.

        Raises:
            NotInSql: The type says no reading in SQL, or none of cells that are stored so.
        """
        from doublure.schema.columns.sql_words import NotInSql

        raise NotInSql("is of a type that is not read in a database; fit an export, or make a view that casts it")

    def fitted_in_sql(self, reading: SqlReading, misfit: Misfit) -> SqlReading:
        """Return what becomes of a reading by ``misfit``.

        Args:
            reading: The names under which a reading was selected.
            misfit: What becomes of a cell that does not fit.
        """
        return reading

    def snapped_in_sql(self, number: Expr, words: SqlWords) -> Expr:
        """Return the nearest number that a cell can have, by the same steps as :meth:`snap`; NULL for NULL."""
        return number

    def reread(self, cells: pd.Series[Any], name: str) -> pd.Series[Any]:
        """Return ``(N,)`` canonical or sampled cells in canonical form.

        Raises:
            DataError, TypeError: As :meth:`read`.
        """
        return self.read(cells, name, "refuse")

    def spelling(self, marks: TextMarks) -> CellSpelling | None:
        """Return how texts in a table's own spelling are rewritten before they are read; None where they stay.

        Args:
            marks: How the table writes dates and numbers where the column does not say it.
        """
        return None

    @abstractmethod
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        """Return the ``(N,)`` numbers of canonical or sampled cells, NaN for a missing one."""

    @abstractmethod
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` numbers as cells of the schema's own dtype, as samples have them."""

    @abstractmethod
    def loaded_cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` numbers as canonical cells, as loaded tables have them."""

    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        """Return ``(N,)`` canonical or sampled cells as a CSV file is to have them."""
        return cells

    def stored_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        """Return ``(N,)`` sampled cells as a DataFrame or a Parquet file is to have them."""
        if self.dtype is None:
            return cells
        from doublure.schema.columns.stored_cells import as_dtype

        dated = self.clock is not None or "date_format" in self.text_form
        return as_dtype(cells, self.dtype, lambda: self.csv_cells(cells, marks), dated=dated)

    def typed_cells(self, cells: pd.Series[Any], marks: TextMarks, *, coded: bool = False) -> pd.Series[Any]:
        """Return the same of any column, of one kind of missing or of several.

        Args:
            cells: The cells.
            marks: How text writes dates and numbers where the column does not say it.
            coded: Whether missing numbers of several kinds are their codes, as in a typed file; else NaN.
        """
        if self.missing_states > 1:
            return stored_with_states(self, cells, marks, coded=coded)
        return self.stored_cells(cells, marks)

    def rounded(self, numbers: Floats) -> Floats:
        """Return ``(N,)`` numbers with no more decimals than cells have."""
        return numbers

    def drawn(self, numbers: Floats) -> Floats:
        """Return ``(N,)`` drawn numbers as cells have them."""
        return self.rounded(numbers)

    def snap(self, numbers: Floats) -> Floats:
        """Return the nearest ``(N,)`` numbers that cells can have."""
        return numbers

    def snapped_numbers_of(self, cells: pd.Series[Any]) -> Floats:
        """Return the nearest ``(N,)`` numbers that cells can have to those that they hold."""
        return self.snapped(self.kept_numbers(cells))

    def snapped(self, numbers: Floats) -> Floats:
        """Return the nearest ``(N,)`` numbers that cells can have; missing ones keep their states."""
        return keep_holes(self.snap(numbers), numbers) if self.missing_states > 1 else self.snap(numbers)

    def kept_numbers(self, cells: pd.Series[Any]) -> Floats:
        """Return the ``(N,)`` numbers of canonical or sampled cells; a missing one is a NaN that has its state."""
        return numbers_with_states(self, cells) if self.missing_states > 1 else self.numbers_of(cells)

    def kept_cells(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` numbers as cells of a sample, which tell states of missing apart where they can."""
        return sampled_with_states(self, numbers) if self.missing_states > 1 else self.cells_of(numbers)

    def loaded_cells(self, numbers: Floats) -> pd.Series[Any]:
        """Return ``(N,)`` numbers as canonical cells, missing ones with their states."""
        cells = self.loaded_cells_of(numbers)
        return canonical_with_states(self, cells, hole_states(numbers)) if self.missing_states > 1 else cells

    @abstractmethod
    def number_of(self, written: object) -> float:
        """Return the number of one written value.

        Raises:
            ValueError: It has none; ``message; remedy``.
        """

    def place_of(self, written: object) -> float:
        """Return the number of one written value that cells can have.

        Raises:
            ValueError: There is no such cell; ``message; remedy``.
        """
        return self.number_of(written)

    def upper_number_of(self, written: object) -> float:
        """Return the number of a written upper end of a range.

        Raises:
            ValueError: It has none; ``message; remedy``.
        """
        return self.number_of(written)

    @abstractmethod
    def text_of(self, number: float) -> str:
        """Return a number as labels and axes show it."""

    def interval_texts(self, intervals: Iterable[tuple[float, float]]) -> list[str]:
        """Return intervals of numbers, both ends included, as labels show them and requests read them."""
        return [
            self.text_of(low) if low >= high else f"{self.text_of(low)}..{self.text_of(high)}"
            for low, high in intervals
        ]

    @classmethod
    def axis_text(cls, number: float) -> str | None:
        """Return a number as a page names it; None for one that is shown as it is."""
        return None

    @classmethod
    def axis_texts(cls, numbers: Sequence[float]) -> list[str] | None:
        """Return numbers as the places of an axis are named; None for those that are shown as they are."""
        found = [text for number in numbers if (text := cls.axis_text(number)) is not None]
        return found if len(found) == len(numbers) else None

    @classmethod
    def released_number(cls, cell: Any) -> float:
        """Return the number of a cell of a released file, or of a bound in its dictionary.

        Raises:
            TypeError, ValueError: It has none.
        """
        if isinstance(cell, bool):
            raise TypeError
        if isinstance(cell, str) and not is_plain_number(cell):
            raise ValueError
        return float(cell)

    @classmethod
    def claims(cls, text: str) -> bool:
        """Say whether a cell of a table without a schema has the form of this type, so that a draft may name it.

        Args:
            text: A cell as text, without spaces around. Private.
        """
        return False

    def partition(self, magnitude: float | None) -> CandidateGrid:
        """Return the public grid over which bounds are bought; a query clips numbers onto it itself.

        Args:
            magnitude: The public size to expect; None where it is not known.

        Raises:
            SchemaError: It has no bounds to buy.
        """
        raise SchemaError("has no bounds to buy", field="bounds", remedy="declare its facts")

    def bought(self, first: float, last: float) -> tuple[Any, Any]:
        """Return the ends that noisy counts over :meth:`partition` say, as the schema holds bounds."""
        return first, last

    def countable(self, bounds: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return bought bounds as a schema may declare them."""
        return bounds

    @abstractmethod
    def integer_domain(self) -> IntegerDomain:
        """Return the integers that stand for its values, with the public tree above them.

        Raises:
            SchemaError: A fact of it is not known yet.
        """

    @abstractmethod
    def bins(self, most: int, *, curve: float = 1.0) -> PublicBins:
        """Return its public bins.

        Args:
            most: The most bins of a number; values of a list have one each.
            curve: Bins are of equal width in this power of the share of the bounds, where values cannot be negative.

        Raises:
            SchemaError: A fact of it is not known yet.
        """

    def asked(self, value: object) -> Allowed:
        """Return the cells that a sample is asked for: a value, ``(low, high)`` or ``low..high``, a list, None.

        Raises:
            ValueError: It has no such cell; ``message; remedy``.
        """
        if self._is_token(value):
            return self.one_of([self._hole(value)])
        if isinstance(value, str) and self.ordered and ".." in value and not self._lists(value):
            low, _, high = value.partition("..")
            return self.between(low.strip() or None, high.strip() or None)
        if isinstance(value, tuple) and len(value) == 2 and self.ordered:
            return self.between(*value)
        return self.one_of(self.several(value))

    def several(self, value: object) -> list[object]:
        """Return the values that a request names, None for an empty cell, and for one a :class:`MissingState`.

        Raises:
            ValueError: It names none; ``message; remedy``.
        """
        if isinstance(value, (list, tuple, set, frozenset)):
            if not value:
                raise ValueError("is an empty list; give a value")
            return [self._hole(each) if each is None or self._is_token(each) else each for each in value]
        if isinstance(value, str) and not self._lists(value):
            parts = (part.strip() for part in value.split(","))
            return [self._hole(part) if self._is_token(part) else part for part in parts]
        return [value]

    def _hole(self, cell: object) -> MissingState | None:
        """Return the kind of missing cells that a declared text names, among several; None for all of them."""
        text = "" if cell is None else label(cell)
        several = text and self.missing_states > 1
        return MissingState(self.missing_texts.index(text)) if several else None

    def ruled(self, written: object) -> Allowed:
        """Return the cells that a rule names: a value, a list of values, ``missing``, or the text of one kind of it.

        Raises:
            ValueError: It has no such cell; ``message; remedy``.
        """
        cells = written if isinstance(written, (list, tuple)) else (written,)
        several = self.missing_states > 1
        named = [self._hole(cell) if several and self._is_token(cell) else cell for cell in cells]
        return self.one_of([None if self.means_missing(cell) else cell for cell in named])

    def means_missing(self, cell: object) -> bool:
        """Return whether a rule means an empty cell: ``missing``, unless the column lists a value of that name."""
        return cell == MISSING and not self._lists(MISSING)

    def one_of(self, cells: Sequence[object]) -> Allowed:
        """Return single cells; None is any that is missing.

        Raises:
            ValueError: It has no such cell; ``message; remedy``.
        """
        if None in cells and not self.may_be_missing:
            raise ValueError("is never missing; ask for a value, or declare missing")
        holes = [cell for cell in cells if isinstance(cell, MissingState)]
        found = tuple(self.place_of(cell) for cell in cells if cell is not None and cell not in holes)
        states = () if None in cells else tuple(holes)
        return Allowed(values=found, missing=None in cells or bool(holes), states=states, slack=self.slack)

    def between(self, low: object, high: object) -> Allowed:
        """Return all cells from one to another, within the bounds; None is an open end.

        Raises:
            ValueError: It has no order, or no value there; ``message; remedy``.
        """
        if not self.ordered:
            raise ValueError("has no order; give a list of values")
        first, last = self.limits
        start = first if low is None else self.number_of(low)
        end = last if high is None else self.upper_number_of(high)
        if start > end and None not in (low, high):
            raise ValueError(f"has a range that ends before it begins; {self.backwards}")
        start, end = max(start, first), min(end, last)
        if start > end:
            raise ValueError("has a range outside the column's bounds; see its bounds in the schema")
        return Allowed(span=(start, end), slack=self.slack)

    def _is_token(self, cell: object) -> bool:
        """Return whether a cell of a table would be missing: it is empty, or a declared text."""
        if isinstance(cell, bool) or not isinstance(cell, (str, Real)):
            return False
        return label(cell) in self.missing_tokens and not self._lists(label(cell))

    def _lists(self, value: str) -> bool:
        return label(value) in map(label, self.domain)
