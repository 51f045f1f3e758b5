"""Very many rows, as a folder of Parquet parts: drawn at bounded memory, by one process or several, the same rows.

Rows are drawn in chunks, each from the seed and its own number
(:meth:`doublure.run.synthesizer.Synthesizer.sample_chunks`), so that a part is the same whoever draws it, and a folder
holds the rows that one file would. Where rows have to be found by rejection, how many chunks a part takes is not known
beforehand, and one process draws them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from doublure.data.tables.writing import write_table
from doublure.errors import SettingError
from doublure.run.loading import load
from doublure.run.synthesizer import Synthesizer
from doublure.schema.kinds import KINDS
from doublure.support import seeding
from doublure.support.devices import chosen_device, use_device, use_threads
from doublure.support.files import Unwritable, holds_anything, whole_folder
from doublure.support.progress import Progress, Silent

PART_CHUNKS = 20


class _Asked(NamedTuple):
    """What every part is drawn from."""

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

    Args:
        syn: The synthesizer.
        out: The folder, which may be there if it is empty.
        n: How many rows, exactly.
        given: Column -> value that every row must have.
        seed: Makes the rows repeatable, whatever ``processes``.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula.
        run: Where other processes load the synthesizer from; needed for several.
        settings: Of sampling, with which they do.
        processes: How many draw.
        progress: Receives progress events.

    Returns:
        How many rows were written.

    Raises:
        SettingError: Several processes are asked for where one has to do.
        Unwritable: The folder holds something, or cannot be written.
    """
    if holds_anything(out):
        raise Unwritable(out, FileExistsError(17, "File exists"))
    asked = _Asked(n, seeding.chosen(seed), dict(given or {}), spreadsheet_safe)
    chunk = KINDS[syn.schema.kind].chunk
    listener, each = progress or Silent(), PART_CHUNKS * chunk
    listener.stage(f"draw {out.name}", n)
    with whole_folder(out) as folder:
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
    asked: _Asked,
    folder: Path,
    numbers: range,
    run: Path | None,
    settings: Mapping[str, object],
    processes: int,
) -> Iterator[int]:
    """Yield how many rows each part has."""
    if processes == 1:
        yield from (_part(syn, asked, folder, number) for number in numbers)
        return
    if run is None:
        raise SettingError("need the run's folder", field="processes", remedy="give run")
    from multiprocessing import get_context

    draw = partial(_part_elsewhere, str(run), dict(settings), chosen_device(), asked, str(folder))
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(draw, numbers)


_loaded: dict[str, Synthesizer] = {}


def _part_elsewhere(run: str, settings: dict[str, object], device: str, asked: _Asked, folder: str, number: int) -> int:
    """Draw a part in a process of its own, which loads the synthesizer once."""
    if run not in _loaded:
        use_threads(1)
        use_device(device)
        _loaded[run] = load(run).sampling_with(**settings)
    return _part(_loaded[run], asked, Path(folder), number)


def _part(syn: Synthesizer, asked: _Asked, folder: Path, number: int) -> int:
    chunks = syn.sample_chunks(asked.n, given=asked.given, seed=asked.seed, first=number * PART_CHUNKS)
    return _write(syn, asked, itertools.islice(chunks, PART_CHUNKS), folder, number)


def _in_turn(syn: Synthesizer, asked: _Asked, folder: Path, progress: Progress) -> int:
    chunks, done = syn.sample_chunks(asked.n, given=asked.given, seed=asked.seed), 0
    for number in itertools.count():
        if (first := next(chunks, None)) is None:
            return done
        own = itertools.chain([first], itertools.islice(chunks, PART_CHUNKS - 1))
        done += _write(syn, asked, own, folder, number)
        progress.at(done)
    raise AssertionError("unreachable")  # pragma: no cover


def _write(syn: Synthesizer, asked: _Asked, chunks: Iterable[Any], folder: Path, number: int) -> int:
    path = folder / f"part-{number:05}.parquet"
    about = syn.guarantee.about
    return write_table(chunks, path, syn.schema, spreadsheet_safe=asked.spreadsheet_safe, metadata=about)
