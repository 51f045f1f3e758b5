"""Writing a sample to a file, whatever the kind of data: streamed, at bounded memory, whole or not there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import SupportsIndex

from doublure._version import __version__
from doublure.errors import SettingError
from doublure.schema.images import ImageSchema
from doublure.synthesizer import Synthesizer, counted

FORMS: dict[str, tuple[str, ...]] = {"table": ("csv", "parquet"), "images": ("npz",)}
"""Kind of data -> the forms in which it is released, as file endings."""


def write_sample(
    syn: Synthesizer,
    path: Path,
    n: SupportsIndex,
    *,
    given: Mapping[str, object] | None = None,
    seed: SupportsIndex | None = None,
    spreadsheet_safe: bool = False,
) -> int:
    """Draw ``n`` artificial records and write them; the path's ending chooses the form.

    Args:
        syn: A fitted understudy.
        path: ``.csv`` or ``.parquet`` for a table; ``.npz``, ``.png`` (a contact sheet) or a folder for images.
        n: How many.
        given: Column -> value that every record must have.
        seed: Makes the records repeatable.
        spreadsheet_safe: Defuse text that a spreadsheet would run as a formula; for tables.

    Returns:
        How many records were written.

    Raises:
        SettingError: The ending is not of the data's kind, or a setting is out of its range.
    """
    about = {"doublure": __version__, "watermark": syn.guarantee.watermark, "guarantee": syn.guarantee.sentence}
    size = counted(n)
    if isinstance(syn.schema, ImageSchema):
        from doublure.data.images.writing import check_ending, write_images

        if spreadsheet_safe:
            raise SettingError("is for tables", field="spreadsheet_safe", remedy="leave it out")
        check_ending(path, size)
        chunks = syn.sample_chunks(size, given=given, seed=seed)
        return write_images(chunks, path, syn.schema, size, about=about)
    from doublure.data.writing import check_ending as check
    from doublure.data.writing import write_table

    check(path)
    rows = syn.sample_chunks(size, given=given, seed=seed)
    return write_table(rows, path, syn.schema, spreadsheet_safe=spreadsheet_safe, metadata=about)
