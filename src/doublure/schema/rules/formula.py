"""``{formula: {of: total, from: "price * months + 2"}}``: a column follows from others by arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, StrictStr, model_serializer
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.fact_states import Frozen
from doublure.schema.rules.arithmetic import ColumnFormula, parse_formula
from doublure.schema.rules.computed import ComputedRule


def _readable(text: str) -> str:
    if not parse_formula(text).names:
        raise ValueError("formula names no column; write one such as price * months")
    return text


class WrittenFormula(Frozen):
    """A column and the formula that gives it."""

    of: StrictStr
    text: Annotated[StrictStr, AfterValidator(_readable)] = Field(alias="from")

    @model_serializer
    def _as_written(self) -> dict[str, str]:
        return {"of": self.of, "from": self.text}


class FormulaResult(ComputedRule):
    """The column is the result of a formula of the others, rounded to its own precision and step."""

    word: ClassVar[str] = "formula"

    formula: WrittenFormula

    @property
    @override
    def of(self) -> str:
        return self.formula.of

    @property
    @override
    def operands(self) -> tuple[str, ...]:
        return parse_formula(self.formula.text).names

    @override
    def requirement(self, columns: Mapping[str, Column]) -> str:
        return f"{printable(self.of)} must be {printable(self.formula.text)}"

    @override
    def arithmetic(self, columns: Mapping[str, Column]) -> ColumnFormula:
        return parse_formula(self.formula.text)
