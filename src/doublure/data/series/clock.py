"""Windows on the wall clock: their starts, the steps of moments, and the effect of clock changes.

Everything here is a function of public rules and of one moment. A moment is a number of seconds since 1970 on the wall
clock of the schema's time zone: midnight is midnight, whatever the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.schema.columns.calendar_cells import left_out_by_clocks
from doublure.schema.series import FromTime, Windows

Whole: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"

_DAY = 86_400
_LAST = int(np.datetime64("9999-12-31T09:59:59", "s").astype(np.int64))  # in every zone, a moment of year 9999 in UTC


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where moments fall.

    Attributes:
        start: The beginning of each moment's window.
        step: Its step, 0 … length - 1.
        beside: Whether it stands beside the grid of steps.
    """

    start: Whole
    step: Whole
    beside: Flags


def places_of(moments: Whole, windows: Windows, length: int) -> Places:
    """Return where moments fall in windows of ``length`` steps."""
    seconds, origin = windows.seconds or 1, windows.origin
    window = length * seconds
    start = (moments - origin) // window * window + origin
    within = moments - start
    return Places(start=start, step=within // seconds, beside=within % seconds != 0)


@dataclass(frozen=True, kw_only=True)
class Changes:
    """The effect of clock changes on windows.

    Attributes:
        skipped: ``(N, length)``, steps that begin in the hour that clocks leave out.
        doubled: ``(N, length)``, steps that begin in the hour that clocks go through twice.
        changed: ``(N,)``, windows in which clocks change, whether a step begins there or not.
    """

    skipped: Flags
    doubled: Flags
    changed: Flags

    @staticmethod
    def none(count: int, length: int) -> Changes:
        """Return those of windows on a clock that never changes."""
        still = np.zeros((count, length), dtype=np.bool_)
        return Changes(skipped=still, doubled=still, changed=np.zeros(count, dtype=np.bool_))


def changes_in(starts: Whole, length: int, seconds: int, zone: str | None) -> Changes:
    """Return the clock changes within windows that begin at ``starts``; a zone's rules are public."""
    if zone is None or zone == "UTC":
        return Changes.none(len(starts), length)
    distinct, place = np.unique(starts, return_inverse=True)
    ends = np.minimum(distinct[:, None] + seconds * np.arange(length + 1), _LAST)
    shape, moments = ends.shape, pd.Series(ends.reshape(-1).astype("datetime64[s]")).dt
    first = np.ones(ends.size, dtype=np.bool_)
    skipped = left_out_by_clocks(ends.reshape(-1), zone).reshape(shape)
    doubled = moments.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward").isna().to_numpy().reshape(shape)
    passed = moments.tz_localize(zone, ambiguous=first, nonexistent="shift_forward").dt.tz_convert(None)
    offsets = ends - passed.to_numpy().astype("datetime64[s]").astype(np.int64).reshape(shape)
    changed: Flags = np.asarray((np.diff(offsets, axis=1) != 0).any(axis=1))
    return Changes(skipped=skipped[place, :-1], doubled=doubled[place, :-1], changed=changed[place])


def filled(values: np.ndarray[Any, Any], skipped: Flags) -> None:
    """Let skipped steps that hold nothing repeat the step before them, or after where there is none, in place.

    Args:
        values: ``(N, length, channels)``.
        skipped: ``(N, length)``.
    """
    if not skipped.any():
        return
    length = values.shape[1]
    forwards = [(step, step - 1) for step in range(1, length)]
    backwards = [(step, step + 1) for step in range(length - 2, -1, -1)]
    for step, beside in (*forwards, *backwards):
        rows = np.flatnonzero(skipped[:, step])
        if len(rows):
            own = values[rows, step]
            values[rows, step] = np.where(np.isnan(own), values[rows, beside], own)


def derived(starts: Whole, what: FromTime) -> pd.Series[Any]:
    """Return what follows from the beginnings of series: Monday is 0, January 1."""
    days = starts // _DAY
    weekday = (days + 3) % 7  # 1970 began on a Thursday
    if what == "weekend":
        return pd.Series(weekday >= 5)
    if what == "hour":
        return pd.Series(starts % _DAY // 3_600)
    if what == "weekday":
        return pd.Series(weekday)
    return pd.Series(days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12 + 1)


def clock_texts(windows: Windows, length: int) -> list[str] | None:
    """Return the wall clock of each step where every series is one day; None where it is not.

    It is where a step begins, or where it ends, as the data's own moments are.
    """
    seconds = windows.seconds
    if windows.time is None or seconds is None or seconds * length != _DAY:
        return None
    moments = (windows.origin + seconds * (np.arange(length) + (windows.stamp == "end"))) % _DAY
    return [f"{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}" for at in moments]
