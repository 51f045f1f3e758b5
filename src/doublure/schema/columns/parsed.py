"""The base of columns whose type says the number of one cell, and the text of one number."""

from __future__ import annotations

import datetime
import math
from abc import abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import Field, StrictFloat, StrictInt, StrictStr, model_validator
from typing_extensions import override

from doublure.errors import SchemaError, SettingError
from doublure.schema.columns.number import BoundedColumn
from doublure.schema.fact_states import UNDECLARED, Fact, KeyFault, Learn
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pandas as pd

    from doublure.noisy_counts import CandidateGrid
    from doublure.schema.columns.spelling import TextMarks
    from doublure.support.arrays import Floats

_NONSENSE = "no cell of any type"

_SCALARS = (str, Real, Decimal, datetime.date, datetime.time, datetime.timedelta)

WrittenCell: TypeAlias = StrictStr | StrictInt | StrictFloat
"""A cell as a schema file may hold it."""


class ParsedColumn(BoundedColumn):
    """A column of ordered cells of any form: a type says what one cell means, and how one number is written.

    Everything else follows from :meth:`parse` and :meth:`format`, which are asked for each distinct cell, and each
    number, by itself. Both must be pure: what they return depends on what they are given and on nothing else. Whatever
    they raise is a cell that does not fit, and is never shown.

    Canonical cells are float64, NaN for missing; sampled cells are texts.
    """

    examples: ClassVar[Mapping[Any, float]] = {}
    """Public cells and the number of each, by which a type is checked where it is registered."""
    points: ClassVar[tuple[float, ...]] = ()
    """Numbers among which bounds are bought, ascending; without any, bounds have to be declared."""

    bounds: Fact[tuple[WrittenCell, WrittenCell]] = UNDECLARED
    step: Annotated[StrictFloat, Field(gt=0)] = Field(default=1.0, description="cells are rounded to its multiples")

    @abstractmethod
    def parse(self, cell: Any) -> float:
        """Return the number of one cell.

        Args:
            cell: Text without spaces around, a number, or another scalar of Python such as a ``datetime.time``.

        Raises:
            ValueError: It has none; so does every other exception, and what is no finite number.
        """

    @classmethod
    @abstractmethod
    def format(cls, number: float) -> str:
        """Return the text of one number: :meth:`parse` reads it as the same number, whatever a schema declares."""

    @property
    @override
    def ends(self) -> tuple[float, float] | None:
        if not isinstance(self.bounds, tuple):
            return None
        lower, upper = (_end_in(self, end) for end in self.bounds)
        return lower, self.end_of_range(upper, self.bounds[1])

    @property
    @override
    def shown_bounds(self) -> tuple[Any, Any] | None:
        ends = self.ends
        return None if ends is None else (text_in(self, ends[0]), text_in(self, ends[1]))

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.number_cells import within
        from doublure.schema.columns.parsed_cells import parsed

        numbers = parsed(raw, partial(parsed_number, self), self.missing_tokens, misfit)
        return pd.Series(within(numbers, self) if misfit == "coerce" else numbers)

    @override
    def reread(self, cells: pd.Series[Any], name: str) -> pd.Series[Any]:
        import pandas as pd

        return pd.Series(self.numbers_of(cells))

    @override
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        import numpy as np

        from doublure.schema.columns.parsed_cells import parsed

        if cells.dtype == np.dtype(np.float64):
            return cells.to_numpy()
        return parsed(cells, partial(parsed_number, self), self.missing_tokens, "refuse")

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.parsed_cells import formatted

        return pd.Series(formatted(numbers, lambda number: text_in(self, number)), dtype="str")

    @override
    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        import pandas as pd

        from doublure.schema.columns.parsed_cells import formatted

        return pd.Series(formatted(self.numbers_of(cells), self.written_text), dtype="str")

    @override
    def number_of(self, written: object) -> float:
        """Return the number of a written cell.

        Raises:
            ValueError: It has none; ``message; remedy``.
        """
        found = parsed_number(self, written)
        if found is None:
            raise ValueError(f"is no {self.type}; {self.expected}")
        return found

    @override
    def upper_number_of(self, written: object) -> float:
        return self.end_of_range(self.number_of(written), written)

    def end_of_range(self, number: float, written: object) -> float:
        """Return the number that a written upper end means, of the one that its cell has."""
        return number

    def written_text(self, number: float) -> str:
        """Return the text of one number in a file: :meth:`parse` reads it as the same number."""
        return text_in(self, number)

    @override
    def text_of(self, number: float) -> str:
        return text_in(self, number)

    @override
    @classmethod
    def axis_text(cls, number: float) -> str | None:
        return text_in(cls, number)

    @override
    @classmethod
    def released_number(cls, cell: Any) -> float:
        found = parsed_number(_undeclared(cls), cell)
        if found is None:
            raise ValueError
        return found

    @override
    def learnable(self, fact: str) -> bool:
        return super().learnable(fact) and (fact != "bounds" or bool(self.points))

    @override
    def partition(self, magnitude: float | None) -> CandidateGrid:
        from doublure.noisy_counts import CandidateGrid

        return CandidateGrid.from_points(self.points) if self.points else super().partition(magnitude)

    @override
    def bought(self, first: float, last: float) -> tuple[Any, Any]:
        return text_in(self, first), text_in(self, last)

    @model_validator(mode="after")
    def _bounds_are_known(self) -> ParsedColumn:
        if isinstance(self.bounds, Learn) and not self.learnable("bounds"):
            raise KeyFault("bounds", "cannot be learned of this type, which has no points to look among; declare them")
        return self


