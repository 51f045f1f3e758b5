"""Files of Stata and SPSS, through ReadStat: labels and codes of missing cells are the schema's.

The library writes a table at once, so its rows are held until all are there. A name that the program does not have is
refused before a row is drawn. A number's cell is missing by a declared code, or in Stata by one of ``.a`` to ``.z``.
"""

from __future__ import annotations

import re
import tempfile
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.containers.statistics_packages import PackageSource
from doublure.data.tables.row_writers import RowWriter
from doublure.errors import SettingError
from doublure.schema.scalars import is_plain_number, label

if TYPE_CHECKING:
    from doublure.schema.columns import Column

    Code: TypeAlias = float | str
    Formats: TypeAlias = Mapping[bool, tuple[str, float, float]]

_TRUTHS = {"true": "1", "false": "0"}
"""Truths as numbers: beside kinds of missing cells, a sample has them as texts."""
_HEAD = 512
"""Bytes of a file in which the time of writing stands."""
_INT32 = 2**31 - 101
"""Stata's largest integer; missing ones lie above it."""


class PackageWriter(RowWriter):
    """A table of numbers and texts, whose file and columns have labels."""

    program: ClassVar[str]
    ending: ClassVar[str]
    names: ClassVar[re.Pattern[str]]
    """The names that columns may have."""
    reserved: ClassVar[re.Pattern[str]]
    """Those of them that are words of its language."""
    longest_name: ClassVar[int]
    """In bytes of UTF-8, like both that follow."""
    longest_title: ClassVar[int]
    longest_label: ClassVar[int]
    times: ClassVar[tuple[str, float]]
    """The format that shows times of day, and its unit in seconds."""
    clocks: ClassVar[Formats]
    """Whether cells are days -> the format that shows them, the seconds from its first moment to 1970, and its unit."""
    stamp: ClassVar[tuple[re.Pattern[bytes], bytes]]
    """The time of writing, and one in its place: equal tables are equal files."""

    def __init__(self, file: IO[bytes], columns: Mapping[str, Column], metadata: Mapping[str, str]) -> None:
        super().__init__(file, columns, metadata)
        self._frames: list[pd.DataFrame] = []

    @classmethod
    def title(cls, metadata: Mapping[str, str]) -> str:
        """Return the file's label: its watermark."""
        return _cut(metadata.get("watermark", ""), cls.longest_title)

    @classmethod
    @override
    def check(cls, columns: Mapping[str, Column]) -> None:
        for name in columns:
            known = cls.names.fullmatch(name) is not None and len(name.encode()) <= cls.longest_name
            if not known or cls.reserved.fullmatch(name) is not None:
                remedy = "give the column another by rename, or write another format"
                raise SettingError(f"is no name that {cls.program} has", field=f"columns.{name}", remedy=remedy)

    @classmethod
    @override
    def says(cls, path: Path, about: Mapping[str, str]) -> bool:
        return PackageSource(path).title == (cls.title(about),)

    @override
    def add(self, frame: pd.DataFrame) -> None:
        self._frames.append(frame)

    @override
    def close(self) -> None:
        if not self._frames:
            return
        whole = pd.concat(self._frames, ignore_index=True)
        formats = {name: self._format(name, whole[name]) for name in map(str, whole.columns)}
        frame = pd.DataFrame({name: self._cells(whole[name], self._columns.get(name)) for name in formats})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"data{self.ending}"
            self._write(frame, path, {name: form for name, form in formats.items() if form is not None})
            found = path.read_bytes()
        pattern, constant = self.stamp
        self._file.write(pattern.sub(constant, found[:_HEAD], count=1) + found[_HEAD:])

    @abstractmethod
    def _write(self, frame: pd.DataFrame, path: Path, formats: dict[str, str]) -> None:
        """Write the frame, with labels and codes of missing cells."""

    def _tag(self, text: str) -> str | None:
        """Return a text for missing as the cell of a number that it is; None where there is no such cell."""
        return None

    # -- cells ---------------------------------------------------------------------------------------------------------

    def _format(self, name: str, cells: pd.Series[Any]) -> str | None:
        """Return the format that shows a column's cells, where they are days, moments or times of day."""
        if are_times(cells):
            return self.times[0]
        return self.clocks[self._days(name)][0] if cells.dtype.kind == "M" else None

    def _cells(self, cells: pd.Series[Any], column: Column | None) -> pd.Series[Any]:
        if cells.dtype.kind == "M":
            _, first, each = self.clocks[column is not None and column.clock == "D"]
            return pd.Series((_seconds(cells) + first) / each)
        if are_times(cells):
            return pd.Series(cells.astype("int32[pyarrow]").to_numpy(np.float64, na_value=np.nan) / self.times[1])
        gone = "" if column is None or column.missing_states != 1 else column.missing_texts[0]
        if _are_numbers(cells, column):
            return _as_integers(self._numbers(cells, gone), column)
        plain = cells.astype(object)
        return pd.Series([label(each) for each in plain.where(plain.notna(), gone)], dtype=object)

    def _numbers(self, cells: pd.Series[Any], gone: str) -> pd.Series[Any]:
        """Return numbers, with the code of each missing one that has one: each distinct cell once."""
        codes, uniques = pd.factorize(cells.astype(object))
        found = [self._code(each) for each in (*uniques, gone)]
        held = np.array([np.nan if code is None else code for code in found], dtype=object)
        if not any(isinstance(code, str) for code in held):
            return pd.Series(held.astype(np.float64)[codes])
        return pd.Series(held[codes], dtype=object)

    def _code(self, cell: object) -> Code | None:
        """Return a number, a text for missing as the number or the tag that it is, and None for any other."""
        text = _TRUTHS.get(label(cell), label(cell))
        return float(text) if is_plain_number(text) else self._tag(text)

    # -- labels --------------------------------------------------------------------------------------------------------

    def _described(self, frame: pd.DataFrame) -> dict[str, str]:
        """Return each column's label."""
        said = {name: column.description for name, column in self._columns.items() if name in frame}
        return {name: _cut(text, self.longest_label) for name, text in said.items() if text is not None}

    def _labelled(self, frame: pd.DataFrame) -> dict[str, dict[Code, str]]:
        """Return the meaning of each code of columns of numbers."""
        found: dict[str, dict[Code, str]] = {}
        said: Mapping[Any, str]
        for name, column in self._columns.items():
            if name not in frame or _are_texts(frame[name]):
                continue
            truths = dict(zip(column.shown_values, ("false", "true"), strict=True)) if column.truth else {}
            said = column.value_labels or truths
            codes = {self._code(code): text for code, text in said.items()}
            known = {code: text for code, text in codes.items() if code is not None and self._has_label(code)}
            whole = frame[name].dtype == "Int32"
            found[name] = {int(code) if whole else code: text for code, text in known.items()}
        return {name: codes for name, codes in found.items() if codes}

    def _has_label(self, code: Code) -> bool:
        """Whether a code can have a label."""
        return True


