"""One picture under the schema's public rule: as it is, converted and resized, or refused.

=====================================  ==================================  ===========================================
a picture that                         ``on_mismatch: refuse``             ``on_mismatch: resize``
=====================================  ==================================  ===========================================
cannot be read, or is cut off          refused                             refused
has more than 50 million pixels        refused, before it is unpacked      refused, before it is unpacked
has several frames                     refused                             its first frame
is smaller than the schema's crop      refused                             refused
has another size, once it is cropped   refused                             stretched to the schema's, antialiased
is grey for colour, or the reverse     refused                             converted
has a palette, transparency, 16 bits   refused                             converted; what is transparent turns white
=====================================  ==================================  ===========================================

A camera's orientation mark is always followed. No rule looks at more than one picture. A set with one picture that is
refused is refused as a whole, with counts and the rule, never a file's name; with ``misfit: coerce``, that picture is
left out.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.images.records import Pixels
from doublure.errors import DataError
from doublure.schema.images import Pictures, Shape

if TYPE_CHECKING:
    from PIL import Image

LARGEST_PICTURE = 50_000_000
"""The most pixels that a picture may have before it is resized."""

LARGEST_FILE = 200_000_000
FORMATS = ("PNG", "JPEG")
_MODES = {1: "L", 3: "RGB"}
_PNG, _DEPTH = b"\x89PNG\r\n\x1a\n", 24  # where the bits of a sample stand
_PNG_END = b"IEND\xaeB`\x82"

UNREADABLE = "cannot be read as PNG or JPEG, or are cut off"
HUGE = "have more than 50 million pixels"
MOVING = "have several frames"
SIZE = "have another size than the schema's shape"
SMALL = "have less than the schema's crop"
COLOURS = "have other colours than the schema's shape: grey, a palette, transparency or 16 bits"
NOT_FINITE = "hold numbers that are not finite"
_FIXED_BY_RESIZING = frozenset({MOVING, SIZE, COLOURS})


class Faults:
    """Which pictures broke which rule.

    Attributes:
        rows: Their places, from 0.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self.rows: list[int] = []

    def note(self, fault: str, number: int) -> None:
        """Count a picture; ``number`` is its place, from 1."""
        self._counts[fault] += 1
        self.rows.append(number - 1)

    def refuse(self, name: str) -> None:
        """Refuse the set if any picture broke a rule.

        Raises:
            DataError: Saying how many broke which rule.
        """
        if not self._counts:
            return
        said = "; ".join(f"{count} {_of(count, fault)}" for fault, count in sorted(self._counts.items()))
        fixed = set(self._counts) <= _FIXED_BY_RESIZING
        remedy = "fix or remove them" + (", or declare on_mismatch: resize" if fixed else "")
        raise DataError(f"of the images {said} (the first is number {min(self.rows) + 1})", field=name, remedy=remedy)


def _of(count: int, fault: str) -> str:
    """Return a fault of so many pictures."""
    if count > 1:
        return fault
    return fault.replace("have ", "has ", 1).replace("hold ", "holds ", 1).replace("or are cut", "or is cut")


