"""What a fit bought, in words: the answers to the schema's ``{learn: ε}``, public from then on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from doublure.errors import printable
from doublure.schema.fact_states import plain
from doublure.schema.schema import Question, ResolvedSchema, Schema
from doublure.support.wording import listed

_FEW = 6


def bought(asked: Schema, resolved: ResolvedSchema) -> tuple[str, ...]:
    """Return what was learned, a line each, in the order in which it was asked.

    Args:
        asked: The schema with what was to be learned.
        resolved: The same with the answers.
    """
    return tuple(_lines(asked, resolved))


def _lines(asked: Schema, resolved: ResolvedSchema) -> Iterator[str]:
    for question in asked.questions:
        yield f"{printable(question.path)}: {_answer(question, resolved)} (for ε = {question.epsilon:g})"


def _answer(question: Question, resolved: ResolvedSchema) -> str:
    if question.column is None:
        return f"{resolved.units:,}"
    found = getattr(resolved.columns[question.column], question.fact)
    if question.fact == "bounds":
        return " to ".join(_text(end) for end in found)
    if isinstance(found, Mapping):
        return listed([f"{_text(value)} {share:.1%}" for value, share in found.items()], _FEW)
    if isinstance(found, tuple):
        return listed([_text(value) for value in found], _FEW)
    return {True: "some cells are empty", False: "no cell is empty"}.get(found, _text(found))


def _text(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"{value:,.10g}"
    return printable(plain(value))
