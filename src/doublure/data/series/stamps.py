"""Moments for synthetic series: public windows of the calendar that have the attributes of each."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.series.clock import Whole, derived
from doublure.errors import SchemaError
from doublure.schema.scalars import label
from doublure.schema.series import SERIES, STEP, SeriesSchema

_DAY = 86_400
_YEAR = 366 * _DAY
"""Windows of one year are tried: it has each month, weekday and hour."""
_ANY_DAY = "2024-01-01"
_MOST_WINDOWS = 1_000_000
"""Windows in memory at once, at 8 bytes each and attribute."""


def stamped_starts(attributes: pd.DataFrame, first: int, schema: SeriesSchema) -> Whole:
    """Return where series begin, in seconds since 1970 on the wall clock, from public facts and their attributes.

    A series begins with a window of the first year that has the attributes which follow from the time. Series with the
    same ones take such windows in turn, by their number. Where no window has them, any will do.

    Args:
        attributes: A row a series.
        first: The number of the first of them.
        schema: Its ``stamped_from`` is declared.
    """
    windows = _windows(schema, schema.series.stamped_from)
    followed = {name: each.from_time for name, each in schema.attributes.items() if each.from_time is not None}
    calendar = {name: derived(windows, what) for name, what in followed.items()}
    places: dict[tuple[str, ...], list[int]] = {}
    for place, key in enumerate(_keys(calendar, len(windows))):
        places.setdefault(key, []).append(place)
    every = range(len(windows))
    found = [
        own[(first + row - 1) % len(own)]
        for row, key in enumerate(_keys({name: attributes[name] for name in followed}, len(attributes)))
        if (own := places.get(key, every))
    ]
    return windows[np.array(found, dtype=np.int64)]


def stamped(frame: pd.DataFrame, starts: Whole, first: int, schema: SeriesSchema) -> pd.DataFrame:
    """Return rows in the long form with their moments, and the series' number by the names that the data has for it.

    Args:
        frame: The rows, with ``series`` and ``step``.
        starts: ``(N,)`` where series begin.
        first: The number of the first series.
        schema: Its ``stamped_from`` is declared.
    """
    windows, seconds = schema.series, _seconds(schema)
    steps = frame[STEP].to_numpy() + (windows.stamp == "end")
    moments = starts[frame[SERIES].to_numpy() - first] + steps * seconds
    more: dict[str, Any] = dict.fromkeys(schema.names_of_series, frame[SERIES])
    if windows.time_of_day is None:
        more[windows.time or ""] = pd.Series(moments.astype("datetime64[s]"))
    else:
        more[windows.time or ""] = pd.Series((moments // _DAY * _DAY).astype("datetime64[s]"))
        more[windows.time_of_day] = _clock(moments % _DAY, whole_minutes=seconds % 60 == 0)
    rest = [name for name in frame.columns if name not in (SERIES, STEP)]
    return pd.concat([frame[[SERIES, STEP]], pd.DataFrame(more, index=frame.index), frame[rest]], axis=1)


def following_windows(schema: SeriesSchema, count: int, first_day: str | None = None) -> Whole | None:
    """Return the beginnings ``(count,)`` of windows that follow one another; None where series have no moments.

    They begin with the first one from a moment on; from ``stamped_from`` on, if none is given; or else from a day that
    has no meaning.
    """
    if schema.series.time is None or schema.series.seconds is None:
        return None
    first = _windows(schema, first_day or schema.series.stamped_from or _ANY_DAY)[0]
    found: Whole = first + schema.length * _seconds(schema) * np.arange(count, dtype=np.int64)
    return found


def _windows(schema: SeriesSchema, day: date | str | None) -> Whole:
    """Return the beginnings of windows from the first day on, for a year."""
    length = schema.length * _seconds(schema)
    if day is None:
        raise SchemaError("is not declared", field="series.stamped_from", remedy="declare a day, such as 2024-01-01")
    start = int(np.datetime64(day, "s").astype(np.int64))
    origin = schema.series.origin
    begin = -(-(start - origin) // length) * length + origin
    return begin + length * np.arange(min(_MOST_WINDOWS, max(1, _YEAR // length)), dtype=np.int64)


def _seconds(schema: SeriesSchema) -> int:
    """Return the length of a step.

    Raises:
        SchemaError: It is not declared.
    """
    if schema.series.seconds is None:
        raise SchemaError("is not known yet", field="series.step", remedy="declare the time from one step to the next")
    return schema.series.seconds


def _keys(columns: Mapping[str, pd.Series[Any]], rows: int) -> list[tuple[str, ...]]:
    """Return the labels of each row."""
    labels = [list(map(label, cells)) for cells in columns.values()]
    return list(zip(*labels, strict=True)) if labels else [()] * rows


def _clock(seconds: Whole, *, whole_minutes: bool) -> pd.Series[Any]:
    """Return times of day as texts, each distinct one once."""
    codes, distinct = pd.factorize(seconds)
    texts = [f"{at // 3600:02}:{at // 60 % 60:02}" + ("" if whole_minutes else f":{at % 60:02}") for at in distinct]
    return pd.Series(pd.Categorical.from_codes(codes, categories=pd.Index(texts, dtype="str")))
