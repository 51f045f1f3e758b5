"""Contact sheets: images in rows, labelled, under a line that says what they are."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from doublure.data.images.records import Images, Pixels, as_bytes
from doublure.errors import printable
from doublure.schema.columns import label
from doublure.schema.images import ImageSchema

if TYPE_CHECKING:
    from PIL import Image
    from PIL.ImageFont import FreeTypeFont

MOST_ON_A_SHEET = 5_000
_ROW = 20
_GAP = 2
_SMALLEST = 40
_MARGIN = 12
_FONT = 14
_LONGEST_LABEL = 18
_MANY_CLASSES = 40
_PAPER, _INK, _FAINT = (252, 252, 251), (28, 37, 49), (95, 105, 120)


def rows_of(images: Images, order: Sequence[object]) -> list[tuple[str, Pixels]]:
    """Return the rows of a sheet: a class's images, twenty a row; rows without a name where there are no labels.

    Args:
        images: What is shown.
        order: The classes, in the schema's order; one without images has no row.
    """
    if images.labels is None:
        groups = [("", images.images)]
    else:
        labels = np.array([label(value) for value in images.labels], dtype=object)
        groups = [(label(value), images.images[labels == label(value)]) for value in order]
    return [
        (name if first == 0 else "", pixels[first : first + _ROW])
        for name, pixels in groups
        for first in range(0, len(pixels), _ROW)
    ]


def examples(images: Images, schema: ImageSchema, most: int = _ROW) -> Images:
    """Return the first images of each class, at most a row of them."""
    if images.labels is None:
        return images.take(slice(5 * most))
    place = images.labels.groupby(images.labels, observed=True).cumcount().to_numpy()
    few = 1 if schema.label is not None and len(schema.label.domain) > _MANY_CLASSES else most
    return images.take(np.flatnonzero(place < few))


def contact_sheet(rows: Sequence[tuple[str, Pixels]], title: str) -> Image.Image:
    """Draw a sheet.

    Args:
        rows: A row's label, and its images ``(B, H, W, C)``.
        title: What stands above them: what these images are, and what may be claimed.
    """
    from PIL import Image, ImageDraw

    font = _font()
    shapes = [pixels.shape for _, pixels in rows if len(pixels)]
    height, width, _ = shapes[0][1:] if shapes else (_SMALLEST, _SMALLEST, 1)
    scale = max(1, -(-_SMALLEST // max(height, width)))
    cell_w, cell_h = width * scale + _GAP, height * scale + _GAP
    names = [_short(name) for name, _ in rows]
    widest = max((font.getlength(name) for name in names), default=0)
    left = _MARGIN + (int(widest) + _MARGIN if widest else 0)
    columns = max((shape[0] for shape in shapes), default=1)
    lines = _wrapped(title, font.getlength, max(left + columns * cell_w - 2 * _MARGIN, 300))
    top = _MARGIN + len(lines) * (_FONT + 6) + _MARGIN
    size = (max(left + columns * cell_w + _MARGIN, 324), top + max(1, len(rows)) * cell_h + _MARGIN)
    sheet = Image.new("RGB", size, _PAPER)
    draw = ImageDraw.Draw(sheet)
    for number, line in enumerate(lines):
        draw.text((_MARGIN, _MARGIN + number * (_FONT + 6)), line, fill=_INK, font=font)
    for number, (name, (_, pixels)) in enumerate(zip(names, rows, strict=True)):
        y = top + number * cell_h
        draw.text((_MARGIN, y + (cell_h - _GAP) // 2), name, fill=_FAINT, font=font, anchor="lm")
        for place, each in enumerate(pixels):
            picture = picture_of(each).convert("RGB").resize((width * scale, height * scale), Image.Resampling.NEAREST)
            sheet.paste(picture, (left + place * cell_w, y))
    return sheet


def picture_of(pixels: Pixels) -> Image.Image:
    """Return one image ``(H, W, C)`` to be looked at: 8 bits, from black to full intensity."""
    from PIL import Image

    shown = as_bytes(pixels)
    return Image.fromarray(shown[:, :, 0] if shown.shape[2] == 1 else shown)


def png(picture: Image.Image, about: dict[str, str] | None = None) -> bytes:
    """Return a picture as PNG, with what is to be said about it as text of the file."""
    from PIL.PngImagePlugin import PngInfo

    texts = PngInfo()
    for key, value in (about or {}).items():
        texts.add_itxt(key, value)
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG", pnginfo=texts)
    return buffer.getvalue()


def _font() -> FreeTypeFont:
    """Return the letters of a sheet: those that come with matplotlib, which has Greek and Cyrillic ones too."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), _FONT)


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= _LONGEST_LABEL else shown[: _LONGEST_LABEL - 1] + "…"


def _wrapped(text: str, measure: object, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and measure(longer) > width:  # type: ignore[operator]
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
