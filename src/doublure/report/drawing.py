"""Inline SVG from matplotlib, with the page's colours and fonts.

A drawing uses stand-in colours, which are then replaced by the page's CSS variables, so that one drawing serves light,
dark and print. Text stays text, of one size in wide and in small drawings. The same figures give the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

REAL, SYNTHETIC, INK, FAINT, RULE, BASELINE = "#617087", "#dd5522", "#1c2531", "#6a7382", "#d5dae1", "#b9c1cc"
"""Stand-in colours by role; the page decides how a role looks."""
_VARIABLES = {
    REAL: "real",
    SYNTHETIC: "synthetic",
    INK: "ink",
    FAINT: "faint",
    RULE: "rule",
    BASELINE: "baseline",
}
_POINT = 1.65
"""Most pixels per point of a drawing: a small drawing is not scaled up to a page's width."""

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "font.size": 8.5,
    "axes.edgecolor": RULE,
    "axes.linewidth": 0.8,
    "axes.labelcolor": FAINT,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.pad": 6,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
}


def draw(width: float, height: float, key: str, alt: str, paint: Callable[[Axes], None]) -> Markup:
    """Return an inline SVG of ``width`` by ``height`` inches.

    Args:
        width: Inches; a page scales it.
        height: Inches.
        key: Makes the drawing's element ids its own.
        alt: Text for readers who cannot see it.
        paint: Draws on the axes.
    """
    style: Any = {**STYLE, "svg.hashsalt": key}
    with mpl.rc_context(style), warnings.catch_warnings():
        # The browser has more glyphs than matplotlib's font; only their widths are estimates here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        figure = Figure(figsize=(width, height), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        axes.patch.set_visible(False)
        paint(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(buffer.getvalue(), alt, round(72 * width * _POINT))


def _inline(document: str, alt: str, most: int) -> Markup:
    svg = document[document.index("<svg") :]
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = body.replace('<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>', "")
    # Group ids repeat in every drawing, and a page may hold an id only once; ids of clips and marks are hashes.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r"<(?:g|defs)/>|<defs>\s*</defs>|<g>\s*</g>", "", body)
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r'style="([^"]*)"', lambda found: f'style="{_themed(found.group(1))}"', body)
    body = re.sub(r' (d|x|y)="([^"]*)"', lambda found: f' {found.group(1)}="{_rounded(found.group(2))}"', body)
    body = re.sub(r"\n\s*", "\n", body)
    attributes = Markup('role="img" aria-label="{}" viewBox="{}" style="max-width:{}px"').format(
        alt, box.group(1) if box else "", most
    )
    opening = Markup('<svg xmlns:xlink="http://www.w3.org/1999/xlink" {}>').format(attributes)
    return opening + Markup(body)


def _rounded(numbers: str) -> str:
    return re.sub(r"-?[0-9]+\.[0-9]+", lambda found: f"{float(found.group()):.2f}", " ".join(numbers.split()))


def _themed(style: str) -> str:
    """Replace stand-in colours by the page's variables, and matplotlib's font by the page's."""
    for colour, variable in _VARIABLES.items():
        style = style.replace(colour, f"var(--{variable})")
    return re.sub(r"font: ([0-9.]+px) [^;]*", r"font-size: \1", re.sub(r" ?font-family: [^;]*;?", "", style))
