"""Writing synthetic tables: streamed, whole or not there, and on request harmless to a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
import pandas as pd

from doublure.data.tables.containers.registry import find_container
from doublure.data.tables.package_writers import are_times
from doublure.data.tables.row_forms import AS_TEXT, PACKAGES, ROW_WRITERS, check_library
from doublure.data.tables.row_writers import RowWriter
from doublure.errors import SchemaError, SettingError
from doublure.schema.columns.missing_kinds import cells_with_kinds, numbers_with_texts
from doublure.schema.scalars import is_plain_number, label
from doublure.support.files import write_atomic
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    from doublure.schema import Schema
    from doublure.schema.written import Written

FORMATS = (".parquet", ".csv", *ROW_WRITERS)
_QUOTING: Mapping[str | None, Literal[0, 1, 2]] = {
    None: csv.QUOTE_MINIMAL,
    "text": csv.QUOTE_NONNUMERIC,
    "all": csv.QUOTE_ALL,
}
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
        path: Of an ending of :data:`FORMATS`.
        schema: Supplies each column's text for missing cells in CSV.
        spreadsheet_safe: Put ``'`` before text that a spreadsheet would run as a formula. Numbers stay as they are.
        metadata: Public key-value pairs kept in the Parquet footer.

    Returns:
        How many rows were written.

    Raises:
        SettingError: The ending is none of them.
        MissingExtra: A library is not installed.
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
        MissingExtra: A library is not installed.
    """
    if path.suffix not in FORMATS:
        remedy = f"end it in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        what = "has no known ending" if find_container(path) is None else "is of a form that is read, and not written"
        raise SettingError(what, field=path.name, remedy=remedy)
    check_library(path.suffix, path.name)


class TableRows:
    """Rows of one table on their way into a file, a frame at a time.

    Args:
        form: An ending of :data:`FORMATS`.
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
        self._text = schema.cell_form
        if form == ".csv":
            _check_encoding(self._text)
        if form in ROW_WRITERS:
            ROW_WRITERS[form].check(schema.columns)
        self._form, self._schema, self._safe, self._metadata = form, schema, spreadsheet_safe, metadata or {}
        self._file: BinaryIO | None = None
        self._writer: Any = None
        self._rows: RowWriter | None = None
        self._frames = 0

    @contextmanager
    def into(self, file: BinaryIO) -> Iterator[None]:
        """Write into this file until the block ends."""
        self._file = file
        try:
            yield
        finally:
            for writer in (self._writer, self._rows):
                if writer is not None:
                    writer.close()

    def add(self, frame: pd.DataFrame) -> None:
        """Write the rows of a frame of the schema's own dtypes."""
        several = [name for name in frame.columns if self._states(name) > 1]
        formed = self._formed(frame.drop(columns=several))
        frame = with_columns(frame, {name: formed[name] for name in formed.columns})
        frame = with_columns(frame, {name: self._with_kinds(name, frame[name]) for name in several})
        numbers = {name for name, column in self._schema.columns.items() if column.plain}
        frame = _without_formulas(frame, numbers) if self._safe else frame
        if self._form == ".csv":
            self._add_csv(frame)
        elif (writes := ROW_WRITERS.get(self._form)) is not None and self._file is not None:
            if self._rows is None:
                self._rows = writes(self._file, self._schema.columns, self._metadata)
            self._rows.add(_storable(frame))
        else:
            self._add_parquet(frame)
        self._frames += 1
        self.count += len(frame)

    def _formed(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the cells as the form has them: of text that has types, all that is no number, truth or moment."""
        as_text = self._text.formed(frame, as_text=True) if self._form in AS_TEXT else frame
        if self._form == ".csv":
            return as_text
        typed = self._text.formed(frame, as_text=False)
        if self._form not in AS_TEXT:
            return typed
        texts = {name: as_text[name] for name, cells in typed.items() if not self._typed(str(name), cells)}
        return with_columns(typed, texts)

    def _typed(self, name: str, cells: pd.Series[Any]) -> bool:
        """Whether cells keep a type of their own in a form of text: numbers, truths, and moments that it has."""
        if cells.dtype.kind != "M" and not (self._form in PACKAGES and are_times(cells)):
            return pd.api.types.is_numeric_dtype(cells.dtype)
        column = self._schema.columns.get(name)
        return column is None or ROW_WRITERS[self._form].has_moments(column)

    def _states(self, name: str) -> int:
        column = self._schema.columns.get(name)
        return 0 if column is None else column.missing_states

    def _with_kinds(self, name: str, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return cells of several kinds of missing as a file has them; what a spreadsheet would run is left empty."""
        column = self._schema.columns[name]
        if self._form in PACKAGES:
            if not column.truth:
                return cells_with_kinds(column, cells) if column.plain else cells
            return column.typed_cells(cells, self._text.marks)
        if self._form != ".csv":
            return column.typed_cells(cells, self._text.marks, coded=True)
        known = column.missing_texts
        texts = [text if not self._safe or is_plain_number(text) or defused(text) == text else "" for text in known]
        return numbers_with_texts(column, cells, texts, self._text.marks)

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
        form, first = self._text, self._frames == 0
        encoding = form.encoding or "utf-8"
        frame.to_csv(
            self._file,
            index=False,
            header=first and form.header,
            lineterminator="\r\n" if form.line_end == "crlf" else "\n",
            sep=form.delimiter or ",",
            quoting=_QUOTING[form.quoting],
            encoding=encoding if first else encoding.replace("utf-8-sig", "utf-8"),  # one mark at the head of a file
        )

    def _add_parquet(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(_storable(frame), preserve_index=False)
        if self._writer is None:
            own = {key.encode(): value.encode() for key, value in self._metadata.items()}
            arrow_schema = table.schema.with_metadata({**(table.schema.metadata or {}), **own})
            self._writer = pq.ParquetWriter(self._file, arrow_schema, compression="zstd")
        self._writer.write_table(table.replace_schema_metadata(self._writer.schema.metadata))


def _check_encoding(text: Written) -> None:
    """Refuse public texts that the files' encoding lacks, before a row is drawn.

    Raises:
        SchemaError: Naming the column.
    """
    for name, column in text.columns.items() if text.encoding else ():
        public = [name, *map(label, column.shown_values), *column.missing_tokens, *map(str, column.text_form.values())]
        try:
            "".join(public).encode(text.encoding or "utf-8")
        except UnicodeEncodeError:
            remedy = "declare encoding: utf-8, or write them otherwise"
            raise SchemaError(
                f"has a name, value or form that {text.encoding} cannot write", field=f"columns.{name}", remedy=remedy
            ) from None


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
    return with_columns(frame, mixed) if mixed else frame


def _without_formulas(frame: pd.DataFrame, numbers: Collection[str] = ()) -> pd.DataFrame:
    """Defuse text cells and column names that begin like a formula; texts of numbers are none."""
    spared = {defused(name) for name in numbers}
    frame = frame.rename(columns=defused)
    for name, column in frame.items():
        if name in spared:
            continue
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
