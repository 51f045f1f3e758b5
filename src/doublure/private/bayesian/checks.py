"""Refusals of arguments that are out of their range."""

from __future__ import annotations

import math

from doublure.errors import SettingError


def require_number(value: object, field: str, *, below: float = math.inf, most: float = math.inf) -> float:
    """Return a finite number above 0, and refuse anything else by name, without printing it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < below or value > most:
        limit = f" and below {below:g}" if below < math.inf else f" and at most {most:g}" if most < math.inf else ""
        raise SettingError("is out of range", field=field, remedy=f"give a number above 0{limit}")
    return float(value)


def require_whole(value: object, field: str) -> int:
    """Return a whole number of at least 1, and refuse anything else by name."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingError("must be a whole number", field=field, remedy="give 1 or more")
    return value
