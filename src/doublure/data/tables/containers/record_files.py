"""Files of records with names in their head, by columns or as Python's objects: what their containers share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.csv_files import refused
from doublure.data.tables.csv_records import UNREAD, Unread
from doublure.data.tables.header import header_names
from doublure.data.tables.source import FileSource
from doublure.schema.scalars import Misfit

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


def clock_text(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds, to the thousandth.

    Example:
        >>> clock_text(27_015.0), clock_text(-129_600.5)
        ('7:30:15', '-36:00:00.500')
    """
    minutes, rest = divmod(round(abs(seconds) * 1000), 60_000)
    hours, minute = divmod(minutes, 60)
    second, thousandths = divmod(rest, 1000)
    fraction = f".{thousandths:03}" if thousandths else ""
    return f"{'-' if seconds < 0 else ''}{hours}:{minute:02}:{second:02}{fraction}"


ROWS_AT_ONCE = 50_000
"""Records that are held as objects at once: a few hundred bytes a cell of them."""


class ObjectRow(NamedTuple):
    """A record. Private.

    Attributes:
        line: Where it begins in its file, from 1.
        cells: Of the columns that were asked for.
        rule: Why it cannot be read; empty where it can.
    """

    line: int
    cells: Sequence[object]
    rule: str = ""


class ObjectRows(FileSource):
    """A file whose header has been looked at, and whose records come as objects."""

    remedies: Mapping[str, str] = MappingProxyType({})
    """Rule of a record that cannot be read -> remedy."""

    @abstractmethod
    def rows(self, columns: Sequence[str]) -> Iterator[ObjectRow]:
        """Yield the records, with the cells of some columns.

        Raises:
            DataError: The file is damaged.
        """

    @override
    def unread(self) -> list[tuple[str, Unread]]:
        found = enumerate(self.rows([]), 1)
        return [(self.name, Unread(place, row.line, row.rule)) for place, row in found if row.rule]

    @override
    def raw(
        self, columns: Sequence[str], plain: Collection[str] = (), misfit: Misfit = "coerce"
    ) -> Iterator[Mapping[str, Raw]]:
        rows, lost = self.rows(columns), [UNREAD] * len(columns)
        while some := list(islice(rows, ROWS_AT_ONCE)):
            if misfit == "refuse" and any(row.rule for row in some):
                raise refused(self.name, self.unread(), remedies=self.remedies)
            cells = np.empty((len(some), len(columns)), dtype=object)
            for place, row in enumerate(some):
                for number, cell in enumerate(lost if row.rule else row.cells):
                    cells[place, number] = cell  # one by one: a list would be spread
            yield {name: pd.Series(cells[:, number], dtype=object) for number, name in enumerate(columns)}
