"""Read and write NPZ files without pickling.

Headers are read first, arrays when they are loaded; a large array is written block by block.
"""

from __future__ import annotations

import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import numpy as np
import pandas as pd

from doublure.errors import DataError

LARGEST = 32 * 2**30
"""The most bytes that are held in memory of one set."""

DAMAGED = (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, KeyError, RuntimeError)
"""Errors raised by reading a damaged, encrypted or hostile file."""

_LONGEST_TEXT = 10_000  # bytes; each text of an array takes as many as the longest
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Header:
    """An array's header: its shape, its type, and whether its rows stand one after the other."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    in_rows: bool = True


def headers(path: Path) -> dict[str, Header]:
    """Return the header of each array.

    Raises:
        DataError: It is no NPZ file, or an array is cut off, or larger than a set may be.
    """
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if not member.filename.endswith(".npy"):
                    continue
                with archive.open(member) as file:
                    found[member.filename.removesuffix(".npy")] = header = read_header(file)
                if header.dtype.kind != "O" and member.file_size < math.prod(header.shape) * header.dtype.itemsize:
                    raise ValueError(member.filename)
                if member.file_size > LARGEST:
                    raise DataError("holds more than 32 GB in one array", field=path.name, remedy="give a part of it")
    except DAMAGED:
        remedy = "write it with numpy.savez; check that the file is whole"
        raise DataError("cannot be read as NPZ", field=path.name, remedy=remedy) from None
    return found


def read_header(file: IO[bytes]) -> Header:
    """Read an array's header off the beginning of its file."""
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(version)
    try:
        shape, columns_first, dtype = read(file)
    except (TypeError, tokenize.TokenError):  # a hostile header is parsed as Python's literals are
        raise ValueError(version) from None
    return Header(shape=shape, dtype=dtype, in_rows=not columns_first)


def refuse_objects(name: str, header: Header) -> None:
    """Refuse an array of a file that would have to be unpickled, or taken apart, or whose texts fill the memory.

    Raises:
        DataError: Naming it.
    """
    if header.dtype.kind == "O":
        remedy = "save it as numbers or texts"
        raise DataError("holds Python objects, which are never unpickled", field=name, remedy=remedy)
    if header.dtype.kind in "US" and header.dtype.itemsize > _LONGEST_TEXT:
        raise DataError(f"holds texts of more than {_LONGEST_TEXT:,} bytes", field=name, remedy="shorten them")
    refuse_fields(name, header)


def refuse_fields(name: str, header: Header) -> None:
    """Refuse an array whose values have fields of their own.

    Raises:
        DataError: Naming it.
    """
    if header.dtype.kind == "V":
        raise DataError("holds values of several fields", field=name, remedy="save each field as an array of its own")


def in_memory(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Return values in memory as an array; a list becomes an array of objects, so that each cell keeps its type.

    NumPy reads ``[1, "a"]`` as two texts and ``[True, 2]`` as two numbers: one cell would change how others are read.
    """
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) else np.asarray(values)


def array(path: Path, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return one array, whole.

    Raises:
        DataError: The file is damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found: np.ndarray[Any, np.dtype[Any]] = arrays[name]
            return found
    except DAMAGED:
        raise damaged(path.name) from None


def blocks(path: Path, name: str, rows: int) -> Iterator[np.ndarray[Any, np.dtype[Any]]]:
    """Yield an array of numbers in blocks of so many rows; the file is never whole in memory.

    Raises:
        DAMAGED: It is cut off, holds more than its header says, or does not stand in rows.
    """
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
        header = read_header(file)
        if not header.in_rows or header.dtype.kind not in "buif":
            raise ValueError(name)
        size = math.prod(header.shape[1:]) * header.dtype.itemsize
        for first in range(0, header.shape[0], rows):
            number = min(rows, header.shape[0] - first)
            content = file.read(number * size)
            if len(content) != number * size:
                raise ValueError(name)
            yield np.frombuffer(content, dtype=header.dtype).reshape(number, *header.shape[1:])
        if file.read(1):
            raise ValueError(name)


def damaged(name: str) -> DataError:
    """Return the refusal of a container that does not hold what its header says."""
    return DataError("is damaged or cut off", field=name, remedy="check that the file is whole")


# -- writing ---------------------------------------------------------------------------------------------------------


def write(
    file: BinaryIO,
    name: str,
    form: Header,
    blocks: Iterable[np.ndarray[Any, np.dtype[Any]]],
    beside: Callable[[], Mapping[str, Any]],
    *,
    level: int | None = None,
) -> None:
    """Write one large array as its blocks come, then small ones; the same content gives the same bytes.

    Args:
        file: Where to.
        name: The large array's name.
        form: Its shape and type.
        blocks: Its rows, in order.
        beside: Called once the last block is written; returns the other arrays.
        level: How hard to compress, 0 to 9.
    """
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, allowZip64=True, compresslevel=level) as archive:
        with archive.open(_member(name, level), "w", force_zip64=True) as member:
            descr = np.lib.format.dtype_to_descr(form.dtype)
            described = {"descr": descr, "fortran_order": False, "shape": form.shape}
            np.lib.format.write_array_header_1_0(member, described)
            for block in blocks:
                member.write(np.ascontiguousarray(block, dtype=form.dtype).data)
        for key, values in beside().items():
            with archive.open(_member(key, level), "w") as member:
                np.lib.format.write_array(member, np.asarray(values), allow_pickle=False)


def _member(name: str, level: int | None) -> zipfile.ZipInfo:
    """Return an entry that is the same whenever it is written."""
    entry = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry._compresslevel = level  # type: ignore[attr-defined]  # its public name comes with Python 3.13
    return entry


def plain(cells: pd.Series[Any]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return discrete cells as an array of whole numbers, truth values, real numbers or texts: none needs a pickle."""
    values = list(cells.cat.categories) if isinstance(cells.dtype, pd.CategoricalDtype) else list(cells)
    kinds = {type(value) for value in values}
    wanted = kinds.pop() if len(kinds) == 1 else str
    return np.array([wanted(value) for value in cells], dtype=wanted if wanted is not str else None)
