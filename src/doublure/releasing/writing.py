"""Writing a sample to a file, whatever the kind of data: streamed, at bounded memory, whole or not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, SupportsIndex

from doublure.errors import SettingError
from doublure.run.synthesizer import Synthesizer, counted
from doublure.schema.images import ImageSchema
from doublure.schema.series import SeriesSchema
from doublure.support.progress import Progress, Silent

FORMS: dict[str, tuple[str, ...]] = {
    "table": ("csv", "parquet"),
    "images": ("npz",),
    "series": ("csv", "npz", "parquet"),
}
"""Kind of data -> the forms in which it is released, as file endings."""


def write_sample(
    syn: Synthesizer,
    path: Path,
    n: SupportsIndex,
    *,
    given: Mapping[str, object] | None = None,
    seed: SupportsIndex | None = None,
    spreadsheet_safe: bool = False,
    progress: Progress | None = None,
) -> int:
    """Draw ``n`` synthetic records and write them; the path's ending chooses the form.

    Args:
        syn: A fitted synthesizer.
        path: ``.csv`` or ``.parquet`` for a table; ``.npz``, ``.png`` (a contact sheet) or a folder for images;
            ``.npz``, ``.csv`` or ``.parquet`` for series.
        n: How many.
        given: Column -> value that every record must have.
        seed: Makes the records repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula, in CSV and Parquet.
        progress: Receives progress events.

    Returns:
        How many records were written.

    Raises:
        SettingError: The ending is not of the data's kind, or a setting is out of its range.
    """
    about = syn.guarantee.about
    size = counted(n)
    if isinstance(syn.schema, ImageSchema):
        from doublure.data.images.writing import check_ending, write_images

        if spreadsheet_safe:
            raise SettingError("is for tables", field="spreadsheet_safe", remedy="leave it out")
        check_ending(path, size)
        chunks = _told(syn.sample_chunks(size, given=given, seed=seed), size, f"draw {path.name}", progress)
        return write_images(chunks, path, syn.schema, size, about=about)
    if isinstance(syn.schema, SeriesSchema):
        from doublure.data.series import writing

        writing.check_ending(path)
        series = _told(syn.sample_chunks(size, given=given, seed=seed), size, f"draw {path.name}", progress)
        return writing.write_series(series, path, syn.schema, size, spreadsheet_safe=spreadsheet_safe, about=about)
    from doublure.data.tables.writing import check_ending as check
    from doublure.data.tables.writing import write_table

    check(path)
    rows = _told(syn.sample_chunks(size, given=given, seed=seed), size, f"draw {path.name}", progress)
    return write_table(rows, path, syn.schema, spreadsheet_safe=spreadsheet_safe, metadata=about)


def _told(chunks: Iterable[Any], n: int, name: str, progress: Progress | None) -> Iterator[Any]:
    """Yield the chunks, telling how many of the ``n`` records are there."""
    listener, done = progress or Silent(), 0
    listener.stage(name, n)
    for chunk in chunks:
        yield chunk
        done += len(chunk)
        listener.at(done)
