"""Noisy tables that are kept as soon as they are released: what is lost cannot be drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from doublure.methods.method import Job
from doublure.methods.statistics.settings import counting_accesses
from doublure.private.queries.counts import Counts, Table
from doublure.training.checkpoints import KeptReleases

Floats: TypeAlias = npt.NDArray[np.float64]


class KeptTables:
    """A job's releases, made or taken up from an interrupted run.

    Args:
        job: The run.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._accesses = counting_accesses(job.accesses)
        self._kept = KeptReleases(job, self._accesses)

    def released(self, name: str, number: int, wanted: Sequence[Table]) -> list[Floats]:
        """Make a release, or take up the one that an interrupted run has kept.

        Args:
            name: Under which its tables are kept.
            number: Which release of the plan it is, from 1.
            wanted: What to count.

        Raises:
            LostRun: The release was paid for and lost.
        """
        job, access = self._job, self._accesses[number - 1]
        counts = Counts(tables=wanted, max_records=job.encoder.schema.unit.max_records)

        def draw() -> list[torch.Tensor]:
            counted = counts.split(job.mechanism.release(counts, access, job.records))
            return [torch.from_numpy(table) for table in counted]

        names = [f"{name}_{place}" for place in range(len(wanted))]
        kept = self._kept.drawn(number, names, draw, doing="tables were counted")
        job.progress.at(number)
        return [table.numpy().astype(np.float64) for table in kept]
