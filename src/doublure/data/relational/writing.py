"""Writing synthetic units: one file a table, all of them streamed together, each whole or not there."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from doublure.data.relational.records import RelatedRows
from doublure.data.tables.writing import TableRows
from doublure.errors import SettingError
from doublure.schema.relational import RelationalSchema
from doublure.support.files import holds_anything, write_atomic


def write_related(
    chunks: Iterable[RelatedRows],
    folder: Path,
    schema: RelationalSchema,
    *,
    form: str = "csv",
    spreadsheet_safe: bool = False,
    metadata: dict[str, str] | None = None,
) -> dict[str, int]:
    """Write units into a folder, a file a table; their keys are numbered through.

    Args:
        chunks: Units, at least one set of them.
        folder: It is made where it is not there.
        schema: Every fact known.
        form: ``csv`` or ``parquet``, the files' ending.
        spreadsheet_safe: Put ``'`` before text that a spreadsheet would run as a formula.
        metadata: Public key-value pairs kept in Parquet footers.

    Returns:
        File -> how many rows were written into it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    public = schema.public or {}
    described = {name: schema.table(name) for name in schema.tables}
    described |= {name: schema.public_schema(name) for name in public}
    rows = {
        name: TableRows(f".{form}", own, spreadsheet_safe=spreadsheet_safe, metadata=metadata)
        for name, own in described.items()
    }

    def write(files: dict[str, BinaryIO]) -> None:
        with ExitStack() as stack:
            for name, table in rows.items():
                stack.enter_context(table.into(files[name]))
            for chunk in chunks:
                done = {name: table.count for name, table in rows.items()}
                for name, frame in chunk.handed_out(done).items():
                    rows[name].add(frame)
            for name, given in public.items():
                rows[name].add(given.frame)

    def opened(left: list[str], files: dict[str, BinaryIO]) -> None:
        if not left:
            write(files)
        else:
            first, *others = left
            write_atomic(folder / f"{first}.{form}", lambda file: opened(others, {**files, first: file}))

    opened(list(rows), {})
    return {f"{name}.{form}": table.count for name, table in rows.items()}


def check_folder(path: Path) -> None:
    """Refuse a path that is no folder of one file a table, and one that holds anything, such as the private tables.

    Raises:
        SettingError: It ends like a file, or is one, or is not empty.
    """
    if path.is_file() or path.suffix:
        raise SettingError("is no folder", field=path.name, remedy="give a folder: each table gets a file in it")
    if holds_anything(path):
        raise SettingError("is not empty", field=path.name, remedy="choose another folder, and nothing is overwritten")
