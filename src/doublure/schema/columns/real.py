"""Columns of type ``real``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StrictFloat
from typing_extensions import override

from doublure.schema.columns.dtypes import FLOATS, Dtype
from doublure.schema.columns.number import NumberColumn
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import Decimals

if TYPE_CHECKING:
    from doublure.schema.columns.column import Floats


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
    def rounded(self, numbers: Floats) -> Floats:
        import numpy as np

        return numbers if self.precision is None else np.round(numbers, self.precision)
