"""Columns of type ``id``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn

from pydantic import model_validator
from typing_extensions import override

from doublure.errors import SchemaError
from doublure.schema.columns.column import Column, Missing
from doublure.schema.fact_states import Fact, Learn
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.column import Floats
    from doublure.schema.columns.integer_domain import IntegerDomain


class IdColumn(Column):
    """An identifier: regenerated as 1, 2, 3, …, never learned, never encoded."""

    like: ClassVar[str] = "id"
    facts: ClassVar[tuple[str, ...]] = ()
    modelled: ClassVar[bool] = False

    type: Literal["id"] = "id"
    missing: Fact[Missing] = False

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        from doublure.schema.columns.listed_cells import labels

        return labels(raw, self, name, misfit)

    @override
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        """Refuse: ids have no numbers.

        Raises:
            SchemaError: Always.
        """
        _refuse()

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Refuse: ids have no numbers.

        Raises:
            SchemaError: Always.
        """
        _refuse()

    @override
    def loaded_cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Refuse: ids have no numbers.

        Raises:
            SchemaError: Always.
        """
        _refuse()

    @override
    def number_of(self, written: object) -> float:
        """Refuse: ids have no numbers.

        Raises:
            ValueError: Always; ``message; remedy``.
        """
        raise ValueError("is an id, which is numbered anew; ask for another column")

    @override
    def text_of(self, number: float) -> str:
        return f"{number:.0f}"

    @override
    def integer_domain(self) -> IntegerDomain:
        """Refuse: ids have no numbers.

        Raises:
            SchemaError: Always.
        """
        _refuse()

    @model_validator(mode="after")
    def _nothing_to_learn(self) -> IdColumn:
        if self.roles or isinstance(self.missing, Learn):
            raise ValueError("an id is never learned; leave roles and missing out, or use type category")
        return self


def _refuse() -> NoReturn:
    raise SchemaError("an id is not encoded")
