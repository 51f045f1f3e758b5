"""Writing synthetic tables: streamed, whole or not there, and on request harmless to a spreadsheet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from doublure.errors import SettingError
from doublure.schema.columns.missing_kinds import numbers_with_codes, numbers_with_texts
from doublure.schema.scalars import is_plain_number
from doublure.support.files import write_atomic

if TYPE_CHECKING:
    from doublure.schema import Schema
    from doublure.schema.columns import Column

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
    rows = TableRows(path.suffix, schema, spreadsheet_safe=spreadsheet_safe, metadata=metadata)

    def write(file: BinaryIO) -> None:
        with rows.into(file):
            for frame in chunks:
                rows.add(frame)

    write_atomic(path, write)
    return rows.count


def check_ending(path: Path) -> None:
    """Refuse a file name whose ending names no format.

    Raises:
        SettingError: Naming the endings that do.
    """
    if path.suffix not in FORMATS:
        raise SettingError("has no known ending", field=path.name, remedy=f"end it in {' or '.join(FORMATS)}")


class TableRows:
    """Rows of one table on their way into a file, a frame at a time.

    Args:
        form: ``.csv`` or ``.parquet``.
        schema: Supplies each column's text for missing cells in CSV.
        spreadsheet_safe: Put ``'`` before text that a spreadsheet would run as a formula.
        metadata: Public key-value pairs kept in the Parquet footer.

    Attributes:
        count: How many rows have been written.
    """

    def __init__(
        self, form: str, schema: Schema, *, spreadsheet_safe: bool = False, metadata: dict[str, str] | None = None
    ) -> None:
        self.count = 0
        self._form, self._schema, self._safe, self._metadata = form, schema, spreadsheet_safe, metadata or {}
        self._file: BinaryIO | None = None
        self._writer: Any = None
        self._frames = 0

    @contextmanager
    def into(self, file: BinaryIO) -> Iterator[None]:
        """Write into this file until the block ends."""
        self._file = file
        try:
            yield
        finally:
            if self._writer is not None:
                self._writer.close()

    def add(self, frame: pd.DataFrame) -> None:
        """Write the rows of a frame of the schema's own dtypes."""
        columns = {name: self._schema.columns[name] for name in frame.columns if name in self._schema.columns}
        several = {name: column for name, column in columns.items() if column.missing_states > 1 and column.plain}
        if self._form == ".csv":
            alike = {name: column for name, column in columns.items() if column.missing_states < 2}
            frame = frame.assign(**{name: column.csv_cells(frame[name]) for name, column in alike.items()})
            frame = frame.assign(**{name: self._with_texts(column, frame[name]) for name, column in several.items()})
        else:
            frame = frame.assign(**{name: numbers_with_codes(column, frame[name]) for name, column in several.items()})
        frame = _without_formulas(frame) if self._safe else frame
        if self._form == ".csv":
            self._add_csv(frame)
        else:
            self._add_parquet(frame)
        self._frames += 1
        self.count += len(frame)

    def _with_texts(self, column: Column, cells: pd.Series[Any]) -> pd.Series[Any]:
        texts = [text if not self._safe or is_plain_number(text) else defused(text) for text in column.missing_texts]
        return numbers_with_texts(column, cells, [text if text in column.missing_texts else "" for text in texts])

    def _add_csv(self, frame: pd.DataFrame) -> None:
        texts = {name: text for name in frame.columns if (text := _missing_text(self._schema, name))}
        if self._safe:  # an empty cell means missing everywhere, and runs nowhere
            texts = {name: text for name, text in texts.items() if defused(text) == text}
        if texts:
            frame = frame.copy(deep=False)
            for name, text in texts.items():
                column: pd.Series[Any] = frame[name]  # as text, a day has no midnight
                column = column.astype("str") if column.dtype.kind == "M" else column.astype(object)
                frame[name] = column.where(column.notna(), text)
        frame.to_csv(self._file, index=False, header=self._frames == 0, lineterminator="\n", encoding="utf-8")

    def _add_parquet(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(_storable(frame), preserve_index=False)
        if self._writer is None:
            own = {key.encode(): value.encode() for key, value in self._metadata.items()}
            arrow_schema = table.schema.with_metadata({**(table.schema.metadata or {}), **own})
            self._writer = pq.ParquetWriter(self._file, arrow_schema, compression="zstd")
        self._writer.write_table(table.replace_schema_metadata(self._writer.schema.metadata))


def _missing_text(schema: Schema, name: str) -> str:
    """Return the text of a missing cell that is written as one; an empty text where the schema names none."""
    column = schema.columns.get(name.removeprefix("'"))
    return next(iter(column.missing_texts), "") if column is not None else ""


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
        elif isinstance(column.dtype, pd.StringDtype):
            frame[name] = column.map(defused)
    return frame


def defused(value: object) -> object:
    """Return text with ``'`` before it if a spreadsheet would run it as a formula; anything else as it is."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else value
