"""The drawings on a page of series: no figure is computed here."""

from __future__ import annotations

from typing import Any

from doublure.evaluate.series import SeriesEvaluation
from doublure.evaluate.series.drawings import ValueProfile
from doublure.report import plots

_CURVES = {"autocorrelation": "autocorrelation", "spectrum": "spectrum", "apart": "distance by step"}


def drawn(found: SeriesEvaluation, most: int) -> dict[str, Any]:
    """Return what the template of series names beside what all records have.

    Args:
        found: What was measured.
        most: The most drawings of a sort.
    """
    sorts = {
        "profiles": [(entry.channel, plots.profile(entry, found.clock)) for entry in found.profiles[:most]],
        "curves": [
            (f"{entry.channel}: {_CURVES[entry.kind]}", plots.curve(entry, found.clock))
            for entry in found.curves[:most]
        ],
        "histograms": [(entry.column, plots.frequencies(entry)) for entry in found.histograms[:most]],
        "pairs": [
            (f"{entry.distance:.2f} apart", plots.pair(entry, number, found.clock))
            for number, entry in enumerate(found.pairs, start=1)
        ],
    }
    return {
        "by_value": _by_value(found, most),
        "by_value_left_out": max(0, len(found.by_value) - most),
        "students_skipped": found.students_skipped,
        **{key: [{"name": name, "drawing": drawing} for name, drawing in entries] for key, entries in sorts.items()},
    }


def _by_value(found: SeriesEvaluation, most: int) -> list[dict[str, Any]]:
    """Return small drawings in groups of one channel and one attribute, on one scale."""
    groups: dict[tuple[str, str], list[ValueProfile]] = {}
    for entry in found.by_value[:most]:
        groups.setdefault((entry.channel, entry.attribute), []).append(entry)
    sections = []
    for (channel, attribute), group in groups.items():
        known = [figure for entry in group for figure in (*entry.real, *entry.synthetic) if figure is not None]
        ends = plots.room(known)
        drawings = [{"name": entry.value, "drawing": plots.value_profile(entry, ends, found.clock)} for entry in group]
        sections.append({"channel": channel, "attribute": attribute, "drawings": drawings})
    return sections
