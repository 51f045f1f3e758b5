"""Columns of type ``real``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field, StrictFloat

from doublure.schema.columns.number import NumberColumn
from doublure.schema.fact_states import UNDECLARED, Fact
from doublure.schema.scalars import Decimals

if TYPE_CHECKING:
    from doublure.schema.columns.column import Floats


class RealColumn(NumberColumn):
    """Real numbers within public bounds, rounded to ``precision`` decimals if given."""

    like: ClassVar[str] = "real"
    example: ClassVar[str | None] = "write bounds: [0, 99.5]"

    type: Literal["real"] = "real"
    bounds: Fact[tuple[StrictFloat, StrictFloat]] = UNDECLARED
    precision: Decimals | None = Field(default=None, description="decimals")
    step: Annotated[StrictFloat, Field(gt=0)] | None = Field(default=None, description="cells are its multiples")

    @property
    def unit(self) -> float:
        """The step, or else one in the last decimal; 0 without either."""
        if self.step is not None:
            return self.step
        return 0.0 if self.precision is None else 10.0**-self.precision

    @property
    def ends(self) -> tuple[float, float] | None:
        """The declared bounds."""
        return self.bounds if isinstance(self.bounds, tuple) else None

    @property
    def decimals(self) -> int | None:
        """The declared precision."""
        return self.precision

    def rounded(self, numbers: Floats) -> Floats:
        """Return ``(N,)`` numbers with the declared decimals."""
        import numpy as np

        return numbers if self.precision is None else np.round(numbers, self.precision)
