"""Tables in sheets of Excel and OpenDocument workbooks.

A sheet's first row is its header, or the one below ``skip_rows``. Each cell has a type of its own, and is read by
itself; a formula is its last result, and an error of one an empty cell. An empty row is no record. A cell beyond the
header's last name makes its record one that cannot be read.

The library reads a sheet whole, and keeps a place for every cell between its first and its last one: a workbook of a
few kilobytes may ask for more memory than there is, upon which the library ends the process. So a process of its own
reads it first, with half of this machine's memory.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.data.splits import several, split_off
from doublure.data.tables.containers.record_files import ObjectRow, ObjectRows, clock_text
from doublure.data.tables.header import column_letters, header_names
from doublure.errors import DataError, printable
from doublure.schema.scalars import EXACT

if TYPE_CHECKING:
    from doublure.schema.written import Written

_TRIES = """
import os, resource, sys
most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.path[:] = sys.argv[3:]
from python_calamine import CalamineWorkbook
book = CalamineWorkbook.from_path(sys.argv[1])
book.get_sheet_by_name(sys.argv[2] or book.sheet_names[0])
"""
_FIRST = 1_000
"""Records that are looked at for columns without a name."""
_SHARE = 0.95
"""Of them: no single record makes a column."""


class SheetSource(ObjectRows):
    """A sheet whose header has been looked at.

    Args:
        path: The workbook, with ``#sheet`` behind it where it holds several.
        written: How many rows stand above the header, and how columns are renamed.

    Raises:
        DataError: The file is no workbook, has no such sheet, or several of which none is named.
    """

    read_whole = True

    def __init__(self, path: Path, written: Written | None = None) -> None:
        self._path, sheet = split_off(path)
        _refuse_vast(self._path, sheet)
        book = self._workbook()
        names = list(book.sheet_names)
        if sheet is None and len(names) > 1:
            raise several(self._path.name, names, "rows, a sheet each")
        if sheet is not None and sheet not in names:
            remedy = f"name one of {', '.join(map(printable, names[:5]))}"
            raise DataError("has no such sheet", field=path.name, remedy=remedy)
        self._sheet, self._skipped = sheet or names[0], 0 if written is None else written.skip_rows
        header = next((cells for _, cells in self._cells()), [])
        while header and header[-1] is None:  # how far a row reaches depends on the widest record
            header.pop()
        named = () if written is None or written.rename is None else written.rename.get("", ())
        header += [None] * (len(named) - header.count(None))
        self._names = header_names(header, path.name, written)
        super().__init__(path.name, self._names)
        last, after = (column_letters(len(self._names) + more) for more in (0, 1))
        self._beyond = f"cells beyond column {last}, the last one of the header"
        remedy = (
            f"write a name into {after}{self._skipped + 1}, or say rename: {{'': [NAME, …]}} in the schema, with a "
        )
        self.remedies = {self._beyond: remedy + "name for each column without one; or take them out"}
        self.first_row = self._skipped + 2  # below the header

    @override
    def rows(self, columns: Sequence[str]) -> Iterator[ObjectRow]:
        places, fields = [self._names.index(name) for name in columns], len(self._names)
        records = self._cells()
        next(records, None)
        for line, cells in records:
            beyond = any(cell is not None for cell in cells[fields:])
            if beyond or any(cell is not None for cell in cells):
                held = [*cells, *([None] * (fields - len(cells)))]
                yield ObjectRow(line, [held[place] for place in places], self._beyond if beyond else "")

    @override
    def named_by_none(self) -> list[int]:
        fields, counts, records = len(self._names), Counter[int](), 0
        for _, cells in islice(self._cells(), 1, _FIRST + 1):
            if any(cell is not None for cell in cells):
                counts.update(place for place in range(fields, len(cells)) if cells[place] is not None)
                records += 1
        beyond = [place for place, count in counts.items() if count >= _SHARE * records]
        return [*super().named_by_none(), *range(fields, max(beyond) + 1)] if beyond else super().named_by_none()

    def _cells(self) -> Iterator[tuple[int, list[object]]]:
        """Yield the header and the rows below it, each with its number, from 1."""
        sheet = self._guarded(lambda: self._workbook().get_sheet_by_name(self._sheet))
        left: list[object] = [None] * (0 if sheet.start is None else sheet.start[1])  # the library begins at a cell
        rows = sheet.iter_rows()
        number = 0
        while (row := self._guarded(lambda: next(rows, None))) is not None:
            number += 1
            if number > self._skipped:
                yield number, [*left, *map(_plain, row)]

    def _workbook(self) -> Any:
        from python_calamine import CalamineWorkbook

        return self._guarded(lambda: CalamineWorkbook.from_path(str(self._path)))

    def _guarded(self, does: Any) -> Any:
        try:
            return does()
        except Exception:  # the library's own errors; a message may show a cell
            remedy = "check that the file is whole and not encrypted"
            raise DataError("cannot be read as a workbook", field=self._path.name, remedy=remedy) from None


def _refuse_vast(path: Path, sheet: str | None) -> None:
    """Refuse a workbook of which reading ends a process, such as for want of memory; one that fails is told later.

    Raises:
        DataError: It is one.
    """
    if os.name != "posix":  # no limit can be set
        return
    words = [sys.executable, "-I", "-S", "-c", _TRIES, str(path), sheet or "", *filter(None, sys.path)]
    told = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if told.returncode < 0:
        remedy = "remove the cells far from the others, or export it as CSV"
        raise DataError("takes more than half of this machine's memory to read", field=path.name, remedy=remedy)


def _plain(cell: object) -> object:
    """Return a cell as it is read; None for an empty one.

    A moment is kept as days in float64, whose neighbours lie about a millionth of a second apart in our time: it is
    rounded to a thousandth. A whole number is kept as one in float64, and comes as a whole one. A span below a day may
    be shown, and come, as a time of day: both become one text.
    """
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= EXACT:
        return int(cell)
    if isinstance(cell, datetime.datetime):
        beside = round(cell.microsecond, -3) - cell.microsecond
        return cell + datetime.timedelta(microseconds=beside)
    if isinstance(cell, datetime.timedelta):
        return clock_text(cell.total_seconds())
    if isinstance(cell, datetime.time):
        return clock_text(cell.hour * 3600 + cell.minute * 60 + cell.second + cell.microsecond / 1e6)
    return None if cell == "" else cell
