"""Columns of type ``public``: cells from a public list, drawn from it or found by another column's value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, StrictStr, model_serializer, model_validator
from typing_extensions import override

from doublure.errors import printable
from doublure.schema.columns.column import Column
from doublure.schema.columns.made import MadeColumn
from doublure.schema.fact_states import KeyFault
from doublure.schema.scalars import label

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.made_rows import KeyColumn, MadeRows


def _texts(given: object) -> object:
    """Return what YAML or a file holds as texts."""
    if isinstance(given, Mapping):
        return {label(key): label(value) for key, value in given.items()}
    return [label(value) for value in given] if isinstance(given, list | tuple) else given


def _number(column: KeyColumn, written: str) -> float | None:
    """Return the number of a listed key; None for one that no cell has."""
    try:
        return round(column.number_of(written), _DIGITS)
    except ValueError:
        return None


_DIGITS = 9
"""Decimals to which a key is compared: those that numbers keep through sums of float64 in their bounds."""
_Reference: TypeAlias = Annotated[
    Mapping[StrictStr, StrictStr] | tuple[StrictStr, ...], BeforeValidator(_texts), Field(min_length=1)
]


class PublicColumn(MadeColumn):
    """Cells from a public reference: by another column's value, or drawn from a list with equal chances."""

    verbatim: ClassVar[bool] = True
    noun: ClassVar[str] = "a column from a public reference"

    type: Literal["public"] = "public"
    reference: _Reference = Field(alias="from", description="a CSV file beside the schema, or what it holds")
    by: StrictStr | None = Field(default=None, description="the column whose value is looked up")

    @property
    @override
    def origin(self) -> str:
        found = "drawn from a public list" if self.by is None else f"found by {self.by} in a public list"
        return f"{found}; tells nothing more about anybody"

    @property
    @override
    def found_by(self) -> str | None:
        return self.by

    @property
    @override
    def shown_missing(self) -> bool | list[str]:
        return self.by is not None

    @override
    def check_beside(self, columns: Mapping[str, Column], name: str) -> None:
        if self.by is not None and (self.by not in columns or not columns[self.by].modelled):
            message = f"{printable(name)} is looked up by {printable(self.by)}, which is no column that is drawn"
            raise ValueError(f"{message}; name another in by")

    @override
    def made(self, rows: MadeRows, name: str) -> pd.Series[Any]:
        import numpy as np
        import pandas as pd

        from doublure.schema.columns.fake_cells import chosen, unit_marks

        if self.by is None or not isinstance(self.reference, Mapping):
            return pd.Series(
                chosen([*self.reference], unit_marks(rows, rows.numbers, f"{rows.table}.{name}")), dtype="str"
            )
        key = rows.columns[self.by]
        found = {number: text for each, text in self.reference.items() if (number := _number(key, each)) is not None}
        numbers = np.round(key.numbers_of(rows.cells[self.by]), _DIGITS)
        return pd.Series(numbers).map(found).replace("", None).astype("str")

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return {"from" if key == "reference" else key: value for key, value in found.items()}

    @model_validator(mode="after")
    def _reference_fits(self) -> PublicColumn:
        if (self.by is None) == isinstance(self.reference, Mapping):
            raise KeyFault("from", "is a list without by, and a value for each key with it; give the other of the two")
        return self
