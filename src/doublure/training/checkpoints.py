"""The state that a run keeps so that it can go on: networks and optimisers as named tensors, and noisy releases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from doublure.errors import Interrupted, LostRun, RunFolderError
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.queries.counts import Counts, Table

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.training.job import Job

Floats: TypeAlias = npt.NDArray[np.float64]

_UNDRAWN = "undrawn"


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
    """Refuse a kept state that belongs to other networks than the plan's.

    Raises:
        RunFolderError: What is done inside found no place for a tensor, or none for its shape.
    """
    try:
        yield
    except (KeyError, IndexError, ValueError, RuntimeError):
        raise RunFolderError(
            "does not fit the plan's networks", field="checkpoint", remedy="fit into a new folder"
        ) from None


def undrawn_taken_up(job: Job) -> dict[str, Tensor]:
    """Return a job's kept state; a release that was stopped before its noise was drawn may be drawn after all.

    The mark that says so is gone from disk before the mechanism is told. It holds for the session right after the one
    that wrote it: one that was put back from a copy says nothing about what has been drawn since.
    """
    kept = dict(job.checkpoints.load() or {})
    mark = kept.pop(_UNDRAWN, None)
    if mark is not None:
        place, taken, at, *session = (int(number) for number in mark)
        job.checkpoints.save(at, kept)
        if job.resumed_from is not None and session == list(job.resumed_from.encode()):
            job.mechanism.not_drawn(job.accesses[place], taken)
    return kept


@contextmanager
def undrawn_is_kept(job: Job, access: Access, kept: Mapping[str, Tensor], at: int) -> Iterator[None]:
    """Keep a mark where a signal stops a release before its noise is drawn.

    Args:
        job: The stage.
        access: What pays for the release.
        kept: The stage's state before it.
        at: The stage's step before it.
    """
    before = job.mechanism.taken(access)
    try:
        yield
    except (Interrupted, KeyboardInterrupt):
        if job.mechanism.taken(access) == before:
            mark = torch.tensor([job.accesses.index(access), before, at, *job.session.encode()])
            job.checkpoints.save(at, {**kept, _UNDRAWN: mark})
        raise


def lost_release(doing: str) -> LostRun:
    """Return the refusal to go on where a release was paid for and lost: it cannot be drawn again."""
    return LostRun(
        f"was cut off while {doing}, and their price covers one draw",
        field="run folder",
        remedy="fit into a new folder; what was charged stays charged",
    )


class KeptTables:
    """A job's releases of noisy tables, kept as soon as they are drawn: made or taken up from an interrupted run.

    Args:
        job: The run.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._kept = undrawn_taken_up(job)
        self._accesses = [access for access in job.accesses if isinstance(access.event, DiscreteGaussianEvent)]

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
                raise lost_release("tables were counted")
            counts = Counts(tables=wanted, max_records=job.encoder.schema.unit.max_records)
            job.check_stop()
            with undrawn_is_kept(job, access, self._kept, number - 1):
                counted = counts.split(job.mechanism.release(counts, access, job.records))
            self._kept |= {each: torch.from_numpy(table) for each, table in zip(names, counted, strict=True)}
            job.checkpoints.save(number, self._kept)
        job.progress.at(number)
        return [self._kept[each].numpy().astype(np.float64) for each in names]


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
