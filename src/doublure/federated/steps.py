"""Questions to owners other than counts, as messages: a critic's step, and a sum of bounded vectors.

A question may carry the view through which records are seen. torch is imported where it is needed, as owners whose
records are counted may have none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from doublure.methods import registry as methods
from doublure.private.accounting import GaussianEvent
from doublure.support.messages import Message, prefix_part, require_word, select_part
from doublure.training.owned import OwnerCritic, OwnerFunction, OwnerTasks, RecordView, network_arrays, unplanned

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.planning import Plan
    from doublure.private.queries.lot_gradients import CriticGradients
    from doublure.private.queries.sums import BoundedSums
    from doublure.private.records import PrivateRecords
    from doublure.support.tensors import Array

_NETWORKS = ("critic", "generator")
_VIEW, _SUMMAND = "view", "summand"
STEP, SUMS = "step", "sums"
_CRITICS = 8


def encode_question(query: Any, view: Any, *, chosen: bool) -> tuple[str, Message]:
    """Return the kind of a question to owners, and its message.

    Args:
        query: A critic's step, with the current networks; or a sum of bounded vectors.
        view: The view of the records; None: the records themselves.
        chosen: Whether coins were tossed already, one an owner.
    """
    from doublure.private.queries.lot_gradients import CriticGradients
    from doublure.private.queries.sums import BoundedSums

    if isinstance(query, CriticGradients):
        ask, message = STEP, _encode_step(query, chosen=chosen)
    elif isinstance(query, BoundedSums):
        ask, message = SUMS, _encode_part(cast("OwnerFunction", query.factors), _SUMMAND)
    else:
        raise TypeError(f"{type(query).__name__} is not asked of owners")
    if view is not None:
        seen = _encode_part(view, _VIEW)
        message = Message({**message.words, **seen.words}, {**message.arrays, **seen.arrays})
    return ask, message


def _encode_step(query: CriticGradients, *, chosen: bool) -> Message:
    networks = {"critic": query.critic}
    if query.settings.paired:
        if query.generator is None:
            raise TypeError("owners make partners by a generator")
        networks["generator"] = query.generator
    arrays: dict[str, Array] = {}
    for of, network in networks.items():
        arrays |= prefix_part(network_arrays(network), of)
    return Message({"step": query.step, "chosen": chosen}, arrays)


def _encode_part(what: OwnerFunction, of: str) -> Message:
    told = what.to_message()
    return Message({of: {"name": what.name, "words": told.words}}, prefix_part(told.arrays, of))


# -- at the owner's ----------------------------------------------------------------------------------------------------


class OwnerComputation:
    """Rebuilds views, sums and networks from messages, as one owner's plan defines them.

    Args:
        plan: The owner's.
        encoder: Of the resolved schema.
        units: The number that the owner declares; None: the plan's.

    Attributes:
        schema: As text.
    """

    def __init__(self, plan: Plan, encoder: Encoder, *, units: int | None = None) -> None:
        self._plan = plan
        self._units = units
        self._encoder = encoder
        self.schema = encoder.schema.to_yaml()
        self._own: OwnerTasks = methods.method(plan.method).at_owner(encoder, plan.settings)
        self._seen: tuple[str, PrivateRecords] | None = None

    def view(self, message: Message) -> RecordView | None:
        """Return the view that a message asks for, if any.

        Raises:
            MalformedMessage: The message is malformed.
            SettingError: The view is not in the owner's plan.
        """
        if _VIEW not in message.words:
            return None
        name, part = _decode_part(message, _VIEW)
        if name not in self._own.views:
            raise unplanned(_VIEW)
        return self._own.views[name](part)

    def seen(self, message: Message, records: PrivateRecords, view: RecordView | None) -> PrivateRecords:
        """Return the owner's records through a view; kept until another view is asked for, as it may take long."""
        if view is None:
            return records
        key = Message({_VIEW: message.words[_VIEW]}, select_part(message.arrays, _VIEW)).sha256
        if self._seen is None or self._seen[0] != key:
            self._seen = None
            self._seen = key, view(records)
        return self._seen[1]

    def sums(self, message: Message, access: Any) -> BoundedSums:
        """Return the sum that a message asks for, with the bound of the owner's plan.

        Raises:
            MalformedMessage: The message is malformed.
            SettingError: The sum is not in the owner's plan.
        """
        from doublure.private.queries.sums import BoundedSums

        name, part = _decode_part(message, _SUMMAND)
        if name not in self._own.summands or not isinstance(access.event, GaussianEvent):
            raise unplanned(_SUMMAND)
        summand, most = self._own.summands[name](part), self._plan.schema.most_records
        return BoundedSums(
            factors=summand,
            shape=summand.shape,
            max_records=most,
            bound=self._own.bounds.get(name, 1.0),
            noise=access.event.noise_multiplier * most,
        )

    def critic(self, event: GaussianEvent, view: RecordView | None) -> OwnerCritic:
        """Return networks into which a critic's states can be loaded."""
        if self._own.adversary is None:
            raise unplanned("step")
        planned = max(1, self._plan.schema.public_units)
        return OwnerCritic(
            self._own.adversary(view),
            event,
            units=max(1, self._encoder.schema.public_units),
            planned_units=planned,
            own_units=planned if self._units is None else self._units,
        )


def _decode_part(message: Message, of: str) -> tuple[str, Message]:
    found = require_word(message.words, of, dict)
    words = require_word(found, "words", dict)
    return require_word(found, "name", str), Message(words, select_part(message.arrays, of))


def decode_step(message: Message, critic: OwnerCritic) -> tuple[CriticGradients, bool]:
    """Return the query of a message, and whether the coins were tossed already.

    Raises:
        MalformedMessage: The message is malformed.
        SettingError: The step is not in the owner's plan.
    """
    step = require_word(message.words, "step", int)
    chosen = require_word(message.words, "chosen", bool)
    critic_state, generator_state = (select_part(message.arrays, of) for of in _NETWORKS)
    return critic.query(step, critic_state, generator_state, chosen=chosen), chosen


def empty_records(encoder: Encoder) -> PrivateRecords:
    """Return empty encoded records, for the form of their gradients."""
    import torch

    from doublure.private.records import PrivateRecords

    def expanded(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        if encoder.of_wholes:
            return rows, None
        conditions = torch.zeros(len(rows), encoder.condition_width) if encoder.condition_width else None
        return torch.zeros(len(rows), *encoder.body_shape), conditions

    parts, kind = (encoder.width, np.float64) if encoder.of_wholes else (encoder.code_parts, np.float32)
    return PrivateRecords(np.zeros((0, parts), dtype=kind), np.zeros(0, dtype=np.int64), 0, expanded)


class NetworkPool:
    """A pool of networks for the owners in this process, one set per concurrent answer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[tuple[Any, ...], list[OwnerCritic]] = {}

    @contextmanager
    def lend(self, message: Message, key: tuple[Any, ...], make: Any) -> Iterator[OwnerCritic]:
        """Lend one set.

        Args:
            message: The question.
            key: Identifies the set, together with the question's view.
            make: Makes one.
        """
        seen = message.words.get(_VIEW)
        key = *key, Message({_VIEW: seen}, select_part(message.arrays, _VIEW)).sha256
        with self._lock:
            while len(self._free) > _CRITICS:  # of runs that are over
                del self._free[next(iter(self._free))]
            free = self._free.setdefault(key, [])
            critic = free.pop() if free else None
        critic = make() if critic is None else critic
        try:
            yield critic
        finally:
            with self._lock:
                free.append(critic)
