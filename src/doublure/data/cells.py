"""From raw cells to canonical ones, column by column, by public rules.

=============  ==========================  =====================================================
column         canonical                   refused
=============  ==========================  =====================================================
integer, real  float64, NaN for missing    text that is no number, infinities, 2.5 in an integer
date(time)     datetime64[s], NaT          text that is no ISO 8601 date
discrete       categorical of labels       a value outside the list, where the schema names no ``other``
id             left out                    a unit's id that is missing
=============  ==========================  =====================================================

A missing cell where the schema says ``missing: false`` is refused. A declared list becomes the categories, in its
order, with what is outside in ``other``; where values are still to be learned, all labels are, sorted. Whatever the
container (text, nullable, Arrow, categorical, objects), distinct cells are read once and then placed. Messages name
the column, never the cell.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.errors import DataError
from doublure.schema.columns import (
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    OrdinalColumn,
    label,
)

Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Moments: TypeAlias = "np.ndarray[Any, np.dtype[np.datetime64]]"

_TRUE = {"true", "t", "yes", "y", "1", "1.0"}
_FALSE = {"false", "f", "no", "n", "0", "0.0"}
_NOT_A_NUMBER = {"NaN", "nan", "NA", "<NA>"}
_NOT_A_TIME = {"NaT", *_NOT_A_NUMBER}
ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?)?\s*(?:(Z|z)|([+-])(\d{2}):?(\d{2})?)?", re.ASCII
)
_NO_CELLS = (bytes, bytearray, list, tuple, dict, set, frozenset, np.ndarray)
_UNREADABLE = (TypeError, ValueError, ArithmeticError, AttributeError, LookupError, NotImplementedError)


def canonical(raw: pd.Series[Any], column: Column, name: str) -> pd.Series[Any]:
    """Return one column in canonical form; see the module's table.

    Raises:
        DataError: Naming the column and the rule, never the cell.
    """
    try:
        values = _read(unwrapped(raw), column, name)
    except _UNREADABLE:  # the message of the original would show a cell
        raise _no_such_type(column, name) from None
    if column.missing is False and values.isna().any():
        raise DataError("has missing cells, and the schema says missing: false", field=name, remedy="mend either")
    return values


def unit_ids(raw: pd.Series[Any], name: str, tokens: Collection[str] = ("",)) -> pd.Series[Any]:
    """Return the labels of the column that names each record's unit.

    Raises:
        DataError: A record names no unit.
    """
    try:
        codes, uniques = distinct(unwrapped(raw))
    except _UNREADABLE:
        raise DataError("has cells that are no id", field=name, remedy="use texts or whole numbers") from None
    labels = np.array([label(unique) for unique in uniques] + [""], dtype=object)
    ids = pd.Series(labels[codes], dtype=object)
    if ids.isin({"", *tokens}).any():
        raise DataError("has records that name no unit", field=name, remedy="give every record its unit's id")
    return ids


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


# -- containers --------------------------------------------------------------------------------------------------


def unwrapped(raw: pd.Series[Any]) -> pd.Series[Any]:
    """Return Arrow-backed, sparse and foreign columns as numpy's of this machine, pandas' nullable or object ones."""
    if isinstance(raw.dtype, pd.ArrowDtype):
        import pyarrow as pa

        plain: pd.Series[Any] = pa.array(raw.array).to_pandas(integer_object_nulls=True, date_as_object=False)
        return plain
    if isinstance(raw.dtype, pd.SparseDtype):
        return pd.Series(np.asarray(raw))
    if isinstance(raw.dtype, np.dtype) and not raw.dtype.isnative:  # pandas counts none in another byte order
        return raw.astype(raw.dtype.newbyteorder("="))
    return raw


def distinct(raw: pd.Series[Any]) -> tuple[np.ndarray[Any, np.dtype[np.int64]], list[object]]:
    """Return each cell's place in the list of distinct cells, -1 for missing, and that list."""
    if isinstance(raw.dtype, pd.CategoricalDtype):
        codes, uniques = raw.cat.codes.to_numpy(), list(raw.cat.categories)
    else:
        places, index = pd.factorize(raw, use_na_sentinel=True)
        codes, uniques = places, list(index)
    if any(isinstance(unique, _NO_CELLS) for unique in uniques):
        raise TypeError
    return codes.astype(np.int64, copy=False), uniques


