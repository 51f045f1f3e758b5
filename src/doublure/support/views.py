"""Notebook views of objects: small pieces of HTML, built from a few shared parts.

Nothing is loaded from elsewhere and no script runs. Text, lines and background take their colours from the page, so
that a view can be read in light and dark notebooks, in print, and where a viewer drops the style. Every text is
escaped; callers pass public facts, or say that they are internal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from doublure.errors import escaped

_STYLE = Markup("""<style>
.doublure-view{font:14px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif;
color:inherit;max-width:60rem;margin:.3em 0;padding:.9em 1.2em 1em;border:1px solid rgba(128,128,128,.38);
border-radius:10px;font-variant-numeric:tabular-nums;overflow-wrap:anywhere;text-align:left}
.doublure-view .dv-title{font-size:1.15em;font-weight:650;margin:0 0 .15em;line-height:1.3}
.doublure-view p{margin:.35em 0}
.doublure-view .dv-faint{opacity:.78}
.doublure-view .dv-claim{margin:.6em 0;padding:.1em 0 .1em .8em;border-left:3px solid #d9622b}
.doublure-view .dv-note{margin:.6em 0;padding:.1em 0 .1em .8em;border-left:3px solid rgba(128,128,128,.6)}
.doublure-view .dv-warn{margin:.6em 0;padding:.3em .8em;border-left:3px solid #d33;background:rgba(221,51,51,.12)}
.doublure-view .dv-wide{overflow-x:auto;margin:.6em 0 0}
.doublure-view.doublure-view table{border-collapse:collapse;border:0;margin:0;font-size:.93em;width:auto}
.doublure-view.doublure-view tr,.doublure-view.doublure-view tbody tr:nth-child(n){background:transparent}
.doublure-view.doublure-view th,.doublure-view.doublure-view td{text-align:left;vertical-align:baseline;
padding:.25em 1.3em .25em 0;border:0;border-bottom:1px solid rgba(128,128,128,.28);max-width:26rem;color:inherit;
white-space:normal;overflow-wrap:break-word}
.doublure-view.doublure-view thead th{font-weight:500;opacity:.78;vertical-align:bottom}
.doublure-view.doublure-view tbody th{font-weight:550}
.doublure-view.doublure-view .dv-right{text-align:right;white-space:nowrap}
.doublure-view.doublure-view tr.dv-last th,.doublure-view.doublure-view tr.dv-last td{font-weight:650;border-bottom:0}
.doublure-view .dv-facts{display:flex;flex-wrap:wrap;gap:.2em 2em;margin:.5em 0}
.doublure-view .dv-facts span{display:block;font-size:.85em;opacity:.78}
.doublure-view details{margin:.6em 0 0}
.doublure-view summary{cursor:pointer}
.doublure-view .dv-bar{height:.55em;border-radius:1em;background:rgba(128,128,128,.25);overflow:hidden;margin:.5em 0}
.doublure-view .dv-bar i{display:block;height:100%;background:#d9622b}
</style>""")

MOST_ROWS = 60
"""The most rows of a table that are listed; the others are counted."""


def view(title: object, *parts: Markup) -> str:
    """Return the HTML of an object: its title and its parts, with their style."""
    head = Markup('<p class="dv-title">{}</p>').format(_text(title))
    return str(Markup('{}<div class="doublure-view">{}{}</div>').format(_STYLE, head, Markup("").join(parts)))


def line(text: object, kind: str = "faint") -> Markup:
    """Return a paragraph: ``faint``, ``plain``, a ``claim``, a ``note``, or a ``warn``ing."""
    return Markup('<p class="dv-{}">{}</p>').format(kind, _text(text))


def facts(named: Iterable[tuple[object, object]]) -> Markup:
    """Return facts side by side, each under its name; those that are None are left out."""
    each = Markup("").join(
        Markup("<div><span>{}</span>{}</div>").format(_text(name), _text(value))
        for name, value in named
        if value is not None
    )
    return Markup('<div class="dv-facts">{}</div>').format(each)


def grid(
    heads: Sequence[object], rows: Sequence[Sequence[object]], *, right: Sequence[int] = (), total: bool = False
) -> Markup:
    """Return a table whose first column names its rows.

    Args:
        heads: Of the columns.
        rows: A cell a column each.
        right: Indices of the columns that hold figures.
        total: Whether the last row adds up the others.
    """
    listed = rows if len(rows) <= MOST_ROWS else rows[: MOST_ROWS - 1]
    body = Markup("").join(
        Markup("<tr{}>{}</tr>").format(
            Markup(' class="dv-last"') if total and row is rows[-1] else "",
            Markup("").join(_cell(value, "td" if place else "th", place in right) for place, value in enumerate(row)),
        )
        for row in listed
    )
    head = Markup("").join(_cell(value, "th", place in right) for place, value in enumerate(heads))
    table = Markup('<div class="dv-wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>')
    left_out = len(rows) - len(listed)
    return table.format(head, body) + (line(f"and {left_out:,} more") if left_out else Markup(""))


def fold(summary: object, *parts: Markup) -> Markup:
    """Return parts that open on a click; viewers without folding show them."""
    return Markup("<details><summary>{}</summary>{}</details>").format(_text(summary), Markup("").join(parts))


def bar(share: float) -> Markup:
    """Return a bar that is filled to a share from 0 to 1."""
    return Markup('<div class="dv-bar" aria-hidden="true"><i style="width:{:.1f}%"></i></div>').format(
        100 * min(1.0, max(0.0, share))
    )


def shorten(values: Sequence[object], most: int = 6) -> str:
    """Return a list as text: its first values and the total number."""
    named = ", ".join(str(value) for value in values[:most])
    return named if len(values) <= most else f"{named}, … ({len(values):,})"


def in_words(value: object) -> str:
    """Return plain data as text, long lists shortened."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {in_words(each)}" for key, each in value.items())
    return shorten([in_words(each) for each in value]) if isinstance(value, (list, tuple)) else str(value)


def list_values(values: Sequence[str], most: int) -> str:
    """Return the first values in one line, quoted where one contains a comma, and the number of the others.

    Example:
        >>> list_values(["Seattle, WA", "Boston, MA", "Paris"], 2)
        '"Seattle, WA", "Boston, MA" and 1 more'
    """
    quote = '"' if any("," in value for value in values) else ""
    more = len(values) - most
    return ", ".join(f"{quote}{value}{quote}" for value in values[:most]) + (f" and {more:,} more" if more > 0 else "")


def _cell(value: object, tag: str, right: bool) -> Markup:
    place = Markup(' class="dv-right"') if right else ""
    return Markup("<{}{}>{}</{}>").format(tag, place, _text(value), tag)


def _text(value: object) -> str:
    """Return a text without invisible characters; our own line breaks and no-break spaces are harmless."""
    return "\u00a0".join(escaped(part.replace("\n", " ")) for part in str(value).split("\u00a0"))


__all__ = ["MOST_ROWS", "bar", "facts", "fold", "grid", "line", "list_values", "shorten", "view"]
