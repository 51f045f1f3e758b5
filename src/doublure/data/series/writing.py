"""Writing synthetic time series: long CSV or Parquet, a row a step, or NPZ; streamed, whole or not there."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from doublure.data import npz
from doublure.data.series.clock import clock_texts
from doublure.data.series.records import Series
from doublure.data.series.stamps import stamped, stamped_starts
from doublure.data.tables.writing import FORMATS as ROWS
from doublure.data.tables.writing import write_table
from doublure.errors import SettingError
from doublure.schema.scalars import label
from doublure.schema.series import CHANNELS, CLOCK, STATES, STEP, VALUES, SeriesSchema
from doublure.support import files

FORMATS = (".npz", *ROWS)

_EXACT_FLOAT32 = 2**23
_FAST = 1


def write_series(
    chunks: Iterable[Series],
    path: Path,
    schema: SeriesSchema,
    n: int,
    *,
    spreadsheet_safe: bool = False,
    about: Mapping[str, str],
) -> int:
    """Write series to ``path`` as they come; its ending chooses the form.

    =======================  =========================================================================================
    ``.npz``                 ``values`` ``(n, length, channels)``, ``channels``, an array an attribute, ``about``, and
                             ``states_x``, the values of a channel ``x`` of states
    ``.csv``, ``.parquet``   a row a step: ``series`` from 1, ``step`` from 0, ``clock`` where a series is one day,
                             attributes, channels; with ``stamped_from`` the moment in place of ``clock``, and the
                             series' number by the names that the data has for it
    =======================  =========================================================================================

    Args:
        chunks: The series.
        path: Where to.
        schema: Supplies the length, the channels and their types.
        n: How many series there will be.
        spreadsheet_safe: Put ``'`` before text that a spreadsheet would run as a formula.
        about: Public texts to keep with them, the watermark among them.

    Returns:
        How many series were written.

    Raises:
        SettingError: The ending is of another form.
    """
    check_ending(path)
    if path.suffix == ".npz":
        files.write_atomic(path, lambda file: _write_npz(chunks, file, schema, n, about))
    else:
        write_table(_long(chunks, schema), path, schema, spreadsheet_safe=spreadsheet_safe, metadata=dict(about))
    return n


def check_ending(path: Path) -> None:
    """Refuse a file name whose ending names no form.

    Raises:
        SettingError: Naming the endings that do.
    """
    if path.suffix not in FORMATS:
        remedy = f"end it in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        raise SettingError("has no known ending for series", field=path.name, remedy=remedy)


def number_type(schema: SeriesSchema) -> np.dtype[Any]:
    """Return what values are written as in arrays: float32, or float64 where a channel has more digits than that."""
    sizes = [
        max(map(abs, ends)) / channel.unit
        for channel in schema.channels.values()
        if (ends := channel.ends) is not None and channel.unit
    ]
    return np.dtype(np.float64 if max(sizes, default=0) > _EXACT_FLOAT32 else np.float32)


def _write_npz(
    chunks: Iterable[Series], file: BinaryIO, schema: SeriesSchema, n: int, about: Mapping[str, str]
) -> None:
    drawn = iter(chunks)
    begun = list(itertools.islice(drawn, 1))
    length = begun[0].length if begun else schema.length
    attributes: list[pd.DataFrame] = []
    by_window: list[pd.DataFrame] = []

    def blocks() -> Iterator[Any]:
        for chunk in itertools.chain(begun, drawn):
            yield chunk.values
            attributes.append(chunk.attributes)
            by_window.append(chunk.by_window)

    def beside() -> dict[str, Any]:
        form = schema.cell_form
        found: dict[str, Any] = {}
        for parts, shape in ((attributes, (n,)), (by_window, (n, -1))):
            cells_of = form.formed(pd.concat(parts, ignore_index=True), as_text=False).items()
            found |= {str(name): npz.plain(cells).reshape(shape) for name, cells in cells_of}
        states = {f"{STATES}{name}": np.array(list(map(label, values))) for name, values in schema.states.items()}
        return {CHANNELS: np.array(list(schema.channels)), **states, **found, **about}

    form = npz.Header(shape=(n, length, len(schema.channels)), dtype=number_type(schema))
    npz.write(file, VALUES, form, blocks(), beside, level=_FAST)


def _long(chunks: Iterable[Series], schema: SeriesSchema) -> Iterator[pd.DataFrame]:
    """Yield rows of the schema's own types."""
    first, clock = 1, None if schema.stamps else clock_texts(schema.series, schema.length)
    for chunk in chunks:
        frame = chunk.frame(first)
        if schema.stamps:
            starts = stamped_starts(chunk.attributes, first, schema) if chunk.starts is None else chunk.starts
            frame = stamped(frame, starts, first, schema)
        first += len(chunk)
        for name, channel in schema.channels.items():
            if channel.integral and name not in schema.states:
                frame[name] = frame[name].astype("Int64" if schema.may_be_missing(name) else np.int64)
        if clock is not None:
            texts = pd.Categorical.from_codes(
                frame[STEP].to_numpy() % schema.length, categories=pd.Index(clock, dtype="str")
            )
            frame.insert(2, CLOCK, pd.Series(texts))
        yield frame