def _is_listed(raw: pd.Series[Any]) -> bool:
    """Whether cells have to be read one by one: text, objects, or categories of either."""
    return isinstance(raw.dtype, (pd.StringDtype, pd.CategoricalDtype)) or raw.dtype == object


def _read(raw: pd.Series[Any], column: Column, name: str) -> pd.Series[Any]:
    if isinstance(column, (DateColumn, DatetimeColumn)):
        return pd.Series(_moments(raw, column))
    if column.numeric:
        return pd.Series(_numbers(raw, column, name))
    return _labels(raw, column, name)


def _no_such_type(column: Column, name: str) -> DataError:
    remedy = {
        "date": "write ISO 8601, such as 2024-01-31",
        "datetime": "write ISO 8601, such as 2024-01-31T12:00:00",
        "integer": "write plain numbers with a decimal point, or list the text that means missing under missing",
        "real": "write plain numbers with a decimal point, or list the text that means missing under missing",
        "boolean": "write true/false, yes/no or 1/0, or declare a category",
    }
    return DataError(
        f"has cells that are no {column.type}", field=name, remedy=remedy.get(column.type, "use texts or numbers")
    )


# -- numbers -----------------------------------------------------------------------------------------------------


def _numbers(raw: pd.Series[Any], column: Column, name: str) -> Floats:
    array: Floats
    if _is_listed(raw):
        codes, uniques = distinct(raw)
        array = np.append(_number_of_each(uniques, column), np.nan)[codes]
    elif pd.api.types.is_numeric_dtype(raw.dtype) and raw.dtype.kind != "c":
        array = raw.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        raise TypeError
    codes_for_missing = [float(token) for token in column.missing_tokens if _is_number(token)]
    if codes_for_missing:
        array = np.where(np.isin(array, codes_for_missing), np.nan, array)
    if np.isinf(array).any():
        raise DataError("has infinite cells", field=name, remedy="mend them, or list their text under missing")
    if isinstance(column, IntegerColumn) and (np.floor(array) != array)[~np.isnan(array)].any():
        raise DataError("has cells that are no whole number", field=name, remedy="declare type: real, or mend them")
    return array


def _number_of_each(uniques: Sequence[object], column: Column) -> Floats:
    cells = [cell.strip() if isinstance(cell, str) else cell for cell in uniques]
    tokens = {*column.missing_tokens, *_NOT_A_NUMBER}
    blank = np.array([isinstance(cell, str) and cell in tokens for cell in cells], dtype=bool)
    kept = pd.Series([None if empty else cell for cell, empty in zip(cells, blank, strict=True)], dtype=object)
    numbers = pd.to_numeric(kept, errors="coerce")
    if numbers.dtype.kind == "c":  # numpy would drop the imaginary part
        raise TypeError
    read = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if (np.isnan(read) & ~blank).any():
        raise ValueError
    return read


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


# -- dates and moments -------------------------------------------------------------------------------------------


def _moments(raw: pd.Series[Any], column: DateColumn | DatetimeColumn) -> Moments:
    zone = _zone(column)
    array: Moments
    if isinstance(raw.dtype, pd.DatetimeTZDtype):
        local = raw if zone is None else raw.dt.tz_convert(zone)
        array = local.dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    elif pd.api.types.is_datetime64_dtype(raw.dtype):
        array = raw.to_numpy().astype("datetime64[s]")
    elif _is_listed(raw):
        codes, uniques = distinct(raw)
        array = np.append(_moment_of_each(uniques, column, zone), np.datetime64("NaT", "s"))[codes]
    else:
        raise TypeError
    tokens = [token for token in column.missing_tokens if ISO.fullmatch(token)]
    if tokens:
        array = np.where(np.isin(array, _moment_of_each(tokens, column, zone, ())), np.datetime64("NaT", "s"), array)
    return array.astype("datetime64[D]").astype("datetime64[s]") if isinstance(column, DateColumn) else array


def _zone(column: DateColumn | DatetimeColumn) -> str | None:
    """Return the zone in which an offset is understood; None for a date, whose day is the one that is written."""
    return None if isinstance(column, DateColumn) else column.timezone or "UTC"


