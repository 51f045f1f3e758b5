"""A plan as a notebook shows it: the claim, every private access with its price, and what it will take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.access import COVERED
from doublure.guarantee import figure
from doublure.planning.explain import budget_of, duration
from doublure.schema.display import kind_of
from doublure.support import views

if TYPE_CHECKING:
    from doublure.planning.contents import PlanContents


def short(made: PlanContents) -> str:
    """Return a plan in one line."""
    return f"Plan(method={made.method!r}, {made.schema.summary}, guarantee={made.guarantee.sentence!r})"


def html(made: PlanContents) -> str:
    """Return a plan as HTML."""
    epsilon, delta = made.worst_case or (made.epsilon, made.delta)
    priced = made.guarantee.kind in COVERED
    rows = [
        (access.purpose, _price(access.epsilon, protected=access.event is not None), _price(access.delta))
        for access in made.touches
    ]
    if priced:
        rows.append(("total (composed, not added up)", _price(epsilon), _price(delta)))
    several = f", at most {made.unit['max_records']} records of each" if made.unit["max_records"] > 1 else ""
    named = [
        ("data", kind_of(made.schema)),
        ("unit of privacy", f"one {made.unit['name']}{several}"),
        ("noisy steps", f"{made.steps:,}" if made.steps else None),
        ("memory", f"{made.memory_bytes / 1e9:.1f} GB"),
        ("time of one core", f"about {duration(made.seconds_estimate)}"),
    ]
    settings = [(key, value) for key, value in made.settings.shown().items() if value not in (None, "")]
    return views.view(
        f"Plan: {made.method}",
        views.line("No record has been read."),
        views.line(made.guarantee.sentence, "claim" if priced else "warn"),
        views.line(budget_of(made), "plain"),
        views.facts(named),
        views.grid(("what touches private records", "ε", "δ"), rows, right=(1, 2), total=priced),
        *(views.line(warning, "note") for warning in made.warnings),
        views.folded("Settings", views.grid(("setting", "value"), settings)),
        views.line("plan.explain() says all of it in words: noise, forecast, claims."),
    )


def _price(value: float | None, *, protected: bool = True) -> str:
    if value is None:
        return "–" if protected else "not protected"
    return figure(value)
