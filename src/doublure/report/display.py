"""Notebook views of reports: headline and figures, and the whole page below a cell or in a browser.

A saved notebook keeps its output, and is often shared. So the short view has aggregated figures only, without a value
of any column, and says that it is internal. Broken rules, groups and others that name values are left to the page.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import webbrowser
from html import escape
from pathlib import Path

from doublure.errors import InputError
from doublure.results import SynthesizerFacts, Verdict
from doublure.support import views
from doublure.support.files import write_atomic
from doublure.support.progress import in_notebook

_HEIGHT = 640


def outcome_html(title: str, about: SynthesizerFacts | None, said: Verdict, internal: str | None) -> str:
    """Return an audit or an inspection as HTML.

    Args:
        title: Its title.
        about: The synthesizer it is about.
        said: The outcome.
        internal: The mark as computed on real data; None where it was not.
    """
    return views.view(
        title if about is None else f"{title} of {about.method}",
        *([] if internal is None else [views.line(f"INTERNAL: {internal}", "warn")]),
        views.line(said.headline, "plain"),
        *(views.line(line) for line in said.lines),
        views.line("report.show() opens the page."),
    )


class InlinePage:
    """A whole page below a notebook's cell, in its own frame: no script runs in it, and nothing is loaded."""

    def __init__(self, page: str) -> None:
        self._page = page

    def __repr__(self) -> str:
        return "InlinePage()"

    def _repr_html_(self) -> str:
        style = f"width:100%;height:{_HEIGHT}px;border:1px solid rgba(128,128,128,.4);border-radius:10px"
        return f'<iframe sandbox="" title="report" style="{style}" srcdoc="{escape(self._page)}"></iframe>'


def show(page: str) -> None:
    """Show a page: below the cell in a notebook, else in a browser.

    For the browser it is written into a private temporary folder, which is removed when the process ends.

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


__all__ = ["InlinePage", "outcome_html", "show"]
