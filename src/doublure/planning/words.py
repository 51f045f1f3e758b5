"""A plan in words and figures, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.guarantee import figure
from doublure.methods import table

if TYPE_CHECKING:
    from doublure.planning.plans import Plan


def explain(made: Plan) -> str:
    """Return a plan in words and figures."""
    lines = [f"Method {made.method}: {table.METHODS[made.method]}"]
    unit = made.unit
    lines.append(f"Unit of privacy: one {unit['name']}, at most {unit['max_records']} record(s) of each")
    if made.epsilon is not None:
        lines.append(
            f"Budget: ε = {figure(made.epsilon)}, δ = {figure(made.delta)}, add/remove, accountant {made.accountant}"
        )
    lines.append("What touches private records:")
    width = max((len(access.purpose) for access in made.touches), default=0)
    for access in made.touches:
        price = (
            "not protected" if access.epsilon is None else f"ε = {access.epsilon:8.4f}   δ = {access.delta or 0:.1e}"
        )
        lines.append(f"  {access.purpose:<{width}}   {price}")
    if made.epsilon is not None:
        lines.append(
            f"  {'together (composed, not added up)':<{width}}   ε = {made.epsilon:8.4f}   δ = {made.delta:.1e}"
        )
    if made.noise_multiplier is not None:
        lines.append(
            f"Noise: σ = {made.noise_multiplier:.4g}, C = {made.max_grad_norm}, "
            f"q = {made.sample_rate:.4g}, T = {made.steps}"
        )
    lines.append(f"Needs about {made.memory_bytes / 1e9:.1f} GB and {_duration(made.seconds_estimate)} on this machine")
    settings = ", ".join(f"{key}={value}" for key, value in made.settings.model_dump().items() if value is not None)
    lines.append(f"Settings: {settings}")
    lines += [f"Warning: {warning}" for warning in made.warnings]
    lines.append(f"Claim: {made.guarantee.sentence}")
    return "\n".join(lines)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
