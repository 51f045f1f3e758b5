"""The base of columns of which nothing is learned: private cells are never read, and synthetic ones are made anew."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pydantic import model_validator
from typing_extensions import override

from doublure.errors import SchemaError
from doublure.schema.allowed import Allowed
from doublure.schema.columns.column import Column
from doublure.schema.columns.column_facts import Missing
from doublure.schema.columns.dtypes import Dtype
from doublure.schema.fact_states import Fact, Learn
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.made_rows import MadeRows


class MadeColumn(Column):
    """A column of which nothing is learned: a type says what its synthetic cells are."""

    facts: ClassVar[tuple[str, ...]] = ()
    modelled: ClassVar[bool] = False
    tells_missing: ClassVar[bool] = False
    noun: ClassVar[str] = "a column that is made anew"
    """The name of a column of this type in messages."""
    way: ClassVar[str] = "made anew"
    """The way in which its synthetic cells come about."""
    own_dtype: ClassVar[Dtype | None] = "str"

    missing: Fact[Missing] = False

    @abstractmethod
    @override
    def made(self, rows: MadeRows, name: str) -> pd.Series[Any]: ...

    def _refuse(self, *given: Any, **more: Any) -> NoReturn:
        """Refuse: its cells have no numbers."""
        raise SchemaError(f"{self.noun} is not encoded")

    numbers_of = cells_of = loaded_cells_of = integer_domain = bins = _refuse  # type: ignore[pydantic-field]  # methods

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        """Refuse: private cells of this type are never read."""
        raise SchemaError("is never read", field=name)

    @override
    def number_of(self, written: object) -> float:
        """Refuse: its cells have no numbers.

        Raises:
            ValueError: Always; ``message; remedy``.
        """
        raise ValueError(f"is {self.noun}, which is {self.way}; ask for another column")

    @override
    def asked(self, value: object) -> Allowed:
        """Refuse: its cells are made anew.

        Raises:
            ValueError: Always; ``message; remedy``.
        """
        raise ValueError(f"is {self.noun}, which is {self.way}; leave it out")

    @override
    def text_of(self, number: float) -> str:
        return f"{number:.0f}"

    @model_validator(mode="after")
    def _nothing_to_learn(self) -> MadeColumn:
        unfit = isinstance(self.missing, Learn) if self.tells_missing else self.missing is not False
        if self.roles or ("missing" in self.model_fields_set and unfit):
            raise ValueError(f"{self.noun} is never learned; leave roles and missing out, or use type category")
        return self
