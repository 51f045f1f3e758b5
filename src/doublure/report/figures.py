"""Figures of an evaluation for notebooks: a column, a channel or the classes, real beside synthetic.

They are matplotlib figures on a light ground, and show shares and means only: no real record. Like all of an evaluation
they are computed on real data, and internal.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as _Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from doublure.errors import SettingError, printable
from doublure.measures.evaluation import Evaluation
from doublure.measures.images.evaluation import ImageEvaluation
from doublure.measures.relational import RelationalEvaluation
from doublure.measures.series import SeriesEvaluation
from doublure.measures.series.plot_data import ChannelCurve
from doublure.measures.tables.distributions import ColumnFrequencies
from doublure.measures.tables.evaluation import TableEvaluation
from doublure.report import drawing, plots
from doublure.report.page import show_name
from doublure.results import percent
from doublure.support.guessing import nearest_name

_DOTS = 110
_LEAST = "independent steps"
Panels = list[tuple[str, str, str, Callable[[Axes], None]]]
"""For each panel: its title, the labels of both axes, and the function that paints it."""


class Figure(_Figure):
    """A matplotlib figure that a notebook shows whether or not pyplot was imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with warnings.catch_warnings():  # characters of a script that the font lacks become boxes; no reason to warn
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
            self.savefig(buffer, format="png", dpi=_DOTS)
        return buffer.getvalue()


def draw_figure(found: Evaluation, name: str | None) -> Figure:
    """Return the figure of one column, channel or label of an evaluation.

    Args:
        found: The evaluation.
        name: The thing to draw; optional where there is one.

    Raises:
        SettingError: There is none of that name, or there are several and none is named.
    """
    for kind, drawings in _DRAWINGS:
        if isinstance(found, kind):
            known, panels = drawings(found)
            return _drawn(panels(_named(name, known)))
    raise SettingError("has no figures of its own", field="plot", remedy="see report.show()")


def _named(name: str | None, known: Sequence[str]) -> str:
    if name is None and len(known) == 1:
        return known[0]
    if name in known:
        return str(name)
    near = None if name is None else nearest_name(name, known)
    listed = ", ".join(printable(each) for each in known[:12]) + (", …" if len(known) > 12 else "")
    remedy = f"did you mean {printable(near)}?" if near else f"name one of: {listed}"
    message = "is needed: there are several" if name is None else "is not among what was drawn"
    raise SettingError(message, field="name" if name is None else name, remedy=remedy)


# -- drawings by kind ------------------------------------------------------------------------------------------------

Drawings = tuple[Sequence[str], Callable[[str], Panels]]


def _of_table(found: TableEvaluation) -> Drawings:
    shares = {entry.column: entry for entry in found.frequencies}
    smooth = {entry.column: entry for entry in found.densities}

    def panels(name: str) -> Panels:
        entry = shares[name]
        title = show_name(name) + _beside(entry)
        if entry.labels is not None:
            return [(title, "share of rows", "", lambda axes: plots.on_axes(axes, entry))]
        drawn: Panels = [(title, show_name(name), "share of rows", lambda axes: plots.on_axes(axes, entry))]
        if name in smooth:
            curve = smooth[name]
            drawn.append(("smoothed", show_name(name), "density", lambda axes: plots.on_axes(axes, curve)))
        return drawn

    return list(shares), panels


def _beside(entry: ColumnFrequencies) -> str:
    """Return the shares left out of a drawing: zeros that are a state of their own, and missing cells."""
    left_out = {"zero": entry.zero, "missing": entry.missing}
    said = [
        f"{what}: {percent(pair[0])} real, {percent(pair[1])} synthetic"
        for what, pair in left_out.items()
        if pair is not None
    ]
    return "\n" + "; ".join(said) if said else ""


def _of_related(found: RelationalEvaluation) -> Drawings:
    parts = {name: _of_table(table) for name, table in found.tables.items()}
    known = [f"{table}.{column}" for table, (columns, _) in parts.items() for column in columns]

    def panels(name: str) -> Panels:
        table = next(each for each in parts if name.startswith(f"{each}.") and name in known)
        return parts[table][1](name.removeprefix(f"{table}."))

    return known, panels


