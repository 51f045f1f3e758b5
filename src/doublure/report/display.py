"""Reports as a notebook shows them: the headline and the figures, and the whole page below a cell or in a browser.

A notebook is saved with what it shows, and often shared. So the short view has aggregated figures only, without a value
of any column, and says that it is internal; what names values, such as broken rules and groups, stands on the page.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from doublure.errors import InputError
from doublure.measures.scores import Score, figure, interval
from doublure.support import views
from doublure.support.files import write_atomic
from doublure.support.progress import in_notebook

if TYPE_CHECKING:
    from doublure.report.contents import Compared, Outcome

_GOALS = {"low": "low is good", "high": "high is good", "near": "near the real figure is good"}
_HEIGHT = 640


def evaluation_html(report: Outcome, scores: Sequence[Score], internal: str) -> str:
    """Return an evaluation as HTML: its headline, and each figure beside the least and the most to expect.

    Args:
        report: What was evaluated.
        scores: Its headline figures.
        internal: That it is, in words.
    """
    rows = [
        (
            score.name,
            figure(score, score.value),
            interval(score, score.interval) or "–",
            figure(score, score.baseline),
            figure(score, score.real),
            _GOALS[score.goal],
        )
        for score in scores
    ]
    said = report.verdict
    warned = len(said.warnings)
    more = f"{warned} {'warning' if warned == 1 else 'warnings'} stand on the page. " if warned else ""
    heads = ("figure", "synthetic", "95 % interval", "baseline", "real", "")
    return views.view(
        "Evaluation" if report.about is None else f"Evaluation of {report.about.method}",
        views.line(f"INTERNAL: {internal}", "warn"),
        views.line(said.headline, "plain"),
        views.grid(heads, rows, right=(1, 2, 3, 4)),
        views.line(f"{more}report.show() opens the page; report.scores is a DataFrame; report.plot(column) draws."),
    )


def outcome_html(report: Outcome, title: str, internal: str | None) -> str:
    """Return an audit or an inspection as HTML.

    Args:
        report: What was found.
        title: What it is.
        internal: That it was computed on real data; None where it was not.
    """
    said = report.verdict
    return views.view(
        title if report.about is None else f"{title} of {report.about.method}",
        *([] if internal is None else [views.line(f"INTERNAL: {internal}", "warn")]),
        views.line(said.headline, "plain"),
        *(views.line(line) for line in said.lines),
        views.line("report.show() opens the page."),
    )


def comparison_html(found: Compared, names: Sequence[str], internal: str) -> str:
    """Return a comparison as HTML: a figure a row, a run a column."""
    rows = [
        (
            entry.score.name,
            *("–" if score is None else figure(score, score.value) for score in entry.scores),
            figure(entry.score, entry.score.baseline) if entry.one_scale else "differs",
            figure(entry.score, entry.score.real) if entry.one_scale else "differs",
        )
        for entry in found.side_by_side
    ]
    heads = ("figure", *names, found.least, f"real {found.records}")
    return views.view(
        "Comparison",
        views.line(f"INTERNAL: {internal}", "warn"),
        *(views.line(warning, "plain") for warning in found.warnings),
        views.grid(heads, rows, right=range(1, len(heads))),
        views.line("report.show() opens the page."),
    )


class InlinePage:
    """A whole page below a notebook's cell, in a frame of its own: no script runs in it, and nothing is loaded."""

    def __init__(self, page: str) -> None:
        self._page = page

    def __repr__(self) -> str:
        return "InlinePage()"

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{_HEIGHT}px;border:1px solid rgba(128,128,128,.4);border-radius:10px"
        return f'<iframe sandbox="" title="report" style="{style}" srcdoc="{escape(self._page)}"></iframe>'


def show(page: str) -> None:
    """Show a page: below the cell in a notebook, else in a browser.

    For the browser it lies in a private folder of this process, which is removed when the process ends.

    Raises:
        InputError: This machine has no browser to open.
    """
    if in_notebook():
        sys.modules["IPython"].display.display(InlinePage(page))
        return
    folder = Path(tempfile.mkdtemp(prefix="doublure-"))  # of mode 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "report.html"
    write_atomic(file, lambda out: out.write(page.encode()), mode=0o600)
    if not webbrowser.open(file.as_uri()):
        raise InputError("has no browser to open here", field="show", remedy="write it with report.save('report.html')")


__all__ = ["InlinePage", "comparison_html", "evaluation_html", "outcome_html", "show"]
