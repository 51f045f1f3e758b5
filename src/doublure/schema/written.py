"""How text stands for numbers and dates in a table's files, and how the files are encoded: public, once for a table."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, StrictStr

from doublure.schema.columns import Column

_TOKENS = re.compile(r"YYYY|MM|DD|hh|mm|ss")
_DAY = ("YYYY", "MM", "DD")
_TOKEN_OR_MORE = re.compile(r"YYYY|MM|DD|hh|mm|ss|[A-Za-z]")


def _date_format(text: str) -> str:
    found = _TOKEN_OR_MORE.findall(text)
    if any(token not in _TOKENS.findall(token) for token in found) or len(set(found)) != len(found):
        raise ValueError("is no form of dates; write DD-MM-YYYY or MM/DD/YYYY hh:mm, each part once")
    if not set(_DAY) <= set(found) or ("ss" in found and "mm" not in found) or ("mm" in found) != ("hh" in found):
        raise ValueError("needs a year, a month and a day, and minutes with hours; write DD-MM-YYYY, or add hh:mm")
    return text


def _mark(text: str) -> str:
    if len(text) != 1 or text.isalnum() or text in '+-"\n\r':
        raise ValueError("must be one character that is no letter, digit, sign or quote; write one such as ','")
    return text


def _delimiter(text: str) -> str:
    if len(text) != 1 or text.isalnum() or text in "\"'\n\r\0":
        raise ValueError("must be one character that is no letter, digit or quote; write one such as ';'")
    return text


def _encoding(name: str) -> str:
    try:
        plain = '\n",;\t|0'.encode(name) == b'\n",;\t|0'
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        plain, found = False, ""
    if not plain:
        raise ValueError("is not an encoding that extends ASCII; write one such as latin-1 or cp1252, or export UTF-8")
    return found


DateFormat: TypeAlias = Annotated[StrictStr, AfterValidator(_date_format)]
Delimiter: TypeAlias = Annotated[StrictStr, AfterValidator(_delimiter)]
Mark: TypeAlias = Annotated[StrictStr, AfterValidator(_mark)]
Encoding: TypeAlias = Annotated[StrictStr, AfterValidator(_encoding)]

KEYS = ("date_format", "decimal", "thousands", "encoding", "delimiter")


@dataclass(frozen=True, kw_only=True)
class Written:
    """How a table's text is to be read.

    Attributes:
        date_format: Of days and moments, such as ``DD-MM-YYYY``; ISO 8601 where None.
        decimal: Between a number's whole part and its fraction.
        thousands: Between groups of three digits, if there is one.
        encoding: Of the bytes.
        delimiter: Between fields; the header tells it where None.
        columns: What is public of the columns.
    """

    date_format: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    columns: Mapping[str, Column]

    @property
    def rewrites(self) -> bool:
        """Whether cells have to be rewritten before they are read."""
        return bool(self.date_format or self.decimal or self.thousands)


def pattern_of(date_format: str) -> re.Pattern[str]:
    """Return the form of a date, with a group for each part; where it has no hours, a time of ISO 8601 may follow.

    Example:
        >>> pattern_of("DD.MM.YYYY").fullmatch("31.01.2024")["YYYY"]
        '2024'
    """
    digits = {"YYYY": r"\d{4}", "MM": r"\d{1,2}", "DD": r"\d{1,2}", "hh": r"\d{1,2}", "mm": r"\d{2}", "ss": r"\d{2}"}
    parts = re.split(r"(YYYY|MM|DD|hh|mm|ss)", date_format)
    form = "".join(f"(?P<{part}>{digits[part]})" if part in digits else re.escape(part) for part in parts)
    if "hh" not in date_format:
        form += r"(?:[T ](?P<hh>\d{1,2}):(?P<mm>\d{2})(?::(?P<ss>\d{2}))?)?"
    return re.compile(form, re.ASCII)
