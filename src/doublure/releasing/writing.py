"""Writing samples of any kind of data, streamed in bounded memory and atomically."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from doublure.data.images import writing as images
from doublure.data.relational import writing as related
from doublure.data.series import writing as series
from doublure.data.tables import writing as tables
from doublure.data.tables.writing import write_table
from doublure.errors import SettingError, counted
from doublure.run.loading import load
from doublure.run.synthesizer import Synthesizer, require_count
from doublure.schema import Schema
from doublure.schema.fact_states import plain
from doublure.schema.images import LABEL, LABELS, ImageSchema
from doublure.schema.kinds import KINDS, ByKind
from doublure.schema.relational import RelationalSchema
from doublure.schema.scalars import whole
from doublure.schema.series import SeriesSchema
from doublure.schema.visits import VisitsSchema
from doublure.support import seeding
from doublure.support.devices import chosen_device, use_device, use_threads
from doublure.support.files import Unwritable, holds_anything, staged_folder
from doublure.support.progress import Progress, SilentProgress

if TYPE_CHECKING:
    import pandas as pd

PART_CHUNKS = 20


@dataclass(frozen=True, kw_only=True)
class WorkerProcesses:
    """Processes that draw parts.

    Attributes:
        run: The run folder from which they load the synthesizer.
        settings: Settings of sampling.
        processes: Their number.
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
    others: WorkerProcesses | None = None,
    steps: int | None = None,
    exogenous: pd.DataFrame | None = None,
) -> int:
    """Draw ``n`` synthetic records and write them; the path's ending chooses the form.

    Args:
        syn: A fitted synthesizer.
        path: ``.csv``, ``.parquet``, ``.xlsx``, ``.jsonl``, ``.feather``, ``.dta`` or ``.sav`` for a table, or a folder
            of parts, which has no ending; ``.npz``, ``.png`` (a contact sheet) or a folder for images; ``.npz``, or as
            a table, for series; a folder for related tables, a CSV file each.
        n: How many.
        given: Column -> value that every record must have.
        seed: Makes the records repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula, in CSV and Parquet.
        progress: Receives progress events.
        others: Processes that draw, where a table is written in parts.
        steps: Steps of each time series, which then goes on from window to window; None: a series is one window.
        exogenous: Public readings for series that go on; None: the schema's.

    Returns:
        How many records were written.

    Raises:
        SettingError: The ending is not of the data's kind, or a setting is out of its range.
    """
    size = require_count(n)
    helped = others or WorkerProcesses()
    writer = WRITERS[syn.schema.kind]
    if writer.in_parts and not path.suffix and steps is None:
        return write_parts(
            syn,
            path,
            size,
            given=given,
            seed=seeding.choose_seed(seed),
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
    drawn = _DrawnCount(size, _stage(path.name, syn.schema, steps), progress)
    if exogenous is not None and steps is None:
        raise SettingError("are for series that go on", field="exogenous", remedy="say how many steps")
    if steps is None:
        chunks = syn.sample_chunks(size, given=given, seed=seed, told=drawn.more)
    else:
        chunks = syn.draw_steps(size, steps, given=given, seed=seed, exogenous=exogenous)
    return writer.write(drawn.passing(chunks), path, syn.schema, size, spreadsheet_safe, syn.guarantee.about)


def records_in_words(schema: Schema, steps: int | None = None) -> str:
    """Return what a kind's records are called; of series with the rows of each.

    Args:
        schema: Every fact known.
        steps: Of each series, where it goes on; None: as the schema says.
    """
    return f"{KINDS[schema.kind].records}{WRITERS[schema.kind].each(schema, steps)}"


def _stage(name: str, schema: Schema, steps: int | None = None) -> str:
    each = WRITERS[schema.kind].each(schema, steps)
    return f"draw {name}, {records_in_words(schema, steps)}" if each else f"draw {name}"


def write_syntheses(
    syn: Synthesizer,
    paths: Sequence[Path],
    n: SupportsIndex,
    *,
    seed: SupportsIndex | None = None,
    spreadsheet_safe: bool = False,
    progress: Progress | None = None,
) -> int:
    """Draw as many syntheses of ``n`` rows as there are paths, and write each; a path's ending chooses its form.

    Args:
        syn: A synthesizer whose fit bought tables.
        paths: Files, as :func:`write_sample` takes them.
        n: Rows of each.
        seed: Makes the rows repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        progress: Receives progress events.

    Returns:
        How many rows each has.

    Raises:
        SettingError: There are no syntheses of this fit, or an ending is not of tables.
    """
    size, writer = require_count(n), WRITERS[syn.schema.kind]
    for path in paths:
        writer.check(path, size, spreadsheet_safe)
    drawn = _DrawnCount(size * len(paths), f"draw {counted(len(paths), 'synthetic table')}", progress)
    told = drawn.passing(syn.draw_syntheses(size, len(paths), seed))
    for path, rows in zip(paths, told, strict=True):
        writer.write([rows], path, syn.schema, size, spreadsheet_safe, syn.guarantee.about)
    return size


def write_released(
    syn: Synthesizer,
    folder: Path,
    form: str,
    n: SupportsIndex,
    *,
    seed: SupportsIndex | None = None,
    spreadsheet_safe: bool = False,
    progress: Progress | None = None,
    kept: KeptChunks | None = None,
) -> dict[str, int]:
    """Draw ``n`` synthetic records and write them into a bundle's folder.

    Args:
        syn: A fitted synthesizer.
        folder: The bundle's folder.
        form: A file ending, such as ``csv``.
        n: How many.
        seed: Makes the records repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        progress: Receives progress events.
        kept: What was drawn for another form, and is not drawn again.

    Returns:
        File -> its number of records.
    """
    size, writer = require_count(n), WRITERS[syn.schema.kind]
    name = f"data.{form}"
    drawn = _DrawnCount(size, _stage(name, syn.schema) if writer.split is None else f"draw {form}", progress)
    chunks = drawn.passing((kept or KeptChunks()).of(partial(syn.sample_chunks, size, seed=seed, told=drawn.more)))
    if writer.split is not None:
        return writer.split(chunks, folder, syn.schema, form, spreadsheet_safe, syn.guarantee.about)
    writer.check(folder / name, size, spreadsheet_safe)
    writer.write(chunks, folder / name, syn.schema, size, spreadsheet_safe, syn.guarantee.about)
    return {name: size}


class KeptChunks:
    """Chunks that are drawn once and written in several forms, as long as they take no more memory than given.

    Args:
        held: Returns the bytes that a chunk takes; None: nothing is kept.
        most: Bytes for all of them.
    """

    def __init__(self, held: Callable[[Any], int] | None = None, most: int = 0) -> None:
        self._held, self._room = held, most
        self._chunks: list[Any] | None = None

    def of(self, draw: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Yield the chunks: those that are kept, or new ones."""
        if self._chunks is not None:
            yield from self._chunks
            return
        found, room = list[Any](), self._room
        for chunk in draw():
            if self._held is not None and room >= 0:
                room -= self._held(chunk)
                found.append(chunk)
                if room < 0:
                    found.clear()
            yield chunk
        self._chunks = None if self._held is None or room < 0 else found


class _DrawnCount:
    """Tells how many records are drawn.

    Args:
        n: All of them.
        name: The stage's name.
        progress: Receives progress events.
    """

    def __init__(self, n: int, name: str, progress: Progress | None) -> None:
        self._n, self._name, self._listener = n, name, progress or SilentProgress()
        self._done = 0.0

    def more(self, records: float) -> None:
        """So many more are drawn, which no chunk holds yet."""
        self._done += records
        self._listener.at(min(self._n, int(self._done)))

    def passing(self, chunks: Iterable[Any]) -> Iterator[Any]:
        """Yield the chunks, and tell how many records they hold."""
        self._listener.stage(self._name, self._n)
        done = 0
        for chunk in chunks:
            yield chunk
            done += len(chunk)
            self._done = done
            self._listener.at(done)


# -- tables, images, series ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Writer:
    """Writes the records of a kind.

    Attributes:
        forms: The forms of a release, as file endings; all of them where none is asked for.
        check: Refuses a path, a number of records or a defusing of text that it cannot write.
        write: Takes chunks, the path, the schema, the number, whether text is defused, and metadata; returns the number
            of records written.
        others: Further forms, written where they are asked for.
        in_parts: Whether a folder of parts can be written, too.
        each: Takes a schema and the steps of series that go on; returns what messages add on the rows of a record.
        held: Returns the bytes that a chunk takes, where it can be kept for another form.
        split: Writes a folder, in a form, where a release has several files; returns file -> number of rows.
        described: Takes a schema; returns the dictionary's entries besides columns.
    """

    forms: tuple[str, ...]
    check: Callable[[Path, int, bool], None]
    write: Callable[[Iterable[Any], Path, Any, int, bool, dict[str, str]], int]
    others: tuple[str, ...] = ()
    in_parts: bool = False
    split: Callable[[Iterable[Any], Path, Any, str, bool, dict[str, str]], dict[str, int]] | None = None
    held: Callable[[Any], int] | None = None
    each: Callable[[Any, int | None], str] = lambda schema, steps: ""
    described: Callable[[Any], dict[str, Any]] = lambda schema: {}


def _check_images(path: Path, n: int, spreadsheet_safe: bool) -> None:
    if spreadsheet_safe:
        raise SettingError("is for tables", field="spreadsheet_safe", remedy="leave it out")
    images.check_ending(path, n)


def _described_images(schema: ImageSchema) -> dict[str, Any]:
    """Return the shape, range and arrays of images."""
    rule = schema.images
    pixels = f"(n, height, width, channels), {rule.stored}"
    beside = {LABELS if name == LABEL else name: "(n,)" for name in schema.columns}
    shown = {"images": pixels} | beside if beside else pixels
    held = {"dtype": rule.stored} if rule.deep else {}
    return {"images": {"shape": list(schema.shape), "range": [*map(whole, rule.ends)], **held, "arrays": shown}}


def _described_series(schema: SeriesSchema) -> dict[str, Any]:
    """Return the steps of series, and the contents of their arrays and columns."""
    windows = schema.series
    described: dict[str, Any] = {
        "length": schema.length,
        "step": windows.step if windows.time is not None else None,
        "timezone": windows.timezone,
        "channels": list(schema.channels),
        "attributes": list(schema.attributes),
        "ends": schema.ends_at,
        "arrays": {"values": "(n, length, channels), NaN for a missing step", "channels": "names"},
        "columns": {"series": "numbered from 1", "step": "numbered from 0", "clock": "of a day, where series are days"},
    }
    if windows.stamp == "end":
        described["stamp"] = windows.stamp
        described["columns"]["clock"] = "when a step ends, where series are days"
    if schema.stamps:
        day = windows.time_of_day is not None
        described["stamps"] = {
            "time": windows.time,
            "type": "date" if day else "datetime",
            "of_series": list(schema.names_of_series),
        }
        described["stamps"] |= {"time_of_day": windows.time_of_day} if day else {}
        described["columns"] = {"series": "numbered from 1", "step": "numbered from 0"} | _stamps_in_words(schema)
    return {"series": described}


def _stamps_in_words(schema: SeriesSchema) -> dict[str, str]:
    """Return what the columns of stamped series mean: the end of a step that is stamped, and the made-up calendar."""
    windows = schema.series
    moment = f"when a step {'ends' if windows.stamp == 'end' else 'begins'}"
    followed = [name for name, each in schema.attributes.items() if each.from_time is not None]
    fitting = f" that fit {', '.join(followed)}" if followed else ""
    made_up = f"the date is made up: series take days from {windows.stamped_from} on{fitting}"
    found = dict.fromkeys(schema.names_of_series, "the number of the series")
    if windows.time_of_day is None:
        return found | {str(windows.time): f"{moment}; {made_up}"}
    return found | {str(windows.time): made_up, windows.time_of_day: moment}


def _described_related(schema: RelationalSchema) -> dict[str, Any]:
    """Return the keys of related tables, and the most rows that a unit has in each."""
    facts = ("key", "parent", "foreign_key", "max_children", "order", "references")
    described = {
        name: {"file": name, "columns": list(table.columns)}
        | {fact: getattr(table, fact) for fact in facts if getattr(table, fact) is not None}
        | ({"links": {own: plain(link) for own, link in table.links.items()}} if table.links else {})
        | ({"constraints": [plain(rule) for rule in table.constraints]} if table.constraints else {})
        for name, table in schema.tables.items()
    }
    described |= {
        name: {"file": name, "columns": list(table.columns), "key": table.key, "public": True}
        for name, table in (schema.public or {}).items()
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


def _described_visits(schema: VisitsSchema) -> dict[str, Any]:
    """Return the id that names units, and what stays the same within one."""
    unit = schema.unit
    described = {"name": unit.name, "id": unit.id, "per_unit": list(unit.per_unit), "max_records": unit.max_records}
    return {"unit": described | ({} if unit.order is None else {"order": unit.order})}


def _series_rows(schema: SeriesSchema, steps: int | None) -> str:
    most = "at most " if steps is None and schema.ends_at else ""
    return f" (of {most}{counted(schema.length if steps is None else steps, 'row')} each)"


def _frame_bytes(rows: pd.DataFrame) -> int:
    return int(rows.memory_usage(deep=True).sum())


_OF_ROWS = ("xlsx", "jsonl", "feather", "dta", "sav")
_ROWS = Writer(
    forms=("csv", "parquet"),
    others=_OF_ROWS,
    in_parts=True,
    check=lambda path, n, safe: tables.check_ending(path),
    held=_frame_bytes,
    write=lambda rows, path, schema, n, safe, about: tables.write_table(
        rows, path, schema, spreadsheet_safe=safe, metadata=about
    ),
)
WRITERS = ByKind(
    "writer",
    table=_ROWS,
    visits=replace(_ROWS, described=_described_visits),
    images=Writer(
        forms=("npz",),
        check=_check_images,
        write=lambda chunks, path, schema, n, safe, about: images.write_images(chunks, path, schema, n, about=about),
        described=_described_images,
    ),
    series=Writer(
        forms=("csv", "npz", "parquet"),
        others=_OF_ROWS,
        check=lambda path, n, safe: series.check_ending(path),
        held=lambda chunk: chunk.values.nbytes + _frame_bytes(chunk.attributes),
        each=_series_rows,
        write=lambda chunks, path, schema, n, safe, about: series.write_series(
            chunks, path, schema, n, spreadsheet_safe=safe, about=about
        ),
        described=_described_series,
    ),
    relational=Writer(
        forms=("csv", "parquet"),
        others=_OF_ROWS,
        check=lambda path, n, safe: related.check_folder(path),
        write=_write_related,
        split=_split_related,
        described=_described_related,
    ),
)


# -- very many rows, as a folder of Parquet parts: by one process or several, the same rows ----------------------------


class _RowRequest(NamedTuple):
    """A request for rows, the same for every part."""

    n: int
    seed: int
    given: Mapping[str, object]
    spreadsheet_safe: bool


def write_parts(
    syn: Synthesizer,
    out: Path,
    n: int,
    *,
    given: Mapping[str, object] | None = None,
    seed: int | None = None,
    spreadsheet_safe: bool = False,
    run: Path | None = None,
    settings: Mapping[str, object] | None = None,
    processes: int = 1,
    progress: Progress | None = None,
) -> int:
    """Draw ``n`` rows of a table into a new folder of parts, whole or not there.

    Each chunk is drawn from the seed and its own number, so that a part is the same in any process, and a folder holds
    the rows that one file would. Rejection sampling needs an unknown number of chunks a part, so one process draws all.

    Args:
        syn: The synthesizer.
        out: The folder, which may be there if it is empty.
        n: How many rows, exactly.
        given: Column -> value that every row must have.
        seed: Makes the rows repeatable, whatever ``processes``.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        run: The run folder from which other processes load the synthesizer; needed for several.
        settings: Settings of sampling in those processes.
        processes: The number of processes.
        progress: Receives progress events.

    Returns:
        How many rows were written.

    Raises:
        SettingError: Several processes are asked for where one has to do.
        Unwritable: The folder holds something, or cannot be written.
    """
    if holds_anything(out):
        raise Unwritable(out, FileExistsError(17, "File exists"))
    asked = _RowRequest(n, seeding.choose_seed(seed), dict(given or {}), spreadsheet_safe)
    chunk = KINDS[syn.schema.kind].chunk
    listener, each = progress or SilentProgress(), PART_CHUNKS * chunk
    listener.stage(f"draw {out.name}", n)
    with staged_folder(out) as folder:
        if syn.by_rejection(asked.given):
            if processes > 1:
                remedy = "leave it out, or give the columns the role condition"
                raise SettingError("must be 1 where rows are found by rejection", field="processes", remedy=remedy)
            return _in_turn(syn, asked, folder, listener)
        numbers, done = range(max(1, -(-n // each))), 0
        for rows in _written(syn, asked, folder, numbers, run, settings or {}, processes):
            done += rows
            listener.at(done)
        return done


def _written(
    syn: Synthesizer,
    asked: _RowRequest,
    folder: Path,
    numbers: range,
    run: Path | None,
    settings: Mapping[str, object],
    processes: int,
) -> Iterator[int]:
    """Yield the number of rows of each part."""
    if processes == 1:
        yield from (_part(syn, asked, folder, number) for number in numbers)
        return
    if run is None:
        raise SettingError("need the run's folder", field="processes", remedy="give run")
    from multiprocessing import get_context

    draw = partial(_draw_part, str(run), dict(settings), chosen_device(), asked, str(folder))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(draw, numbers)


_loaded: dict[str, Synthesizer] = {}


def _draw_part(run: str, settings: dict[str, object], device: str, asked: _RowRequest, folder: str, number: int) -> int:
    """Draw a part in a process of its own, which loads the synthesizer once."""
    if run not in _loaded:
        use_threads(1)
        use_device(device)
        _loaded[run] = load(run).sampling_with(**settings)
    return _part(_loaded[run], asked, Path(folder), number)


def _part(syn: Synthesizer, asked: _RowRequest, folder: Path, number: int) -> int:
    chunks = syn.sample_chunks(asked.n, given=asked.given, seed=asked.seed, first=number * PART_CHUNKS)
    return _write(syn, asked, itertools.islice(chunks, PART_CHUNKS), folder, number)


def _in_turn(syn: Synthesizer, asked: _RowRequest, folder: Path, progress: Progress) -> int:
    chunks, done = syn.sample_chunks(asked.n, given=asked.given, seed=asked.seed), 0
    for number in itertools.count():
        if (first := next(chunks, None)) is None:
            return done
        own = itertools.chain([first], itertools.islice(chunks, PART_CHUNKS - 1))
        done += _write(syn, asked, own, folder, number)
        progress.at(done)
    raise AssertionError("unreachable")  # pragma: no cover


def _write(syn: Synthesizer, asked: _RowRequest, chunks: Iterable[Any], folder: Path, number: int) -> int:
    path = folder / f"part-{number:05}.parquet"
    about = syn.guarantee.about
    return write_table(chunks, path, syn.schema, spreadsheet_safe=asked.spreadsheet_safe, metadata=about)
