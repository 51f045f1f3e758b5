"""Writing internal pages: whole or not at all, and readable by their owner only."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from doublure.errors import InputError
from doublure.evaluate.table import TableEvaluation
from doublure.evaluate.understudy import Report
from doublure.report.build import internal_page


def write_internal(report: Report | TableEvaluation, html: str | Path, json: str | Path | None = None) -> None:
    """Write an evaluation's page, and its figures as JSON if a path is given.

    Both hold figures computed on real data without noise: never publish them, never put them into a bundle.

    Raises:
        InputError: A file cannot be written there.
    """
    if json is not None:
        write_private(Path(json), report.to_json() + "\n")
    write_private(Path(html), internal_page(report))


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600 that is either whole or not there.

    Raises:
        InputError: The file cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        raise InputError(
            "cannot be written", field=path, remedy="choose a folder that exists and is writable"
        ) from None
