"""Notebook view of a ledger: the budget spent of the cap, and every charged run."""

from __future__ import annotations

from typing import Any

from doublure.errors import counted
from doublure.ledger.shapes import NO_NOISE
from doublure.support import views


def html(name: str, summary: dict[str, Any]) -> str:
    """Return a ledger as HTML.

    Args:
        name: The file's name.
        summary: As :func:`doublure.ledger.summary.summary` returns it.
    """
    from doublure.guarantee import figure  # so that a ledger alone loads no pydantic

    cap, spent, left = summary["cap"], summary["spent"], summary["remaining"]
    shares = [spent[key] / cap[key] for key in ("epsilon", "delta") if cap[key]]
    rows = [
        (
            run["sequence"],
            run["utc"].replace("T", " ").removesuffix("Z") + " UTC",
            run["method"],
            run["kind"],
            "no ε" if run["epsilon"] is None else figure(run["epsilon"]),
            "–" if run["delta"] is None else figure(run["delta"]),
            run["status"],
        )
        for run in summary["runs"]
        if run["status"] != NO_NOISE
    ]
    folded = len(summary["runs"]) - len(rows)
    free = f"{folded} more drew no noise and cost nothing. " if folded else ""
    releases = len(summary["releases"])
    return views.view(
        f"Ledger of {summary['dataset']}",
        views.line(name),
        views.facts(
            (title, f"ε = {figure(of['epsilon'])}, δ = {figure(of['delta'])}")
            for title, of in (("spent", spent), ("left", left), ("cap over all runs", cap))
        ),
        views.bar(max(shares, default=0.0)),
        views.grid(("entry", "reserved", "method", "kind", "ε", "δ", "status"), rows, right=(4, 5))
        if rows
        else views.line("No run has been charged."),
        views.line(f"{free}{counted(releases, 'release')} {'is' if releases == 1 else 'are'} recorded."),
        views.line(summary["note"], "plain" if summary["covers_all_releases"] else "warn"),
    )
