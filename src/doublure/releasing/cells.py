"""Columns of released files, read and checked as the data dictionary describes them.

Cells are the same in every form of a file, so that forms can be compared:

==================================  ==========================================================================
integer, real, id                   float64, NaN where one is missing
date, datetime                      float64: days, or seconds, since 1970 on the column's own clock; NaN
category, ordinal, boolean          object: labels as a file has them; None, or NaN, where one is missing
fake, public, constant              the same
id with a pattern                   float64: the number of the row that has this text
==================================  ==========================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.tables.writing import defused
from doublure.schema.columns import SECONDS, Column, type_named
from doublure.schema.columns.patterns import RowNumbering, TextPattern
from doublure.schema.columns.spelling import CellSpelling, TextMarks
from doublure.schema.missing_states import tag_holes
from doublure.schema.scalars import is_plain_number, label

Cells: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

_BOOLEANS = ("false", "true")
_DAY_AND_CLOCK = re.compile(r"(?<=[0-9])T(?=[0-9]{2}:)")
_MISSING = "(missing)"
# A value on a decimal grid is computed as a multiple of the last decimal, with float64's own error; arrays in single
# precision hold it to half a unit of their 24th binary digit.
_SIXTEEN_DIGITS = 1e-15
_ROUNDING = {"d": 1e-9, "f": 2.0**-23}


class InvalidCell(Exception):
    """A cell does not fit its column's type."""