def _of_series(found: SeriesEvaluation) -> Drawings:
    profiles = {entry.channel: entry for entry in found.profiles}
    curves = {entry.channel: entry for entry in found.curves if entry.kind == "autocorrelation"}

    def panels(name: str) -> Panels:
        entry = profiles[name]
        along = "step" if found.clock is None else "time of day"
        title = f"{show_name(name)}: mean, and where four in five lie"
        drawn: Panels = [(title, along, show_name(name), lambda axes: plots.on_axes(axes, entry, found.clock))]
        if name in curves:
            curve = curves[name]
            drawn.append((f"autocorrelation ({_LEAST} in grey)", "lag in steps", "", lambda axes: _lags(axes, curve)))
        return drawn

    return list(profiles), panels


def _lags(axes: Axes, curve: ChannelCurve) -> None:
    plots.on_axes(axes, curve)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _of_images(found: ImageEvaluation) -> Drawings:
    def sheet(axes: Axes) -> None:
        from matplotlib.image import imread

        axes.imshow(imread(io.BytesIO(found.artificial_sheet), format="png"))
        axes.set_axis_off()

    known = [entry for entry in found.classes if entry.share.value is not None and entry.share.real is not None]
    shares = ColumnFrequencies(
        column="label",
        kind="category",
        labels=tuple(entry.label for entry in known),
        real=tuple(entry.share.real or 0.0 for entry in known),
        synthetic=tuple(entry.share.value or 0.0 for entry in known),
    )
    drawn: Panels = [("synthetic images", "", "", sheet)] if found.artificial_sheet else []
    if known:
        drawn.append(("label", "share of images", "", lambda axes: plots.on_axes(axes, shares)))
    return ["images"], lambda _: drawn


_DRAWINGS: tuple[tuple[type[Evaluation], Callable[[Any], Drawings]], ...] = (
    (TableEvaluation, _of_table),
    (RelationalEvaluation, _of_related),
    (SeriesEvaluation, _of_series),
    (ImageEvaluation, _of_images),
)


# -- drawing ---------------------------------------------------------------------------------------------------------


def _drawn(panels: Panels) -> Figure:
    style: Any = drawing.STYLE | {"font.size": 10, "axes.titlesize": 10.5, "axes.titlelocation": "left"}
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.6 * len(panels) + 0.4, 3.4), layout="constrained", facecolor="white")
        for axes, (title, along, up, paint) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            paint(axes)
            axes.set_title(title)
            axes.set_xlabel(along)
            axes.set_ylabel(up if len(axes.get_yticks()) else "density")
        marks = [each for each in (_marks(axes) for axes in figure.axes) if each is not None]
        handles = [tuple(dict.fromkeys(kinds)) for kinds in zip(*marks, strict=True)]
        drawn: Any = [tuple(_HANDLES[kind]() for kind in kinds) for kinds in handles]
        figure.legend(
            drawn,
            ["real", "synthetic"][: len(handles)],
            handler_map={tuple: HandlerTuple(ndivide=None)},
            loc="outside lower center",
            ncols=2,
            frameon=False,
        )
    return figure


def _marks(axes: Axes) -> tuple[str, str] | None:
    """Return the names of the marks of real and synthetic records; None for an axis that shows neither."""
    lines = [line for line in axes.lines if line.get_color() == drawing.SYNTHETIC]
    if any(line.get_marker() == "D" for line in lines):
        return "area", "diamonds"
    if lines:
        return ("area" if axes.collections or axes.patches else "line"), "dashes"
    return ("area", "outline") if axes.patches else None


_HANDLES: dict[str, Callable[[], Artist]] = {
    "area": lambda: Patch(facecolor=(drawing.REAL, 0.3), edgecolor=drawing.REAL, linewidth=0.9),
    "line": lambda: Line2D([], [], color=drawing.REAL, linewidth=1.3),
    "diamonds": lambda: Line2D([], [], color=drawing.SYNTHETIC, linestyle="none", marker="D", markersize=4.2),
    "dashes": lambda: Line2D([], [], color=drawing.SYNTHETIC, linewidth=1.8, linestyle=(0, (4, 1.6))),
    "outline": lambda: Patch(fill=False, edgecolor=drawing.SYNTHETIC, linewidth=1.8),
}
