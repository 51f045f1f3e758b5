"""From a comparison to its page: one matrix, a figure a line, a run a column; no figure is computed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from doublure.measures.scores import SideBySide, amount, figure
from doublure.report.cells import Cell, cells_of
from doublure.report.contents import Compared

_GOOD = {"low": "low", "high": "high", "near": "as real"}
_SHAPES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def comparison_context(found: Compared) -> dict[str, Any]:
    """Return what the template of a comparison names: the matrix, and the runs that head its columns."""
    contenders: Sequence[Any] = found.contenders
    titles = Counter(one.title for one in contenders)
    runs = [
        {
            "letter": _SHAPES[place % len(_SHAPES)],
            "title": one.title,
            "name": one.name,
            "twice": titles[one.title] > 1,
            "guarantee": one.guarantee,
        }
        for place, one in enumerate(contenders)
    ]
    return {
        "title": "Comparison of synthesizers",
        "internal": found.internal,
        "kept_aside": found.kept_aside,
        "warnings": found.warnings,
        "asked_the_same": found.asked_the_same,
        "runs": runs,
        "lines": [_line(entry) for entry in found.side_by_side],
        "records": found.records,
        "least": found.least,
    }


def _line(entry: SideBySide) -> dict[str, Any]:
    score = entry.score
    shown: list[Cell | None] = cells_of(entry.scores)
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


def _cell(entry: SideBySide, place: int) -> dict[str, Any] | None:
    score, first = entry.scores[place], entry.first
    if score is None:
        return None
    behind, ends = "", ""
    if first is not None and first != place and score.value is not None:
        apart, who = entry.difference(first, place), _SHAPES[first % len(_SHAPES)]
        behind = f"{who} better by {amount(score, apart.value)}" if apart.told else f"no clear difference from {who}"
        ends = "no interval" if apart.interval is None else amount(score, *apart.interval)
    return {
        "value": figure(score, score.value),
        "behind": behind,
        "ends": ends,
        "baseline": figure(score, score.baseline),
        "real": figure(score, score.real),
        "best": place in entry.best,
    }
