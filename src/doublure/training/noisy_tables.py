"""Contingency tables as they were released: noisy counts, with their standard error.

A method that has bought tables may hand them out (:attr:`doublure.training.job.Job.hand_out`): they are answers of the
mechanism already, so that to publish them costs nothing more. A run keeps what was handed out, and a bundle holds it on
request. Whoever makes one puts into it nothing but noisy numbers and public ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from doublure.errors import SettingError


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """One table of counts, as the mechanism gave it out: not cut off at zero, not made to add up.

    Attributes:
        columns: What is counted along each axis.
        cells: For each axis the names of its cells; public or bought.
        counts: int64, of the shape of the axes; of a table that was counted several times the mean, rounded.
        standard_error: Of each count: the noise's standard deviation, in records, and what rounding adds.
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
