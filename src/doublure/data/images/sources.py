"""Image sources: containers opened by their headers, and images read under a schema.

The two passes never mix: a container is opened by its headers and names alone (before anything is reserved), and
:meth:`ImageSource.load` reads the images. It returns :data:`~doublure.data.images.records.Pixels` and a label of the
schema's list, for at most ``max_records`` images of each unit.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from doublure.data.images.pictures import LABEL_MISFIT, Reader
from doublure.data.images.records import Images, ImageSet, ImagesOnDisk, Pixels
from doublure.data.npz import LARGEST, damaged
from doublure.data.records import refuse_repeated
from doublure.data.tables import cells
from doublure.data.tables.arrow_text import unwrapped
from doublure.errors import DataError, Fault, FaultyRecords, printable
from doublure.schema.columns import label
from doublure.schema.distinct_cells import distinct
from doublure.schema.images import LABEL, ImageSchema, LabelColumn, Pictures
from doublure.schema.scalars import Misfit, whole
from doublure.schema.schema import Schema
from doublure.support.row_files import RowFile

PIXEL_NAMES = ("images", "image", "img", "x")
LABEL_NAMES = ("labels", "label", "class", "y")
ATTRIBUTE_NAMES = "names"
"""The array of the attributes' names, where labels are ``(N, attributes)``."""
_RANGE = "images.range"


