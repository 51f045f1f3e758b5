"""Fault tests shared by rows and series: changed units, swapped numbers, copied records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doublure.encode.columns import Floats
from doublure.errors import printable
from doublure.measures.fault_tests import FaultStatistic, Mask

_PLACES = 10
_TAIL = 0.01


def number_signs(name: str, training: Floats, seen: Sequence[Floats], verb: str) -> dict[str, FaultStatistic]:
    """Return the tests for a changed unit or scale of a number; none where the number has no values.

    Args:
        name: Name of the column or channel.
        training: ``(N,)`` values of a correct run, NaN where missing.
        seen: The same of each run.
        verb: Verb of the clause: is, or has a mean.
    """
    there, shown = training[~np.isnan(training)], printable(name)
    if not len(there):
        return {}
    low, middle, high = np.quantile(there, (_TAIL, 0.5, 1 - _TAIL))
    scale = "Another unit, another scale, or another source."
    return {
        f"outside_{name}": FaultStatistic(
            clause=f"are of those whose {shown} {verb} outside where 98 in 100 of a correct run lie",
            meaning=scale,
            shown=[(each < low) | (each > high) for each in seen],
        ),
        f"above_{name}": FaultStatistic(
            clause=f"are of those whose {shown} {verb} above the median of a correct run",
            meaning=scale,
            shown=[each > middle for each in seen],
        ),
        f"below_{name}": FaultStatistic(
            clause=f"are of those whose {shown} {verb} below the median of a correct run",
            meaning=scale,
            shown=[each < middle for each in seen],
        ),
    }


def exchange_signs(
    pair: tuple[str, str], training: tuple[Floats, Floats], seen: Sequence[tuple[Floats, Floats]]
) -> dict[str, FaultStatistic]:
    """Return the test for two swapped numbers.

    Args:
        pair: Their names.
        training: ``(N,)`` values each, of a correct run.
        seen: The same of each run.
    """
    both = np.concatenate(training)
    both = both[~np.isnan(both)]
    if not len(both):
        return {}
    edges = np.unique(np.quantile(both, np.linspace(0, 1, _PLACES + 1)[1:-1]))
    size = len(edges) + 1

    def places(values: tuple[Floats, Floats]) -> tuple[np.ndarray[tuple[int], np.dtype[np.intp]], ...]:
        return tuple(np.searchsorted(edges, each, side="right").clip(0, size - 1) for each in values)

    first, second = places(training)
    counts = np.ones((size, size))
    np.add.at(counts, (first, second), 1)
    shown: list[Mask] = []
    for each in seen:
        one, other = places(each)
        there = ~(np.isnan(each[0]) | np.isnan(each[1]))
        shown.append((counts[other, one] > counts[one, other]) & there)
    names = " and ".join(printable(name) for name in pair)
    clause, meaning = (
        f"are likelier with {names} exchanged",
        "Two columns changed places, in a part of the rows or in all.",
    )
    return {f"exchanged_{pair[0]}_{pair[1]}": FaultStatistic(clause=clause, meaning=meaning, shown=shown, learned=True)}


def copied_signs(seen: Sequence[Floats], record: str) -> dict[str, FaultStatistic]:
    """Return the test for records copied from one another.

    Args:
        seen: ``(N, P)`` all numbers of each run's records, NaN where missing.
        record: The word for one record: row, or series.
    """
    shown: list[Mask] = []
    for each in seen:
        whole = np.nan_to_num(each, nan=np.inf)
        _, place, counts = np.unique(whole, axis=0, return_inverse=True, return_counts=True)
        shown.append(counts[place.ravel()] > 1)
    return {
        "alike": FaultStatistic(
            clause=f"are the same as another {record} of their run",
            meaning=f"One {record} stands where many should: it was copied, or the fit collapsed.",
            shown=shown,
        )
    }
