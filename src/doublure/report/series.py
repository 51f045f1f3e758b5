"""Drawings on a page of series."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from doublure.measures.series import SeriesEvaluation
from doublure.measures.series.plot_data import ChannelHistogram, ValueProfile
from doublure.measures.tables.distributions import ColumnFrequencies
from doublure.report import plots

_WHAT = {
    "autocorrelation": "autocorrelation",
    "spectrum": "spectrum",
    "apart": "distance by step",
    "level": "level",
    "peak": "peak",
    "peak_step": "step of the peak",
    "steepest": "steepest ramp",
}


def series_context(found: SeriesEvaluation, most: int) -> dict[str, Any]:
    """Return the template variables of series, besides the common ones.

    Args:
        found: The evaluation.
        most: Most drawings of a sort.
    """
    clock = found.clock
    return {
        "profiles": [_entry(one.channel, "", plots.profile(one, clock)) for one in found.profiles[:most]],
        "curves": [_entry(one.channel, _WHAT[one.kind], plots.curve(one, clock)) for one in found.curves[:most]],
        "histograms": [
            _entry(one.channel, _WHAT[one.kind], plots.frequencies(_named(one))) for one in found.histograms[:most]
        ],
        "pairs": [
            _entry(one.channel, f"distance {one.distance:.2f}", plots.pair(one, number, clock))
            for number, one in enumerate(found.pairs, start=1)
        ],
        "by_value": _by_value(found, most),
        "by_value_left_out": max(0, len(found.by_value) - most),
        "students_skipped": found.classifiers_skipped,
    }


def _named(one: ChannelHistogram) -> ColumnFrequencies:
    return one.shares.model_copy(update={"column": f"{one.channel}: {_WHAT[one.kind]}"})


def _entry(name: str, what: str, drawing: Markup) -> dict[str, Any]:
    return {"name": name, "what": what, "drawing": drawing}


def _by_value(found: SeriesEvaluation, most: int) -> list[dict[str, Any]]:
    """Return small drawings in groups of one channel and one attribute, on one scale."""
    groups: dict[tuple[str, str], list[ValueProfile]] = {}
    for entry in found.by_value[:most]:
        groups.setdefault((entry.channel, entry.attribute), []).append(entry)
    sections = []
    for (channel, attribute), group in groups.items():
        known = [figure for entry in group for figure in (*entry.real, *entry.synthetic) if figure is not None]
        ends = plots.scale_with_zero(known)
        drawings = [_entry(entry.words, "", plots.value_profile(entry, ends, found.clock)) for entry in group]
        sections.append({"channel": channel, "attribute": attribute, "drawings": drawings})
    return sections
