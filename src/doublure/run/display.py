"""Notebook view of a synthesizer, and the facts that its fit bought, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from doublure.access import COVERED
from doublure.errors import printable
from doublure.guarantee import Guarantee
from doublure.planning import Plan
from doublure.schema.display import kind_of
from doublure.schema.fact_states import plain
from doublure.schema.kinds import KINDS
from doublure.schema.schema import Question, ResolvedSchema, Schema
from doublure.support import views
from doublure.support.views import list_values

_FEW = 6


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
        ("conditions", views.shorten(conditions) if conditions else None),
    ]
    names = list(schema.columns)
    claimed = guarantee.kind in COVERED
    return views.view(
        f"Synthesizer of {kept.get('dataset', schema.kind)}",
        views.line(guarantee.sentence, "claim" if claimed else "warn"),
        views.facts(named),
        *([views.fold(f"Columns: {len(names)}", views.line(", ".join(names), "plain"))] if names else []),
        *(views.line(f"{note}.", "plain") for note in notes),
        views.line("syn.sample() draws synthetic records, as often as you like: sampling costs nothing."),
    )


# -- bought facts in words: the answers to the schema's {learn: ε}, public from then on --------------------------------


def bought(asked: Schema, resolved: ResolvedSchema) -> tuple[str, ...]:
    """Return the learned facts, a line each, in the order of the questions.

    Args:
        asked: The schema with the questions.
        resolved: The schema with the answers.
    """
    return tuple(_lines(asked, resolved))


def _lines(asked: Schema, resolved: ResolvedSchema) -> Iterator[str]:
    for question in asked.questions:
        yield f"{printable(question.path)}: {_answer(question, resolved)} (for ε = {question.epsilon:g})"


def _answer(question: Question, resolved: ResolvedSchema) -> str:
    if question.column is None:
        return f"{resolved.units:,}"
    found = resolved.columns[question.column].fact(question.fact)
    if question.fact == "bounds":
        return " to ".join(_text(end) for end in found)
    if isinstance(found, Mapping):
        return list_values([f"{_text(value)} {share:.1%}" for value, share in found.items()], _FEW)
    if isinstance(found, tuple):
        return list_values([_text(value) for value in found], _FEW)
    return {True: "some cells are empty", False: "no cell is empty"}.get(found, _text(found))


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:,.10g}"
    return printable(plain(value))
