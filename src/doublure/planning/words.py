"""A plan in words and figures, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.guarantee import figure
from doublure.methods import table
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.planning.plans import Plan


def explain(made: Plan) -> str:
    """Return a plan in words and figures."""
    lines = [f"Method {made.method}: {table.METHODS[made.method]}"]
    unit = made.unit
    lines.append(f"Unit of privacy: one {unit['name']}, at most {unit['max_records']} record(s) of each")
    lines.append(_budget(made))
    lines.append("What touches private records:")
    together = "together (composed, not added up)"
    prices = [(access.purpose, _price(access)) for access in made.touches]
    if made.epsilon is not None:
        prices.append((together, _figures(made.epsilon, made.delta)))
    width = max((len(purpose) for purpose, _ in prices), default=0)
    lines += [f"  {purpose:<{width}}   {price}" for purpose, price in prices]
    lines += _noise(made)
    lines.append(f"Needs about {made.memory_bytes / 1e9:.1f} GB and {_duration(made.seconds_estimate)} on this machine")
    settings = ", ".join(f"{key}={value}" for key, value in made.settings.model_dump().items() if value is not None)
    lines.append(f"Settings: {settings}")
    lines += [f"Warning: {warning}" for warning in made.warnings]
    lines.append(f"Claim: {made.guarantee.sentence}")
    return "\n".join(lines)


def _budget(made: Plan) -> str:
    if made.epsilon is None:
        return f"No budget: {'nothing is protected' if made.guarantee.kind == 'none' else 'no ε is claimed'}"
    return f"Budget: ε = {figure(made.epsilon)}, δ = {figure(made.delta)}, add/remove, accountant {made.accountant}"


def _price(access: Access) -> str:
    """Return a price; a fact that a run without a claim learns has none, because it protects nobody."""
    if access.epsilon is None:
        return "not protected" if access.path is None else "–"
    return _figures(access.epsilon, access.delta)


def _figures(epsilon: float, delta: float | None) -> str:
    return f"ε = {figure(epsilon):<9} δ = {figure(delta)}" if delta else f"ε = {figure(epsilon)}"


def _noise(made: Plan) -> list[str]:
    """Return how loud the noise is, as far as it applies: σ, C, q and T, or the counts' standard deviation."""
    lines = []
    for access in made.touches:
        event = access.event
        if isinstance(event, GaussianEvent):
            parts = {"σ": event.noise_multiplier, "C": made.max_grad_norm, "q": event.sample_rate, "T": event.steps}
            figures = ", ".join(f"{name} = {value:.4g}" for name, value in parts.items() if value is not None)
            lines.append(f"Noise: {figures}")
        elif isinstance(event, DiscreteGaussianEvent):
            lines.append(f"Noise: standard deviation {event.scale:.4g} in each cell of {event.tables} tables of counts")
    return lines


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
