"""Bounds so wide that noisy tables cannot look closely between them: a rule over declared facts.

A number is first counted in public cells, and a full one is cut into parts once. Where cells are of one ratio (for a
number whose bounds hold zero or span decades), bounds that are far too wide add empty cells, at next to no cost. Where
they are of equal width, on a calendar or by ``scale: linear``, every part grows with the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from doublure.schema.columns import Column, DateColumn, DatetimeColumn, RealColumn

PARTS = 4096
"""Into about so many parts cells of equal width are cut: 128 cells, each into 32."""
BILLION = 9
"""Of a real number without decimals or a step, that many digits of the bounds are kept."""
_DAY = 86_400.0
_COARSE_DAYS = 31.0
_COARSE_STEPS = 1_000.0
_COARSE_REAL = 1e8


def notes_of(column: Column) -> Iterator[str]:
    """Yield what a column's declared bounds keep from being seen, with the remedy."""
    ends = getattr(column, "ends", None)
    if ends is None:
        return
    span = ends[1] - ends[0]
    part = span / PARTS
    if isinstance(column, DateColumn | DatetimeColumn):
        days = part if isinstance(column, DateColumn) else part / _DAY
        if days > _COARSE_DAYS:
            yield f"has bounds so wide that days within about {days:.0f} of each other may look alike; narrow them"
        return
    unit = getattr(column, "unit", 0.0)
    if getattr(column, "scale", None) == "linear" and unit and part / unit > _COARSE_STEPS:
        yield (
            f"has cells of equal width over bounds so wide that values within about {part:.3g} of each other may look "
            "alike; leave scale out, or narrow the bounds"
        )
    if isinstance(column, RealColumn) and not unit and span >= _COARSE_REAL:
        yield (
            f"has no decimals or step, and bounds so wide that values within about {span / 10**BILLION:.1g} of each "
            "other count as one; declare precision or step, or narrow the bounds"
        )
