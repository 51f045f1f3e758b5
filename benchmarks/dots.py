"""A chart of marks in rows, written as SVG by hand: the same figures make the same bytes on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT, ROW, TOP, FOOT = 640, 190, 30, 34, 70, 46
INK, FAINT = "#1a1a1a", "#d0d0d0"
LOOKS = {
    "doublure": ("diamond", "#0b5394"),
    "first": ("circle", "#b45309"),
    "second": ("square", "#5b5b5b"),
    "third": ("cross", "#7a3b8f"),
    "real": ("bar", INK),
}
"""A shape and a colour each: the chart reads in grey, too."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of the chart.

    Attributes:
        name: On the left.
        values: A figure for each mark; what is missing is left out.
    """

    name: str
    values: Mapping[str, float]


def chart(title: str, axis: str, marks: Mapping[str, str], rows: Sequence[Row], *, step: float) -> str:
    """Return an SVG.

    Args:
        title: Says what is shown, and which way is better.
        axis: What the figures are, with their unit.
        marks: What each mark is called, by its name in ``LOOKS``.
        rows: From the top.
        step: Between the ticks, in the figures' unit.
    """
    values = [value for row in rows for value in row.values.values()]
    first, last = math.floor(min(values) / step), math.ceil(max(values) / step)
    height = TOP + ROW * len(rows) + FOOT
    across = WIDTH - LEFT - RIGHT

    def at(value: float) -> float:
        return LEFT + across * (value / step - first) / (last - first)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" font-family="sans-serif" font-size="13" fill="{INK}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="24" font-size="15" font-weight="bold">{escape(title)}</text>',
    ]
    place = 12.0
    for name, label in marks.items():
        parts += [_mark(name, place + 6, 47), f'<text x="{place + 18:g}" y="52">{escape(label)}</text>']
        place += 34 + 7.2 * len(label)
    bottom = TOP + ROW * len(rows)
    for tick in range(first, last + 1):
        x = at(tick * step)
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{FAINT}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{tick * step:.4g}</text>')
    parts.append(f'<text x="{LEFT + across / 2:g}" y="{bottom + 37}" text-anchor="middle">{escape(axis)}</text>')
    for number, row in enumerate(rows):
        y = TOP + ROW * (number + 0.5)
        ends = at(min(row.values.values())), at(max(row.values.values()))
        parts.append(f'<text x="{LEFT - 14}" y="{y + 5:g}" text-anchor="end">{escape(row.name)}</text>')
        parts.append(f'<line x1="{ends[0]:.1f}" y1="{y:g}" x2="{ends[1]:.1f}" y2="{y:g}" stroke="{FAINT}"/>')
        # Ours is drawn last, on top.
        for name in sorted(row.values, key=lambda name: name == "doublure"):
            parts.append(_mark(name, at(row.values[name]), y))
    return "\n".join([*parts, "</svg>", ""])


def _mark(name: str, x: float, y: float) -> str:
    """Return a mark's shape about a point."""
    shape, colour = LOOKS[name]
    line = f'stroke="{colour}" stroke-width="2.5"'
    match shape:
        case "diamond":
            return f'<path d="M{x:.1f} {y - 8:g}l8 8l-8 8l-8 -8z" fill="{colour}"/>'
        case "circle":
            return f'<circle cx="{x:.1f}" cy="{y:g}" r="5.5" fill="#ffffff" {line}/>'
        case "square":
            return f'<rect x="{x - 5:.1f}" y="{y - 5:g}" width="10" height="10" fill="#ffffff" {line}/>'
        case "cross":
            return f'<path d="M{x - 5:.1f} {y - 5:g}l10 10m0 -10l-10 10" {line}/>'
        case _:
            return f'<path d="M{x:.1f} {y - 9:g}v18" {line}/>'
