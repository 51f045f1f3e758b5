"""Counts of a received bundle's rows, with the margins that its card gives.

Everything here is in the bundle: no run, no ledger and no private record is needed.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from doublure.errors import GateFailed, SettingError, counted, printable
from doublure.releasing.cells import Cells, DescribedColumn, InvalidCell
from doublure.releasing.checking import DICTIONARY
from doublure.releasing.reading import FORMS, TYPED, Batch, ContentMismatch, DescribedTable, batches, described_tables
from doublure.support import files
from doublure.support.guessing import nearest_name

_BINS = 20
_EPSILON = 1e-9
"""A part of a bin's width that float64 may lose."""
_MISSING = "(missing)"
_CARD = "card.json"


@dataclass(frozen=True, kw_only=True)
class ValueCount:
    """Rows with one value of a column, or within one bin.

    Attributes:
        label: The value, or the bin's ends.
        rows: Their number.
        share: Their share of the rows that were counted.
    """

    label: str
    rows: int
    share: float


@dataclass(frozen=True, kw_only=True)
class RowCount:
    """The number of a table's rows that meet conditions.

    Attributes:
        rows: Their number.
        of: The number of all rows.
        margin: What noise of the release leaves open, in rows of the bundle, with a confidence of 95 %; None where the
            card gives no margin of such a count.
        at_least: The margin of the least precise column on its own, where ``margin`` is None; None if there is none.
    """

    rows: int
    of: int
    margin: float | None
    at_least: float | None

    @property
    def sentence(self) -> str:
        """The count and its margin in a sentence."""
        share = f" ({100 * self.rows / self.of:.1f} %)" if self.of else ""
        said = f"{self.rows:,} of {counted(self.of, 'synthetic row')}{share}"
        if self.margin is not None:
            return f"{said}, ± {math.ceil(self.margin):,} by the noise; the generator's own error comes on top."
        if self.at_least is not None:
            return f"{said}; off by more than ± {math.ceil(self.at_least):,}, as several columns are less precise."
        return f"{said}; no margin of such a count follows from the card."