def _moment_of_each(
    uniques: Sequence[object],
    column: DateColumn | DatetimeColumn,
    zone: str | None,
    tokens: Collection[str] | None = None,
) -> Moments:
    tokens = {*column.missing_tokens, *_NOT_A_TIME} if tokens is None else tokens
    texts, offsets = [], np.zeros(len(uniques), dtype="timedelta64[s]")
    aware = np.zeros(len(uniques), dtype=bool)
    for place, cell in enumerate(uniques):
        text, offset = _iso(cell.strip() if isinstance(cell, str) else cell, tokens)
        texts.append(text)
        if offset is not None and zone is not None:
            offsets[place], aware[place] = np.timedelta64(offset, "s"), True
    moments = np.array(texts, dtype="datetime64[s]")
    if aware.any():
        utc = pd.Series(moments[aware] - offsets[aware]).dt.tz_localize("UTC")
        moments[aware] = utc.dt.tz_convert(zone).dt.tz_localize(None).to_numpy().astype("datetime64[s]")
    return moments


def _iso(cell: object, tokens: Collection[str]) -> tuple[str, int | None]:
    """Return the local moment as numpy reads it, to the second, and the offset from UTC in seconds, if there is one."""
    if isinstance(cell, datetime.datetime):  # pandas' Timestamp is one
        offset = cell.utcoffset()
        return cell.replace(tzinfo=None).isoformat()[:19], None if offset is None else int(offset.total_seconds())
    if isinstance(cell, datetime.date):
        return cell.isoformat(), None
    if isinstance(cell, np.datetime64):
        return str(cell.astype("datetime64[s]")), None
    if not isinstance(cell, str):
        raise TypeError
    if cell in tokens:
        return "NaT", None
    found = ISO.fullmatch(cell)
    if found is None:
        raise ValueError
    day, time, utc, sign, hours, minutes = found.groups()
    if time is None and (utc or sign):
        raise ValueError
    seconds = 0 if utc else None if sign is None else int(f"{sign}1") * (3600 * int(hours) + 60 * int(minutes or 0))
    return day if time is None else f"{day}T{time}", seconds


# -- discrete values ---------------------------------------------------------------------------------------------


def _labels(raw: pd.Series[Any], column: Column, name: str) -> pd.Series[Any]:
    codes, uniques = distinct(raw)
    labels = [label(unique) for unique in uniques]
    if any("\0" in text for text in labels):
        raise DataError("has cells with NUL bytes", field=name, remedy="export the data again as UTF-8 text")
    missing = set(column.missing_tokens)
    if isinstance(column, BooleanColumn):
        labels = [text if text in missing else _boolean(text) for text in labels]
    domain = [label(value) for value in getattr(column, "domain", ())]
    categories = domain or sorted(set(labels) - missing)
    place = {text: number for number, text in enumerate(categories)} | dict.fromkeys(missing, -1)
    if domain and isinstance(column, (CategoryColumn, OrdinalColumn)):
        _place_the_rest(place, labels, column, name)
    table = np.array([*(place[text] for text in labels), -1], dtype=np.int64)
    dtype = pd.CategoricalDtype(pd.Index(categories, dtype="str"))
    return pd.Series(pd.Categorical.from_codes(table[codes], dtype=dtype))


def _place_the_rest(
    place: dict[str, int], labels: Sequence[str], column: CategoryColumn | OrdinalColumn, name: str
) -> None:
    """Place what is not in the list: 01 and 1.0 where the values are numbers, anything where there is an ``other``."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column.values)
    for text in labels:
        if text in place:
            continue
        same = label(float(text)) if numbers and _is_number(text) else text
        if same in place:
            place[text] = place[same]
        elif column.other is not None:
            place[text] = place[label(column.other)]
        else:
            raise DataError("has values outside the schema's list", field=name, remedy="add them, or name an other")


def truth_of(text: str) -> str | None:
    """Return ``true`` or ``false`` for any of the words that mean it; None for other texts.

    Example:
        >>> truth_of("Yes"), truth_of("0"), truth_of("maybe")
        ('true', 'false', None)
    """
    lowered = text.lower()
    return "true" if lowered in _TRUE else "false" if lowered in _FALSE else None


def _boolean(text: str) -> str:
    found = truth_of(text)
    if found is None:
        raise ValueError
    return found
