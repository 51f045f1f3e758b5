"""Range checks of arguments, shared by events and accountants."""

from __future__ import annotations

import math

from doublure.errors import SettingError

_MOST_STEPS = 10**9
_LEAST_EPSILON = 1e-6  # below it the noise swamps a billion records, and scales begin to overflow


def require_number(
    value: object,
    field: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> float:
    """Return a finite number in the range, and refuse anything else by name.

    Raises:
        SettingError: It is no such number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError("must be a finite number", field=field, remedy="give a number such as 1.0")
    if not (above < value < below and least <= value <= most):
        limits = {"above": above, "at least": least, "below": below, "at most": most}
        text = " and ".join(f"{word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit))
        raise SettingError("is out of range", field=field, remedy=f"give a number {text}")
    return float(value)


def require_whole(value: object, field: str, *, least: int) -> int:
    """Return a whole number, and refuse anything else or a number out of range.

    Raises:
        SettingError: It is no such number.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST_STEPS:
        raise SettingError("must be a whole number", field=field, remedy=f"give {least} to {_MOST_STEPS}")
    return value


def require_priced(epsilon: float, max_records: int) -> None:
    """Refuse an ε, or a bound on a unit's records, for which no noise can be drawn.

    Raises:
        SettingError: Naming it.
    """
    if not _LEAST_EPSILON <= epsilon < math.inf:
        raise SettingError(f"must be at least {_LEAST_EPSILON:g} and finite", field="epsilon", remedy="spend more")
    if max_records < 1:
        raise SettingError("must be at least 1", field="max_records", remedy="bound each unit's records")


def require_choice(value: object, field: str, known: tuple[str, ...]) -> None:
    """Refuse a value that is not among the known ones.

    Raises:
        SettingError: It is not.
    """
    if value not in known:
        raise SettingError("is unknown", field=field, remedy=f"use one of {', '.join(known)}")
