"""Columns of type ``boolean``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, StrictInt, StrictStr, model_validator
from typing_extensions import override

from doublure.schema.columns.dtypes import WHOLE, Dtype
from doublure.schema.columns.listed import ChoiceColumn
from doublure.schema.columns.missing_kinds import IF_OF_R
from doublure.schema.fact_states import KeyFault
from doublure.schema.scalars import Misfit, Value, label, whole

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.spelling import CellSpelling, TextMarks
    from doublure.schema.columns.sql_words import SqlCell, SqlReading, SqlWords
    from doublure.support.arrays import Floats

_TRUE, _FALSE = {"true", "t", "yes", "y", "1", "1.0"}, {"false", "f", "no", "n", "0", "0.0"}


def _by_truth(written: object) -> object:
    """Return a mapping by true and false with texts for keys, as JSON has them."""
    if not isinstance(written, Mapping) or {label(key) for key in written} != {"true", "false"} or len(written) != 2:
        raise KeyFault("written", "gives a text for true and one for false; write {true: Y, false: N}")
    return {label(key): whole(written[key]) for key in sorted(written, key=label, reverse=True)}


Words: TypeAlias = Annotated[
    Mapping[Literal["true", "false"], StrictInt | StrictStr],
    BeforeValidator(_by_truth),
]


class BooleanColumn(ChoiceColumn):
    """True or false."""

    like: ClassVar[str] = "boolean"
    table_type: ClassVar[str] = "boolean"
    truth: ClassVar[bool] = True
    expected: ClassVar[str] = (
        f"write true/false, yes/no or 1/0, declare other words: written: {{true: ja, false: nein}}, or {IF_OF_R}"
    )

    own_dtype: ClassVar[Dtype | None] = "bool"
    dtypes: ClassVar[tuple[Dtype, ...]] = ("bool", "boolean", "category", "str", *WHOLE)

    type: Literal["boolean"] = "boolean"
    written: Words | None = Field(default=None, description="how cells say it, in every file: {true: Y, false: N}")

    @property
    @override
    def domain(self) -> tuple[Value, ...]:
        return (False, True)

    @property
    @override
    def shown_values(self) -> tuple[Value, ...]:
        return self.domain if self.written is None else (self.written["false"], self.written["true"])

    @property
    @override
    def stored_ends(self) -> tuple[float, float] | None:
        numbers = [float(value) for value in self.shown_values if isinstance(value, int)]
        return (min(numbers), max(numbers)) if len(numbers) == len(self.shown_values) else None

    @override
    def spelling(self, marks: TextMarks) -> CellSpelling | None:
        from doublure.schema.columns.spelling import respelt_words

        if self.written is None:
            return None
        return respelt_words({label(word): truth for truth, word in self.written.items()}, self.missing_tokens)

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        from doublure.schema.columns.listed_cells import labels

        return labels(raw, self, name, misfit, word=truth_of)

    @override
    def in_sql(self, cell: SqlCell, words: SqlWords) -> SqlReading:
        from doublure.schema.columns.listed_sql import truth_reading

        return truth_reading(self, cell, words, {"true": _TRUE, "false": _FALSE})

    @override
    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        import numpy as np
        import pandas as pd

        if cells.dtype in (np.dtype(bool), pd.BooleanDtype()):
            return cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return super().numbers_of(cells)

    @override
    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        import numpy as np
        import pandas as pd

        if not self.may_be_missing:
            return pd.Series(numbers == 1)
        return pd.Series(pd.arrays.BooleanArray(numbers == 1, np.isnan(numbers) | (numbers > 1)))

    @override
    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        return cells if self.written is None else self._worded(cells)

    @override
    def stored_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        as_text = self.written is None or self.dtype == "str"  # of which the text is what a CSV file has
        return super().stored_cells(cells if as_text else self._worded(cells), marks)

    def _worded(self, cells: pd.Series[Any]) -> pd.Series[Any]:
        """Return ``(N,)`` cells as they are written: texts, or whole numbers."""
        import numpy as np
        import pandas as pd

        words = self.shown_values
        truths = self.numbers_of(cells)
        there = ~np.isnan(truths)
        if all(isinstance(word, int) for word in words):
            found = np.where(truths == 1, words[1], words[0]).astype(np.int64)
            return pd.Series(found) if there.all() else pd.Series(pd.arrays.IntegerArray(found, ~there))
        texts = np.array([*map(label, words), None], dtype=object)
        return pd.Series(texts[np.where(there, truths, 2).astype(np.int64)], dtype="str")

    @override
    def spelt(self, written: object) -> str:
        for truth, word in (self.written or {}).items():
            if label(written) == label(word):
                return truth
        return truth_of(label(written)) or ""

    @override
    def advice_for(self, written: object) -> str:
        return "give true or false"

    @model_validator(mode="after")
    def _words_fit(self) -> BooleanColumn:
        words = [label(word) for word in (self.written or {}).values()]
        if len(set(words)) < len(words):
            raise KeyFault("written", "has one text for true and false; write {true: Y, false: N}")
        if set(words) & set(self.missing_tokens):
            raise KeyFault("written", "has an empty text, or one that means missing; keep it in one place")
        if self.dtype in ("bool", "boolean") and self.written not in (None, {"true": 1, "false": 0}):
            raise KeyFault("dtype", f"{self.dtype} has no place for other words; remove written, or write dtype: str")
        return self


def truth_of(text: str) -> str | None:
    """Return ``true`` or ``false`` for any of the words that mean it; None for other texts.

    Example:
        >>> truth_of("Yes"), truth_of("0"), truth_of("maybe")
        ('true', 'false', None)
    """
    lowered = text.lower()
    return "true" if lowered in _TRUE else "false" if lowered in _FALSE else None
