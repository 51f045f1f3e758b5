"""The public text form of rows in files: numbers, dates, encoding and delimiters."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictStr, model_validator

from doublure.errors import printable
from doublure.schema.columns import Column, type_named
from doublure.schema.columns.date_format import DateFormat
from doublure.schema.columns.spelling import TextMarks
from doublure.schema.fact_states import Frozen
from doublure.schema.scalars import Positive, check_name
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    import pandas as pd


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
        plain = '\n",;\t|0'.encode(name).removeprefix(codecs.BOM_UTF8) == b'\n",;\t|0'
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        plain, found = False, ""
    if not plain:
        remedy = "write one such as latin-1 or cp1252; leave it out for UTF-16 with a byte order mark, or export UTF-8"
        raise ValueError(f"is not an encoding that extends ASCII; {remedy}")
    return found


Delimiter: TypeAlias = Annotated[StrictStr, AfterValidator(_delimiter)]
Mark: TypeAlias = Annotated[StrictStr, AfterValidator(_mark)]
Encoding: TypeAlias = Annotated[StrictStr, AfterValidator(_encoding)]
Multiline: TypeAlias = Annotated[StrictBool | None, AfterValidator(lambda said: said or None)]
"""False says what leaving it out says."""
HasHeader: TypeAlias = Annotated[StrictBool | None, AfterValidator(lambda said: None if said else said)]
"""True says what leaving it out says."""


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

_HOLDERS = ("columns", "channels", "attributes")


def _with_steps(data: Mapping[str, Any], date_format: object) -> Mapping[str, Any]:
    """Return a schema's plain data with what columns take from its form of dates."""
    if not isinstance(date_format, str):
        return data
    found = dict(data)
    for key in _HOLDERS:
        if isinstance(columns := data.get(key), Mapping):
            found[key] = {name: _with_step(column, date_format) for name, column in columns.items()}
    if isinstance(tables := data.get("tables"), Mapping):
        own = {name: table for name, table in tables.items() if isinstance(table, Mapping)}
        found["tables"] = {**tables, **{name: _with_steps(table, date_format) for name, table in own.items()}}
    return found


def _with_step(column: object, date_format: str) -> object:
    if not isinstance(column, Mapping):
        return column
    with suppress(KeyError, TypeError):
        return type_named(column["type"]).facts_as_written(column, date_format)
    return column


_UNSAID = {"multiline": False, "header": True, "skip_rows": 0}
KEYS = (
    *("date_format", "decimal", "thousands", "encoding", "delimiter", "multiline", "skip_rows", "rename"),
    *("quoting", "line_end", "header"),
)


class TextForm(Frozen):
    """The keys of a schema whose data may come as text."""

    date_format: DateFormat | None = Field(
        default=None, description="how text writes dates: DD-MM-YYYY, DD-MM-YYYY hh:mm"
    )
    decimal: Mark | None = Field(default=None, description="decimal mark in text; a point if left out")
    thousands: Mark | None = Field(default=None, description="what stands between groups of three digits")
    encoding: Encoding | None = Field(default=None, description="of CSV files; UTF-8 if left out")
    delimiter: Delimiter | None = Field(default=None, description="between fields; told by the header if left out")
    multiline: Multiline = Field(default=None, description="whether quoted cells of CSV files may hold line ends")
    quoting: Literal["text", "all"] | None = Field(
        default=None, description="which cells of CSV files are quoted; those that need it if left out"
    )
    line_end: Literal["crlf"] | None = Field(default=None, description="of CSV files; a line feed if left out")
    header: HasHeader = Field(default=None, description="false where CSV files begin with a record")

    skip_rows: Positive | None = Field(default=None, description="lines, or rows of a sheet, above the header")
    rename: NewNames = Field(default=None, description="new names of columns: {total: [total, total_2]}")

    @model_validator(mode="before")
    @classmethod
    def _as_dates_are_written(cls, data: Any) -> Any:
        return _with_steps(data, data.get("date_format")) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _two_marks(self) -> TextForm:
        if self.decimal is not None and self.decimal == self.thousands:
            raise ValueError("decimal and thousands are the same; write two different marks")
        return self

    @property
    def text_form(self) -> dict[str, Any]:
        """The keys that say something."""
        return {key: getattr(self, key) for key in KEYS if getattr(self, key) is not None}

    def check_dates(self, columns: Mapping[str, Column]) -> None:
        """Refuse columns whose cells the schema's own form of dates would change.

        Raises:
            ValueError: Naming the column; ``message; remedy``.
        """
        for name, column in columns.items():
            try:
                column.check_written(self.date_format)
            except ValueError as error:
                raise ValueError(f"{printable(name)}: {error}") from None

    def written_as(self, columns: Mapping[str, Column], *, numbered: bool = False) -> Written | None:
        """Return how a table is to be read; None where it is as doublure reads tables anyway."""
        found = Written(columns=columns, numbered=numbered, **self.text_form)
        coded = any(isinstance(column.missing, tuple) for column in columns.values())
        return found if self.text_form or coded or found.rewrites else None


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
        quoting: The cells of CSV files that are quoted: ``text`` or ``all``; those that need it where None.
        line_end: ``crlf``, or None for a line feed.
        header: Whether CSV files begin with the names of their columns; if not, they are the schema's, in its order.
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
    quoting: str | None = None
    line_end: str | None = None
    header: bool = True
    columns: Mapping[str, Column]
    numbered: bool = False

    def column(self, name: str) -> Column | None:
        """Return what is public of a column of the file; None of one that nothing is known of."""
        stem, _, number = name.rpartition("_")
        of_step = self.numbered and number.isascii() and number.isdigit()
        return self.columns.get(name) or (self.columns.get(stem) if of_step else None)

    def formed(self, frame: pd.DataFrame, *, as_text: bool) -> pd.DataFrame:
        """Return rows of the schema's own dtypes as a file or a DataFrame is to have them.

        Args:
            frame: The rows; columns that are not the schema's stay.
            as_text: Whether cells go into a CSV file; if not, into typed columns.
        """
        found = {
            name: column.csv_cells(cells, self.marks) if as_text else column.typed_cells(cells, self.marks)
            for name, cells in frame.items()
            if (column := self.columns.get(str(name))) is not None
        }
        return with_columns(frame, {name: cells.set_axis(frame.index) for name, cells in found.items()})

    def of_table(self, table: str) -> Written:
        """Return how one of several tables is read, whose columns are named ``table.column`` here."""
        head = f"{table}."
        own = {name.removeprefix(head): each for name, each in self.columns.items() if name.startswith(head)}
        new = {name.removeprefix(head): names for name, names in (self.rename or {}).items() if name.startswith(head)}
        return replace(self, columns=own, rename=new)

    @property
    def text_form(self) -> dict[str, Any]:
        """The keys that say something, as a schema has them."""
        found = {key: getattr(self, key) for key in KEYS}
        return {key: value for key, value in found.items() if value not in (None, _UNSAID.get(key))}

    @property
    def marks(self) -> TextMarks:
        """The form of dates and numbers where a column does not say its own."""
        return TextMarks(self.date_format, self.decimal, self.thousands)

    @property
    def rewrites(self) -> bool:
        """Whether cells have to be rewritten before they are read."""
        return any(column.spelling(self.marks) is not None for column in self.columns.values())
