"""LOAD: related tables from a folder of files or from a mapping, bounded by unit.

Each table is opened and read as one is (:mod:`doublure.data.tables.opening`). Then public rules say what belongs to
which unit; none is an error, and none looks at another unit:

=============================================  =====================================================================
a second row with a key of the root            left out, with nothing hanging on it: the first one has the key
a row of the root without a key                left out
a row of a child table whose parent is not     left out
there, or not named
more than ``max_children`` rows of a parent    the first ones by ``order`` stay, equal ones in file order; without an
                                               order the first ones of the file
=============================================  =====================================================================
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.relational.records import Ints, RelatedRows, RelatedSet
from doublure.data.tables import cells
from doublure.data.tables.containers.registry import bare_name, find_container
from doublure.data.tables.opening import TableSource, open_table
from doublure.data.tables.rules import checked
from doublure.errors import DataError, printable
from doublure.schema.relational import RelationalSchema
from doublure.support.mixing import Marks
from doublure.support.objects import ObjectPath, Place, find_place

if TYPE_CHECKING:
    from doublure.schema import Schema
    from doublure.schema.columns import Column
    from doublure.schema.written import Written

Given: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any] | RelatedRows"


class RelatedSource:
    """Related tables whose containers and headers have been checked and whose rows have not been read."""

    def __init__(self, name: str, tables: Mapping[str, TableSource]) -> None:
        self.name = name
        self.tables = tables

    def check(self, schema: Schema) -> None:
        """Compare the headers with the schema.

        Raises:
            DataError: A table or a column of the schema is not there, or stands twice.
        """
        described = RelationalSchema.of(schema)
        for name, table in described.tables.items():
            if name not in self.tables:
                remedy = "name each file, or entry, as its table"
                raise DataError(f"has no table {name}", field=self.name, remedy=remedy)
            needed = [own for own in table.columns if own not in table.unmodelled]
            needed.append((table.key if table.parent is None else table.foreign_key) or "")
            with _named_by(name, described):
                self.tables[name].check_names(needed)

    def load(self, schema: Schema, *, at_least: int = 2) -> RelatedSet:
        """Read the rows, and keep what belongs to a unit.

        Args:
            schema: Which tables and columns to read, and how.
            at_least: Fewer units than this are refused.

        Raises:
            DataError: A cell does not fit its column and the schema has no public rule for it; there are too few.
        """
        described = RelationalSchema.of(schema)
        self.check(described)
        root = described.root
        with _named_by(root, described):
            frame, keys = self._read(described, root, described.tables[root].key or "")
        first = (keys.notna() & ~keys.duplicated()).to_numpy()
        frame, keys = cells.kept_of(frame, first), cells.kept_of(keys, first)
        if len(frame) < at_least:
            remedy = "give the tables that the schema describes"
            raise DataError(f"has fewer than {at_least} rows in {root}", field=self.name, remedy=remedy)
        place = pd.Series(np.arange(len(keys)), index=pd.Index(keys, dtype=object))
        frames, parents = {root: frame}, {}
        for child in described.children:
            table = described.tables[child]
            with _named_by(child, described):
                rows, owners = self._read(described, child, table.foreign_key or "")
            unit = owners.map(place).fillna(-1).to_numpy(dtype=np.int64)
            kept = kept_rows(unit, None if table.order is None else rows[table.order], described.most(child))
            frames[child], parents[child] = rows.iloc[kept].reset_index(drop=True), unit[kept]
        content = RelatedRows(schema=described, frames=frames, parents=parents, marks=mark_keys(keys))
        return RelatedSet(content=content, unit=np.arange(len(frame), dtype=np.int64), n_units=len(frame))

    def _read(self, schema: RelationalSchema, name: str, key: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
        """Return a table's rows in canonical form, and the labels of a key; None where a row has none."""
        table, source = schema.tables[name], self.tables[name]
        wanted = {own: column for own, column in table.columns.items() if own not in table.unmodelled}
        tokens = table.columns[key].missing_tokens
        frames, labels = [], []
        for raw in source.chunks(list(dict.fromkeys([*wanted, key])), schema.misfit):
            labels.append(cells.unit_ids(raw[key], key, tokens, "coerce"))
            frames.append(_canonical(raw, wanted, schema))
        if not frames:
            frames.append(_canonical(pd.DataFrame(columns=list(wanted), dtype=object), wanted, schema))
            labels.append(pd.Series(dtype=object))
        rows = checked(cells.concatenate(frames, list(wanted)), schema.table(name))
        return rows, pd.concat(labels, ignore_index=True)


