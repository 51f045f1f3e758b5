"""The public text form of rows in files: numbers, dates, encoding and delimiters."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictStr, model_validator

from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.scalars import Positive, check_name

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
    if len(text) != 1 or not text.isascii() or text.isalnum() or text in "\"'\n\r\0":
        raise ValueError("must be one character of ASCII that is no letter, digit or quote; write one such as ';'")
    return text


def _encoding(name: str) -> str:
    try:
        plain = '\n",;\t|0'.encode(name) == b'\n",;\t|0'
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        plain, found = False, ""
    if not plain:
        remedy = "write one such as latin-1 or cp1252; leave it out for UTF-16 with a byte order mark, or export UTF-8"
        raise ValueError(f"is not an encoding that extends ASCII; {remedy}")
    return found


DateFormat: TypeAlias = Annotated[StrictStr, AfterValidator(_date_format)]
Delimiter: TypeAlias = Annotated[StrictStr, AfterValidator(_delimiter)]
Mark: TypeAlias = Annotated[StrictStr, AfterValidator(_mark)]
Encoding: TypeAlias = Annotated[StrictStr, AfterValidator(_encoding)]
Multiline: TypeAlias = Annotated[StrictBool | None, AfterValidator(lambda said: said or None)]
"""False says what leaving it out says."""


def _new_names(said: Mapping[str, tuple[str, ...]] | None) -> Mapping[str, tuple[str, ...]] | None:
    new = [name for names in (said or {}).values() for name in names]
    for name in new:
        check_name(name)
    if len(set(new)) < len(new):
        raise ValueError("rename gives one name twice; name each column differently")
    return said or None


NewNames: TypeAlias = Annotated[
    Mapping[
        StrictStr,
        Annotated[tuple[StrictStr, ...], BeforeValidator(lambda said: [said] if isinstance(said, str) else said)],
    ]
    | None,
    AfterValidator(_new_names),
]
"""A name of the header -> the names of the columns that are called so, from left to right."""

KEYS = ("date_format", "decimal", "thousands", "encoding", "delimiter", "multiline", "skip_rows", "rename")


class TextForm(Frozen):
    """The keys of a schema whose data may come as text."""

    date_format: DateFormat | None = Field(default=None, description="how text writes dates: DD-MM-YYYY")
    decimal: Mark | None = Field(default=None, description="decimal mark in text; a point if left out")
    thousands: Mark | None = Field(default=None, description="what stands between groups of three digits")
    encoding: Encoding | None = Field(default=None, description="of CSV files; UTF-8 if left out")
    delimiter: Delimiter | None = Field(default=None, description="between fields; told by the header if left out")
    multiline: Multiline = Field(default=None, description="whether quoted cells of CSV files may hold line ends")

    skip_rows: Positive | None = Field(default=None, description="lines, or rows of a sheet, above the header")
    rename: NewNames = Field(default=None, description="new names of columns: {total: [total, total_2]}")

    @model_validator(mode="after")
    def _two_marks(self) -> TextForm:
        if self.decimal is not None and self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same; write two different marks")
        return self

    @property
    def text_form(self) -> dict[str, Any]:
        """The keys that say something."""
        return {key: getattr(self, key) for key in KEYS if getattr(self, key) is not None}

    def written_as(self, columns: Mapping[str, Column], *, numbered: bool = False) -> Written | None:
        """Return how text is to be read; None where it is as doublure reads text anyway."""
        return Written(columns=columns, numbered=numbered, **self.text_form) if self.text_form else None


@dataclass(frozen=True, kw_only=True)
class Written:
    """The text form of rows in a file.

    Attributes:
        date_format: Of days and moments, such as ``DD-MM-YYYY``; ISO 8601 where None.
        decimal: Between a number's whole part and its fraction.
        thousands: Between groups of three digits, if there is one.
        encoding: Of the bytes.
        delimiter: Between fields; the header tells it where None.
        multiline: Whether quoted cells of CSV files may hold line ends, and quoting is part of the form.
        skip_rows: Lines of text, or rows of a sheet, that stand above the header.
        rename: A name of the header -> the names of the columns that are called so, from left to right.
        columns: The public facts of the columns.
        numbered: Whether ``litres_0``, ``litres_1``, … are cells of the column ``litres``.
    """

    date_format: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    multiline: bool = False
    skip_rows: int = 0
    rename: Mapping[str, Sequence[str]] | None = None
    columns: Mapping[str, Column]
    numbered: bool = False

    def column(self, name: str) -> Column | None:
        """Return what is public of a column of the file; None of one that nothing is known of."""
        stem, _, number = name.rpartition("_")
        of_step = self.numbered and number.isascii() and number.isdigit()
        return self.columns.get(name) or (self.columns.get(stem) if of_step else None)

    def of_table(self, table: str) -> Written:
        """Return how one of several tables is read, whose columns are named ``table.column`` here."""
        head = f"{table}."
        own = {name.removeprefix(head): each for name, each in self.columns.items() if name.startswith(head)}
        new = {name.removeprefix(head): names for name, names in (self.rename or {}).items() if name.startswith(head)}
        return replace(self, columns=own, rename=new)

    @property
    def rewrites(self) -> bool:
        """Whether cells have to be rewritten before they are read."""
        return bool(self.date_format or self.decimal or self.thousands)
