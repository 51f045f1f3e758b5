"""Raw cells of a list of values, in canonical form: a categorical of labels.

A declared list becomes the categories, in its order; where values are still to be learned, all labels are, sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from doublure.errors import DataError
from doublure.schema.columns.column import Column
from doublure.schema.columns.missing_kinds import IF_OF_R, STYLES
from doublure.schema.columns.number_cells import is_number
from doublure.schema.distinct_cells import NulByte, distinct, each
from doublure.schema.scalars import Misfit, label
from doublure.support.guessing import free_word

_OF_R = STYLES["r"][0]
_NO_CELLS = (bytes, bytearray, memoryview, list, tuple, dict, set, frozenset, np.ndarray)


def labels(
    raw: pd.Series[Any],
    column: Column,
    name: str,
    misfit: Misfit,
    word: Callable[[str], str | None] | None = None,
) -> pd.Series[Any]:
    """Return ``(N,)`` raw cells as labels in canonical form.

    Args:
        raw: The cells.
        column: Its list of values.
        name: Its name.
        misfit: What becomes of a cell that is not in the list.
        word: Returns the value that a text means, None where it means none; left out where values are texts.

    Raises:
        DataError: A cell is not in the list, and nothing stands for such.
        TypeError: A cell is no text; like it what else ``distinct_cells.UNREADABLE`` names.
    """
    codes, uniques = distinct(raw)
    missing = set(column.missing_tokens)
    domain = [label(value) for value in column.domain]
    misfits = _misfit_label(column, domain)
    read = cell_text if word is None else partial(_meant, word=word, tokens=missing)
    texts = each(uniques, read, misfits, misfit)
    categories = domain or sorted({*texts, *([misfits] if misfit == "coerce" else [])} - missing)
    place = {text: number for number, text in enumerate(categories)} | dict.fromkeys(missing, -1)
    if domain and word is None:
        place |= _other_places(place, texts, column, name, misfits if misfit == "coerce" else None)
    nothing = place[misfits] if misfit == "coerce" and column.missing is False else -1
    table = np.array([place[text] for text in texts] + [-1], dtype=np.int64)[codes]
    dtype = pd.CategoricalDtype(pd.Index(categories, dtype="str"))
    return pd.Series(pd.Categorical.from_codes(np.where(table < 0, nothing, table), dtype=dtype))


def cell_text(cell: object) -> str:
    """Return one cell's label.

    Raises:
        TypeError, ValueError: It has none that a file could hold.
    """
    if isinstance(cell, _NO_CELLS):
        raise TypeError
    text = label(cell)
    text.encode()  # half of a surrogate pair is no text
    if "\0" in text:
        raise NulByte
    return text


def _misfit_label(column: Column, domain: list[str]) -> str:
    """Return the text that a coerced misfit counts as: ``other``, else missing, else the first value."""
    if column.fallback is not None:
        return label(column.fallback)
    return domain[0] if domain and column.missing is False else ""


def _other_places(
    place: Mapping[str, int], texts: list[str], column: Column, name: str, misfits: str | None
) -> dict[str, int]:
    """Place what is not in the list: 01 and 1.0 where the values are numbers, anything where there is an ``other``."""
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in column.fact("values"))
    found, stand_in, spelt = {}, column.stand_ins(), column.fact("spellings") or {}
    for text in texts:
        if text in place:
            continue
        same = label(Decimal(text)) if numbers and is_number(text) else text
        means = spelt.get(text, spelt.get(same, same))
        if means in place:
            found[text] = place[means]
        elif (other := stand_in(same)) is not None:
            found[text] = place[label(other)]
        elif misfits is not None:
            found[text] = place[misfits]
        else:
            word = free_word([*place, *column.missing_tokens])
            ways = f"map other spellings of a value, such as spellings: {{TEXT: {label(column.domain[0])}}}, "
            ways += f"name an other for them, such as other: {word}"
            # It follows from the schema alone: whether a cell is NA must not show.
            ways += ", or list what is public" if _OF_R in place else f", list what is public, or {IF_OF_R}"
            raise DataError("has values outside the schema's list", field=name, remedy=ways)
    return found


def _meant(cell: object, word: Callable[[str], str | None], tokens: Collection[str]) -> str:
    text = cell_text(cell)
    found = text if text in tokens else word(text)
    if found is None:
        raise ValueError
    return found
