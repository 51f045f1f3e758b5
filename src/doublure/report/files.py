"""Writing internal pages: whole or not at all, and readable by their owner only."""

from __future__ import annotations

from pathlib import Path

from doublure.auditing.attack_report import AttackReport
from doublure.errors import InputError
from doublure.evaluate.comparison import Comparison
from doublure.evaluate.evaluation import Inside
from doublure.evaluate.inspection import Inspection
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.report.build import internal_page
from doublure.report.inspection import inspection_page
from doublure.support.files import Form, check_output, refuse_unwritable, write_atomic


def write_internal(
    report: Inside | TableEvaluation | Comparison, html: str | Path, json: str | Path | None = None
) -> None:
    """Write the page of an evaluation, a comparison or an audit, and its figures as JSON if a path is given.

    Both hold figures computed on real data without noise: never publish them, never put them into a bundle.

    Raises:
        InputError: A file cannot be written there, would lie where it is published or kept, or would replace another.
    """
    _write(internal_page(report), report.to_json(), html, json, _form(report))


def write_inspection(found: Inspection, html: str | Path, json: str | Path | None = None) -> None:
    """Write the page of an inspection, and its figures as JSON if a path is given; no real record is in either.

    Raises:
        InputError: A file cannot be written there, would lie where it is published or kept, or would replace another.
    """
    _write(inspection_page(found), found.to_json(), html, json, "inspection")


def _write(page: str, figures: str, html: str | Path, json: str | Path | None, form: Form) -> None:
    """Write both or neither."""
    check_places(html, json, form=form)
    if json is not None:
        write_private(json, figures + "\n")
    try:
        write_private(html, page)
    except InputError:
        if json is not None:
            Path(json).unlink(missing_ok=True)
        raise


def _form(report: Inside | TableEvaluation | Comparison) -> Form:
    if isinstance(report, AttackReport):
        return "audit"
    return "comparison" if isinstance(report, Comparison) else "figures"


def check_places(html: str | Path, json: str | Path | None = None, *reads: Path | None, form: Form = "figures") -> None:
    """Refuse places for a page and its figures before the work that would fill them.

    Args:
        html: Where the page is to lie; an older page is replaced, and nothing else.
        json: Where the figures are to lie, likewise.
        reads: What the page is computed from.
        form: What the figures are of.

    Raises:
        InputError: A file cannot be written there, would lie where it is published or kept, or would replace another.
    """
    places: dict[Form, str | Path | None] = {"page": html, form: json}
    for own, path in places.items():
        if path is not None:
            check_output(Path(path), *reads, replaces=own)
            refuse_unwritable(Path(path))
    if json is not None and Path(json) == Path(html):
        raise InputError("would hold both page and figures", field=html, remedy="end the page's name in .html")


def write_private(path: str | Path, text: str) -> None:
    """Write a file of mode 0600 that is either whole or not there.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomic(Path(path), lambda file: file.write(text.encode()), mode=0o600)
