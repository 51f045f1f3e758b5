"""Data frames whose columns have whatever names people give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def with_columns(frame: pd.DataFrame, cells: Mapping[Any, Any]) -> pd.DataFrame:
    """Return a frame with columns replaced or added, in their order.

    ``DataFrame.assign`` takes names as keywords, and so no column called ``self``.

    Args:
        frame: The frame; it stays as it is.
        cells: The cells of each column.
    """
    found = frame.copy(deep=False)
    for name, own in cells.items():
        found[name] = own
    return found
