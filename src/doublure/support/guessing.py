"""What was probably meant: the nearest known name, for a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from doublure.errors import printable

_FEW, _MANY = 12, 60


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like another, whatever its case; None where none is."""
    lowered = {each.lower(): each for each in reversed(list(known))}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    return lowered[near[0]] if near else None


def meant(name: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """Return advice for a name that is not known: the nearest one, and all of them where they are few.

    Args:
        name: As it was given.
        known: All names, which are public.
        otherwise: What to advise where there are too many to list and none is near.

    Example:
        >>> meant("statistic", ["statistics", "guided"])
        'did you mean statistics? use one of: statistics, guided'
    """
    names = list(known)
    near = nearest(name, names)
    guess = "" if near is None else f"did you mean {printable(near)}?"
    fits = len(names) <= (_MANY if near is None else _FEW)
    listed = f"use one of: {', '.join(map(printable, names))}" if fits else ""
    return " ".join(part for part in (guess, listed) if part) or otherwise
