"""The column types of a table, each with the facts that must be public, bought, or refused."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StrictBool,
    StrictFloat,
    TypeAdapter,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from doublure.errors import SettingError
from doublure.schema.fact_states import UNDECLARED, Fact, Frozen, Learn, OptionalFact
from doublure.schema.scalars import EXACT, Bound, Day, Decimals, Meaning, Moment, Positive, Token, Zone
from doublure.schema.scalars import Value as Value
from doublure.schema.scalars import label as label

Role: TypeAlias = Literal["target", "condition"]

Scale: TypeAlias = Literal["linear", "log", "symlog"]

MOST_VALUES = 100_000
MOST_CELLS = 1_000
"""Edges or spikes of a column."""
_NEARLY = 1e-6
_TYPE_NAME = re.compile(r"[a-z][a-z0-9_-]*")
_EPOCH = datetime.datetime(1970, 1, 1)
Missing: TypeAlias = StrictBool | Annotated[tuple[Token, ...], Field(min_length=1)]


class _Base(Frozen):
    """What every column has."""

    numeric: ClassVar[bool] = False
    discrete: ClassVar[bool] = False
    steers: ClassVar[bool] = False
    """Whether it may be a condition."""
    one_clock: ClassVar[bool] = False
    """Whether moments with an offset from UTC and without are worth a warning."""
    facts: ClassVar[tuple[str, ...]] = ("missing",)

    missing: Fact[Missing] = UNDECLARED
    roles: tuple[Role, ...] = ()
    description: Meaning | None = Field(
        default=None, description="what the column means, in public words that stand on every card"
    )

    @property
    def nature(self) -> str:
        """The type of this package that it is, or behaves like: its own type may be registered from elsewhere."""
        name: str = self.type  # type: ignore[attr-defined]  # each type's own
        return _LIKE.get(name, name)

    @property
    def missing_tokens(self) -> tuple[str, ...]:
        """The texts that mean "missing", without spaces around; an empty cell always does."""
        named = self.missing if isinstance(self.missing, tuple) else ()
        return tuple(dict.fromkeys(("", *(text.strip() for text in named))))

    @property
    def may_be_missing(self) -> bool:
        """Whether a cell may be empty, as far as declared."""
        return self.missing is True or isinstance(self.missing, tuple)

    @model_validator(mode="after")
    def _roles_fit(self) -> _Base:
        if "condition" in self.roles and not self.steers:
            raise ValueError("only a category, ordinal or boolean column can be a condition; remove the role")
        if "condition" in self.roles and (self.may_be_missing or isinstance(self.missing, Learn)):
            raise ValueError("a condition cannot be missing; declare missing: false")
        if len(set(self.roles)) != len(self.roles):
            raise ValueError("a role is named twice; name it once")
        return self


class _Number(_Base):
    numeric: ClassVar[bool] = True
    facts: ClassVar[tuple[str, ...]] = ("bounds", "missing")

    @property
    def unit(self) -> float:
        """The distance between neighbouring values (days for dates, seconds for moments); 0 where there is none."""
        return 1.0

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds as numbers: days since 1970 for dates, seconds for moments. None if not declared."""
        return None

    @property
    def grid(self) -> tuple[float, float] | None:
        """The lowest and highest value: the bounds, moved inwards to multiples of :attr:`unit`."""
        ends = self.ends
        if ends is None or not self.unit:
            return ends
        first, last = whole_steps(*ends, self.unit)
        return first * self.unit, last * self.unit

    @model_validator(mode="after")
    def _bounds_fit(self) -> _Number:
        if self.ends is None or self.grid is None:
            return self
        lower, upper = self.ends
        if not lower < upper:
            raise ValueError("bounds are not in order; write [lower, upper] with lower < upper")
        if not math.isfinite(upper - lower) or (self.unit and max(-lower, upper) / self.unit > EXACT):
            raise ValueError("bounds are wider than float64 can count; narrow them")
        if self.grid[0] > self.grid[1]:
            raise ValueError("bounds hold no value with that precision or step; widen them")
        if getattr(self, "zero_inflated", False) and not lower <= 0 <= upper:
            raise ValueError("zero_inflated needs bounds that contain 0; widen them or remove zero_inflated")
        return self


