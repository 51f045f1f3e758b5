"""Noisy tables that are kept as soon as they are released: what is lost cannot be drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from doublure.errors import Interrupted
from doublure.methods import kept_state
from doublure.methods.base import Job
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.tabulation import PrivateTables, Table

Floats: TypeAlias = npt.NDArray[np.float64]


_UNDRAWN = "undrawn_after"


class KeptTables:
    """A job's releases, made or taken up from an interrupted run.

    Args:
        job: The run.
        events: What the plan pays for, a release each.
    """

    def __init__(self, job: Job, events: Sequence[DiscreteGaussianEvent]) -> None:
        self._job = job
        self._kept: dict[str, Tensor] = dict(job.checkpoints.load() or {})
        # A release that was stopped before its noise was drawn may still be drawn: once the mark is gone from disk.
        undrawn = self._kept.pop(_UNDRAWN, None)
        taken = job.taken if undrawn is None else min(job.taken, int(undrawn))
        if undrawn is not None:
            job.checkpoints.save(taken, self._kept)
        self._tables = PrivateTables(job.records, events, authorise=job.authorise, taken=taken)

    def released(self, name: str, number: int, wanted: Sequence[Table]) -> list[Floats]:
        """Make a release, or take up the one that an interrupted run has kept.

        Args:
            name: Under which its tables are kept.
            number: Which release of the plan it is, from 1.
            wanted: What to count.

        Raises:
            RunFolderError: The release was paid for and lost.
        """
        names = [f"{name}_{place}" for place in range(len(wanted))]
        if not all(each in self._kept for each in names):
            if self._tables.taken >= number:
                raise kept_state.lost_release("tables were counted")
            try:
                counted = self._tables.release(wanted)
            except (Interrupted, KeyboardInterrupt):
                if self._tables.taken < number:
                    mark = {_UNDRAWN: torch.tensor([number - 1])}
                    self._job.checkpoints.save(number - 1, self._kept | mark)
                raise
            self._kept |= {each: torch.from_numpy(table) for each, table in zip(names, counted, strict=True)}
            self._job.checkpoints.save(number, self._kept)
        self._job.progress.at(number)
        return [self._kept[each].numpy().astype(np.float64) for each in names]
