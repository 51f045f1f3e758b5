"""Contingency tables as they were released: noisy counts, with their standard error.

A method that has bought tables may hand them out (:attr:`doublure.training.job.Job.hand_out`): they are answers of the
mechanism already, so that to publish them costs nothing more. A run keeps what was handed out, and a bundle holds it on
request. Whoever makes one puts into it nothing but noisy numbers and public ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError

if TYPE_CHECKING:
    from doublure.encode.table import TableEncoder
    from doublure.private.queries.counts import Axis, Table


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """One table of counts, as the mechanism gave it out: not rounded, not cut off at zero, not made to add up.

    Attributes:
        columns: What is counted along each axis.
        cells: For each axis the names of its cells; public or bought.
        counts: int64, of the shape of the axes.
        standard_error: Of each count: the noise's standard deviation, in records.
    """

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    counts: npt.NDArray[np.int64]
    standard_error: float

    def __post_init__(self) -> None:
        shape = tuple(len(names) for names in self.cells)
        if len(self.columns) != len(shape) or self.counts.shape != shape or self.counts.dtype != np.int64:
            raise SettingError(
                "are not whole numbers of the shape of the cells", field="counts", remedy="name each cell"
            )


def noisy_tables(
    encoder: TableEncoder, released: Iterable[tuple[Table, npt.NDArray[np.float64], float]]
) -> tuple[NoisyTable, ...]:
    """Return released tables in words.

    Args:
        encoder: Whose parts the axes count.
        released: Of each its axes, its noisy counts in the axes' shape, and the noise's standard deviation.
    """
    known: dict[int, tuple[Axis, tuple[str, tuple[str, ...]]]] = {}  # with each axis, so that its id stays its own
    found = []
    for axes, counts, standard_error in released:
        for axis in axes:
            if id(axis) not in known:
                known[id(axis)] = axis, encoder.axis(axis.part, axis.cells, axis.size)
        names = [known[id(axis)][1] for axis in axes]
        found.append(
            NoisyTable(
                columns=tuple(column for column, _ in names),
                cells=tuple(cells for _, cells in names),
                counts=np.rint(counts).astype(np.int64),
                standard_error=standard_error,
            )
        )
    return tuple(found)
