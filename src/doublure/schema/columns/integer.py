"""Columns of type ``integer``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.schema.columns.dtypes import FLOATS, WHOLE, Dtype
from doublure.schema.columns.number import NumberColumn
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import Bound, Positive

if TYPE_CHECKING:
    import pandas as pd

    from doublure.support.arrays import Floats


_FIRST_YEAR, _LAST_YEAR = 1000, 9999
"""Bounds between which whole numbers are compared as years, where their type does not say so."""


class IntegerColumn(NumberColumn):
    """Whole numbers within public bounds, both included."""

    like: ClassVar[str] = "integer"
    table_type: ClassVar[str] = "integer"
    integral: ClassVar[bool] = True
    example: ClassVar[str | None] = "write bounds: [0, 120]; whole numbers within ±2^53"

    own_dtype: ClassVar[Dtype | None] = "int64"
    dtypes: ClassVar[tuple[Dtype, ...]] = (*WHOLE, *FLOATS, "str")

    type: Literal["integer"] = "integer"
    bounds: Fact[tuple[Bound, Bound]] = UNDECLARED
    step: Positive = Field(default=1, description="amounts in thousands: 1000; cells are rounded to its multiples")

    @property
    @override
    def ends(self) -> tuple[float, float] | None:
        return (float(self.bounds[0]), float(self.bounds[1])) if isinstance(self.bounds, tuple) else None

    @property
    @override
    def size(self) -> int | None:
        if self.grid is None:
            return None
        lowest, highest = self.grid
        return round((highest - lowest) / self.unit) + 1

    @property
    @override
    def counts_years(self) -> bool:
        return self.grid is not None and self.grid[0] >= _FIRST_YEAR and self.grid[1] <= _LAST_YEAR

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import numpy as np
        import pandas as pd

        missing = np.isnan(numbers)
        whole = np.where(missing, 0, np.rint(numbers)).astype(np.int64)
        return pd.Series(pd.arrays.IntegerArray(whole, missing)) if self.may_be_missing else pd.Series(whole)
