"""Public constraints, kept by every decoded row (post-processing: free).

Most rows keep them already: numbers that ``at_most`` orders are decoded from the gap between them
(:mod:`doublure.encode.differences`). What is left are ordinals, columns that are second to several, and numbers whose
bounds cross: cells with the same bounds change places, which leaves as many of each value as there were, and what does
not fit even so is moved to the nearest value that does.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from doublure.encode.columns import Discrete, Floats, Number, grid_of
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column
from doublure.schema.constraints import AtMost, Equal, ordered, size_of


def keep(frame: pd.DataFrame, schema: ResolvedSchema) -> pd.DataFrame:
    """Return the frame with ordered columns in order and derived columns filled in."""
    frame = frame.copy(deep=False)
    _order(frame, schema)
    for constraint in schema.constraints:
        if isinstance(constraint, Equal):
            source, *names = constraint.equal
            for name in names:
                frame[name] = _derived(frame[source], schema.columns[source], schema.columns[name])
    return frame


def _order(frame: pd.DataFrame, schema: ResolvedSchema) -> None:
    """Sort what can be sorted; then raise each column to at least those below it, within its bounds, and lower those.

    A missing cell stays missing, and passes on what is asked of its neighbours.
    """
    chains = ordered(schema.constraints)
    numbers = {name: _read(frame[name], schema.columns[name]) for name, _ in chains}
    before = dict(numbers)
    for constraint in schema.constraints:
        if isinstance(constraint, AtMost):
            for _, alike in groupby(constraint.at_most, key=lambda name: _ends(schema.columns[name])):
                _sort(numbers, list(alike))
    nothing = np.full(len(frame), np.nan)
    reached: dict[str, Floats] = {}
    for name, below in chains:
        floor = np.fmax.reduce([nothing, *(reached[low] for low in below)])
        raised = np.fmin(np.fmax(numbers[name], floor), _highest(schema.columns[name]))
        numbers[name] = np.where(np.isnan(numbers[name]), np.nan, raised)
        reached[name] = np.where(np.isnan(numbers[name]), floor, numbers[name])
    ceilings = {name: nothing for name, _ in chains}
    for name, below in reversed(chains):
        lowered = np.fmin(numbers[name], ceilings[name])
        numbers[name] = np.where(np.isnan(numbers[name]), np.nan, lowered)
        for low in below:
            ceilings[low] = np.fmin(ceilings[low], lowered)
    for name, values in numbers.items():
        if not np.array_equal(values, before[name], equal_nan=True):
            frame[name] = _write(values, schema.columns[name])


def _sort(numbers: dict[str, Floats], names: list[str]) -> None:
    """Put each row's numbers in ascending order, holes left where they are."""
    cells = np.stack([numbers[name] for name in names], axis=1)
    taken = np.argsort(np.isnan(cells), axis=1, kind="stable")  # columns with a number first: NaN sorts last
    placed = np.empty_like(cells)
    np.put_along_axis(placed, taken, np.sort(cells, axis=1), axis=1)
    numbers.update({name: placed[:, place] for place, name in enumerate(names)})


def _derived(source: pd.Series[Any], first: Column, column: Column) -> pd.Series[Any]:
    """Return the column whose i-th value goes with the i-th value of the first."""
    if size_of(first) is None:
        return source.copy()
    ranks = _read(source, first) - (0.0 if first.discrete else grid_of(first).lower)  # type: ignore[arg-type]
    return _write(ranks + (0.0 if column.discrete else grid_of(column).lower), column)  # type: ignore[arg-type]


def _read(cells: pd.Series[Any], column: Column) -> Floats:
    """Return numbers as they are and discrete values by their place in the list; NaN for missing."""
    if not column.discrete:
        return _number(column).read(cells)
    if column.type == "boolean":
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    codes = cells.cat.codes.to_numpy()
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


def _write(values: Floats, column: Column) -> pd.Series[Any]:
    if not column.discrete:
        return _number(column).write(values)
    encoding = Discrete(column=column)  # type: ignore[arg-type]
    return encoding.restore([np.where(np.isnan(values), len(encoding.column.domain), values)], None)


def _number(column: Column) -> Number:
    return Number(column=column, grid=grid_of(column))  # type: ignore[arg-type]


def _highest(column: Column) -> float:
    return _ends(column)[1]


def _ends(column: Column) -> tuple[float, float]:
    """Return the lowest and highest number that :func:`_read` gives (ordinals that are compared list the same)."""
    if column.discrete:
        return 0.0, float(len(column.domain) - 1)  # type: ignore[union-attr]
    grid = grid_of(column)  # type: ignore[arg-type]
    return grid.lower, grid.upper
