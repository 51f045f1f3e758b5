"""Images as pictures: a folder of files by class, or a Parquet file that holds their bytes."""

from __future__ import annotations

import os
import unicodedata
import warnings
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from doublure.data.images.pictures import LARGEST_FILE, Reader
from doublure.data.images.records import Pixels
from doublure.data.images.sources import LABEL_NAMES, PIXEL_NAMES, ImageSource, attribute_labels, image_schema
from doublure.data.splits import labels_among, named, only
from doublure.data.tables.arrow_text import coded_in, listed, readable
from doublure.data.tables.csv_files import unreadable
from doublure.errors import DataError, DataWarning, Fault, FaultyRecords, printable
from doublure.schema.columns import label
from doublure.schema.images import ImageSchema, LabelColumn
from doublure.schema.schema import Schema

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff")
KINDS = "PNG, JPEG, WebP, BMP or TIFF"
_IGNORED = frozenset({"thumbs.db", "desktop.ini"})
_TEXTS = frozenset({".txt", ".md", ".json", ".xml", ".html", ".pdf", ".log", ".yml", ".yaml"})
"""Endings of files about pictures. Tables of names are none of them: they may hold the labels."""
_TABLES = (".csv", ".tsv")
_ROWS = 256
_BYTES = "bytes"


# -- folders ---------------------------------------------------------------------------------------------------------


class FolderSource(ImageSource):
    """A folder with one folder of pictures a class, or with the pictures themselves where there are no labels.

    Every file is a record, whatever it holds and however it is called, but for hidden files, those of ``_IGNORED`` and
    texts such as ``notes.txt``, which a warning counts: which files are records is told by each one's own name. With
    ``misfit: refuse`` files that are no pictures by their endings, and folders in places where none is meant, are
    refused before any is read. With ``coerce`` each file is read by itself: its label is the folder right below this
    one, if it lies in one.

    Records are taken in the order of their classes' and their own names.
    """

    to_label = "put them into a folder for each class"

    def __init__(self, path: Path) -> None:
        name = path.name or str(path)  # of the folder one stands in
        try:
            inside = sorted(entry for entry in path.iterdir() if not _hidden(entry))
            self._classes = [entry for entry in inside if entry.is_dir()]
            groups, texts = _apart([_files_in(folder) for folder in self._classes])
        except OSError:
            raise DataError("cannot be read", field=path, remedy="check the folder's permissions") from None
        (self._loose,), beside = _apart([[entry for entry in inside if not entry.is_dir()]])
        self._texts = texts + beside
        self._files = [*self._loose, *(file for group in groups for file in group)]
        self._sizes = [len(group) for group in groups]
        self._path = path
        super().__init__(name, len(self._files), labelled=bool(self._classes))

    @override
    def check_form(self) -> None:
        """Refuse a folder that is none of pictures.

        Raises:
            DataError: There are files beside the folders of the classes, or no pictures.
            FaultyRecords: Some files are no pictures by their endings, or lie in a folder within a class's.
        """
        tables = [file for file in self._loose if file.suffix.lower() in _TABLES]
        if len(tables) == 1:
            given = f", or give {printable(tables[0].name)}, if it names the pictures and their labels"
        else:  # names of many files may be those of people
            given = ", or give the table that names the pictures and their labels" if tables else ""
        if self._classes and self._loose:
            remedy = f"move them into the folders of their classes{given}"
            raise DataError("holds files beside the folders of its classes", field=self.name, remedy=remedy)
        strange = [file for file in self._files if not self._is_picture(file)]
        if strange:
            raise FaultyRecords(
                f"holds files or folders that are no {KINDS} by their endings: {len(strange)}",
                field=self.name,
                remedy=f"move them elsewhere{given}: each picture must be read, or none",
                faults=[
                    Fault(None, str(file.relative_to(self._path)), "is no picture by its ending") for file in strange
                ],
            )
        if not self._files:
            remedy = f"give a folder of {KINDS} files, one folder a class"
            raise DataError("holds no pictures", field=self.name, remedy=remedy)

    def _is_picture(self, file: Path) -> bool:
        in_place = len(file.relative_to(self._path).parts) <= 1 + bool(self._classes)
        return in_place and file.is_file() and file.suffix.lower() in ENDINGS

    @override
    def has_labels(self, schema: ImageSchema) -> bool:
        return self.labelled or schema.misfit == "coerce"

    @override
    def check(self, schema: Schema) -> None:
        if image_schema(schema).misfit == "refuse":
            self.check_form()
        if self._texts:
            said = "1 file is" if self._texts == 1 else f"{self._texts} files are"
            skipped = f"{printable(self.name)}: {said} no picture but a text by its ending, and skipped"
            warnings.warn(skipped, DataWarning, stacklevel=2)
        super().check(schema)

    @override
    def check_more(self, schema: ImageSchema) -> None:
        if schema.misfit == "coerce":
            return
        if schema.label is None:
            if self._classes:
                remedy = "describe the classes under label, or give a folder of pictures alone"
                raise DataError("has a folder a class, and the schema has no label", field=self.name, remedy=remedy)
            return
        known = [label(value) for value in schema.label.domain]
        unknown = [folder.name for folder in self._classes if class_of(folder.name, known) not in known]
        if known and unknown and schema.label.other is None:
            raise FaultyRecords(
                f"has folders that are no class of the schema: {len(unknown)}",
                field=self.name,
                remedy="add them to label.values, name an other, or give the right folder",
                faults=[Fault(None, folder, "is a folder that is no class of the schema") for folder in unknown],
            )

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        for first in range(0, self.count, _ROWS):
            files = self._files[first : first + _ROWS]
            yield np.stack([reader.decode(content_of(file), first + row + 1) for row, file in enumerate(files)])

    @override
    def file_of(self, row: int) -> str:
        return str(self._files[row].relative_to(self._path))

    @override
    def labels(self, known: Collection[str] = ()) -> Any:
        classes = [class_of(folder.name, known) for folder in self._classes]
        return np.repeat(np.array([None, *classes], dtype=object), [len(self._loose), *self._sizes])