def check_parsing(model: type[ParsedColumn]) -> None:
    """Try a type from elsewhere on its own examples: forwards, backwards and with a nonsense between.

    Raises:
        SettingError: It has none, or reads one otherwise than it says, or otherwise each time; what it writes is read
            as another number; or its points are no grid.
    """
    name, field = model.__name__, "column type"
    if not model.examples:
        raise SettingError(f"{name} has no examples", field=field, remedy='add examples = {"a cell": its number}')
    column = _undeclared(model)
    for cells in ([*model.examples], [*reversed(model.examples)]):
        for cell in cells:
            parsed_number(column, _NONSENSE)
            if parsed_number(column, cell) != model.examples[cell]:
                remedy = "fix its parse: what it returns may depend on the cell and on nothing else"
                raise SettingError(f"{name} does not read its examples as it says", field=field, remedy=remedy)
    points = [each for each in model.points if type(each) in (int, float) and math.isfinite(each)]
    if len(points) != len(model.points) or len(points) == 1 or points != sorted(set(points)):
        remedy = "give at least two finite numbers in ascending order, or none"
        raise SettingError(f"{name} has points that are no grid", field=field, remedy=remedy)
    for number in (*model.examples.values(), *points):
        if parsed_number(column, text_in(model, number)) != number:
            remedy = "fix its format: parse has to read what it writes as the same number"
            raise SettingError(
                f"{name} writes a number of its examples or points as another one", field=field, remedy=remedy
            )


def _undeclared(model: type[ParsedColumn]) -> ParsedColumn:
    """Return a column of which a schema says nothing; what a class says is not checked here."""
    return model.model_construct()  # type: ignore[call-arg]


def _end_in(column: ParsedColumn, end: object) -> float:
    """Return the number of a declared bound.

    Raises:
        ValueError: It has none; ``message; remedy``.
    """
    found = parsed_number(column, end)
    if found is None:
        raise KeyFault("bounds", f"is no {column.type}; {column.example or column.expected}", subject="a bound")
    return found


def parsed_number(column: ParsedColumn, cell: object) -> float | None:
    """Return the number of one cell; None where it has none, whatever the type raises or returns then."""
    if isinstance(cell, str):
        cell = cell.strip()
        if "\0" in cell:
            return None
    if isinstance(cell, bool) or not isinstance(cell, _SCALARS):
        return None
    try:
        found = column.parse(cell)
        fits = isinstance(found, Real) and not isinstance(found, bool) and math.isfinite(found)
        return float(found) + 0.0 if fits else None
    except KeyboardInterrupt:
        raise
    except BaseException:  # a type from elsewhere raises anything, with what it likes in its message
        return None


def text_in(column: ParsedColumn | type[ParsedColumn], number: float) -> str:
    """Return the text of one number.

    Raises:
        SchemaError: The type has none for it.
    """
    try:
        found = column.format(number)
    except Exception:
        found = None
    if not isinstance(found, str) or not found.strip():
        name = column.model_fields["type"].default if isinstance(column, type) else column.type
        raise SchemaError("has no text for one of its numbers", field=f"type {name}", remedy="fix its format")
    return found
