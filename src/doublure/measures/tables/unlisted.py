"""Real values outside a synthesizer's list, which a declared or bought list sends to ``other`` or to a chapter.

Read by that list, real rows would have no such value either, and nothing would seem lost. So real rows keep their own
values here, and the lists of the comparison are opened for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from doublure.intervals import Result
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column, label
from doublure.schema.columns.number_cells import is_number


class UnlistedValues(Result):
    """One column's real values outside its list.

    Attributes:
        column: The column.
        share: The share of real rows with one.
        values: How many values these are.
    """

    column: str
    share: float
    values: int


def outside(column: Column, cells: pd.Series) -> list[str]:
    """Return the values of canonical cells that the column's list does not hold in any of its spellings, sorted."""
    from decimal import Decimal

    if not isinstance(cells.dtype, pd.CategoricalDtype) or column.opened(()) is None:
        return []
    known = {*map(label, column.domain), *column.missing_tokens, *(column.fact("spellings") or {}), ""}
    found = {str(value) for value in cells.cat.remove_unused_categories().cat.categories} - known
    return sorted(text for text in found if not (is_number(text) and label(Decimal(text)) in known))


def with_unlisted(cells: pd.Series, as_written: pd.Series, column: Column) -> pd.Series:
    """Return canonical cells in which values outside the list stand as they are written.

    Args:
        cells: ``(N,)`` as the column reads them.
        as_written: The same cells as the opened column reads them.
        column: The column.
    """
    if not (texts := outside(column, as_written)):
        return cells
    kept = cells.cat.add_categories([text for text in texts if text not in set(cells.cat.categories)])
    return kept.where(~as_written.isin(texts), as_written.astype(kept.dtype))


def open_lists(schema: ResolvedSchema, *real: pd.DataFrame | None) -> tuple[ResolvedSchema, tuple[UnlistedValues, ...]]:
    """Return a schema whose lists hold all values of real rows, and what they did not hold.

    Args:
        schema: Every fact known.
        real: Real rows, the fitted ones first; their unlisted values stand as they are written.
    """
    columns, found = dict(schema.columns), []
    frames: Sequence[pd.DataFrame] = [frame for frame in real if frame is not None]
    for name, column in schema.columns.items():
        cells = [frame[name] for frame in frames if name in frame]
        texts = sorted({text for each in cells for text in outside(column, each)})
        if texts and (opened := column.opened(texts)) is not None:
            columns[name] = opened
            found.append(UnlistedValues(column=name, share=float(cells[0].isin(texts).mean()), values=len(texts)))
    if not found:
        return schema, ()
    return schema.model_copy(update={"columns": columns}), tuple(sorted(found, key=lambda each: -each.share))
