"""Summary statistics of each number: mean, standard deviation and 99th percentile.

Distances in bins forgive a tail: a few rows far beyond the real ones move a mean by half and hardly move a share.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from doublure.intervals import Result
from doublure.measures.tables.coding import Coder
from doublure.measures.tables.fidelity import Tables, present_numbers
from doublure.schema.columns import type_named
from doublure.support.arrays import Floats

Statistic: TypeAlias = Literal["mean", "standard deviation", "99th percentile"]

_OF_SPREAD, _OF_DEVIATION, _OF_TAIL = 0.05, 0.2, 0.25
_CHANCE, _ASIDE = 4.0, 2.0
_FEWEST = 20


class NumberSummary(Result):
    """One statistic of one column, of the cells that are not missing.

    Attributes:
        column: The column.
        kind: Its type.
        what: Mean, standard deviation or 99th percentile, in the column's unit.
        value: Of the synthetic rows.
        real: Of the real rows that were fitted.
        holdout: Of the real rows kept aside.
        gap: The difference between synthetic and fitted rows, in standard deviations of the fitted ones; null where
            these are constant.
        off: Whether the difference exceeds chance, twice that of real rows kept aside, and a threshold: for the mean, a
            twentieth of the standard deviation and of itself; for the standard deviation, a fifth of itself; for the
            percentile, a quarter of its distance from the median.
    """

    column: str
    kind: str
    what: Statistic
    value: float
    real: float
    holdout: float
    gap: float | None
    off: bool


def summaries(coder: Coder, tables: Tables) -> tuple[NumberSummary, ...]:
    """Return mean, standard deviation and 99th percentile of each number, the largest difference first.

    Columns with fewer than 20 cells in any of the tables are left out, and so are dates and times of day: they do not
    add up.
    """
    found: list[NumberSummary] = []
    for name, column in coder.columns.items():
        if not column.adds_up:
            continue
        numbers = [present_numbers(table, name) for table in (tables.synthetic, tables.train, tables.holdout)]
        if min(map(len, numbers)) >= _FEWEST:
            found += _of_column(name, column.shown_type, *numbers)
    return tuple(sorted(found, key=lambda entry: (not entry.off, -(entry.gap or 0.0))))


def round_figure(value: float, kind: str) -> str:
    """Return a statistic as its type writes it, else with three digits, or all before the decimal point."""
    if (named := type_named(kind).axis_text(value)) is not None:
        return named
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")


def _of_column(name: str, kind: str, synthetic: Floats, real: Floats, holdout: Floats) -> list[NumberSummary]:
    spread = float(real.std())
    errors = [math.hypot(*each) for each in zip(_errors(synthetic), _errors(real), strict=True)]
    enough = (
        _OF_SPREAD * max(spread, abs(float(real.mean()))),
        _OF_DEVIATION * spread,
        _OF_TAIL * abs(_top(real) - float(np.median(real))),
    )
    measured: dict[Statistic, tuple[float, ...]] = {
        "mean": tuple(float(values.mean()) for values in (synthetic, real, holdout)),
        "standard deviation": tuple(float(values.std()) for values in (synthetic, real, holdout)),
        "99th percentile": tuple(_top(values) for values in (synthetic, real, holdout)),
    }
    found = []
    for (what, (value, fitted, aside)), error, least in zip(measured.items(), (*errors, 0.0), enough, strict=True):
        apart = abs(value - fitted)
        found.append(
            NumberSummary(
                column=name,
                kind=kind,
                what=what,
                value=value,
                real=fitted,
                holdout=aside,
                gap=apart / spread if spread else None,
                off=apart > max(least, _CHANCE * error, _ASIDE * abs(aside - fitted)),
            )
        )
    return found


def _top(values: Floats) -> float:
    return float(np.quantile(values, 0.99))


def _errors(values: Floats) -> tuple[float, float]:
    """Return the standard errors of a mean and of a standard deviation."""
    apart = values - values.mean()
    variance = float((apart**2).mean())
    if not variance:
        return 0.0, 0.0
    of_variance = max(0.0, float((apart**4).mean()) - variance**2)
    return math.sqrt(variance / len(values)), math.sqrt(of_variance / (4 * variance * len(values)))
