"""Containers whose records come one by one, as Python's objects: each cell keeps the type that it alone has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.tables.arrow_cells import Raw
from doublure.data.tables.csv_files import refused
from doublure.data.tables.csv_records import UNREAD, Unread
from doublure.data.tables.source import FileSource
from doublure.schema.scalars import Misfit

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

    remedies: ClassVar[Mapping[str, str]] = {}
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
