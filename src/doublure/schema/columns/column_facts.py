"""A column's facts: what a schema declares of it, and what follows from these and from its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from doublure.errors import SchemaError
from doublure.schema.columns.dtypes import FLOATS, WHOLE, Dtype, dtype_reach, in_nanoseconds, nullable
from doublure.schema.columns.integer_domain import Scale
from doublure.schema.columns.missing_kinds import (
    STYLES,
)
from doublure.schema.fact_states import UNDECLARED, Fact, Frozen, KeyFault, Learn
from doublure.schema.scalars import Meaning, Token, Value, label

if TYPE_CHECKING:
    import numpy as np

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


class ColumnFacts(Frozen):
    """A column's declared facts, and what follows from them and its type."""

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
    """Whether sums of its values are values of its kind."""
    backwards: ClassVar[str] = "write the lower end first"
    """The remedy for a range that ends before it begins."""
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
    def undeclared_empty(self) -> bool:
        """Whether an empty cell is a kind beside several texts, and none of them."""
        return self.missing_states > 1 and isinstance(self.missing, tuple) and "" not in self.missing

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

    def alike(self, other: ColumnFacts) -> bool:
        """Return whether another column holds values of the same kind."""
        return self.shown_type == other.shown_type

    def compares_with(self, other: ColumnFacts) -> bool:
        """Return whether rules compare its cells with another column's: of one type, or both whole numbers."""
        whole = all(each.integral and each.computable for each in (self, other))
        return whole or self.alike(other)

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
    def computable(self) -> bool:
        """Whether rules take its cells as numbers: plain ones, and years."""
        return self.plain or self.counts_years

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

    @property
    def stored_ends(self) -> tuple[float, float] | None:
        """The lowest and the highest number of cells that are stored as numbers; None where they are not known."""
        return self.ends

    @property
    def text_form(self) -> Mapping[str, Any]:
        """The keys that say how its cells are written in text, as far as they say something."""
        keys = ("date_format", "format", "written")
        return {key: found for key in keys if (found := self.fact(key)) is not None}

    def learnable(self, fact: str) -> bool:
        """Return whether a fact can be bought."""
        return not (self.ordered and fact == "values") and not ("condition" in self.roles and fact == "missing")

    @model_validator(mode="after")
    def _roles_fit(self) -> Self:
        if "condition" in self.roles and not self.steers:
            raise KeyFault(
                "roles", "can be a condition; remove the role", subject="only a category, ordinal or boolean column"
            )
        if "weight" in self.roles and not (self.plain and self.roles == ("weight",)):
            raise KeyFault(
                "roles", "is an integer or real column without another role; remove the role", subject="a weight"
            )
        if "weight" in self.roles and self.ends is not None and self.ends[0] < 0:
            raise KeyFault("roles", "is at least 0; declare bounds that are, or remove the role", subject="a weight")
        if "condition" in self.roles and (self.may_be_missing or isinstance(self.missing, Learn)):
            raise KeyFault("missing", "cannot be missing; declare missing: false", subject="a condition")
        if len(set(self.roles)) != len(self.roles):
            raise KeyFault("roles", "is named twice; name it once", subject="a role")
        return self

    @model_validator(mode="after")
    def _value_labels_fit(self) -> Self:
        known = {*map(label, self.shown_values), *self.missing_tokens}
        lost = [code for code in self.value_labels or () if self.shown_values and code not in known]
        if lost:
            raise KeyFault(
                "value_labels", f"names {lost[0]}, which is no value and no text for missing; name one that is"
            )
        return self

    @model_validator(mode="after")
    def _dtype_fits(self) -> Self:
        if self.dtype is None:
            return self
        if self.dtype not in self.dtypes:
            remedy = f"write one of {', '.join(self.dtypes)}" if self.dtypes else "remove it"
            raise KeyFault("dtype", f"does not go with this column of type {self.type}; {remedy}")
        other = nullable(self.dtype)
        if other != self.dtype and (self.may_be_missing or isinstance(self.missing, Learn)):
            raise KeyFault("dtype", f"{self.dtype} has no place for missing cells; write {other}, or missing: false")
        if self.dtype in (*WHOLE, *FLOATS):
            no_numbers = self.listed and bool(self.domain) and self.stored_ends is None
            if no_numbers or isinstance(self.fact("values"), Learn):
                raise KeyFault("dtype", f"{self.dtype} needs declared values that are numbers; write str or category")
            reach, ends = dtype_reach(self.dtype, whole=self.integral), self.stored_ends
            if reach is not None and ends is not None and (ends[0] < reach[0] or ends[1] > reach[1]):
                raise KeyFault("dtype", f"{self.dtype} does not reach all values; write a wider one, or fix the bounds")
        known = self.shown_bounds if self.dtype == "datetime64[ns]" else None
        if isinstance(known, tuple) and not in_nanoseconds(known):
            raise KeyFault("dtype", "datetime64[ns] does not reach all bounds; write datetime64[us], or narrow them")
        return self
