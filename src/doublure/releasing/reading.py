"""Reading the files of a bundle as its data dictionary describes them, a batch at a time.

A table's rows come as read columns (:mod:`doublure.releasing.cells`), the same from each form in which a bundle holds
them, in batches of the same size. Nothing is guessed: a file that is not what the dictionary says is refused.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from doublure.data import npz
from doublure.data.tables.arrow_cells import as_series
from doublure.data.tables.containers.registry import find_container
from doublure.data.tables.row_forms import ROW_WRITERS
from doublure.errors import DataError
from doublure.releasing.cells import Cells, DescribedColumn, InvalidCell
from doublure.schema.columns import CategoryColumn, IntegerColumn
from doublure.schema.columns.spelling import TextMarks
from doublure.schema.images import LABEL, LABELS
from doublure.schema.series import ABOUT, CHANNELS, CLOCK, SERIES, STATES, STEP, VALUES

BATCH = 20_000
"""Rows in memory at once, of each form."""

_SAID = {*ABOUT, "pandas"}
TYPED = (".parquet", ".feather", ".xlsx", ".jsonl", ".dta", ".sav")
"""The forms of rows whose cells have types."""
FORMS = (".csv", ".parquet", ".npz", *TYPED[1:])
_UNREADABLE = (*npz.DAMAGED, UnicodeDecodeError, csv.Error, TypeError, IndexError, KeyError, AttributeError, DataError)

Batch = dict[str, Cells]


class ContentMismatch(Exception):
    """A file does not match the card or the data dictionary.

    Args:
        what: The fault.
        field: The file, with the column if there is one.
    """

    def __init__(self, what: str, field: str) -> None:
        super().__init__(what)
        self.what, self.field = what, field


@dataclass(frozen=True, kw_only=True)
class DescribedTable:
    """A table of a bundle, as the dictionary describes it.

    Attributes:
        name: The name of its files, without an ending.
        columns: Its columns, in order.
        series: The dictionary's entry about series; None for other kinds.
        text: The dictionary's keys about CSV files: delimiter, encoding and so on.
    """

    name: str
    columns: tuple[DescribedColumn, ...]
    series: Mapping[str, Any] | None = None
    text: Mapping[str, Any] = field(default_factory=dict)

    def column(self, name: str) -> DescribedColumn:
        """Return the column of that name."""
        return next(each for each in self.columns if each.name == name)


def key_names(key: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a key, as a dictionary has it: a name, or several."""
    return (key,) if isinstance(key, str) else tuple(key)


def described_tables(described: Mapping[str, Any]) -> list[DescribedTable]:
    """Return the tables that a dictionary describes; none of images.

    Raises:
        KeyError, TypeError, ValueError: It is no dictionary of this form.
    """
    text = described.get("text", {})
    marks = TextMarks(*(text.get(key) for key in TextMarks._fields))
    read = partial(DescribedColumn.from_entry, safe="spreadsheet_safe" in described, marks=marks)
    entries = {str(entry["name"]): entry for entry in described["columns"]}
    if "related" in described:
        return [
            DescribedTable(
                name=str(name),
                columns=tuple(read(entries[f"{name}.{own}"], own) for own in told["columns"]),
                text=text,
            )
            for name, told in described["related"].items()
        ]
    if "series" not in described:
        columns = tuple(read(entry, name) for name, entry in entries.items())
        return [DescribedTable(name="data", columns=columns, text=text)]
    told = described["series"]
    # Files of series number their rows; these columns are the file's, and no schema has them.
    counted = [
        DescribedColumn(name=SERIES, written=SERIES, model=IntegerColumn),
        DescribedColumn(name=STEP, written=STEP, model=IntegerColumn, bounds=(0, int(told["length"]) - 1)),
        DescribedColumn(name=CLOCK, written=CLOCK, model=CategoryColumn),
    ]
    counted[2:] = _stamps(told["stamps"], marks) if "stamps" in told else counted[2:]
    own = [read(entries[name], name) for name in (*told["attributes"], *told["channels"])]
    return [DescribedTable(name="data", columns=(*counted, *own), series=told, text=text)]


def _stamps(told: Mapping[str, Any], marks: TextMarks) -> list[DescribedColumn]:
    """Return the columns of stamped series: their number by other names, and the moment of each step."""
    numbers = [DescribedColumn(name=str(name), written=str(name), model=IntegerColumn) for name in told["of_series"]]
    moment = {"name": told["time"], "type": told["type"], "values": None, "bounds": None, "missing": False}
    clock = [told["time_of_day"]] if "time_of_day" in told else []
    times = [DescribedColumn(name=str(name), written=str(name), model=CategoryColumn) for name in clock]
    return [*numbers, DescribedColumn.from_entry(moment, str(told["time"]), marks=marks), *times]


