"""MATLAB files of version 5: the arrays of plain numbers in them, and nothing else.

A file is a header of 128 bytes and elements, each a type, a length and content; a matrix is an element of elements
(flags, axes, name, numbers), and may be packed by zlib as a whole (MathWorks, *MAT-File Format*, chapter 1). What is
read here are headers, and one array at a time. By hand, because ``scipy.io`` reads a damaged file until the process
falls, and a private file may be damaged by anybody.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

_HEADER, _VERSION = 128, 0x0100
_MATRIX, _PACKED, _FLAGS, _AXES, _NAME = 14, 15, 6, 5, 1
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = frozenset(range(6, 16))  # of numbers: neither cells, structures, objects, texts nor sparse matrices
_COMPLEX = 0x0800
_BEGINNING = 1024
_MOST_AXES, _MOST_VARIABLES = 8, 64

DAMAGED = (OSError, ValueError, EOFError, MemoryError, struct.error, zlib.error)
"""What reading a file that is not whole raises."""


class Variable(NamedTuple):
    """An array of a file.

    Attributes:
        shape: Its axes.
        dtype: Of the numbers as they are stored.
        place: Where its element's content begins.
        size: The bytes of that content.
        packed: Whether zlib packed it.
        skip: How many bytes of it stand before the numbers, once unpacked.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    place: int
    size: int
    packed: bool
    skip: int

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def variables(path: Path) -> dict[str, Variable]:
    """Return the arrays of a file by their names; no array is read.

    Raises:
        DAMAGED: It is no such file, or its headers do not hold together.
    """
    found: dict[str, Variable] = {}
    with path.open("rb") as file:
        order = _byte_order(file.read(_HEADER))
        whole, place = path.stat().st_size, _HEADER
        while place < whole:
            file.seek(place)
            kind, size = struct.unpack(f"{order}II", file.read(8))
            if place + 8 + size > whole or len(found) > _MOST_VARIABLES:
                raise ValueError("cut off")
            if kind in (_MATRIX, _PACKED):
                name, variable = _described(file, order, place + 8, size, packed=kind == _PACKED)
                if variable is not None:
                    found[name] = variable
            place += 8 + size + (0 if kind == _PACKED else -size % 8)
    return found


def array(path: Path, variable: Variable) -> npt.NDArray[np.generic]:
    """Return one array.

    Raises:
        DAMAGED: It is not whole.
    """
    with path.open("rb") as file:
        file.seek(variable.place)
        content: bytes | bytearray = file.read(variable.size)
    needed = variable.skip + variable.nbytes
    if variable.packed:
        content = zlib.decompressobj().decompress(content, needed)
    if len(content) < needed:
        raise ValueError("cut off")
    numbers = np.frombuffer(content, variable.dtype, math.prod(variable.shape), variable.skip)
    return numbers.reshape(variable.shape, order="F")


def _byte_order(header: bytes) -> str:
    """Return the byte order, in ``struct``'s sign."""
    order = {b"IM": "<", b"MI": ">"}[header[126:128]] if header[126:128] in (b"IM", b"MI") else ""
    if len(header) != _HEADER or not order or struct.unpack(f"{order}H", header[124:126]) != (_VERSION,):
        raise ValueError("is no MATLAB file of version 5")
    return order


def _described(file: BinaryIO, order: str, place: int, size: int, *, packed: bool) -> tuple[str, Variable | None]:
    """Return a matrix' name and what is known of it; None where it holds no plain numbers."""
    content = file.read(min(size, _BEGINNING))
    skip = 0
    if packed:
        content = zlib.decompressobj().decompress(content, _BEGINNING)
        if struct.unpack_from(f"{order}I", content) != (_MATRIX,):
            return "", None
        skip = 8
    kind, start, length, skip = _element(content, skip, order)
    if kind != _FLAGS or length != 8:
        raise ValueError("flags")
    (flags,) = struct.unpack_from(f"{order}I", content, start)
    if flags & 0xFF not in _CLASSES or flags & _COMPLEX:
        return "", None
    kind, start, length, skip = _element(content, skip, order)
    if kind != _AXES or length % 4 or not 0 < length // 4 <= _MOST_AXES:
        raise ValueError("axes")
    shape = struct.unpack_from(f"{order}{length // 4}i", content, start)
    kind, start, length, skip = _element(content, skip, order)
    name = content[start : start + length].decode("ascii")
    if kind != _NAME or len(name) != length or min(shape) < 0:
        raise ValueError("name")
    kind, start, length, _ = _element(content, skip, order)
    if kind not in _NUMBERS:
        raise ValueError("numbers")
    variable = Variable(shape, np.dtype(f"{order}{_NUMBERS[kind]}"), place, size, packed, start)
    if variable.nbytes != length:
        raise ValueError("another length than its axes say")
    return name, variable


def _element(content: bytes, place: int, order: str) -> tuple[int, int, int, int]:
    """Return an element's type, where its content begins, its length, and where the next one begins."""
    first, second = struct.unpack_from(f"{order}II", content, place)
    if first >> 16:  # a small one: type, length and content in eight bytes
        if first >> 16 > 4:
            raise ValueError("small element")
        return first & 0xFFFF, place + 4, first >> 16, place + 8
    return first, place + 8, second, place + 8 + second + -second % 8
