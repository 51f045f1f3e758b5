"""Files of pages and figures, written atomically and readable by their owner only."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import ClassVar

from doublure.errors import InputError
from doublure.report import display
from doublure.results import Document
from doublure.support.files import Form, check_output, refuse_unwritable, write_atomic


def named_page(out: Path) -> Path:
    """Return the path of a page given by a user: ``.html`` is added to a name without an ending.

    Example:
        >>> named_page(Path("ev")).name, named_page(Path("ev.htm")).name
        ('ev.html', 'ev.htm')
    """
    return out.with_name(f"{out.name}.html") if out.name and not out.suffix and not out.is_dir() else out


class PageResult(Document):
    """A result with a page that it can save and show."""

    form: ClassVar[Form] = "figures"
    """The form by which its saved figures are recognised when a later result replaces them."""

    @abstractmethod
    def to_html(self) -> str:
        """Return the page."""

    def save(self, html: str | Path, json: str | Path | None = None) -> None:
        """Write the page, and its figures as JSON if a path is given: both or neither.

        Unless of an inspection, both may hold figures computed on real data without noise: never publish them, never
        put them into a bundle.

        Raises:
            InputError: A file cannot be written there, would lie in a published or kept folder, or would replace
                another.
        """
        page, figures = self.to_html(), self.file_text()
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

        A saved notebook keeps its output: internal figures, and real records of images and series.

        Raises:
            InputError: There is neither notebook nor browser.
        """
        display.show(self.to_html())


def check_places(
    html: str | Path, json: str | Path | None = None, *reads: str | Path | None, form: Form = "figures"
) -> None:
    """Refuse paths for a page and its figures before the work that would fill them.

    Args:
        html: The path of the page; an older page is replaced, and nothing else.
        json: The path of the figures, likewise.
        reads: The files that the page is computed from.
        form: The form of the figures.

    Raises:
        InputError: A file cannot be written there, would lie in a published or kept folder, or would replace another.
    """
    places: dict[Form, str | Path | None] = {"page": html, form: json}
    for own, path in places.items():
        if path is not None:
            check_output(Path(path), *reads, replaces=own)
            refuse_unwritable(Path(path))
    if json is not None and Path(json) == Path(html):
        raise InputError("would hold both page and figures", field=html, remedy="end the page's name in .html")


def write_private(path: str | Path, text: str) -> None:
    """Write a file of mode 0600 atomically.

    Raises:
        InputError: The file cannot be written.
    """
    write_atomic(Path(path), lambda file: file.write(text.encode()), mode=0o600)
