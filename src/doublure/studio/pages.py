"""Pages of the studio: templates beside this file, and the look of the other pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from doublure.report.page import render_from, show_name

_PACKAGE = "doublure.studio"
_STATIC: Mapping[str, tuple[str, str, str]] = {
    "style.css": ("doublure.report", "templates/style.css", "text/css; charset=utf-8"),
    "studio.css": (_PACKAGE, "static/studio.css", "text/css; charset=utf-8"),
    "studio.js": (_PACKAGE, "static/studio.js", "text/javascript; charset=utf-8"),
}
"""Name -> package, place and type of a style or script. Nothing comes from elsewhere."""


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return the HTML of a page; see :func:`doublure.report.page.render`."""
    return render_from(_PACKAGE, template, {"zipped": _pairs, **context})


def _pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the choices of a list whose values are their own words."""
    return [(name, show_name(name)) for name in names]


@lru_cache
def static(name: str) -> tuple[bytes, str] | None:
    """Return a style or a script, and its type; None where there is none of this name."""
    if name not in _STATIC:
        return None
    package, place, kind = _STATIC[name]
    return (files(package) / place).read_bytes(), kind
