"""Writing internal pages: whole or not at all, and readable by their owner only."""

from __future__ import annotations

from pathlib import Path

from doublure.errors import InputError
from doublure.evaluate.table import TableEvaluation
from doublure.evaluate.understudy import Internal
from doublure.files import refuse_unwritable, write_atomic
from doublure.report.build import internal_page


def write_internal(report: Internal | TableEvaluation, html: str | Path, json: str | Path | None = None) -> None:
    """Write an evaluation's page, and its figures as JSON if a path is given.

    Both hold figures computed on real data without noise: never publish them, never put them into a bundle.

    Raises:
        InputError: A file cannot be written there, or would lie where it is published or replaces part of a run.
    """
    check_places(html, json)
    if json is not None:
        write_private(json, report.to_json() + "\n")
    try:
        write_private(html, internal_page(report))
    except InputError:
        if json is not None:
            Path(json).unlink(missing_ok=True)
        raise


def check_places(html: str | Path, json: str | Path | None = None) -> None:
    """Refuse places for a page and its figures before the work that would fill them.

    Raises:
        InputError: A file cannot be written there, or would lie where it is published or replaces part of a run.
    """
    for path in (Path(html), None if json is None else Path(json)):
        if path is not None:
            _refuse_public_place(path)
            refuse_unwritable(path)
    if json is not None and Path(json) == Path(html):
        raise InputError("would hold both page and figures", field=html, remedy="end the page's name in .html")


def _refuse_public_place(path: Path) -> None:
    """Refuse a run folder (its internal/ aside) and a bundle: what lies there is kept or published."""
    for name, what in (("run.json", "a run folder"), ("dictionary.json", "a bundle")):
        if (path.parent / name).exists():
            raise InputError(f"lies in {what}, and the page is internal", field=path, remedy="choose another -o")


def write_private(path: str | Path, text: str) -> None:
    """Write a file of mode 0600 that is either whole or not there.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomic(Path(path), lambda file: file.write(text.encode()), mode=0o600)
