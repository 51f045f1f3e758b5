"""From any container of a column to its distinct cells, each of which is then read once and by itself.

Text, nullable, Arrow, sparse, categorical and object columns come here; cells are only ever joined with others of their
own type that read alike: in Python True, 1 and 1.0 are equal, and so are two zones' spellings of one moment.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

Cell = TypeVar("Cell")


class NulByte(ValueError):
    """A text that no CSV file or terminal shows whole."""


UNREADABLE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, NotImplementedError)
"""Errors raised by reading a cell that fits no rule."""
_NOTHING = frozenset({type(None), type(pd.NA), type(pd.NaT)})
_ALIKE = frozenset({str, bool, int, float, datetime.date})
"""The types of which equal cells read alike: of one of these, and of no two together."""


def distinct(raw: pd.Series[Any]) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[object]]:
    """Return each cell's place in the list of distinct cells, -1 for missing, and that list.

    Objects are compared within a type of :data:`_ALIKE`; others are not compared at all, and each stands for itself.
    A category that no cell has is no cell.
    """
    if isinstance(raw.dtype, pd.CategoricalDtype):
        return _of_categories(raw.cat.codes.to_numpy().astype(np.int64), raw.cat.categories)
    cells = raw.to_numpy() if raw.dtype == object else np.empty(0, dtype=object)
    if len(some := set(map(type, cells)) - _NOTHING) < 2 and some <= _ALIKE:  # most columns
        places, index = pd.factorize(raw, use_na_sentinel=True)
        return places.astype(np.int64, copy=False), _listed(index)
    codes, uniques = np.full(len(cells), -1, dtype=np.int64), list[object]()
    kinds, types = pd.factorize(np.fromiter(map(type, cells), dtype=object, count=len(cells)))
    for number, kind in enumerate(types):
        if kind in _NOTHING:
            continue
        rows = np.flatnonzero(kinds == number)
        if kind in _ALIKE:
            places, found = pd.factorize(cells[rows], use_na_sentinel=True)
            rows, places = rows[places >= 0], places[places >= 0]
        else:
            rows = rows[[not _is_missing(cell) for cell in cells[rows]]]
            places, found = np.arange(len(rows)), cells[rows]
        codes[rows] = places + len(uniques)
        uniques += list(found)
    return codes, uniques


def _of_categories(
    codes: np.ndarray[Any, np.dtype[np.int64]], categories: pd.Index[Any]
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[object]]:
    """Return the places of cells among the categories that some cell has, -1 for missing, and these categories."""
    used = np.bincount(codes + 1, minlength=len(categories) + 1)[1:] > 0
    if used.all():
        return codes, _listed(categories)
    places = np.append(np.cumsum(used) - 1, -1)  # of a missing cell, whose code is -1, the last
    return places[codes], _listed(categories[used])


def _listed(index: pd.Index[Any]) -> list[object]:
    """Return distinct cells; for a moment that no zone's calendar reaches, something that is no cell."""
    try:
        return list(index)
    except UNREADABLE:  # one such moment keeps pandas from listing any
        found: list[object] = []
        for place in range(len(index)):
            try:
                found.append(index[place])
            except UNREADABLE:
                found.append(())
        return found


def _is_missing(cell: object) -> bool:
    """Whether an object means missing: any kind of NaN or NaT; one that cannot be asked does not."""
    try:
        return cell.is_nan() if isinstance(cell, Decimal) else pd.isna(cell) is True  # type: ignore[call-overload]
    except Exception:  # a foreign object raises anything
        return False


def is_listed(raw: pd.Series[Any]) -> bool:
    """Whether cells have to be read one by one: text, objects, or categories of either."""
    return isinstance(raw.dtype, (pd.StringDtype, pd.CategoricalDtype)) or raw.dtype == object


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def each(uniques: Iterable[object], read: Callable[[object], Cell], otherwise: Cell, misfit: Misfit) -> list[Cell]:
    """Read distinct cells, each by itself; with ``coerce``, one that cannot be read becomes ``otherwise``.

    Raises:
        TypeError: As one of :data:`UNREADABLE`: one cannot be read.
    """
    found = []
    for cell in uniques:
        try:
            found.append(read(cell))
        except Exception as error:  # a foreign object raises anything, with what it likes in its message
            if misfit == "coerce":
                found.append(otherwise)
            elif isinstance(error, UNREADABLE):
                raise
            else:
                raise TypeError from None
    return found
