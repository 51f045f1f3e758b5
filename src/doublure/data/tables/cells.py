"""From raw cells to canonical ones, column by column, by public rules.

=============  ==========================  ==============================================  ===================
column         canonical                   a misfit: refused, or with ``misfit: coerce``   counts as
=============  ==========================  ==============================================  ===================
integer, real  float64, NaN for missing    infinite                                        the bound beside it
               ..                          2.5 in an integer                               rounded, half to even
               ..                          text that is no number                          missing
date(time)     datetime64[s], NaT          text that is no ISO 8601 date                   missing
discrete       categorical of labels       outside the list, or no text                    ``other``; missing
id             left out                    a unit's id that is missing                     the record is left out
every column   ..                          missing where the schema says ``missing:        the lower bound;
               ..                          false``                                         ``other``
=============  ==========================  ==============================================  ===================

Without an ``other``, a discrete misfit is missing; where nothing may be missing, it is the first value. Coerced numbers
end at declared bounds; where bounds are still to be learned, the encoder does all this once they are. A declared list
becomes the categories, in its order; where values are still to be learned, all labels are, sorted.

**A cell is read by itself**, whatever the container: :mod:`doublure.data.tables.distinct_cells` says which cells are
one. How a whole column is stored is the container's public form: a column of float64 has lost the digits of whole
numbers above 2^53 before it comes here. Messages name the column, never the cell.
"""

from __future__ import annotations

import datetime
import math
import re
import warnings
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from doublure.data.tables.distinct_cells import UNREADABLE, distinct, each, is_listed, unwrapped
from doublure.errors import DataError, DataWarning, printable
from doublure.schema.columns import Column, label, truth_of
from doublure.schema.scalars import Misfit

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Moments: TypeAlias = "np.ndarray[Any, np.dtype[np.datetime64]]"

Rows = TypeVar("Rows", pd.DataFrame, "pd.Series[Any]")

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|[+-]?inf(?:inity)?", re.IGNORECASE | re.ASCII)
NOT_A_NUMBER = {"NaN", "nan", "NA", "<NA>"}
NOT_A_TIME = {"NaT", *NOT_A_NUMBER}
ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?)?\s*(?:(Z|z)|([+-])(\d{2}):?(\d{2})?)?", re.ASCII
)
_MIDNIGHT = ("24:00", "24:00:00")
"""How ISO 8601, and meters that stamp an hour by its end, may write the end of a day."""
_NO_CELLS = (bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, np.ndarray)

_NO_TIME = np.datetime64("NaT", "s")
_FARTHEST = 1e300  # stands for the infinite until bounds are known; the difference of two is still finite
_CALENDAR = (np.datetime64("0001-01-01T12:00:00", "s"), np.datetime64("9999-12-31T09:59:59", "s"))
"""The first and the last moment, in UTC, that every zone's calendar reaches."""


class _NulByte(ValueError):
    """A text that no CSV file or terminal shows whole."""


def canonical(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit = "refuse") -> pd.Series[Any]:
    """Return one column in canonical form; see the module's table.

    Raises:
        DataError: Naming the column and the rule, never the cell; with ``misfit="coerce"`` never.
    """
    try:
        values = _read(unwrapped(raw), column, name, misfit)
    except _NulByte:
        raise DataError("has cells with NUL bytes", field=name, remedy="export the data again as UTF-8 text") from None
    except UNREADABLE:  # the message of the original would show a cell
        raise _no_such_type(column, name) from None
    return admitted(values, column, name, misfit)