class ReceivedTable:
    """A table of a received bundle, which is read anew for each question, a batch at a time.

    Args:
        path: Its file.
        described: Its entry in the data dictionary.
        margins: The card's margins of counts; empty where it has none.

    Example:
        >>> table = ReceivedTable.of_bundle("bundle")[0]
        >>> table.count({"sex": "Female"}).of
        100
    """

    def __init__(self, path: Path, described: DescribedTable, margins: Mapping[str, Any]) -> None:
        self._path, self._described, self._margins = path, described, margins

    @classmethod
    def of_bundle(cls, bundle: str | Path) -> list[ReceivedTable]:
        """Return the tables of a bundle; none of images or of a generator.

        Raises:
            GateFailed: Card and dictionary do not describe its files.
        """
        folder = Path(bundle)
        if not (folder / DICTIONARY).is_file():
            return []
        card, words = files.read_json(folder / _CARD, "card"), files.read_json(folder / DICTIONARY, "dictionary")
        try:
            listed = {str(entry["path"]) for entry in card["files"]}
            tables = [] if words["kind"] == "images" else described_tables(words)
            margins = dict(card.get("margins") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _mismatch("does not describe this bundle", DICTIONARY) from None
        found = []
        for table in tables:
            names = [f"{table.name}{form}" for form in (*TYPED, *FORMS) if f"{table.name}{form}" in listed]
            # a name of the dictionary may lead elsewhere; one that the card lists too is a file of the bundle
            if names and "/" not in table.name and "\\" not in table.name and (folder / names[0]).is_file():
                found.append(cls(folder / names[0], table, margins))
        return found

    @property
    def name(self) -> str:
        """Its name; ``data`` where the bundle has one table."""
        return self._described.name

    @property
    def columns(self) -> Mapping[str, DescribedColumn]:
        """Its columns by name."""
        return {column.name: column for column in self._described.columns}

    def count(self, where: Mapping[str, object] | None = None) -> RowCount:
        """Count rows.

        Args:
            where: Column -> what a cell has to be, as ``given=`` of ``sample``: a value, a list of values, a pair of
                ends of which one may be None, or None for a missing cell.

        Raises:
            SettingError: There is no such column, or the condition does not fit it.
            GateFailed: The file is not as the dictionary describes it.
        """
        asked = self._conditions(where)
        rows = of = 0
        for batch in self._batches():
            fits = _fitting(batch, asked)
            rows, of = rows + int(fits.sum()), of + len(fits)
        return RowCount(rows=rows, of=of, **self._margin(where or {}, of))

    def distribution(self, column: str, where: Mapping[str, object] | None = None) -> list[ValueCount]:
        """Count rows by the values of a column: each of a list, the most frequent first; of a number, equal bins.

        Args:
            column: The column.
            where: Conditions, as in :meth:`count`.

        Raises:
            SettingError: There is no such column, or a condition does not fit.
            GateFailed: The file is not as the dictionary describes it.
        """
        asked, told = self._conditions(where), self._column(column)
        edges = None if told.labelled or told.numbering is not None else self._edges(told)
        counts: Counter[str | None] = Counter()  # None: missing, whatever a value is called
        for batch in self._batches():
            cells = batch[column][_fitting(batch, asked)]
            if edges is None:
                counts.update(None if pd.isna(cell) else told.text(cell) for cell in cells)
                continue
            known = cells[~pd.isna(cells)].astype(np.float64)
            counts[None] += len(cells) - len(known)
            places = np.clip(np.searchsorted(edges, known, side="right") - 1, 0, len(edges) - 2)
            for place, number in zip(*np.unique(places, return_counts=True), strict=True):
                counts[_bin(told, edges[place], edges[place + 1])] += int(number)
        every = counts.total()
        if edges is None:
            chosen = [(_MISSING if label is None else label, number) for label, number in counts.most_common(_BINS)]
            rest = every - sum(number for _, number in chosen)
            chosen += [(counted(len(counts) - len(chosen), "other"), rest)] if rest else []
        else:
            labels = [_bin(told, low, high) for low, high in itertools.pairwise(edges)]
            chosen = [(label, counts[label]) for label in labels]
            chosen += [(_MISSING, counts[None])] if counts[None] else []
        return [ValueCount(label=label, rows=rows, share=rows / every if every else 0.0) for label, rows in chosen]

    def rows(self, where: Mapping[str, object] | None = None, most: int = 50) -> list[dict[str, str]]:
        """Return the first rows that meet conditions, as text.

        Args:
            where: Conditions, as in :meth:`count`.
            most: Their number.
        """
        asked, found = self._conditions(where), list[dict[str, str]]()
        for batch in self._batches():
            for place in np.flatnonzero(_fitting(batch, asked)):
                if len(found) == most:
                    return found
                found.append(
                    {
                        name: self.columns[name].text(cells[place])
                        for name, cells in batch.items()
                        if name in self.columns
                    }
                )
        return found

    def _batches(self) -> Iterator[Batch]:
        try:
            yield from batches(self._path, self._described)
        except ContentMismatch as error:
            raise _mismatch(error.what, error.field) from None

    def _column(self, name: str) -> DescribedColumn:
        found = self.columns.get(name)
        if found is None:
            near = nearest_name(name, list(self.columns))
            remedy = f"did you mean {printable(near)}?" if near else "name a column of the data dictionary"
            raise SettingError("is no column of this table", field=printable(name), remedy=remedy)
        return found

    def _conditions(self, where: Mapping[str, object] | None) -> list[tuple[str, DescribedColumn, Any]]:
        return [(name, (told := self._column(name)), _read(told, value)) for name, value in (where or {}).items()]

    def _edges(self, told: DescribedColumn) -> Cells:
        """Return the edges of a number's bins: of its bounds, or of what the file holds where it has none."""
        ends = told.bounds
        if ends is None:
            known = [cells[~pd.isna(cells)] for batch in self._batches() if len(cells := batch[told.name])]
            numbers = np.concatenate(known).astype(np.float64) if known else np.zeros(1)
            ends = (float(numbers.min(initial=0.0)), float(numbers.max(initial=1.0)))
        low, high = ends[0], max(ends[1], math.nextafter(ends[0], math.inf))
        if not told.model.plain:
            if told.model.integral:
                step = math.ceil((high - low + 1) / _BINS)
                return low + step * np.arange(math.ceil((high - low + 1) / step) + 1)
            return np.linspace(low, high, _BINS + 1)
        last = math.floor(high) + 1 if told.model.integral else high
        width = max(_round_step((last - low) / (_BINS - 1)), 1.0 if told.model.integral else 0.0)
        first, end = math.floor(low / width), math.ceil(last / width)
        return np.array([_multiple(place, width) for place in range(first, max(end, first + 1) + 1)])

    def _margin(self, where: Mapping[str, object], rows: int) -> dict[str, float | None]:
        """Return the margin of a count, in rows of the bundle: of one column's values, whose noise adds up."""
        known, units = self._margins.get("columns") or {}, self._margins.get("units")
        own = [float(known[name]) for name in where if name in known]
        if not units or not rows or len(own) < len(where) or not own:
            return {"margin": None, "at_least": None}
        scale = rows / float(units)
        (value, *rest) = where.values()
        if rest or isinstance(value, tuple):
            return {"margin": None, "at_least": max(own) * scale}
        values = len(value) if isinstance(value, list) else 1
        return {"margin": own[0] * scale * math.sqrt(values), "at_least": None}


def _round_step(least: float) -> float:
    """Return the least of 1, 2 and 5 times a power of ten that is no less than a width."""
    power = math.floor(math.log10(least)) if least > 0 else 0
    return next(step for step in (each * 10.0**power for each in (1, 2, 5, 10)) if step >= least * (1 - _EPSILON))


def _multiple(times: int, step: float) -> float:
    """Return a multiple of a round step, with no digit of float64's error."""
    return float(f"{times * step:.12g}")


def _bin(told: DescribedColumn, low: float, high: float) -> str:
    """Return a bin in words; one of whole numbers by its first and its last."""
    if told.model.plain and not told.model.integral:
        return f"{low:,.12g} to {high:,.12g}"
    if not told.model.integral:
        return f"{told.text(low)} to {told.text(high)}"
    return told.text(low) if high - low == 1 else f"{told.text(low)} to {told.text(high - 1)}"


def _read(told: DescribedColumn, value: object) -> Any:
    """Return a condition in read cells.

    Raises:
        SettingError: It does not fit the column.
    """
    if value is None:
        return None
    try:
        if isinstance(value, tuple):
            low, high = value
            if told.labelled or (low is None and high is None):
                raise ValueError
            return (
                -math.inf if low is None else float(told.of_texts([str(low)])[0]),
                math.inf if high is None else float(told.of_texts([str(high)])[0]),
            )
        return list(told.of_texts([str(each) for each in (value if isinstance(value, list) else [value])]))
    except (TypeError, ValueError, InvalidCell):
        raise SettingError(
            "cannot be asked for that", field=printable(told.name), remedy="give a value of its type"
        ) from None


def _fitting(batch: Batch, asked: Sequence[tuple[str, DescribedColumn, Any]]) -> Cells:
    fits = np.ones(len(next(iter(batch.values()))), dtype=bool)
    for name, told, value in asked:
        cells = batch[name]
        if value is None:
            fits &= pd.isna(cells)
        elif isinstance(value, tuple):
            with np.errstate(invalid="ignore"):
                fits &= (cells >= value[0]) & (cells <= value[1])
        else:
            fits &= np.isin(cells, value) if told.labelled else np.isin(cells.astype(np.float64), value)
    return fits


def _mismatch(what: str, field: str) -> GateFailed:
    return GateFailed(what, field=field, remedy="verify the bundle, and ask the publisher for it again")


__all__ = ["ReceivedTable", "RowCount", "ValueCount"]