class _Measured(_Number):
    """What integers and reals may say of how they are spread."""

    zero_inflated: StrictBool = Field(default=False, description="many exact zeros: the same as spikes: [0]")
    scale: Scale | None = Field(default=None, description="how wide public cells are; omitted: by the bounds")
    edges: tuple[StrictFloat, ...] = Field(default=(), description="where public cells begin, in ascending order")
    spikes: tuple[StrictFloat, ...] = Field(default=(), description="values that many cells have: a cell of their own")

    @property
    def repeated(self) -> tuple[float, ...]:
        """The values that are declared to stand out, zero among them where :attr:`zero_inflated` says so."""
        return tuple(sorted({*self.spikes, *((0.0,) if self.zero_inflated else ())}))

    @property
    def zero_apart(self) -> bool:
        """Whether zero is a state of its own."""
        return 0.0 in self.repeated

    @model_validator(mode="after")
    def _cells_fit(self) -> _Measured:
        if list(self.edges) != sorted(set(self.edges)):
            raise ValueError("edges are not in ascending order; sort them, each once")
        if self.edges and self.scale is not None:
            raise ValueError("edges and scale both say how wide cells are; keep one")
        if len(set(self.spikes)) != len(self.spikes):
            raise ValueError("spikes names a value twice; name it once")
        if len(self.edges) > MOST_CELLS or len(self.spikes) > MOST_CELLS:
            raise ValueError(f"edges and spikes have at most {MOST_CELLS} entries; name fewer")
        ends = self.ends
        if ends is None:
            return self
        if self.scale == "log" and ends[0] < 0:
            raise ValueError("scale: log needs bounds of at least 0; use symlog")
        for value in self.spikes:
            steps = value / self.unit if self.unit else 0.0
            if not ends[0] <= value <= ends[1] or abs(steps - round(steps)) > _NEARLY:
                raise ValueError("spikes has a value outside the bounds, or between two values; correct it")
        return self


class IntegerColumn(_Measured):
    """Whole numbers within public bounds, both included."""

    type: Literal["integer"] = "integer"
    bounds: Fact[tuple[Bound, Bound]] = UNDECLARED
    step: Positive = Field(default=1, description="amounts in thousands: 1000; cells are rounded to its multiples")

    @property
    def unit(self) -> float:
        """The step."""
        return float(self.step)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds."""
        return (float(self.bounds[0]), float(self.bounds[1])) if isinstance(self.bounds, tuple) else None


class RealColumn(_Measured):
    """Real numbers within public bounds, rounded to ``precision`` decimals if given."""

    type: Literal["real"] = "real"
    bounds: Fact[tuple[StrictFloat, StrictFloat]] = UNDECLARED
    precision: Decimals | None = Field(default=None, description="decimals")
    step: Annotated[StrictFloat, Field(gt=0)] | None = Field(default=None, description="cells are its multiples")

    @property
    def unit(self) -> float:
        """The step, or else one in the last decimal; 0 without either."""
        if self.step is not None:
            return self.step
        return 0.0 if self.precision is None else 10.0**-self.precision

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds."""
        return self.bounds if isinstance(self.bounds, tuple) else None


class DateColumn(_Number):
    """Calendar days."""

    type: Literal["date"] = "date"
    bounds: Fact[tuple[Day, Day]] = UNDECLARED

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds in days since 1970."""
        if not isinstance(self.bounds, tuple):
            return None
        return tuple(float(day.toordinal() - _EPOCH.toordinal()) for day in self.bounds)  # type: ignore[return-value]


class DatetimeColumn(_Number):
    """Moments, rounded to ``step`` seconds; naive, or in the declared time zone."""

    type: Literal["datetime"] = "datetime"
    bounds: Fact[tuple[Moment, Moment]] = UNDECLARED
    step: Positive = Field(default=1, description="seconds between neighbouring values")
    timezone: Zone | None = None

    @property
    def unit(self) -> float:
        """The step in seconds."""
        return float(self.step)

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds in seconds since 1970, in the column's own time zone."""
        if not isinstance(self.bounds, tuple):
            return None
        return tuple((moment - _EPOCH).total_seconds() for moment in self.bounds)  # type: ignore[return-value]


