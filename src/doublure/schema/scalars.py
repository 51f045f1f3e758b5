"""Plain values of a schema's YAML, read leniently where safe and refused where likely a slip."""

from __future__ import annotations

import datetime
import re
import sys
import unicodedata
from decimal import Decimal
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)

from doublure.errors import escaped, printable

Value: TypeAlias = StrictBool | StrictInt | StrictFloat | StrictStr
Misfit: TypeAlias = Literal["refuse", "coerce"]
"""Treatment of a cell or record that does not fit the schema: refuse the data, or apply a public rule."""

_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_LONGEST_NUMBER = len(repr(-sys.float_info.min * (2 - sys.float_info.epsilon)))  # no float64 takes more
EXACT = 2**53  # above it float64 skips whole numbers
_LONGEST_NAME = 500
LONGEST_MEANING = 1_000


def label(value: object) -> str:
    """Return the canonical text of a category, so that 1, 1.0 and Decimal("1") are one and the same as "1"."""
    if isinstance(value, str):
        return value.strip()
    if hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Decimal) and value.is_finite():
        # float64 skips whole numbers beyond 2^53; a decimal of 128 bits has 38 digits at most
        exact = value.adjusted() < 38 and value == value.to_integral_value()
        return str(int(value)) if exact else label(float(value))
    return str(value).strip()


def is_plain_number(text: str) -> bool:
    """Return whether every reader reads the same number: ASCII, no space, no underscore, no digit beyond float64's."""
    return len(text) <= _LONGEST_NUMBER and _PLAIN_NUMBER.fullmatch(text) is not None


def whole(value: object) -> object:
    """Return 100000 for 1e5, which YAML reads as a real number; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_name(name: str) -> None:
    """Refuse a column name that a terminal, a file or a reader could take for something else.

    Raises:
        ValueError: With a message for the schema's author.
    """
    shown = printable(name)
    if not name.strip():
        raise ValueError("a column has an empty name; name it")
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"the column {shown} has a name of more than {_LONGEST_NAME} characters; rename it")
    if name != name.strip():
        raise ValueError(f"the column {shown} has spaces around its name; take them away")
    if any((unicodedata.category(char)[0] in "CZ" and char != " ") or char == "\ufffd" for char in name):
        raise ValueError(f"the column {shown} has an invisible character in its name; rename it")


def _iso(value: object) -> object:
    """Refuse numbers, which would be read as seconds since 1970: [1990, 2020] is a slip, not two moments."""
    if isinstance(value, datetime.date) or (isinstance(value, str) and re.match(r"\d{4}-\d{2}-\d{2}", value)):
        return value
    raise ValueError("a bound is no date; write 2024-01-31, or 2024-01-31T12:00:00 where type is datetime")


def _plain_moment(moment: datetime.datetime) -> datetime.datetime:
    if moment.tzinfo is not None:
        raise ValueError("a bound has an offset; leave it out, bounds are read in the column's timezone")
    if moment.microsecond:
        raise ValueError("a bound has fractions of a second; write whole seconds")
    return moment


def _known_zone(name: str) -> str:
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("is no known IANA name; write one such as Europe/Paris") from None
    return name


def _meaning(text: str) -> str:
    if not 0 < len(text.strip()) <= LONGEST_MEANING:
        raise ValueError(f"is no text of 1 to {LONGEST_MEANING:,} characters; write a sentence or a few")
    if escaped(text) != text:
        raise ValueError("has a line break or an invisible character; write it on one line")
    return text


def _token(value: object) -> object:
    return label(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


Whole: TypeAlias = Annotated[StrictInt, BeforeValidator(whole)]
Bound: TypeAlias = Annotated[StrictInt, Field(ge=-EXACT, le=EXACT), BeforeValidator(whole)]
Positive: TypeAlias = Annotated[StrictInt, Field(ge=1), BeforeValidator(whole)]
Decimals: TypeAlias = Annotated[StrictInt, Field(ge=0, le=12), BeforeValidator(whole)]
Day: TypeAlias = Annotated[datetime.date, BeforeValidator(_iso)]
Moment: TypeAlias = Annotated[datetime.datetime, BeforeValidator(_iso), AfterValidator(_plain_moment)]
Token: TypeAlias = Annotated[StrictStr, BeforeValidator(_token), WithJsonSchema({"type": ["string", "number"]})]
Meaning: TypeAlias = Annotated[StrictStr, AfterValidator(_meaning)]
"""The meaning of a column, on one line: public text of the steward, no fact about private data."""
Zone: TypeAlias = Annotated[StrictStr, AfterValidator(_known_zone)]
