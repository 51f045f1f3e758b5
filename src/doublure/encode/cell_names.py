"""What the cells of a table of counts are called: values, ranges of a number, missing.

A range ``30..39`` holds both ends, as ``doublure sample --given`` reads them; on a continuum the upper end begins the
next one. Cells that join several codes name them all: neighbouring bins by one range, values with ``|`` between them.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from doublure.encode.columns import Discrete, RowEncoding
from doublure.encode.differences import Gap
from doublure.encode.numeric import Binned
from doublure.schema.columns import DateColumn, DatetimeColumn, label

MISSING = "(missing)"
_ZERO = "0"


def axis_name(column: str, encoding: RowEncoding) -> str:
    """Return what an axis counts: a column, or how far it lies above another that it never is below."""
    return f"{column} above {encoding.first}" if isinstance(encoding, Gap) else column


def cell_names(encoding: RowEncoding, cells: npt.NDArray[np.int64], size: int) -> tuple[str, ...]:
    """Return a name for each cell of an axis.

    Args:
        encoding: Of the column that is counted; its codes are those of one softmax block.
        cells: ``(codes,)`` the cell of each code.
        size: How many cells.
    """
    own = encoding.steps if isinstance(encoding, Gap) else encoding
    if isinstance(own, Binned):
        names = _ranges(own, cells, size)
    else:
        column = cast(Discrete, own).column
        values = [*(label(value) for value in column.domain), *([MISSING] if column.may_be_missing else [])]
        names = [[values[code] for code in np.flatnonzero(cells == cell)] for cell in range(size)]
    return tuple(" | ".join(parts) for parts in names)


def _ranges(own: Binned, cells: npt.NDArray[np.int64], size: int) -> list[list[str]]:
    bins = len(own.edges) - 1
    found = []
    for cell in range(size):
        codes = np.flatnonzero(cells == cell)
        numbers = codes[codes < bins]
        runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1) if len(numbers) else []
        states = [_ZERO if own.zero and code == bins else MISSING for code in codes[codes >= bins].tolist()]
        found.append([*(_range(own, int(run[0]), int(run[-1])) for run in runs), *states])
    return found


def _range(own: Binned, first: int, last: int) -> str:
    unit = own.grid.unit
    low, high = float(own.edges[first]), float(own.edges[last + 1]) - unit
    text = _number(own, low) if low == high else f"{_number(own, low)}..{_number(own, high)}"
    return f"{text} but 0" if own.zero and low <= 0 <= high and low < high else text


def _number(own: Binned, value: float) -> str:
    column: Any = own.column
    if isinstance(column, (DateColumn, DatetimeColumn)):
        return str(np.datetime64(round(value), "D" if isinstance(column, DateColumn) else "s"))
    rounded = own.rounded(np.asarray([value])) + 0.0
    return f"{float(rounded[0]):.15g}"
