"""Image sets in the form in which their authors published them: SVHN's ``.mat`` files, and CelebA's folder.

===============================  ======================================================================================
SVHN (Netzer et al. 2011)        ``train_32x32.mat``: ``X`` (H, W, C, N) bytes, ``y`` (N, 1) labels. Its authors write
                                 10 for the digit 0, and so may a schema
CelebA (Liu et al. 2015)         a folder with ``list_attr_celeba.txt`` (40 attributes an image, 1 or -1), pictures in
                                 ``img_align_celeba.zip`` or the folder ``img_align_celeba``, and, where a split is
                                 named, ``list_eval_partition.txt``. The schema names the attributes that are the label
===============================  ======================================================================================
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from doublure.data.images import mat5
from doublure.data.images.pictures import LARGEST_FILE, Reader
from doublure.data.images.records import Pixels
from doublure.data.images.sources import ImageSource, other_length
from doublure.errors import DataError, printable
from doublure.schema.images import LABEL, ImageSchema

_PIXELS, _LABELS = "X", "y"
_ROWS = 256
_TEN, _ZERO = "10", "0"
ATTRIBUTES = "list_attr_celeba.txt"
_PARTITION, _FOLDER, _ARCHIVE = "list_eval_partition.txt", "img_align_celeba", "img_align_celeba.zip"
_SPLITS = {"train": "0", "valid": "1", "test": "2"}
_MARKS = {"1": "1", "-1": "0"}


class MatSource(ImageSource):
    """A MATLAB file of version 5 with SVHN's two arrays."""

    to_label = "put them beside the images as y"

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._found = mat5.variables(path)
            height, width, channels, count = self._found[_PIXELS].shape
        except (*mat5.DAMAGED, KeyError):
            remedy = "give a file with SVHN's arrays: X (height, width, channels, n) and y (n, 1), of MATLAB 5"
            raise DataError("cannot be read as SVHN's .mat", field=path.name, remedy=remedy) from None
        if self._found[_PIXELS].dtype != np.uint8 or channels not in (1, 3):
            raise DataError("holds no bytes of pixels as X", field=path.name, remedy="give SVHN's file as it was")
        if _LABELS in self._found and self._found[_LABELS].shape != (count, 1):
            raise other_length(LABEL)
        super().__init__(path.name, count, shape=(height, width, channels), labelled=_LABELS in self._found)

    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        """Yield the images, a block at a time."""
        images = self._array(_PIXELS).transpose(3, 0, 1, 2)
        for first in range(0, self.count, _ROWS):
            yield reader.convert(np.ascontiguousarray(images[first : first + _ROWS]), first + 1)

    def labels(self, known: Collection[str] = ()) -> Any:
        """Return the labels; its authors' 10 as 0, unless 10 is a label of the schema."""
        found = self._array(_LABELS).reshape(-1)
        return np.where(found == int(_TEN), 0, found) if _ZERO in known and _TEN not in known else found

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        try:
            return mat5.array(self._path, self._found[name])
        except mat5.DAMAGED:
            raise self.damaged() from None


class CelebaSource(ImageSource):
    """CelebA's folder; the label of an image is what the schema's ``label.attributes`` say of it.

    Args:
        path: The folder.
        split: ``train``, ``valid`` or ``test``; None for all images.
    """

    attributes = True

    def __init__(self, path: Path, split: str | None) -> None:
        self._path = path
        self._names = self._attribute_names()
        self._files, self._split = self._files_of(split), split
        self._asked: Sequence[str] = ()
        name = path.name or str(path)
        super().__init__(name if split is None else f"{name}#{split}", len(self._files), labelled=True)

    def check_more(self, schema: ImageSchema) -> None:
        """Compare the schema's attributes with those that there are."""
        if schema.unit.id is not None:
            self.ids(schema.unit.id)
        asked = () if schema.label is None else schema.label.attributes
        if schema.label is not None and not asked:
            remedy = "name one or several under label.attributes, such as [Smiling]"
            raise DataError(
                f"has {len(self._names)} attributes, any of which may be the label", field=LABEL, remedy=remedy
            )
        for name in asked:
            if name not in self._names:
                remedy = f"name some of {ATTRIBUTES}, such as {printable(self._names[0])}"
                field = f"label.attributes {printable(name)}"
                raise DataError("is no attribute of these images", field=field, remedy=remedy)
        self._asked = asked

    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        """Yield the images, a block at a time."""
        with ExitStack() as held:
            archive = self._opened(held)
            for first in range(0, self.count, _ROWS):
                names = enumerate(self._files[first : first + _ROWS], first + 1)
                yield np.stack([reader.decode(self._content(name, archive), number) for number, name in names])

    def labels(self, known: Collection[str] = ()) -> Any:
        """Return each image's attributes as one label: 1 or 0 for each that the schema names, in its order."""
        places = [self._names.index(name) + 1 for name in self._asked]
        found: list[tuple[str, str | None]] = []
        for line in self._lines(ATTRIBUTES)[2:]:
            if row := line.split():
                marks = [_MARKS.get(row[place]) if place < len(row) else None for place in places]
                said = None if None in marks else " ".join(mark for mark in marks if mark is not None)
                found.append((row[0], said))
        column, of_name = np.empty(len(self._files), dtype=object), dict(found)
        column[:] = [of_name.get(name) for name in self._files] if self._split else [said for _, said in found]
        return column

    # -- inside --------------------------------------------------------------------------------------------------

    def _attribute_names(self) -> list[str]:
        names = self._lines(ATTRIBUTES, 2)[1:]
        if not names or not names[0].split():
            raise DataError("names no attributes", field=ATTRIBUTES, remedy="give CelebA's file as it was")
        return names[0].split()

    def _files_of(self, split: str | None) -> list[str]:
        if split is None:
            return [row[0] for line in self._lines(ATTRIBUTES)[2:] if (row := line.split())]
        if split not in _SPLITS:
            raise DataError("is no split of CelebA", field=f"#{split}", remedy=f"name one of {', '.join(_SPLITS)}")
        rows = [line.split() for line in self._lines(_PARTITION)]
        return [row[0] for row in rows if len(row) == 2 and row[1] == _SPLITS[split]]

    def _lines(self, name: str, most: int | None = None) -> list[str]:
        try:
            with (self._path / name).open(encoding="ascii", errors="replace", newline="\n") as file:
                return [line for _, line in zip(range(most), file, strict=False)] if most else file.readlines()
        except OSError:
            raise DataError("cannot be read", field=name, remedy=f"put CelebA's {name} into the folder") from None

    def _opened(self, held: ExitStack) -> zipfile.ZipFile | None:
        if (self._path / _FOLDER).is_dir():
            return None
        try:
            return held.enter_context(zipfile.ZipFile(self._path / _ARCHIVE))
        except (OSError, zipfile.BadZipFile):
            remedy = f"put {_ARCHIVE}, or the folder {_FOLDER}, beside {ATTRIBUTES}"
            raise DataError("has no pictures that can be read", field=self.name, remedy=remedy) from None

    def _content(self, name: str, archive: zipfile.ZipFile | None) -> bytes | None:
        if Path(name).name != name:  # a list that leads elsewhere
            return None
        try:
            if archive is None:
                with (self._path / _FOLDER / name).open("rb") as file:
                    return file.read(LARGEST_FILE + 1)
            with archive.open(f"{_FOLDER}/{name}") as packed:
                return packed.read(LARGEST_FILE + 1)
        except (OSError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile, EOFError):
            return None
