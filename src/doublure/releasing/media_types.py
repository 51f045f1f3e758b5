"""Media types of the files of a bundle, by their endings."""

from __future__ import annotations

from collections.abc import Mapping

ROWS = ("csv", "parquet", "feather", "xlsx", "jsonl", "dta", "sav")
"""The endings of files of rows."""
MEDIA: Mapping[str, str] = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "feather": "application/vnd.apache.arrow.file",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "jsonl": "application/jsonl",
    "dta": "application/x-stata-dta",
    "sav": "application/x-spss-sav",
    "npz": "application/zip",
    "json": "application/json",
}
