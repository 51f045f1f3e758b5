"""Moments whose day stands in one column and whose clock in another: ``10/03/2004`` and ``18.00.00``, or hour 18.

Each cell is joined with its neighbour in the row, after the day was rewritten by the schema's ``date_format``. What is
no day or no time of day becomes a text that is no moment, and is refused or left out as any such cell is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw, as_series
from doublure.data.tables.csv_records import Unread
from doublure.data.tables.source import TableSource
from doublure.schema.columns.spelling import MISFIT
from doublure.schema.scalars import Misfit

_CLOCK = re.compile(r"(\d{1,2})(?:[:.h](\d{2})(?:[:.](\d{2})(?:[.,]0+)?)?)?", re.ASCII)
_MIDNIGHT = re.compile(r"[T ]00:00(:00)?(\.0+)?")


class JoinedSource(TableSource):
    """A table of which the column of days reads as moments.

    Args:
        source: The table; its days are rewritten already.
        day: The column of days, which then holds moments.
        clock: The column of times of day.
    """

    def __init__(self, source: TableSource, day: str, clock: str) -> None:
        super().__init__(source.name, source.columns)
        self._source, self._day, self._clock = source, day, clock

    @override
    def check_names(self, names: Any) -> None:
        self._source.check_names(names)

    @override
    def unread(self) -> list[tuple[str, Unread]]:
        return self._source.unread()

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        wanted = list(dict.fromkeys([*columns, self._clock]))
        for raw in self._source.raw(wanted, [name for name in plain if name != self._day], misfit):
            yield self._as_moments(raw, columns)

    @override
    def both(self, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, Raw], Mapping[str, Raw]]]:
        for standing, raw in self._source.both(list(dict.fromkeys([*columns, self._clock]))):
            yield standing, self._as_moments(raw, columns)

    def _as_moments(self, raw: Mapping[str, Raw], columns: Sequence[str]) -> Mapping[str, Raw]:
        found = dict(raw)
        if self._day in found:
            found[self._day] = _joined(as_series(raw[self._day], self._day), as_series(raw[self._clock], self._clock))
        return {name: found[name] for name in columns}


def _joined(days: pd.Series[Any], clocks: pd.Series[Any]) -> pd.Series[Any]:
    """Return moments as texts, None where either cell is empty; each distinct pair is joined once."""
    day, day_cells = pd.factorize(days)
    clock, clock_cells = pd.factorize(clocks)
    heads, tails = [_MIDNIGHT.sub("", str(cell).strip()) for cell in day_cells], [_time(cell) for cell in clock_cells]
    pairs, place = np.unique(
        np.where((day < 0) | (clock < 0), -1, day * max(1, len(tails)) + clock), return_inverse=True
    )
    texts = [None if pair < 0 else _whole(heads[pair // len(tails)], tails[pair % len(tails)]) for pair in pairs]
    return pd.Series(np.array(texts, dtype=object)[place.reshape(-1)], dtype=object)


def _whole(day: str, clock: str) -> str | None:
    if not day or not clock:
        return None
    return MISFIT if MISFIT in (day, clock) else f"{day}T{clock}"


def _time(cell: object) -> str:
    if isinstance(cell, (float, np.floating)) and float(cell).is_integer():
        cell = int(cell)
    text = str(cell).strip()
    if not text:
        return ""
    found = _CLOCK.fullmatch(text)
    if found is None:
        return MISFIT
    return f"{found[1]:0>2}:{found[2] or '00'}:{found[3] or '00'}"
