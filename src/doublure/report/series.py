"""Drawings on a page of series."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from markupsafe import Markup

from doublure.measures.scores import Score, figure
from doublure.measures.series import SeriesEvaluation
from doublure.measures.series.plot_data import MOST_VALUES, ChannelHistogram, GroupFigures, ValueProfile
from doublure.measures.series.verdict import DISTANCES, worst_channel, worst_group
from doublure.measures.tables.distributions import ColumnFrequencies
from doublure.report import plots
from doublure.report.page import show_name


class _DrawnChannel(Protocol):
    @property
    def channel(self) -> str: ...


D = TypeVar("D", bound=_DrawnChannel)

_WHAT = {
    "autocorrelation": "autocorrelation",
    "spectrum": "spectrum",
    "apart": "distance by step",
    "level": "level",
    "peak": "peak",
    "peak_step": "step of the peak",
    "steepest": "steepest ramp",
}


MOST_CHANNELS = 6
"""Most channels that are drawn: those that are furthest off."""
_LONGEST = 28
_MOST_BY_VALUE = MOST_CHANNELS * MOST_VALUES
"""Most drawings by attribute: as many as one attribute of each channel may have."""


def series_context(found: SeriesEvaluation) -> dict[str, Any]:
    """Return the template variables of series, besides the common ones."""
    clock = found.clock
    channels = drawn_channels(found)
    by_value, left_out = _by_value(found, channels)
    return {
        "profiles": [_entry(one.channel, "", plots.profile(one, clock)) for one in _chosen(channels, found.profiles)],
        "curves": [
            _entry(one.channel, _WHAT[one.kind], plots.curve(one, clock)) for one in _chosen(channels, found.curves)
        ],
        "histograms": [
            _entry(one.channel, _WHAT[one.kind], plots.frequencies(_named(one)))
            for one in _chosen(channels, found.histograms)
        ],
        "pairs": [
            _entry(one.channel, f"distance {one.distance:.2f}", plots.pair(one, number, clock))
            for number, one in enumerate(found.pairs, start=1)
        ],
        "by_value": by_value,
        "by_value_left_out": left_out,
        "channels_left_out": [one.channel for one in found.profiles if one.channel not in channels],
        "groups": _groups(found),
        "students_skipped": found.classifiers_skipped,
    }


def drawn_channels(found: SeriesEvaluation) -> list[str]:
    """Return the channels that are drawn: all, or those that are furthest off, the worst first.

    How far off a channel is says its largest distance beyond that of other real series.
    """
    channels = [one.channel for one in found.profiles]
    if len(channels) <= MOST_CHANNELS:
        return channels
    scores = {score.key: score for score in found.scores if score.key in DISTANCES}
    off = dict.fromkeys(channels, 0.0)
    for each in found.by_channel:
        if each.key in scores and each.value is not None and each.real is not None:
            off[each.channel] = max(off[each.channel], each.value - each.real)
    return sorted(channels, key=lambda name: -off[name])[:MOST_CHANNELS]


def with_worst(score: Score, found: SeriesEvaluation) -> Score:
    """Return a score whose meaning names the channel, or the value of an attribute, that is furthest off."""
    said = ""
    if (channel := worst_channel(score, found.by_channel)) is not None:
        name, own = channel
        beside = f"other real series {figure(own, own.real)}"
        said = f" Worst: {show_name(name, _LONGEST)}, {figure(own, own.value)} ({beside})."
    elif (group := worst_group(score, found.groups)) is not None and score.value:
        said = f" Worst: {show_name(group.attribute, _LONGEST)} = {show_name(group.words, _LONGEST)}."
    return score.model_copy(update={"meaning": score.meaning + said})


def _chosen(channels: Sequence[str], drawn: Iterable[D]) -> list[D]:
    """Return what is drawn of channels, one channel after the other."""
    return sorted((one for one in drawn if one.channel in channels), key=lambda one: channels.index(one.channel))


def _groups(found: SeriesEvaluation) -> list[dict[str, Any]]:
    """Return the lines of attributes' values, those that are furthest off first, with figures as they are written."""

    def written(error: float | None) -> str:
        return "–" if error is None else f"{error:.3f}"

    return [
        {
            "name": f"{one.attribute} = {one.words}",
            "series": one.series,
            "channel": one.channel,
            "levels": None if one.levels is None else [f"{level:.3g}" for level in one.levels],
            "level_error": written(one.level_error),
            "pair": one.pair,
            "correlations": None if one.correlations is None else [f"{each:.2f}" for each in one.correlations],
            "correlation_error": written(one.correlation_error),
        }
        for one in sorted(found.groups, key=lambda one: -_off(one))
    ]


def _named(one: ChannelHistogram) -> ColumnFrequencies:
    return one.shares.model_copy(update={"column": f"{one.channel}: {_WHAT[one.kind]}"})


def _entry(name: str, what: str, drawing: Markup) -> dict[str, Any]:
    return {"name": name, "what": what, "drawing": drawing}


def _by_value(found: SeriesEvaluation, channels: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return small drawings in groups of one channel and one attribute, on one scale; and the attributes left out.

    Attributes whose values are furthest off come first.
    """
    groups: dict[tuple[str, str], list[ValueProfile]] = {}
    for entry in _chosen(channels, found.by_value):
        groups.setdefault((entry.channel, entry.attribute), []).append(entry)
    off = {one.attribute: 0.0 for one in found.groups}
    for one in found.groups:
        off[one.attribute] = max(off[one.attribute], _off(one))
    names = sorted(dict.fromkeys(attribute for _, attribute in groups), key=lambda name: -off.get(name, 0.0))
    kept, drawn = list[str](), 0
    for name in names:
        drawn += sum(len(group) for (_, attribute), group in groups.items() if attribute == name)
        if not kept or drawn <= _MOST_BY_VALUE:
            kept.append(name)
    sections = []
    for (channel, attribute), group in groups.items():
        if attribute not in kept:
            continue
        known = [value for entry in group for value in (*entry.real, *entry.synthetic) if value is not None]
        ends = plots.scale_with_zero(known)
        drawings = [_entry(entry.words, "", plots.value_profile(entry, ends, found.clock)) for entry in group]
        sections.append({"channel": channel, "attribute": attribute, "drawings": drawings})
    return sections, [name for name in dict.fromkeys([*names, *off]) if name not in kept]


def _off(group: GroupFigures) -> float:
    return max(group.level_error or 0.0, group.correlation_error or 0.0)
