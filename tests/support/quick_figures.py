"""Which tests draw the figures of pages: those of pages. Elsewhere they are painted, and neither laid out nor written.

A page of an evaluation has some twenty figures, which take longer than all that they show.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import tiers
from markupsafe import Markup

DRAWN = (
    "report",
    "test_docs.py",
    "test_figures.py",
    "test_forgeries.py",
    "test_results_page.py",
    "test_site.py",
)
"""Folders and files of tests in which figures are drawn; so they are in every process that a test starts."""


def choose(test: Path) -> None:
    """Say whether the next figures are drawn."""
    plots = sys.modules.get("doublure.report.plots")
    if plots is not None:
        drawn = tiers.ALL or tiers.is_among(test, DRAWN)
        plots.draw = sys.modules["doublure.report.drawing"].draw if drawn else painted  # type: ignore[attr-defined]


def painted(width: float, height: float, key: str, alt: str, paint: Callable[..., None]) -> Markup:
    """Return an empty picture with its text, once all was painted that it shows."""
    from matplotlib.figure import Figure

    paint(Figure(figsize=(width, height)).add_subplot())
    return Markup('<svg role="img" aria-label="{}"></svg>').format(alt)
