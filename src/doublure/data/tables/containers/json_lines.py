"""Tables as lines of JSON: an object a record, its keys the columns.

There is no header. The schema names the columns: a key that an object lacks is a missing cell, and one that the schema
lacks is not read. So no record says how another is read. A draft and a check look at the first records for keys, and
take those that more than one in twenty of them share.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.data.tables import csv_files, csv_records
from doublure.data.tables.containers.record_files import ObjectRow, ObjectRows
from doublure.data.tables.csv_records import MISENCODED, TOO_LONG, Dialect
from doublure.errors import DataError, counted, printable

if TYPE_CHECKING:
    from doublure.schema import Schema
    from doublure.schema.written import Written
    from doublure.support.objects import Place

NO_OBJECT = "no JSON object"
_FIRST = 1_000
_SOME = 20
"""One in so many records has a key that is a column's; a form of cells is shared by all but so many, too."""


class JsonLinesSource(ObjectRows):
    """A file whose first keys have been looked at.

    Args:
        path: The file, plain or compressed.
        written: How keys are renamed.

    Raises:
        DataError: The file is damaged, or a key is given two names.
    """

    remedies: Mapping[str, str] = {NO_OBJECT: "write one object a line", MISENCODED: "export it as UTF-8"}

    def __init__(self, path: Place, written: Written | None = None) -> None:
        self._path = path
        self.name = path.name
        counts, records = Counter[str](), 0
        for _, found in islice(self._objects(), _FIRST):
            if not isinstance(found, str):
                counts.update(found.keys())
                records += 1
        keys = [key for key, count in counts.items() if count * _SOME > records]
        self._keys = _keys(written)
        new = {key: name for name, key in self._keys.items()}
        super().__init__(path.name, [new.get(key, key) for key in keys])
        self._seen = frozenset(new.get(key, key) for key in counts)

    @override
    def check(self, schema: Schema) -> None:
        if schema.misfit == "refuse":  # with coerce, no record refuses a fit: a key may stand in any of them
            super().check_names(name for name in schema.columns if name not in self._seen)

    @override
    def check_names(self, names: Iterable[str]) -> None:
        return

    @override
    def rows(self, columns: Sequence[str]) -> Iterator[ObjectRow]:
        keys = [self._keys.get(name, name) for name in columns]
        for line, found in self._objects():
            if isinstance(found, str):
                yield ObjectRow(line, (), found)
            else:
                yield ObjectRow(line, [found.get(key) for key in keys])

    def _objects(self) -> Iterator[tuple[int, dict[str, Any] | str]]:
        """Yield each record's line, from 1, and its object, or why it cannot be read."""
        with csv_files.guarded(self._path, "JSON lines"), csv_files.opened(self._path) as file:
            line = 0
            for block in csv_records.blocks(file, Dialect(delimiter=",", fields=1)):
                if block is None:
                    line += 1
                    yield line, TOO_LONG
                    continue
                for record in block.removesuffix(b"\n").split(b"\n"):
                    line += 1
                    if record.strip():
                        yield line, _object(record)


def _keys(written: Written | None) -> dict[str, str]:
    """Return the key of each renamed column.

    Raises:
        DataError: A key has several new names.
    """
    rename = {} if written is None or written.rename is None else written.rename
    for key, names in rename.items():
        if len(names) > 1:
            raise DataError(
                f"has {counted(len(names), 'new name')}", field=f"rename.{printable(key)}", remedy="give a key one name"
            )
    return {names[0]: key for key, names in rename.items()}


def _object(record: bytes) -> dict[str, Any] | str:
    """Return one line's object, with its keys without spaces around; or why there is none."""
    try:
        found = json.loads(record.decode("utf-8-sig"))  # a mark at the head of a file is one of its first record
    except UnicodeDecodeError:
        return MISENCODED
    except (ValueError, RecursionError):
        return NO_OBJECT
    return {key.strip(): cell for key, cell in found.items()} if isinstance(found, dict) else NO_OBJECT
