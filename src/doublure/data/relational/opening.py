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
a further row with a key of another table,     stays, and rows that name the key hang on the first one that belongs to a
of which rows hang                             unit: one that belongs to none has no say
a row whose parent is left out                 left out
=============================================  =====================================================================

So a unit is a row of the root, the rows that name it, the rows that name these, and so on. Without all of them the
others' rows are what they were.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.relational.records import RelatedRows, RelatedSet
from doublure.data.relational.row_links import look_up
from doublure.data.tables import cells
from doublure.data.tables.containers.registry import bare_name, find_container
from doublure.data.tables.opening import TableSource, open_table
from doublure.data.tables.rules import checked
from doublure.errors import DataError, printable
from doublure.schema.relational import RelationalSchema
from doublure.support.arrays import Ints
from doublure.support.mixing import Marks
from doublure.support.objects import ObjectPath, Place, find_place

if TYPE_CHECKING:
    from doublure.schema import Schema
    from doublure.schema.columns import Column
    from doublure.schema.related_table import RelatedTable
    from doublure.schema.written import Written

Given: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | RelatedRows


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
            needed += _keys_read(described, name)
            with named_by(name, described):
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
        frames, units, above = dict[str, pd.DataFrame](), dict[str, Ints](), dict[str, Ints]()
        keys: dict[str, pd.Series[Any]] = {}
        labels: dict[tuple[str, str], pd.Series[Any]] = {}
        marks: Marks = np.zeros(0, dtype=np.uint64)
        for link in self.linked(described):
            frames[link.name] = link.frame.iloc[link.kept].reset_index(drop=True)
            units[link.name] = link.unit[link.kept]
            labels |= {(link.name, own): each.iloc[link.kept] for own, each in link.named.items()}
            if link.keys is not None:
                keys[link.name] = link.keys.iloc[link.kept]
            if link.owners is None and link.keys is not None:
                if len(link.kept) < at_least:
                    remedy = "give the tables that the schema describes"
                    raise DataError(f"has fewer than {at_least} rows in {root}", field=self.name, remedy=remedy)
                marks = mark_keys(keys[link.name])
                continue
            if described.tables[link.name].parent != root:
                above[link.name] = link.hangs_on[link.kept]
        look_up(frames, units, keys, labels, described)
        every = units.pop(root)
        content = RelatedRows(schema=described, frames=frames, parents=units, above=above, marks=marks)
        return RelatedSet(content=content, unit=every, n_units=len(every))

    def linked(self, schema: RelationalSchema, *, keys_alone: bool = False) -> Iterator[LinkedTable]:
        """Yield each table, and which of its rows belong to which unit: parents before what hangs on them.

        Args:
            schema: Which tables and columns to read, and how.
            keys_alone: Whether keys and orders alone are read; then facts may be undeclared.

        Raises:
            DataError: A cell does not fit its column and the schema has no public rule for it.
        """
        holders: dict[str, _KeyHolders] = {}
        for name in (schema.root, *schema.children):
            table = schema.tables[name]
            with named_by(name, schema):
                frame, labels = self._read(schema, name, _keys_and_orders(table) if keys_alone else _modelled(table))
                frame = frame if keys_alone else checked(frame, schema.table(name))
            owners = _joined(labels, table.foreign_keys)
            keys = _joined(labels, table.keys) if name == schema.root or _named(schema, name) else None
            if owners is None:
                keys = pd.Series(dtype=object) if keys is None else keys
                kept = np.flatnonzero((keys.notna() & ~keys.duplicated()).to_numpy())
                hangs_on = unit = _ranked(kept, len(keys))
            else:
                unit, hangs_on = holders[table.parent or ""].named_by(owners)
                order = None if table.order is None else frame.get(table.order)
                most = table.max_children if isinstance(table.max_children, int) else len(owners)
                kept = kept_rows(hangs_on, order, most)
            if keys is not None:
                holders[name] = _KeyHolders(keys, unit, _ranked(kept, len(keys)))
            yield LinkedTable(
                name=name, frame=frame, keys=keys, owners=owners, unit=unit, hangs_on=hangs_on, kept=kept,
                named={own: labels[own] for own in table.links or {}},
            )  # fmt: skip

    def _read(
        self, schema: RelationalSchema, name: str, wanted: Mapping[str, Column]
    ) -> tuple[pd.DataFrame, dict[str, pd.Series[Any]]]:
        """Return columns in canonical form, and the labels of the keys that are read; None where a row has none."""
        table, source = schema.tables[name], self.tables[name]
        keys, frames = _keys_read(schema, name), []
        labels: dict[str, list[pd.Series[Any]]] = {key: [pd.Series(dtype=object)] for key in keys}
        for raw in source.chunks(list(dict.fromkeys([*wanted, *keys])), schema.misfit):
            for key in keys:
                tokens = table.columns[key].missing_tokens
                labels[key].append(cells.unit_ids(raw[key], key, tokens, "coerce"))
            frames.append(_canonical(raw, wanted, schema))
        if not frames:
            frames.append(_canonical(pd.DataFrame(columns=list(wanted), dtype=object), wanted, schema))
        rows = cells.concatenate(frames, list(wanted))
        return rows, {key: pd.concat(labels[key], ignore_index=True) for key in keys}


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedTable:
    """A table as it is read, and what belongs to whom.

    Attributes:
        name: The table's name.
        frame: ``(M, …)`` its rows in canonical columns.
        keys: ``(M,)`` labels of its key, of the root and of a table on which rows hang; None: of no other.
        owners: ``(M,)`` labels of its foreign key; None: it is the root.
        unit: ``(M,)`` the unit of each row; -1: none.
        hangs_on: ``(M,)`` the place of the row that it hangs on, among those that are kept; -1: there is none.
        kept: ``(K,)`` the rows that are kept, unit by unit and in order.
        named: Column -> ``(M,)`` labels of the rows that it names, beside the parent's.
    """

    name: str
    frame: pd.DataFrame
    keys: pd.Series[Any] | None
    owners: pd.Series[Any] | None
    unit: Ints
    hangs_on: Ints
    kept: Ints
    named: Mapping[str, pd.Series[Any]]


