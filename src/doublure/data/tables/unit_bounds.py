"""Bound the records of each unit where the ids of all units do not fit in memory.

A unit's records are its first ``max_records`` in the order in which they come, as in memory. Of each id 128 bits of a
keyed hash (SipHash-2-4, twice) are kept, on disk, under keys of the operating system that live as long as this process:
two ids meet with a chance of n² / 2¹²⁹. Records are then parted by their hash, so that one part at a time is sorted in
memory; a unit with very many records fills none, for only its first ones in each batch are kept.

==========================================  =======================================================
edge case                                   what happens
==========================================  =======================================================
no record at all                            no unit
a unit whose records are far apart          its first ones are used, wherever they stand
a unit with millions of records             ``max_records`` of each batch are looked at
==========================================  =======================================================
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure.support.arrays import Ints
from doublure.support.number_files import NumberFile

_WIDTH = 3
_ROW_BYTES = 8 * _WIDTH
_BITS = 12
_AT_ONCE = 2**18
PART_RECORDS = 2**21
"""Records that are sorted at once."""


class Bounded(NamedTuple):
    """The records in use after bounding.

    Attributes:
        used: ``(N,)`` whether a record is used.
        first: ``(N,)`` whether it is its unit's first.
        units: The number of units.
        most: The most records of one unit after bounding.
        owner: ``(N,)`` for each used record, the index of its unit's first one; None unless it was asked for.
    """

    used: npt.NDArray[np.bool_]
    first: npt.NDArray[np.bool_]
    units: int
    most: int
    owner: Ints | None = None

    @property
    def numbers(self) -> Ints:
        """The unit of each record that is used, in their order: units are numbered as they come."""
        if self.owner is None:
            raise TypeError("owners were not asked for")
        return (np.cumsum(self.first) - 1)[self.owner[self.used]]


class UnitBounds:
    """Takes ids batch by batch, then tells which records are used.

    Args:
        most: ``max_records``.
        folder: Where there is room for 24 to 48 bytes a record.
        part_records: How many are sorted at once.
    """

    def __init__(self, most: int, folder: Path, part_records: int = PART_RECORDS) -> None:
        self._most = most
        self._folder = folder
        self._part_records = part_records
        self._file = NumberFile(folder)
        self._keys = fresh_keys()
        self._counts = np.zeros(2**_BITS, dtype=np.int64)
        self._records = 0

    def add(self, ids: pd.Series[Any]) -> None:
        """Take the next records' ids."""
        own = hashed(ids, self._keys, self._most, self._records)
        self._counts += np.bincount(_bucket(own), minlength=2**_BITS)
        self._file.add(own)
        self._records += len(ids)

    def bounded(self, *, owners: bool = False) -> Bounded:
        """Return which records are used; takes 2 bytes a record, or 10 if their owners are to be known."""
        used, first = np.zeros((2, self._records), dtype=np.bool_)
        owner = np.zeros(self._records, dtype=np.int64) if owners else None
        units = most = 0
        for part in self._parts():
            near, begins, longest = first_of(part, self._most)
            used[near] = True
            first[begins] = True
            if owner is not None:
                owner[near] = begins[np.cumsum(first[near]) - 1]
            units += len(begins)
            most = max(most, longest)
        self._file.close()
        return Bounded(used, first, units, most, owner)

    def _parts(self) -> Any:
        """Yield records ``(n, 3)``, those of a unit together."""
        total = int(self._counts.sum())
        if total <= self._part_records:
            yield self._read(self._file, 0, total)
            return
        part = np.minimum((np.cumsum(self._counts) - self._counts) // self._part_records, 2**_BITS - 1)
        sizes = np.bincount(part, self._counts).astype(np.int64)
        starts = np.cumsum(sizes) - sizes
        ends = starts.copy()
        with_parts = NumberFile(self._folder)
        for start in range(0, total, _AT_ONCE):
            rows = self._read(self._file, start, min(_AT_ONCE, total - start))
            own = part[_bucket(rows)]
            order = np.argsort(own, kind="stable")
            rows, own = rows[order], own[order]
            for number in np.unique(own):
                low, high = np.searchsorted(own, [number, number + 1])
                with_parts.put(int(ends[number]) * _ROW_BYTES, rows[low:high])
                ends[number] += high - low
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            yield self._read(with_parts, start, size)
        with_parts.close()

    @staticmethod
    def _read(file: NumberFile, start: int, count: int) -> npt.NDArray[np.uint64]:
        return file.get(start * _ROW_BYTES, count * _WIDTH, np.uint64).reshape(-1, _WIDTH)


def fresh_keys() -> tuple[str, str]:
    """Return two keys of the operating system."""
    return _key(), _key()


def hashed(ids: pd.Series[Any], keys: tuple[str, str], most: int, place: int) -> npt.NDArray[np.uint64]:
    """Return of a batch of ids the first ``most`` of each unit: its hash and the record's place, ``(n, 3)``.

    Args:
        ids: Of records that stand next to one another.
        keys: Both, of :func:`fresh_keys`.
        most: ``max_records``.
        place: Of the first of them.
    """
    codes, names = pd.factorize(ids)
    texts = np.asarray(names, dtype=object)
    hashes = np.stack([pd.util.hash_array(texts, hash_key=key, categorize=False) for key in keys], axis=1)
    near = (pd.Series(codes).groupby(codes).cumcount() < most).to_numpy()
    rows = np.flatnonzero(near)
    own = np.empty((len(rows), _WIDTH), dtype=np.uint64)
    own[:, :2], own[:, 2] = hashes.reshape(-1, 2)[codes[rows]], rows + place
    return own


def first_of(part: npt.NDArray[np.uint64], most: int) -> tuple[Ints, Ints, int]:
    """Return which records are used, of all those of some units.

    Args:
        part: ``(n, 3)``, of :func:`hashed`, in any order.
        most: ``max_records``.

    Returns:
        The places of the records that are used, those of each unit's first one, and how many the unit with the most
        has then.
    """
    part = part[np.lexsort((part[:, 2], part[:, 1], part[:, 0]))]
    begins = np.ones(len(part), dtype=np.bool_)
    begins[1:] = (part[1:, :2] != part[:-1, :2]).any(1)
    starts = np.flatnonzero(begins)
    place = np.arange(len(part)) - np.repeat(starts, np.diff(np.append(starts, len(part))))
    rows, near = part[:, 2].astype(np.int64), place < most
    return rows[near], rows[begins], int(place[near].max(initial=-1)) + 1


def _key() -> str:
    """Return a fresh key of SipHash: 16 characters of 7 bits, so that both together have 224."""
    return "".join(chr(byte & 127) for byte in secrets.token_bytes(16))


def _bucket(rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    return (rows[:, 0] >> np.uint64(64 - _BITS)).astype(np.int64)
