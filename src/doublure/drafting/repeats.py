"""Count how often the ids of a table repeat, and texts that may be ids, for the data owner only.

The counts are private: they stand in a file of mode 0600 and in the owner's own terminal, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from doublure.data.tables import cells
from doublure.data.tables.arrow_cells import as_series
from doublure.data.tables.opening import open_table
from doublure.drafting.whose import id_names
from doublure.errors import counted, printable
from doublure.schema.schema import Schema
from doublure.schema.unit import people_in


@dataclass(frozen=True)
class LabelCounts:
    """Counts of a column's labels. Private.

    Attributes:
        column: The column.
        different: How many different labels there are.
        rows: How many rows have one.
    """

    column: str
    different: int
    rows: int


class RepeatedId(LabelCounts):
    """An id that stands in several rows."""

    def __str__(self) -> str:
        return f"stands in several rows: {self.different:,} different in {counted(self.rows, 'row')}"

    @property
    def line(self) -> str:
        """The counts with their column."""
        return f"{printable(self.column)}: {self.different:,} different in {counted(self.rows, 'row')}"


def repeated_ids(schema: Schema, data: str | Path | pd.DataFrame) -> list[RepeatedId]:
    """Return the ids that repeat, of columns of type id and of those named as people's ids. Private.

    Raises:
        DataError: The container cannot be read, or a column is not there.
    """
    named = id_names(schema.columns)
    wanted = {
        name: column.missing_tokens
        for name, column in schema.columns.items()
        if column.identifies or (column.modelled and name in named and people_in(name) is not None)
    }
    ids = _labels(schema, data, wanted)
    found = [RepeatedId(name, own.nunique(), len(own)) for name, own in ids.items()]
    return [each for each in found if each.different < each.rows]


class LikelyId(LabelCounts):
    """Texts of unknown vocabulary that are too many for a list of words."""

    def __str__(self) -> str:
        return (
            f"has {counted(self.different, 'different text')} in {counted(self.rows, 'row')}; if each names a person "
            "or a thing, make it type: id, and say under unit whose it is"
        )

    @property
    def line(self) -> str:
        """The counts with their column."""
        return f"{printable(self.column)}: {self}"


def likely_ids(schema: Schema, data: str | Path | pd.DataFrame) -> list[LikelyId]:
    """Return columns whose texts, of no declared list, are so many that each stands in few rows. Private.

    Few is less than the square root of the rows: as many texts as that, a list of words has in no table that is long.

    Raises:
        DataError: The container cannot be read, or a column is not there.
    """
    wanted = {
        name: column.missing_tokens
        for name, column in schema.columns.items()
        if column.listed and not (column.ordered or column.domain) and column.fact("values") is not None
    }
    found = [LikelyId(name, own.nunique(), len(own)) for name, own in _labels(schema, data, wanted).items()]
    return [each for each in found if each.different**2 > each.rows]


def _labels(
    schema: Schema, data: str | Path | pd.DataFrame, wanted: Mapping[str, Collection[str]]
) -> dict[str, pd.Series[Any]]:
    """Return the cells of columns as labels of ids, without empty ones.

    Args:
        schema: Says how the file is written.
        data: The table.
        wanted: The columns, with their texts that mean missing.
    """
    source = open_table(data, schema.written)
    source.check(schema)
    if not wanted:
        return {}
    labels: dict[str, list[pd.Series[Any]]] = {name: [] for name in wanted}
    for raw in source.raw(list(wanted)):
        for name, tokens in wanted.items():
            labels[name].append(cells.unit_ids(as_series(raw[name], name), name, tokens, "coerce"))
    return {name: pd.concat(parts or [pd.Series(dtype=object)]).dropna() for name, parts in labels.items()}
