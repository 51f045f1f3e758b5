"""A file of records, with names in its head: what its containers share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from doublure.data.tables.header import header_names
from doublure.data.tables.source import FileSource

if TYPE_CHECKING:
    from doublure.schema.written import Written
    from doublure.support.objects import Place


class RecordFile(FileSource):
    """A file whose head has been looked at.

    Args:
        path: The file.
        stored: The names of its columns, as it has them.
        written: How columns are renamed.
    """

    def __init__(self, path: Place, stored: Sequence[str], written: Written | None) -> None:
        self._path: Place = path
        self._names = header_names(list(stored), path.name, written)
        super().__init__(path.name, self._names)

    def _places(self, columns: Sequence[str]) -> list[int]:
        """Return the places of columns in the file."""
        return [self._names.index(name) for name in columns]
