"""Names of the cells of a table of counts: values, ranges of a number, missing.

A range ``30..39`` holds both ends, as ``doublure sample --given`` reads them. Cells that join several values name them
all: neighbouring numbers by one range, others with ``|`` between them, or ``||`` where a value holds the former. Where
there are several kinds of missing cells, ``(missing)`` is an empty one, and ``(missing: DK)`` one of this text. A value
that is written so stays a value: such a kind of missing has more brackets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure.encode.columns import RowEncoding
from doublure.encode.differences import Gap
from doublure.encode.points import PointEncoding
from doublure.schema.columns import Column
from doublure.schema.missing_states import hole_states

MISSING = "(missing)"


def axis_name(column: str, encoding: RowEncoding) -> str:
    """Return what an axis counts: a column, or how far it lies above or below another that it never passes."""
    if isinstance(encoding, PointEncoding):
        return " and ".join(encoding.columns)
    if not isinstance(encoding, Gap):
        return column
    return f"{column} {'below' if encoding.down else 'above'} {encoding.first}"


def interval_names(
    encoding: RowEncoding, starts: npt.NDArray[np.float64], cells: npt.NDArray[np.int64], size: int
) -> tuple[str, ...]:
    """Return a name for each cell of an axis of whole numbers.

    Args:
        encoding: Of the column that is counted: a list of values, or steps.
        starts: ``(n,)`` where intervals begin, ascending; those after a column's last value are kinds of missing.
        cells: ``(n,)`` the cell of each interval.
        size: How many cells.
    """
    if isinstance(encoding, PointEncoding):
        return _squares(encoding, starts, cells, size)
    own = encoding.steps if isinstance(encoding, Gap) else encoding
    first, last, unit = own.domain.first, own.domain.last, own.domain.unit
    begins = np.flatnonzero(np.append(True, np.diff(cells) != 0) | (starts > last))
    lows = np.maximum(starts[begins], first)
    highs = np.minimum(np.append(starts[begins[1:]] - 1, last), last)
    ends, between = list(zip((lows * unit).tolist(), (highs * unit).tolist(), strict=True)), _between(own.column)
    if labels := _labels(own.column):
        texts = [between.join(labels[int(low) : int(high) + 1]) for low, high in ends]
    else:
        texts = own.column.interval_texts(ends)
    kinds = _kinds(own.column)[: own.domain.nullable]
    beyond = (np.append(starts, last + 1 + len(kinds)) - last - 1).astype(np.int64)
    parts: list[list[str]] = [[] for _ in range(size)]
    for begin, text in zip(begins.tolist(), texts, strict=True):
        parts[int(cells[begin])] += [text] if beyond[begin] < 0 else kinds[beyond[begin] : beyond[begin + 1]]
    return tuple(between.join(names) for names in parts)


def _squares(
    point: PointEncoding, starts: npt.NDArray[np.float64], cells: npt.NDArray[np.int64], size: int
) -> tuple[str, ...]:
    """Return a name for each cell of an axis of places on a map."""
    last = point.domain.last
    ends = np.minimum(np.append(starts[1:] - 1, last), last)
    names = iter(point.key_names(starts[starts <= last].astype(np.int64), ends[starts <= last].astype(np.int64)))
    parts: list[list[str]] = [[] for _ in range(size)]
    for cell, low in zip(cells.tolist(), starts.tolist(), strict=True):
        parts[cell].append(MISSING if low > last else next(names))
    return tuple(" | ".join(names) for names in parts)


_DIGITS = 1e-14
"""Relative error of a number that was written with 15 digits, as names of cells are."""


class CellParts(NamedTuple):
    """Parts that a cell joins: values or ranges, and kinds of missing."""

    values: list[str]
    missing: list[str]


def cell_parts(column: Column, names: Sequence[str]) -> list[CellParts]:
    """Return what each cell joins."""
    kinds, between = _kinds(column), _between(column)
    found = [name.split(between) for name in names]
    return [
        CellParts([each for each in parts if each not in kinds], [each for each in parts if each in kinds])
        for parts in found
    ]


def _between(column: Column) -> str:
    """Return what joins the parts of a cell: ``|``, and of a column with a value that holds it more of them."""
    bars = "|"
    while any(f" {bars} " in f" {text} " for text in (*_labels(column), *_kinds(column))):
        bars += "|"
    return f" {bars} "


def _labels(column: Column) -> list[str]:
    return [column.text_of(code) for code in range(len(column.domain))] if column.listed else []


def _kinds(column: Column) -> list[str]:
    """Return the name of each kind of missing cell, the empty one first; none is a value's."""
    names, values = [MISSING, *(f"(missing: {text})" for text in column.missing_texts[1:])], {*_labels(column)}
    while values.intersection(names):
        names = [f"({name})" if name in values else name for name in names]
    return names


def _missing_places(column: Column, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return ``(kinds,)`` the number of the cell of each kind of missing; -1: none.

    Where all kinds count alike they share a cell. Earlier versions gave each kind a cell of one name, in order.
    """
    parts = [(part, number) for number, own in enumerate(cell_parts(column, names)) for part in own.missing]
    cells, known, kinds = [number for _, number in parts] or [-1], dict(parts), _kinds(column)
    if len(known) == len(parts) > 1:
        return np.array([known.get(kind, -1) for kind in kinds])
    return np.array([cells[min(kind, len(cells) - 1)] for kind in range(len(kinds))])


def range_ends(column: Column, name: str) -> list[tuple[float, float]]:
    """Return the lowest and the highest number of each range that a cell joins."""
    ends = [(part.split("..")[0], part.split("..")[-1]) for part in cell_parts(column, [name])[0].values]
    return [(column.number_of(low), column.number_of(high)) for low, high in ends]


def cell_places(column: Column, names: Sequence[str], cells: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """Return ``(N,)`` the number of the cell in which each row lies; -1: in none.

    Args:
        column: The column that is counted.
        names: Of its cells, as :mod:`doublure.encode.cell_names` writes them; they cover its domain.
        cells: The rows' values.
    """
    place, kept = np.full(len(cells), -1), column.kept_numbers(cells)
    missing = np.isnan(kept)
    place[missing] = _missing_places(column, names)[hole_states(kept[missing])]
    numbers = kept[~missing]
    if column.listed:
        known = {part: number for number, own in enumerate(cell_parts(column, names)) for part in own.values}
        texts = np.array([known.get(text, -1) for text in _labels(column)])
        place[~missing] = texts[numbers.astype(np.int64)]
        return place
    begins = sorted((low, number) for number, name in enumerate(names) for low, _ in range_ends(column, name))
    if begins:
        lows, owners = np.array([low for low, _ in begins]), np.array([number for _, number in begins])
        at = np.searchsorted(lows, numbers + _DIGITS * np.abs(numbers), side="right") - 1
        place[~missing] = np.where(at < 0, -1, owners[at])
    return place
