"""The contingency tables of a fit under public names, for publication."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from doublure.encode.table_values import TableValues
from doublure.methods.statistics.tables.nodes import MissingPatterns
from doublure.methods.statistics.tables.noisy_tables import CountedTable
from doublure.private.queries.axes import AnyAxis, Intervals, Patterns
from doublure.training.noisy_tables import NoisyTable

TOGETHER = "cells that are missing together"
"""Name of the axis of patterns."""
_NONE = "(none)"
_ROUNDED = 1 / 12
"""Variance of rounding to whole numbers."""


def name_tables(
    encoder: TableValues,
    patterns: MissingPatterns | None,
    blocks: Mapping[int, tuple[int, ...]],
    counted: list[CountedTable],
) -> tuple[NoisyTable, ...]:
    """Return counted tables with names for their columns and cells.

    Args:
        encoder: The encoder of the parts that axes count.
        patterns: The patterns of missing cells, if they are counted.
        blocks: First part of each block of the patterns -> the parts that are missing together.
        counted: The tables, without those that only locate rows.
    """
    # Keyed by id; the axis is held beside its names, so that its id is not reused.
    known: dict[int, tuple[AnyAxis, tuple[str, tuple[str, ...]]]] = {}
    found = []
    for table in counted:
        for axis in table.axes:
            if id(axis) not in known:
                known[id(axis)] = axis, _named(encoder, patterns, blocks, axis)
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


def _named(
    encoder: TableValues, patterns: MissingPatterns | None, blocks: Mapping[int, tuple[int, ...]], axis: AnyAxis
) -> tuple[str, tuple[str, ...]]:
    if isinstance(axis, Intervals):
        return encoder.axis(axis.part, axis.starts, axis.cells, axis.size)
    if not isinstance(axis, Patterns) or patterns is None:
        raise TypeError("an axis of tables is one of intervals or of patterns")
    columns = [" + ".join(encoder.columns[own] for own in blocks.get(part, (part,))) for part in patterns.parts]
    parts: list[list[str]] = [[] for _ in range(axis.size)]
    for bits in patterns.bits:  # every other pattern counts as the most similar one of these
        missing = [column for column, bit in zip(columns, bits, strict=True) if bit]
        cell = axis.cells[int((bits << np.arange(len(bits))).sum())]
        parts[int(cell)].append(" + ".join(missing) or _NONE)
    return TOGETHER, tuple(" | ".join(names) for names in parts)
