"""Columns of type ``boolean``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from typing_extensions import override

from doublure.schema.columns.listed import ChoiceColumn
from doublure.schema.scalars import Misfit, Value, label

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.columns.column import Floats

_TRUE, _FALSE = {"true", "t", "yes", "y", "1", "1.0"}, {"false", "f", "no", "n", "0", "0.0"}


class BooleanColumn(ChoiceColumn):
    """True or false."""

    like: ClassVar[str] = "boolean"
    table_type: ClassVar[str] = "boolean"
    truth: ClassVar[bool] = True
    expected: ClassVar[str] = "write true/false, yes/no or 1/0, or declare a category"

    type: Literal["boolean"] = "boolean"

    @property
    @override
    def domain(self) -> tuple[Value, ...]:
        return (False, True)

    @override
    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        from doublure.schema.columns.listed_cells import labels

        return labels(raw, self, name, misfit, word=truth_of)

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
    def spelt(self, written: object) -> str:
        return truth_of(label(written)) or ""

    @override
    def advice_for(self, written: object) -> str:
        return "give true or false"


def truth_of(text: str) -> str | None:
    """Return ``true`` or ``false`` for any of the words that mean it; None for other texts.

    Example:
        >>> truth_of("Yes"), truth_of("0"), truth_of("maybe")
        ('true', 'false', None)
    """
    lowered = text.lower()
    return "true" if lowered in _TRUE else "false" if lowered in _FALSE else None
