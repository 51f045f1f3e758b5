"""Weighted totals, means and shares: what a survey's rows say of its population, beside what they say of themselves.

The weight is a column of the table, real or synthetic as its row is. A row whose weight is missing weighs nothing. Of a
number the rows with a cell count, of a list of values all rows. A total is of as many rows as were fitted: it is scaled
by the number of these over that of the table's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from doublure.intervals import Result
from doublure.measures.tables.coding import Coder, Integers
from doublure.measures.tables.fidelity import Tables
from doublure.support.arrays import Floats

_ROLE = "weight"


class RealAndSynthetic(Result):
    """One figure of each table.

    Attributes:
        value: Of the synthetic rows.
        real: Of the real rows that were fitted.
        holdout: Of the real rows kept aside.
    """

    value: float
    real: float
    holdout: float


class WeightedFigure(Result):
    """Figures of a number, or of one value of a list, without and with weights.

    Attributes:
        column: The column.
        kind: Its type.
        label: The value of a list; null for a number, of which means are taken.
        unweighted: The mean, or the share, of rows that weigh alike.
        weighted: The mean, or the share, weighted.
        total: The sum of weight times number, or of the weights of rows that have the value.
        gap: The difference between synthetic and fitted rows, weighted: in standard deviations of the fitted ones, or
            as a share; null of a number that is constant.
    """

    column: str
    kind: str
    label: str | None = None
    unweighted: RealAndSynthetic
    weighted: RealAndSynthetic
    total: RealAndSynthetic
    gap: float | None


class WeightedFigures(Result):
    """The weighted figures of a table.

    Attributes:
        column: That holds the weights.
        total: The sum of weights, which estimates the size of the population.
        figures: Of every other column, the largest difference first.
    """

    column: str
    total: RealAndSynthetic
    figures: tuple[WeightedFigure, ...]


def weighted_figures(coder: Coder, tables: Tables) -> WeightedFigures | None:
    """Return the weighted figures of tables; None where no column is the weight, or no row of one weighs anything."""
    name = next((name for name, column in coder.columns.items() if _ROLE in column.roles), None)
    compared = {"value": tables.synthetic, "real": tables.train, "holdout": tables.holdout}
    if name is None:
        return None
    weights = {role: np.nan_to_num(table.numbers[name]) for role, table in compared.items()}
    if not all(each.sum() > 0 for each in weights.values()):
        return None
    scales = {role: len(tables.train) / len(table) for role, table in compared.items()}
    found: list[WeightedFigure] = []
    for own, column in coder.columns.items():
        if column.adds_up and own != name:
            cells = {role: table.numbers[own] for role, table in compared.items()}
            found += _of_number(own, column.shown_type, cells, weights, scales)
        elif column.listed:
            codes = {role: table.codes[:, table.names.index(own)] for role, table in compared.items()}
            found += _of_values(own, column.shown_type, coder.labels(own)[:-1], codes, weights, scales)
    return WeightedFigures(
        column=name,
        total=_each({role: float(each.sum()) * scales[role] for role, each in weights.items()}),
        figures=tuple(sorted(found, key=lambda figure: -(figure.gap or 0.0))),
    )


def _of_number(
    name: str, kind: str, cells: Mapping[str, Floats], weights: Mapping[str, Floats], scales: Mapping[str, float]
) -> list[WeightedFigure]:
    """Return a number's figure; none where a table has no cell of it that weighs something."""
    plain, means, totals = dict[str, float](), dict[str, float](), dict[str, float]()
    for role, numbers in cells.items():
        there = ~np.isnan(numbers)
        weight = weights[role][there]
        if not weight.sum() > 0:
            return []
        plain[role] = float(numbers[there].mean())
        totals[role] = float((weight * numbers[there]).sum()) * scales[role]
        means[role] = float(np.average(numbers[there], weights=weight))
    spread = float(np.nanstd(cells["real"]))
    return [
        WeightedFigure(
            column=name,
            kind=kind,
            unweighted=_each(plain),
            weighted=_each(means),
            total=_each(totals),
            gap=abs(means["value"] - means["real"]) / spread if spread else None,
        )
    ]


def _of_values(
    name: str,
    kind: str,
    labels: Sequence[str],
    codes: Mapping[str, Integers],
    weights: Mapping[str, Floats],
    scales: Mapping[str, float],
) -> list[WeightedFigure]:
    """Return the figure of each value of a list."""
    size = len(labels) + 1
    plain = {role: np.bincount(each, minlength=size) / len(each) for role, each in codes.items()}
    sums = {role: np.bincount(each, weights=weights[role], minlength=size) for role, each in codes.items()}
    shares = {role: each / each.sum() for role, each in sums.items()}
    return [
        WeightedFigure(
            column=name,
            kind=kind,
            label=label,
            unweighted=_each({role: float(each[code]) for role, each in plain.items()}),
            weighted=_each({role: float(each[code]) for role, each in shares.items()}),
            total=_each({role: float(each[code]) * scales[role] for role, each in sums.items()}),
            gap=abs(float(shares["value"][code] - shares["real"][code])),
        )
        for code, label in enumerate(labels)
    ]


def _each(figures: Mapping[str, float]) -> RealAndSynthetic:
    return RealAndSynthetic(**figures)