class ImageSource(ABC):
    """A set of images whose container has been checked and whose images have not been read.

    Attributes:
        name: The container's name, for errors.
        count: How many images it has. Private.
        shape: Their common shape ``(H, W, C)``, where the container says it.
        stored: The type of their numbers; None for pictures, each of which says its own.
        labelled: Whether it has labels.
        to_label: What would give it labels, where it has none.
        columned: Whether it can have columns beside images and labels.
    """

    to_label = f"name them {' or '.join(LABEL_NAMES)}"
    columned: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        count: int,
        *,
        shape: tuple[int, int, int] | None = None,
        stored: np.dtype[Any] | None = None,
        labelled: bool,
    ) -> None:
        self.name = name
        self.count = count
        self.shape = shape
        self.stored = stored
        self.labelled = labelled

    @property
    def usual_range(self) -> tuple[int, int]:
        """The numbers that usually stand for black and full intensity in arrays of this type."""
        if self.stored is None:
            return 0, 255
        if self.stored.kind in "bf":
            return 0, 1
        deep = self.stored.kind == "u" and self.stored.itemsize == 2
        return (0, 65_535) if deep else (0, 255)

    # -- what each container does --------------------------------------------------------------------------------

    @abstractmethod
    def blocks(self, reader: Reader) -> Iterator[Pixels]:
        """Yield the images in order, ``(B, H, W, C)``, a block at a time."""

    @property
    def attributes(self) -> bool:
        """Whether a schema may name which of an image's attributes are its label."""
        return False

    @property
    def beside(self) -> Sequence[str]:
        """Names of what stands beside images and labels: ids, attributes, or what the schema leaves out."""
        return ()

    @abstractmethod
    def labels(self, known: Collection[str] = ()) -> Any:
        """Return the raw labels, ``(N,)``.

        Args:
            known: The texts of the schema's labels, for containers in which a label has more than one spelling.
        """

    def file_of(self, row: int) -> str:
        """Return the name of the file of the image at a place, from 0; empty where it has none. Private."""
        del row
        return ""

    def column(self, name: str) -> Any:
        """Return the cells of a column beside the images, ``(N,)``: their units' ids, or an attribute.

        Raises:
            DataError: The container has none of this name.
        """
        remedy = "use NPZ, Parquet or a CSV of files, or leave it out of the schema"
        raise DataError(f"has no columns, and the schema names {printable(name)}", field=self.name, remedy=remedy)

    def check_more(self, schema: ImageSchema) -> None:  # noqa: B027 (most containers have nothing to compare)
        """Compare what is particular to this container with the schema."""

    def check_form(self) -> None:  # noqa: B027 (most containers have refused by then what is none of theirs)
        """Refuse a container by the names in it, where no schema says what becomes of them; raises DataError."""

    def has_labels(self, schema: ImageSchema) -> bool:
        """Whether there are labels, or what is lacking is a misfit of each image."""
        return self.labelled

    # -- what all do ---------------------------------------------------------------------------------------------

    def check(self, schema: Schema) -> None:
        """Compare the container with the schema.

        Raises:
            DataError: It has no labels, or numbers that do not go with the schema's range, or images of another shape
                and the schema's rule is to refuse them.
        """
        schema = image_schema(schema)
        if schema.label is not None and not self.has_labels(schema):
            remedy = f"{self.to_label}, or take label out of the schema"
            raise DataError("has no labels", field=self.name, remedy=remedy)
        if schema.label_of_attributes is not None and not self.attributes:
            remedy = f"give a table with a column for each, or arrays with their {ATTRIBUTE_NAMES} beside the labels"
            raise DataError("are named in the schema, and not in the data", field="label.attributes", remedy=remedy)
        if schema.named_beside and not self.columned:
            self.column(schema.named_beside[0])
        self._refuse_other_numbers(schema.images)
        crop = schema.images.crop
        shape = self.shape if self.shape is None or crop is None else (*crop, self.shape[2])  # smaller ones are refused
        if shape is not None and shape != schema.shape and schema.images.on_mismatch == "refuse":
            found, wanted = ("x".join(map(str, shape)) for shape in (shape, schema.shape))
            remedy = "fix the schema's shape, or declare on_mismatch: resize"
            raise DataError(f"holds images of {found}, and the schema's are {wanted}", field=self.name, remedy=remedy)
        if self.count * int(np.prod(schema.shape)) > LARGEST:
            raise DataError("holds more than 32 GB of pixels", field=self.name, remedy="give a part of it")
        self.check_more(schema)

    def _refuse_other_numbers(self, rule: Pictures) -> None:
        """Refuse numbers that cannot be what the schema takes them for, by their type alone."""
        if self.stored is None:
            return
        usual, ends = self.usual_range, rule.ends
        if rule.range is None and usual != ends:
            found = f"is not declared, and {printable(self.name)} holds numbers of type {self.stored}"
            raise DataError(found, field=_RANGE, remedy=f"declare what is black and what is white, such as {[*usual]}")
        if self.stored.kind in "bui":
            least, most = (0, 1) if self.stored.kind == "b" else _ends_of(self.stored)
            if not least <= ends[0] < ends[1] <= most:
                found = f"is {[*map(whole, ends)]}, and {printable(self.name)} holds numbers from {least} to {most}"
                raise DataError(found, field=_RANGE, remedy=f"declare one that {self.stored} can hold")

    def load(self, schema: Schema, *, at_least: int = 2, room: Path | None = None) -> ImageSet:
        """Read the images.

        Args:
            schema: Their shape, labels and units.
            at_least: Fewer images than this are refused.
            room: A folder for their pixels, where they are to be held one lot at a time; a file without a name.

        Raises:
            DataError: An image breaks the schema's rule, or a label is not in its list; there are too few.
        """
        schema = image_schema(schema)
        self.check(schema)
        if self.count < at_least:
            remedy = "give the set that the schema describes"
            raise DataError(f"has fewer than {at_least} images", field=self.name, remedy=remedy)
        pixels, kept = self._pixels(schema) if room is None else self._pixels_on_disk(schema, room)
        labels = ids = None
        if schema.label is not None:
            given = self._column(self.labels([label(value) for value in schema.label.domain]), LABEL)
            labels = self._labelled(given, schema.label, schema.misfit)
        if schema.unit.id is not None:
            given = self._column(self.column(schema.unit.id), schema.unit.id)
            ids = cells.unit_ids(given, schema.unit.id, misfit=schema.misfit)
            kept &= ids.notna().to_numpy()
        attributes = self._attributes(schema)
        images = (
            ImagesOnDisk(pixels=pixels, labels=labels, attributes=attributes)
            if isinstance(pixels, RowFile)
            else Images(images=pixels, labels=labels, attributes=attributes)
        )
        found = _bounded(images, np.flatnonzero(kept), ids, schema.unit.max_records)
        refuse_repeated(schema, repeated=len(found.unit) < int(np.count_nonzero(kept)))
        return found

    def _attributes(self, schema: ImageSchema) -> pd.DataFrame | None:
        """Return the attributes beside the images; None where the schema has none."""
        if not schema.attributes:
            return None
        given = {name: self._column(self.column(name), name) for name in schema.attributes}
        return pd.DataFrame({
            name: cells.canonical(given[name], column, name, schema.misfit)
            for name, column in schema.attributes.items()
        })  # fmt: skip

    def _pixels(self, schema: ImageSchema) -> tuple[Pixels, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Return all images, and which of them the schema's rule takes."""
        reader = Reader(schema.images, schema.shape)
        try:
            pixels = np.empty((self.count, *schema.shape), dtype=reader.blank.dtype)
        except MemoryError:
            remedy = "give a part of it, or check that the file is whole"
            raise DataError(
                "says that it holds more images than fit in memory", field=self.name, remedy=remedy
            ) from None
        done = 0
        for block in self._all_blocks(reader):
            pixels[done : done + len(block)] = block
            done += len(block)
        return pixels, self._taken(reader, schema)

    def _pixels_on_disk(self, schema: ImageSchema, room: Path) -> tuple[RowFile, np.ndarray[Any, np.dtype[np.bool_]]]:
        """Write all images down, and return which of them the schema's rule takes."""
        reader = Reader(schema.images, schema.shape)
        pixels = RowFile.within(room, schema.shape, reader.blank.dtype.type)
        for block in self._all_blocks(reader):
            pixels.add(block)
        return pixels, self._taken(reader, schema)

    def _all_blocks(self, reader: Reader) -> Iterator[Pixels]:
        """Yield as many images as the container says that it has.

        Raises:
            DataError: It has others.
        """
        done = 0
        for block in self.blocks(reader):
            done += len(block)
            if done > self.count:
                raise self.damaged()
            yield block
        if done != self.count:
            raise self.damaged()

    def _taken(self, reader: Reader, schema: ImageSchema) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return which of the images, once all were read, the schema's rule takes."""
        if schema.misfit == "refuse":
            reader.faults.refuse(self.name, self.file_of)
        kept = np.ones(self.count, dtype=np.bool_)
        kept[reader.faults.rows] = False
        return kept

    def _labelled(self, given: pd.Series[Any], column: LabelColumn, misfit: Misfit) -> pd.Series[Any]:
        """Return the labels of the schema's list.

        Raises:
            FaultyRecords: An image has none, or another.
        """
        try:
            if misfit == "refuse" and (lacking := given.isna()).any():
                remedy = "give each image a label, or leave out those without"
                if column.attributes and column.marked:
                    remedy = "marks are 1 or 0, true or false; of one attribute with other values list those"
                found = "no image has one" if lacking.all() else "some images have none"
                raise DataError(found, field=LABEL, remedy=remedy)
            return cells.canonical(given, column, LABEL, misfit)
        except DataError as error:
            wrong = np.flatnonzero(_misfits(given, column))
            faults = [Fault(int(row) + 1, self.file_of(int(row)), LABEL_MISFIT) for row in wrong]
            raise FaultyRecords(
                error.message, field=LABEL, remedy=error.remedy or "fix either", faults=faults
            ) from None

    def _column(self, raw: Any, name: str) -> pd.Series[Any]:
        column = cells.raw_column(np.asarray(raw))
        if len(column) != self.count:
            raise other_length(name)
        return column

    def damaged(self) -> DataError:
        """Return the refusal of a container that does not hold what its header says."""
        return damaged(self.name)


_MARKS = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}


