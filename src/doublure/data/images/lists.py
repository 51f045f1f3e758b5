"""Images as a table of file names and labels beside the files: a CSV file, whose folder holds the pictures.

Names are taken from the table's folder on, or from the folder beside it that is called as the table is (``faces`` for
``faces.csv``). Before the ledger is charged, the names are compared with what files there are; labels and ids are read
with the pictures. With ``misfit: coerce``, a row that names no picture is left out, and a picture that two rows name is
read for each: a row is read by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from doublure.data.images.files import ENDINGS, KINDS, content_of
from doublure.data.images.pictures import Reader
from doublure.data.images.records import Pixels
from doublure.data.images.sources import LABEL_NAMES, ImageSource, attribute_labels
from doublure.data.splits import labels_among, named, only
from doublure.data.tables.containers.registry import CSV, find_container
from doublure.data.tables.csv_files import refused
from doublure.data.tables.opening import open_table
from doublure.errors import DataError, Fault, FaultyRecords
from doublure.schema.images import ImageSchema, LabelColumn

FILE_NAMES = ("file", "filename", "path", "image", "img", "x")
_ROWS = 256


def is_list(path: Path) -> bool:
    """Whether a file is a table of names by its ending."""
    return find_container(path) is CSV


def lists_pictures(path: Path) -> bool:
    """Whether a table stands beside pictures and has a column for their names; no record is read."""
    try:
        if not is_list(path) or not named(open_table(path).columns, FILE_NAMES, None, before=False):
            return False
        return any(file.suffix.lower() in ENDINGS for shape in ("*", "*/*") for file in path.parent.glob(shape))
    except (DataError, OSError):  # the fault is reported on opening
        return False


class ListSource(ImageSource):
    """A CSV file with a column of file names, and of labels, ids and attributes where there are any.

    Attributes:
        table: The file.
    """

    columned: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        self.table = open_table(path)
        self._columns = self.table.columns
        candidates = named(self._columns, FILE_NAMES, None, before=False)
        plain = candidates.get("") or [name for each in candidates.values() for name in each]
        if not plain:
            remedy = "name the column of file names file, filename, path or image"
            raise DataError("has no column of file names", field=path.name, remedy=remedy)
        self._named_in = only(plain, path.name)
        self._names = [str(name) for name in self._column_of(self._named_in)]
        self._labels = self._labels_among_columns()
        self._asked: LabelColumn | None = None
        self._files, self._faults = _found(path, self._names)
        super().__init__(path.name, len(self._names), labelled=bool(self._labels))

    def _labels_among_columns(self) -> Sequence[str]:
        found = named(self._columns, LABEL_NAMES, None, before=False)
        return found.get("") or [name for each in found.values() for name in each]

    @property
    @override
    def attributes(self) -> bool:
        return True

    @property
    @override
    def beside(self) -> Sequence[str]:
        return [name for name in self._columns if name != self._named_in and name not in self._labels]

    @override
    def has_labels(self, schema: ImageSchema) -> bool:
        return self.labelled or schema.label_of_attributes is not None

    @override
    def check_more(self, schema: ImageSchema) -> None:
        """Compare names with the schema.

        Raises:
            FaultyRecords: A row cannot be read, or its picture is not there, is none by its ending, lies elsewhere, or
                is named twice, and the schema refuses that.
        """
        if schema.misfit == "refuse" and (unread := self.table.unread()):
            raise refused(self.name, unread)
        if self._faults and schema.misfit == "refuse":
            raise FaultyRecords(
                f"names files that are not there, are no {KINDS}, lie elsewhere or are named twice: "
                f"{len(self._faults)}",
                field=self.name,
                remedy="name each picture once, from the table's own folder on",
                faults=self._faults,
            )
        self._asked = schema.label_of_attributes
        if schema.label is not None:
            self.table.check_names(schema.label.attributes or [labels_among(self._labels, self.name)])
        self.table.check_names(schema.named_beside)

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        for first in range(0, self.count, _ROWS):
            files = self._files[first : first + _ROWS]
            contents = (None if file is None else content_of(file) for file in files)
            yield np.stack([reader.decode(content, first + row + 1) for row, content in enumerate(contents)])

    @override
    def file_of(self, row: int) -> str:
        return self._names[row]

    @override
    def labels(self, known: Collection[str] = ()) -> Any:
        if self._asked is not None:
            names = self._asked.attributes
            return attribute_labels(zip(*(self._column_of(name) for name in names), strict=True), self._asked)
        given = self._column_of(labels_among(self._labels, self.name))
        given[given == ""] = None
        return given

    @override
    def column(self, name: str) -> Any:
        return self._column_of(name)

    def _column_of(self, name: str) -> np.ndarray[Any, Any]:
        parts = [chunk[name].astype(object) for chunk in self.table.chunks([name])]
        column = pd.concat(parts) if parts else pd.Series(dtype=object)
        return column.to_numpy(dtype=object, copy=True)


def _found(table: Path, names: Sequence[str]) -> tuple[list[Path | None], list[Fault]]:
    """Return the files that a table names, None where a row names no picture, and which rows break a rule."""
    places = (table.parent, table.parent / table.name.partition(".")[0])
    faults, files, seen = list[Fault](), list[Path | None](), set[Path]()
    for number, name in enumerate(names, 1):
        inside = PurePath(name)
        file, rule = None, ""
        if inside.is_absolute() or ".." in inside.parts:
            rule = "leads out of the table's folder"
        elif inside.suffix.lower() not in ENDINGS:
            rule = "is no picture by its ending"
        else:
            file = next((place / inside for place in places if _is_file(place / inside)), None)
            rule = "is not there" if file is None else "is named a second time" if file in seen else ""
        if rule:
            faults.append(Fault(number, name, rule))
        if file is not None:
            seen.add(file)
        files.append(file)
    return files, faults


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file system takes
        return False