def described_beside(described: Mapping[str, Any]) -> dict[str, DescribedColumn]:
    """Return the columns beside images that a dictionary describes, by the names of their arrays: label, attributes."""
    named = {str(entry["name"]): entry for entry in described["columns"]}
    return {LABELS if name == LABEL else name: DescribedColumn.from_entry(entry, name) for name, entry in named.items()}


def batches(path: Path, table: DescribedTable, about: Mapping[str, str] | None = None) -> Iterator[Batch]:
    """Yield a table's rows from one of its files, in batches of :data:`BATCH` but for the last.

    Args:
        path: The file; its ending gives its form.
        table: The table that it should hold.
        about: The metadata of files with a place for them; None: unchecked.

    Raises:
        ContentMismatch: It holds something else.
    """
    try:
        read = {".csv": _of_csv, ".npz": _of_series, ".jsonl": _of_json_lines, ".parquet": _of_parquet}
        yield from _regrouped(read.get(path.suffix, _of_records)(path, table, about))
    except InvalidCell:
        raise ContentMismatch("has a cell that is none of its column's type", path.name) from None
    except _UNREADABLE:
        raise ContentMismatch("cannot be read", path.name) from None


def _regrouped(parts: Iterable[Batch]) -> Iterator[Batch]:
    held: list[Batch] = []
    rows = 0
    for part in parts:
        held.append(part)
        rows += len(next(iter(part.values())))
        while rows >= BATCH:
            whole = _joined(held)
            yield {name: cells[:BATCH] for name, cells in whole.items()}
            held, rows = [{name: cells[BATCH:] for name, cells in whole.items()}], rows - BATCH
    if rows:
        yield _joined(held)


def _joined(parts: Sequence[Batch]) -> Batch:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _named(header: Sequence[str], table: DescribedTable, name: str) -> list[DescribedColumn]:
    """Return a file's columns, once they are the dictionary's in their order; series may have no clock."""
    known = [each for each in table.columns if table.series is None or each.name != CLOCK or CLOCK in header]
    if list(header) != [each.written for each in known]:
        raise ContentMismatch("has other columns than the dictionary describes", name)
    return known


# -- CSV and Parquet -------------------------------------------------------------------------------------------------


def _of_csv(path: Path, table: DescribedTable, about: Mapping[str, str] | None) -> Iterator[Batch]:
    del about  # it has no place for it
    text = table.text
    with path.open(encoding=text.get("encoding", "utf-8"), newline="") as file:
        lines = csv.reader(file, delimiter=text.get("delimiter", ","), strict=True)
        known = [each.written for each in table.columns]
        columns = _named(next(lines, []) if text.get("header", True) else known, table, path.name)
        held: list[list[str]] = []
        for line in lines:
            if len(line) != len(columns):
                raise ContentMismatch("has a line with another number of cells than its first", path.name)
            held.append(line)
            if len(held) == BATCH:
                yield _of_lines(held, columns)
                held = []
        if held:
            yield _of_lines(held, columns)


def _of_lines(lines: list[list[str]], columns: Sequence[DescribedColumn]) -> Batch:
    return {told.name: told.of_texts(texts) for told, texts in zip(columns, zip(*lines, strict=True), strict=True)}