def admitted(values: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> pd.Series[Any]:
    """Return canonical cells.

    Raises:
        DataError: One is missing where none may be.
    """
    if misfit == "refuse" and column.missing is False and values.isna().any():
        raise DataError("has missing cells, and the schema says missing: false", field=name, remedy="fix either")
    return values


def unit_ids(
    raw: pd.Series[Any], name: str, tokens: Collection[str] = ("",), misfit: Misfit = "refuse"
) -> pd.Series[Any]:
    """Return the labels of the column that names each record's unit; with ``coerce``, None where it names none.

    Raises:
        DataError: A record names no unit.
    """
    try:
        codes, uniques = distinct(unwrapped(raw))
        labels = np.array([*each(uniques, _text, "", misfit), ""], dtype=object)
    except UNREADABLE:
        raise DataError("has cells that are no id", field=name, remedy="use texts or whole numbers") from None
    labels[np.isin(labels, ["", *tokens])] = None
    ids = pd.Series(labels[codes], dtype=object)
    if misfit == "refuse" and ids.isna().any():
        raise DataError("has records that name no unit", field=name, remedy="give every record its unit's id")
    return ids


def raw_column(array: np.ndarray[Any, np.dtype[Any]]) -> pd.Series[Any]:
    """Return an array as a column; texts stay Python's, for pandas' own refuse all where one cannot be encoded."""
    return pd.Series(array, dtype=object if array.dtype.kind in "OU" else None)


def kept_of(rows: Rows, kept: np.ndarray[Any, np.dtype[np.bool_]]) -> Rows:
    """Return the rows that are kept, numbered anew."""
    return rows if kept.all() else rows[kept].reset_index(drop=True)


def concatenate(frames: list[pd.DataFrame], columns: list[str]) -> pd.DataFrame:
    """Join canonical chunks; categoricals are joined over the union of their labels."""
    if len(frames) == 1:
        return frames[0]
    joined = {}
    for name in columns:
        parts = [frame[name] for frame in frames]
        if isinstance(parts[0].dtype, pd.CategoricalDtype):
            alike = all(part.dtype == parts[0].dtype for part in parts)
            joined[name] = pd.Series(pd.api.types.union_categoricals(parts, sort_categories=not alike))
        else:
            joined[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(joined)


# -- kinds of columns ------------------------------------------------------------------------------------------------


def _read(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> pd.Series[Any]:
    if column.clock is not None:
        return pd.Series(_moments(raw, column, name, misfit))
    if column.bounded:
        return pd.Series(_numbers(raw, column, name, misfit))
    return _labels(raw, column, name, misfit)


def _no_such_type(column: Column, name: str) -> DataError:
    return DataError(f"has cells that are no {column.type}", field=name, remedy=column.expected)


# -- numbers -----------------------------------------------------------------------------------------------------


def _numbers(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> Floats:
    array: Floats
    if pd.api.types.is_numeric_dtype(raw.dtype) and raw.dtype.kind != "c":
        array = raw.to_numpy(dtype=np.float64, na_value=np.nan)
    elif is_listed(raw) or misfit == "coerce":
        codes, uniques = distinct(raw)
        tokens = {*column.missing_tokens, *NOT_A_NUMBER}
        array = np.array([*each(uniques, partial(_number, tokens=tokens), np.nan, misfit), np.nan])[codes]
    else:
        raise TypeError
    return fitting_numbers(array, column, name, misfit)


def fitting_numbers(array: Floats, column: Column, name: str, misfit: Misfit) -> Floats:
    """Return numbers in canonical form, NaN for missing, from what stands in the cells.

    Raises:
        DataError: A number is infinite, or not whole, where it has to be.
    """
    codes_for_missing = [float(token) for token in column.missing_tokens if _is_number(token)]
    if codes_for_missing:
        array = np.where(np.isin(array, codes_for_missing), np.nan, array)
    whole = column.integral
    if misfit == "coerce":
        return _within(np.rint(array) if whole else array, column, column.grid)
    if np.isinf(array).any():
        raise DataError("has infinite cells", field=name, remedy="fix them, or list their text under missing")
    if whole and (np.floor(array) != array)[~np.isnan(array)].any():
        raise DataError("has cells that are no whole number", field=name, remedy="declare type: real, or fix them")
    return array + 0.0  # no negative zero: joined with zero, it would read as whichever came first


def _number(cell: object, tokens: Collection[str]) -> float:
    """Return one number, NaN for a text that means missing; ValueError for what is none."""
    if isinstance(cell, str):
        text = cell.strip()
        if text in tokens:
            return math.nan
        if _NUMBER.fullmatch(text) is None:
            raise ValueError
        return float(text)
    if not isinstance(cell, (Real, Decimal, np.bool_)):
        raise TypeError
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf  # type: ignore[operator]


def _within(array: Floats, column: Column, grid: tuple[float, float] | None) -> Floats:
    """Return numbers within public bounds; the lower one for what may not be missing, once there are bounds."""
    lower, upper = grid or (-_FARTHEST, _FARTHEST)
    inside: Floats = np.clip(array, lower, upper) + 0.0
    return np.where(np.isnan(inside), lower, inside) if grid and column.missing is False else inside


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# -- dates and moments -------------------------------------------------------------------------------------------


def _moments(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> Moments:
    zone = None if column.clock == "D" else column.zone or "UTC"  # a date's day is the one written
    array: Moments
    if isinstance(raw.dtype, pd.DatetimeTZDtype):
        utc = raw.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy().astype("datetime64[s]")
        array = _on_the_clock(utc, zone or raw.dt.tz)
    elif pd.api.types.is_datetime64_dtype(raw.dtype):
        array = raw.to_numpy().astype("datetime64[s]")
    elif is_listed(raw) or misfit == "coerce":
        codes, uniques = distinct(raw)
        tokens = {*column.missing_tokens, *NOT_A_TIME}
        warned_of = name if column.one_clock and misfit == "refuse" else ""
        array = np.append(_moment_of_each(uniques, zone, tokens, misfit, warned_of), _NO_TIME)[codes]
    else:
        raise TypeError
    return fitting_moments(array, column, misfit)


def fitting_moments(array: Moments, column: Column, misfit: Misfit) -> Moments:
    """Return moments in canonical form, NaT for missing, from those that a column's clock shows."""
    zone = None if column.clock == "D" else column.zone or "UTC"
    named = [token for token in column.missing_tokens if ISO.fullmatch(token)]
    if named:
        array = np.where(np.isin(array, _moment_of_each(named, zone, (), "refuse")), _NO_TIME, array)
    array = array.astype(f"datetime64[{column.clock}]")
    if misfit == "coerce" and column.grid is not None:
        numbers = np.where(np.isnat(array), np.nan, array.astype(np.int64).astype(np.float64))
        inside = _within(numbers, column, column.grid)
        gone = np.isnan(inside)
        array = np.where(gone, np.datetime64("NaT"), np.where(gone, 0, inside).astype(np.int64).astype(array.dtype))
    return array.astype("datetime64[s]")


def _moment_of_each(
    uniques: Sequence[object], zone: str | None, tokens: Collection[str], misfit: Misfit, warned_of: str = ""
) -> Moments:
    """Return distinct moments on the clock of ``zone``; None leaves each on the clock that it is written in.

    The owner of a column is warned of it where some moments have an offset from UTC and some have none.
    """
    read: list[tuple[np.datetime64, int | None]]
    read = each(uniques, partial(_moment, tokens=tokens), (_NO_TIME, None), misfit)
    moments = np.array([moment for moment, _ in read], dtype="datetime64[s]")
    aware = np.array([offset is not None for _, offset in read], dtype=bool)
    if zone is not None and aware.any():
        if warned_of and not (aware | np.isnat(moments)).all():
            said = "some moments have an offset from UTC and some have none; those without are read as they stand"
            warnings.warn(f"{printable(warned_of)}: {said} in {zone}", DataWarning, stacklevel=2)
        offsets = np.array([offset for _, offset in read if offset is not None], dtype="timedelta64[s]")
        moments[aware] = _on_the_clock(moments[aware] - offsets, zone)
    return moments


def _on_the_clock(utc: Moments, zone: Any) -> Moments:
    """Return moments in UTC as a zone's clocks show them; one beyond every calendar counts as the last on that side."""
    if zone == "UTC":
        return utc
    reached: pd.Series[Any] = pd.Series(np.clip(utc, *_CALENDAR))
    shown: Moments = (
        reached.dt.tz_localize("UTC").dt.tz_convert(zone).dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    )
    return shown


def _moment(cell: object, tokens: Collection[str]) -> tuple[np.datetime64, int | None]:
    """Return one local moment to the second, and its offset from UTC in seconds, if there is one."""
    if isinstance(cell, datetime.datetime):  # pandas' Timestamp is one
        offset = cell.utcoffset()
        local = np.datetime64(cell.replace(tzinfo=None).isoformat()[:19], "s")
        return local, None if offset is None else int(offset.total_seconds())
    if isinstance(cell, (datetime.date, np.datetime64)):
        return np.datetime64(cell).astype("datetime64[s]"), None
    if not isinstance(cell, str):
        raise TypeError
    text = cell.strip()
    if text in tokens:
        return _NO_TIME, None
    found = ISO.fullmatch(text)
    if found is None:
        raise ValueError
    day, time, utc, sign, hours, minutes = found.groups()
    if time is None and (utc or sign):
        raise ValueError
    seconds = 0 if utc else None if sign is None else int(f"{sign}1") * (3600 * int(hours) + 60 * int(minutes or 0))
    if time in _MIDNIGHT:
        return np.datetime64(day, "s") + np.timedelta64(1, "D"), seconds
    return np.datetime64(day if time is None else f"{day}T{time}", "s"), seconds


# -- discrete values ---------------------------------------------------------------------------------------------


def _labels(raw: pd.Series[Any], column: Column, name: str, misfit: Misfit) -> pd.Series[Any]:
    codes, uniques = distinct(raw)
    missing = set(column.missing_tokens)
    domain = [label(value) for value in column.domain]
    misfits = _place_of_misfits(column, domain)
    read = partial(_truth, tokens=missing) if column.truth else _text
    texts = each(uniques, read, misfits, misfit)
    categories = domain or sorted({*texts, *([misfits] if misfit == "coerce" else [])} - missing)
    place = {text: number for number, text in enumerate(categories)} | dict.fromkeys(missing, -1)
    if domain and not column.truth:
        _place_the_rest(place, texts, column, name, misfits if misfit == "coerce" else None)
    nothing = place[misfits] if misfit == "coerce" and column.missing is False else -1
    table = np.array([place[text] for text in texts] + [-1], dtype=np.int64)[codes]
    dtype = pd.CategoricalDtype(pd.Index(categories, dtype="str"))
    return pd.Series(pd.Categorical.from_codes(np.where(table < 0, nothing, table), dtype=dtype))


def _place_of_misfits(column: Column, domain: Sequence[str]) -> str:
    """Return the text that a coerced misfit counts as: ``other``, else missing, else the first value."""
    if column.fallback is not None:
        return label(column.fallback)
    return domain[0] if domain and column.missing is False else ""


def _place_the_rest(
    place: dict[str, int], labels: Sequence[str], column: Column, name: str, misfits: str | None
) -> None:
    """Place what is not in the list: 01 and 1.0 where the values are numbers, anything where there is an ``other``."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column.fact("values"))
    for text in labels:
        if text in place:
            continue
        same = label(float(text)) if numbers and _is_number(text) else text
        if same in place:
            place[text] = place[same]
        elif column.fallback is not None:
            place[text] = place[label(column.fallback)]
        elif misfits is not None:
            place[text] = place[misfits]
        else:
            raise DataError(
                "has values outside the schema's list",
                field=name,
                remedy="name an other for them, such as other: Other, or list what is public",
            )


def _text(cell: object) -> str:
    """Return one cell's label; ValueError or TypeError for what has none that a file could hold."""
    if isinstance(cell, _NO_CELLS):
        raise TypeError
    text = label(cell)
    text.encode()  # half of a surrogate pair is no text
    if "\0" in text:
        raise _NulByte
    return text


def _truth(cell: object, tokens: Collection[str]) -> str:
    text = _text(cell)
    found = text if text in tokens else truth_of(text)
    if found is None:
        raise ValueError
    return found
