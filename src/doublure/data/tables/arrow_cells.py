"""Columns of Arrow in canonical form: read at once where the column can, cell by cell otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pandas as pd

from doublure.data.tables import cells
from doublure.data.tables.arrow_text import in_pandas
from doublure.errors import DataError
from doublure.schema.distinct_cells import is_text
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pyarrow as pa

    from doublure.schema.columns import Column

Raw: TypeAlias = "pd.Series[Any] | pa.Array"


def canonical(raw: Raw, column: Column, name: str, misfit: Misfit = "refuse") -> pd.Series[Any]:
    """Return one column in canonical form, as :func:`doublure.data.tables.cells.canonical` has it.

    Raises:
        DataError: Naming the column and the rule, never the cell; with ``misfit="coerce"`` never.
    """
    if isinstance(raw, pd.Series):
        return cells.canonical(raw, column, name, misfit)
    alike = column.missing_states < 2  # else each cell tells its kind of missing
    found = type(column).read_at_once(column, raw, name, misfit) if alike else None
    if found is not None:
        return cells.admitted(found, column, name, misfit)
    return cells.canonical(as_series(raw, name), column, name, misfit)


def as_series(raw: Raw, name: str) -> pd.Series[Any]:
    """Return a column as pandas has it, each distinct text once.

    Raises:
        DataError: It is of a type that pandas does not know.
    """
    if isinstance(raw, pd.Series):
        return raw
    import pyarrow as pa

    try:
        if pa.types.is_dictionary(raw.type) and (
            raw.dictionary.null_count or len(raw.dictionary.unique()) < len(raw.dictionary)
        ):
            raw = raw.dictionary_decode()
        if is_text(raw.type):
            raw = raw.cast(pa.large_string()).dictionary_encode()
        return in_pandas(raw)
    except pa.ArrowException:
        raise DataError("has cells of a type that is not read", field=name, remedy="use texts or numbers") from None
