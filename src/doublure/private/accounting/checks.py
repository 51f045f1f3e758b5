"""Refusals that the events and the accountants share."""

from __future__ import annotations

import math

from doublure.errors import SettingError

_MOST_STEPS = 10**9


def require_number(
    value: object,
    field: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse what is not a finite number in the range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError("must be a finite number", field=field, remedy="give a number such as 1.0")
    if not (above < value < below and least <= value <= most):
        limits = {"above": above, "at least": least, "below": below, "at most": most}
        text = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit))
        raise SettingError(f"is out of range: {value:g}", field=field, remedy=f"give a number {text}")


def require_whole(value: object, field: str, *, least: int) -> None:
    """Refuse what is not a whole number, or too small, or more steps than anybody takes."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_STEPS:
        raise SettingError("must be a whole number", field=field, remedy=f"give {least} to {_MOST_STEPS}")


def require_choice(value: object, field: str, known: tuple[str, ...]) -> None:
    """Refuse what is not among the known words."""
    if value not in known:
        raise SettingError("is unknown", field=field, remedy=f"use one of {', '.join(known)}")
