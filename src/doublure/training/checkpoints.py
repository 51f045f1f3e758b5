"""The state that a run keeps, as named arrays: its releases, each drawn once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import Interrupted, LostRun, RunFolderError
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.executed import steps_of
from doublure.private.queries.axes import IntArray, Table
from doublure.private.queries.counts import Counts
from doublure.private.queries.dependence import Dependence
from doublure.support.tensors import Array, as_array, as_arrays

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.access import Access
    from doublure.training.job import Job

Floats: TypeAlias = npt.NDArray[np.float64]

_UNDRAWN = "undrawn_release"


@contextmanager
def restoring() -> Iterator[None]:
    """Refuse a checkpoint that belongs to other networks than the plan's.

    Raises:
        RunFolderError: What is done inside found no place for a tensor, or none for its shape.
    """
    try:
        yield
    except (KeyError, IndexError, ValueError, RuntimeError):
        raise RunFolderError(
            "does not fit the plan's networks", field="checkpoint", remedy="fit into a new folder"
        ) from None


class KeptReleases:
    """A stage's noisy releases, each kept as soon as it is drawn: what is lost cannot be drawn again.

    A release that a signal stops before its noise is drawn leaves a mark, which names the session that was stopped. A
    later session may draw it after all, once: that the mark was used stands in the ledger before the mechanism is
    told, so that a state which was put back from a copy draws nothing.

    Args:
        job: The stage.
        accesses: What pays for its releases, in order.

    Attributes:
        state: What is kept, by name.
    """

    def __init__(self, job: Job, accesses: Sequence[Access]) -> None:
        self._job = job
        self._paid_by = [access for access in accesses for _ in range(steps_of(access))]
        self.state = as_arrays(job.checkpoints.load() or {})
        self._mark = self.state.pop(_UNDRAWN, None)

    def drawn(
        self, number: int, names: Sequence[str], draw: Callable[[], Sequence[Array | Tensor]], *, doing: str
    ) -> list[Array]:
        """Return what a release has drawn: as it is kept, or drawn now, and kept.

        Args:
            number: Which release of the stage it is, from 1.
            names: Under which its numbers are kept.
            draw: Asks the mechanism, once.
            doing: What was done when it was lost, in words.

        Raises:
            LostRun: The release was paid for and lost.
        """
        job, access = self._job, self._paid_by[number - 1]
        before = self._paid_by[: number - 1].count(access)
        if not all(name in self.state for name in names):
            place = [job.accesses.index(access), before]
            spent, stopped = job.mechanism.taken(access) > before, self._stopped_at(place)
            if spent and stopped is None:
                raise _lost_release(doing)
            job.check_stop()
            try:
                if spent and stopped is not None:
                    if not job.restore_undrawn(stopped):
                        raise _lost_release(doing)
                    job.mechanism.not_drawn(access, before)
                found = draw()
            except (Interrupted, KeyboardInterrupt):
                if job.mechanism.taken(access) == before:
                    mark = np.array([*place, *job.session.encode()], dtype=np.int64)
                    job.checkpoints.save(number - 1, {**self.state, _UNDRAWN: mark})
                raise
            self.state |= dict(zip(names, map(as_array, found), strict=True))
            job.checkpoints.save(number, self.state)
        return [self.state[name] for name in names]

    def _stopped_at(self, place: list[int]) -> str | None:
        """Return the session that was stopped before the noise of the release at this place, if a mark says so."""
        if self._mark is None:
            return None
        with restoring():
            mark = self._mark.ravel().astype(np.int64).tolist()
            return bytes(mark[2:]).decode("ascii") if mark[:2] == place else None


def _lost_release(doing: str) -> LostRun:
    """Return the refusal to go on where a release was paid for and lost: it cannot be drawn again."""
    return LostRun(
        f"was cut off while {doing}, and their price covers one draw",
        field="run folder",
        remedy="fit into a new folder; what was charged stays charged",
    )


class KeptTables:
    """A job's releases, made, or restored from an interrupted run.

    Args:
        job: The run.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._accesses = [access for access in job.accesses if isinstance(access.event, DiscreteGaussianEvent)]
        self._kept = KeptReleases(job, self._accesses)

    def released(self, name: str, number: int, wanted: Sequence[Table]) -> list[Floats]:
        """Make a release, or restore the one that an interrupted run has kept.

        Args:
            name: Under which its tables are kept.
            number: Which release of the plan it is, from 1.
            wanted: What to count.

        Raises:
            LostRun: The release was paid for and lost.
        """
        job, access = self._job, self._accesses[number - 1]
        counts = Counts(tables=wanted, max_records=job.encoder.schema.most_records)

        def draw() -> list[npt.NDArray[Any]]:
            counted = counts.split(job.mechanism.release(counts, access, job.everyone))
            return list(counted)

        names = [f"{name}_{place}" for place in range(len(wanted))]
        kept = self._kept.drawn(number, names, draw, doing="tables were counted")
        job.progress.at(number)
        return [table.astype(np.float64) for table in kept]

    def scored(self, name: str, number: int, wanted: Sequence[Table], expected: Sequence[IntArray]) -> Floats:
        """Make a release of scores, one a table, or restore it.

        Args:
            name: Under which they are kept.
            number: Which release of the plan it is, from 1.
            wanted: What to count.
            expected: The counts that each table is compared with.

        Raises:
            LostRun: The release was paid for and lost.
        """
        job, access = self._job, self._accesses[number - 1]
        most = job.encoder.schema.most_records
        query = Dependence(tables=wanted, expected=expected, max_records=most)

        def draw() -> list[npt.NDArray[Any]]:
            return [job.mechanism.release(query, access, job.everyone)]

        (scores,) = self._kept.drawn(number, [name], draw, doing="tables were counted")
        job.progress.at(number)
        return scores.astype(np.float64)
