"""From a comparison to its page: one matrix, a figure a line, a run a column; no figure is computed here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from doublure.measures.scores import BY_CHANCE, Score, SideBySide, figure, interval
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
    best = best_of(entry)
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
        "cells": [_cell(one, best=place in best) for place, one in enumerate(entry.scores)],
        "places": places,
        "anchors": anchors if entry.one_scale else {},
        "ends": ends,
    }


def _cell(score: Score | None, *, best: bool) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "value": figure(score, score.value),
        "interval": interval(score, score.interval),
        "baseline": figure(score, score.baseline),
        "real": figure(score, score.real),
        "best": best,
    }


def best_of(entry: SideBySide) -> frozenset[int]:
    """Return the places of the best figures: those that chance does not tell from the best one.

    Nothing where runs are measured on scales of their own, where fewer than two have a figure, or where all are as
    good as the best.
    """
    known = {place: one.value for place, one in enumerate(entry.scores) if one is not None and one.value is not None}
    goal, real = entry.score.goal, entry.score.real
    if not entry.one_scale or len(known) < 2 or (goal == "near" and real is None):
        return frozenset()
    losses = {
        place: {"low": value, "high": -value, "near": abs(value - (real or 0.0))}[goal]
        for place, value in known.items()
    }
    least = min(losses.values()) + BY_CHANCE * entry.score.width
    best = frozenset(place for place, loss in losses.items() if loss <= least)
    return best if len(best) < len(known) else frozenset()
