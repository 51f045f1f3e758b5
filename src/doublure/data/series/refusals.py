"""Collect every refusal of a set of series in one error, so that a file or schema is fixed once.

A refusal is raised where it is found, and reading stops there. The series are then read again under rules that tolerate
it, until nothing else is refused. Nothing is learned from these readings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from doublure.errors import DataError, printable
from doublure.schema.series import SeriesSchema

_MOST = 20


class BrokenRule(DataError):
    """Series break a rule for windows.

    Args:
        message: What is wrong, without a private value.
        field: The column.
        remedy: What to do about it.
        relaxed: Rules for windows under which it is no refusal.
    """

    def __init__(self, message: str, *, field: object, remedy: str, relaxed: Mapping[str, str]) -> None:
        super().__init__(message, field=field, remedy=remedy)
        self.relaxed = relaxed


def all_refusals(
    first: DataError, schema: SeriesSchema, tried: Callable[[SeriesSchema, frozenset[str]], None]
) -> DataError:
    """Return one error that says all that is wrong; the first one itself where nothing else is.

    Args:
        first: What was refused.
        schema: By which rules.
        tried: Reads the series by other rules, and coerces the cells of some columns.
    """
    names = {
        printable(name): name for name in (*schema.columns, *schema.moments, schema.unit.id, schema.source) if name
    }
    found, lenient, error = [first], frozenset[str](), first
    while len(found) < _MOST:
        if isinstance(error, BrokenRule):
            windows = schema.series.model_copy(update=dict(error.relaxed))
            schema = schema.model_copy(update={"series": windows})
        elif (name := names.get(error.field or "")) is not None and name not in lenient:
            lenient |= {name}
        else:
            break
        try:
            tried(schema, lenient)
        except DataError as next_one:
            error = next_one
            found.append(error)
        else:
            break
    if len(found) == 1:
        return first
    also = "; and ".join(str(each) for each in found[1:])
    return DataError(first.message, field=first.field, remedy=f"{first.remedy}; and {also}")
