"""Writing internal pages: whole or not at all, and readable by their owner only."""

from __future__ import annotations

from pathlib import Path

from doublure.evaluate.table import TableEvaluation
from doublure.evaluate.understudy import Report
from doublure.files import write_atomic
from doublure.report.build import internal_page


def write_internal(report: Report | TableEvaluation, html: str | Path, json: str | Path | None = None) -> None:
    """Write an evaluation's page, and its figures as JSON if a path is given.

    Both hold figures computed on real data without noise: never publish them, never put them into a bundle.

    Raises:
        InputError: A file cannot be written there.
    """
    if json is not None:
        write_private(json, report.to_json() + "\n")
    write_private(html, internal_page(report))


def write_private(path: str | Path, text: str) -> None:
    """Write a file of mode 0600 that is either whole or not there.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomic(Path(path), lambda file: file.write(text.encode()), mode=0o600)