class StataWriter(PackageWriter):
    """A file of Stata 15 and later."""

    program, ending = "Stata", ".dta"
    names = re.compile(r"[^\W\d]\w*")
    reserved = re.compile(
        r"_all|_b|byte|_coef|_cons|double|float|if|in|int|long|_n|_N|_pi|_pred|_rc|_se|_skip|strL|str\d+|using|with"
    )
    longest_name, longest_title, longest_label = 32, 80, 80
    times = ("%tcHH:MM:SS", 0.001)
    clocks: ClassVar[Formats] = {True: ("%td", 315_619_200.0, 86_400.0), False: ("%tc", 315_619_200.0, 0.001)}
    stamp = (re.compile(rb"(?<=<timestamp>\x11)[ -~]{17}"), b"01 Jan 2000 00:00")

    @override
    def _write(self, frame: pd.DataFrame, path: Path, formats: dict[str, str]) -> None:
        import pyreadstat

        tags = {name: sorted({cell for cell in frame[name] if isinstance(cell, str)}) for name in frame}
        pyreadstat.write_dta(
            frame,
            str(path),
            file_label=self.title(self._metadata),
            column_labels=self._described(frame),
            variable_value_labels=self._labelled(frame),
            missing_user_values={name: own for name, own in tags.items() if own and not _are_texts(frame[name])},
            variable_format=formats,
        )

    @override
    def _tag(self, text: str) -> str | None:
        return text[1] if re.fullmatch(r"\.[a-z]", text) else None

    @override
    def _has_label(self, code: Code) -> bool:
        return isinstance(code, str) or code.is_integer()


