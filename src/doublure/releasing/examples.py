"""The first synthetic records of a release, as its card shows them.

Three rows, units or series, or a sheet of images are read from the released files, so that ``verify`` can draw the same
page from a bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from doublure.data import npz
from doublure.releasing.cells import Cells
from doublure.releasing.reading import (
    FORMS,
    Batch,
    DescribedTable,
    batches,
    described_beside,
    described_tables,
    key_names,
    read_images,
)
from doublure.schema.images import LABELS
from doublure.schema.kinds import KINDS, ByKind
from doublure.schema.series import CLOCK, SERIES, STEP

SHOWN = 3
"""The number of records that are shown."""

_MOST_CHILDREN = 6
_ROW, _ROWS, _MANY_CLASSES = 20, 5, 40


@dataclass(frozen=True, kw_only=True)
class ExampleRecords:
    """The first records that a card's page shows.

    Attributes:
        rows: Table -> column -> its cells, as text; of a table alone its name is empty.
        series: Of each series its channels' values, NaN where one is missing.
        images: The rows of a sheet: a class, or nothing, and its first images ``(B, H, W, C)``.
    """

    rows: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    series: tuple[Mapping[str, tuple[float, ...]], ...] = ()
    images: tuple[tuple[str, Cells], ...] = ()


def read_examples(folder: Path, listed: Iterable[str], described: Mapping[str, Any]) -> ExampleRecords:
    """Return a bundle's first records; none of a registered kind or of a generator.

    Args:
        folder: The bundle's folder.
        listed: Its files.
        described: Its data dictionary.

    Raises:
        ContentMismatch: A file is not what the dictionary describes.
    """
    show = _EXAMPLES.get(str(described.get("kind")))
    paths = {name: folder / name for name in listed if Path(name).suffix in FORMS and "/" not in name}
    return ExampleRecords() if show is None or not paths else show(paths, described)


def _first(paths: Mapping[str, Path], table: DescribedTable) -> Iterator[Batch]:
    """Yield a table's batches, from the form that comes first."""
    name = next((name for form in FORMS if (name := f"{table.name}{form}") in paths), None)
    return iter(()) if name is None else batches(paths[name], table)


def _texts(batch: Batch, table: DescribedTable, rows: Any) -> dict[str, tuple[str, ...]]:
    return {
        told.name: tuple(map(told.text, batch[told.name][rows]))
        for told in table.columns
        if told.name in batch and told.name not in (SERIES, STEP, CLOCK)
    }


def _of_table(paths: Mapping[str, Path], described: Mapping[str, Any]) -> ExampleRecords:
    (table,) = described_tables(described)
    batch = next(_first(paths, table), None)
    return ExampleRecords() if batch is None else ExampleRecords(rows={"": _texts(batch, table, slice(SHOWN))})


def _of_related(paths: Mapping[str, Path], described: Mapping[str, Any]) -> ExampleRecords:
    """Return the first units, and their first rows in each table."""
    found = {}
    for table in described_tables(described):
        above = described["related"][table.name].get("foreign_key")
        batch = next(_first(paths, table), None)
        if batch is not None:
            rows = (
                slice(SHOWN) if above is None else np.flatnonzero(batch[key_names(above)[0]] <= SHOWN)[:_MOST_CHILDREN]
            )
            found[table.name] = _texts(batch, table, rows)
    return ExampleRecords(rows=found)


def _of_series(paths: Mapping[str, Path], described: Mapping[str, Any]) -> ExampleRecords:
    (table,) = described_tables(described)
    told, held = described["series"], []
    for batch in _first(paths, table):
        held.append({name: cells[batch[SERIES] <= SHOWN] for name, cells in batch.items()})
        if batch[SERIES][-1] > SHOWN:
            break
    if not held:
        return ExampleRecords()
    rows = {name: np.concatenate([part[name] for part in held]) for name in held[0]}
    each = [rows[SERIES] == number for number in range(1, SHOWN + 1) if (rows[SERIES] == number).any()]
    beginnings = [int(np.flatnonzero(own)[0]) for own in each]
    attributes = DescribedTable(name="", columns=tuple(table.column(name) for name in told["attributes"]))
    series = tuple({name: _numbers(rows[name][own], table, name) for name in told["channels"]} for own in each)
    return ExampleRecords(rows={"": _texts(rows, attributes, beginnings)}, series=series)


def _numbers(cells: Cells, table: DescribedTable, name: str) -> tuple[float, ...]:
    """Return a channel's values; of a channel of states, the places in its list."""
    told = table.column(name)
    if told.model.listed:
        places = {value: float(place) for place, value in enumerate(told.values)}
        return tuple(places.get(cell, float("nan")) for cell in cells)
    return tuple(map(float, cells))


def _of_images(paths: Mapping[str, Path], described: Mapping[str, Any]) -> ExampleRecords:
    beside = described_beside(described)
    path = next(iter(paths.values()))
    _, found = read_images(path, described["images"], beside, None)
    label, labels = beside.get(LABELS), found.get(LABELS)
    pixels = _shown(next(iter(npz.blocks(path, "images", KINDS["images"].chunk))), *described["images"]["range"])
    if labels is None or label is None:
        few = pixels[: _ROW * _ROWS]
        return ExampleRecords(images=tuple(("", few[at : at + _ROW]) for at in range(0, len(few), _ROW)))
    most = 1 if len(label.values) > _MANY_CLASSES else _ROW
    groups = ((value, pixels[labels[: len(pixels)] == value][:most]) for value in label.values)
    return ExampleRecords(images=tuple((value, own) for value, own in groups if len(own)))


def _shown(numbers: Cells, lower: float, upper: float) -> Cells:
    """Return images as bytes from black to full intensity."""
    if numbers.dtype == np.uint8 and (lower, upper) == (0, 255):
        return numbers
    return np.rint((numbers.astype(np.float64) - lower) * (255 / (upper - lower))).astype(np.uint8)


_EXAMPLES = ByKind("examples", table=_of_table, images=_of_images, series=_of_series, relational=_of_related)
