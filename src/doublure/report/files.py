"""Writing pages and their figures: whole or not at all, and readable by their owner only."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from doublure.errors import InputError
from doublure.report import display
from doublure.results import Document
from doublure.support.files import Form, check_output, refuse_unwritable, write_atomic


def page_of(report: Paged) -> str:
    """Return the HTML of a result's page."""
    return report.to_html()


def named_page(out: Path) -> Path:
    """Return where a page is written that somebody names: ``.html`` is added to a name without an ending.

    Example:
        >>> named_page(Path("ev")).name, named_page(Path("ev.htm")).name
        ('ev.html', 'ev.htm')
    """
    return out.with_name(f"{out.name}.html") if out.name and not out.suffix and not out.is_dir() else out


class Paged(Document):
    """A result that has a page, saves it and shows it."""

    form: ClassVar[Form] = "figures"
    """As what its figures are known when a later result takes their place."""

    @abstractmethod
    def to_html(self) -> str:
        """Return the page."""

    def save(self, html: str | Path, json: str | Path | None = None) -> None:
        """Write the page, and its figures as JSON if a path is given: both or neither.

        Both may hold figures computed on real data without noise, as all but an inspection's do: never publish those,
        never put them into a bundle.

        Raises:
            InputError: A file cannot be written there, would lie where it is published or kept, or would replace
                another.
        """
        page, figures = self.to_html(), self.to_json()
        check_places(html, json, form=self.form)
        if json is not None:
            write_private(json, figures + "\n")
        try:
            write_private(html, page)
        except InputError:
            if json is not None:
                Path(json).unlink(missing_ok=True)
            raise

    def show(self) -> None:
        """Show the page: below the cell in a notebook, else in a browser.

        A notebook keeps what it shows when it is saved: internal figures, and of images and series real records.

        Raises:
            InputError: There is neither notebook nor browser.
        """
        display.show(self.to_html())


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
