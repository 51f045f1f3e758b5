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
from doublure.training import checkpoints as kept_state

Floats: TypeAlias = npt.NDArray[np.float64]


class KeptTables:
    """A job's releases, made or taken up from an interrupted run.

    Args:
        job: The run.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._kept = kept_state.undrawn_taken_up(job)
        self._accesses = counting_accesses(job.accesses)

    def released(self, name: str, number: int, wanted: Sequence[Table]) -> list[Floats]:
        """Make a release, or take up the one that an interrupted run has kept.

        Args:
            name: Under which its tables are kept.
            number: Which release of the plan it is, from 1.
            wanted: What to count.

        Raises:
            RunFolderError: The release was paid for and lost.
        """
        job, access = self._job, self._accesses[number - 1]
        names = [f"{name}_{place}" for place in range(len(wanted))]
        if not all(each in self._kept for each in names):
            if job.mechanism.taken(access):
                raise kept_state.lost_release("tables were counted")
            counts = Counts(tables=wanted, max_records=job.encoder.schema.unit.max_records)
            job.check_stop()
            with kept_state.undrawn_is_kept(job, access, self._kept, number - 1):
                counted = counts.split(job.mechanism.release(counts, access, job.records))
            self._kept |= {each: torch.from_numpy(table) for each, table in zip(names, counted, strict=True)}
            job.checkpoints.save(number, self._kept)
        job.progress.at(number)
        return [self._kept[each].numpy().astype(np.float64) for each in names]
