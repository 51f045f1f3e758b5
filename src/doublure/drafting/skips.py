"""Count cells that are missing together, and answers that skip them, for the data owner only.

The counts are private: they stand in a file of mode 0600 and in the owner's own terminal, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from doublure.data.tables.arrow_cells import as_series
from doublure.data.tables.opening import open_table
from doublure.drafting.storage_types import SHARE
from doublure.errors import counted, printable
from doublure.schema.columns import Column, label
from doublure.schema.distinct_cells import distinct
from doublure.schema.schema import Schema
from doublure.support import yaml12 as yaml_text


class SkippedBlock(NamedTuple):
    """Columns that are missing in the same rows. Private.

    Attributes:
        names: The columns.
        rows: How many rows lack the first and the last.
        some: How many lack the first of them or the last.
        answer: A column and its value that stands in these rows, if there is one.
    """

    names: tuple[str, ...]
    rows: int
    some: int
    answer: tuple[str, str] | None

    @property
    def column(self) -> str:
        """The columns, in a line."""
        return ", ".join(self.names)

    def __str__(self) -> str:
        rule = f"{{missing_together: {yaml_text.inline([*self.names])}}}"
        if self.answer is not None:
            then = {name: "missing" for name in self.names}
            rule = f"{{implies: {yaml_text.inline({'when': dict([self.answer]), 'then': then})}}}"
        said = f"missing together in {self.rows:,} of {counted(self.some, 'row')}" if len(self.names) > 1 else "missing"
        return f"{said}; if that is so in any such table, declare {rule}"

    @property
    def line(self) -> str:
        """The counts with their columns."""
        return f"{', '.join(map(printable, self.names))}: {self}"


def skipped_blocks(schema: Schema, data: str | Path | pd.DataFrame) -> list[SkippedBlock]:
    """Return columns that are missing in the same rows but for one in 20, and what is answered there. Private.

    Blocks that a rule of the schema is about are left out.

    Raises:
        DataError: The container cannot be read, or a column is not there.
    """
    source = open_table(data, schema.written)
    source.check(schema)
    holed = {name: own for name, own in schema.columns.items() if own.modelled and own.missing is not False}
    listed = {name: own for name, own in schema.columns.items() if own.listed and own.domain}
    answers = [(name, label(value)) for name, own in listed.items() for value in own.domain]
    both, beside = np.zeros((len(holed), len(holed))), np.zeros((len(answers), len(holed)))
    said = np.zeros(len(answers))
    for raw in source.raw([*dict.fromkeys((*holed, *listed))]):
        series = {name: as_series(raw[name], name) for name in {**holed, **listed}}
        gone = np.array([_missing(series[name], own) for name, own in holed.items()], dtype=np.float64)
        given = np.array([row for name, own in listed.items() for row in _given(series[name], own)], dtype=np.float64)
        if len(holed):
            both += gone @ gone.T
        if len(holed) and len(answers):
            beside, said = beside + given @ gone.T, said + given.sum(axis=1)
    told = [{*rule.names} for rule in getattr(schema, "constraints", ())]
    found = [_block(group, [*holed], both, answers, beside, said) for group in _groups(both)]
    return [
        each
        for each in found
        if (len(each.names) > 1 or each.answer) and not any({*each.names} <= names for names in told)
    ]


def _missing(cells: pd.Series[Any], column: Column) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return ``(N,)``: which cells are empty, or a text that means missing."""
    codes, uniques = distinct(cells)
    found: np.ndarray[Any, np.dtype[np.bool_]] = np.array(
        [*(str(cell).strip() in column.missing_tokens for cell in uniques), True]
    )[codes]
    return found


def _given(cells: pd.Series[Any], column: Column) -> list[np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return for each declared value ``(N,)``: which cells have it."""
    codes, uniques = distinct(cells)
    texts = [label(cell) if isinstance(cell, (str, int, float)) else str(cell) for cell in uniques]
    return [np.array([*(text.strip() == label(value) for text in texts), False])[codes] for value in column.domain]


def _groups(both: np.ndarray[Any, np.dtype[np.float64]]) -> list[list[int]]:
    """Return the places of columns with missing cells, those together that are missing in the same rows."""
    found: list[list[int]] = []
    for place in range(len(both)):
        if not both[place, place]:
            continue
        own = next((group for group in found if all(_alike(both, each, place) for each in group)), None)
        if own is None:
            found.append([place])
        else:
            own.append(place)
    return found


def _alike(both: np.ndarray[Any, np.dtype[np.float64]], one: int, other: int) -> bool:
    either = both[one, one] + both[other, other] - both[one, other]
    return bool(both[one, other] >= SHARE * either)


def _block(
    group: Sequence[int],
    names: Sequence[str],
    both: np.ndarray[Any, np.dtype[np.float64]],
    answers: Sequence[tuple[str, str]],
    beside: np.ndarray[Any, np.dtype[np.float64]],
    said: np.ndarray[Any, np.dtype[np.float64]],
) -> SkippedBlock:
    """Return a group with the answer that stands in its rows: in 19 of 20 of those that have either."""
    own, rows = tuple(names[place] for place in group), both[group[0], group[-1]]
    fits: Mapping[tuple[str, str], float] = {
        answer: float(
            beside[place, group[0]] / max(1.0, said[place] + both[group[0], group[0]] - beside[place, group[0]])
        )
        for place, answer in enumerate(answers)
        if answer[0] not in own
    }
    best = max(fits, key=fits.__getitem__, default=None)
    answer = best if best is not None and fits[best] >= SHARE else None
    some = both[group[0], group[0]] + both[group[-1], group[-1]] - rows
    return SkippedBlock(own, int(rows), int(some), answer)
