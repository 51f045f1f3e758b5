"""One run by several processes under ``torchrun … -m doublure fit``, where rank 0 runs it and the others answer.

=====================  ==========================  =====================================================================
                       rank 0                      every other rank
=====================  ==========================  =====================================================================
plan, ledger, folder   reads and writes            receives the plan; opens neither ledger nor folder
the data               once it is charged          once rank 0 reports the charge; keeps its own units
facts of the schema    learns them, of all units,  reports that it has read the data, receives the resolved
                       once all have read the data schema
a noisy step           has it paid for, adds       answers for its units, receives the noisy sum
                       answers, adds the noise
a checkpoint, kept     writes it                   receives it when a run is resumed
answers
a signal               stops the run               ignores it, and ends with rank 0
=====================  ==========================  =====================================================================

Each session assigns the units anew, under a fresh key, so that a run may be resumed with another number of ranks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from safetensors.numpy import load, save
from typing_extensions import override

from doublure.data.opening import Given, open_data
from doublure.encode.choice import encoder_for
from doublure.errors import RankLost, SettingError
from doublure.methods import registry as methods
from doublure.planning import Plan
from doublure.private.executed import Executed
from doublure.private.kept_answers import AnswersInMemory, KeptAnswer, Place
from doublure.private.noise import source
from doublure.private.ranks import FollowerContext, LeaderContext, LocalContext
from doublure.schema import ResolvedSchema
from doublure.support.devices import check_device, threads_of_fit
from doublure.support.ranks import Follower, GlooLink, Leader, RankLink, RunEnded, rank_device, torchrun_rank
from doublure.support.stopping import signals_ignored
from doublure.support.tensors import as_arrays
from doublure.training.job import Job, NullWorkspace, State, Workspace, encoded_records

if TYPE_CHECKING:
    from doublure.access import Access
    from doublure.support.messages import Message

Checkpoint: TypeAlias = "Callable[[], State | None]"
Drawn: TypeAlias = "Callable[[], dict[Place, KeptAnswer]]"

_BEGIN, _LOADED, _TRAIN, _STATE = "begin", "loaded", "train", "state"


class LocalRun(LocalContext):
    """Messages of a run to other processes: none for a single process."""

    def refuse_unfit(self, plan: Plan, *, parted: bool) -> None:
        """Refuse a run that these processes cannot do together, before anything is charged.

        Raises:
            SettingError: Giving the reason.
        """

    def begin(self, plan: Plan, seed: int) -> None:
        """Report that the run is charged, so that records may be opened."""

    def loaded(self) -> None:
        """Wait until all have read their records, so that nothing is drawn if one cannot."""

    def train(self, schema: ResolvedSchema, checkpoint: Checkpoint, answers: Drawn, **facts: Any) -> None:
        """Send the state from which training goes on.

        Args:
            schema: Resolved.
            checkpoint: Returns the kept state, if there is one.
            answers: Returns the answers that earlier sessions kept.
            facts: Plain JSON.
        """

    def workspace(self, folder: Workspace) -> Workspace:
        """Return the storage for private numbers that take long to compute."""
        return folder


class LeaderRun(LeaderContext, LocalRun):
    """The first of several processes.

    Args:
        leader: Connection to the others.
        size: Number of processes.
    """

    @override
    def refuse_unfit(self, plan: Plan, *, parted: bool) -> None:
        if any(access.event is None for access in plan.training):
            message, remedy = f"{plan.method} trains on records themselves", "fit in one process"
            raise SettingError(message, field="ranks", remedy=remedy)
        if parted:
            raise SettingError("each rank holds its records", field="memory", remedy="leave it out, or take --engine")

    @override
    def begin(self, plan: Plan, seed: int) -> None:
        self._leader.broadcast(_BEGIN, {"plan": plan.to_json(), "seed": seed})

    @override
    def loaded(self) -> None:
        self._leader.gather(_LOADED)

    @override
    def train(self, schema: ResolvedSchema, checkpoint: Checkpoint, answers: Drawn, **facts: Any) -> None:
        state = checkpoint()
        kept = {} if state is None else {_STATE: np.frombuffer(save(as_arrays(state)), np.int8)}
        drawn = answers()
        of = [[*place, answer.asked, dict(answer.ran)] for place, answer in drawn.items()]
        noisy = {str(number): answer.noisy for number, answer in enumerate(drawn.values())}
        self._leader.broadcast(_TRAIN, {"schema": schema.to_yaml(), "answers": of, **facts}, noisy | kept)

    @override
    def workspace(self, folder: Workspace) -> Workspace:
        return NullWorkspace()


class FollowerRun:
    """Any other of several processes.

    Args:
        link: Connection to rank 0.
    """

    def __init__(self, link: RankLink) -> None:
        self._follower = Follower(link)
        self._follower.meet()

    def follow(self, data: Given, *, device: str = "cpu", threads: int | None = None) -> None:
        """Answer rank 0 until it ends the run; a failure here is sent to it, and reported there.

        Args:
            data: The same data as rank 0's, in equal files.
            device: Device to compute on.
            threads: CPU threads; left out, one where no torch is needed.

        Raises:
            RankLost: Rank 0 is gone.
        """
        with signals_ignored():
            try:
                self._answer(data, device, threads)
            except RunEnded:
                return
            except RankLost:
                raise
            except Exception as error:
                self._follower.fail(error)

    def _answer(self, data: Given, device: str, threads: int | None) -> None:
        told = self._follower.receive(_BEGIN).words
        plan, seed = Plan.from_json(told["plan"], reprice=False), int(told["seed"])
        method = methods.method(plan.method)
        method.ready(plan.schema, plan.settings)
        check_device(device)
        with threads_of_fit(threads, with_torch=method.needs_torch(plan.schema, plan.settings)):
            self._train(data, plan, seed, device)

    def _train(self, data: Given, plan: Plan, seed: int, device: str) -> None:
        given = open_data(data, plan.kind, plan.schema.written)
        given.check(plan.schema)
        table = given.load(plan.schema, at_least=plan.fewest_records)
        self._follower.send(_LOADED)
        message = self._follower.receive(_TRAIN)
        schema, taken = ResolvedSchema.parse(message.words["schema"]), int(message.words["taken"])
        encoder = encoder_for(schema, plan.settings.encoding)
        records = encoded_records(encoder, encoder.compact(table.content), table.unit, table.n_units, device)
        ranks = FollowerContext(self._follower)
        own = ranks.assigned(records, records.fingerprint if table.repeatable else "")
        accesses = plan.answered
        executed = Executed(access for access in accesses if access.event is not None)
        executed.restore(message.words["executed"])
        mechanism = ranks.mechanism(
            accesses,
            noise=source(),
            authorise=_pays_nothing,
            taken=taken,
            executed=executed,
            answers=AnswersInMemory(_answers_of(message)),
        )
        methods.method(plan.method).train(
            Job(
                encoder=encoder,
                records=own,
                settings=plan.settings,
                accesses=plan.training,
                mechanism=mechanism,
                sample_rate=plan.sample_rate or 1.0,
                units=max(1, schema.public_units),
                authorise=lambda step: None,
                check_stop=lambda: None,
                checkpoints=_ReceivedCheckpoint(_state_of(message)),
                taken=taken,
                seed=seed,
                device=device,
                delta_mu=plan.guarantee.delta_mu,
                agree=ranks.agree,
            )
        )
        self._follower.receive("end")


class _ReceivedCheckpoint:
    """The checkpoint received from rank 0, which alone writes checkpoints."""

    def __init__(self, state: State | None) -> None:
        self._state = state

    def save(self, step: int, state: State) -> None:
        """Keep the state for the next stage of this session."""
        self._state = state

    def load(self) -> State | None:
        """Return the checkpoint, if there is one."""
        return self._state


@contextlib.contextmanager
def join_ranks() -> Iterator[LocalRun | FollowerRun]:
    """Join the processes that ``torchrun`` started, or run alone.

    Raises:
        RankLost: One is gone before they have met.
    """
    if torchrun_rank() is None:
        yield LocalRun()
        return
    link = GlooLink()
    try:
        if link.rank:
            yield FollowerRun(link)
        else:
            with lead_ranks(link) as first:
                yield first
    finally:
        with contextlib.suppress(RuntimeError, ValueError):
            link.close()


@contextlib.contextmanager
def lead_ranks(link: RankLink) -> Iterator[LeaderRun]:
    """Lead the other ranks, and end them with this block, however it ends.

    Args:
        link: Connection to the others.
    """
    leader = Leader(link)
    try:
        leader.meet()
        yield LeaderRun(leader, link.size)
    finally:
        leader.end()


def _answers_of(message: Message) -> dict[Place, KeptAnswer]:
    return {
        (access, number): KeptAnswer(noisy=message.arrays[str(place)], asked=asked, ran=ran)
        for place, (access, number, asked, ran) in enumerate(message.words["answers"])
    }


def _state_of(message: Message) -> State | None:
    kept = message.arrays.get(_STATE)
    return None if kept is None else load(kept.tobytes())


def _pays_nothing(access: Access, step: int) -> None:
    raise TypeError("rank 0 pays")


__all__ = ["FollowerRun", "LeaderRun", "LocalRun", "join_ranks", "lead_ranks", "rank_device"]
