"""Text cells in a table's own spelling, rewritten as doublure reads them: each distinct text once, by its column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.csv_records import Unread
from doublure.data.tables.source import TableSource
from doublure.schema.columns import Column
from doublure.schema.columns.spelling import CellSpelling
from doublure.schema.distinct_cells import is_text
from doublure.schema.scalars import Misfit, label
from doublure.schema.written import Written


class RewrittenSource(TableSource):
    """A table whose text cells are rewritten on the way.

    Args:
        source: The table as it stands.
        written: How its text is to be read.
    """

    def __init__(self, source: TableSource, written: Written) -> None:
        super().__init__(source.name, source.columns)
        self.unnamed, self.read_whole = source.unnamed, source.read_whole
        self.first_row = source.first_row
        self._source = source
        self.dtypes, self.text_form, self.labelled = source.dtypes, source.text_form, source.labelled
        self._written = written
        self._rules: dict[str, CellSpelling] = {}
        for name in source.columns:
            column = written.column(name)
            if column is not None and (rule := rule_of(column, written)) is not None:
                self._rules[name] = rule

    @override
    def check_names(self, names: Any) -> None:
        self._source.check_names(names)

    @override
    def named_by_none(self) -> list[int]:
        return self._source.named_by_none()

    @override
    def pieces(self) -> list[TableSource]:
        return [RewrittenSource(piece, self._written) for piece in self._source.pieces()]

    @override
    def unread(self) -> list[tuple[str, Unread]]:
        return self._source.unread()

    @override
    def both(self, columns: Sequence[str]) -> Iterator[tuple[Mapping[str, Raw], Mapping[str, Raw]]]:
        for raw, _ in self._source.both(columns):
            yield raw, {name: rewritten(raw[name], self._rules.get(name)) for name in columns}

    def __reduce__(self) -> tuple[type[RewrittenSource], tuple[TableSource, Written]]:
        return RewrittenSource, (self._source, self._written)

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        for raw in self._source.raw(columns, plain, misfit):
            yield {name: rewritten(raw[name], self._rules.get(name)) for name in columns}


def rule_of(column: Column, written: Written) -> CellSpelling | None:
    """Return how a column's texts are rewritten; None where they stay."""
    return column.spelling(written.marks)


def rewritten(raw: Raw, rule: CellSpelling | None) -> Raw:
    """Return a column whose texts are rewritten by a rule; as it is where there is none."""
    if rule is None:
        return raw
    if isinstance(raw, pd.Series):
        cells = raw.astype(object) if isinstance(raw.dtype, (pd.CategoricalDtype, pd.StringDtype)) else raw
        numbers = rule.digits is not None and pd.api.types.is_numeric_dtype(raw.dtype) and raw.dtype.kind != "b"
        return cells.astype(object).map(partial(_cell, rule)) if cells.dtype == object or numbers else raw
    import pyarrow as pa

    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    numbers = rule.digits is not None and (pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type))
    if not (is_text(raw.type) or numbers):
        return raw
    coded = (raw if numbers else raw.cast(pa.large_string())).dictionary_encode()
    found = [_cell(rule, cell) for cell in coded.dictionary.to_pylist()]
    texts = pa.array([cell if isinstance(cell, str) else None for cell in found], pa.large_string())  # NaN is none
    return texts.take(coded.indices)


def _cell(rule: CellSpelling, cell: Any) -> Any:
    """Return one cell rewritten: a text, and where the rule is of whole numbers, one of them; another as it is."""
    if isinstance(cell, str):
        return rule(cell)
    whole = rule.digits is not None and isinstance(cell, Real) and not isinstance(cell, (bool, np.bool_))
    return rule.of_number(label(cell)) if whole and cell == cell else cell
