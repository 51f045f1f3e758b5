"""A plan in words and figures, for a terminal and for a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from doublure.access import COVERED, events
from doublure.errors import counted
from doublure.guarantee import CHOICE_OF_KIND, figure
from doublure.methods import registry as table
from doublure.methods.choice import is_reason
from doublure.planning.machine import estimate_seconds
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, epsilon_of, group_privacy
from doublure.private.bayesian import group_privacy as bayesian_group_privacy
from doublure.private.bayesian import percentiles
from doublure.schema.display import kind_of
from doublure.support import views

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.planning.contents import PlanContents

_TOTAL = "total (composed, not added up)"
_GROUPS = (2, 5)
_LONG = 600
"""Seconds of a fit beyond which a plan says what is quicker."""
_SHARES = (0.99, 0.9999)
_ALONE = " (each priced alone; together they cost the total below, which is not their sum)"


def explain(made: PlanContents) -> str:
    """Return a plan in words and figures."""
    lines = [f"Method {made.method}: {made.settings.summary or table.summary(made.method, made.schema.kind)}"]
    lines.append(f"Unit of privacy: {_unit(made)}")
    lines += [f"Assumed: {said}" for said in made.schema.assumed if made.guarantee.kind in COVERED]
    lines += _owners(made)
    lines += [f"Costs nothing: {origin}" for origin in made.schema.origins]
    lines.append(describe_budget(made))
    several = sum(access.epsilon is not None for access in made.touches) > 1
    lines.append(f"What touches private records{_ALONE if several else ''}:")
    groups = _groups(made)
    prices = [(name, _price(access)) for name, access in _priced(made, groups)]
    epsilon, delta = made.worst_case or (made.epsilon, made.delta)
    if epsilon is not None:
        prices.append((_TOTAL, _figures(epsilon, delta)))
    width = max((len(purpose) for purpose, _ in prices), default=0)
    lines += [f"  {purpose:<{width}}  {price}" for purpose, price in prices]
    if any(access.path is not None and access.epsilon is None for access in made.touches):
        lines.append("  (–: with the noise that the schema asks for, and in no total)")
    said = made.guarantee
    lines += [f"  {who}: {what}" for who, what in derived_claims(said.kind, said.model_dump())]
    lines += _noise(made, groups)
    lines += table.method(made.method).forecast(said, made.settings, made.touches, made.schema)
    time = duration(made.seconds_estimate)
    lines.append(f"A fit needs about {made.memory_bytes / 1e9:.1f} GB, and {time} of one core of this machine")
    lines += _quicker(made)
    lines.append(f"Settings: {settings_in_words(made)}")
    lines += [f"Public source: {source}" for source in made.settings.public_sources]
    lines += [f"Note: {reason}" for reason in made.warnings if is_reason(reason)]
    if made.schema.row_note is not None:
        lines.append(f"Note: {made.schema.row_note}; unit.per_unit makes rows that belong together, of a table")
    lines += warning_lines(made)
    if made.guarantee.kind in COVERED:
        lines.append(
            f"Before a fit: keep some units ({made.schema.unit.name}) aside, drawn at random; most attacks need them"
        )
    lines += _claims(made)
    return "\n".join(lines)


def _quicker(made: PlanContents) -> list[str]:
    """Return a line on what makes a long fit quicker, if anything does."""
    if made.seconds_estimate < _LONG or made.settings.quicker is None:
        return []
    setting, other = made.settings.quicker
    seconds = estimate_seconds(table.method(made.method).work(made.schema, other))
    return [f"Quicker: --set {setting} takes about {duration(seconds)}"] if seconds < made.seconds_estimate else []


def settings_in_words(made: PlanContents) -> str:
    """Return the settings that say something, in a line."""
    return ", ".join(f"{key}={value}" for key, value in made.settings.shown().items() if value not in (None, "", ()))


def _groups(made: PlanContents) -> dict[str, tuple[Access, ...]]:
    """Return the accesses of each line, by its name, in the plan's order."""
    together = table.method(made.method).shown_together(made.schema, made.settings, made.touches)
    name_of = {access.purpose: name for name, own in together.items() for access in own}
    found: dict[str, tuple[Access, ...]] = {}
    for access in made.touches:
        name = name_of.get(access.purpose, access.purpose)
        found[name] = (*found.get(name, ()), access)
    return found


