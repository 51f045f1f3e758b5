"""What the cells of a table of counts are called: values, ranges of a number, missing.

A range ``30..39`` holds both ends, as ``doublure sample --given`` reads them. Cells that join several values name them
all: neighbouring numbers by one range, others with ``|`` between them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from doublure.encode.columns import Discrete, RowEncoding
from doublure.encode.differences import Gap
from doublure.encode.numeric import Stepped
from doublure.schema.columns import label

MISSING = "(missing)"


def axis_name(column: str, encoding: RowEncoding) -> str:
    """Return what an axis counts: a column, or how far it lies above another that it never is below."""
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

    Raises:
        TypeError: The column is encoded neither as a list nor in steps.
    """
    own = encoding.steps if isinstance(encoding, Gap) else encoding
    parts: list[list[str]] = [[] for _ in range(size)]
    if isinstance(own, Discrete):
        values = [*(label(value) for value in own.column.domain), *([MISSING] if own.column.may_be_missing else [])]
        places = np.maximum(np.searchsorted(starts, np.arange(len(values)), side="right") - 1, 0)
        for value, cell in zip(values, cells[places].tolist(), strict=True):
            parts[cell].append(value)
    elif isinstance(own, Stepped):
        first, last = own.ends
        begins = np.flatnonzero(np.append(True, np.diff(cells) != 0) | (starts > last))
        ends = np.minimum(np.append(starts[begins[1:]] - 1, last), last)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            missing = starts[begin] > last
            parts[int(cells[begin])].append(
                MISSING if missing else _range(own, max(first, int(starts[begin])), int(end))
            )
    else:
        raise TypeError("cells of whole numbers alone have names")
    return tuple(" | ".join(names) for names in parts)


def _range(own: Stepped, first: int, last: int) -> str:
    low, high = own.column.text_of(first * own.unit), own.column.text_of(last * own.unit)
    return low if first >= last else f"{low}..{high}"
