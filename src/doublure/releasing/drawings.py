"""Drawings of a card, lines as SVG and pixels as PNG, that stay the same from version to version.

``verify`` draws a page again and compares it byte for byte, on another machine and years later, so no drawing library
takes part. A PNG's pixels are packed by zlib, whose builds differ in the bytes and agree in the pixels:
:func:`with_pixel_hashes` puts a hash of the pixels in their place. It accepts pictures of this module alone, so that
nothing can be hidden in one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import re
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from doublure.report import page

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOURS = {1: 0, 3: 2}
_PICTURE = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=]*)")
_LARGEST = 1 << 27
_GAP = 1
FIVE_DIGITS = 10_000
_PAPER = 252
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 250, 130, 44, 8, 8, 26


# -- pixels ----------------------------------------------------------------------------------------------------------


def draw_strip(images: np.ndarray[Any, np.dtype[Any]]) -> str:
    """Return images ``(B, H, W, C)`` side by side, as the address of an ``img``."""
    number, height, width, channels = images.shape
    canvas = np.full((height, number * (width + _GAP) - _GAP, channels), _PAPER, dtype=np.uint8)
    for place, image in enumerate(images):
        canvas[:, place * (width + _GAP) : place * (width + _GAP) + width] = image
    return page.inline_png(png(canvas))


def png(pixels: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    """Return pixels ``(H, W, 1 or 3)`` as the plainest PNG: no filter, no text, three chunks."""
    height, width, channels = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), dtype=np.uint8), pixels.reshape(height, -1)], axis=1)
    head = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    return _SIGNATURE + b"".join(
        _chunk(name, content)
        for name, content in ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def with_pixel_hashes(html: str) -> str:
    """Return a page with each picture of :func:`png` replaced by the SHA-256 of its pixels."""
    return _PICTURE.sub(lambda found: _hash_pixels(found[1]) or found[0], html)


def _hash_pixels(text: str) -> str | None:
    try:
        content = base64.b64decode(text, validate=True)
        if base64.b64encode(content).decode() != text or content[:8] != _SIGNATURE or content[12:16] != b"IHDR":
            return None
        head = content[16:29]
        width, height, *rest = struct.unpack(">IIBBBBB", head)
        channels = {colour: number for number, colour in _COLOURS.items()}[rest[1]]
        size = height * (1 + width * channels)
        packed = content[33 + 8 : -12 - 4]
        if content != _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b""):
            return None
        reader = zlib.decompressobj()
        rows = reader.decompress(packed, min(size, _LARGEST) + 1)
    except (binascii.Error, struct.error, zlib.error, KeyError, ValueError):
        return None
    if len(rows) != size or not reader.eof or reader.unused_data or any(rows[:: 1 + width * channels]):
        return None
    return f"pixels {head.hex()} {hashlib.sha256(rows).hexdigest()}"


# -- lines -----------------------------------------------------------------------------------------------------------


def draw_line(values: Sequence[float], ends: tuple[float, float], alt: str) -> Markup:
    """Return a line through the values of a series, as inline SVG that takes the page's colours.

    Args:
        values: One a step; the line is broken at NaN.
        ends: The lowest and the highest value of the axis.
        alt: The text alternative.
    """
    low, high = ends
    wide, tall = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    last, span = max(1, len(values) - 1), (high - low) or 1.0
    found, begins = [], True
    for step, value in enumerate(values):
        if math.isnan(value):
            begins = True
            continue
        at = f"{_LEFT + wide * step / last:.2f} {_TOP + tall * (1 - (value - low) / span):.2f}"
        found.append(f"{'M' if begins else 'L'}{at}")
        begins = False
    path = Markup('<path d="{}" fill="none" stroke="var(--synthetic)" stroke-width="1.6"/>').format("".join(found))
    floor = _TOP + tall
    axis = Markup('<path d="M{} {}H{}" stroke="var(--rule)"/>').format(_LEFT, floor, _WIDTH - _RIGHT)
    marks = [
        _mark(_LEFT - 5, floor, "end", digits(low)),
        *([_mark(_LEFT - 5, _TOP + 8, "end", digits(high))] if high > low else []),
        _mark(_LEFT, _HEIGHT - 10, "start", "0"),
        _mark(_WIDTH - _RIGHT, _HEIGHT - 10, "end", str(last)),
        _mark(_LEFT + wide / 2, _HEIGHT - 10, "middle", "step"),
    ]
    return Markup('<svg role="img" aria-label="{}" viewBox="0 0 {} {}" style="max-width:{}px">{}</svg>').format(
        alt, _WIDTH, _HEIGHT, 1.2 * _WIDTH, axis + path + Markup("").join(marks)
    )


def _mark(x: float, y: float, anchor: str, text: str) -> Markup:
    style = "font-size:10px;fill:var(--faint)"
    return Markup('<text x="{:g}" y="{:g}" text-anchor="{}" style="{}">{}</text>').format(x, y, anchor, style, text)


def digits(value: float) -> str:
    """Return a number with four digits, or all digits of its integer part."""
    return f"{value:,.0f}" if abs(value) >= FIVE_DIGITS else f"{value:.4g}"
