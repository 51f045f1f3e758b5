"""Pictures of measured figures: a line a method, over ε or over how many images, with the range of the seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from results import Spread

Lines: TypeAlias = dict[str, dict[float | None, Spread]]
"""Each method's spread by where it was measured; at None alone, where it has no such place."""


def draw(
    panes: Sequence[tuple[str, Lines]],
    styles: Mapping[str, tuple[str, Mapping[str, Any]]],
    *,
    title: str,
    over: str,
    path: Path,
) -> None:
    """Draw panes beside each other, and write them; without panes, nothing.

    Args:
        panes: What each is called, and its lines. What has no place in it is a band from one end to the other.
        styles: What each method is called, and how its line looks, in the legend's order.
        title: Above all of them.
        over: What stands along the axis, logarithmically.
        path: A PNG or an SVG; the same lines make the same bytes.
    """
    if not panes:
        return
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": path.name})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(panes), figsize=(3.6 * len(panes), 3.9), layout="constrained", squeeze=False)
    shown: dict[str, Any] = {}
    for pane, (name, lines) in zip(axes[0], panes, strict=True):
        for method in (method for method in styles if method in lines):
            points, look = lines[method], styles[method][1]
            if None in points:
                low, middle, high = points[None]
                shown[method] = pane.axhline(middle, **look)
                pane.axhspan(low, high, alpha=0.1, color="grey", linewidth=0)
            else:
                at = sorted(place for place in points if place is not None)
                lows, middles, highs = np.array([points[place] for place in at]).T
                own = {"marker": "o", "markersize": 4, "capsize": 3, **look}
                shown[method] = pane.errorbar(at, middles, yerr=(middles - lows, highs - middles), **own)
        places = sorted({place for points in lines.values() for place in points if place is not None})
        pane.set(xscale="log", xlabel=over, title=name)
        pane.set_xticks(places, [f"{place:,g}" for place in places], minor=False)
        pane.minorticks_off()
        pane.spines[["top", "right"]].set_visible(False)
    names = [method for method in styles if method in shown]
    labels = [styles[name][0] for name in names]
    figure.legend([shown[name] for name in names], labels, loc="outside lower center", frameon=False, ncols=len(names))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
    print(path)