class _Choice(_Base):
    """A column with a list of values, which may steer what is drawn."""

    discrete: ClassVar[bool] = True
    steers: ClassVar[bool] = True

    shares: OptionalFact[Mapping[str, StrictFloat]] = Field(
        default=None,
        description="public or bought class shares; omitted: conditions are drawn uniformly, but by statistics and "
        "guided on tables as their noisy counts say",
    )

    @property
    def domain(self) -> tuple[Value, ...]:
        """The declared values; empty where they are not known."""
        return ()

    @model_validator(mode="before")
    @classmethod
    def _shares_by_label(cls, data: Any) -> Any:
        shares = data.get("shares") if isinstance(data, Mapping) else None
        if isinstance(shares, str):
            raise ValueError("shares are declared, learned or left out; leave them out for a uniform draw")
        if isinstance(shares, Mapping) and "learn" not in shares:
            labelled = {label(key): share for key, share in shares.items()}
            if len(labelled) != len(shares):
                raise ValueError("shares names one value twice; name it once")
            return {**data, "shares": labelled}
        return data

    @model_validator(mode="after")
    def _shares_fit(self) -> _Choice:
        if self.shares is not None and "condition" not in self.roles:
            raise ValueError("shares steer a condition; add roles: [condition] or remove shares")
        if isinstance(self.shares, Mapping):
            if not self.domain:
                raise ValueError("shares need declared values; declare values or learn shares")
            if set(self.shares) != {label(value) for value in self.domain}:
                raise ValueError("shares do not name every value once; list each value, other included")
            if min(self.shares.values()) < 0 or abs(sum(self.shares.values()) - 1) > 0.01:
                raise ValueError("shares do not add up to 1; give shares of at least 0 that do")
        return self


class _Listed(_Choice):
    facts: ClassVar[tuple[str, ...]] = ("values", "missing")

    values: Fact[tuple[Value, ...]] = UNDECLARED
    other: Token | None = Field(default=None, description="where values outside the list go")

    @property
    def domain(self) -> tuple[Value, ...]:
        """The declared values, ``other`` last; empty where they are not known."""
        if isinstance(self.values, (Learn, str)):
            return ()
        if self.other is None or label(self.other) in map(label, self.values):
            return self.values
        return (*self.values, self.other)

    @model_validator(mode="after")
    def _values_fit(self) -> _Listed:
        tokens = set(self.missing_tokens)
        if self.other is not None and label(self.other) in tokens:
            raise ValueError("other is also a text for missing; name another one")
        if isinstance(self.values, Learn):
            if self.other is None:
                raise ValueError("values are learned, so rare ones need a place; name an other, such as other: Other")
        elif isinstance(self.values, tuple):
            if not self.domain:
                raise ValueError("values is empty; list the values or write undeclared")
            if len(self.values) > MOST_VALUES:
                raise ValueError(f"values has more than {MOST_VALUES} entries; group them or use type id")
            labels = {label(value) for value in self.values}
            if min(len(labels), len(set(self.values))) < len(self.values):
                raise ValueError("values names one value twice; name it once (1, 1.0 and '1' are one value)")
            if labels & tokens:
                raise ValueError("a value is also a text for missing, or empty; keep it in one place")
        return self


class CategoryColumn(_Listed):
    """Unordered values."""

    type: Literal["category"] = "category"


class OrdinalColumn(_Listed):
    """Values in the order listed."""

    type: Literal["ordinal"] = "ordinal"

    @model_validator(mode="after")
    def _order_is_public(self) -> OrdinalColumn:
        if isinstance(self.values, Learn):
            raise ValueError("an order cannot be learned; list the values, or use type category")
        return self


class BooleanColumn(_Choice):
    """True or false."""

    type: Literal["boolean"] = "boolean"
    other: ClassVar[str | None] = None

    @property
    def domain(self) -> tuple[Value, ...]:
        """False, then true."""
        return (False, True)


class IdColumn(_Base):
    """An identifier: regenerated as 1, 2, 3, …, never learned, never encoded."""

    facts: ClassVar[tuple[str, ...]] = ()

    type: Literal["id"] = "id"
    missing: Fact[Missing] = False

    @model_validator(mode="after")
    def _nothing_to_learn(self) -> IdColumn:
        if self.roles or isinstance(self.missing, Learn):
            raise ValueError("an id is never learned; leave roles and missing out, or use type category")
        return self


