"""Columns of type ``id``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import override

from doublure.errors import SettingError, counted
from doublure.schema.columns.dtypes import WHOLE, Dtype
from doublure.schema.columns.made import MadeColumn
from doublure.schema.columns.patterns import EXAMPLE, PatternText, RowNumbering, TextPattern
from doublure.schema.fact_states import KeyFault
from doublure.schema.scalars import Misfit

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.made_rows import MadeRows


class IdColumn(MadeColumn):
    """An identifier: regenerated as 1, 2, 3, …, or as texts of a public pattern; never learned, never encoded."""

    like: ClassVar[str] = "id"
    identifies: ClassVar[bool] = True
    tells_missing: ClassVar[bool] = True  # records without the id of a unit are left out
    noun: ClassVar[str] = "an id"
    way: ClassVar[str] = "numbered anew"
    table_type: ClassVar[str] = "integer"
    own_dtype: ClassVar[Dtype | None] = "int64"
    dtypes: ClassVar[tuple[Dtype, ...]] = ("str", *WHOLE)

    type: Literal["id"] = "id"
    pattern: PatternText | None = Field(
        default=None, description=f"the form of ids, such as {EXAMPLE}; left out, they are 1, 2, 3, …"
    )
    order: Literal["random"] | None = Field(default=None, description="ids of a pattern in an order that looks random")

    @property
    def numbering(self) -> RowNumbering | None:
        """The text of each row; None for plain numbers."""
        return None if self.pattern is None else RowNumbering(TextPattern(self.pattern), self.order is not None)

    @property
    @override
    def origin(self) -> str:
        return f"numbered anew, as {self.pattern or '1, 2, 3, …'}"

    @property
    @override
    def told(self) -> Mapping[str, Any]:
        return {} if self.pattern is None else {"pattern": self.pattern, "order": self.order}

    @override
    def ready(self, name: str, rows: int) -> None:
        self._refuse_crowd(name, rows)

    @override
    def made(self, rows: MadeRows, name: str) -> pd.Series[Any]:
        import pandas as pd

        if (numbering := self.numbering) is None:
            return pd.Series(rows.numbers)
        self._refuse_crowd(name, int(rows.numbers[-1]) if len(rows.numbers) else 0)
        return pd.Series(numbering.texts(rows.numbers), dtype="str")

    def _refuse_crowd(self, name: str, rows: int) -> None:
        """Refuse more rows than the pattern has texts for.

        Raises:
            SettingError: Naming the column.
        """
        if (numbering := self.numbering) is not None and rows > numbering.room:
            message = f"has a pattern with room for {counted(numbering.room, 'id')}, not for {counted(rows, 'row')}"
            raise SettingError(message, field=name, remedy="give it more digits or letters")

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        from doublure.schema.columns.listed_cells import labels

        return labels(raw, self, name, misfit)

    @model_validator(mode="after")
    def _order_needs_a_pattern(self) -> IdColumn:
        if self.order is not None and self.pattern is None:
            raise KeyFault("order", f"needs a pattern; write one such as {EXAMPLE}", subject="order: random")
        if self.pattern is not None and self.dtype not in (None, "str"):
            raise KeyFault(
                "pattern",
                "makes texts, and dtype says otherwise; write dtype: str, or leave it out",
                subject="a pattern",
            )
        return self
