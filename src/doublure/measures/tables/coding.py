"""Tables coded in public bins and values, as the measures read them.

Ids are left out, and so are columns that an ``equal`` constraint derives: they repeat another column exactly. A missing
cell always has a code of its own (the last), even where the schema says that none is missing, so that metrics never
treat a missing cell as a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.tables import cells
from doublure.encode.cell_names import MISSING as MISSING
from doublure.encode.columns import ColumnEncoding, encoding
from doublure.errors import DataError
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column, label
from doublure.support.arrays import Floats

Integers: TypeAlias = "np.ndarray[Any, np.dtype[np.int32]]"

BINS = 32
"""Most bins of a number."""


@dataclass(frozen=True, kw_only=True)
class Coded:
    """The rows of a table.

    Attributes:
        names: The P columns.
        codes: ``(N, P)`` int32, one code a cell.
        numbers: For each number column ``(N,)`` float64; days or seconds since 1970 for dates and moments; NaN where
            missing.
    """

    names: tuple[str, ...]
    codes: Integers
    numbers: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: np.ndarray[Any, Any]) -> Coded:
        """Return the selected rows."""
        numbers = {name: values[rows] for name, values in self.numbers.items()}
        return Coded(names=self.names, codes=self.codes[rows], numbers=numbers)


@dataclass(frozen=True, kw_only=True)
class Coder:
    """Reads tables of one schema.

    Attributes:
        schema: The public facts; nothing else decides a bin.
        columns: The measured columns, in the schema's order, each allowed to be missing.
    """

    schema: ResolvedSchema
    columns: Mapping[str, Column] = field(init=False)
    _encodings: Mapping[str, ColumnEncoding] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        columns = {
            name: column.model_copy(update={"missing": column.missing if column.may_be_missing else True})
            for name, column in self.schema.columns.items()
            if column.modelled and name not in self.schema.repeated
        }
        object.__setattr__(self, "columns", columns)
        object.__setattr__(
            self, "_encodings", {name: encoding(own, "bins", BINS, alike=True) for name, own in columns.items()}
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The P measured columns."""
        return tuple(self.columns)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each column; the last one is missing."""
        return tuple(encoding.parts[0].size for encoding in self._encodings.values())

    def read(self, frame: pd.DataFrame, what: str) -> Coded:
        """Return the codes of a frame, canonical or of the schema's own dtypes.

        Args:
            frame: One row per record.
            what: Name of the table in messages.

        Raises:
            DataError: A column is missing, or a cell does not fit it.
        """
        if not len(frame):
            raise DataError("has no rows", field=what, remedy="give at least one")
        codes = np.empty((len(frame), len(self.columns)), dtype=np.int32)
        numbers = {}
        for place, (name, column) in enumerate(self.columns.items()):
            if name not in frame.columns:
                raise DataError(f"is not a column of {what}", field=name, remedy="evaluate tables of one schema")
            cell = cells.canonical_again(frame[name].reset_index(drop=True), column, name)
            codes[:, place] = self._encodings[name].compact(cell)[0]
            if column.bounded:
                numbers[name] = _as_fitted(column, column.numbers_of(cell))
        return Coded(names=self.names, codes=codes, numbers=numbers)

    def edges(self, name: str) -> Floats:
        """Return the ``(B + 1,)`` edges of a number's public bins."""
        return self.columns[name].bins(BINS).edges

    def labels(self, name: str) -> tuple[str, ...]:
        """Return the meaning of a discrete column's codes, missing last."""
        return (*(label(value) for value in self.columns[name].domain), MISSING)

    def bounds(self, name: str) -> tuple[float, float, float]:
        """Return a number's public lower and upper bound and the step between neighbouring values (0: none)."""
        column = self.columns[name]
        return *column.known_grid, column.unit

    def place(self, name: str, numbers: Floats) -> Floats:
        """Return ``(N,)`` a column's numbers relative to its public bounds, 0 to 1; NaN where missing."""
        lower, upper, unit = self.bounds(name)
        return np.asarray((np.clip(numbers, lower, upper) - lower) / max(upper - lower, unit), dtype=np.float64)


def _as_fitted(column: Column, numbers: Floats) -> Floats:
    """Return ``(N,)`` numbers as a fit reads them, of no more decimals or steps; beyond the bounds as they stand."""
    lower, upper = column.known_grid
    inside = (numbers >= lower) & (numbers <= upper)
    return np.where(inside, column.snap(numbers), numbers)