class SpssWriter(PackageWriter):
    """A file of SPSS."""

    program, ending = "SPSS", ".sav"
    names = re.compile(r"[^\W\d](?:[\w.@#$]*[\w@#$])?")
    reserved = re.compile(r"ALL|AND|BY|EQ|GE|GT|LE|LT|NE|NOT|OR|TO|WITH", re.IGNORECASE)
    longest_name, longest_title, longest_label = 64, 64, 255
    times = ("TIME8", 1.0)
    clocks: ClassVar[Formats] = {True: ("SDATE10", 12_219_379_200.0, 1.0), False: ("DATETIME20", 12_219_379_200.0, 1.0)}
    stamp = (re.compile(rb"(?<=\0{6}Y@).{17}", re.DOTALL), b"01 Jan 0000:00:00")
    most_codes = 3
    longest_code = 8
    """Of texts that are declared missing."""

    @override
    def _write(self, frame: pd.DataFrame, path: Path, formats: dict[str, str]) -> None:
        import pyreadstat

        known = {name: column for name, column in self._columns.items() if name in frame}
        pyreadstat.write_sav(
            frame,
            str(path),
            file_label=self.title(self._metadata),
            column_labels=self._described(frame),
            variable_value_labels=self._labelled(frame),
            missing_ranges={name: own for name in known if (own := self._missing(known[name], frame[name]))},
            variable_measure={name: _measure(column) for name, column in known.items()},
            variable_format={**{name: _digits(known[name]) for name in known if known[name].plain}, **formats},
        )

    def _missing(self, column: Column, cells: pd.Series[Any]) -> list[Any]:
        """Return the codes of missing cells: three at most, else a range in which no value lies."""
        texts = [text for text in column.missing_tokens if text]
        if _are_texts(cells):
            return texts[: self.most_codes] if all(len(text.encode()) <= self.longest_code for text in texts) else []
        codes = [code for text in texts if isinstance(code := self._code(text), float)]
        if len(codes) <= self.most_codes:
            return codes
        lowest, highest, ends = min(codes), max(codes), column.stored_ends
        apart = ends is not None and (highest < ends[0] or ends[1] < lowest)
        return [{"lo": lowest, "hi": highest}] if apart else codes[: self.most_codes]


def are_times(cells: pd.Series[Any]) -> bool:
    """Whether cells are times of day, as a sample has them."""
    return isinstance(cells.dtype, pd.ArrowDtype) and cells.dtype.kind == "O" and "time32[s]" in str(cells.dtype)


def _are_texts(cells: pd.Series[Any]) -> bool:
    """Whether the cells of a column are all text."""
    return cells.dtype == object and all(isinstance(cell, str) for cell in cells)


def _are_numbers(cells: pd.Series[Any], column: Column | None) -> bool:
    """Whether cells are numbers, but for missing ones."""
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return True
    return column is not None and column.stored_ends is not None and (column.plain or column.listed) and _typed(cells)


def _typed(cells: pd.Series[Any]) -> bool:
    return not isinstance(cells.dtype, pd.StringDtype)


def _as_integers(cells: pd.Series[Any], column: Column | None) -> pd.Series[Any]:
    """Return whole numbers as such, where the schema says that they are whole and small."""
    ends = None if column is None else column.stored_ends
    whole = column is not None and (column.integral or column.truth or column.listed)
    if cells.dtype != np.float64 or not whole or not (ends is None or max(map(abs, ends)) <= _INT32):
        return cells
    there = cells[cells.notna()]
    return cells.astype("Int32") if (there % 1 == 0).all() and there.abs().le(_INT32).all() else cells


def _seconds(cells: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return moments as seconds since 1970, NaN for a missing one."""
    plain = cells.dt.tz_localize(None) if isinstance(cells.dtype, pd.DatetimeTZDtype) else cells
    found = plain.astype("datetime64[s]").to_numpy().astype(np.float64)
    found[plain.isna().to_numpy()] = np.nan
    return found


def _measure(column: Column) -> str:
    return "ordinal" if column.listed and column.ordered else "nominal" if column.listed else "scale"


def _digits(column: Column) -> str:
    """Return the format of numbers: as wide as the largest."""
    decimals = 0 if column.integral else 2 if column.decimals is None else max(0, column.decimals)
    ends = column.stored_ends or (0.0, 0.0)
    width = max(len(f"{end:.{decimals}f}") for end in ends)
    return f"F{min(40, max(8, width))}.{min(16, decimals)}"


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text that fits into some bytes of UTF-8."""
    return text.encode()[:most].decode(errors="ignore")