def _priced(made: PlanContents, groups: Mapping[str, tuple[Access, ...]]) -> list[tuple[str, Access]]:
    """Return each line's name with an access of its price: several are composed."""
    found = []
    for name, (first, *others) in groups.items():
        price = first.epsilon
        if others and price is not None and made.accountant is not None and first.delta:
            price = epsilon_of(events((first, *others)), first.delta, accountant=made.accountant)  # type: ignore[arg-type]
        found.append((name, replace(first, epsilon=price)))
    return found


def _unit(made: PlanContents) -> str:
    unit = made.schema.unit
    several = f", at most {unit.max_records} records of each" if unit.max_records > 1 else ""
    return f"one {unit.name}{several}"


def _owners(made: PlanContents) -> list[str]:
    """Return the public facts about owners, and the treatment of data that does not fit, a line each."""
    federated = made.schema.federated
    if federated is None:
        return []
    needed = "every owner that is asked has" if federated.need is None else f"{federated.need} of them have"
    return [
        f"Records stay with their owners: at most {federated.max_silos} has records of one {made.unit['name']}, and "
        f"{needed} to be ready",
        f"Data that does not fit: {made.schema.misfit} (misfit), cell by cell by public rules",
    ]


def warning_lines(made: PlanContents) -> list[str]:
    """Return the warnings of a plan, a line each."""
    return [f"Warning: {warning}" for warning in made.warnings if not is_reason(warning)]


def describe_budget(made: PlanContents) -> str:
    """Return a line about the budget, or about the claim that is not made."""
    if made.epsilon is None:
        return f"No budget: {'nothing is protected' if made.guarantee.kind == 'none' else 'no ε is claimed'}"
    if made.worst_case is None:
        return f"Budget: ε = {figure(made.epsilon)}, δ = {figure(made.delta)}, add/remove, accountant {made.accountant}"
    epsilon, delta = made.worst_case
    return (
        f"Ceiling: ε_μ = {figure(made.epsilon)} at δ_μ = {figure(made.delta)}, measured afterwards. Charged to the "
        f"ledger, worst case: ε = {figure(epsilon)}, δ = {figure(delta)}, add/remove, accountant {made.accountant}"
    )


def _claims(made: PlanContents) -> list[str]:
    if made.worst_case is None or CHOICE_OF_KIND not in made.guarantee.excluded:
        return [f"Claim: {made.guarantee.sentence}"]
    return [
        f"Claim if the ε_μ that is measured is at most the ceiling: {made.guarantee.sentence}",
        f"Claim if it is not: {made.guarantee.worst_case.sentence}",
    ]


def _price(access: Access) -> str:
    """Return a price; a fact that is learned without a claim has noise but no price."""
    if access.epsilon is None:
        return "not protected" if access.path is None else "–"
    return _figures(access.epsilon, access.delta)


def _figures(epsilon: float, delta: float | None) -> str:
    return f"ε = {figure(epsilon):<7} δ = {figure(delta)}" if delta else f"ε = {figure(epsilon)}"


def _noise(made: PlanContents, groups: Mapping[str, tuple[Access, ...]]) -> list[str]:
    """Return the noise's scale, as far as it applies: σ, C, q and T, or the counts' standard deviation."""
    found = []
    alone = sum(isinstance(access.event, GaussianEvent) for access in made.touches) == 1
    for name, accesses in groups.items():
        counts = [access.event for access in accesses if isinstance(access.event, DiscreteGaussianEvent)]
        for access in accesses:
            event = access.event
            if isinstance(event, GaussianEvent):
                bound = made.max_grad_norm if alone or (access.estimated and not access.whole) else None
                parts = {
                    "σ": event.noise_multiplier,
                    "C": bound,
                    "q": event.sample_rate,
                    "T": event.steps,
                    "B": event.filter_steps,
                }
                figures = ", ".join(f"{name} = {value:.4g}" for name, value in parts.items() if value is not None)
                found.append((access.purpose, figures))
        if counts:
            apart = made.epsilon is None  # nothing else of such a run has a price: votes, of which one moves two
            cells = "each count of votes" if apart else f"each cell of {_tables(sum(own.tables for own in counts))}"
            least, most = min(own.scale for own in counts), max(own.scale for own in counts)
            spread = f"{least:.4g}" if len(counts) == 1 else f"{least:.4g} to {most:.4g}"
            found.append((name, f"standard deviation {spread} in {cells}"))
    return [f"Noise: {said}" if len(found) == 1 else f"Noise to {purpose}: {said}" for purpose, said in found]


