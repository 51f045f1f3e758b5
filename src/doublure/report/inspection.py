"""From an inspection to its page: no figure is computed here, only put into words and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doublure.access import COVERED
from doublure.measures.fault_tests import FaultTest
from doublure.measures.images.slices import Slice
from doublure.report import page
from doublure.report.contents import Inspected
from doublure.results import p_value, percent, span

_NO_GUARANTEE = "No privacy guarantee. Do not publish."
_SLICED = ("label", "unlike", "alike")


def inspection_context(found: Inspected) -> dict[str, Any]:
    """Return what the template of an inspection names."""
    claims = [("inspected", found.about), *(("reference", each) for each in found.against)]
    listed = _listed(found.fault_tests)
    return {
        "title": f"Is something wrong with these {found.records}?",
        "records": found.records,
        "about": found.about,
        "against": len(found.against),
        "loud": None if all(claim.guarantee_kind in COVERED for _, claim in claims) else _NO_GUARANTEE,
        "claims": claims,
        "verdict": found.verdict,
        "terms": (),
        "images": found.images,
        "sheet": page.inline_png(found.sheet) if found.sheet else "",
        "reference_sheets": [page.inline_png(sheet) for sheet in found.reference_sheets],
        "entries": [_entry(entry) for entry in sorted(found.fault_tests, key=_rank)],
        "listed": [entry.clause for entry in listed],
        "slices": [_row(each, listed, bool(found.against)) for each in found.slices],
        "notes": found.notes,
        "seed": found.seed,
        "versions": found.versions,
    }


def _listed(fault_tests: Sequence[FaultTest]) -> list[FaultTest]:
    """Return what is shown class by class: what stands out, and what is of use in any case."""
    return [entry for entry in fault_tests if entry.classes and (entry.found or entry.key in _SLICED)]


def _entry(entry: FaultTest) -> dict[str, Any]:
    return {
        "clause": entry.clause,
        "meaning": entry.meaning,
        "share": percent(entry.share),
        "interval": span(entry.interval, shares=True),
        "reference": percent(entry.reference),
        "usual": _usual(entry),
        "p": "" if entry.p is None else p_value(entry.p),
        "found": entry.found,
        "open": entry.open,
    }


def _rank(entry: FaultTest) -> int:
    """Return where a test stands in its table: what stands out first, then what is undecided."""
    return 0 if entry.found else 1 if entry.open else 2


def _usual(entry: FaultTest) -> str:
    return "" if entry.usual is None else f"usual: {'from' if entry.fewer else 'up to'} {percent(entry.usual)}"


def _row(each: Slice, listed: Sequence[FaultTest], against: bool) -> dict[str, Any]:
    shares, bright = [each.share], [each.brightness]
    if against:
        shares, bright = [*shares, each.reference or 0.0], [*bright, each.reference_brightness]
    columns = [*shares, *bright, *(entry.classes.get(each.label) for entry in listed)]
    return {"label": each.label, "cells": [percent(column) for column in columns]}