def _ranked(kept: Ints, rows: int) -> Ints:
    """Return the place of each row among those that are kept; -1: it is left out."""
    found = np.full(rows, -1, dtype=np.int64)
    found[kept] = np.arange(len(kept))
    return found


def _modelled(table: RelatedTable) -> dict[str, Column]:
    return {own: column for own, column in table.columns.items() if column.modelled}


def _keys_and_orders(table: RelatedTable) -> dict[str, Column]:
    """Return the order of a table, if its bounds are declared."""
    order = table.columns.get(table.order or "")
    return {} if order is None or order.ends is None else {table.order or "": order}


class _KeyHolders:
    """The rows of a table that others may hang on.

    Args:
        keys: ``(M,)`` their keys; None: without one.
        unit: ``(M,)`` the unit of each; -1: none.
        places: ``(M,)`` the place of each among the rows that are kept; -1: left out.
    """

    def __init__(self, keys: pd.Series[Any], unit: Ints, places: Ints) -> None:
        some = np.flatnonzero(keys.notna().to_numpy() & (unit >= 0))
        first = some[~keys.iloc[some].duplicated().to_numpy()]
        self._row = pd.Series(first, index=pd.Index(keys.iloc[first], dtype=object))
        self._unit, self._places = np.append(unit, -1), np.append(places, -1)

    def named_by(self, labels: pd.Series[Any]) -> tuple[Ints, Ints]:
        """Return for each label ``(M,)`` the unit of the row that it names, and that row's place; -1: there is none."""
        row = labels.map(self._row).fillna(-1).to_numpy(dtype=np.int64)
        return self._unit[row], self._places[row]


def _keys_read(schema: RelationalSchema, name: str) -> list[str]:
    """Return the keys of a table that say which row belongs to which: its own only where others name it."""
    table = schema.tables[name]
    own = table.keys if _named(schema, name) else ()
    return list(dict.fromkeys([*table.foreign_keys, *own, *(table.links or {})]))


def _named(schema: RelationalSchema, name: str) -> bool:
    """Whether other rows name a table's."""
    return bool(schema.hanging(name)) or schema.named_in_unit(name)


def _joined(labels: Mapping[str, pd.Series[Any]], names: Sequence[str]) -> pd.Series[Any] | None:
    """Return the label of a key of several columns, of which none is missing; that of one column as it is."""
    if len(names) < 2:
        return labels[names[0]] if names else None
    found = pd.Series([repr(each) for each in zip(*(labels[name] for name in names), strict=True)], dtype=object)
    missing = np.any([labels[name].isna() for name in names], axis=0)
    return found.mask(missing, None)


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
def named_by(name: str, schema: RelationalSchema) -> Iterator[None]:
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
