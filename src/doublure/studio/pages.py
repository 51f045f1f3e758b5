"""Pages of the studio: templates beside this file, and the look of the other pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from typing import Any

from doublure.report.page import render_from, show_name

_SMALL = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e-\d+\b")
_PACKAGE = "doublure.studio"
_STATIC: Mapping[str, tuple[str, str, str]] = {
    "style.css": ("doublure.report", "templates/style.css", "text/css; charset=utf-8"),
    "studio.css": (_PACKAGE, "static/studio.css", "text/css; charset=utf-8"),
    "studio.js": (_PACKAGE, "static/studio.js", "text/javascript; charset=utf-8"),
}
"""Name -> package, place and type of a style or script. Nothing comes from elsewhere."""


_ENTRIES = {
    "rule_kind": "the rule",
    "rule_text": "the rule",
    "rule_opens": "the rule",
    "per_unit": "columns that stay the same within a unit",
    "max_records": "rows used of each",
    "id": "column that names units",
    "who-one": "what one row is",
    "order": "what rows follow one another by",
    "units": "number",
    "magnitude": "about how many",
    "lower": "least",
    "upper": "greatest",
}
"""Field of a form -> what its label calls it, where that is not the field's own word."""


def render(template: str, context: Mapping[str, Any]) -> str:
    """Return the HTML of a page; see :func:`doublure.report.page.render`."""
    return render_from(
        _PACKAGE, template, {"zipped": _pairs, "spelt": spelt, "one_in": one_in, "entry_name": entry_name, **context}
    )


def spelt(text: object) -> str:
    """Return a text with its small numbers written out: ``3e-05`` is for programs.

    Example:
        >>> spelt("delta 3e-05 is above 1.5e-06"), spelt(1e-9), spelt("phase-5e")
        ('delta 0.00003 is above 0.0000015', '0.000000001', 'phase-5e')
    """
    return _SMALL.sub(lambda number: f"{Decimal(number[0]):f}", str(text))


def one_in(chance: float) -> str:
    """Return a small chance in words, with two digits.

    Example:
        >>> one_in(3e-5), one_in(1e-6)
        ('1 in 33,000', '1 in 1,000,000')
    """
    return f"1 in {float(f'{1 / chance:.2g}'):,.0f}"


def entry_name(field: str) -> str:
    """Return how people call an entry of a form.

    Example:
        >>> entry_name("rule_kind"), entry_name("edit--lower"), entry_name("decided_name")
        ('the rule', 'least', 'decided name')
    """
    own = field.rpartition("--")[2]
    if "--" in field and own not in _ENTRIES:  # a column's name, or a key of one, stands as it is
        return own
    return _ENTRIES.get(own, own.replace("_", " "))


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
