"""Cells of a row in order, as ``at_most`` asks: what can be sorted is sorted, what does not fit even so is moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from doublure.data.tables.cells import Floats
from doublure.schema.columns import Column
from doublure.schema.constraints import AtMost, Rule, ordered


def in_order(numbers: Mapping[str, Floats], columns: Mapping[str, Column], rules: Sequence[Rule]) -> dict[str, Floats]:
    """Return the columns that ``at_most`` names, in order in every row.

    Cells with the same bounds change places, which leaves as many of each value as there were; then each column is
    raised to at least those below it, within its bounds, and those are lowered. A missing cell stays missing, and
    passes on what is asked of its neighbours.

    Args:
        numbers: Column -> ``(N,)`` numbers, NaN for missing.
        columns: Their bounds.
        rules: The schema's.
    """
    chains = ordered(rules)
    moved = {name: numbers[name] for name, _ in chains}
    for rule in rules:
        if isinstance(rule, AtMost):
            for _, alike in groupby(rule.at_most, key=lambda name: columns[name].limits):
                _sort(moved, list(alike))
    nothing = np.full(len(next(iter(moved.values()), ())), np.nan)
    reached: dict[str, Floats] = {}
    for name, below in chains:
        floor = np.fmax.reduce([nothing, *(reached[low] for low in below)])
        raised = np.fmin(np.fmax(moved[name], floor), columns[name].limits[1])
        moved[name] = np.where(np.isnan(moved[name]), np.nan, raised)
        reached[name] = np.where(np.isnan(moved[name]), floor, moved[name])
    ceilings = {name: nothing for name, _ in chains}
    for name, below in reversed(chains):
        lowered = np.fmin(moved[name], ceilings[name])
        moved[name] = np.where(np.isnan(moved[name]), np.nan, lowered)
        for low in below:
            ceilings[low] = np.fmin(ceilings[low], lowered)
    return moved


def _sort(numbers: dict[str, Floats], names: list[str]) -> None:
    """Put each row's numbers in ascending order, holes left where they are."""
    cells = np.stack([numbers[name] for name in names], axis=1)
    taken = np.argsort(np.isnan(cells), axis=1, kind="stable")  # columns with a number first: NaN sorts last
    placed = np.empty_like(cells)
    np.put_along_axis(placed, taken, np.sort(cells, axis=1), axis=1)
    numbers.update({name: placed[:, place] for place, name in enumerate(names)})
