"""The noisy contingency tables of a release, and the margins of their counts.

One Parquet file holds all tables of so many columns, a row a cell:

==================  ==========================================================================================
column              contents
==================  ==========================================================================================
table               the number of the table in the file, from 0
column_1, cell_1    what is counted along the first axis, and the cell: a value, a range ``30..39``, ``(missing)``,
                    of one of several kinds ``(missing: DK)``
column_2, cell_2    the same along the second, and so on
count               the noisy count, as the mechanism released it: it may be negative
noise_sd            the standard deviation of its noise; earlier versions called it ``standard_error``
==================  ==========================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from doublure.errors import SettingError
from doublure.intervals import IN_95_OF_100
from doublure.schema import ResolvedSchema
from doublure.training.noisy_tables import NoisyTable

FOLDER = "tables"
LIMIT = (
    "Counts in tables/ carry noise of the standard deviation that stands beside each; they may be negative, and do not "
    "agree with one another or with the rows. The noise is not the whole error: sampling adds to it."
)
_NAMES = {1: "one-way", 2: "two-way", 3: "three-way"}
_CHUNK_ROWS = 1 << 18
_NOISE, _FORMERLY = "noise_sd", "standard_error"
_COLUMNS = {
    "table": "which table of the file, counted from 0",
    "column_K": "what is counted along axis K: a column, or how far it lies above another",
    "cell_K": "the cell: a value, a range with both ends, several with | between, (missing) or (missing: TEXT)",
    "count": "the noisy count, as it was released",
    _NOISE: "the standard deviation of the count's noise, in records; sampling is not in it",
}
CONFIDENCE = 0.95


def refuse_none(tables: Sequence[NoisyTable]) -> None:
    """Refuse to release tables where the fit bought none.

    Raises:
        SettingError: There is no table.
    """
    if not tables:
        raise SettingError(
            "are none: the method hands out no tables, or an earlier version made the run",
            field="tables",
            remedy="leave it out, or fit with method statistics",
        )


def write_noisy_tables(bundle: Path, tables: Sequence[NoisyTable], about: Mapping[str, str]) -> dict[str, int]:
    """Write tables into a bundle.

    Args:
        bundle: The bundle's folder.
        tables: One or more.
        about: The metadata of each file.

    Returns:
        Path within the bundle -> number of rows (cells).
    """
    (bundle / FOLDER).mkdir()
    sized: dict[int, list[NoisyTable]] = {}
    for table in tables:
        sized.setdefault(len(table.columns), []).append(table)
    return {(path := table_path(size)): _write(bundle / path, size, own, about) for size, own in sorted(sized.items())}


def described(files: Mapping[str, int]) -> dict[str, Any]:
    """Return the dictionary's entry about the tables."""
    return {"files": [{"path": path, "cells": cells} for path, cells in files.items()], "columns": _COLUMNS}


def table_path(size: int) -> str:
    """Return the path, within a bundle, of tables of so many axes."""
    return f"{FOLDER}/{_NAMES.get(size, f'{size}-way')}.parquet"


def table_columns(size: int, dictionary: Mapping[str, Any]) -> list[str]:
    """Return the columns of a file of tables of so many axes, in a bundle of this dictionary."""
    noise = _FORMERLY if _FORMERLY in dictionary["tables"]["columns"] else _NOISE
    axes = [f"{part}_{axis}" for axis in range(1, size + 1) for part in ("column", "cell")]
    return ["table", *axes, "count", noise]


def _write(path: Path, size: int, tables: Sequence[NoisyTable], about: Mapping[str, str]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = pa.dictionary(pa.int32(), pa.string())
    axes = [field for axis in range(1, size + 1) for field in ((f"column_{axis}", text), (f"cell_{axis}", text))]
    fields = [("table", pa.int32()), *axes, ("count", pa.int64()), (_NOISE, pa.float64())]
    schema = pa.schema(fields, metadata={key.encode(): value.encode() for key, value in about.items()})
    rows = 0
    with path.open("wb") as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(tables, schema):
            writer.write_table(batch)
            rows += batch.num_rows
    return rows


def _batches(tables: Sequence[NoisyTable], schema: Any) -> Iterator[Any]:
    import pyarrow as pa

    held: list[Any] = []
    for number, table in enumerate(tables):
        held.append(_arrow(number, table, schema))
        if sum(part.num_rows for part in held) >= _CHUNK_ROWS:
            yield pa.concat_tables(held).unify_dictionaries()
            held = []
    if held:
        yield pa.concat_tables(held).unify_dictionaries()


def _arrow(number: int, table: NoisyTable, schema: Any) -> Any:
    import pyarrow as pa

    shape, cells = table.counts.shape, table.counts.size
    places = np.indices(shape, dtype=np.int32).reshape(len(shape), cells)
    arrays = [pa.array(np.full(cells, number, dtype=np.int32))]
    for column, names, own in zip(table.columns, table.cells, places, strict=True):
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(np.zeros(cells, dtype=np.int32)), pa.array([column])))
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(own), pa.array(list(names), type=pa.string())))
    arrays += [pa.array(table.counts.ravel()), pa.array(np.full(cells, table.standard_error))]
    return pa.Table.from_arrays(arrays, schema=schema)


# -- the margin of error of a count of one column, from its noise ------------------------------------------------------


def count_margins(schema: ResolvedSchema, tables: Iterable[NoisyTable]) -> dict[str, Any] | None:
    """Return the margin of a count of one column, for each column whose counts were bought.

    1.96 standard errors around a noisy count hold the count of the private data with a confidence of 95 %: the noise is
    (discrete) Gaussian. It follows from the plan, so it costs nothing and reveals nothing about the data.

    Several tables of a column that count the same rows in the same cells are averaged by precision, as the fit does it;
    of others the finest has the count of a value. In related tables they count first and later rows: a count that is
    added up from them has at most the root of their summed squares.

    Args:
        schema: The schema of the columns.
        tables: The bought tables.

    Returns:
        ``confidence``, ``units`` (their number, declared or bought) and ``columns``: name -> margin in records;
        None where no column was counted.
    """
    counted: dict[str, list[NoisyTable]] = {}
    for table in tables:
        if len(table.columns) == 1 and table.columns[0] in schema.columns:
            counted.setdefault(table.columns[0], []).append(table)
    if not counted:
        return None
    spread = _spread_of_average if schema.only_columns and not schema.one_record else _spread_of_sum
    columns = {name: cell_margin(spread(own)) for name, own in counted.items()}
    return {"confidence": CONFIDENCE, "units": schema.public_units, "columns": columns}


def _spread_of_sum(tables: Sequence[NoisyTable]) -> float:
    return math.hypot(*(table.standard_error for table in tables))


def _spread_of_average(tables: Sequence[NoisyTable]) -> float:
    finest = max((table.cells for table in tables), key=lambda cells: len(cells[0]))
    return 1 / math.hypot(*(1 / table.standard_error for table in tables if table.cells == finest))


def cell_margin(standard_error: float) -> int:
    """Return the margin, in records, that noise of this standard deviation keeps within in 19 of 20 cases.

    Example:
        >>> cell_margin(15.0)
        30
    """
    return math.ceil(IN_95_OF_100 * standard_error)


def middle(margins: Iterable[int]) -> int:
    """Return the (upper) median of margins.

    Example:
        >>> middle([80, 20, 40]), middle([80, 20, 40, 60])
        (40, 60)
    """
    ordered = sorted(margins)
    return ordered[len(ordered) // 2]
