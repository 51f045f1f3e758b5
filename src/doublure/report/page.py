"""Self-contained pages from templates and plain values.

Autoescape is always on; drawings made here are the only markup that passes. A page loads no script, font or picture
from elsewhere, and its content policy tells the browser so.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from doublure.errors import printable
from doublure.support.progress import format_seconds

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_JOINT = re.compile(r"[_./-]+(?=.)")
_SECTION = re.compile(r'<section id="([a-z0-9_-]+)" data-name="([^"]*)"')


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return the HTML of a page.

    Args:
        template: The name of a template in ``templates/``.
        context: The template's variables; a missing one is an error, never a blank.

    Raises:
        jinja2.UndefinedError: The context lacks a variable.
    """
    return render_from("doublure.report", template, context)


def render_from(package: str, template: str, context: Mapping[str, Any]) -> str:
    """Return the HTML of a page from the templates of a package; see :func:`render`."""
    return _environment(package).get_template(template).render(**context)


@lru_cache
def _environment(package: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["name"] = show_name
    environment.filters["broken"] = break_name
    environment.filters["text"] = show_text
    environment.filters["sections"] = find_sections
    environment.filters["lines"] = show_lines
    environment.filters["seconds"] = format_seconds
    return environment


def find_sections(body: str) -> list[tuple[str, Markup]]:
    """Return the sections for a page's contents bar: the id of each and its short name, as markup.

    Args:
        body: Rendered markup, in which ``<section id="…" data-name="…">`` begins each.
    """
    from markupsafe import Markup

    return [(id_, Markup(name)) for id_, name in _SECTION.findall(body)]


def inline_png(content: bytes) -> str:
    """Return a picture as a data URL for an ``img``, which loads nothing."""
    return "data:image/png;base64," + base64.b64encode(content).decode()


def show_name(name: object, longest: int = 48) -> str:
    """Return a name from a schema or from data for a page: visible characters only, and not too many."""
    text = printable(name)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def break_name(name: object, longest: int = 48) -> Markup:
    """Return a name as :func:`show_name` does, as markup breakable after ``_``, ``.``, ``-`` and ``/``."""
    from markupsafe import Markup, escape

    return Markup(_JOINT.sub(r"\g<0><wbr>", str(escape(show_name(name, longest)))))


def show_text(text: object) -> str:
    """Return a sentence with control, bidirectional and other invisible characters escaped, at its full length."""
    return "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else _escaped(char) for char in str(text)
    )


def show_lines(text: object) -> str:
    """Return lines of text as :func:`show_text` does, each by itself."""
    return "\n".join(show_text(line) for line in str(text).split("\n"))


def _escaped(char: str) -> str:
    # Line breaks and the no-break spaces of our own sentences are harmless.
    return " " if char in "\n\t" else char if char in "\u00a0\u202f" else char.encode("unicode_escape").decode()
