"""Attributes of series: values from a list, numbers in public groups, and the number of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import Field, StrictBool, StrictInt, StrictStr, field_validator, model_validator
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    IntegerColumn,
    OrdinalColumn,
    RealColumn,
    Role,
)
from doublure.schema.fact_states import Learn, listed, plain
from doublure.schema.scalars import label, whole
from doublure.schema.series_exogenous import FromExogenous

ATTRIBUTE_TYPES = ("category", "ordinal", "boolean", "integer", "real")

FromTime: TypeAlias = Literal["weekday", "weekend", "month", "hour"]
"""Attributes computed from the moment at which a series begins: Monday is 0, January 1."""

_OF_TIME = {"weekday": range(7), "month": range(1, 13), "hour": range(24)}


class _Attribute(Column):
    """A column that series are conditioned on: it always steers, and may follow from the time."""

    steers: ClassVar[bool] = True

    roles: tuple[Role, ...] = ("condition",)
    from_time: FromTime | None = Field(default=None, description="computed from the moment at which a series begins")
    from_length: StrictBool = Field(default=False, description="how many steps a series has")
    from_exogenous: FromExogenous | None = Field(default=None, description="computed from a series' public readings")
    reading: StrictStr | None = Field(default=None, description="their column, if it has another name than this")
    part: tuple[StrictInt, StrictInt] | None = Field(
        default=None, description="first and last step, from 0, of the part of a series whose readings are summed up"
    )

    @property
    def from_moments(self) -> bool:
        """Whether it follows from the moment at which a series begins, by the calendar or public readings."""
        return self.from_time is not None or self.from_exogenous is not None

    @property
    @override
    def missing_texts(self) -> tuple[str, ...]:
        """All texts that mean missing are one group of series."""
        return super().missing_texts[:1]

    @field_validator("roles")
    @classmethod
    def _always_steers(cls, roles: tuple[Role, ...]) -> tuple[Role, ...]:
        """Series are asked for by every attribute, whatever else it is."""
        return roles if "condition" in roles else ("condition", *roles)

    @model_validator(mode="after")
    def _follows(self) -> _Attribute:
        if self.from_length and not self.integral:
            raise ValueError("from_length is a number of steps; make its type integer")
        if self.from_exogenous is None and (self.reading is not None or self.part is not None):
            raise ValueError("reading and part go with from_exogenous; add it, or remove them")
        if self.part is not None and not 0 <= self.part[0] <= self.part[1]:
            raise ValueError("part is not in order; write [first, last] steps, from 0")
        if self.from_exogenous is not None:
            if self.from_length or self.from_time is not None:
                raise ValueError("from_exogenous and another from_ both say what it is; keep one")
            if not self.bounded:
                raise ValueError("from_exogenous gives numbers; make its type integer or real")
        if self.from_time is None:
            return self
        if self.from_length:
            raise ValueError("from_time and from_length both say what it is; keep one")
        if self.bounded:
            raise ValueError("from_time gives values of a list; make its type ordinal, or boolean for weekend")
        if (self.from_time == "weekend") != self.truth:
            raise ValueError("from_time: weekend goes with type boolean, the others with ordinal or category; fix one")
        known = {str(value) for value in _OF_TIME.get(self.from_time, ())}
        values = self.fact("values")
        if isinstance(values, tuple) and not {label(value) for value in values} <= known:
            raise ValueError("values are none that from_time gives; weekday is 0 to 6, month 1 to 12, hour 0 to 23")
        return self


class CategoryAttribute(_Attribute, CategoryColumn):
    """Unordered values."""


class OrdinalAttribute(_Attribute, OrdinalColumn):
    """Values in the order listed."""


class BooleanAttribute(_Attribute, BooleanColumn):
    """True or false."""


class _Number(_Attribute):
    """A numeric attribute, which steers by its public group."""

    @model_validator(mode="after")
    def _no_state_apart(self) -> _Number:
        if self.repeated:
            raise ValueError("zero_inflated and spikes are for channels and tables; cut groups by edges")
        return self


class IntegerAttribute(_Number, IntegerColumn):
    """Whole numbers, in public groups between their bounds."""


class RealAttribute(_Number, RealColumn):
    """Real numbers, in public groups between their bounds."""


Attribute = Annotated[
    CategoryAttribute | OrdinalAttribute | BooleanAttribute | IntegerAttribute | RealAttribute,
    Field(discriminator="type"),
]


def described(column: Column) -> dict[str, Any]:
    """Return a channel or attribute as a schema's file has it."""
    facts = {fact: listed(plain(column.fact(fact))) for fact in column.facts}
    own = column.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    found: dict[str, Any] = {"type": column.type} | facts | own
    if isinstance(found.get("bounds"), list):
        found |= {"bounds": [whole(end) for end in found["bounds"]]}
    return found


def refuse_lengths(attributes: Mapping[str, Any], length: int | None) -> None:
    """Refuse numbers of steps that no series can have.

    Args:
        attributes: Of a set of series.
        length: The most steps of a series; None where that is not declared.

    Raises:
        ValueError: Two attributes follow from the length, or the bounds of one are learned or not within it.
    """
    found = [name for name, each in attributes.items() if each.from_length]
    if len(found) > 1:
        raise ValueError("two attributes follow from the length; keep one")
    for name in found:
        bounds = attributes[name].bounds
        if isinstance(bounds, Learn):
            raise ValueError(f"{printable(name)}: bounds of a number of steps are not learned; declare them")
        if not isinstance(bounds, tuple):
            continue
        if bounds[0] < 1 or (length is not None and bounds[1] != length):
            raise ValueError(
                f"{printable(name)}: bounds of a number of steps go from 1 or more to series.length; fix either"
            )
