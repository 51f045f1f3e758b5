"""Rows for a critic beside a mixture: every node's group as a one-hot block."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from doublure.errors import SettingError
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.private.queries.axes import AnyAxis, Intervals, axes_from_message, axes_to_message, whole
from doublure.private.records import PrivateRecords
from doublure.schema import Schema
from doublure.support.messages import Message
from doublure.support.tensors import Array, as_array
from doublure.training.job import Checkpoints, Job, State
from doublure.training.owned import unplanned

_AT_ONCE = 4096
_MOST = 2**28
_KEPT, _WORDS = "groups.", "words"


@dataclass(frozen=True)
class GroupRows:
    """The shapes that networks read from an encoder; conditions are columns like others.

    Attributes:
        schema: The schema, with every fact known.
        width: Total width of the one-hot blocks.
        condition_width: 0: rows have no separate condition.
    """

    schema: Schema
    width: int
    condition_width: int = 0

    @property
    def body_shape(self) -> tuple[int, ...]:
        """``(width,)``."""
        return (self.width,)


class GroupView:
    """View of records as groups, which follow from released tables.

    Args:
        axes: Each node's groups, then the target's values.
        components: Components of the mixture that the critic judges.

    Attributes:
        sizes: Number of groups of each axis.
        components: As given.
    """

    name: ClassVar[str] = "in groups"

    def __init__(self, axes: Sequence[AnyAxis], components: int) -> None:
        self._axes = axes
        self.sizes = [axis.size for axis in axes]
        self.components = components

    @classmethod
    def from_message(cls, message: Message, parts: int) -> GroupView:
        """Return the view that a message describes.

        Args:
            message: From the process that trains.
            parts: Numbers of a compact record.

        Raises:
            SettingError: The message does not fit the records.
        """
        try:
            axes = axes_from_message(message)
            found = cls(axes, whole(message.words["components"]))
            for axis in axes:
                axis.refuse_unfit(parts)
        except (KeyError, TypeError, ValueError, SettingError):
            raise unplanned("groups") from None
        if not 0 < found.components * sum(found.sizes) <= _MOST:
            raise unplanned("groups")
        return found

    def to_message(self) -> Message:
        """Return the groups."""
        axes = axes_to_message(self._axes)
        return Message({**axes.words, "components": self.components}, axes.arrays)

    @classmethod
    def of_state(cls, state: State, parts: int) -> GroupView:
        """Return the view that a critic's stage has kept beside its state (:class:`GroupCheckpoints`).

        Args:
            state: The stage's state.
            parts: Numbers of a compact record.

        Raises:
            SettingError: The state holds no view, or one that does not fit the records.
        """
        kept = {name.removeprefix(_KEPT): as_array(own) for name, own in state.items() if name.startswith(_KEPT)}
        try:
            words = json.loads(kept.pop(_WORDS).tobytes())
        except (KeyError, ValueError, RecursionError):
            raise unplanned("groups") from None
        return cls.from_message(Message(words, kept), parts)

    def state(self) -> dict[str, Array]:
        """Return the groups as arrays."""
        message = self.to_message()
        words = np.frombuffer(json.dumps(message.words).encode(), dtype=np.uint8)
        arrays = {**message.arrays, _WORDS: words}
        return {_KEPT + name: own for name, own in arrays.items()}

    def shapes(self, schema: Schema) -> GroupRows:
        """Return the shapes that networks read from an encoder."""
        return GroupRows(schema, sum(self.sizes))

    def __call__(self, records: PrivateRecords) -> PrivateRecords:
        """Return the records."""
        return records.mapped(self.one_hot, sum(self.sizes), rows=_AT_ONCE)

    def one_hot(self, bodies: Tensor) -> Tensor:
        """Return rows ``(B, width)`` of compact records ``(B, P)``, each from that record alone."""
        records = as_array(bodies)
        blocks = [functional.one_hot(torch.from_numpy(axis.of(records)), axis.size) for axis in self._axes]
        return torch.cat(blocks, dim=1).float()


class GroupCheckpoints:
    """Checkpoints of a critic with the groups of its input, without which a finished run's critic cannot be used.

    Args:
        whole: The stage's checkpoints.
        groups: The groups, which follow from noisy tables alone.
    """

    def __init__(self, whole: Checkpoints, groups: GroupView) -> None:
        self._whole = whole
        self._groups = groups.state()

    def save(self, step: int, state: State) -> None:
        """Replace the stage's state."""
        self._whole.save(step, {**state, **self._groups})

    def load(self) -> State | None:
        """Return the stage's state, if there is one, without the groups."""
        kept = self._whole.load()
        return kept and {name: own for name, own in kept.items() if not name.startswith(_KEPT)}


def with_group_view(job: Job, tables: NoisyTables, components: int) -> Job:
    """Return the job with records in groups, which follow from released tables.

    Args:
        job: The critic's stage.
        tables: The releases.
        components: Components of the mixture that the critic judges.
    """
    view = make_group_view(tables, components)
    own = GroupCheckpoints(job.checkpoints, view)
    return replace(job.seen(view), encoder=view.shapes(job.encoder.schema), checkpoints=own)  # type: ignore[arg-type]


def make_group_view(tables: NoisyTables, components: int = 1) -> GroupView:
    """Return the view of records in the groups of released tables."""
    axes = [node.axis(node.coarse) for node in tables.nodes]
    if tables.target is not None:
        starts = np.arange(tables.target.size, dtype=np.float64)
        values = np.arange(tables.target.size)
        axes.append(Intervals(part=tables.target_part, starts=starts, cells=values, size=tables.target.size))
    return GroupView(axes, components)
