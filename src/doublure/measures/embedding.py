"""Records as points of a Euclidean space, for nearest-neighbour measures of any kind of data.

======  ==============================================================================================================
kind    the numbers of a record
======  ==============================================================================================================
table   a number's place within its public bounds, and whether it is missing; a value as a corner, so that two
        different values are 1 apart
images  the pixels, 0 to 1; the label as a corner
series  each channel's places within its public bounds, a step without a value as a number of its own; attributes as
        corners
related the root's columns as a table's; of each child table how many rows, their mean, the first and the last one
======  ==============================================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doublure.data.images.records import intensities
from doublure.encode.attribute_groups import encoding_of
from doublure.encode.columns import ColumnEncoding, ListedEncoding
from doublure.measures.relational.units import UnitCoder, read_units
from doublure.measures.tables.coding import Coded, Coder
from doublure.schema import ResolvedSchema
from doublure.schema.images import LABEL, ImageSchema
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.series import SeriesSchema
from doublure.support.arrays import Floats

PIXELS = "pixels"


@dataclass(frozen=True, kw_only=True)
class Points:
    """Records as points.

    Attributes:
        values: ``(N, d)`` float64.
        blocks: The source of each block of numbers: a column, a channel, an attribute, the pixels.
        corners: The one-hot blocks, of columns with a list of values.
        bodies: For records beyond columns, the ordered numbers: pixels, or a channel's steps.
    """

    values: Floats
    blocks: Mapping[str, slice]
    corners: frozenset[str]
    bodies: tuple[slice, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: np.ndarray[Any, Any]) -> Points:
        """Return the selected records."""
        return replace(self, values=self.values[rows])

    def of(self, *names: str) -> Floats:
        """Return the numbers of the named blocks, ``(N, d')``."""
        return np.concatenate([self.values[:, self.blocks[name]] for name in names], axis=1)


def embed_records(schema: ResolvedSchema, content: Any, what: str = "the records") -> Points:
    """Return records of a schema as points.

    Args:
        schema: Every fact known.
        content: Records, private or synthetic, as the schema's source loads them or as sampling returns them.
        what: Name of the records in messages.

    Raises:
        DataError: A table lacks a column of the schema, or has cells that do not fit it.
    """
    return POINTS[schema.kind](schema, content, what)


def _of_rows(schema: ResolvedSchema, content: Any, what: str) -> Points:
    coder = Coder(schema=schema)
    return embed_table(coder, coder.read(content, what))


def _of_images(schema: ImageSchema, content: Any, what: str) -> Points:
    parts = {PIXELS: intensities(content.images).reshape(len(content), -1)}
    if schema.label is not None and content.labels is not None:
        parts[LABEL] = _corners(ListedEncoding(column=schema.label), content.labels)
    points = _joined(parts, {LABEL} & parts.keys())
    return replace(points, bodies=(points.blocks[PIXELS],))


def _of_series(schema: SeriesSchema, content: Any, what: str) -> Points:
    parts = {name: _channel(schema, name, content.channel(name)) for name in schema.channels}
    corners = {
        name: _corners(encoding_of(column), content.attributes[name]) for name, column in schema.attributes.items()
    }
    points = _joined(parts | corners, corners.keys())
    planes = [
        slice(first, first + schema.length)
        for block in (points.blocks[name] for name in schema.channels)
        for first in range(block.start, block.stop, schema.length)
    ]
    return replace(points, bodies=tuple(planes))


def _of_related(schema: RelationalSchema, content: Any, what: str) -> Points:
    """Return the root's row, and for each child table the number of rows, their mean, the first and the last one."""
    units = UnitCoder.of(schema).read(read_units(schema, content), what)
    coders = UnitCoder.of(schema)
    root = embed_table(coders.root, units.root)
    parts = {f"{schema.root}.{name}": root.values[:, block] for name, block in root.blocks.items()}
    corners = {f"{schema.root}.{name}" for name in root.corners}
    for child in schema.children:
        many = units.content.counts(child)
        parts[f"rows of {child}"] = many[:, None] / schema.most(child)
        rows = units.children[child]
        if rows is None:
            continue
        own, some = embed_table(coders.children[child], rows), many > 0
        first = np.cumsum(many) - many
        mean = np.zeros((len(units), own.values.shape[1]))
        np.add.at(mean, units.owners(child), own.values)
        mean /= np.maximum(many, 1)[:, None]
        ends = np.zeros((2, *mean.shape))
        ends[0, some], ends[1, some] = own.values[first[some]], own.values[(first + many - 1)[some]]
        for name, block in own.blocks.items():
            parts[f"{child}.{name}"] = np.concatenate([mean[:, block], ends[0, :, block], ends[1, :, block]], axis=1)
    return _joined(parts, corners)


POINTS: ByKind[Callable[[Any, Any, str], Points]] = ByKind(
    "points", table=_of_rows, images=_of_images, series=_of_series, relational=_of_related
)


def embed_table(coder: Coder, table: Coded) -> Points:
    """Return the rows of a coded table as points."""
    parts, corners = {}, set()
    for place, (name, size) in enumerate(zip(coder.names, coder.sizes, strict=True)):
        if name in table.numbers:
            share = coder.place(name, table.numbers[name])
            parts[name] = np.stack([np.nan_to_num(share), np.isnan(share)], axis=1)
        else:
            parts[name] = _corner(table.codes[:, place], size)
            corners.add(name)
    return _joined(parts, corners)


def _channel(schema: SeriesSchema, name: str, values: Floats) -> Floats:
    column = schema.channels[name]
    lower, upper = column.known_grid
    share = (np.clip(values, lower, upper) - lower) / max(upper - lower, column.unit)
    if not schema.may_be_missing(name):
        return np.nan_to_num(share)
    return np.concatenate([np.nan_to_num(share), np.isnan(share)], axis=1)


def _corners(discrete: ColumnEncoding, cells: Any) -> Floats:
    return _corner(discrete.compact(cells)[0].astype(np.int64), discrete.parts[0].size)


def _corner(codes: np.ndarray[Any, Any], size: int) -> Floats:
    return np.asarray(np.eye(size)[codes] / math.sqrt(2), dtype=np.float64)


def _joined(parts: Mapping[str, Floats], corners: Any) -> Points:
    blocks, first = {}, 0
    for name, part in parts.items():
        blocks[name] = slice(first, first + part.shape[1])
        first += part.shape[1]
    values = np.concatenate(list(parts.values()), axis=1).astype(np.float64)
    return Points(values=values, blocks=blocks, corners=frozenset(corners))
