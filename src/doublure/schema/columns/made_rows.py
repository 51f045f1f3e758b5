"""Synthetic rows whose columns without a model are to be made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from doublure.support.arrays import Ints


class KeyColumn(Protocol):
    """The column that a lookup goes by."""

    def numbers_of(self, cells: pd.Series[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the ``(N,)`` numbers of cells, NaN for a missing one."""

    def number_of(self, written: object) -> float:
        """Return the number of one written value.

        Raises:
            ValueError: It has none.
        """


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MadeRows:
    """Synthetic rows whose other columns are to be made.

    Attributes:
        seed: Of the sample.
        numbers: ``(N,)`` which row of its table each is, from 1.
        units: ``(N,)`` which unit it belongs to, from 1.
        cells: Columns that are drawn. Synthetic.
        columns: What is public of these.
        table: The name of the table, where there are several.
    """

    seed: int
    numbers: Ints
    units: Ints
    cells: pd.DataFrame
    columns: Mapping[str, KeyColumn]
    table: str = ""
