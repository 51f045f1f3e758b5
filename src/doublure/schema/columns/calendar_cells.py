"""Raw cells of days and moments, in canonical form: datetime64[s] on the column's own clock, NaT for missing."""

from __future__ import annotations

import datetime
import re
import warnings
from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure.errors import DataWarning, printable
from doublure.schema.columns.column import Column
from doublure.schema.columns.number_cells import NOT_A_NUMBER, within
from doublure.schema.distinct_cells import distinct, each, is_listed, is_text
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

Moments: TypeAlias = "np.ndarray[Any, np.dtype[np.datetime64]]"

NOT_A_TIME = frozenset({"NaT", *NOT_A_NUMBER})
ISO = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:[.,]\d+)?)?\s*(?:(Z|z)|([+-])(\d{2}):?(\d{2})?)?", re.ASCII
)
_PLAIN_ISO = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?$"
MIDNIGHT = ("24:00", "24:00:00")
"""The end of a day in ISO 8601, and in files of meters that stamp an hour by its end."""
_NO_TIME = np.datetime64("NaT", "s")
_CALENDAR = (np.datetime64("0001-01-01T12:00:00", "s"), np.datetime64("9999-12-31T09:59:59", "s"))
"""The first and the last moment, in UTC, that every zone's calendar reaches."""


def moments(raw: pd.Series[Any], column: Column, misfit: Misfit, warned_of: str = "") -> Moments:
    """Return ``(N,)`` raw cells as moments in canonical form.

    The owner of a column is warned, by the name ``warned_of``, where some moments have an offset from UTC and some have
    none; not where that is empty, or cells are coerced.

    Raises:
        TypeError: A cell is no moment; like it what else ``distinct_cells.UNREADABLE`` names.
    """
    array: Moments
    if isinstance(raw.dtype, pd.DatetimeTZDtype):
        utc = raw.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy().astype("datetime64[s]")
        array = _on_the_clock(utc, _zone(column) or raw.dt.tz)
    elif pd.api.types.is_datetime64_dtype(raw.dtype):
        array = raw.to_numpy().astype("datetime64[s]")
    elif is_listed(raw) or misfit == "coerce":
        codes, uniques = distinct(raw)
        tokens = {*column.missing_tokens, *NOT_A_TIME}
        array = np.append(_moment_of_each(uniques, _zone(column), tokens, misfit, warned_of), _NO_TIME)[codes]
    else:
        raise TypeError
    return fitting_moments(array, column, misfit)


def moments_at_once(raw: pa.Array, tokens: Collection[str]) -> Moments | None:
    """Return what stands in a column of text; None where Arrow reads it otherwise, or not at all.

    Args:
        raw: ``(N,)`` cells.
        tokens: The texts that mean missing.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not is_text(raw.type):
        return None
    try:
        said = pc.if_else(pc.is_in(raw, value_set=pa.array(tokens, raw.type)), None, raw)
        if not pc.all(pc.match_substring_regex(said, _PLAIN_ISO), min_count=0).as_py():
            return None
        read = pc.cast(said, pa.timestamp("s"))
    except pa.ArrowException:
        return None
    moments: Moments = read.to_numpy(zero_copy_only=False).astype("datetime64[s]")
    return moments


def fitting_moments(array: Moments, column: Column, misfit: Misfit) -> Moments:
    """Return ``(N,)`` moments in canonical form, NaT for missing, from those that a column's clock shows."""
    named = [token for token in column.missing_tokens if ISO.fullmatch(token)]
    if named:
        array = np.where(np.isin(array, _moment_of_each(named, _zone(column), (), "refuse")), _NO_TIME, array)
    array = array.astype(f"datetime64[{column.clock}]")
    if misfit == "coerce" and column.grid is not None:
        numbers = np.where(np.isnat(array), np.nan, array.astype(np.int64).astype(np.float64))
        inside = within(numbers, column)
        gone = np.isnan(inside)
        array = np.where(gone, np.datetime64("NaT"), np.where(gone, 0, inside).astype(np.int64).astype(array.dtype))
    return array.astype("datetime64[s]")


def _zone(column: Column) -> str | None:
    """Return the zone whose clock a column shows; None for days: a date's day is the one written."""
    return None if column.clock == "D" else column.zone or "UTC"


def _moment_of_each(
    uniques: Sequence[object], zone: str | None, tokens: Collection[str], misfit: Misfit, warned_of: str = ""
) -> Moments:
    """Return distinct moments on the clock of ``zone``; None leaves each on the clock that it is written in."""
    read: list[tuple[np.datetime64, int | None]]
    read = each(uniques, partial(_moment, tokens=tokens), (_NO_TIME, None), misfit)
    found = np.array([moment for moment, _ in read], dtype="datetime64[s]")
    aware = np.array([offset is not None for _, offset in read], dtype=bool)
    if zone is not None and aware.any():
        if warned_of and misfit == "refuse" and not (aware | np.isnat(found)).all():
            said = "some moments have an offset from UTC and some have none; those without are read as they stand"
            warnings.warn(f"{printable(warned_of)}: {said} in {zone}", DataWarning, stacklevel=2)
        offsets = np.array([offset for _, offset in read if offset is not None], dtype="timedelta64[s]")
        found[aware] = _on_the_clock(found[aware] - offsets, zone)
    return found


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
    if time in MIDNIGHT:
        return np.datetime64(day, "s") + np.timedelta64(1, "D"), seconds
    return np.datetime64(day if time is None else f"{day}T{time}", "s"), seconds


def left_out_by_clocks(moments: npt.NDArray[Any], zone: str) -> npt.NDArray[np.bool_]:
    """Return which moments of a wall clock are in the hour that clocks leave out where they go forward.

    Args:
        moments: ``(N,)`` seconds since 1970 on the wall clock.
        zone: Its time zone, whose rules are public.
    """
    wall = pd.Series(moments.astype("datetime64[s]"))
    placed = wall.dt.tz_localize(zone, ambiguous=np.ones(len(wall), dtype=np.bool_), nonexistent="NaT")
    found: npt.NDArray[np.bool_] = placed.isna().to_numpy()
    return found
