"""A synthesizer as a notebook shows it: what may be said about it, how it was made, and what it can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from doublure.access import COVERED
from doublure.guarantee import Guarantee
from doublure.planning import Plan
from doublure.schema import ResolvedSchema
from doublure.schema.display import kind_of
from doublure.schema.kinds import KINDS
from doublure.support import views


def html(schema: ResolvedSchema, plan: Plan, guarantee: Guarantee, run: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Return a synthesizer as HTML, from its parts."""
    kept = run.get("ledger") or {}
    conditions = schema.with_role("condition")
    named = [
        ("method", plan.method),
        ("data set", kept.get("dataset")),
        ("kind of data", kind_of(schema)),
        (f"{KINDS[schema.kind].records}, by default", f"{schema.public_units:,}"),
        ("made", str(run["created"])[:10] if "created" in run else None),
        ("ledger entry", kept.get("sequence")),
        ("conditions", views.shortened(conditions) if conditions else None),
    ]
    names = list(schema.columns)
    claimed = guarantee.kind in COVERED
    return views.view(
        f"Synthesizer of {kept.get('dataset', schema.kind)}",
        views.line(guarantee.sentence, "claim" if claimed else "warn"),
        views.facts(named),
        *([views.folded(f"Columns: {len(names)}", views.line(", ".join(names), "plain"))] if names else []),
        *(views.line(f"{note}.", "plain") for note in notes),
        views.line("syn.sample() draws synthetic records, as often as you like: sampling costs nothing."),
    )
