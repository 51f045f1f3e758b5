"""Axes of tables, which map compact records to cells.

An axis maps each record by itself to exactly one cell, whatever it holds: a number before the first interval counts in
the first.

==========================================  ==============================================================
edge case                                   what happens
==========================================  ==============================================================
a number below the first interval           counts in the first
a number beyond the last interval           counts in the last
cells that are none of the axis             refused before anything is counted
intervals out of order                      refused before anything is counted
lattices that do not nest                   refused before anything is counted
a period that its parts do not divide       refused before anything is counted
no integer of a size up to 2^53             counts in the lattice, and in the part of a period, of zero
no integer of a size up to 2^40             counts as zero in an identity, so that no sum overflows
weights, a slack or marks that do not fit   refused before anything is counted
==========================================  ==============================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.support import lattices
from doublure.support.messages import Message, prefix_part, select_part

IntArray = npt.NDArray[np.int64]

_MOST_PARTS = 20
_EXACT = 2.0**53
"""Largest size of an integer up to which every integer is a number of its own (IEEE 754, double precision)."""
LARGEST_CODE, _LARGEST_WEIGHT, _MOST_TERMS = 2**40, 2**16, 2**6
"""Bounds of an identity's terms: their sum is below 2^62, which 64 bits hold."""


class AnyAxis(Protocol):
    """One axis of a table."""

    @property
    def size(self) -> int:
        """Number of cells."""

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell ``(N,)``, in ``[0, size)``, of each compact record ``(N, P)``, from that record alone."""

    def refuse_unfit(self, parts: int) -> None:
        """Refuse an axis that cannot be counted on, or that would count a record in another cell than it says.

        Args:
            parts: Number of parts of a compact record.

        Raises:
            SettingError: Naming what does not fit.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One part of a compact record, with the cell of each of its codes.

    Attributes:
        part: The part's place in a compact record.
        cells: ``(codes,)`` the cell of each code, in ``[0, size)``.
        size: Number of cells.
    """

    part: int
    cells: IntArray
    size: int

    @classmethod
    def of_codes(cls, part: int, codes: int) -> Axis:
        """Return the axis on which every code has a cell of its own."""
        return cls(part=part, cells=np.arange(codes, dtype=np.int64), size=codes)

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        return self.cells[records[:, self.part].astype(np.int64)]

    def refuse_unfit(self, parts: int) -> None:
        """Refuse a part out of range, and cells out of range."""
        _require_part(self.part, parts)
        _require_cells(self.cells, self.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """One numeric part of a compact record, with the cell of each interval.

    Attributes:
        part: The part's place in a compact record.
        starts: ``(n,)`` starts of the intervals, ascending; each ends before the next, the last is unbounded.
        cells: ``(n,)`` the cell of each interval, in ``[0, size)``.
        size: Number of cells.
    """

    part: int
    starts: npt.NDArray[np.float64]
    cells: IntArray
    size: int

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        values = records[:, self.part]
        if values.dtype.kind == "i" and values.dtype.itemsize <= 2:
            return self._of_short[values.astype(np.int64) + 2**15]
        return self._sought(values)

    @cached_property
    def _of_short(self) -> IntArray:
        """The cell of each number of two bytes: a table is quicker than a search."""
        return self._sought(np.arange(-(2**15), 2**15))

    def _sought(self, values: npt.NDArray[Any]) -> IntArray:
        place = np.searchsorted(self.starts, values, side="right") - 1
        return self.cells[np.maximum(place, 0)]

    def refuse_unfit(self, parts: int) -> None:
        """Refuse a part out of range, intervals out of order, and cells out of range."""
        _require_part(self.part, parts)
        _require_cells(self.cells, self.size)
        if len(self.starts) != len(self.cells) or not (np.diff(self.starts) > 0).all():
            raise SettingError("must be in ascending order, one a cell", field="starts", remedy="sort them, each once")


@dataclass(frozen=True, kw_only=True, eq=False)
class Patterns:
    """Joint states of several parts: part i adds 2^i to the pattern where it has reached its mark.

    Attributes:
        parts: Places in a compact record.
        marks: For each part the least number in that state, such as missing.
        cells: ``(2^parts,)`` the cell of each pattern, in ``[0, size)``.
        size: Number of cells.
    """

    parts: tuple[int, ...]
    marks: tuple[float, ...]
    cells: IntArray
    size: int

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        pattern = np.zeros(len(records), dtype=np.int64)
        for place, (part, mark) in enumerate(zip(self.parts, self.marks, strict=True)):
            pattern += (records[:, part] >= mark).astype(np.int64) << place
        return self.cells[pattern]

    def refuse_unfit(self, parts: int) -> None:
        """Refuse a part out of range, and cells out of range or not one per pattern."""
        for part in self.parts:
            _require_part(part, parts)
        _require_cells(self.cells, self.size)
        if len(self.marks) != len(self.parts) or len(self.cells) != 2 ** len(self.parts):
            raise SettingError("must be one a pattern", field="cells", remedy="give each pattern one cell")


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattices:
    """One part that holds integers, with a cell for each class of nested lattices.

    Attributes:
        part: The part's place in a compact record.
        steps: ``(K,)`` the lattices' steps, the coarsest first (:mod:`doublure.support.lattices`).
        mark: The least number that stands for missing, which has a last cell of its own; None: there is none.
    """

    part: int
    steps: IntArray
    mark: float | None = None

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self.steps) + (self.mark is not None)

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        values = records[:, self.part].astype(np.float64)
        found = lattices.classes(_integers(values), self.steps)
        return found if self.mark is None else np.where(values >= self.mark, len(self.steps), found)

    def refuse_unfit(self, parts: int) -> None:
        """Refuse a part out of range, and steps that do not nest."""
        _require_part(self.part, parts)
        lattices.refuse_unnested(self.steps)


@dataclass(frozen=True, kw_only=True, eq=False)
class PeriodParts:
    """One part that holds integers, with a cell for each part of a period: the hours of days.

    Attributes:
        part: The part's place in a compact record.
        period: Integers of a period; one begins at zero.
        parts: Equal parts of a period.
        mark: The least number that stands for missing, which has a last cell of its own; None: there is none.
    """

    part: int
    period: int
    parts: int
    mark: float | None = None

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.parts + (self.mark is not None)

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        values = records[:, self.part].astype(np.float64)
        found = _integers(values) % self.period // (self.period // self.parts)
        return found if self.mark is None else np.where(values >= self.mark, self.parts, found)

    def refuse_unfit(self, parts: int) -> None:
        """Refuse a part out of range, and a period that its parts do not divide."""
        _require_part(self.part, parts)
        if self.parts < 1 or not 1 <= self.period <= _EXACT or self.period % self.parts:
            raise SettingError("must divide the period", field="parts", remedy="give a divisor of the period")


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearIdentity:
    """Parts that hold integers, with a cell for each answer to: is a weighted sum of them zero, within a slack?

    Cell 0 has the records of which it is, 1 those of which it is not, 2 those with a part that is missing.

    Attributes:
        parts: Places in a compact record.
        weights: The whole weight of each.
        marks: For each part the least number that stands for missing; one beyond its last number where none does.
        slack: The largest size of a sum that counts as zero.
    """

    parts: tuple[int, ...]
    weights: tuple[int, ...]
    marks: tuple[int, ...]
    slack: int = 0

    @property
    def size(self) -> int:
        """Number of cells."""
        return 3

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        total = np.zeros(len(records), dtype=np.int64)
        missing = np.zeros(len(records), dtype=np.bool_)
        for part, weight, mark in zip(self.parts, self.weights, self.marks, strict=True):
            values = records[:, part].astype(np.float64)
            missing |= values >= mark
            total += weight * np.where(np.abs(values) <= LARGEST_CODE, values, 0.0).astype(np.int64)
        return np.where(missing, 2, (np.abs(total) > self.slack).astype(np.int64))

    def refuse_unfit(self, parts: int) -> None:
        """Refuse a part out of range or named twice, and terms that 64 bits may not hold."""
        for part in self.parts:
            _require_part(part, parts)
        said = len(self.parts) == len(self.weights) == len(self.marks) == len({*self.parts})
        small = all(0 < abs(weight) <= _LARGEST_WEIGHT for weight in self.weights)
        small = small and all(abs(mark) <= LARGEST_CODE for mark in self.marks)
        if not said or not small or not 2 <= len(self.parts) <= _MOST_TERMS or not 0 <= self.slack <= _LARGEST_WEIGHT:
            raise SettingError(
                "do not fit an identity", field="weights", remedy="give each part one small whole weight"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class OneRight:
    """The one of two answers that alone is a record's class: the first, the second, or neither alone.

    A compact record has the two answers, as numbers of classes, then its class as a one-hot block; others may follow.

    Attributes:
        kinds: Number of classes.
    """

    kinds: int

    @property
    def size(self) -> int:
        """Number of cells."""
        return 3

    def of(self, records: npt.NDArray[Any]) -> IntArray:
        """Return the cell of each record."""
        first, second = (records[:, :2] == records[:, 2 : 2 + self.kinds].argmax(axis=1)[:, None]).T
        return np.where(first & ~second, 0, np.where(second & ~first, 1, 2))

    def refuse_unfit(self, parts: int) -> None:
        """Refuse records of fewer parts."""
        if parts < 2 + self.kinds or self.kinds < 1:
            raise SettingError("have other parts", field="records", remedy="give two answers and one class")


Table: TypeAlias = tuple[AnyAxis, ...]


def axes_to_message(axes: Iterable[AnyAxis]) -> Message:
    """Return axes as a message, for owners to count on.

    Raises:
        TypeError: This type of axis is not sent to owners.
    """
    words: list[dict[str, Any]] = []
    arrays: dict[str, npt.NDArray[Any]] = {}
    for place, axis in enumerate(axes):
        said, own = _described(axis)
        words.append(said)
        arrays |= prefix_part(own, place)
    return Message({"axes": words}, arrays)


def axes_from_message(message: Message) -> list[AnyAxis]:
    """Return the axes of a message; each checks by itself whether it fits the records.

    Raises:
        KeyError, TypeError, ValueError: The message has no form that :func:`axes_to_message` gives.
    """
    said = enumerate(message.words["axes"])
    return [_axis_of(words, select_part(message.arrays, str(place))) for place, words in said]


def _described(axis: AnyAxis) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    if isinstance(axis, Axis):
        return {"type": "axis", "part": axis.part, "size": axis.size}, {"cells": axis.cells}
    if isinstance(axis, Intervals):
        words = {"type": "intervals", "part": axis.part, "size": axis.size}
        return words, {"starts": axis.starts, "cells": axis.cells}
    if isinstance(axis, Patterns):
        words = {"type": "patterns", "parts": list(axis.parts), "marks": list(axis.marks), "size": axis.size}
        return words, {"cells": axis.cells}
    if isinstance(axis, Lattices):
        return {"type": "lattices", "part": axis.part, "mark": axis.mark}, {"steps": axis.steps}
    if isinstance(axis, PeriodParts):
        return {"type": "periods", "part": axis.part, "period": axis.period, "parts": axis.parts, "mark": axis.mark}, {}
    if isinstance(axis, LinearIdentity):
        lists = {"parts": [*axis.parts], "weights": [*axis.weights], "marks": [*axis.marks]}
        return {"type": "identity", **lists, "slack": axis.slack}, {}
    raise TypeError(f"{type(axis).__name__} is not asked of owners")


def _axis_of(words: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> AnyAxis:
    if words["type"] == "lattices":
        steps = _numbers(arrays["steps"], np.int64)
        return Lattices(part=whole(words["part"]), steps=steps, mark=_mark(words))
    if words["type"] == "periods":
        said = {key: whole(words[key]) for key in ("part", "period", "parts")}
        return PeriodParts(**said, mark=_mark(words))
    if words["type"] == "identity":
        lists = {key: tuple(map(whole, words[key])) for key in ("parts", "weights", "marks")}
        return LinearIdentity(**lists, slack=whole(words["slack"]))
    cells, size = _numbers(arrays["cells"], np.int64), whole(words["size"])
    if words["type"] == "axis":
        return Axis(part=whole(words["part"]), cells=cells, size=size)
    if words["type"] == "intervals":
        starts = _numbers(arrays["starts"], np.float64)
        return Intervals(part=whole(words["part"]), starts=starts, cells=cells, size=size)
    if words["type"] == "patterns":
        parts, marks = (tuple(words[key]) for key in ("parts", "marks"))
        if len(parts) > _MOST_PARTS or not all(type(mark) in (int, float) for mark in marks):
            raise ValueError
        return Patterns(parts=tuple(map(whole, parts)), marks=marks, cells=cells, size=size)
    raise ValueError


def _mark(words: Mapping[str, Any]) -> float | None:
    mark: float | None = words["mark"]
    if mark is not None and type(mark) not in (int, float):
        raise ValueError
    return mark


def whole(number: object) -> int:
    """Return a whole number unchanged.

    Raises:
        TypeError: It is no int.
    """
    if type(number) is not int:
        raise TypeError
    return number


def _numbers(array: npt.NDArray[Any], kind: type[np.number[Any]]) -> npt.NDArray[Any]:
    if array.ndim != 1 or array.dtype != kind or not np.isfinite(array).all():
        raise ValueError
    return array


def places(axes: tuple[AnyAxis, ...], cells: dict[int, IntArray]) -> IntArray:
    """Return each record's place in a flattened table, from its cell on each axis, by the axis's identity."""
    place = cells[id(axes[0])]
    for axis in axes[1:]:
        place = place * axis.size + cells[id(axis)]
    return place


def _integers(values: npt.NDArray[Any]) -> IntArray:
    """Return numbers as integers; what is no exact integer counts as zero does."""
    return np.where(np.abs(values) <= _EXACT, values, 0.0).astype(np.int64)


def _require_part(part: int, parts: int) -> None:
    if not 0 <= part < parts:
        raise SettingError(f"{part} is no part of a record", field="part", remedy=f"count from 0 to {parts - 1}")


def _require_cells(cells: IntArray, size: int) -> None:
    whole = cells.ndim == 1 and cells.size > 0 and np.issubdtype(cells.dtype, np.integer)
    if not whole or int(cells.min()) < 0 or int(cells.max()) >= size:
        raise SettingError(
            "must be whole numbers from 0 to below the size", field="cells", remedy="give each code one cell"
        )
