"""The abstract column: questions that every column type answers, in place of questions for its type."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from doublure.errors import SchemaError
from doublure.schema.allowed import MISSING, Allowed
from doublure.schema.columns.bins import PublicBins
from doublure.schema.columns.dtypes import FLOATS, WHOLE, Dtype, dtype_reach, in_nanoseconds, nullable
from doublure.schema.columns.integer_domain import IntegerDomain, Scale
from doublure.schema.columns.missing_kinds import (
    STYLES,
    canonical_with_states,
    numbers_with_states,
    sampled_with_states,
    stored_with_states,
)
from doublure.schema.fact_states import UNDECLARED, Fact, Frozen, Learn
from doublure.schema.missing_states import hole_states, keep_holes
from doublure.schema.scalars import Meaning, Misfit, Token, Value, is_plain_number, label

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from doublure.noisy_counts import CandidateGrid
    from doublure.schema.columns.made_rows import MadeRows
    from doublure.schema.columns.spelling import CellSpelling, TextMarks
    from doublure.schema.columns.sql_words import Expr, SqlCell, SqlReading, SqlWords

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

Role: TypeAlias = Literal["target", "condition", "weight"]
Clock: TypeAlias = Literal["D", "s"]
"""A unit of time as NumPy writes it: days, seconds."""


def _style(value: object) -> object:
    """Return the texts of ``{style: r}``; anything else as it is."""
    if not (isinstance(value, Mapping) and set(value) == {"style"}):
        return value
    if value["style"] not in STYLES:
        raise ValueError(f"missing has a style that is not known; write one of {', '.join(STYLES)}, or list the texts")
    return STYLES[value["style"]]


Missing: TypeAlias = Annotated[
    StrictBool | Annotated[tuple[Token, ...], Field(min_length=1)],
    BeforeValidator(_style),
]


def _by_code(labels: object) -> object:
    """Return meanings by the texts of their codes."""
    if not isinstance(labels, Mapping) or not labels:
        raise ValueError("value_labels give each code its meaning; write {1: male, 2: female}")
    found = {label(code): said for code, said in labels.items()}
    if len(found) < len(labels):
        raise ValueError("value_labels name one code twice; name it once")
    return found


ValueLabels: TypeAlias = Annotated[Mapping[str, Meaning], BeforeValidator(_by_code)]


class AlikeTexts(tuple[str, ...]):
    """Texts that mean missing and are one kind of it."""

    __slots__ = ()


class MissingState(int):
    """A kind of missing cells that is asked for, by its number."""


class Column(Frozen):
    """A column's facts, and what follows from its type.

    Every cell has a number: a listed value its place in the list, a number itself, a date the days and a moment the
    seconds since 1970. NaN stands for a missing cell.
    """

    if TYPE_CHECKING:
        type: str

    like: ClassVar[str | None] = None
    """The column type of this package that it is, or behaves like; None where there is none."""
    facts: ClassVar[tuple[str, ...]] = ("missing",)
    """The names of its facts, in the order in which a schema lists them."""
    modelled: ClassVar[bool] = True
    """Whether its cells are learned and drawn; an id's are numbered anew."""
    tells_missing: ClassVar[bool] = True
    """Whether a schema may say that its cells are missing, and by which texts."""
    identifies: ClassVar[bool] = False
    """Whether its cells tell records or units apart, so that it may be a key."""
    verbatim: ClassVar[bool] = False
    """Whether its released cells are texts that stand for no number."""
    truth: ClassVar[bool] = False
    """Whether its values are true and false."""
    adds_up: ClassVar[bool] = False
    backwards: ClassVar[str] = "write the lower end first"
    """Whether sums of its values are values of its kind."""
    listed: ClassVar[bool] = False
    """Whether its values are a list."""
    bounded: ClassVar[bool] = False
    """Whether its values are numbers or times between bounds."""
    plain: ClassVar[bool] = False
    """Whether its cells are its numbers, so that zero, signs and round ones mean something to a reader."""
    ordered: ClassVar[bool] = False
    """Whether a range of its values means something."""
    integral: ClassVar[bool] = False
    """Whether its cells are written as whole numbers."""
    table_type: ClassVar[str] = "string"
    """The type of its released cells in a table schema of a Data Package."""
    clock: ClassVar[Clock | None] = None
    """The unit of its numbers, where they are times."""
    steers: ClassVar[bool] = False
    """Whether it may be a condition."""
    example: ClassVar[str | None] = None
    """The remedy for bounds of another form."""
    expected: ClassVar[str] = "use texts or numbers"
    """The remedy for cells of another form."""
    placeholders: ClassVar[Mapping[str, str]] = {}
    """The YAML that declares a fact, with words in capitals to replace."""
    dtypes: ClassVar[tuple[Dtype, ...]] = ("str",)
    """The storage types that its cells may have in DataFrames and Parquet."""
    own_dtype: ClassVar[Dtype | None] = None
    """The one of them that they have where a schema says nothing, and no cell may be missing."""

    missing: Fact[Missing] = UNDECLARED
    roles: tuple[Role, ...] = ()
    description: Meaning | None = Field(
        default=None, description="what the column means, in public words that stand on every card"
    )
    dtype: Dtype | None = Field(default=None, description="the storage type in DataFrames and Parquet")
    value_labels: ValueLabels | None = Field(default=None, description="public meanings of codes: {1: male, 2: female}")

    @classmethod
    def facts_as_written(cls, facts: Mapping[str, Any], date_format: object) -> Mapping[str, Any]:
        """Return a column's facts with those that follow from how all text of its file writes dates."""
        return facts

    def check_written(self, date_format: str | None) -> None:
        """Refuse a column whose cells a file's form of dates would change.

        Args:
            date_format: The form where the column does not say its own.

        Raises:
            ValueError: ``message; remedy``.
        """

    @property
    def shown_type(self) -> str:
        """The column type that data dictionaries and reports name: one of this package where it behaves like one."""
        return self.like or self.type

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """The texts that mean "missing", without spaces around; an empty cell always does."""
        named = self.missing if isinstance(self.missing, tuple) else ()
        return tuple(dict.fromkeys(("", *(text.strip() for text in named))))

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """The text of each state of a missing cell; an empty cell is the first where several texts are declared.

        An empty text is one of them: ``["", "<0.2"]`` has two states, and ``["<0.2"]`` one.
        """
        if not self.may_be_missing:
            return ()
        first, *named = self.missing_tokens
        said = len(named) + (isinstance(self.missing, tuple) and first in self.missing)
        several = bool(named) and said > 1 and not isinstance(self.missing, AlikeTexts)
        return (first, *named) if several else tuple(named or [first])[:1]

    def of_one_kind(self) -> Self:
        """Return the column with all of its texts as one kind of missing, as earlier versions had them."""
        return (
            self.model_copy(update={"missing": AlikeTexts(self.missing)}) if isinstance(self.missing, tuple) else self
        )

    @property
    def missing_states(self) -> int:
        """The number of states of a missing cell."""
        return len(self.missing_texts)

    @property
    def may_be_missing(self) -> bool:
        """Whether a cell may be empty, as far as declared."""
        return self.missing is True or isinstance(self.missing, tuple)

    @property
    def learned(self) -> bool:
        """Whether a fact of it is still to be bought."""
        return any(isinstance(self.fact(name), Learn) for name in self.facts)

    @property
    def settled(self) -> bool:
        """Whether every fact of it is declared: none to be bought, none undecided."""
        return not self.learned and not any(self.fact(name) == UNDECLARED for name in self.facts)

    def alike(self, other: Column) -> bool:
        """Return whether another column holds values of the same kind."""
        return self.shown_type == other.shown_type

    def placeholder(self, fact: str) -> str:
        """Return the YAML that declares a fact, with words in capitals to replace."""
        return self.placeholders.get(fact, "missing: TRUE_FALSE_OR_LIST")

    def notes(self) -> Iterator[str]:
        """Yield what its declared facts keep from being seen, with the remedy."""
        yield from ()

    def fact(self, name: str) -> Any:
        """Return a fact or a setting by its key in a schema file; None where this type has no such key."""
        return self.__dict__.get(name)  # fields alone, and quicker than a look at the model: a plan asks 10⁵ times

    @property
    def tells_hour(self) -> bool:
        """Whether its values have a time of day beside a day."""
        return False

    @property
    def domain(self) -> tuple[Value, ...]:
        """The declared values; empty where there is no list, or it is not known."""
        return ()

    @property
    def shown_values(self) -> tuple[Value, ...]:
        """The values that a data dictionary lists."""
        return self.domain

    @property
    def shown_bounds(self) -> tuple[Any, Any] | None:
        """The bounds that a data dictionary gives, as declared or bought."""
        return self.fact("bounds")  # type: ignore[no-any-return]

    @property
    def shown_missing(self) -> bool | list[str]:
        """The texts of missing cells that a data dictionary gives, or whether cells may be missing.

        An empty text stands among them where an empty cell is a kind of its own.
        """
        if not isinstance(self.missing, tuple):
            return self.missing is True
        return list(self.missing_texts if self.missing_states > 1 else self.missing_tokens[1:]) or True

    @property
    def origin(self) -> str | None:
        """Where synthetic cells come from, in words; None where they are drawn, or are plain numbers of rows."""
        return None

    @property
    def told(self) -> Mapping[str, Any]:
        """Entries of a data dictionary besides the usual ones."""
        return {}

    @property
    def fallback(self) -> str | None:
        """The value that stands for those outside the list; None without one."""
        return None

    def stand_ins(self) -> Callable[[str], str | None]:
        """Return what gives the value that a text outside the list counts as, by itself; None where there is none."""
        return lambda _: self.fallback

    def opened(self, texts: Sequence[str]) -> Column | None:
        """Return a column whose list holds further values; None where cells need no list."""
        return None

    def stand_in_sql(self, said: Expr, words: SqlWords) -> Expr | None:
        """Return the place that a text outside the list counts as by its group; None where none does."""
        return None

    @property
    def level_numbers(self) -> tuple[int, ...]:
        """The public levels above its values, the coarsest first."""
        return ()

    def grouped(self, level: int) -> tuple[str, ...]:
        """Return the name of each value's group at a level.

        Raises:
            ValueError: It has no such level; ``message; remedy``.
        """
        raise ValueError("has no levels; name a column of type code")

    @property
    def unit(self) -> float:
        """The spacing of adjacent numbers; 0 for a continuous column."""
        return 1.0

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds as numbers; None where none are known."""
        return None

    @property
    def counts_years(self) -> bool:
        """Whether its numbers are years of the calendar."""
        return False

    @property
    def grid(self) -> tuple[float, float] | None:
        """The lowest and the highest number: the bounds, moved inwards to multiples of :attr:`unit`."""
        return self.ends

    @property
    def limits(self) -> tuple[float, float]:
        """The lowest and the highest number, which are known.

        Raises:
            ValueError: They are not; ``message; remedy``.
        """
        if self.grid is None:
            raise ValueError("has bounds that are not known yet; declare them")
        return self.grid

    @property
    def known_grid(self) -> tuple[float, float]:
        """The lowest and the highest number.

        Raises:
            SchemaError: They are not known yet.
        """
        if self.grid is None:
            raise SchemaError("is not known yet", field="bounds", remedy="declare it or let fit() learn it first")
        return self.grid

    @property
    def size(self) -> int | None:
        """The number of values that a cell can have; None where it is infinite or unknown."""
        return None

    @property
    def slack(self) -> float:
        """The distance from a value within which a number counts as it."""
        return 0.0

    @property
    def decimals(self) -> int | None:
        """The decimals of its cells; None where they are not declared."""
        return None

    @property
    def zone(self) -> str | None:
        """The time zone of its moments; None where they have none."""
        return None

    @property
    def declared_scale(self) -> Scale | None:
        """The width of public cells, as declared or as times have it; None where it follows from the bounds."""
        return None

    @property
    def cuts(self) -> tuple[float, ...]:
        """Where public cells begin, if that is declared."""
        return ()

    @property
    def repeated(self) -> tuple[float, ...]:
        """The values that are declared to stand out."""
        return ()

    @property
    def zero_apart(self) -> bool:
        """Whether zero is a state of its own."""
        return 0.0 in self.repeated

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

    @property
    def stored_ends(self) -> tuple[float, float] | None:
        """The lowest and the highest number of cells that are stored as numbers; None where they are not known."""
        return self.ends

    @property
    def text_form(self) -> Mapping[str, Any]:
        """The keys that say how its cells are written in text, as far as they say something."""
        keys = ("date_format", "format", "written")
        return {key: found for key in keys if (found := self.fact(key)) is not None}

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

    def learnable(self, fact: str) -> bool:
        """Return whether a fact can be bought."""
        return not (self.ordered and fact == "values") and not ("condition" in self.roles and fact == "missing")

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

    @model_validator(mode="after")
    def _roles_fit(self) -> Column:
        if "condition" in self.roles and not self.steers:
            raise ValueError("only a category, ordinal or boolean column can be a condition; remove the role")
        if "weight" in self.roles and not (self.plain and self.roles == ("weight",)):
            raise ValueError("a weight is an integer or real column without another role; remove the role")
        if "weight" in self.roles and self.ends is not None and self.ends[0] < 0:
            raise ValueError("a weight is at least 0; declare bounds that are, or remove the role")
        if "condition" in self.roles and (self.may_be_missing or isinstance(self.missing, Learn)):
            raise ValueError("a condition cannot be missing; declare missing: false")
        if len(set(self.roles)) != len(self.roles):
            raise ValueError("a role is named twice; name it once")
        return self

    @model_validator(mode="after")
    def _value_labels_fit(self) -> Column:
        known = {*map(label, self.shown_values), *self.missing_tokens}
        lost = [code for code in self.value_labels or () if self.shown_values and code not in known]
        if lost:
            raise ValueError(
                f"value_labels names {lost[0]}, which is no value and no text for missing; name one that is"
            )
        return self

    @model_validator(mode="after")
    def _dtype_fits(self) -> Column:
        if self.dtype is None:
            return self
        if self.dtype not in self.dtypes:
            remedy = f"write one of {', '.join(self.dtypes)}" if self.dtypes else "remove it"
            raise ValueError(f"dtype does not go with this column of type {self.type}; {remedy}")
        other = nullable(self.dtype)
        if other != self.dtype and (self.may_be_missing or isinstance(self.missing, Learn)):
            raise ValueError(f"dtype {self.dtype} has no place for missing cells; write {other}, or missing: false")
        if self.dtype in (*WHOLE, *FLOATS):
            no_numbers = self.listed and bool(self.domain) and self.stored_ends is None
            if no_numbers or isinstance(self.fact("values"), Learn):
                raise ValueError(f"dtype {self.dtype} needs declared values that are numbers; write str or category")
            reach, ends = dtype_reach(self.dtype, whole=self.integral), self.stored_ends
            if reach is not None and ends is not None and (ends[0] < reach[0] or ends[1] > reach[1]):
                raise ValueError(f"dtype {self.dtype} does not reach all values; write a wider one, or fix the bounds")
        known = self.shown_bounds if self.dtype == "datetime64[ns]" else None
        if isinstance(known, tuple) and not in_nanoseconds(known):
            raise ValueError("dtype datetime64[ns] does not reach all bounds; write datetime64[us], or narrow them")
        return self
