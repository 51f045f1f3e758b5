"""Images as arrays: NPZ files, IDX pairs, and arrays in memory.

They are read a block at a time; nothing is unpickled.
"""

from __future__ import annotations

import gzip
import math
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple, cast

import numpy as np
from typing_extensions import override

from doublure.data.images.pictures import Reader
from doublure.data.images.records import Pixels
from doublure.data.images.sources import (
    ATTRIBUTE_NAMES,
    LABEL_NAMES,
    PIXEL_NAMES,
    ImageSource,
    attribute_labels,
    other_length,
)
from doublure.data.npz import DAMAGED, Header, array, blocks, headers, in_memory, refuse_fields, refuse_objects
from doublure.data.splits import beside, labels_among, named, only, several
from doublure.errors import DataError, printable
from doublure.schema.images import LABEL, ImageSchema, LabelColumn

_BLOCK_BYTES = 8_000_000
_FEWEST_AXES = 2


def _images_in(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return the shape ``(H, W, C)`` of images along an array's first axis, channels last; None if there are none."""
    if len(shape) == 3:
        return (*shape[1:], 1)
    if len(shape) != 4:
        return None
    if _channels_first(shape):
        return (shape[2], shape[3], shape[1])
    return shape[1:] if shape[3] in (1, 3) else None


def _channels_first(shape: tuple[int, ...]) -> bool:
    """Whether the axes are (N, C, H, W): told by the sizes, so that both common orders are read."""
    return len(shape) == 4 and shape[1] in (1, 3) and shape[3] not in (1, 3)


class _ArraySource(ImageSource):
    """One array of images with the arrays beside it."""

    def __init__(self, name: str, header: Header, *, labelled: bool) -> None:
        images = _images_in(header.shape)
        if header.dtype.kind not in "buif" or images is None:
            remedy = "give numbers of shape (N, height, width) or (N, height, width, 1 or 3)"
            raise DataError("holds no array of images", field=name, remedy=remedy)
        super().__init__(name, header.shape[0], shape=images, stored=header.dtype, labelled=labelled)
        self._header = header

    def _ordered(self, block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return a block with its channels last."""
        block = block.reshape(len(block), *self._header.shape[1:])
        if block.ndim == 3:
            return block[..., None]
        return block.transpose(0, 2, 3, 1) if _channels_first(self._header.shape) else block

    def _rows(self) -> int:
        """Return how many images go into one block."""
        return max(1, _BLOCK_BYTES // max(1, math.prod(self._header.shape[1:]) * self._header.dtype.itemsize))


class _Names(NamedTuple):
    """Where a set of images stands among named arrays.

    Attributes:
        pixels: The array of images.
        labels: Those that could hold their labels.
        split: Which split these are of, "" for none.
    """

    pixels: str
    labels: list[str]
    split: str


class _NamedSource(_ArraySource):
    """Arrays with names: the images, and beside them labels, ids and attributes, one plain value an image."""

    columned: ClassVar[bool] = True

    def __init__(self, name: str, found: _Names) -> None:
        self._found = found
        self._asked: LabelColumn | None = None
        self._places: list[int] = []
        super().__init__(name, self._header_of(found.pixels), labelled=bool(found.labels))

    @abstractmethod
    def _names(self) -> Collection[str]:
        """Return the arrays that there are."""

    @abstractmethod
    def _header_of(self, name: str) -> Header:
        """Return an array's header."""

    @abstractmethod
    def _array(self, name: str) -> np.ndarray[Any, Any]:
        """Return one array, whole."""

    @override
    def check_more(self, schema: ImageSchema) -> None:
        self._asked = schema.label_of_attributes
        if self._asked is not None:
            self._places = self._places_of(self._asked.attributes)
        elif schema.label is not None:
            self._refuse_other_than_one_each(self._labels_name())
        for name in schema.named_beside:
            self._refuse_other_than_one_each(self._name_of(name))

    @property
    @override
    def beside(self) -> Sequence[str]:
        others = {self._found.pixels, *self._found.labels}
        return [name for name in self._names() if name not in others and self._header_of(name).shape == (self.count,)]

    def _refuse_form(self, name: str) -> None:
        refuse_fields(name, self._header_of(name))

    def _refuse_other_than_one_each(self, name: str) -> None:
        header = self._header_of(name)
        self._refuse_form(name)
        if header.shape[:1] != (self.count,):
            raise other_length(name)
        if math.prod(header.shape[1:]) != 1:
            remedy = (
                "name some under label.attributes, such as [Smiling]"
                if self.attributes
                else "give one value an image: the class itself, say, in place of one column for each class"
            )
            raise DataError("holds several values for each image", field=name, remedy=remedy)

    @property
    @override
    def attributes(self) -> bool:
        return self._attribute_names() is not None

    def _attribute_names(self) -> str | None:
        return next((each for each in beside(ATTRIBUTE_NAMES, self._found.split) if each in self._names()), None)

    def _places_of(self, asked: Sequence[str]) -> list[int]:
        """Return where the schema's attributes stand among those that there are."""
        key, of_images = self._attribute_names() or ATTRIBUTE_NAMES, self._labels_name()
        self._refuse_form(key)
        shape, marks = self._header_of(key).shape, self._header_of(of_images)
        if marks.dtype.kind not in "bui" or len(shape) != 1 or marks.shape != (self.count, *shape):
            remedy = f"give numbers of shape (images, attributes), and {ATTRIBUTE_NAMES} of shape (attributes)"
            raise DataError("does not hold 1 or 0 for each attribute of an image", field=of_images, remedy=remedy)
        names = [str(name) for name in self._array(key).tolist()]
        for name in asked:
            if name not in names:
                field, remedy = f"label.attributes {printable(name)}", f"name some of the array {printable(key)}"
                raise DataError("is no attribute of these images", field=field, remedy=remedy)
        return [names.index(name) for name in asked]

    @override
    def labels(self, known: Collection[str] = ()) -> Any:
        found = self._array(self._labels_name())
        return (
            found.reshape(-1) if self._asked is None else attribute_labels(found[:, self._places].tolist(), self._asked)
        )

    @override
    def column(self, name: str) -> Any:
        return self._array(self._name_of(name)).reshape(-1)

    def _labels_name(self) -> str:
        """Return the name of the labels; which one is meant matters only to a schema with a label."""
        return labels_among(self._found.labels, self.name)

    def _name_of(self, name: str) -> str:
        for found in beside(name, self._found.split):
            if found in self._names():
                return found
        what = f"is no array of {printable(self.name)}, and the schema names it"
        raise DataError(what, field=name, remedy="add the array, or fix the schema")


# -- in memory -------------------------------------------------------------------------------------------------------


class _MappingSource(_NamedSource):
    def __init__(self, name: str, arrays: Mapping[str, Any], found: _Names) -> None:
        self._arrays = arrays
        super().__init__(name, found)
        self._images = self._array(found.pixels)

    @override
    def _names(self) -> Collection[str]:
        return self._arrays.keys()

    @override
    def _header_of(self, name: str) -> Header:
        found = self._array(name)
        return Header(shape=found.shape, dtype=found.dtype)

    @override
    def _array(self, name: str) -> np.ndarray[Any, Any]:
        try:
            return np.asarray(self._arrays[name]) if name == self._found.pixels else in_memory(self._arrays[name])
        except (TypeError, ValueError):  # the message of the original could show a value
            remedy = "give arrays of numbers or texts"
            raise DataError("holds what is no array", field=name, remedy=remedy) from None

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        step = self._rows()
        for first in range(0, self.count, step):
            yield reader.convert(self._ordered(self._images[first : first + step]), first + 1)


def open_mapping(arrays: Mapping[str, Any], name: str, split: str | None) -> ImageSource:
    """Look at arrays in memory."""
    found = _names(name, [str(key) for key in arrays], lambda each: _axes(arrays, each), split)
    return _MappingSource(name, arrays, found)


def _axes(arrays: Mapping[str, Any], name: str) -> int:
    """Return how many axes an array has; none if it is no array."""
    try:
        return np.ndim(arrays[name])
    except (TypeError, ValueError):
        return 0


def _names(name: str, names: list[str], axes: Callable[[str], int], split: str | None) -> _Names:
    """Return where images and their labels stand; of several names, one with a number a record is another thing's."""
    found = named(names, PIXEL_NAMES, split)
    if sum(map(len, found.values())) > 1:
        pictures = {of: [each for each in some if axes(each) >= _FEWEST_AXES] for of, some in found.items()}
        found = {of: some for of, some in pictures.items() if some} or found
    if not found:
        remedy = "name the array images or x" if split is None else "name a split that is there"
        raise DataError("holds no array of images", field=name, remedy=remedy)
    if len(found) > 1:
        raise several(name, found, "images")
    ((of, pixels),) = found.items()
    return _Names(only(pixels, name), named(names, LABEL_NAMES, of).get(of, []), of)


# -- NPZ -------------------------------------------------------------------------------------------------------------


class _NpzSource(_NamedSource):
    def __init__(self, path: Path, headers: dict[str, Header], found: _Names) -> None:
        self._path, self._headers = path, headers
        super().__init__(path.name, found)

    @override
    def _names(self) -> Collection[str]:
        return self._headers

    @override
    def _header_of(self, name: str) -> Header:
        return self._headers[name]

    @override
    def _array(self, name: str) -> np.ndarray[Any, Any]:
        return array(self._path, name)

    @override
    def _refuse_form(self, name: str) -> None:
        refuse_objects(name, self._headers[name])

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        first = 0
        try:
            # of columns that come first, no block can be cut off
            pixels = self._found.pixels
            parts = blocks(self._path, pixels, self._rows()) if self._header.in_rows else [self._array(pixels)]
            for block in parts:
                yield reader.convert(self._ordered(block), first + 1)
                first += len(block)
        except DAMAGED:
            raise self.damaged() from None


def open_npz(path: Path, split: str | None) -> ImageSource:
    """Look at an NPZ file's headers."""
    found = headers(path)
    names = _names(path.name, list(found), lambda each: len(found[each].shape), split)
    refuse_objects(names.pixels, found[names.pixels])
    return _NpzSource(path, found, names)


# -- IDX -------------------------------------------------------------------------------------------------------------


def is_idx(path: Path) -> bool:
    """Whether a file is IDX by its name, as MNIST's files are: ``train-images-idx3-ubyte.gz``."""
    return re.search(r"idx\d|-ubyte|\.idx", path.name.lower()) is not None


def idx_array(path: Path) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the array of an IDX file that is trusted, whole.

    Raises:
        DAMAGED: It is no IDX file of bytes, or holds more or less than its header says.
    """
    with _opened(path) as file:
        shape = _idx_header(file).shape
        return np.frombuffer(file.read(), dtype=np.uint8).reshape(shape)


class IdxSource(_ArraySource):
    """A file of images and, beside it, the file of its labels: ``…-images-idx3-ubyte``, ``…-labels-idx1-ubyte``."""

    to_label = "put …-labels-idx1-ubyte beside it"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._labels_path = _beside(path)
        try:
            with _opened(path) as file:
                header = _idx_header(file)
        except DAMAGED:
            remedy = "give the file of the images; check that it is whole"
            raise DataError("cannot be read as IDX", field=path.name, remedy=remedy) from None
        super().__init__(path.name, header, labelled=self._labels_path is not None)

    @override
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        size, first = math.prod(self._header.shape[1:]), 0
        try:
            with _opened(self._path) as file:
                _idx_header(file)
                while content := file.read(size * self._rows()):
                    block = np.frombuffer(content, dtype=np.uint8).reshape(-1, *self._header.shape[1:])
                    yield reader.convert(self._ordered(block), first + 1)
                    first += len(block)
                    if first > self.count:
                        raise self.damaged()
        except DAMAGED:
            raise self.damaged() from None

    @override
    def labels(self, known: Collection[str] = ()) -> Any:
        if self._labels_path is None:
            raise self.damaged()
        try:
            with _opened(self._labels_path) as file:
                header = _idx_header(file)
                if header.shape != (self.count,):  # before as much is read as a header may claim
                    raise other_length(LABEL)
                return np.frombuffer(file.read(self.count + 1), dtype=np.uint8).reshape(self.count)
        except DAMAGED:
            remedy = "check that the file is whole"
            raise DataError("cannot be read as IDX", field=self._labels_path.name, remedy=remedy) from None


def _beside(path: Path) -> Path | None:
    """Return the file of an IDX file's labels, packed or not, in capitals or not; None if there is none."""
    name = path.name
    for images, labels in (("images", "labels"), ("idx3", "idx1")):
        name = name.replace(images, labels).replace(images.upper(), labels.upper())
    if name == path.name:
        return None
    packed = path.suffix.lower() == ".gz"
    others = [name[: -len(".gz")]] if packed else [f"{name}.gz", f"{name}.GZ"]
    return next((path.with_name(other) for other in (name, *others) if path.with_name(other).is_file()), None)


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix.lower() == ".gz" else path.open("rb")


def _idx_header(file: IO[bytes]) -> Header:
    """Read two zeros, the type (8: unsigned bytes), the number of axes, and each axis as a big-endian uint32."""
    start = file.read(4)
    if len(start) != 4 or start[:2] != b"\0\0" or start[2] != 8 or not 1 <= start[3] <= 4:
        raise ValueError("IDX")
    sizes = file.read(4 * start[3])
    if len(sizes) != 4 * start[3]:
        raise ValueError("IDX")
    shape = tuple(int.from_bytes(sizes[i : i + 4], "big") for i in range(0, len(sizes), 4))
    return Header(shape=shape, dtype=np.dtype(np.uint8))
