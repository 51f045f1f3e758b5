"""How values are listed in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def listed(values: Sequence[str], most: int) -> str:
    """Return the first values in one line; in quotes where one has a comma of its own, and the others counted.

    Example:
        >>> listed(["Seattle, WA", "Boston, MA", "Paris"], 2)
        '"Seattle, WA", "Boston, MA" and 1 more'
    """
    quote = '"' if any("," in value for value in values) else ""
    more = len(values) - most
    return ", ".join(f"{quote}{value}{quote}" for value in values[:most]) + (f" and {more:,} more" if more > 0 else "")
