"""Pairs of columns that may say the same, by their names alone: ``education`` and ``education-num``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_TWIN = re.compile(r"[ _.-]?(num|number|nr|code|name|label|text|desc|description|cat|category|group|decile)$", re.I)
_COARSER = {"cat", "category", "group", "decile"}


def twins(types: Mapping[str, str]) -> Iterator[tuple[int, tuple[str, str], bool]]:
    """Yield the place of a column, the column that it may repeat and itself, and whether it is coarser."""
    for place, name in enumerate(types):
        ending = _TWIN.search(name)
        bare = "" if ending is None else name[: ending.start()].lower()
        twin = next((other for other in types if other.lower() == bare), None)
        if ending is not None and twin is not None:
            yield place, (twin, name), ending[1].lower() in _COARSER
