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
has a palette, transparency            refused                             converted; what is transparent turns white
has 16 bits where the range has 8      refused                             converted: 65,535 is full intensity
has 8 bits where the range has 16      refused                             converted: 255 is full intensity
has colours of 16 bits                 refused                             converted to 8 bits if the range is all 16
has numbers of 32 bits                 refused                             refused: nothing says which is black
=====================================  ==================================  ===========================================

Numbers of a picture that is taken as it is count by the schema's range, as those of arrays do. Pictures hold no real or
signed numbers: where the range has such, 255 or 65,535 in a picture is full intensity.

A camera's orientation mark is always followed. No rule looks at more than one picture. A set with one picture that is
refused is refused as a whole, with counts and the rule, never a file's name (an internal list has it); with
``misfit: coerce``, that picture is left out.
"""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.images.records import LEVELS, Pixels, as_bytes
from doublure.errors import Fault, FaultyRecords
from doublure.schema.images import Pictures, Shape

if TYPE_CHECKING:
    from PIL import Image

UNREADABLE = "cannot be read as PNG, JPEG, WebP, BMP or TIFF, or are cut off"
HUGE = "have more than 50 million pixels"
MOVING = "have several frames"
SIZE = "have another size than the schema's shape"
SMALL = "have less than the schema's crop"
COLOURS = "have other colours than the schema's shape: grey, a palette, transparency or 16 bits"
DEPTH = "have 8 bits, and the schema's range has 16"
DEEP = "have numbers of 32 bits or colours of 16, of which nothing says which is black"
NOT_FINITE = "hold numbers that are not finite"
LABEL_MISFIT = "has a label that the schema does not list, or none"
_FIXED_BY_RESIZING = frozenset({MOVING, SIZE, COLOURS, DEPTH})


class Faults:
    """Images that break a public rule.

    Attributes:
        rows: Their indices, from 0.
    """

    def __init__(self) -> None:
        self._noted: list[tuple[int, str]] = []

    @property
    def rows(self) -> list[int]:
        """Return the places of the pictures that broke one, from 0."""
        return [number - 1 for number, _ in self._noted]

    def note(self, fault: str, number: int) -> None:
        """Remember a picture; ``number`` is its place, from 1."""
        self._noted.append((number, fault))

    def refuse(self, container: str, name_of: Callable[[int], str]) -> None:
        """Refuse the set if any picture broke a rule.

        Args:
            container: What the set is called.
            name_of: Returns the name of the file of the picture at a place, from 0; empty where it has none.

        Raises:
            FaultyRecords: Its message says how many broke which rule.
        """
        if not self._noted:
            return
        counts = Counter(fault for _, fault in self._noted)
        said = "; ".join(f"{count} {_of(count, fault)}" for fault, count in sorted(counts.items()))
        remedy = "fix or remove them" + (
            ", or declare on_mismatch: resize" if set(counts) <= _FIXED_BY_RESIZING else ""
        )
        first = min(number for number, _ in self._noted)
        raise FaultyRecords(
            f"of the images {said} (the first is number {first})",
            field=container,
            remedy=remedy,
            faults=[Fault(number, name_of(number - 1), fault) for number, fault in sorted(self._noted)],
        )


def _of(count: int, fault: str) -> str:
    """Return a fault of so many pictures."""
    if count > 1:
        return fault
    return fault.replace("have ", "has ", 1).replace("hold ", "holds ", 1).replace("or are cut", "or is cut")


LARGEST_PICTURE = 50_000_000
"""The most pixels that a picture may have before it is resized."""

LARGEST_FILE = 200_000_000
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF")
_WITH_FRAMES = ("PNG", "WEBP", "TIFF")  # a camera's JPEG may carry a preview as a second picture
_MODES = {1: "L", 3: "RGB"}
_PNG, _DEPTH = b"\x89PNG\r\n\x1a\n", 24  # where the bits of a sample stand
_PNG_END = b"IEND\xaeB`\x82"
_BITS_PER_SAMPLE, _BYTE = 258, 8  # a tag of TIFF
_LUMINANCE = (0.299, 0.587, 0.114)


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
        self.blank: Pixels = np.zeros(shape, dtype=np.uint16 if rule.deep else np.uint8)
        self._full = int(np.iinfo(self.blank.dtype).max)
        self._bits = {"uint8": _BYTE, "uint16": 2 * _BYTE}.get(rule.stored)

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
        grey = picture.mode.startswith("I")  # 16 bits of grey
        bits = 2 * _BYTE if deep or grey else _BYTE
        if self._channels == 1 and grey and bits == self._bits and "transparency" not in picture.info:
            numbers = np.asarray(ImageOps.exif_transpose(picture), dtype=np.float64)[..., None]
            return self._fitted(self._levels(numbers, *self._range), number)
        mode = _MODES[self._channels]
        other = picture.mode != mode or "transparency" in picture.info
        cut = deep and not grey  # of colours of 16 bits Pillow reads the upper eight
        if other or cut or bits != (self._bits or _BYTE):
            if not self._resize:
                return self._refused(COLOURS if other or bits > _BYTE else DEPTH, number)
            if cut and self._range not in ((0, 255), (0, 65_535)):
                return self._refused(DEEP, number)
            picture = _converted(picture, mode)
            return self._fitted(self._whole(_as_array(ImageOps.exif_transpose(picture))), number)
        pixels = _as_array(ImageOps.exif_transpose(picture))
        by_range = self._bits is not None and self._range != (0, 255)
        return self._fitted(self._levels(pixels, *self._range) if by_range else self._whole(pixels), number)

    def _whole(self, pixels: Pixels) -> Pixels:
        """Return 8 bits of full intensity in the depth that images are held in."""
        return pixels * np.uint16(LEVELS) if self._full > np.iinfo(np.uint8).max else pixels

    def _levels(self, numbers: np.ndarray[Any, Any], lower: float, upper: float) -> Pixels:
        shares = (np.clip(numbers, lower, upper) - lower) / (upper - lower)
        return np.asarray(np.rint(self._full * shares), dtype=self.blank.dtype)

    def _fitted(self, pixels: Pixels, number: int) -> Pixels:
        if self._crop is not None:
            height, width = self._crop
            if pixels.shape[0] < height or pixels.shape[1] < width:
                return self._refused(SMALL, number)
            top, left = (pixels.shape[0] - height) // 2, (pixels.shape[1] - width) // 2
            pixels = pixels[top : top + height, left : left + width]
        if pixels.shape[:2] != (self._height, self._width):
            if not self._resize:
                return self._refused(SIZE, number)
            pixels = _resized(pixels, (self._width, self._height))
        return pixels.reshape(self.blank.shape)

    # -- arrays --------------------------------------------------------------------------------------------------

    def convert(self, block: np.ndarray[Any, Any], first: int) -> Pixels:
        """Return a block of an array, ``(B, h, w, c)``, as pixels ``(B, H, W, C)``.

        Args:
            block: Numbers; the schema's range says which stand for black and full intensity, and those outside it
                count as its nearest end.
            first: The place of the block's first image, from 1.
        """
        pixels = self._scaled(block, first)
        if pixels.shape[1:] == self.blank.shape and self._crop is None:
            return pixels
        rows = []
        for place, each in enumerate(pixels):
            if each.shape[2] != self._channels and not self._resize:
                rows.append(self._refused(COLOURS, first + place))
            else:
                rows.append(self._fitted(_recoloured(each, self._channels), first + place))
        return np.stack(rows) if rows else np.zeros((0, *self.blank.shape), dtype=self.blank.dtype)

    def _scaled(self, block: np.ndarray[Any, Any], first: int) -> Pixels:
        lower, upper = self._range
        if block.dtype == self.blank.dtype and (lower, upper) == (0, self._full):
            return block
        numbers = block.astype(np.float64)
        for row in np.flatnonzero(~np.isfinite(numbers).all(axis=(1, 2, 3))):
            self.faults.note(NOT_FINITE, first + int(row))
            numbers[row] = lower
        return self._levels(numbers, lower, upper)

    def _refused(self, fault: str, number: int) -> Pixels:
        self.faults.note(fault, number)
        return self.blank


def _is_deep(content: bytes, picture: Image.Image) -> bool:
    """Whether a PNG or a TIFF says that it has more than 8 bits: of colours Pillow opens it as if it had eight."""
    if picture.format == "TIFF":
        bits = picture.tag_v2.get(_BITS_PER_SAMPLE, (1,))  # type: ignore[attr-defined]
        return bool(max(bits if isinstance(bits, tuple) else (bits,)) > _BYTE)
    return content.startswith(_PNG) and content[_DEPTH : _DEPTH + 1] == b"\x10"


def _as_array(picture: Image.Image) -> Pixels:
    """Return a picture of 8 bits as ``(h, w, c)``."""
    pixels = np.asarray(picture, dtype=np.uint8)
    return pixels[..., None] if pixels.ndim == 2 else pixels


def _recoloured(pixels: Pixels, channels: int) -> Pixels:
    """Return pixels ``(h, w, c)`` with so many channels; grey is the colours' luminance (ITU-R 601-2)."""
    if pixels.shape[2] == channels:
        return pixels
    if channels > 1:
        return np.repeat(pixels, channels, axis=2)
    if pixels.dtype == np.uint8:
        from PIL import Image

        return _as_array(Image.fromarray(pixels).convert("L"))
    grey: Pixels = np.rint(pixels @ np.array(_LUMINANCE)).astype(pixels.dtype)[..., None]
    return grey


def _resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """Return pixels ``(h, w, c)`` stretched to a width and a height, antialiased."""
    from PIL import Image

    if pixels.dtype == np.uint8:
        picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
        return _as_array(picture.resize(size, Image.Resampling.BILINEAR))
    planes = [  # of 16 bits Pillow resizes real numbers
        Image.fromarray(pixels[:, :, place].astype(np.float32)).resize(size, Image.Resampling.BILINEAR)
        for place in range(pixels.shape[2])
    ]
    numbers = np.stack([np.asarray(plane) for plane in planes], axis=2)
    found: Pixels = np.rint(numbers).clip(0, np.iinfo(pixels.dtype).max).astype(pixels.dtype)
    return found


def _converted(picture: Image.Image, mode: str) -> Image.Image:
    from PIL import Image

    if picture.mode.startswith("I"):  # 16 bits of grey
        picture = Image.fromarray(as_bytes(np.asarray(picture).clip(0, 65_535).astype(np.uint16)))
    elif picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        seen = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")
    return picture.convert(mode)
