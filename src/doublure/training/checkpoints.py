"""The state that a run keeps: networks and optimisers as named tensors, and back; releases, each drawn once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from doublure.errors import Interrupted, LostRun, RunFolderError
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.executed import steps_of
from doublure.private.queries.axes import IntArray, Table
from doublure.private.queries.counts import Counts
from doublure.private.queries.dependence import Dependence

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.training.job import Job

Floats: TypeAlias = npt.NDArray[np.float64]

_UNDRAWN = "undrawn_release"


def written(modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]) -> dict[str, Tensor]:
    """Return copies of all states on the CPU, as ``name.key`` and ``name.number.key``."""
    tensors = {f"{name}.{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}
    for name, optimizer in optimizers.items():
        for number, entries in optimizer.state_dict()["state"].items():
            tensors |= {f"{name}.{number}.{key}": torch.as_tensor(value) for key, value in entries.items()}
    return {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}


def take_up(
    tensors: Mapping[str, Tensor], modules: Mapping[str, nn.Module], optimizers: Mapping[str, torch.optim.Optimizer]
) -> None:
    """Bring networks and optimisers back to what was written.

    Raises:
        KeyError, ValueError, RuntimeError: The tensors are those of other networks.
    """
    for name, module in modules.items():
        module.load_state_dict(_under(tensors, f"{name}."))
    for name, optimizer in optimizers.items():
        entries: dict[int, dict[str, Tensor]] = {}
        for key, value in _under(tensors, f"{name}.").items():
            number, _, entry = key.partition(".")
            entries.setdefault(int(number), {})[entry] = value
        optimizer.load_state_dict({"state": entries, "param_groups": optimizer.state_dict()["param_groups"]})


@contextmanager
def taken_up() -> Iterator[None]:
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
        tensors: What is kept, by name.
    """

    def __init__(self, job: Job, accesses: Sequence[Access]) -> None:
        self._job = job
        self._paid_by = [access for access in accesses for _ in range(steps_of(access))]
        self.tensors = dict(job.checkpoints.load() or {})
        self._mark = self.tensors.pop(_UNDRAWN, None)

    def drawn(
        self, number: int, names: Sequence[str], draw: Callable[[], Sequence[Tensor]], *, doing: str
    ) -> list[Tensor]:
        """Return what a release has drawn: as it is kept, or drawn now, and kept.

        Args:
            number: Which release of the stage it is, from 1.
            names: Under which its tensors are kept.
            draw: Asks the mechanism, once.
            doing: What was done when it was lost, in words.

        Raises:
            LostRun: The release was paid for and lost.
        """
        job, access = self._job, self._paid_by[number - 1]
        before = self._paid_by[: number - 1].count(access)
        if not all(name in self.tensors for name in names):
            place = [job.accesses.index(access), before]
            spent, stopped = job.mechanism.taken(access) > before, self._stopped_at(place)
            if spent and stopped is None:
                raise _lost_release(doing)
            job.check_stop()
            try:
                if spent and stopped is not None:
                    if not job.take_up_undrawn(stopped):
                        raise _lost_release(doing)
                    job.mechanism.not_drawn(access, before)
                found = draw()
            except (Interrupted, KeyboardInterrupt):
                if job.mechanism.taken(access) == before:
                    mark = torch.tensor([*place, *job.session.encode()])
                    job.checkpoints.save(number - 1, {**self.tensors, _UNDRAWN: mark})
                raise
            self.tensors |= dict(zip(names, found, strict=True))
            job.checkpoints.save(number, self.tensors)
        return [self.tensors[name] for name in names]

    def _stopped_at(self, place: list[int]) -> str | None:
        """Return the session that was stopped before the noise of the release at this place, if a mark says so."""
        if self._mark is None:
            return None
        with taken_up():
            mark = self._mark.flatten().long().tolist()
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

        def draw() -> list[torch.Tensor]:
            counted = counts.split(job.mechanism.release(counts, access, job.everyone))
            return [torch.from_numpy(table) for table in counted]

        names = [f"{name}_{place}" for place in range(len(wanted))]
        kept = self._kept.drawn(number, names, draw, doing="tables were counted")
        job.progress.at(number)
        return [table.numpy().astype(np.float64) for table in kept]

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

        def draw() -> list[torch.Tensor]:
            return [torch.from_numpy(job.mechanism.release(query, access, job.everyone))]

        (scores,) = self._kept.drawn(number, [name], draw, doing="tables were counted")
        job.progress.at(number)
        return scores.numpy().astype(np.float64)


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
