"""Forecast of a plan: the margin of a count, values below it, and pairs with the target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from doublure.intervals import IN_95_OF_100
from doublure.methods import registry
from doublure.methods.choice import is_reason
from doublure.methods.method import ErrorForecast, QuestionForecast
from doublure.planning.explain import duration
from doublure.planning.planner import AccountantNote
from doublure.planning.plans import Plan
from doublure.schema.scalars import label


@dataclass(frozen=True, kw_only=True)
class ColumnForecast:
    """Forecast of a column of listed values.

    Attributes:
        name: The column.
        values: How many there are.
        margin: How far the count of one may be off in 95 of 100 fits, in rows; rarer ones are not told from none.
        rows_each: Rows of a value if all were equally frequent.
        below: Values that are rarer than the margin, by declared shares.
    """

    name: str
    values: int
    margin: float
    rows_each: float
    below: tuple[str, ...]

    @property
    def drowned(self) -> bool:
        """Whether even equally frequent values would be below the margin."""
        return self.rows_each < self.margin


@dataclass(frozen=True, kw_only=True)
class PlanForecast:
    """Forecast of a plan. No data is read for it.

    Attributes:
        rows: The most rows that are used, public.
        columns: Columns of listed values; those of which least is seen first.
        pairs: The target with each other column -> the expected total variation of their table, largest first.
        target: The target; None without.
        questions: The forecast of each column and pair in focus.
        sentences: The method's own forecast.
        warnings: Of the plan, but for its accountant: a forecast may be made by the quicker one.
        seconds: Of a fit on this machine.
    """

    rows: int
    columns: tuple[ColumnForecast, ...]
    pairs: tuple[tuple[str, float], ...]
    target: str | None
    questions: tuple[QuestionForecast, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]
    seconds: float

    @property
    def time(self) -> str:
        """The time of a fit, in words."""
        return duration(self.seconds)

    @property
    def margin(self) -> float | None:
        """The usual margin of a count, in rows: that of half the columns is at most this one."""
        margins = sorted(each.margin for each in self.columns)
        return margins[len(margins) // 2] if margins else None


def forecast_plan(plan: Plan) -> PlanForecast:
    """Return what a plan's noise will show.

    Args:
        plan: The plan.

    Example:
        >>> from doublure.planning.forecasts import forecast_plan
        >>> found = forecast_plan(plan)
        >>> found.columns[0].name, found.columns[0].drowned
        ('sex', False)
    """
    method, schema = registry.method(plan.method), plan.schema
    errors = method.expected_errors(schema, plan.settings, plan.touches)
    columns = () if errors is None else tuple(_columns(plan, errors))
    target = schema.target
    pairs = []
    if errors is not None and target is not None:
        others = [name for name, column in schema.columns.items() if column.modelled and name not in schema.derived]
        pairs = [(name, errors.distance((name, target))) for name in others if name != target]
    said = method.forecast(plan.guarantee, plan.settings, plan.touches, schema)
    return PlanForecast(
        rows=schema.public_units * schema.most_records,
        columns=tuple(sorted(columns, key=lambda each: each.rows_each / each.margin)),
        pairs=tuple(sorted(pairs, key=lambda pair: -pair[1])),
        target=target,
        questions=() if errors is None else errors.questions,
        sentences=tuple(said),
        warnings=tuple(said for said in plan.warnings if not is_reason(said) and not isinstance(said, AccountantNote)),
        seconds=plan.seconds_estimate,
    )


def forecast_questions(plan: Plan) -> tuple[QuestionForecast, ...]:
    """Return the forecast of each column and pair that a plan puts in focus, and of nothing else.

    Args:
        plan: The plan.
    """
    errors = registry.method(plan.method).expected_errors(plan.schema, plan.settings, plan.touches)
    return () if errors is None else errors.questions


def _columns(plan: Plan, errors: ErrorForecast) -> list[ColumnForecast]:
    schema, found = plan.schema, []
    rows = schema.public_units * schema.most_records
    for name, column in schema.columns.items():
        values = [label(value) for value in column.domain] if column.listed and column.modelled else []
        if not values or name in schema.derived:
            continue
        margin = IN_95_OF_100 * errors.spread(name)
        if not math.isfinite(margin):
            continue
        shares = column.fact("shares")
        known = {label(value): share for value, share in shares.items()} if isinstance(shares, Mapping) else {}
        below = tuple(value for value in values if value in known and known[value] * rows < margin)
        found.append(
            ColumnForecast(name=name, values=len(values), margin=margin, rows_each=rows / len(values), below=below)
        )
    return found
