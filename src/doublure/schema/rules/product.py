"""``{product: {of: total, from: [price, months]}}``: a column is the product of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field, StrictStr, model_serializer
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.arithmetic import AppliedOperation, ColumnFormula, ColumnName
from doublure.schema.rules.computed import ComputedRule
from doublure.schema.rules.rule import Names


class NamedFactors(Frozen):
    """A product and its factors."""

    of: StrictStr
    factors: Names = Field(alias="from")

    @model_serializer
    def _as_written(self) -> dict[str, object]:
        return {"of": self.of, "from": list(self.factors)}


class ColumnProduct(ComputedRule):
    """The column is the product of the others, rounded to its own precision and step."""

    word: ClassVar[str] = "product"

    product: NamedFactors

    @property
    @override
    def of(self) -> str:
        return self.product.of

    @property
    @override
    def operands(self) -> tuple[str, ...]:
        return self.product.factors

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{printable(self.of)} must be {' × '.join(map(printable, self.operands))}"

    @override
    def arithmetic(self, columns: Mapping[str, Column]) -> ColumnFormula:
        first, *rest = map(ColumnName, self.operands)
        found: ColumnFormula = first
        for each in rest:
            found = AppliedOperation("*", (found, each))
        return found
