"""Tables of counts of private records, each released once with discrete Gaussian noise.

:class:`PrivateTables` is to statistics what :class:`~doublure.private.mechanism.PrivateStep` is to training: counting,
noise and event in one object, and the only way to get a count out of private records.

Guarantee: all releases together are the events that were planned, for add/remove of one unit. A record counts in one
cell of each table, so that a unit with at most m records moves each table by at most m in L2; the noise is exact
(OpenDP, after Canonne, Kamath and Steinke 2020), so that no floating-point hole arises. What is counted, how many
tables there are and their noise are fixed before a record is seen, or follow from what was released before.

==========================================  =======================================================
edge case                                   what happens
==========================================  =======================================================
no record at all                            noise alone
a release beyond the plan, or not paid for  refused before anything is counted
more tables than planned                    refused before anything is counted; fewer cost the same
a unit with more records than planned       refused before anything is counted
an axis of no part, or with odd cells       refused before anything is counted
==========================================  =======================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError
from doublure.private import statistics
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.records import PrivateRecords

IntArray = npt.NDArray[np.int64]

_CHUNK_ROWS = 2**16


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """One axis of a table: a part of a compact record, and which cell each of its codes falls in.

    Attributes:
        part: The part's place in a compact record.
        cells: ``(codes,)`` the cell of each code, in ``[0, size)``.
        size: How many cells.
    """

    part: int
    cells: IntArray
    size: int

    @classmethod
    def of_codes(cls, part: int, codes: int) -> Axis:
        """Return the axis on which every code has a cell of its own."""
        return cls(part=part, cells=np.arange(codes, dtype=np.int64), size=codes)


Table = tuple[Axis, ...]


class PrivateTables:
    """Counting, noise and event in one object.

    Args:
        records: The private records; each part of a compact one is a code.
        releases: The planned events, one a release, in order.
        authorise: Called with the release's number before it is made, and returns once it is durably paid for.
        taken: Releases already made by an interrupted run (one whose result was lost included).
    """

    def __init__(
        self,
        records: PrivateRecords,
        releases: Sequence[DiscreteGaussianEvent],
        *,
        authorise: Callable[[int], None],
        taken: int = 0,
    ) -> None:
        self.taken = taken
        self._records = records
        self._releases = tuple(releases)
        self._authorise = authorise

    @property
    def events(self) -> tuple[DiscreteGaussianEvent, ...]:
        """What has been done so far, as the accountant reads it."""
        return self._releases[: self.taken]

    def release(self, tables: Sequence[Table]) -> list[IntArray]:
        """Make the next release.

        Args:
            tables: What to count: for each table its axes.

        Returns:
            One array of noisy counts a table, of the shape of its axes.

        Raises:
            SettingError: The release is not the planned one.
        """
        if self.taken >= len(self._releases):
            raise SettingError("all releases of the plan have been made", field="releases", remedy="make a new plan")
        event = self._releases[self.taken]
        if len(tables) > event.tables:
            raise SettingError(f"{len(tables)} are more than the planned {event.tables}", field="tables")
        if self._records.most_records > event.records:
            raise SettingError("a unit has more records than planned", field="max_records", remedy="bound them first")
        for table in tables:
            _require_axes(table, self._records.parts)
        self._authorise(self.taken + 1)
        counted = self._counted(tables)
        self.taken += 1  # from here on it may be drawn
        return [statistics.noisy_histogram(counts, sigma=event.scale) for counts in counted]

    def _counted(self, tables: Sequence[Table]) -> list[IntArray]:
        """Return the exact counts. Private."""
        shapes = [tuple(axis.size for axis in table) for table in tables]
        counts = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        axes = {id(axis): axis for table in tables for axis in table}
        for chunk in self._records.chunks(_CHUNK_ROWS):
            codes = chunk.numpy()
            cells = {key: axis.cells[codes[:, axis.part].astype(np.int64)] for key, axis in axes.items()}
            for table, shape, total in zip(tables, shapes, counts, strict=True):
                total += np.bincount(_flat([cells[id(axis)] for axis in table], shape), minlength=len(total))
        return [total.reshape(shape) for total, shape in zip(counts, shapes, strict=True)]


def _require_axes(table: Table, parts: int) -> None:
    """Refuse a table that could not be counted, or would count a record elsewhere than said."""
    if not table:
        raise SettingError("has no axis", field="tables", remedy="give one")
    for axis in table:
        if not 0 <= axis.part < parts:
            raise SettingError(
                f"{axis.part} is no part of a record", field="part", remedy=f"count from 0 to {parts - 1}"
            )
        cells = axis.cells
        whole = cells.ndim == 1 and cells.size > 0 and np.issubdtype(cells.dtype, np.integer)
        if not whole or int(cells.min()) < 0 or int(cells.max()) >= axis.size:
            raise SettingError(
                "must be whole numbers from 0 to below the size", field="cells", remedy="give each code one cell"
            )


def _flat(cells: Sequence[IntArray], shape: Sequence[int]) -> npt.NDArray[Any]:
    """Return each record's place in a flattened table."""
    place = cells[0]
    for own, size in zip(cells[1:], shape[1:], strict=True):
        place = place * size + own
    return place
