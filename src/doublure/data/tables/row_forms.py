"""The forms of rows beside CSV and Parquet, by the endings of their files."""

from __future__ import annotations

from collections.abc import Mapping

from doublure.data.tables.package_writers import SpssWriter, StataWriter
from doublure.data.tables.row_writers import ArrowWriter, JsonLinesWriter, RowWriter, SheetWriter
from doublure.support.extras import require_files

ROW_WRITERS: Mapping[str, type[RowWriter]] = {
    ".jsonl": JsonLinesWriter,
    ".ndjson": JsonLinesWriter,
    ".feather": ArrowWriter,
    ".arrow": ArrowWriter,
    ".xlsx": SheetWriter,
    ".dta": StataWriter,
    ".sav": SpssWriter,
}
PACKAGES = (".dta", ".sav")
AS_TEXT = (".csv", ".jsonl", ".ndjson", ".xlsx", *PACKAGES)
"""The forms whose cells of a type of their own are written as text."""
_LIBRARIES = {".xlsx": "xlsxwriter", **dict.fromkeys(PACKAGES, "pyreadstat")}


def check_library(ending: str, name: str) -> None:
    """Refuse a form whose library is not installed.

    Raises:
        MissingExtra: It is not.
    """
    if ending in _LIBRARIES:
        require_files(_LIBRARIES[ending], name)