def _files_in(folder: Path) -> list[Path]:
    """Return what lies in a class's folder and in folders within, hidden files and folders left out.

    Raises:
        OSError: One cannot be read.
    """

    def stop(error: OSError) -> None:
        raise error

    found = list[Path]()
    for place, folders, files in os.walk(folder, onerror=stop):
        folders[:] = [name for name in folders if not _hidden(Path(name))]
        found += [Path(place, name) for name in files if not _hidden(Path(name))]
    return sorted(found)


def _apart(groups: list[list[Path]]) -> tuple[list[list[Path]], int]:
    """Return groups of files without texts, and the number of texts."""
    kept = [[file for file in group if file.suffix.lower() not in _TEXTS] for group in groups]
    return kept, sum(map(len, groups)) - sum(map(len, kept))


def _hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name.lower() in _IGNORED


def content_of(path: Path) -> bytes | None:
    """Return a file's bytes, one more than a picture may have at most; None if it cannot be read, or is none."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return None
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError:
        return None


def folder_name(value: object) -> str:
    """Return the name of a class's folder: its label, with what no file system would take escaped.

    Example:
        >>> folder_name(3), folder_name("cat"), folder_name("a/b")
        ('3', 'cat', 'a%2Fb')
    """
    return _quoted(label(value))


def _quoted(text: str) -> str:
    """Return a text with what no file system would take escaped."""
    from urllib.parse import quote

    name = quote(text, safe=" !#$&'()+,;=@[]^_`{}~")
    return name if not name.startswith(".") and not name.endswith((".", " ")) else name.replace(".", "%2E")


def class_of(folder: str, known: Collection[str] = ()) -> str:
    """Return the class of a folder that was named by hand or by :func:`folder_name`.

    Args:
        folder: Its name. Letters with marks may be composed or not: file systems differ.
        known: Classes; one that is spelt as the folder is goes before one that the folder's name may be the escape of.

    Example:
        >>> class_of("a%2Fb"), class_of("50%25"), class_of("50%25", ["50%25"]), class_of("100%41")
        ('a/b', '50%', '50%25', '100%41')
    """
    from urllib.parse import unquote

    plain = unicodedata.normalize("NFC", folder)
    meant = unquote(plain)
    if _quoted(meant) != plain:
        meant = plain
    spelt = {unicodedata.normalize("NFC", name): name for name in known}
    return spelt.get(plain, spelt.get(meant, meant))


# -- Parquet ---------------------------------------------------------------------------------------------------------


class ParquetSource(ImageSource):
    """A Parquet file with a column of pictures' bytes, plain or as ``{bytes, path}``, and a column of labels."""

    columned: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        try:
            with pq.ParquetFile(path) as file:
                schema, rows = file.schema_arrow, int(file.metadata.num_rows)
        except (pa.ArrowException, OSError, ValueError):
            raise unreadable(self._path, "Parquet") from None
        self._columns, self._coded = [str(name) for name in schema.names], coded_in(schema)
        self._pixels_name = self._find(schema)
        self._labels = _candidates(self._columns, LABEL_NAMES)
        self._asked: LabelColumn | None = None
        super().__init__(path.name, rows, labelled=bool(self._labels))

    @property
    @override
    def beside(self) -> Sequence[str]:
        return [name for name in self._columns if name != self._pixels_name and name not in self._labels]

    def _find(self, schema: Any) -> str:
        held = [str(field.name) for field in schema if picture_bytes(field.type)]
        found = _candidates(held, PIXEL_NAMES)
        if not found and len(held) != 1:
            remedy = "name one column image; it must hold the bytes of picture files"
            raise DataError("holds no column of pictures, or several", field=self._path.name, remedy=remedy)
        return only(found or held, self._path.name)

    @override
    def check_more(self, schema: ImageSchema) -> None:
        self._asked = schema.label_of_attributes
        if schema.label is not None and self._asked is None:
            labels_among(self._labels, self.name)
        for name in (*(self._asked.attributes if self._asked else ()), *schema.named_beside):
            if name not in self._columns:
                what = f"is not a column of {printable(self.name)}"
                raise DataError(what, field=name, remedy="fix the schema or the file")

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        number = 0
        for batch in self._batches([self._pixels_name], _ROWS):
            rows = []
            for content in _bytes_in(batch.column(0)).to_pylist():
                number += 1
                rows.append(reader.decode(content, number))
            if rows:
                yield np.stack(rows)

    @property
    @override
    def attributes(self) -> bool:
        return True

    @override
    def has_labels(self, schema: ImageSchema) -> bool:
        return self.labelled or schema.label_of_attributes is not None

    @override
    def labels(self, known: Collection[str] = ()) -> Any:
        if self._asked is not None:
            names = self._asked.attributes
            return attribute_labels(zip(*(self._column_of(name) for name in names), strict=True), self._asked)
        return self._column_of(labels_among(self._labels, self.name))

    @override
    def column(self, name: str) -> Any:
        return self._column_of(name)

    def _column_of(self, name: str) -> Any:
        values = [value for batch in self._batches([name], 65_536) for value in listed(readable(batch.column(0)))]
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column

    def _batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self._path, read_dictionary=self._coded) as file:
                yield from file.iter_batches(batch_size=rows, columns=columns)
        except (pa.ArrowException, OSError, ValueError):
            raise unreadable(self._path, "Parquet") from None


def picture_bytes(kind: Any) -> bool:
    """Whether an Arrow type can hold pictures: bytes, or a struct with a field of bytes; each once, or as they come."""
    import pyarrow as pa

    def plain(one: Any) -> bool:
        return bool(pa.types.is_binary(one) or pa.types.is_large_binary(one))

    if pa.types.is_dictionary(kind):
        return picture_bytes(kind.value_type)
    if pa.types.is_struct(kind):
        return kind.get_field_index(_BYTES) >= 0 and plain(kind.field(_BYTES).type)
    return plain(kind)


def _bytes_in(pictures: Any) -> Any:
    """Return the pictures' bytes of a column, whatever stands beside them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(pictures.type):
        pictures = pictures.dictionary_decode()
    return pc.struct_field(pictures, [_BYTES]) if pa.types.is_struct(pictures.type) else pictures


def _candidates(columns: Sequence[str], known: tuple[str, ...]) -> Sequence[str]:
    """Return the columns of the known names, else those whose names begin so."""
    found = named(columns, known, None, before=False)
    return found.get("") or [name for each in found.values() for name in each]