class Reader:
    """Reads pictures under one schema's rule.

    Args:
        rule: The schema's ``images``.
        shape: Its shape.
    """

    def __init__(self, rule: Pictures, shape: Shape) -> None:
        self.faults = Faults()
        self._resize = rule.on_mismatch == "resize"
        self._crop = rule.crop
        self._range = rule.range
        self._height, self._width, self._channels = shape
        self.blank: Pixels = np.zeros(shape, dtype=np.uint8)

    # -- encoded pictures ----------------------------------------------------------------------------------------

    def decode(self, content: bytes | None, number: int) -> Pixels:
        """Return one picture ``(H, W, C)``; a blank one, and a fault noted, if the rule refuses it."""
        if content is None or len(content) > LARGEST_FILE:
            return self._refused(UNREADABLE if content is None else HUGE, number)
        if content.startswith(_PNG) and _PNG_END not in content:  # Pillow takes it once its pixels are there
            return self._refused(UNREADABLE, number)
        from PIL import Image

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what Pillow warns of is refused or repaired here
                with Image.open(io.BytesIO(content), formats=FORMATS) as picture:
                    return self._taken(picture, number, deep=_is_deep(content))
        except Image.DecompressionBombError:
            return self._refused(HUGE, number)
        except Exception:  # a hostile file makes a decoder raise anything; its message could show what is in it
            return self._refused(UNREADABLE, number)

    def _taken(self, picture: Image.Image, number: int, *, deep: bool) -> Pixels:
        from PIL import ImageOps

        if picture.width * picture.height > LARGEST_PICTURE:
            return self._refused(HUGE, number)
        # A camera's JPEG may carry a preview as a second picture; only PNG has frames.
        if getattr(picture, "is_animated", False) and picture.format == "PNG" and not self._resize:
            return self._refused(MOVING, number)
        if deep or picture.mode != _MODES[self._channels] or "transparency" in picture.info:
            if not self._resize:
                return self._refused(COLOURS, number)
            picture = _converted(picture, _MODES[self._channels])
        picture = ImageOps.exif_transpose(picture)
        return self._fitted(picture, number)

    def _fitted(self, picture: Image.Image, number: int) -> Pixels:
        from PIL import Image

        if self._crop is not None:
            height, width = self._crop
            if picture.height < height or picture.width < width:
                return self._refused(SMALL, number)
            left, top = (picture.width - width) // 2, (picture.height - height) // 2
            picture = picture.crop((left, top, left + width, top + height))
        if picture.size != (self._width, self._height):
            if not self._resize:
                return self._refused(SIZE, number)
            picture = picture.resize((self._width, self._height), Image.Resampling.BILINEAR)
        return np.asarray(picture, dtype=np.uint8).reshape(self.blank.shape)

    # -- arrays --------------------------------------------------------------------------------------------------

    def convert(self, block: np.ndarray[Any, Any], first: int) -> Pixels:
        """Return a block of an array, ``(B, h, w, c)``, as ``(B, H, W, C)`` uint8.

        Args:
            block: Numbers; the schema's range says which stand for black and full intensity, and those outside it
                count as its nearest end.
            first: The place of the block's first image, from 1.
        """
        pixels = self._scaled(block, first)
        if pixels.shape[1:] == self.blank.shape and self._crop is None:
            return pixels
        from PIL import Image

        rows = []
        for place, each in enumerate(pixels):
            picture = Image.fromarray(each[:, :, 0] if each.shape[2] == 1 else each)
            mode = _MODES[self._channels]
            if picture.mode != mode:
                if not self._resize:
                    rows.append(self._refused(COLOURS, first + place))
                    continue
                picture = _converted(picture, mode)
            rows.append(self._fitted(picture, first + place))
        return np.stack(rows) if rows else np.zeros((0, *self.blank.shape), dtype=np.uint8)

    def _scaled(self, block: np.ndarray[Any, Any], first: int) -> Pixels:
        lower, upper = self._range
        if block.dtype == np.uint8 and (lower, upper) == (0, 255):
            return block
        numbers = block.astype(np.float64)
        for row in np.flatnonzero(~np.isfinite(numbers).all(axis=(1, 2, 3))):
            self.faults.note(NOT_FINITE, first + int(row))
            numbers[row] = lower
        shares = (np.clip(numbers, lower, upper) - lower) / (upper - lower)
        return np.asarray(np.rint(255 * shares), dtype=np.uint8)

    def _refused(self, fault: str, number: int) -> Pixels:
        self.faults.note(fault, number)
        return self.blank


def _is_deep(content: bytes) -> bool:
    """Whether a PNG says in its header that it has 16 bits: of colours Pillow opens it as if it had eight."""
    return content.startswith(_PNG) and content[_DEPTH : _DEPTH + 1] == b"\x10"


def _converted(picture: Image.Image, mode: str) -> Image.Image:
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits of grey
        grey = np.clip(np.asarray(picture, dtype=np.float64) / 257, 0, 255)
        picture = Image.fromarray(np.rint(grey).astype(np.uint8))
    elif picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        seen = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")
    return picture.convert(mode)
