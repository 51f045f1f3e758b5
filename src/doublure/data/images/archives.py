"""Pictures in a ZIP file or a folder with ``dataset.json``: the form of StyleGAN, EDM and DPImageBench.

``labels`` in it is a list of each picture's name and label, or null (Gong et al. 2025: ``train_28.zip``). Records are
taken in the order of their names. DPImageBench stores grey images in colour; ``on_mismatch: resize`` converts them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import override

from doublure.data.images.files import ENDINGS, content_of
from doublure.data.images.pictures import LARGEST_FILE, Reader
from doublure.data.images.records import Pixels
from doublure.data.images.sources import ImageSource
from doublure.data.npz import DAMAGED, damaged
from doublure.errors import DataError, Fault, FaultyRecords
from doublure.schema.images import ImageSchema

INDEX = "dataset.json"
_ROWS = 256


def is_archive(path: Path) -> bool:
    """Whether a ZIP file or a folder has an index of labels; no picture is read."""
    if path.is_dir():
        return (path / INDEX).is_file()
    if path.suffix.lower() != ".zip" or not path.is_file():
        return False
    try:
        with zipfile.ZipFile(path) as archive:
            return INDEX in archive.namelist()
    except DAMAGED:
        return False


class ArchiveSource(ImageSource):
    """Pictures and an index of their labels, in a ZIP file or in a folder."""

    to_label = f"list their names and labels in {INDEX}"

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._files = sorted(name for name in self._names() if name.lower().endswith(ENDINGS))
            index = self._index()
        except DAMAGED:
            raise damaged(path.name) from None
        self._labels = dict[str, object](index)
        self._listed = [name for name, _ in index]
        super().__init__(path.name, len(self._files), labelled=bool(index))

    def _names(self) -> list[str]:
        if self._path.is_dir():
            found = (file for file in self._path.rglob("*") if file.is_file())
            return [file.relative_to(self._path).as_posix() for file in found]
        with zipfile.ZipFile(self._path) as archive:
            return archive.namelist()

    def _index(self) -> list[tuple[str, object]]:
        """Return names and labels.

        Raises:
            DataError: The index is none.
        """
        remedy = 'give it as {"labels": [["00000/img00000000.png", 3], …]}, each label a number or a text'
        wrong = DataError("is no index of labels", field=INDEX, remedy=remedy)
        if self._path.is_dir():
            content = content_of(self._path / INDEX)
        else:
            with zipfile.ZipFile(self._path) as archive, archive.open(INDEX) as file:
                content = file.read(LARGEST_FILE + 1)
        if content is None or len(content) > LARGEST_FILE:
            raise wrong
        try:
            listed = json.loads(content)["labels"] or []
            index = [(str(name), mark) for name, mark in listed]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise wrong from None
        if any(isinstance(mark, (list, dict, float)) for _, mark in index):  # of several attributes none is the label
            raise wrong
        return index

    @override
    def check_more(self, schema: ImageSchema) -> None:
        """Compare the index with the pictures.

        Raises:
            FaultyRecords: It names a picture twice or one that is not there, or leaves one out, against the rule.
        """
        if schema.misfit != "refuse" or schema.label is None:
            return
        there, seen, faults = set(self._files), set[str](), list[Fault]()
        for name in self._listed:
            if name not in there or name in seen:
                faults.append(Fault(None, name, "is named a second time" if name in seen else "is not there"))
            seen.add(name)
        faults += [Fault(row, name, "has no label") for row, name in enumerate(self._files, 1) if name not in seen]
        if faults:
            raise FaultyRecords(
                f"has pictures without a label, or labels without a picture: {len(faults)}",
                field=self.name,
                remedy=f"name each picture once in {INDEX}",
                faults=faults,
            )

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        if self._path.is_dir():
            yield from self._decoded(reader, (content_of(self._path / name) for name in self._files))
            return
        try:
            with zipfile.ZipFile(self._path) as archive:
                yield from self._decoded(reader, (_content(archive, name) for name in self._files))
        except (OSError, zipfile.BadZipFile):
            raise self.damaged() from None

    def _decoded(self, reader: Reader, contents: Iterator[bytes | None]) -> Iterator[Pixels]:
        block = list[Pixels]()
        for row, content in enumerate(contents, 1):
            block.append(reader.decode(content, row))
            if len(block) == _ROWS:
                yield np.stack(block)
                block = []
        if block:
            yield np.stack(block)

    @override
    def file_of(self, row: int) -> str:
        return self._files[row]

    @override
    def labels(self, known: Collection[str] = ()) -> Any:
        column = np.empty(self.count, dtype=object)
        column[:] = [self._labels.get(name) for name in self._files]
        return column


def _content(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """Return a member's bytes, one more than a picture may have at most; None if it cannot be read."""
    try:
        with archive.open(name) as file:
            return file.read(LARGEST_FILE + 1)
    except DAMAGED:
        return None
