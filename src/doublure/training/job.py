"""The job that a method trains on: records, accesses, the mechanism and the run's state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias

from typing_extensions import TypeVar

from doublure.access import Access
from doublure.encode.encoder import Encoder
from doublure.support.progress import Progress, SilentProgress
from doublure.training.settings import MethodSettings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor

    from doublure.private.bayesian import BayesianAccountant
    from doublure.private.mechanism import Mechanism
    from doublure.private.partitions import Partitions
    from doublure.private.queries.counts import Countable
    from doublure.private.records import PrivateRecords
    from doublure.support.row_files import StoredRows
    from doublure.support.tensors import Array
    from doublure.training.noisy_tables import NoisyTable


S_co = TypeVar("S_co", bound=MethodSettings, covariant=True, default=MethodSettings)
E_co = TypeVar("E_co", bound=Encoder, covariant=True, default=Encoder)
State: TypeAlias = "Mapping[str, Array | Tensor]"
"""Arrays or tensors by name."""


class Checkpoints(Protocol):
    """Keeps the state of a run that may be cut off."""

    def save(self, step: int, state: State) -> None:
        """Replace the checkpoint."""

    def load(self) -> State | None:
        """Return the checkpoint, if there is one, as arrays."""


class Workspace(Protocol):
    """Store of private numbers that are slow to compute, in a run's internal folder until the run ends."""

    def keep(self, name: str, state: State, key: str) -> None:
        """Replace what is kept under a name.

        Args:
            name: A short word.
            state: Private.
            key: Identifies the inputs; a computation with other inputs never finds the state.
        """

    def kept(self, name: str, key: str) -> State | None:
        """Return what is kept under a name, if its key is the same."""

    def forget(self, name: str) -> None:
        """Remove it."""


class NullWorkspace:
    """A workspace that keeps nothing."""

    def keep(self, name: str, state: State, key: str) -> None:
        """Keep nothing."""

    def kept(self, name: str, key: str) -> State | None:
        """Return nothing."""
        return None

    def forget(self, name: str) -> None:
        """Remove nothing."""


@dataclass(frozen=True, kw_only=True)
class Job(Generic[S_co, E_co]):
    """Everything a method needs to train, without any other way to read the data.

    Attributes:
        encoder: Turns records into numbers and back.
        records: The private records; only the mechanism may read them.
        partitions: The partitions that hold the records, for a method whose every query can be asked of partitions
            (:attr:`doublure.training.settings.Work.records_bytes`); None: ``records`` holds them.
        settings: The method's settings, with defaults resolved.
        accesses: The plan's priced accesses, in order; the only source of σ, q and T.
        mechanism: Answers queries, and pays for them by these accesses.
        units: N, public or bought: the divisor and nothing else.
        authorise: Returns once the given step is written down, where no access pays for it.
        check_stop: Raises Interrupted after a stop signal; called only where no drawn answer would be lost.
        taken: Noisy steps already spent by an interrupted run.
        sample_rate: q of lots without a guarantee; a private lot's rate is its event's.
        checkpoints: Keeps the run's state.
        workspace: Keeps private numbers until the run is finished.
        progress: Receives progress events.
        seed: Public: initial weights and the generator's noise, never the privacy noise.
        device: The device to compute on.
        log: Takes one public line of figures at a time.
        delta_mu: δ_μ, where a Bayesian claim is planned.
        measured: Takes the Bayesian accountant, once, before the end.
        hand_out: Takes the noisy tables that may be published, once, before the end; most methods have none.
        agree: Where several processes train one generator, replaces tensors by those of the first process, in place:
            results of the same releases may differ by rounding.
    """

    encoder: E_co
    records: PrivateRecords
    settings: S_co
    accesses: tuple[Access, ...]
    mechanism: Mechanism
    units: int
    authorise: Callable[[int], None]
    check_stop: Callable[[], None]
    checkpoints: Checkpoints
    taken: int = 0
    sample_rate: float = 1.0
    workspace: Workspace = field(default_factory=NullWorkspace)
    progress: Progress = field(default_factory=SilentProgress)
    seed: int = 0
    device: str = "cpu"
    log: Callable[[dict[str, Any]], None] = lambda _: None
    delta_mu: float | None = None
    partitions: Partitions[Countable] | None = None
    measured: Callable[[BayesianAccountant], None] = lambda _: None
    hand_out: Callable[[tuple[NoisyTable, ...]], None] = lambda _: None
    agree: Callable[[Sequence[Tensor]], None] = lambda _: None

    @property
    def private(self) -> bool:
        """Whether all that is touched is protected."""
        return bool(self.accesses) and all(access.event is not None for access in self.accesses)

    @property
    def everyone(self) -> Countable | Partitions[Countable]:
        """All records, held or in partitions, as a counting query takes them."""
        return self.records if self.partitions is None else self.partitions

    def seen(self, view: Callable[[PrivateRecords], PrivateRecords]) -> Job:
        """Return the job with a view applied to its records, held or in partitions.

        Args:
            view: Maps each record by itself; for records that stay with their owners one of
                :mod:`doublure.training.owned`, which owners can compute.
        """
        if self.partitions is None:
            return replace(self, records=view(self.records))
        return replace(self, partitions=self.partitions.map(view))

    def having(self, part: int, least: float, parts: npt.NDArray[np.int64], domains: Sequence[tuple[int, int]]) -> Job:
        """Return the job of the records in which one part is large enough, reduced to some parts.

        Args:
            part: The part that is compared.
            least: Its least value.
            parts: ``(Q,)`` the parts that are kept, in order.
            domains: Of each of these the lowest and the highest code, missing included.
        """
        if self.partitions is None:
            return replace(self, records=self.records.having(part, least, parts))
        return replace(self, partitions=self.partitions.having(part, least, parts, domains))

    def stage(self, name: str, *, after: int) -> Job[S_co, E_co]:
        """Return the job of one stage, with its own noisy steps and its own state.

        Args:
            name: The key of the stage's state.
            after: Noisy steps that the plan has for earlier stages.
        """
        return replace(
            self,
            authorise=lambda step: self.authorise(after + step),
            checkpoints=StageCheckpoints(self.checkpoints, name, after),
            taken=max(0, self.taken - after),
        )