_LIKE: dict[str, str] = {}
"""Type that is registered from elsewhere -> the type of this package that it behaves like."""
_REGISTERED: dict[str, type[Any]] = {}
_WITH_REGISTERED: list[TypeAdapter[Any]] = []
"""The union of all types, once there are some from elsewhere."""


class _Registered:
    """Reads, writes and describes columns whose type is registered from elsewhere; all others as ever."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        own = handler(source)
        written = core_schema.wrap_serializer_function_ser_schema(_write, schema=own, info_arg=True)
        return core_schema.no_info_wrap_validator_function(_read, own, serialization=written)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(_WITH_REGISTERED[-1].core_schema if _WITH_REGISTERED else core)


def _read(data: Any, handler: core_schema.ValidatorFunctionWrapHandler) -> Any:
    name = data.get("type") if isinstance(data, Mapping) else getattr(data, "type", None)
    known = isinstance(name, str) and name in _REGISTERED
    return _WITH_REGISTERED[-1].validate_python(data) if known else handler(data)


def _write(column: Any, handler: core_schema.SerializerFunctionWrapHandler, info: core_schema.SerializationInfo) -> Any:
    if getattr(column, "type", None) not in _REGISTERED:
        return handler(column)
    return column.model_dump(mode=info.mode, exclude_none=info.exclude_none, exclude_defaults=info.exclude_defaults)


Column = Annotated[
    IntegerColumn
    | RealColumn
    | CategoryColumn
    | OrdinalColumn
    | BooleanColumn
    | DateColumn
    | DatetimeColumn
    | IdColumn,
    Field(discriminator="type"),
    _Registered,
]
MODELS = (
    IntegerColumn,
    RealColumn,
    CategoryColumn,
    OrdinalColumn,
    BooleanColumn,
    DateColumn,
    DatetimeColumn,
    IdColumn,
)
TYPES = ("integer", "real", "category", "ordinal", "boolean", "date", "datetime", "id")
NumberColumn: TypeAlias = IntegerColumn | RealColumn | DateColumn | DatetimeColumn
DiscreteColumn: TypeAlias = CategoryColumn | OrdinalColumn | BooleanColumn


def whole_steps(lower: float, upper: float, unit: float) -> tuple[int, int]:
    """Return the first and last multiple of ``unit`` within bounds, as counts of it; the first is larger if none is.

    A billionth of a unit, or float64's own error, is forgiven: in binary, 0.3 is no multiple of 0.1.
    """
    slack = max(1e-9, 1e-15 * max(abs(lower), abs(upper)) / unit)
    return math.ceil(lower / unit - slack), math.floor(upper / unit + slack)


def register(model: type[Any]) -> None:
    """Let the schema of a table name a column type that is defined elsewhere. It holds for this process.

    Args:
        model: A subclass of one of :data:`MODELS`, which it behaves like, with a type of its own:
            ``type: Literal["percent"] = "percent"``. Another one of its name that was registered before is replaced.

    Raises:
        SettingError: It is no column, or has no name of its own.
    """
    base = next((each for each in MODELS if isinstance(model, type) and issubclass(model, each)), None)
    if base is None:
        classes = ", ".join(each.__name__ for each in MODELS)
        raise SettingError(
            "is not the class of a column", field="column type", remedy=f"derive it from one of {classes}"
        )
    field, own = model.model_fields["type"], 'write type: Literal["NAME"] = "NAME" in its class'
    name = field.default
    if not isinstance(name, str) or get_args(field.annotation) != (name,) or _TYPE_NAME.fullmatch(name) is None:
        raise SettingError(f"{model.__name__} has no type of its own", field="column type", remedy=own)
    if name in TYPES:
        raise SettingError(
            f"{name!r} is a column type of doublure", field="column type", remedy=f"{own}, with a NAME that is free"
        )
    _REGISTERED[name], _LIKE[name] = model, base.model_fields["type"].default
    every: Any = reduce(or_, (*MODELS, *_REGISTERED.values()))
    _WITH_REGISTERED[:] = [TypeAdapter(Annotated[every, Field(discriminator="type")])]


def types() -> tuple[str, ...]:
    """Return the names of all column types, those that are registered from elsewhere last."""
    return (*TYPES, *_REGISTERED)
