"""State that a run resumes from: its networks and its releases of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from doublure.errors import RunFolderError
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.axes import Table
from doublure.private.queries.counts import Counts
from doublure.private.queries.dependence import Dependence
from doublure.support.arrays import Floats, Ints

if TYPE_CHECKING:
    from doublure.training.job import Job


@contextmanager
def restoring() -> Iterator[None]:
    """Refuse a checkpoint of networks other than the plan's.

    Raises:
        RunFolderError: The block inside met a tensor with an unknown name or another shape.
    """
    try:
        yield
    except (KeyError, IndexError, ValueError, RuntimeError):
        raise RunFolderError(
            "does not fit the plan's networks", field="checkpoint", remedy="fit into a new folder"
        ) from None


class KeptTables:
    """A job's releases of tables, which the mechanism keeps.

    Args:
        job: The run.

    Raises:
        LostRun: A release was paid for and lost.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._accesses = [access for access in job.accesses if isinstance(access.event, DiscreteGaussianEvent)]
        job.mechanism.refuse_lost(*self._accesses)

    def released(self, number: int, wanted: Sequence[Table]) -> list[Floats]:
        """Make a release, or read the one that an interrupted run has kept.

        Args:
            number: The release's place in the plan, from 1.
            wanted: The tables to count.
        """
        job, access = self._job, self._accesses[number - 1]
        counts = Counts(tables=wanted, max_records=job.encoder.schema.most_records)
        job.check_stop()
        counted = counts.split(job.mechanism.release(counts, access, job.everyone))
        job.progress.at(number)
        return [table.astype(np.float64) for table in counted]

    def scored(self, number: int, wanted: Sequence[Table], expected: Sequence[Ints]) -> Floats:
        """Make a release of dependence scores, one a table, or read it.

        Args:
            number: The release's place in the plan, from 1.
            wanted: The tables to score.
            expected: The counts that each table is compared with.
        """
        job, access = self._job, self._accesses[number - 1]
        most = job.encoder.schema.most_records
        query = Dependence(tables=wanted, expected=expected, max_records=most)
        job.check_stop()
        scores: npt.NDArray[Any] = job.mechanism.release(query, access, job.everyone)
        job.progress.at(number)
        return scores.astype(np.float64)
