"""Kinds of missing cells: each declared text is one, and beside several an empty cell.

Cells in canonical form are numbers that have their states (:mod:`doublure.schema.missing_states`) where a column is
bounded, and a categorical that lists the texts, too, where it has a list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from doublure.schema.columns.dtypes import WHOLE, Dtype
from doublure.schema.columns.spelling import CellSpelling, TextMarks
from doublure.schema.missing_states import hole_states, keep_holes, tag_holes
from doublure.schema.scalars import Misfit, Value, is_plain_number, label

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
    Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class ColumnOfKinds(Protocol):
    """The questions that are asked of a column of several kinds of missing, as :class:`Column` answers them."""

    @property
    def listed(self) -> bool:
        """Whether its values are a list."""

    @property
    def dtype(self) -> Dtype | None:
        """The declared storage type."""

    @property
    def text_form(self) -> Mapping[str, Any]:
        """The keys about its text that say something."""

    @property
    def plain(self) -> bool:
        """Whether its cells are its numbers."""

    @property
    def ordered(self) -> bool:
        """Whether a range of its values means something."""

    @property
    def domain(self) -> tuple[Value, ...]:
        """The declared values."""

    @property
    def missing_texts(self) -> tuple[str, ...]:
        """The text of each state of a missing cell."""

    def read(self, raw: pd.Series[Any], name: str, misfit: Misfit) -> pd.Series[Any]:
        """Return raw cells in canonical form."""

    def numbers_of(self, cells: pd.Series[Any]) -> Floats:
        """Return the numbers of cells, NaN for a missing one."""

    def kept_numbers(self, cells: pd.Series[Any]) -> Floats:
        """Return the numbers of cells; a missing one has its state."""

    def cells_of(self, numbers: Floats) -> pd.Series[Any]:
        """Return numbers as cells of a sample."""

    def csv_cells(self, cells: pd.Series[Any], marks: TextMarks) -> pd.Series[Any]:
        """Return cells as a CSV file has them."""

    def spelling(self, marks: TextMarks) -> CellSpelling | None:
        """Return how its texts are rewritten before they are read; None where they stay."""

    def drawn(self, numbers: Floats) -> Floats:
        """Return drawn numbers as cells have them."""

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return the column with other facts."""


