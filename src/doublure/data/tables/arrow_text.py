"""Text of Arrow in which a cell has bytes that are no UTF-8: that cell is a misfit, and no other is.

Arrow takes such bytes unseen, from a foreign library or a file, and refuses the whole column when it is asked for
texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from doublure.data.tables.csv_records import UNREAD

if TYPE_CHECKING:
    import pyarrow as pa

    Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's texts."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def readable(raw: Column) -> Column:
    """Return a column whose texts all are texts; one that is none reads as ``UNREAD``."""
    import pyarrow as pa

    if isinstance(raw, pa.ChunkedArray):
        return pa.chunked_array([readable(chunk) for chunk in raw.chunks], raw.type)
    coded = pa.types.is_dictionary(raw.type)
    texts = raw.dictionary if coded else raw
    if not is_text(texts.type):
        return raw
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        found = [_text(cell) for cell in texts.cast(pa.large_binary()).to_pylist()]
        texts = pa.array(found, pa.large_string()).cast(texts.type)
        return pa.DictionaryArray.from_arrays(raw.indices, texts) if coded else texts
    return raw


def _text(cell: bytes | None) -> str | None:
    try:
        return None if cell is None else cell.decode()
    except UnicodeDecodeError:
        return UNREAD
