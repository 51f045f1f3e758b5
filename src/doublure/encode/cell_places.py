"""Where rows lie in the named cells of a table of counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure.encode.cell_names import MISSING
from doublure.schema.columns import Column

_DIGITS = 1e-14
"""Relative error of a number that was written with 15 digits, as names of cells are."""


def cell_parts(name: str) -> list[str]:
    """Return the values or ranges that a cell joins, without a missing one."""
    return [part for part in name.split(" | ") if part != MISSING]


def range_ends(column: Column, name: str) -> list[tuple[float, float]]:
    """Return the lowest and the highest number of each range that a cell joins."""
    ends = [(part.split("..")[0], part.split("..")[-1]) for part in cell_parts(name)]
    return [(column.number_of(low), column.number_of(high)) for low, high in ends]


def cell_places(column: Column, names: Sequence[str], cells: pd.Series[Any]) -> npt.NDArray[np.int64]:
    """Return ``(N,)`` the number of the cell in which each row lies; -1: in none.

    Args:
        column: The column that is counted.
        names: Of its cells, as :mod:`doublure.encode.cell_names` writes them; they cover its domain.
        cells: The rows' values.
    """
    place = np.full(len(cells), -1)
    missing = cells.isna().to_numpy()
    place[missing] = next((number for number, name in enumerate(names) if MISSING in name.split(" | ")), -1)
    numbers = column.numbers_of(cells[~missing])
    if column.listed:
        known = {part: number for number, name in enumerate(names) for part in cell_parts(name)}
        texts = np.array([known.get(column.text_of(code), -1) for code in range(len(column.domain))])
        place[~missing] = texts[numbers.astype(np.int64)]
        return place
    begins = sorted((low, number) for number, name in enumerate(names) for low, _ in range_ends(column, name))
    if begins:
        lows, owners = np.array([low for low, _ in begins]), np.array([number for _, number in begins])
        at = np.searchsorted(lows, numbers + _DIGITS * np.abs(numbers), side="right") - 1
        place[~missing] = np.where(at < 0, -1, owners[at])
    return place
