"""Writing a sample to a file, whatever the kind of data: streamed, at bounded memory, whole or not there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, SupportsIndex

from doublure.data.images import writing as images
from doublure.data.relational import writing as related
from doublure.data.series import writing as series
from doublure.data.tables import writing as tables
from doublure.errors import SettingError
from doublure.releasing.parts import write_parts
from doublure.run.synthesizer import Synthesizer, counted
from doublure.schema.images import ImageSchema
from doublure.schema.kinds import ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.series import SeriesSchema
from doublure.support import seeding
from doublure.support.progress import Progress, Silent


@dataclass(frozen=True, kw_only=True)
class Others:
    """Other processes that draw parts.

    Attributes:
        run: Where they load the synthesizer from.
        settings: Of sampling.
        processes: How many.
    """

    run: Path | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    processes: int = 1


def write_sample(
    syn: Synthesizer,
    path: Path,
    n: SupportsIndex,
    *,
    given: Mapping[str, object] | None = None,
    seed: SupportsIndex | None = None,
    spreadsheet_safe: bool = False,
    progress: Progress | None = None,
    others: Others | None = None,
) -> int:
    """Draw ``n`` synthetic records and write them; the path's ending chooses the form.

    Args:
        syn: A fitted synthesizer.
        path: ``.csv`` or ``.parquet`` for a table, or a folder of parts, which has no ending; ``.npz``, ``.png`` (a
            contact sheet) or a folder for images; ``.npz``, ``.csv`` or ``.parquet`` for series; a folder for related
            tables, a CSV file each.
        n: How many.
        given: Column -> value that every record must have.
        seed: Makes the records repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula, in CSV and Parquet.
        progress: Receives progress events.
        others: Which other processes draw, where a table is written in parts.

    Returns:
        How many records were written.

    Raises:
        SettingError: The ending is not of the data's kind, or a setting is out of its range.
    """
    size = counted(n)
    helped = others or Others()
    writer = WRITERS[syn.schema.kind]
    if writer.in_parts and not path.suffix:
        return write_parts(
            syn,
            path,
            size,
            given=given,
            seed=seeding.chosen(seed),
            spreadsheet_safe=spreadsheet_safe,
            run=helped.run,
            settings=helped.settings,
            processes=helped.processes,
            progress=progress,
        )
    if helped.processes > 1:
        remedy = "write a table to a folder, whose name has no ending"
        raise SettingError("draw the parts of a folder", field="processes", remedy=remedy)
    writer.check(path, size, spreadsheet_safe)
    chunks = _told(syn.sample_chunks(size, given=given, seed=seed), size, f"draw {path.name}", progress)
    return writer.write(chunks, path, syn.schema, size, spreadsheet_safe, syn.guarantee.about)


def write_released(
    syn: Synthesizer,
    folder: Path,
    form: str,
    n: SupportsIndex,
    *,
    seed: SupportsIndex | None = None,
    spreadsheet_safe: bool = False,
    progress: Progress | None = None,
) -> dict[str, int]:
    """Draw ``n`` synthetic records and write them into a bundle's folder.

    Args:
        syn: A fitted synthesizer.
        folder: The bundle's.
        form: A file ending, such as ``csv``.
        n: How many.
        seed: Makes the records repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        progress: Receives progress events.

    Returns:
        File -> how many records are in it.
    """
    size, writer = counted(n), WRITERS[syn.schema.kind]
    if writer.split is None:
        name = f"data.{form}"
        write_sample(syn, folder / name, n, seed=seed, spreadsheet_safe=spreadsheet_safe, progress=progress)
        return {name: size}
    chunks = _told(syn.sample_chunks(size, seed=seed), size, f"draw {form}", progress)
    return writer.split(chunks, folder, syn.schema, form, spreadsheet_safe, syn.guarantee.about)


def _told(chunks: Iterable[Any], n: int, name: str, progress: Progress | None) -> Iterator[Any]:
    """Yield the chunks, telling how many of the ``n`` records are there."""
    listener, done = progress or Silent(), 0
    listener.stage(name, n)
    for chunk in chunks:
        yield chunk
        done += len(chunk)
        listener.at(done)


# -- tables, images, series ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Writer:
    """How records of a kind are written.

    Attributes:
        forms: In which they are released, as file endings.
        check: Refuses a path, a number of records, or text to be defused, that it cannot write.
        write: Chunks, the path, the schema, the number, whether text is defused, and what is said of them to how many
            were written.
        in_parts: Whether a folder of parts can be written, too.
        split: The same into a folder, in a form, where records are released as several files: file -> how many rows.
        described: What the dictionary says beside columns, of a schema.
    """

    forms: tuple[str, ...]
    check: Callable[[Path, int, bool], None]
    write: Callable[[Iterable[Any], Path, Any, int, bool, dict[str, str]], int]
    in_parts: bool = False
    split: Callable[[Iterable[Any], Path, Any, str, bool, dict[str, str]], dict[str, int]] | None = None
    described: Callable[[Any], dict[str, Any]] = lambda schema: {}


def _check_images(path: Path, n: int, spreadsheet_safe: bool) -> None:
    if spreadsheet_safe:
        raise SettingError("is for tables", field="spreadsheet_safe", remedy="leave it out")
    images.check_ending(path, n)


def _described_images(schema: ImageSchema) -> dict[str, Any]:
    """Return how images are written."""
    arrays = {"images": "(n, height, width, channels), uint8", "labels": "(n,)"}
    shown = arrays if schema.columns else arrays["images"]
    return {"images": {"shape": list(schema.shape), "range": [0, 255], "arrays": shown}}


def _described_series(schema: SeriesSchema) -> dict[str, Any]:
    """Return how series are written: their steps, and which array or column holds what."""
    windows = schema.series
    described = {
        "length": schema.length,
        "step": windows.step if windows.time is not None else None,
        "timezone": windows.timezone,
        "channels": list(schema.channels),
        "attributes": list(schema.attributes),
        "ends": schema.ends_at,
        "arrays": {"values": "(n, length, channels), NaN for a missing step", "channels": "names"},
        "columns": {"series": "numbered from 1", "step": "numbered from 0", "clock": "of a day, where series are days"},
    }
    return {"series": described}


def _described_related(schema: RelationalSchema) -> dict[str, Any]:
    """Return how tables hang together: their keys, and how many rows of each a unit has at most."""
    facts = ("key", "parent", "foreign_key", "max_children", "order")
    described = {
        name: {"file": f"{name}.csv, {name}.parquet", "columns": list(table.columns)}
        | {fact: getattr(table, fact) for fact in facts if getattr(table, fact) is not None}
        for name, table in schema.tables.items()
    }
    return {"related": described}


def _split_related(
    chunks: Iterable[Any], folder: Path, schema: RelationalSchema, form: str, safe: bool, about: dict[str, str]
) -> dict[str, int]:
    return related.write_related(chunks, folder, schema, form=form, spreadsheet_safe=safe, metadata=about)


def _write_related(
    chunks: Iterable[Any], path: Path, schema: RelationalSchema, n: int, safe: bool, about: dict[str, str]
) -> int:
    return _split_related(chunks, path, schema, "csv", safe, about)[f"{schema.root}.csv"]


WRITERS = ByKind(
    "writer",
    table=Writer(
        forms=("csv", "parquet"),
        in_parts=True,
        check=lambda path, n, safe: tables.check_ending(path),
        write=lambda rows, path, schema, n, safe, about: tables.write_table(
            rows, path, schema, spreadsheet_safe=safe, metadata=about
        ),
    ),
    images=Writer(
        forms=("npz",),
        check=_check_images,
        write=lambda chunks, path, schema, n, safe, about: images.write_images(chunks, path, schema, n, about=about),
        described=_described_images,
    ),
    series=Writer(
        forms=("csv", "npz", "parquet"),
        check=lambda path, n, safe: series.check_ending(path),
        write=lambda chunks, path, schema, n, safe, about: series.write_series(
            chunks, path, schema, n, spreadsheet_safe=safe, about=about
        ),
        described=_described_series,
    ),
    relational=Writer(
        forms=("csv", "parquet"),
        check=lambda path, n, safe: related.check_folder(path),
        write=_write_related,
        split=_split_related,
        described=_described_related,
    ),
)
