"""The public cells in which a number is first looked for, and how a cell is cut when it turns out to be full.

Cells follow from the schema alone. Where values span decades, or both signs, cells are single values near zero and then
of one ratio (symlog): they begin at the same places whatever the bounds, so that bounds a hundred times too wide add
some cells in which nobody is, and change no other.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from doublure.encode.wholes import Whole

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_FEW = 128
"""Of so many values each is a cell."""
_EVEN = 128
_RATIO = 1.1
_DECADES = 1_000.0
_SINGLE = 64
"""A full cell of so many values is cut into single ones."""
_ROUND = 32


def public_cells(whole: Whole) -> Ints:
    """Return where cells begin, ascending; missing is not among them."""
    first, last = whole.first, whole.last
    if last - first + 1 <= _FEW:
        return np.arange(first, last + 1)
    if whole.edges:
        starts = np.array(whole.edges)
    elif whole.calendar or whole.scale == "linear" or (whole.scale is None and not _spans_decades(first, last)):
        starts = np.unique(np.linspace(first, last + 1, _EVEN + 1).astype(np.int64)[:-1])
    else:
        starts = _symlog(first, last)
    alone = np.array(whole.spikes, dtype=np.int64)
    starts = np.concatenate([starts, [first, last], alone, alone + 1])
    return np.unique(starts[(starts >= first) & (starts <= last)]).astype(np.int64)


def cut(first: int, last: int, *, whole: Whole) -> Ints:
    """Return where the parts of a full cell begin.

    They are single values where there are few; else a score or so of round values alone, which are what people write,
    and the gaps between them; on a calendar, and where cells are even, parts of equal width.

    Args:
        first: The cell's first value.
        last: Its last.
        whole: Of the column.
    """
    if last - first + 1 <= _SINGLE:
        return np.arange(first, last + 1)
    if whole.calendar:
        return np.unique(np.linspace(first, last + 1, _ROUND + 1).astype(np.int64)[:-1])
    step = next(step for step in _round_steps() if last // step - -(-first // step) < _ROUND)
    alone = np.arange(-(-first // step), last // step + 1) * step
    return np.unique(np.concatenate([[first], alone, alone[alone < last] + 1])).astype(np.int64)


def _round_steps() -> Any:
    return (times * 10**power for power in range(19) for times in (1, 2, 5))


def _spans_decades(first: int, last: int) -> bool:
    if first <= 0 <= last:
        return True
    least, most = sorted((abs(first), abs(last)))
    return most / max(least, 1) >= _DECADES


def _symlog(first: int, last: int) -> Ints:
    """Return zero, single values beside it, then cells of one ratio on both sides; the ends alone."""
    most, end, ends = max(abs(first), abs(last)), 1, []
    while end <= most + 1:
        ends.append(end)
        end = max(end + 1, round(end * _RATIO))
    above = np.array([*ends, end], dtype=np.int64)
    return np.concatenate([1 - above[::-1], [0], above, [first + 1]])
