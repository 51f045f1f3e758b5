"""Writing synthetic images: NPZ, a folder of PNG files by class, or a contact sheet; streamed, whole or not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pandas as pd

from doublure.data import npz
from doublure.data.images.files import folder_name
from doublure.data.images.records import Images, Pixels, columns_beside, in_range
from doublure.data.images.sheets import MOST_ON_A_SHEET, contact_sheet, picture_of, png, rows_of
from doublure.errors import SettingError
from doublure.schema.images import LABEL, LABELS, ImageSchema, Pictures
from doublure.support import files
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    from PIL import Image

FORMATS = (".npz", ".png")
FILE, LIST = "file", "images.csv"
"""The column of files' names, and the table of them that stands in a folder of images with attributes."""


def write_images(chunks: Iterable[Images], path: Path, schema: ImageSchema, n: int, *, about: Mapping[str, str]) -> int:
    """Write images to ``path`` as they come; its ending chooses the form.

    ==========  ======================================================================================================
    ``.npz``    ``images`` ``(n, H, W, C)`` of the schema's range and type, ``labels`` ``(n,)``, and each text of
                ``about``
    ``.png``    a contact sheet, one class after another, from black to full intensity
    no ending   a folder of PNG files, one folder a class: 8 bits, or 16 of grey, of the schema's range; attributes are
                listed beside the files' names in ``images.csv``
    ==========  ======================================================================================================

    Args:
        chunks: The images.
        path: Where to.
        schema: Supplies the shape and the classes' order.
        n: How many images there will be.
        about: Public texts to keep with them, the watermark among them.

    Returns:
        How many images were written.

    Raises:
        SettingError: The ending is of another form, or a sheet would hold too many.
        InputError: The folder is not empty, or cannot be written.
    """
    check_ending(path, n)
    if path.suffix == ".npz":
        files.write_atomic(path, lambda file: _write_npz(chunks, file, schema, n, about))
    elif path.suffix == ".png":
        sheet = png(sheet_of(Images.joined(list(chunks)), schema, about), dict(about))
        files.write_atomic(path, lambda file: file.write(sheet))
    else:
        _write_folder(chunks, path, schema, about)
    return n


def check_ending(path: Path, n: int) -> None:
    """Refuse a name whose ending chooses no form, or where nothing can be written, before there is anything to write.

    Raises:
        SettingError: Naming the endings that do.
        Unwritable: A file's folder is missing or may not be written.
    """
    if path.suffix not in ("", *FORMATS):
        remedy = "end it in .npz or .png, or name a folder without an ending"
        raise SettingError("has no known ending for images", field=path.name, remedy=remedy)
    if path.suffix == ".png" and n > MOST_ON_A_SHEET:
        raise SettingError(f"holds at most {MOST_ON_A_SHEET} images", field=path.name, remedy="write .npz or a folder")
    if path.suffix:
        files.refuse_unwritable(path)
    elif files.holds_anything(path):
        raise SettingError("is not empty", field=path, remedy="choose another -o")


def sheet_of(images: Images, schema: ImageSchema, about: Mapping[str, str]) -> Any:
    """Return the contact sheet of synthetic images."""
    order = () if schema.label is None else schema.label.domain
    return contact_sheet(rows_of(images, order), about.get("watermark", "Synthetic images"))


# -- NPZ -------------------------------------------------------------------------------------------------------------


def _write_npz(chunks: Iterable[Images], file: BinaryIO, schema: ImageSchema, n: int, about: Mapping[str, str]) -> None:
    parts: list[pd.DataFrame] = []

    def blocks() -> Iterator[np.ndarray[Any, Any]]:
        for chunk in chunks:
            yield in_range(chunk.images, schema.images)
            parts.append(columns_beside(chunk))

    def beside() -> dict[str, Any]:
        columns = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
        named = columns.rename(columns={LABEL: LABELS})
        return {str(name): npz.plain(cells) for name, cells in named.items()} | dict(about)

    npz.write(
        file, "images", npz.Header(shape=(n, *schema.shape), dtype=np.dtype(schema.images.stored)), blocks(), beside
    )


# -- folders ---------------------------------------------------------------------------------------------------------


def _write_folder(chunks: Iterable[Images], path: Path, schema: ImageSchema, about: Mapping[str, str]) -> None:
    number, listed = 0, list[pd.DataFrame]()
    with files.staged_folder(path) as whole:
        for chunk in chunks:
            names = list[str]()
            for place, pixels in enumerate(chunk.images):
                number += 1
                folder = whole if chunk.labels is None else whole / folder_name(chunk.labels.iloc[place])
                folder.mkdir(exist_ok=True)
                file = folder / f"{number:08d}.png"
                file.write_bytes(png(_filed(pixels, schema.images), dict(about)))
                names.append(file.relative_to(whole).as_posix())
            listed.append(with_columns(columns_beside(chunk), {FILE: names}))
        table = pd.concat(listed, ignore_index=True) if listed else pd.DataFrame()
        if schema.attributes.keys() & {*table.columns}:
            table[[FILE, *table.columns.drop(FILE)]].to_csv(whole / LIST, index=False, lineterminator="\n")


def _filed(pixels: Pixels, rule: Pictures) -> Image.Image:
    """Return one image as its file holds it: in the range's numbers where PNG has them, else from black to white."""
    from PIL import Image

    if rule.stored == "uint8" or (rule.stored == "uint16" and pixels.shape[2] == 1):
        numbers = in_range(pixels, rule)
        return Image.fromarray(numbers[:, :, 0] if numbers.shape[2] == 1 else numbers)
    return picture_of(pixels)
