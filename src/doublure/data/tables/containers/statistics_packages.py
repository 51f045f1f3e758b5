"""Tables of Stata, SPSS and SAS, through ReadStat.

The file's form says which columns are texts, numbers, days, moments or spans; each of its cells is read by itself.
Codes are read, not the labels beside them. A code that the file declares missing, such as -9 in SPSS or ``.a`` in
Stata, is the state of its own that the schema says, or a value that it lists; else it is a missing cell as any other.

Text is taken as bytes, and decoded here cell by cell: the library would refuse the file for one cell of another
encoding. A character that the width of its column cuts off is left out. It is in the schema's ``encoding``, else in the
one that the file names, else in UTF-8, or windows-1252 of Stata before version 14.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.containers.record_files import RecordFile, clock_text
from doublure.data.tables.csv_records import UNREAD
from doublure.errors import DataError
from doublure.schema.scalars import Misfit, is_plain_number, label

if TYPE_CHECKING:
    from doublure.schema.columns import Column
    from doublure.schema.written import Written

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]

CELLS_AT_ONCE = 2_000_000
"""Cells that are held as objects at once: some 100 megabytes."""
_READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
LABELLED = (".dta", ".sav", ".zsav")
"""The endings of files whose labels a draft reads."""
_TAG = re.compile(r"\.[A-Za-z_]")
_AS_BYTES = "ISO-8859-1"  # each byte is a character of its own
_DAY = 86_400.0
_LAST = 253_402_300_799.0  # 9999-12-31T23:59:59, in seconds since 1970: what lies beyond counts as that
_1960 = -315_619_200.0
_1582 = -12_219_379_200.0  # 1582-10-14: SPSS counts from the day before the first one of the Gregorian calendar
_SPSS = (".sav", ".zsav", ".por")
_CLOCKS: Mapping[str, re.Pattern[str]] = {
    "span": re.compile(
        r"%-?t[cC][Hh][Hh]:MM(:SS)?.*|D?TIME\d*(\.\d+)?|TIMEAMPM.*|MTIME.*|HHMM.*|MMSS.*|TOD.*|[EB]8601TM.*|IS8601TM.*"
    ),
    "moment": re.compile(r"%-?t[cC].*|DATETIME.*|YMDHMS.*|DATEAMPM.*|DTDATE.*|[EB]8601D[TZ].*|MDYAMPM.*|IS8601DT.*"),
    "day": re.compile(
        r"%-?t?d.*|DATE\d*|[AESJ]DATE\d*|DDMMYY[BCDNPS]?\d*|MMDDYY[BCDNPS]?\d*|YYMMDD[BCDNPS]?\d*|[EB]8601DA.*|"
        r"IS8601DA.*|WORDDAT[EX].*|WEEKDAT[EX].*|JULIAN.*|MONYY.*|YYMM[A-Z]?\d*|MOYR\d*|QYR\d*|WKYR\d*|NLDATE\d*"
    ),
}


class PackageSource(RecordFile):
    """A file whose names and formats have been looked at.

    Args:
        path: The file.
        written: Of its text the encoding, and how columns are renamed.

    Raises:
        DataError: The file is damaged, or is none of its ending.
    """

    def __init__(self, path: Path, written: Written | None = None) -> None:
        self._path, self._ending = path, path.suffix.lower()
        self._second = 0.001 if self._ending == ".dta" else 1.0  # Stata counts thousandths
        self._given = None if written is None else written.encoding
        about = self._read(metadataonly=True, encoding=self._given)[1]
        stored = list(about.column_names)
        super().__init__(path, stored, written)
        self._columns: Mapping[str, Column] = {} if written is None else written.columns
        self.labelled = path if self._ending in LABELLED else None
        self._encoding = self._codec(about.file_encoding)
        self.title = tuple([about.file_label or "", *(about.notes or ())])
        self._form = {
            name: _form(about.original_variable_types.get(own), about.readstat_variable_types.get(own))
            for name, own in zip(self._names, stored, strict=True)
        }
        self._gone = {
            name: [(each["lo"], each["hi"]) for each in about.missing_ranges.get(own, ())]
            for name, own in zip(self._names, stored, strict=True)
        }

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        places, first = self._places(columns), 0
        most = max(1, CELLS_AT_ONCE // len(self._names))
        while True:
            found = self._read(
                row_offset=first,
                row_limit=most,
                output_format="dict",
                disable_datetime_conversion=True,
                encoding=_AS_BYTES if self._encoding else self._given,
            )[0]
            cells = list(found.values())  # names, as bytes, are spelt otherwise
            rows = len(cells[0]) if cells else 0
            if rows:
                yield {name: self._column(cells[place], name) for name, place in zip(columns, places, strict=True)}
            if rows < most:
                return
            first += rows

    def _column(self, cells: Sequence[Any], name: str) -> pd.Series[Any]:
        form, kept = self._form[name], self._named(name)
        if form == "text":
            known = {text: self._text(text) for text in set(cells)}
            gone = {code for code, text in known.items() if text not in kept and self._is_gone(text, name)}
            return pd.Series([None if text in gone else known[text] for text in cells], dtype=object)
        tags = {place: f".{cell}" for place, cell in enumerate(cells) if isinstance(cell, str)}
        numbers: Floats = np.array([np.nan if place in tags else cell for place, cell in enumerate(cells)], np.float64)
        numbers = self._without_gone(numbers, name, kept)
        found = self._formed(numbers, form)
        if not any(_TAG.fullmatch(text) for text in kept):
            return found
        found = found.astype(object)  # whichever cells have a tag
        for place, tag in tags.items():
            found.iat[place] = tag if tag in kept else None
        return found

    def _formed(self, numbers: Floats, form: str) -> pd.Series[Any]:
        if form == "span":
            numbers = numbers * self._second
            return pd.Series([None if np.isnan(number) else clock_text(number) for number in numbers], dtype=object)
        return pd.Series(numbers if form == "number" else self._moments(numbers, form))

    def _named(self, name: str) -> frozenset[str]:
        """Return the texts that a schema names of a column: for missing cells, and in its list of values."""
        column = self._columns.get(name)
        if column is None:
            return frozenset()
        texts = [*column.missing_tokens, *map(label, column.shown_values)]
        return frozenset({*texts, *(label(float(text)) for text in texts if is_plain_number(text))})

    def _is_gone(self, cell: Any, name: str) -> bool:
        """Whether the file declares that a cell is missing."""
        return any(type(cell) is type(lowest) and lowest <= cell <= highest for lowest, highest in self._gone[name])

    def _without_gone(self, numbers: Floats, name: str, kept: Collection[str]) -> Floats:
        """Return numbers without those that the file declares missing and the schema does not name."""
        for lowest, highest in self._gone[name]:
            if isinstance(lowest, float):
                inside = (numbers >= lowest) & (numbers <= highest)
                lost = [number for number in np.unique(numbers[inside]) if label(float(number)) not in kept]
                numbers = np.where(np.isin(numbers, lost), np.nan, numbers)
        return numbers

    def _text(self, text: str | None) -> str | None:
        if text is None or self._encoding is None:
            return text
        try:
            return codecs.getincrementaldecoder(self._encoding)().decode(text.encode(_AS_BYTES))  # which may be cut
        except UnicodeDecodeError:
            return UNREAD

    def _moments(self, numbers: Floats, form: str) -> np.ndarray[Any, np.dtype[Any]]:
        """Return days or moments, NaT for missing ones."""
        if self._ending in _SPSS:
            seconds = numbers + _1582
        else:
            seconds = numbers * (_DAY if form == "day" else self._second) + _1960
        missing = np.isnan(seconds)
        whole = np.floor(np.clip(np.where(missing, 0, seconds), -_LAST, _LAST))
        found: np.ndarray[Any, np.dtype[Any]] = whole.astype(np.int64).astype("datetime64[s]")
        found[missing] = np.datetime64("NaT")
        return found

    def _codec(self, named: str | None) -> str | None:
        """Return the encoding of the file's text as Python names it; None where the library has to decode."""
        with self._path.open("rb") as file:
            old = self._ending == ".dta" and file.read(1) != b"<"
        try:
            return codecs.lookup(self._given or named or ("windows-1252" if old else "utf-8")).name
        except LookupError:
            return None

    def _read(self, **how: Any) -> tuple[Any, Any]:
        import pyreadstat

        reader: Callable[..., tuple[Any, Any]] = getattr(pyreadstat, _READERS[self._ending])
        if self._ending == ".por":
            how.pop("encoding", None)
        if self._ending not in (".por", ".xpt"):
            how["user_missing"] = True
        try:
            return reader(str(self._path), **how)
        except Exception:  # the library's own errors; a message may show a cell
            remedy = "check that the file is whole and not encrypted, or declare its encoding"
            raise DataError(
                f"cannot be read as {self._ending.removeprefix('.')}", field=self._path.name, remedy=remedy
            ) from None


def _form(shown: str | None, kind: str | None) -> str:
    """Return what a column's cells are, by its format: text, number, day, moment or span."""
    if kind == "string":
        return "text"
    name = (shown or "").upper() if not (shown or "").startswith("%") else shown or ""
    return next((form for form, known in _CLOCKS.items() if known.fullmatch(name)), "number")