class ProgressCounter:
    """Progress of a computation on every record, scaled to the public number of units.

    Progress relative to the true number of records would reveal it.

    Args:
        job: The run.
        rows: Records in a batch, whose places are drawn (:meth:`doublure.private.records.PrivateRecords.mapped`).
    """

    def __init__(self, job: Job, rows: int) -> None:
        self.job = job
        each = job.units / rows
        self._planned = math.ceil(each + math.sqrt(2 * each * math.log(rows)))  # the fullest place decides

    def load(self, shape: tuple[int, int]) -> Tensor | None:
        """Return nothing: nothing is kept."""
        return None

    def save(self, rows: Tensor, batches: int, *, last: bool) -> None:
        """Count the batches that are finished."""
        units = self.job.units
        self.job.progress.at(units if last else units * min(batches, self._planned) // self._planned)


class StageCheckpoints:
    """Checkpoints of one stage, stored beside those of the run's other stages.

    Args:
        whole: The run's checkpoints.
        name: The stage's name.
        after: Noisy steps that the plan has for earlier stages.
    """

    def __init__(self, whole: Checkpoints, name: str, after: int) -> None:
        self._whole = whole
        self._prefix = f"{name}/"
        self._after = after
        kept = whole.load() or {}
        self._others = {key: value for key, value in kept.items() if not key.startswith(self._prefix)}

    def save(self, step: int, state: State) -> None:
        """Replace the stage's state."""
        own = {self._prefix + key: value for key, value in state.items()}
        self._whole.save(self._after + step, {**self._others, **own})

    def load(self) -> State | None:
        """Return the stage's state, if there is one."""
        kept = self._whole.load() or {}
        own = {key.removeprefix(self._prefix): value for key, value in kept.items() if key.startswith(self._prefix)}
        return own or None


def encoded_records(
    encoder: Encoder, compact: Array | StoredRows, unit: npt.NDArray[np.int64], n_units: int, device: str = "cpu"
) -> PrivateRecords:
    """Return records in an encoder's compact form, which is expanded lot by lot.

    Args:
        encoder: The method's encoder.
        compact: ``(N, P)``, in memory or in a file.
        unit: ``(N,)`` int64, each record's unit, 0 … n_units - 1.
        n_units: The number of units.
        device: The device that lots are expanded on.
    """
    from doublure.private.records import PrivateRecords

    return PrivateRecords(compact, unit, n_units, lambda rows: encoder.split(encoder.expand(rows)), device)
