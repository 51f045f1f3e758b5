"""The contingency tables of a fit under public names, to be published: columns, pairs, the tree, and the target's."""

from __future__ import annotations

import math

import numpy as np

from doublure.encode.table_values import TableValues
from doublure.methods.statistics.tables.nodes import MissingTogether
from doublure.methods.statistics.tables.noisy_tables import Counted
from doublure.private.queries.axes import AnyAxis, Intervals, Patterns
from doublure.training.noisy_tables import NoisyTable

TOGETHER = "cells that are missing together"
"""What the axis of patterns is called."""
_NONE = "(none)"
_ROUNDED = 1 / 12
"""The variance of what rounding to whole numbers adds."""


def published(encoder: TableValues, patterns: MissingTogether | None, counted: list[Counted]) -> tuple[NoisyTable, ...]:
    """Return counted tables with names for their columns and cells.

    Args:
        encoder: Whose parts the axes count.
        patterns: Of missing cells, where they are counted.
        counted: The tables; none that only looked for where rows are.
    """
    known: dict[int, tuple[AnyAxis, tuple[str, tuple[str, ...]]]] = {}  # with each axis, so that its id stays its own
    found = []
    for table in counted:
        for axis in table.axes:
            if id(axis) not in known:
                known[id(axis)] = axis, _named(encoder, patterns, axis)
        names = [known[id(axis)][1] for axis in table.axes]
        rounded = _ROUNDED if table.times > 1 else 0.0
        found.append(
            NoisyTable(
                columns=tuple(column for column, _ in names),
                cells=tuple(cells for _, cells in names),
                counts=np.rint(table.noisy.counts).astype(np.int64),
                standard_error=math.sqrt(table.noisy.variance + rounded),
            )
        )
    return tuple(found)


def _named(encoder: TableValues, patterns: MissingTogether | None, axis: AnyAxis) -> tuple[str, tuple[str, ...]]:
    if isinstance(axis, Intervals):
        return encoder.axis(axis.part, axis.starts, axis.cells, axis.size)
    if not isinstance(axis, Patterns) or patterns is None:
        raise TypeError("an axis of tables is one of intervals or of patterns")
    columns = [encoder.columns[part] for part in patterns.parts]
    parts: list[list[str]] = [[] for _ in range(axis.size)]
    for bits in patterns.bits:  # every other pattern counts as the one of these that is most alike
        missing = [column for column, bit in zip(columns, bits, strict=True) if bit]
        cell = axis.cells[int((bits << np.arange(len(bits))).sum())]
        parts[int(cell)].append(" + ".join(missing) or _NONE)
    return TOGETHER, tuple(" | ".join(names) for names in parts)