def attribute_labels(rows: Iterable[Sequence[object]], column: LabelColumn) -> np.ndarray[Any, Any]:
    """Return each row of attributes as a label.

    Marks become a text, such as ``1 0``; None where one is neither 1 nor 0, true nor false. Where the schema lists
    other values of one attribute, its cells are the labels.

    Example:
        >>> both = LabelColumn(type="category", attributes=("a", "b"))
        >>> attribute_labels([(1, 0), ("1.0", "True"), (1, -1)], both).tolist()
        ['1 0', '1 1', None]
    """
    if column.marked:
        read = [[_MARKS.get(str(mark).strip().lower()) for mark in row] for row in rows]
        found: list[object] = [None if None in row else " ".join(map(str, row)) for row in read]
    else:
        found = [None if cell == "" else cell for (cell,) in rows]
    labels = np.empty(len(found), dtype=object)
    labels[:] = found
    return labels


def _ends_of(stored: np.dtype[Any]) -> tuple[int, int]:
    held = np.iinfo(stored)
    return int(held.min), int(held.max)


def _misfits(given: pd.Series[Any], column: LabelColumn) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which labels the schema does not take; each distinct one is tried by itself."""
    codes, uniques = distinct(unwrapped(given))
    wrong = np.ones(len(uniques) + 1, dtype=np.bool_)  # the last is for those that have none
    for place, cell in enumerate(uniques):
        one = pd.Series([cell], dtype=object)
        with contextlib.suppress(DataError):
            cells.canonical(one, column, LABEL)
            wrong[place] = False
    found: np.ndarray[Any, np.dtype[np.bool_]] = wrong[codes]
    return found


def other_length(name: str) -> DataError:
    """Return the refusal of labels or ids that are not as many as the images."""
    return DataError("has another length than the images", field=name, remedy="give each image one")


def image_schema(schema: Schema) -> ImageSchema:
    """Return the schema, once it is sure that it describes images."""
    wrong = DataError("holds images, and the schema does not describe images", field="data", remedy="fix either")
    return ImageSchema.of(schema, wrong)


def _bounded(
    images: Images | ImagesOnDisk,
    rows: np.ndarray[Any, np.dtype[np.intp]],
    ids: pd.Series[Any] | None,
    max_records: int,
) -> ImageSet:
    """Keep of these images the first ``max_records`` of each unit, in the container's order."""
    codes, units = (np.arange(len(rows)), rows) if ids is None else pd.factorize(ids.iloc[rows])
    first = (pd.Series(codes).groupby(codes).cumcount() < max_records).to_numpy()
    if first.sum() < len(images):
        images = images.kept(rows[first]) if isinstance(images, ImagesOnDisk) else images.take(rows[first])
    return ImageSet(content=images, unit=codes[first].astype(np.int64, copy=False), n_units=len(units))
