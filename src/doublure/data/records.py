"""Private records under a schema, whatever the kind of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.errors import DataError
from doublure.schema.columns.made_rows import MadeRows
from doublure.schema.images import ImageSchema
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema import Schema


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Loaded:
    """Private records under a schema.

    Attributes:
        unit: ``(N,)`` int64, the index of each record's unit, 0 … n_units - 1.
        n_units: How many units there are. Private.
        repeatable: Whether loading the same data again gives the same records: of a unit with more than are used, the
            first ones, or ones drawn at random. Private.
    """

    unit: np.ndarray[Any, np.dtype[np.int64]]
    n_units: int
    repeatable: bool = True

    if TYPE_CHECKING:

        @property
        def content(self) -> Any:
            """The records in the form that the kind's encoder reads."""

        @property
        def frame(self) -> pd.DataFrame:
            """The columns beside what a record is made of: all of a table's, an image's label, a series' attributes."""

    @property
    def most_records(self) -> int:
        """The largest number of records of one unit. Private."""
        return int(np.bincount(self.unit, minlength=1).max())

    def cells(self, column: str, fact: str) -> pd.Series[Any]:
        """Return what the statistic for a fact of a column looks at: one cell a record, whatever is asked of them."""
        return self.frame[column]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"


def refuse_repeated(schema: Schema, *, repeated: bool) -> None:
    """Refuse units with several records where the schema says that each has one, and refuses what does not fit.

    Raises:
        DataError: Naming the column, and neither a unit nor a count.
    """
    if repeated and schema.one_each:
        raise DataError(several_records(schema.unit.name), field=schema.unit.id, remedy=SEVERAL)


SEVERAL = "say how many of each are used: max_records; or use one of each: misfit: coerce"
"""The remedy where units have several records and the schema says one."""


def several_records(unit: str) -> str:
    """Return the message that units have several records where the schema says one."""
    return f"names a {unit} in several records, and max_records is 1"


def taken(records: Any, rows: Any) -> Any:
    """Return some records, of a frame or of a kind's own container, as a fit loads or a sample returns them."""
    return records.iloc[rows].reset_index(drop=True) if hasattr(records, "iloc") else records.take(rows)


def with_made(records: Any, schema: Schema, before: int, seed: int) -> Any:
    """Return synthetic records with the columns that are made anew; related tables get them as they are handed out.

    Args:
        records: As an encoder decodes them.
        schema: What is public of them.
        before: How many records of the sample come before them.
        seed: Of the sample.
    """
    if hasattr(records, "with_made"):
        return records.with_made(before, seed)
    if not schema.only_columns:
        return records
    numbers = np.arange(before + 1, before + len(records) + 1, dtype=np.int64)
    rows = MadeRows(seed=seed, numbers=numbers, units=numbers, cells=records, columns=schema.columns)
    made = {name: column.made(rows, name) for name, column in schema.columns.items() if not column.modelled}
    return with_columns(records, made) if made else records


def count_rows(records: Any) -> int:
    """Return how many rows some records are handed out as: one each, but for units of several rows of one table."""
    return getattr(records, "n_rows", len(records))


def filling(records: Any, rows: int) -> Any:
    """Return the first records that are so many rows, or all if they are fewer; units of several rows stay whole."""
    return records.filling(rows) if hasattr(records, "filling") else taken(records, slice(rows))


def handed_out(records: Any, schema: Schema) -> Any:
    """Return a sample as it is handed out: rows in the schema's form, related tables as frames with keys.

    Images have the numbers of the schema's range; series are handed out as they are.
    """
    if hasattr(records, "of_range"):
        return records.of_range(ImageSchema.of(schema).images)
    if hasattr(records, "handed_out"):
        found = records.handed_out()
        return {name: schema.cell_form.of_table(name).formed(rows, as_text=False) for name, rows in found.items()}
    return schema.cell_form.formed(records, as_text=False) if hasattr(records, "iloc") else records


def joined(parts: Sequence[Any]) -> Any:
    """Return several sets of such records as one."""
    import pandas as pd

    return pd.concat(parts, ignore_index=True) if hasattr(parts[0], "iloc") else parts[0].joined(parts)
