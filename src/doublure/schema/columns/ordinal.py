"""Columns of type ``ordinal``."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import model_validator

from doublure.schema.columns.listed import ListedColumn
from doublure.schema.fact_states import KeyFault, Learn


class OrdinalColumn(ListedColumn):
    """Values in the order listed."""

    like: ClassVar[str] = "ordinal"
    ordered: ClassVar[bool] = True

    type: Literal["ordinal"] = "ordinal"

    @model_validator(mode="after")
    def _order_is_public(self) -> OrdinalColumn:
        if isinstance(self.values, Learn):
            raise KeyFault("values", "cannot be learned; list the values, or use type category", subject="an order")
        return self