def open_related(source: Given, written: Written | None = None) -> RelatedSource:
    """Look at the containers and headers of related tables; no row is read.

    Args:
        source: A folder with one file a table, such as CSV or Parquet, named as the table; or a mapping of tables, each
            a file or a DataFrame.
        written: How their text is to be read, if not as usual; its columns are named ``table.column``.

    Raises:
        DataError: There is no such folder, two files are of one table, or one is of a form that is not read.
    """
    if isinstance(source, RelatedRows):
        source = source.handed_out()
    if isinstance(source, Mapping):
        return RelatedSource("tables", {str(name): _open(table, str(name), written) for name, table in source.items()})
    if not isinstance(source, (str, os.PathLike, ObjectPath)):
        remedy = "give a folder, or a mapping of DataFrames"
        raise DataError("is neither a folder nor a mapping of tables", field="data", remedy=remedy)
    folder = find_place(source)
    if not folder.is_dir():
        raise DataError("is no folder", field=folder, remedy="give the folder that holds one file a table")
    found: dict[str, TableSource] = {}
    for path in _inside(folder):
        name = table_name(path)
        if name is None:
            continue
        if name in found:
            raise DataError(f"has two files of the table {name}", field=folder, remedy="keep one of them")
        found[name] = _open(path, name, written)
    if not found:
        raise DataError("holds no file of a table", field=folder, remedy="put one file a table into it")
    return RelatedSource(folder.name, found)


def _open(table: Any, name: str, written: Written | None) -> TableSource:
    return open_table(table, None if written is None else written.of_table(name))


def _inside(folder: Place) -> list[Place]:
    """Return what lies in a folder, in the order of names."""
    if isinstance(folder, ObjectPath):
        return [path for name, path in folder.inside().items() if "/" not in name]
    return [*sorted(folder.iterdir())]


def table_name(path: Place) -> str | None:
    """Return the table that a file is named for: ``stays`` of ``stays.csv.gz``; None of a file of another form."""
    known = path.is_file() and not path.name.startswith(".") and find_container(path) is not None
    return (bare_name(path) or None) if known else None


def _canonical(raw: pd.DataFrame, wanted: Mapping[str, Column], schema: RelationalSchema) -> pd.DataFrame:
    return pd.DataFrame(
        {name: cells.canonical(raw[name], column, name, schema.misfit) for name, column in wanted.items()}
    )


@contextmanager
def _named_by(name: str, schema: RelationalSchema) -> Iterator[None]:
    """Name columns that are refused by their table, too: several tables may have some of these names."""
    try:
        yield
    except DataError as error:
        known = [printable(own) for own in schema.tables[name].columns]
        refused = [error.field] if error.field in known else str(error.field).split(", ")
        if all(own in known for own in refused):
            error.field = ", ".join(printable(f"{name}.{own}") for own in refused)
        raise


def kept_rows(unit: Ints, order: pd.Series[Any] | None, most: int) -> Ints:
    """Return the places of the rows that are kept, unit by unit and in order.

    Args:
        unit: ``(M,)`` the unit of each row; -1: none.
        order: ``(M,)`` the sort key within a unit; None: as they stand.
        most: The most rows kept of a unit.
    """
    by: np.ndarray[Any, Any] = np.zeros(len(unit))
    if order is not None:  # missing ones last
        numbers = order.astype("int64") if order.dtype.kind == "M" else order
        by = numbers.where(order.notna(), np.inf).to_numpy(dtype=np.float64)
    placed: Ints = np.lexsort((np.arange(len(unit)), by, unit)).astype(np.int64)
    placed = placed[unit[placed] >= 0]
    owner = unit[placed]
    begins = np.searchsorted(owner, owner)  # where the rows of the same unit begin
    return placed[np.arange(len(placed)) - begins < most]


def mark_keys(keys: pd.Series[Any]) -> Marks:
    """Return a number of each key that is as good as random."""
    digests = (hashlib.blake2b(str(key).encode(), digest_size=8).digest() for key in keys)
    return np.fromiter((int.from_bytes(digest, "big") for digest in digests), np.uint64, len(keys))