@dataclass(frozen=True, kw_only=True)
class DescribedColumn:
    """A column as the dictionary describes it.

    Attributes:
        name: Its name.
        written: Its name in the files.
        model: Its column type.
        values: The labels that it may hold, as files have them; empty where the dictionary lists none.
        bounds: The lowest and the highest number; None where the dictionary has none.
        precision: Decimals; None where the dictionary has none.
        tokens: Texts of missing cells in a CSV file.
        states: The text of each kind of missing cells, where there are several; a CSV file tells them apart.
        defused: Whether text that a spreadsheet would run has an apostrophe before it.
        nullable: Whether a cell may be missing.
        numbering: Of an id with a pattern, the rows that its texts number.
        spelling: How its texts are rewritten before they are read; None where they stay.
    """

    name: str
    written: str
    model: type[Column]
    values: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None
    precision: int | None = None
    tokens: frozenset[str] = frozenset({""})
    states: tuple[str, ...] = ()
    defused: bool = False
    nullable: bool = False
    numbering: RowNumbering | None = None
    spelling: CellSpelling | None = None

    @classmethod
    def from_entry(
        cls, entry: Mapping[str, Any], own: str, *, safe: bool = False, marks: TextMarks | None = None
    ) -> DescribedColumn:
        """Read an entry of the dictionary.

        Args:
            entry: The column's entry.
            own: Its name in its table.
            safe: Whether text that a spreadsheet would run was defused.
            marks: How text writes dates and numbers where the column does not say it.

        Raises:
            KeyError, TypeError, ValueError: The entry has another form.
        """
        model, missing, bounds = type_named(str(entry["type"])), entry["missing"], entry["bounds"]
        texts = [str(text) for text in missing] if isinstance(missing, list) else []
        values = [str(value) for value in entry["values"] or (_BOOLEANS if model.truth else ())]
        ends = None if bounds is None or model.listed else tuple(map(model.released_number, bounds))
        if ends is not None and len(ends) != 2:
            raise ValueError(own)
        precision, pattern = entry.get("precision"), entry.get("pattern")
        said = model.model_construct(**{key: entry[key] for key in ("date_format", "format") if key in entry})
        return cls(
            name=own,
            written=str(defused(own)) if safe else own,
            model=model,
            values=tuple(str(defused(value)) if safe else value for value in values),
            bounds=None if ends is None else (ends[0], ends[1]),
            precision=None if precision is None else int(precision),
            tokens=frozenset({"", *(each for text in texts for each in (text, str(defused(text)) if safe else text))}),
            states=tuple(texts) if len(texts) > 1 else (),
            defused=safe,
            nullable=bool(missing),
            numbering=None if pattern is None else RowNumbering(TextPattern(str(pattern)), entry["order"] is not None),
            spelling=None if model.listed or model.verbatim else said.spelling(marks or TextMarks()),
        )

    @property
    def labelled(self) -> bool:
        """Whether its cells are labels, and stand for no number."""
        return self.model.listed or self.model.verbatim

    @property
    def _fractional(self) -> bool:
        return self.model.bounded and self.model.clock is None and not self.model.integral

    # -- reading -------------------------------------------------------------------------------------------------------

    def of_texts(self, texts: Sequence[str]) -> Cells:
        """Read cells of a CSV file.

        Raises:
            InvalidCell: One is none of this type.
        """
        column = np.array(texts, dtype=object)
        missing = np.isin(column, list(self.tokens))
        found = self._read(column, missing)
        for state, text in enumerate(self.states[1:], 1):
            found[np.isin(column, [text, str(defused(text)) if self.defused else text])] = tag_holes(state)
        return found

    def of_values(self, column: pd.Series[Any] | Cells) -> Cells:
        """Read cells of a file or an array that has types.

        Raises:
            InvalidCell: One is none of this type.
        """
        series = pd.Series(column)
        if isinstance(series.dtype, pd.DatetimeTZDtype):
            series = series.dt.tz_localize(None)
        if self.values == _BOOLEANS and series.dtype.kind in "iufO":  # a storage type of numbers has truths as 0 and 1
            series = series.astype(object).map(_truth, na_action="ignore")
        missing = series.isna().to_numpy()
        if self.model.clock is not None and series.dtype.kind == "M":
            seconds = series.astype("datetime64[s]").to_numpy().astype(np.float64)
            since = seconds / SECONDS[self.model.clock]
            return np.where(missing | np.isin(since, self._moments), np.nan, since)
        respelt = self.spelling is not None and self.spelling.digits is not None
        if not (self.labelled or respelt) and series.dtype.kind in "iuf":
            single = series.dtype in (np.dtype(np.float32), pd.Float32Dtype())
            numbers = series.to_numpy(dtype=np.float32 if single else np.float64, na_value=np.nan)
            codes = [float(text) for text in self.tokens if is_plain_number(text)]
            return np.where(np.isin(numbers, codes), np.nan, numbers) if codes else numbers
        labels = pd.Series(series.to_numpy(dtype=object)).map(label, na_action="ignore")
        missing = missing | labels.isin(self.tokens).to_numpy()
        return self._read(series.to_numpy(dtype=object), missing)

    @property
    def _moments(self) -> list[float]:
        """The texts of missing cells that are dates or moments themselves, as numbers."""
        found = []
        for text in self.tokens:
            with suppress(TypeError, ValueError, OverflowError, InvalidCell):
                found.append(self._number(text))
        return found

    def _read(self, column: Cells, missing: Cells) -> Cells:
        """Read cells, each distinct one once."""
        codes, different = pd.factorize(np.where(missing, "", column).astype(object))
        wanted = np.zeros(len(different), dtype=bool)
        wanted[codes[~missing]] = True
        if self.labelled:
            known = set(self.values)
            labels = [_labelled(each, known) if used else None for each, used in zip(different, wanted, strict=True)]
            found = np.array([*labels, None], dtype=object)
        else:
            try:
                read = self._numbers(different, wanted)
            except (TypeError, ValueError, OverflowError):
                raise InvalidCell from None
            if not np.isfinite(np.array(read, dtype=np.float64)[wanted]).all():
                raise InvalidCell
            found = np.array([*read, math.nan], dtype=np.float64)
        return found[np.where(missing, -1, codes)]

    def _numbers(self, cells: Cells, wanted: Cells) -> list[float]:
        if self.numbering is None:
            return [self._number(each) if used else math.nan for each, used in zip(cells, wanted, strict=True)]
        texts = [str(each).removeprefix("'") if self.defused else str(each) for each in cells[wanted]]
        found = np.full(len(cells), math.nan)
        found[wanted] = self.numbering.numbers(texts)
        return [*found]

    def _number(self, cell: Any) -> float:
        if self.defused and isinstance(cell, str):
            cell = cell.removeprefix("'")
        if self.spelling is not None and isinstance(cell, str):
            cell = self.spelling(cell)
        elif self.spelling is not None and self.spelling.digits is not None and is_plain_number(label(cell)):
            cell = self.spelling.of_number(label(cell))
        return self.model.released_number(cell)

    # -- checking ------------------------------------------------------------------------------------------------------

    def fault(self, cells: Cells) -> str | None:
        """Return the fault of read cells; None where all are as the dictionary says."""
        missing = pd.isna(cells)
        if missing.any() and not self.nullable:
            return "has a missing cell, and the dictionary says that none is"
        if self.labelled:
            if self.values and not set(cells[~missing]) <= set(self.values):
                return "has a value that the dictionary does not list"
            return None
        numbers, rounding = cells[~missing].astype(np.float64), _ROUNDING[cells.dtype.char]
        if self.bounds is not None and len(numbers):
            slack = rounding * max(1.0, *map(abs, self.bounds))
            if numbers.min() < self.bounds[0] - slack or numbers.max() > self.bounds[1] + slack:
                return "has a value outside the dictionary's bounds"
        decimals = self.precision if self._fractional else 0
        close = rounding * np.maximum(1.0, np.abs(numbers))
        if decimals is not None and (np.abs(np.round(numbers, decimals) - numbers) > close).any():
            return "has a value with more decimals than the dictionary says"
        return None

    def text(self, cell: Any) -> str:
        """Return a read cell as text for a card."""
        if pd.isna(cell):
            return _MISSING
        if self.labelled:
            return str(cell)
        if self.numbering is not None:
            return self.numbering.texts([int(cell)])[0]
        if (text := self.model.axis_text(float(cell))) is not None:
            return _DAY_AND_CLOCK.sub(" ", text)
        if self._fractional:
            return f"{cell:.6g}" if self.precision is None else f"{cell:.{max(0, self.precision)}f}"
        return label(float(cell))


def same(one: Cells, other: Cells) -> bool:
    """Return whether two columns of read cells are equal, cell by cell, at the lower of their precisions.

    Missing cells are equal. Numbers are to 16 digits, which is what a sheet of Excel keeps.
    """
    if len(one) != len(other):
        return False
    if {one.dtype.char, other.dtype.char} == {"d", "f"}:
        one, other = one.astype(np.float32), other.astype(np.float32)
    missing = pd.isna(one)
    if not np.array_equal(missing, pd.isna(other)):
        return False
    one, other = one[~missing], other[~missing]
    if one.dtype != object and other.dtype != object:
        return bool((np.abs(one - other) <= _SIXTEEN_DIGITS * np.abs(one)).all())
    return bool((one == other).all())


def _truth(cell: Any) -> Any:
    """Return the label of a truth that is stored as 0 or 1, and any other cell as it is."""
    return cell if isinstance(cell, str) else {0: _BOOLEANS[0], 1: _BOOLEANS[1]}.get(cell, cell)


def _labelled(value: Any, known: Iterable[str]) -> str:
    """Return the label of a cell: as it is, or the canonical text of a truth value or a number."""
    text = value if isinstance(value, str) else label(value)
    if text in known:
        return text
    if text in ("True", "False"):
        return text.lower()
    return label(float(text)) if is_plain_number(text) else text
