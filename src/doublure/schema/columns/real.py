"""Columns of type ``real``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, StrictFloat
from typing_extensions import override

from doublure.schema.columns.dtypes import FLOATS, Dtype
from doublure.schema.columns.number import NumberColumn
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import EXACT, Decimals

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.spelling import TextMarks
    from doublure.support.arrays import Floats

_EXACT_POWERS = 22
"""The largest power of ten that float64 holds exactly: a quotient of whole numbers up to it is correctly rounded."""


class RealColumn(NumberColumn):
    """Real numbers within public bounds, rounded to ``precision`` decimals if given."""

    like: ClassVar[str] = "real"
    table_type: ClassVar[str] = "number"
    example: ClassVar[str | None] = "write bounds: [0, 99.5]"

    own_dtype: ClassVar[Dtype | None] = "float64"
    dtypes: ClassVar[tuple[Dtype, ...]] = (*FLOATS, "str")

    type: Literal["real"] = "real"
    bounds: Fact[tuple[StrictFloat, StrictFloat]] = UNDECLARED
    precision: Decimals | None = Field(default=None, description="decimals")
    step: Annotated[StrictFloat, Field(gt=0)] | None = Field(default=None, description="cells are its multiples")

    @property
    @override
    def unit(self) -> float:
        if self.step is not None:
            return self.step
        return 0.0 if self.precision is None else 10.0**-self.precision

    @property
    @override
    def ends(self) -> tuple[float, float] | None:
        return self.bounds if isinstance(self.bounds, tuple) else None

    @property
    @override
    def decimals(self) -> int | None:
        return self.precision

    @override
    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        """Return cells as a CSV file has them: without decimals, whole ones are written as whole numbers."""
        written = super().csv_cells(cells, marks)
        whole = self.precision == 0 and self.ends is not None and max(map(abs, self.ends)) < EXACT
        if not whole or written.dtype.kind != "f":
            return written
        known = written.dropna()  # a real record's cell may have decimals, or lie beyond the bounds
        exact = ((known % 1 == 0) & (known.abs() <= EXACT)).all()
        return written.astype("Int64") if exact else written

    @override
    def rounded(self, numbers: Floats) -> Floats:
        import numpy as np

        return numbers if self.precision is None else np.round(numbers, self.precision)

    @override
    def drawn(self, numbers: Floats) -> Floats:
        """Return drawn numbers as cells have them: without a precision, with none of float64's error."""
        import numpy as np

        if self.precision is not None or self.ends is None:
            return self.rounded(numbers)
        lower, upper = self.ends
        inside = (numbers >= lower) & (numbers <= upper)
        found = significant(numbers, sys.float_info.dig)  # the same in every column: rules keep their order
        return np.where(inside, np.clip(found, lower, upper), found)


def significant(numbers: Floats, digits: int) -> Floats:
    """Return the floats nearest to numbers of so many digits, which are written with no more.

    Example:
        >>> import numpy as np
        >>> significant(np.array([3.1999999999999997, -0.30000000000000004, 0.0]), 12).tolist()
        [3.2, -0.3, 0.0]
    """
    import numpy as np

    sizes = np.abs(np.where(np.isfinite(numbers) & (numbers != 0), numbers, 1.0))
    decimals = digits - 1 - np.floor(np.log10(sizes))
    exact = np.abs(decimals) <= _EXACT_POWERS
    powers = 10.0 ** np.where(exact, np.abs(decimals), 0.0)
    found = np.where(decimals >= 0, np.rint(numbers * powers) / powers, np.rint(numbers / powers) * powers)
    if exact.all():
        return np.asarray(found)
    few = np.array([float(f"{number:.{digits}g}") for number in numbers[~exact].tolist()])
    found[~exact] = few
    return np.asarray(found)
