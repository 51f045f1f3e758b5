"""Answering a schema's questions: which released statistic buys which fact.

Every answer is one access of the plan, marked in the ledger before it is drawn. Guarantee: as of the statistic in
:mod:`doublure.private.statistics` that is called, for one unit with at most ``max_records`` records, each of which adds
:meth:`~doublure.schema.Schema.cells_of` cells.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from doublure.data.opening import Loaded
from doublure.private import statistics
from doublure.schema import Question, Schema
from doublure.schema.columns import Column, DateColumn, DatetimeColumn, IntegerColumn, RealColumn, label
from doublure.schema.scalars import EXACT

_CALENDAR_YEARS = range(1850, 2151)


def learn(question: Question, table: Loaded, schema: Schema, *, delta: float, learned: Mapping[str, Any]) -> Any:
    """Return the answer to one question, in the form that the schema holds.

    Args:
        question: Which fact, and its ε.
        table: The private records.
        schema: The public facts.
        delta: The δ of a discovery.
        learned: Earlier answers: class shares need the values.
    """
    epsilon = question.epsilon
    max_records = schema.unit.max_records * schema.cells_of(question.column, question.fact)
    if question.fact == "units" or question.column is None:
        return max(1, statistics.noisy_count(table.n_units, epsilon=epsilon))
    cells = table.cells(question.column, question.fact)
    if question.fact == "missing":
        return statistics.any_missing(cells.isna().to_numpy(), epsilon=epsilon, max_records=max_records)
    if question.fact == "values":
        found = statistics.discover_categories(
            cells.dropna().astype(str), epsilon=epsilon, delta=delta, max_records=max_records
        )
        return tuple(found) or (str(getattr(schema.columns[question.column], "other", None)),)
    if question.fact == "bounds":
        return _bounds(cells, schema.columns[question.column], question, max_records)
    return _shares(cells, schema.columns[question.column], question, learned, max_records)


def _bounds(cells: pd.Series[Any], column: Column, question: Question, max_records: int) -> tuple[Any, Any]:
    if isinstance(column, (DateColumn, DatetimeColumn)):
        unit = "D" if isinstance(column, DateColumn) else "s"
        moments = cells.dropna().to_numpy().astype(f"datetime64[{unit}]").astype(np.int64).astype(np.float64)
        years = np.array([f"{year}-01-01" for year in _CALENDAR_YEARS], dtype=f"datetime64[{unit}]").astype(np.float64)
        ends = statistics.noisy_bounds(moments, epsilon=question.epsilon, max_records=max_records, candidates=years)
        step = datetime.timedelta(**{"days" if unit == "D" else "seconds": 1})
        lower, upper = (datetime.datetime(1970, 1, 1) + end * step for end in ends)
        return (lower.date(), upper.date()) if unit == "D" else (lower, upper)
    values = cells.dropna().to_numpy(dtype=np.float64)
    whole = isinstance(column, IntegerColumn)
    precision = column.precision if isinstance(column, RealColumn) else None
    first, last = statistics.noisy_bounds(
        values,
        epsilon=question.epsilon,
        max_records=max_records,
        integer=whole,
        precision=precision,
        magnitude=question.magnitude,
    )
    apart = column.unit if isinstance(column, (IntegerColumn, RealColumn)) else 0.0
    first, last = _countable(float(first), float(last), EXACT * apart if apart else math.inf)
    return (int(first), int(last)) if whole else (first, last)


def _countable(lower: float, upper: float, most: float) -> tuple[float, float]:
    """Cut bounds off at what float64 can count; where noise has put both beyond it, keep that side of zero."""
    lower, upper = max(-most, min(lower, most)), max(-most, min(upper, most))
    if lower < upper:
        return lower, upper
    return (lower, 0.0) if lower < 0 else (0.0, upper)


def _shares(
    cells: pd.Series[Any], column: Column, question: Question, learned: Mapping[str, Any], max_records: int
) -> dict[str, float]:
    found = learned.get(f"{question.path.removesuffix('.shares')}.values")
    domain = list(column.domain) if found is None else [*found, *_extra(column, found)]  # type: ignore[union-attr]
    places = {label(value): code for code, value in enumerate(domain)}
    fallback = places.get(label(getattr(column, "other", None)), -1)
    codes = np.array([places.get(label(cell), fallback) for cell in cells.dropna()], dtype=np.int64)
    shares = statistics.noisy_shares(codes, len(domain), epsilon=question.epsilon, max_records=max_records)
    return {label(value): float(share) for value, share in zip(domain, shares, strict=True)}


def _extra(column: Any, found: tuple[str, ...]) -> tuple[str, ...]:
    return () if column.other is None or column.other in found else (column.other,)