STYLES: Mapping[str, tuple[str, ...]] = {
    "r": ("NA",),
    "sas": (".", "._", *(f".{letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
    "stata": (".", *(f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")),
    "sql": ("NULL",),
}
"""The texts by which a program writes missing cells: SAS has 28 kinds of them, Stata 27."""
IF_OF_R = "write missing: {style: r} if NA is an empty cell"
"""The remedy for cells of R in a column whose texts are values."""


def read_states(raw: pd.Series[Any], texts: Sequence[str], *, own: bool = False) -> Ints:
    """Return the state ``(N,)`` that each raw cell has, if it is missing: each cell by itself.

    Args:
        raw: Cells of any container.
        texts: The text of each state; of the first, empty.
        own: Whether a NaN has its state, as in canonical and sampled cells; the payload of others means nothing.
    """
    import numpy as np

    from doublure.schema.distinct_cells import distinct

    known = {text: state for state, text in enumerate(texts)}
    known |= {label(float(text)): state for text, state in known.items() if is_plain_number(text)}
    if raw.dtype == np.float64:
        numbers = raw.to_numpy()
        found: Ints = np.zeros(len(numbers), dtype=np.int64)
        found += hole_states(numbers) if own else 0
        for text, state in known.items():
            if is_plain_number(text):
                found = np.where(numbers == float(text), state, found)
        return found
    codes, uniques = distinct(raw)
    states: Ints = np.array([*(_state(cell, known) for cell in uniques), 0], dtype=np.int64)[codes]
    return states


def _state(cell: object, known: Mapping[str, int]) -> int:
    try:
        return next((known[text] for text in _written(cell) if text in known), 0)
    except Exception:  # a foreign object raises anything; a cell that cannot be read is none of the texts
        return 0


def _written(cell: Any) -> Sequence[str]:
    """Return how a cell may have been written: a day also as one, and a number as every table has it."""
    text = label(cell)
    if hasattr(cell, "isoformat"):
        return text, cell.isoformat(), cell.isoformat().removesuffix("T00:00:00")
    return (text, label(float(text))) if is_plain_number(text) else (text,)


def canonical_with_states(column: ColumnOfKinds, values: pd.Series[Any], states: Ints) -> pd.Series[Any]:
    """Return ``(N,)`` canonical cells in which missing ones have their states.

    Args:
        column: Of several kinds of missing.
        values: Canonical cells as the column reads them, missing ones alike.
        states: Of each cell, where it is missing.
    """
    import numpy as np
    import pandas as pd

    numbers = column.numbers_of(values)
    tagged = np.where(np.isnan(numbers), tag_holes(states), numbers)
    if not column.listed:
        return pd.Series(tagged)
    labels = [label(value) for value in column.domain] or list(values.cat.categories)
    return _categorical(values.cat.codes.to_numpy(), hole_states(tagged), labels, list(column.missing_texts[1:]))


def sampled_with_states(column: ColumnOfKinds, numbers: Floats) -> pd.Series[Any]:
    """Return ``(N,)`` numbers as cells of a sample: NaN in a numeric column, a text in a list or a text column."""
    import numpy as np
    import pandas as pd

    states = hole_states(numbers)
    if column.listed:
        values, texts = list(column.domain), list[Any](column.missing_texts[1:])
        if all(type(value) is int for value in values) and all(map(is_plain_number, texts)):
            texts = [int(text) if float(text).is_integer() else text for text in texts]
        if len({type(value) for value in (*values, *texts)}) > 1:
            values, texts = [label(value) for value in values], list(column.missing_texts[1:])
        codes = np.where(np.isnan(numbers) | (numbers >= len(values)), -1, numbers).astype(np.int64)
        return _categorical(codes, states, values, texts, ordered=column.ordered)
    if column.plain:
        return pd.Series(keep_holes(column.drawn(numbers), numbers))
    shown = column.model_copy(update={"missing": True}).cells_of(numbers)
    texts_of = np.array([None, *column.missing_texts[1:]], dtype=object)[states]
    written = column.csv_cells(shown, TextMarks()).astype("str").to_numpy(dtype=object)
    return pd.Series(np.where(np.isnan(numbers), texts_of, written), dtype="str")


def numbers_with_states(column: ColumnOfKinds, cells: pd.Series[Any]) -> Floats:
    """Return the ``(N,)`` numbers of canonical or sampled cells, missing ones with their states."""
    import numpy as np

    from doublure.schema.distinct_cells import is_listed

    if cells.dtype == np.float64 and not column.listed:
        return cells.to_numpy().copy()
    plain = cells
    if is_listed(cells) and not column.listed:  # texts of a sample, in the column's own form
        spelling = column.spelling(TextMarks())
        plain = column.read(cells if spelling is None else cells.map(spelling, na_action="ignore"), "", "refuse")
    numbers = column.numbers_of(plain)
    return np.where(np.isnan(numbers), tag_holes(read_states(cells, column.missing_texts)), numbers)


def numbers_with_texts(
    column: ColumnOfKinds, cells: pd.Series[Any], texts: Sequence[str], marks: TextMarks
) -> pd.Series[Any]:
    """Return ``(N,)`` cells as a CSV file has them, missing ones as the text of their state."""
    import numpy as np
    import pandas as pd

    numbers, plain = column.kept_numbers(cells), column.model_copy(update={"missing": True})
    shown = plain.csv_cells(plain.cells_of(numbers), marks).astype(object).to_numpy()
    holes = np.array(texts, dtype=object)[hole_states(numbers)]
    return pd.Series(np.where(np.isnan(numbers), holes, shown), dtype=object)


def numbers_with_codes(column: ColumnOfKinds, cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return ``(N,)`` numbers as a typed file has them, missing ones as their code where all texts are numbers."""
    import numpy as np

    numbers, texts = column.kept_numbers(cells), column.missing_texts[1:]
    if all(map(is_plain_number, texts)):
        codes = np.array([np.nan, *map(float, texts)])[hole_states(numbers)]
        numbers = np.where(np.isnan(numbers), codes, numbers)
    return column.model_copy(update={"missing": True}).cells_of(numbers)


def cells_with_kinds(column: ColumnOfKinds, cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return ``(N,)`` numbers as objects, missing ones as the text of their state, and None without one."""
    import numpy as np
    import pandas as pd

    numbers = column.kept_numbers(cells)
    texts = np.array([None, *column.missing_texts[1:]], dtype=object)
    return pd.Series(np.where(np.isnan(numbers), texts[hole_states(numbers)], column.drawn(numbers).astype(object)))


def stored_with_states(
    column: ColumnOfKinds, cells: pd.Series[Any], marks: TextMarks, *, coded: bool
) -> pd.Series[Any]:
    """Return ``(N,)`` sampled cells in the storage type that a column declares, as far as it can hold its kinds.

    Texts of missing in a date or an amount have no place in a typed column: it stays a column of texts. Codes that a
    type of whole numbers does not reach are empty cells.

    Args:
        column: The column.
        cells: Its cells.
        marks: How text writes dates and numbers where the column does not say it.
        coded: Whether missing numbers are their codes, as in a typed file; else NaN.
    """
    import pandas as pd

    from doublure.schema.columns.stored_cells import as_dtype, as_texts

    dtype, texts = column.dtype, column.missing_texts[1:]
    held = _holds(dtype, texts)
    if column.plain and dtype != "str":
        numbers = numbers_with_codes(column, cells) if coded and held else cells
        return numbers if dtype is None else _astype(numbers, dtype)
    as_whole = dtype in WHOLE and not column.listed and all(map(is_plain_number, texts))  # whole-number dates
    if dtype == "str" or as_whole or "written" in column.text_form:
        shown = texts if held else [""] * len(texts)
        written = as_texts(numbers_with_texts(column, cells, ["", *shown], marks).replace("", None))
        return _astype(pd.to_numeric(written), dtype) if as_whole and dtype is not None else written
    if column.listed and dtype in WHOLE and cells.cat.categories.dtype.kind in "iu":
        kept = cells if held else cells.cat.set_categories([*column.domain])
        return as_dtype(kept, dtype, lambda: kept, dated=False)
    return cells


def _astype(cells: pd.Series[Any], dtype: Dtype) -> pd.Series[Any]:
    wanted: Any = dtype  # with a place for missing cells, as the schema asks
    return cells.astype(wanted)


def _holds(dtype: Dtype | None, codes: Sequence[str]) -> bool:
    """Return whether a storage type has a place for codes of missing."""
    import numpy as np

    if dtype not in WHOLE or not all(map(is_plain_number, codes)):
        return True
    ends = np.iinfo(dtype.lower())
    return all(ends.min <= float(code) <= ends.max and float(code).is_integer() for code in codes)


def _categorical(
    codes: Any, states: Ints, values: Sequence[Any], texts: Sequence[Any], *, ordered: bool = False
) -> pd.Series[Any]:
    import numpy as np
    import pandas as pd

    placed = np.where((codes < 0) & (states > 0), len(values) + states - 1, codes)
    index = pd.Index(
        [*values, *texts], dtype="str" if all(isinstance(each, str) for each in (*values, *texts)) else None
    )
    return pd.Series(pd.Categorical.from_codes(placed, dtype=pd.CategoricalDtype(index, ordered=ordered)))