def _tables(number: int) -> str:
    return "a table of counts" if number == 1 else f"{number} tables of counts"


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 1.5:
        return "a second"
    if seconds < 90:
        return f"{round(seconds)} seconds"
    return counted(round(seconds / 60), "minute") if seconds < 5400 else f"{seconds / 3600:.1f} hours"


# -- in a notebook: the claim, every private access with its price, and what it will take ------------------------------


def short(made: PlanContents) -> str:
    """Return a plan in one line."""
    return f"Plan(method={made.method!r}, {made.schema.summary}, guarantee={made.guarantee.sentence!r})"


def html(made: PlanContents) -> str:
    """Return a plan as HTML."""
    epsilon, delta = made.worst_case or (made.epsilon, made.delta)
    priced = made.guarantee.kind in COVERED
    rows = [
        (name, _cell(access.epsilon, protected=access.event is not None), _cell(access.delta))
        for name, access in _priced(made, _groups(made))
    ]
    if priced:
        rows.append((_TOTAL, _cell(epsilon), _cell(delta)))
    named = [
        ("data", kind_of(made.schema)),
        ("unit of privacy", _unit(made)),
        ("noisy steps", f"{made.steps:,}" if made.steps else None),
        ("memory", f"{made.memory_bytes / 1e9:.1f} GB"),
        ("time of one core", f"about {duration(made.seconds_estimate)}"),
    ]
    settings = [(key, value) for key, value in made.settings.shown().items() if value not in (None, "")]
    return views.view(
        f"Plan: {made.method}",
        views.line("No record has been read."),
        views.line(made.guarantee.sentence, "claim" if priced else "warn"),
        views.line(describe_budget(made), "plain"),
        views.facts(named),
        views.grid(("what touches private records", "ε", "δ"), rows, right=(1, 2), total=priced),
        *(views.line(warning, "note") for warning in made.warnings),
        *(views.line(f"Costs nothing: {origin}", "plain") for origin in made.schema.origins),
        views.fold("Settings", views.grid(("setting", "value"), settings)),
        views.line("plan.explain() says all of it in words: noise, forecast, claims."),
    )


def _cell(value: float | None, *, protected: bool = True) -> str:
    if value is None:
        return "–" if protected else "not protected"
    return figure(value)


def derived_claims(kind: str, figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the claims that follow for groups of units, and for most of the records that are alike.

    Several units that change together have (kε, δ(1 + e^ε + …)) (Vadhan 2017, Lemma 2.2). A Bayesian claim is an
    average over units like the others: k of them have (kε_μ, k e^(kε_μ) δ_μ) (Triastcyn and Faltings 2022, Proposition
    3), and by Markov's inequality it holds for a share of them at a larger δ_μ (equation 12).

    Args:
        kind: The kind of the claim.
        figures: ``epsilon``, ``delta``, ``epsilon_mu``, ``delta_mu``.
    """
    found = []
    epsilon, delta = figures.get("epsilon"), figures.get("delta")
    if kind in COVERED and epsilon is not None and delta is not None:
        for size in _GROUPS:
            together, chance = group_privacy(epsilon, delta, size)
            if chance < 1:
                found.append((f"a group of {size}", f"ε = {figure(together)}, δ = {figure(chance)}"))
    epsilon_mu, delta_mu = figures.get("epsilon_mu"), figures.get("delta_mu")
    if kind == "bayesian-dp" and epsilon_mu is not None and delta_mu is not None:
        for size in _GROUPS:
            together, chance = bayesian_group_privacy(epsilon_mu, delta_mu, size)
            if chance < 1:
                found.append((f"{size} records like the others", f"ε_μ ≤ {figure(together)}, δ_μ = {figure(chance)}"))
        found += [
            (
                f"{row.share:.4g} of all records like the others",
                f"ε_μ ≤ {figure(epsilon_mu)}, δ_μ = {figure(row.delta)}",
            )
            for row in percentiles(epsilon_mu, delta_mu, _SHARES)
        ]
    return found