def _of_parquet(path: Path, table: DescribedTable, about: Mapping[str, str] | None) -> Iterator[Batch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        columns = _named(file.schema_arrow.names, table, path.name)
        said = {key.decode(): value.decode() for key, value in (file.schema_arrow.metadata or {}).items()}
        check_said(said, about, path.name)
        for part in file.iter_batches(batch_size=BATCH):
            frame = part.to_pandas()
            yield {told.name: told.of_values(frame[told.written]) for told in columns}


def _of_json_lines(path: Path, table: DescribedTable, about: Mapping[str, str] | None) -> Iterator[Batch]:
    del about  # it has no place for it
    with path.open(encoding="utf-8") as file:
        while some := [json.loads(line) for line in itertools.islice(file, BATCH)]:
            columns = _named(list(some[0]), table, path.name)
            if any(list(each) != list(some[0]) for each in some):
                raise ContentMismatch("has an object with other keys than its first", path.name)
            cells = {told: pd.Series([each[told.written] for each in some], dtype=object) for told in columns}
            yield {told.name: told.of_values(own) for told, own in cells.items()}


def _of_records(path: Path, table: DescribedTable, about: Mapping[str, str] | None) -> Iterator[Batch]:
    """Yield rows of a file that this package reads as private data, too: Excel, Feather, Stata, SPSS."""
    container = find_container(path)
    if container is None:
        raise ContentMismatch("is of no form of tables", path.name)
    source = container.opener(path.name)(path, None)
    columns = _named(source.columns, table, path.name)
    if about is not None and not ROW_WRITERS[path.suffix].says(path, about):
        raise ContentMismatch("says something else of itself than the card", path.name)
    for raw in source.raw([told.written for told in columns]):
        yield {told.name: told.of_values(as_series(raw[told.written], told.name)) for told in columns}


def check_said(said: Mapping[str, str], about: Mapping[str, str] | None, name: str) -> None:
    """Check the metadata of a file.

    Raises:
        ContentMismatch: It differs from the card, or has further keys.
    """
    if about is not None and any(said.get(key) != text for key, text in about.items()):
        raise ContentMismatch("carries another guarantee than the card", name)
    if not said.keys() <= _SAID:
        raise ContentMismatch("says more of itself than a released file does", name)


# -- NPZ -------------------------------------------------------------------------------------------------------------


def _of_series(path: Path, table: DescribedTable, about: Mapping[str, str] | None) -> Iterator[Batch]:
    """Yield series in arrays as long rows: one row a step, up to the end of each series.

    Single-precision numbers keep their precision: the other forms have more digits.
    """
    told = table.series or {}
    channels, attributes = list(told["channels"]), list(told["attributes"])
    headers = npz.headers(path)
    states = {name for name in headers if name.startswith(STATES)}
    shape = headers[VALUES].shape
    if set(headers) - states != {VALUES, CHANNELS, *attributes, *ABOUT} or len(states - set(_states(channels))) > 0:
        raise ContentMismatch("has other arrays than the dictionary describes", path.name)
    if len(shape) != 3 or shape[1:] != (told["length"], len(channels)):
        raise ContentMismatch("has series of another shape than the dictionary describes", path.name)
    if npz.array(path, CHANNELS).tolist() != channels:
        raise ContentMismatch("has other channels than the dictionary describes", path.name)
    check_said({key: str(npz.array(path, key)) for key in ABOUT}, about, path.name)
    beside = {name: table.column(name).of_values(npz.array(path, name)) for name in attributes}
    if any(len(cells) != shape[0] for cells in beside.values()):
        raise ContentMismatch("has an attribute of another length than its series", path.name)
    names = {name: npz.array(path, f"{STATES}{name}").tolist() for name in channels if f"{STATES}{name}" in states}
    ends = told.get("ends")
    first = 0
    for values in npz.blocks(path, VALUES, max(1, BATCH // shape[1])):
        number, length = len(values), shape[1]
        own = {name: cells[first : first + number] for name, cells in beside.items()}
        steps = np.full(number, length) if ends is None else own[ends].astype(np.int64)
        inside = (np.arange(length) < steps[:, None]).ravel()
        found: Batch = {
            SERIES: np.repeat(np.arange(first + 1, first + number + 1, dtype=np.float64), length),
            STEP: np.tile(np.arange(length, dtype=np.float64), number),
        }
        found |= {name: np.repeat(cells, length) for name, cells in own.items()}
        for place, name in enumerate(channels):
            cells = values[:, :, place].ravel()
            if not np.isnan(cells[~inside]).all():
                raise ContentMismatch("has a step behind the end of its series", path.name)
            found[name] = _stated(cells, names[name]) if name in names else cells
        yield {name: cells[inside] for name, cells in found.items()}
        first += number


def _states(channels: Iterable[str]) -> list[str]:
    return [f"{STATES}{name}" for name in channels]


def _stated(places: Cells, names: Sequence[str]) -> Cells:
    """Return the labels of states that are stored as places in their list."""
    labels = np.array([*map(str, names), None], dtype=object)
    known = ~np.isnan(places)
    if not np.isin(places[known], np.arange(len(names))).all():
        raise InvalidCell
    found: Cells = labels[np.where(known, places, -1).astype(np.int64)]
    return found


def read_images(
    path: Path, told: Mapping[str, Any], beside: Mapping[str, DescribedColumn], about: Mapping[str, str] | None
) -> tuple[int, dict[str, Cells]]:
    """Return how many images an NPZ file holds and their labels and attributes, once it is as the dictionary says.

    Raises:
        ContentMismatch: It is not.
    """
    try:
        headers = npz.headers(path)
        if set(headers) != {"images", *ABOUT, *beside}:
            raise ContentMismatch("has other arrays than the dictionary describes", path.name)
        shape, dtype = headers["images"].shape, headers["images"].dtype
        if list(shape[1:]) != list(told["shape"]) or dtype != np.dtype(told.get("dtype", "uint8")):
            raise ContentMismatch("has images of another shape than the dictionary describes", path.name)
        check_said({key: str(npz.array(path, key)) for key in ABOUT}, about, path.name)
        lower, upper = told["range"]
        for block in npz.blocks(path, "images", max(1, BATCH // max(1, shape[1]))):
            if not bool(((lower <= block) & (block <= upper)).all()):
                raise ContentMismatch("has numbers outside the range that the dictionary names", path.name)
        found = {name: column.of_values(npz.array(path, name)) for name, column in beside.items()}
    except InvalidCell:
        raise ContentMismatch("has a label or attribute that is none", path.name) from None
    except _UNREADABLE:
        raise ContentMismatch("cannot be read", path.name) from None
    if any(len(cells) != shape[0] for cells in found.values()):
        raise ContentMismatch("has another number of labels or attributes than of images", path.name)
    return shape[0], found
