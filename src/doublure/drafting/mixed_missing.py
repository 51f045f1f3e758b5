"""Count empty cells beside a declared text that means missing, for the data owner only.

The counts are private: they stand in a file of mode 0600 and in the owner's own terminal, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from doublure.data.tables.arrow_cells import as_series
from doublure.data.tables.opening import TableSource
from doublure.errors import counted, printable
from doublure.schema.columns import Column
from doublure.schema.distinct_cells import distinct
from doublure.support import yaml12 as yaml_text


class MixedMissing(NamedTuple):
    """A column of one declared text for missing, some of whose cells are empty. Private.

    Attributes:
        column: The column.
        text: What is declared.
        empty: How many cells are empty.
        coded: How many say the text.
    """

    column: str
    text: str
    empty: int
    coded: int

    def __str__(self) -> str:
        return (
            f"{counted(self.empty, 'empty cell')} and {self.coded:,} that say {printable(self.text)}: all that is "
            f"missing comes out as {printable(self.text)}; {both_kinds(self.text)} keeps both in their shares"
        )

    @property
    def line(self) -> str:
        """The counts with their column."""
        return f"{printable(self.column)}: {self}"


def both_kinds(text: str) -> str:
    """Return the YAML of a text and empty cells as two kinds of missing.

    Example:
        >>> both_kinds("<0.2")
        "missing: ['', <0.2]"
    """
    return f"missing: {yaml_text.inline(['', text])}"


def lone_text(column: Column) -> str | None:
    """Return the one text that is declared for missing cells, and stands for empty ones, too; None without one."""
    return column.missing_texts[0] or None if column.modelled and column.missing_states == 1 else None


def mixed_missing(columns: Mapping[str, Column], source: TableSource) -> list[MixedMissing]:
    """Return the columns in which some cells are empty, and one declared text means missing. Private.

    Args:
        columns: As declared.
        source: The table.
    """
    texts = {name: text for name, column in columns.items() if (text := lone_text(column)) is not None}
    counts = {name: np.zeros(2, dtype=np.int64) for name in texts}
    for raw in source.raw([*texts]) if texts else ():
        for name, text in texts.items():
            codes, uniques = distinct(as_series(raw[name], name))
            cells = [str(cell).strip() for cell in uniques]
            kinds = np.array([*(("", text).index(cell) if cell in ("", text) else 2 for cell in cells), 0])
            counts[name] += np.bincount(kinds[codes], minlength=3)[:2]
    return [MixedMissing(name, text, *map(int, counts[name])) for name, text in texts.items() if counts[name][0]]
