"""Columns of type ``id``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from pydantic import model_validator
from typing_extensions import override

from doublure.errors import SchemaError
from doublure.schema.allowed import Allowed
from doublure.schema.columns.column import Column, Missing
from doublure.schema.columns.dtypes import WHOLE, Dtype
from doublure.schema.fact_states import Fact, Learn
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pandas as pd


class IdColumn(Column):
    """An identifier: regenerated as 1, 2, 3, …, never learned, never encoded."""

    like: ClassVar[str] = "id"
    table_type: ClassVar[str] = "integer"
    facts: ClassVar[tuple[str, ...]] = ()
    modelled: ClassVar[bool] = False
    own_dtype: ClassVar[Dtype | None] = "int64"
    dtypes: ClassVar[tuple[Dtype, ...]] = ("str", *WHOLE)

    type: Literal["id"] = "id"
    missing: Fact[Missing] = False

    def _refuse(self, *given: Any, **more: Any) -> NoReturn:
        """Refuse: ids have no numbers."""
        raise SchemaError("an id is not encoded")

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        from doublure.schema.columns.listed_cells import labels

        return labels(raw, self, name, misfit)

    numbers_of = cells_of = loaded_cells_of = integer_domain = bins = _refuse  # type: ignore[pydantic-field]  # methods

    @override
    def number_of(self, written: object) -> float:
        """Refuse: ids have no numbers.

        Raises:
            ValueError: Always; ``message; remedy``.
        """
        raise ValueError("is an id, which is numbered anew; ask for another column")

    @override
    def asked(self, value: object) -> Allowed:
        """Refuse: ids are numbered anew.

        Raises:
            ValueError: Always; ``message; remedy``.
        """
        raise ValueError("is an id, which is numbered anew; leave it out")

    @override
    def text_of(self, number: float) -> str:
        return f"{number:.0f}"

    @model_validator(mode="after")
    def _nothing_to_learn(self) -> IdColumn:
        if self.roles or isinstance(self.missing, Learn):
            raise ValueError("an id is never learned; leave roles and missing out, or use type category")
        return self
