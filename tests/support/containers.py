"""Writers of small tables in each container, record by record, for tests of their readers."""

from __future__ import annotations

import datetime as dt
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

Records = Sequence[Mapping[str, Any]]


def write_xlsx(path: Path, names: Sequence[str], rows: Records, corner: tuple[int, int] = (0, 0)) -> None:
    """Write a sheet whose header begins at a corner; a key that is no name of it stands left or right of it."""
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra files is not installed")
    book = xlsxwriter.Workbook(path, {"default_date_format": "yyyy-mm-dd hh:mm:ss", "remove_timezone": True})
    sheet, day = book.add_worksheet("people"), book.add_format({"num_format": "yyyy-mm-dd"})
    clock, span = book.add_format({"num_format": "hh:mm:ss"}), book.add_format({"num_format": "[h]:mm:ss"})
    top, left = corner
    for place, name in enumerate(names):
        sheet.write(top, left + place, name)
    places = {name: left + place for place, name in enumerate(names)} | {"left": left - 1, "beyond": left + len(names)}
    for line, row in enumerate(rows, top + 1):
        for name, cell in row.items():
            if isinstance(cell, dt.datetime):
                sheet.write_datetime(line, places[name], cell)
            elif isinstance(cell, (dt.date, dt.time, dt.timedelta)):
                form = day if isinstance(cell, dt.date) else clock if isinstance(cell, dt.time) else span
                sheet.write_datetime(line, places[name], cell, form)
            elif isinstance(cell, str):
                sheet.write_string(line, places[name], cell)
            elif cell is not None:
                sheet.write(line, places[name], cell)
    book.close()


_MANIFEST = (
    '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
    '<manifest:file-entry manifest:full-path="/" manifest:media-type="{}"/></manifest:manifest>'
)
_CALC = "urn:oasis:names:tc:opendocument:xmlns"


def write_ods(path: Path, names: Sequence[str], rows: Records) -> None:
    """Write a sheet of OpenDocument by hand."""
    lines = [dict(zip(names, names, strict=True)), *rows]
    body = "".join(
        f"<table:table-row>{''.join(_ods(row.get(name)) for name in names)}</table:table-row>" for row in lines
    )
    content = (
        f'<office:document-content xmlns:office="{_CALC}:office:1.0" xmlns:table="{_CALC}:table:1.0" '
        f'xmlns:text="{_CALC}:text:1.0" office:version="1.2"><office:body><office:spreadsheet>'
        f'<table:table table:name="people">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", kind)
        archive.writestr("META-INF/manifest.xml", _MANIFEST.format(kind))
        archive.writestr("content.xml", f'<?xml version="1.0" encoding="UTF-8"?>{content}')


def _ods(cell: Any) -> str:
    kind = {bool: "boolean", int: "float", float: "float", dt.date: "date", dt.datetime: "date"}.get(type(cell))
    if cell is None:
        return "<table:table-cell/>"
    if kind is None:
        return f'<table:table-cell office:value-type="string"><text:p>{escape(str(cell))}</text:p></table:table-cell>'
    text = cell.isoformat() if kind == "date" else str(cell).lower()
    value = {"float": "value"}.get(kind, f"{kind}-value")
    return f'<table:table-cell office:value-type="{kind}" office:{value}="{text}"/>'


def write_jsonl(path: Path, names: Sequence[str], rows: Records) -> None:
    """Write an object a line, with the keys that a record has; a key ``line`` is a line as it stands."""
    with path.open("wb") as file:
        for row in rows:
            line = row["line"] if "line" in row else json.dumps(row, default=str).encode()
            file.write(line + b"\n")


def write_arrow(path: Path, names: Sequence[str], rows: Records) -> None:
    """Write batches of two records, as a file, or as a stream where the ending is ``.ipc``."""
    whole = pa.Table.from_pandas(_frame(names, rows), preserve_index=False)
    writer = pa.ipc.new_stream if path.suffix == ".ipc" else pa.ipc.new_file
    with path.open("wb") as file, writer(file, whole.schema) as out:
        out.write_table(whole, max_chunksize=2)


def write_package(path: Path, names: Sequence[str], rows: Records) -> None:
    """Write a file of Stata, SPSS or SAS."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra files is not installed")
    frame = _frame(names, rows)
    writers = {
        ".dta": pyreadstat.write_dta,
        ".sav": pyreadstat.write_sav,
        ".zsav": partial(pyreadstat.write_sav, compress=True),
        ".xpt": pyreadstat.write_xport,
    }
    writers[path.suffix](frame, str(path))


def _frame(names: Sequence[str], rows: Records) -> pd.DataFrame:
    """Return typed columns, as a container of types has them whatever its records are."""
    frame = pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names})
    frame["n"] = np.array([np.nan if cell is None else cell for cell in frame["n"]], dtype=np.float64)
    frame["t"] = pd.array([cell or "" for cell in frame["t"]], dtype="str")
    for name in ("d", "m"):
        frame[name] = pd.Series([pd.NaT if cell is None else pd.Timestamp(cell) for cell in frame[name]]).astype(
            "datetime64[ms]"
        )
    return frame


WRITERS: Mapping[str, Callable[[Path, Sequence[str], Records], None]] = {
    ".xlsx": write_xlsx,
    ".ods": write_ods,
    ".jsonl": write_jsonl,
    ".ndjson": write_jsonl,
    ".feather": write_arrow,
    ".ipc": write_arrow,
    ".dta": write_package,
    ".sav": write_package,
    ".zsav": write_package,
    ".xpt": write_package,
}
