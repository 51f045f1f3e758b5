"""Text cells in a table's own spelling, rewritten as doublure reads them: ``31.01.2024`` and ``1.234,5``.

Each distinct text is rewritten by itself, by the schema's ``date_format``, ``decimal`` and ``thousands``. A text that
means missing stays as it is. One that is not of the declared form becomes a text that is no number and no date, even
where it would be one in doublure's own spelling: with a decimal comma, ``1.5`` is a misfit and not one and a half.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.csv_records import Unread
from doublure.data.tables.source import TableSource
from doublure.schema.columns import Column
from doublure.schema.scalars import Misfit
from doublure.schema.written import Written, pattern_of

MISFIT = "not as declared"
_NOTHING = {"NaN", "nan", "NA", "<NA>", "NaT"}


class RewrittenSource(TableSource):
    """A table whose text cells are rewritten on the way.

    Args:
        source: The table as it stands.
        written: How its text is to be read.
    """

    def __init__(self, source: TableSource, written: Written) -> None:
        super().__init__(source.name, source.columns)
        self._source = source
        self._written = written
        self._rules: dict[str, Callable[[str], str]] = {}
        for name in source.columns:
            column = written.column(name)
            if column is not None and (rule := rule_of(column, written)) is not None:
                self._rules[name] = rule

    @override
    def check_names(self, names: Any) -> None:
        self._source.check_names(names)

    @override
    def pieces(self) -> list[TableSource]:
        return [RewrittenSource(piece, self._written) for piece in self._source.pieces()]

    @override
    def unread(self) -> list[tuple[str, Unread]]:
        return self._source.unread()

    def __reduce__(self) -> tuple[type[RewrittenSource], tuple[TableSource, Written]]:
        return RewrittenSource, (self._source, self._written)

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        for raw in self._source.raw(columns, plain, misfit):
            yield {name: rewritten(raw[name], self._rules.get(name)) for name in columns}


def rule_of(column: Column, written: Written) -> Callable[[str], str] | None:
    """Return how a column's texts are rewritten; None where they stay."""
    tokens = {*column.missing_tokens, *_NOTHING}
    if column.clock is not None:
        return None if written.date_format is None else _dates(written.date_format, tokens)
    if column.bounded and (written.decimal or written.thousands):
        return _numbers(written.decimal or ".", written.thousands, tokens)
    return None


def _dates(date_format: str, tokens: Collection[str]) -> Callable[[str], str]:
    pattern = pattern_of(date_format)

    def rewritten(text: str) -> str:
        if (bare := text.strip()) in tokens:
            return text
        found = pattern.fullmatch(bare)
        if found is None:
            return MISFIT
        part = found.groupdict()
        day = f"{part['YYYY']}-{part['MM']:0>2}-{part['DD']:0>2}"
        return f"{day}T{part['hh']:0>2}:{part['mm']}:{part.get('ss') or '00'}" if part.get("hh") else day

    return rewritten


def _numbers(decimal: str, thousands: str | None, tokens: Collection[str]) -> Callable[[str], str]:
    point, digits = re.escape(decimal), r"[0-9]+"
    if thousands is not None:
        digits = rf"(?:[0-9]{{1,3}}(?:{re.escape(thousands)}[0-9]{{3}})+|[0-9]+)"
    form = re.compile(rf"[+-]?(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?")

    def rewritten(text: str) -> str:
        if (bare := text.strip()) in tokens:
            return text
        if form.fullmatch(bare) is None:
            return MISFIT
        return (bare if thousands is None else bare.replace(thousands, "")).replace(decimal, ".")

    return rewritten


def rewritten(raw: Raw, rule: Callable[[str], str] | None) -> Raw:
    """Return a column whose texts are rewritten by a rule; as it is where there is none."""
    if rule is None:
        return raw
    if isinstance(raw, pd.Series):
        cells = raw.astype(object) if isinstance(raw.dtype, (pd.CategoricalDtype, pd.StringDtype)) else raw
        if cells.dtype != object:
            return raw
        return cells.map(lambda cell: rule(cell) if isinstance(cell, str) else cell)
    import pyarrow as pa

    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if not (pa.types.is_string(raw.type) or pa.types.is_large_string(raw.type) or pa.types.is_string_view(raw.type)):
        return raw
    coded = raw.cast(pa.large_string()).dictionary_encode()
    texts = pa.array([rule(text) for text in coded.dictionary.to_pylist()], pa.large_string())
    return texts.take(coded.indices)
