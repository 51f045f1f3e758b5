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
has numbers of 32 bits                 refused                             refused: nothing says which is black
=====================================  ==================================  ===========================================

A camera's orientation mark is always followed. No rule looks at more than one picture. A set with one picture that is
refused is refused as a whole, with counts and the rule (:mod:`doublure.data.images.faults`), never a file's name; with
``misfit: coerce``, that picture is left out.
"""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.images.faults import COLOURS, DEEP, HUGE, MOVING, NOT_FINITE, SIZE, SMALL, UNREADABLE, Faults
from doublure.data.images.records import Pixels
from doublure.schema.images import Pictures, Shape

if TYPE_CHECKING:
    from PIL import Image

LARGEST_PICTURE = 50_000_000
"""The most pixels that a picture may have before it is resized."""

LARGEST_FILE = 200_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF")
_WITH_FRAMES = ("PNG", "WEBP", "TIFF")  # a camera's JPEG may carry a preview as a second picture
_MODES = {1: "L", 3: "RGB"}
_PNG, _DEPTH = b"\x89PNG\r\n\x1a\n", 24  # where the bits of a sample stand
_PNG_END = b"IEND\xaeB`\x82"
_BITS_PER_SAMPLE, _BYTE = 258, 8  # a tag of TIFF


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
        self._range = rule.ends
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
                    return self._taken(picture, number, deep=_is_deep(content, picture))
        except Image.DecompressionBombError:
            return self._refused(HUGE, number)
        except Exception:  # a hostile file makes a decoder raise anything; its message could show what is in it
            return self._refused(UNREADABLE, number)

    def _taken(self, picture: Image.Image, number: int, *, deep: bool) -> Pixels:
        from PIL import ImageOps

        if picture.width * picture.height > LARGEST_PICTURE:
            return self._refused(HUGE, number)
        if getattr(picture, "is_animated", False) and picture.format in _WITH_FRAMES and not self._resize:
            return self._refused(MOVING, number)
        if picture.mode == "F" or (picture.mode == "I" and picture.format == "TIFF"):
            return self._refused(DEEP, number)
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


def _is_deep(content: bytes, picture: Image.Image) -> bool:
    """Whether a PNG or a TIFF says that it has more than 8 bits: of colours Pillow opens it as if it had eight."""
    if picture.format == "TIFF":
        bits = picture.tag_v2.get(_BITS_PER_SAMPLE, (1,))  # type: ignore[attr-defined]
        return bool(max(bits if isinstance(bits, tuple) else (bits,)) > _BYTE)
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
