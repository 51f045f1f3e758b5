"""Writing synthetic tables: streamed, whole or not there, and on request harmless to a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from doublure.errors import SettingError
from doublure.support.files import write_atomic

if TYPE_CHECKING:
    from doublure.schema import Schema

FORMATS = (".parquet", ".csv")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\0", "＝", "＋", "－", "＠")


def write_table(
    chunks: Iterable[pd.DataFrame],
    path: Path,
    schema: Schema,
    *,
    spreadsheet_safe: bool = False,
    metadata: dict[str, str] | None = None,
) -> int:
    """Write rows to ``path`` as they come; the ending chooses the format.

    Args:
        chunks: Frames of the schema's own dtypes, at least one.
        path: ``.csv`` or ``.parquet``.
        schema: Supplies each column's text for missing cells in CSV.
        spreadsheet_safe: Put ``'`` before text that a spreadsheet would run as a formula. Numbers stay as they are.
        metadata: Public key-value pairs kept in the Parquet footer.

    Returns:
        How many rows were written.

    Raises:
        SettingError: The ending is neither.
    """
    check_ending(path)
    frames = (_without_formulas(frame) for frame in chunks) if spreadsheet_safe else iter(chunks)
    counted = _Counter(frames)
    if path.suffix == ".csv":
        write_atomic(path, lambda file: _write_csv(counted, file, schema, spreadsheet_safe=spreadsheet_safe))
    else:
        write_atomic(path, lambda file: _write_parquet(counted, file, metadata or {}))
    return counted.rows


def check_ending(path: Path) -> None:
    """Refuse a file name whose ending names no format.

    Raises:
        SettingError: Naming the endings that do.
    """
    if path.suffix not in FORMATS:
        raise SettingError("has no known ending", field=path.name, remedy=f"end it in {' or '.join(FORMATS)}")


class _Counter:
    def __init__(self, frames: Iterable[pd.DataFrame]) -> None:
        self._frames = frames
        self.rows = 0

    def __iter__(self) -> Any:
        for frame in self._frames:
            self.rows += len(frame)
            yield frame


def _write_csv(frames: Iterable[pd.DataFrame], file: BinaryIO, schema: Schema, *, spreadsheet_safe: bool) -> None:
    for number, frame in enumerate(frames):
        texts = {name: text for name in frame.columns if (text := _missing_text(schema, name))}
        if spreadsheet_safe:  # an empty cell means missing everywhere, and runs nowhere
            texts = {name: text for name, text in texts.items() if defused(text) == text}
        if texts:
            frame = frame.copy(deep=False)
            for name, text in texts.items():
                column = frame[name].astype(object)
                frame[name] = column.where(column.notna(), text)
        frame.to_csv(file, index=False, header=number == 0, lineterminator="\n", encoding="utf-8")


def _missing_text(schema: Schema, name: str) -> str:
    """Return the first token that the schema reads as missing; an empty cell where it names none."""
    column = schema.columns.get(name.removeprefix("'"))
    tokens = column.missing_tokens[1:] if column is not None else ()
    return tokens[0] if tokens else ""


def _write_parquet(frames: Iterable[pd.DataFrame], file: BinaryIO, metadata: dict[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for frame in frames:
            table = pa.Table.from_pandas(_storable(frame), preserve_index=False)
            if writer is None:
                kept = {
                    **(table.schema.metadata or {}),
                    **{key.encode(): value.encode() for key, value in metadata.items()},
                }
                arrow_schema = table.schema.with_metadata(kept)
                writer = pq.ParquetWriter(file, arrow_schema, compression="zstd")
            writer.write_table(table.replace_schema_metadata(arrow_schema.metadata))
    finally:
        if writer is not None:
            writer.close()


def _storable(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with categories of mixed types as text, which Arrow can hold."""
    mixed = {
        str(name): column.cat.rename_categories([str(value) for value in column.cat.categories])
        for name, column in frame.items()
        if isinstance(column.dtype, pd.CategoricalDtype) and len({type(value) for value in column.cat.categories}) > 1
    }
    return frame.assign(**mixed) if mixed else frame


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Defuse text cells and column names that begin like a formula."""
    frame = frame.rename(columns=defused)
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            texts_of = [defused(value) for value in column.cat.categories]
            if texts_of != list(column.cat.categories):
                # by place: two values may become one, which a list of categories cannot hold
                texts = np.array([*texts_of, None], dtype=object)
                frame[name] = pd.Series(texts[column.cat.codes.to_numpy()], index=frame.index, dtype=object)
    return frame


def defused(value: object) -> object:
    """Return text with ``'`` before it if a spreadsheet would run it as a formula; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
