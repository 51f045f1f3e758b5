"""Columns of type ``constant``: one public value in each synthetic row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.schema.columns.made import MadeColumn
from doublure.schema.scalars import Value, label

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from doublure.schema.columns.made_rows import MadeRows

REMOVED = "(removed)"
"""A value that keeps a column of free text one of texts, whatever reads it."""


class ConstantColumn(MadeColumn):
    """One public value in each row, such as a placeholder for free text; without a value, empty cells."""

    verbatim: ClassVar[bool] = True
    noun: ClassVar[str] = "a constant"

    type: Literal["constant"] = "constant"
    value: Value = Field(default="", description="what each cell holds; left out, cells are empty")

    @property
    def empty(self) -> bool:
        """Whether cells are empty."""
        return label(self.value) == ""

    @override
    def notes(self) -> Iterator[str]:
        yield from super().notes()
        if self.empty:
            yield f"has no value: a reader of CSV takes an empty column for numbers; write value: {REMOVED} for text"

    @property
    @override
    def origin(self) -> str:
        return "always empty" if self.empty else "the same in each row"

    @property
    @override
    def shown_values(self) -> tuple[Value, ...]:
        return () if self.empty else (self.value,)

    @property
    @override
    def shown_missing(self) -> bool | list[str]:
        return self.empty

    @override
    def made(self, rows: MadeRows, name: str) -> pd.Series[Any]:
        import pandas as pd

        of_texts = isinstance(self.value, str)
        return pd.Series([None if self.empty else self.value] * len(rows.numbers), dtype="str" if of_texts else None)
