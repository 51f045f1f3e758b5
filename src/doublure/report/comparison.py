"""Comparison of runs and its page: a matrix with a row per figure and a column per run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from typing_extensions import override

from doublure import guarantee
from doublure.intervals import Interval, Result
from doublure.measures.holdout import seen_warning
from doublure.measures.scores import Score, ScoreComparison, amount, figure
from doublure.report import page
from doublure.report.cells import ScoreCell, make_cells
from doublure.report.files import PageResult
from doublure.results import INTERNAL
from doublure.support import views
from doublure.support.files import Form

if TYPE_CHECKING:
    import pandas as pd

_GOOD = {"low": "low", "high": "high", "near": "as real"}
_SHAPES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
UNLIKE = "These claims differ: a run that spends more should be better. Compare methods at the same ε, δ and unit."
_KEY = (
    "* best, or no clear difference from the best. In brackets: how far behind the best, 95 % for all figures together "
    "(paired bootstrap of rows). Without an interval nothing is marked."
)
_LARGE = 100.0  # figures from 0 to 100 or 1000 need no thousandths


class ComparedRun(Result):
    """One synthesizer and its figures.

    Attributes:
        name: Its name here: its run folder.
        method: Its method.
        kind: The kind of its guarantee.
        guarantee: The guarantee's sentence.
        epsilon: Its ε, if it has one.
        delta: Its δ, if it has one.
        unit: The unit it protects.
        max_records: Records of one unit that are covered.
        suspicion: The reason to suspect that the real records are its own synthetic ones, if there is one.
        scores: Its figures; another run may have others.
    """

    name: str
    method: str
    kind: str
    guarantee: str
    epsilon: float | None = None
    delta: float | None = None
    unit: str
    max_records: int
    suspicion: str | None = None
    scores: tuple[Score, ...]

    @property
    def title(self) -> str:
        """The run's name for a reader: its method and its ε."""
        return self.method if self.epsilon is None else f"{self.method}, ε = {guarantee.figure(self.epsilon)}"

    @property
    def claim(self) -> tuple[object, ...]:
        """The values that have to be equal in a fair comparison; neighbours add or remove a unit in all."""
        return self.kind, self.epsilon, self.delta, self.unit, self.max_records


class PairedDifference(Result):
    """Advantage of one run's figure over another's.

    Attributes:
        key: The figure's key.
        name: The figure's name.
        first: The name of the one run.
        second: The name of the other.
        value: The advantage of the first: positive if nearer the goal, in the figure's unit.
        interval: Its paired interval; all intervals of a comparison hold at once in 95 of 100 repetitions.
    """

    key: str
    name: str
    first: str
    second: str
    value: float
    interval: Interval


