"""What the rows of a sample are asked to be: ``given={"sex": "Female", "age": 40}``.

A column with the role condition is simply set; for any other, rows are drawn until enough of them happen to fit, so a
value that no row can have is refused here rather than waited for.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.errors import SettingError, printable
from doublure.schema import ResolvedSchema
from doublure.schema.columns import (
    BooleanColumn,
    Column,
    DateColumn,
    DatetimeColumn,
    IdColumn,
    IntegerColumn,
    RealColumn,
)

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

Mask: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
_Fits: TypeAlias = Callable[["pd.Series[Any]"], "pd.Series[Any]"]
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, kw_only=True)
class Given:
    """What every row must have.

    Attributes:
        fixed: Condition column -> code: the generator is asked for it.
        by_rejection: Other column -> whether a cell fits: rows are drawn until enough do.
    """

    fixed: Mapping[str, int]
    by_rejection: Mapping[str, _Fits]

    def fitting(self, frame: Any) -> Any:
        """Return the rows that fit."""
        for name, fits in self.by_rejection.items():
            frame = frame[fits(frame[name]).fillna(False).to_numpy(dtype=bool)]
        return frame


def read(given: Mapping[str, object], schema: ResolvedSchema, encoder: Encoder) -> Given:
    """Check what is asked for.

    Raises:
        SettingError: There is no such column, or it cannot have this value.
    """
    fixed, by_rejection = {}, {}
    conditions = set(schema.with_role("condition"))
    for asked, value in given.items():
        name = schema.asked(asked)
        column = schema.columns.get(name)
        if column is None or column.discrete or not schema.only_columns:
            code = encoder.condition_codes({name: value})[name]
            if name in conditions:
                fixed[name] = code
            else:
                by_rejection[name] = _choice(column, code)
        else:
            by_rejection[name] = _number(column, value, f"given {printable(name)}")
    return Given(fixed=fixed, by_rejection=by_rejection)


def _choice(column: Column | None, code: int) -> _Fits:
    if isinstance(column, BooleanColumn):
        return lambda cells: cells == bool(code)
    return lambda cells: pd.Series(cells.cat.codes == code)


def _number(column: Column, value: object, field: str) -> _Fits:
    if isinstance(column, IdColumn):
        raise SettingError("is an id, which is numbered anew", field=field, remedy="leave it out")
    if isinstance(column, (DateColumn, DatetimeColumn)):
        moment = _moment(column, value, field)
        _refuse_impossible(column, (moment - _EPOCH).total_seconds() / _seconds(column), field)
        return lambda cells: (cells if cells.dt.tz is None else cells.dt.tz_localize(None)) == moment
    if isinstance(column, RealColumn) and column.precision is None:
        raise SettingError(
            "is a real number without precision, and hardly any two are equal",
            field=field,
            remedy="ask for another column, or declare its precision and fit again",
        )
    number = _real(value, field)
    _refuse_impossible(column, number, field)
    half = 0.5 * (column.unit if isinstance(column, (IntegerColumn, RealColumn)) else 1.0)
    return lambda cells: (cells - number).abs() < half


def _seconds(column: DateColumn | DatetimeColumn) -> float:
    """Return the seconds in one unit of the column's ends: a day for dates, one for moments."""
    return 86_400.0 if isinstance(column, DateColumn) else 1.0


def _refuse_impossible(column: Any, number: float, field: str) -> None:
    lower, upper = column.grid
    steps = number / column.unit
    if not lower <= number <= upper or abs(steps - round(steps)) > 1e-6:
        raise SettingError(
            "lies outside the column's bounds, or between two of its values",
            field=field,
            remedy="see its bounds in schema.yaml",
        )


def _real(value: object, field: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise SettingError("is not a number", field=field, remedy="give one, such as 40")
    return number


def _moment(column: DateColumn | DatetimeColumn, value: object, field: str) -> datetime.datetime:
    try:
        if isinstance(value, datetime.datetime):
            moment = value
        elif isinstance(value, datetime.date):
            moment = datetime.datetime.combine(value, datetime.time())
        else:
            moment = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        raise SettingError("is no date", field=field, remedy="write 2024-01-31 or 2024-01-31T12:00:00") from None
    if moment.tzinfo is not None:
        raise SettingError("has an offset", field=field, remedy="leave it out: the column's own time zone is meant")
    return moment
