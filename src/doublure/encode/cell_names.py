"""Names of the cells of a table of counts: values, ranges of a number, missing.

A range ``30..39`` holds both ends, as ``doublure sample --given`` reads them. Cells that join several values name them
all: neighbouring numbers by one range, others with ``|`` between them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from doublure.encode.columns import RowEncoding
from doublure.encode.differences import Gap
from doublure.encode.points import PointEncoding

MISSING = "(missing)"


def axis_name(column: str, encoding: RowEncoding) -> str:
    """Return what an axis counts: a column, or how far it lies above another that it never is below."""
    if isinstance(encoding, PointEncoding):
        return " and ".join(encoding.columns)
    return f"{column} above {encoding.first}" if isinstance(encoding, Gap) else column


def interval_names(
    encoding: RowEncoding, starts: npt.NDArray[np.float64], cells: npt.NDArray[np.int64], size: int
) -> tuple[str, ...]:
    """Return a name for each cell of an axis of whole numbers.

    Args:
        encoding: Of the column that is counted: a list of values, or steps.
        starts: ``(n,)`` where intervals begin, ascending; the one after a column's last value is missing.
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
    texts = own.column.interval_texts(zip((lows * unit).tolist(), (highs * unit).tolist(), strict=True))
    parts: list[list[str]] = [[] for _ in range(size)]
    for begin, text in zip(begins.tolist(), texts, strict=True):
        parts[int(cells[begin])].append(MISSING if starts[begin] > last else text)
    return tuple(" | ".join(names) for names in parts)


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