class Comparison(PageResult):
    """Synthesizers side by side. Computed on real data: internal.

    Attributes:
        records: The word for its records.
        least: The name of the baseline.
        kept_aside: Whether no fit has seen the test records.
        contenders: The synthesizers, in the order they were named.
        paired: The differences of every two runs, for every resampled figure.
    """

    form: ClassVar[Form] = "comparison"

    version: Literal[1] = 1
    internal: str = INTERNAL
    records: str = "rows"
    least: str = "independent columns"
    kept_aside: bool
    contenders: tuple[ComparedRun, ...]
    paired: tuple[PairedDifference, ...] = ()

    @override
    def to_html(self) -> str:
        return page.render("comparison.html.j2", comparison_context(self))

    def _repr_html_(self) -> str:
        rows = [
            (
                entry.score.name,
                *("–" if score is None else figure(score, score.value) for score in entry.scores),
                figure(entry.score, entry.score.baseline) if entry.one_scale else "differs",
                figure(entry.score, entry.score.real) if entry.one_scale else "differs",
            )
            for entry in self.side_by_side
        ]
        names = [f"{one.name} ({one.title})" for one in self.contenders]
        heads = ("figure", *names, self.least, f"real {self.records}")
        return views.view(
            "Comparison",
            views.line(f"INTERNAL: {self.internal}", "warn"),
            *(views.line(warning, "plain") for warning in self.warnings),
            views.grid(heads, rows, right=range(1, len(heads))),
            views.line("report.show() opens the page."),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that come before any figure."""
        found = [f"{one.suspicion} (Run: {one.name}.)" for one in self.contenders if one.suspicion is not None]
        found += seen_warning(self.kept_aside, self.records)
        if len({one.claim for one in self.contenders}) > 1:
            found.append(UNLIKE)
        return (*found, *self.differences)

    @property
    def side_by_side(self) -> tuple[ScoreComparison, ...]:
        """Every figure of any contender, in the order of the contender with most figures.

        A figure is identified by key and name together: classifiers of images share a key.
        """
        known = [{(score.key, score.name): score for score in one.scores} for one in self.contenders]
        asked = {key: score for one in sorted(known, key=len, reverse=True) for key, score in one.items()}
        places = {one.name: place for place, one in enumerate(self.contenders)}
        ends: dict[tuple[str, str], dict[tuple[int, int], Interval]] = {}
        for each in self.paired:
            ends.setdefault((each.key, each.name), {})[places[each.first], places[each.second]] = each.interval
        return tuple(
            ScoreComparison(score=score, scores=tuple(one.get(key) for one in known), intervals=ends.get(key, {}))
            for key, score in asked.items()
        )

    @property
    def scores(self) -> pd.DataFrame:
        """The figures, a row each, indexed by key.

        Columns: ``name``; one for each run, by its name; ``baseline``, the least to expect; ``real``, the most.
        Unknown values are missing. Computed on real data: internal.
        """
        import pandas as pd

        figures = self.side_by_side
        columns: dict[str, list[float | None]] = {}
        for place, one in enumerate(self.contenders):
            columns[one.name] = [None if (own := each.scores[place]) is None else own.value for each in figures]
        known = [each.score if each.one_scale else None for each in figures]
        columns["baseline"] = [None if score is None else score.baseline for score in known]
        columns["real"] = [None if score is None else score.real for score in known]
        found = pd.DataFrame(columns, dtype="float64")
        found.insert(0, "name", [each.score.name for each in figures])
        return found.set_index(pd.Index([each.score.key for each in figures], name="key"))

    @property
    def same_references(self) -> bool:
        """Whether all figures share their references exactly, as under one schema without bought facts."""
        return all(entry.same for entry in self.side_by_side)

    @property
    def differences(self) -> tuple[str, ...]:
        """Reasons why contenders cannot be compared, such as different schemas; empty if they can."""
        figures, found = self.side_by_side, []
        for place, one in enumerate(self.contenders):
            missing = [entry.score.name for entry in figures if entry.scores[place] is None]
            if missing:
                found.append(f"Not measured for {one.name} (a dash in its row): {', '.join(missing)}.")
        unlike = [entry.score.name for entry in figures if not entry.one_scale]
        if unlike:
            found.append(
                f"The scales of these differ from run to run: {', '.join(unlike)}. Compare each run with its own "
                f"{self.least} and real {self.records}."
            )
        return tuple(found)

    def __str__(self) -> str:
        """Return a table for a terminal: a row per figure, a column per run, with its distance from the best."""
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return the table of :meth:`__str__` for lines of some width.

        Args:
            width: Characters per line; columns beyond follow below. None: no limit.
        """
        words = {"low": "low", "high": "high", "near": "as real"}
        names = ["", *(one.name for one in self.contenders), self.least, f"real {self.records}", "good is"]
        titles = ["", *(one.title for one in self.contenders), "", "", ""]
        lines = [
            [
                entry.score.name,
                *(_write_cell(entry, place) for place in range(len(entry.scores))),
                _against(entry, entry.score.baseline),
                _against(entry, entry.score.real),
                words[entry.score.goal],
            ]
            for entry in self.side_by_side
        ]
        claims = [f"{one.name}: {one.guarantee}" for one in self.contenders]
        warnings = (f"! {line}" for line in self.warnings)
        table = _set_out([names, titles, *lines], width)
        return "\n".join([f"INTERNAL: {INTERNAL}", *warnings, *table, *([_KEY] if len(claims) > 1 else []), *claims])


def _set_out(table: list[list[str]], room: int | None) -> list[str]:
    """Return aligned columns as lines, in blocks where they exceed the width; each begins with the first column."""
    widths = [max(len(line[place]) for line in table) for place in range(len(table[0]))]
    blocks: list[list[int]] = []
    used = 0
    for place, width in enumerate(widths[1:], 1):
        if not blocks or (room is not None and used + 2 + width > room):
            blocks.append([0])
            used = widths[0]
        blocks[-1].append(place)
        used += 2 + width
    lines = []
    for places in blocks:
        shown = ("  ".join(line[place].ljust(widths[place]) for place in places).rstrip() for line in table)
        lines += [*filter(None, shown), ""]
    return lines


def _figure(score: Score, value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1f}" if score.width >= _LARGE else f"{value:.3f}"


def _against(entry: ScoreComparison, value: float | None) -> str:
    return _figure(entry.score, value) if entry.one_scale else "differs"


def _write_cell(entry: ScoreComparison, place: int) -> str:
    score, first = entry.scores[place], entry.first
    if score is None or score.value is None:
        return "–"
    text = _figure(score, score.value) + ("*" if place in entry.best else "")
    if first is None or first == place:
        return text
    behind = entry.difference(first, place).interval
    return f"{text} ({'no interval' if behind is None else amount(score, *behind)})"


# -- the page --------------------------------------------------------------------------------------------------------


def comparison_context(found: Comparison) -> dict[str, Any]:
    """Return the variables of a comparison's template: the matrix, and the runs that head its columns."""
    titles = Counter(one.title for one in found.contenders)
    runs = [
        {
            "letter": _SHAPES[place % len(_SHAPES)],
            "title": one.title,
            "name": one.name,
            "twice": titles[one.title] > 1,
            "guarantee": one.guarantee,
        }
        for place, one in enumerate(found.contenders)
    ]
    return {
        "title": "Comparison of synthesizers",
        "internal": found.internal,
        "kept_aside": found.kept_aside,
        "warnings": found.warnings,
        "same_references": found.same_references,
        "runs": runs,
        "lines": [_line(entry) for entry in found.side_by_side],
        "records": found.records,
        "least": found.least,
    }


def _line(entry: ScoreComparison) -> dict[str, Any]:
    score = entry.score
    shown: list[ScoreCell | None] = make_cells(entry.scores)
    places = [
        (_SHAPES[place % len(_SHAPES)], cell.dots["synthetic"])
        for place, cell in enumerate(shown)
        if cell is not None and "synthetic" in cell.dots
    ]
    ends = next((cell.ends for cell in shown if cell is not None), ("", "", "", ""))
    anchors = {role: cell.dots[role] for cell in shown if cell for role in ("baseline", "real") if role in cell.dots}
    return {
        "name": score.name[:1].upper() + score.name[1:],
        "meaning": score.meaning,
        "good": _GOOD[score.goal],
        "one_scale": entry.one_scale,
        "baseline": figure(score, score.baseline),
        "real": figure(score, score.real),
        "cells": [_cell(entry, place) for place in range(len(entry.scores))],
        "places": places,
        "anchors": anchors if entry.one_scale else {},
        "ends": ends,
    }


def _cell(entry: ScoreComparison, place: int) -> dict[str, Any] | None:
    score, first = entry.scores[place], entry.first
    if score is None:
        return None
    behind, ends = "", ""
    if first is not None and first != place and score.value is not None:
        apart, who = entry.difference(first, place), _SHAPES[first % len(_SHAPES)]
        better = f"{who} better by {amount(score, apart.value)}"
        behind = better if apart.significant else f"no clear difference from {who}"
        ends = "no interval" if apart.interval is None else amount(score, *apart.interval)
    return {
        "value": figure(score, score.value),
        "behind": behind,
        "ends": ends,
        "baseline": figure(score, score.baseline),
        "real": figure(score, score.real),
        "best": place in entry.best,
    }
