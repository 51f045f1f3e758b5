"""A critic's step as it goes to owners, and what an owner answers it with.

What computes in torch is imported where it is needed: owners whose records are counted have none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.federated import wire
from doublure.federated.wire import Said
from doublure.private.accounting import GaussianEvent

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.planning import Plan
    from doublure.private.queries.lot_gradients import CriticGradients
    from doublure.private.records import PrivateRecords
    from doublure.training.owned_critic import OwnedCritic

_NETWORKS = ("critic", "generator")


def step_said(query: CriticGradients, *, chosen: bool) -> Said:
    """Return what says which step is taken.

    Args:
        query: With the networks as they are.
        chosen: Whether coins were tossed already, one an owner.
    """
    from doublure.training.owned_critic import told

    if query.generator is None:
        raise TypeError("owners make partners by a generator")
    networks = dict(zip(_NETWORKS, (query.critic, query.generator), strict=True))
    arrays = {f"{of}.{name}": values for of, each in networks.items() for name, values in told(each).items()}
    if any(array.dtype.kind not in wire.NUMBERS for array in arrays.values()):
        raise TypeError("a network's state is not in numbers")
    return Said({"step": query.step, "chosen": chosen}, arrays)


def step_heard(said: Said, critic: OwnedCritic) -> tuple[CriticGradients, bool]:
    """Return the query that was asked, and whether the coins were tossed already.

    Raises:
        Garbled: It is not in this form.
        SettingError: It is none of the owner's plan.
    """
    step = wire.heard_as(said.words, "step", int, lambda: wire.garbled("question"))
    chosen = wire.heard_as(said.words, "chosen", bool, lambda: wire.garbled("question"))
    states: list[wire.Arrays] = []
    for of in _NETWORKS:
        before = f"{of}."
        own = {name: array for name, array in said.arrays.items() if name.startswith(before)}
        states.append({name.removeprefix(before): array for name, array in own.items()})
    return critic.query(step, *states), chosen


def records_of_nobody(encoder: Encoder) -> PrivateRecords:
    """Return encoded records of nobody: what a gradient of them looks like."""
    import torch

    from doublure.private.records import PrivateRecords

    def expanded(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        conditions = torch.zeros(len(rows), encoder.condition_width) if encoder.condition_width else None
        return torch.zeros(len(rows), *encoder.body_shape), conditions

    return PrivateRecords(np.zeros((0, 1), dtype=np.float32), np.zeros(0, dtype=np.int64), 0, expanded)


class Networks:
    """Networks of owners in this process: one set for as many owners as answer at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free: dict[tuple[str, str], list[OwnedCritic]] = {}

    @contextmanager
    def lent(self, plan: Plan, digest: str, encoder: Any) -> Iterator[OwnedCritic]:
        """Lend one set.

        Args:
            plan: The owner's.
            digest: Of the plan.
            encoder: Of the resolved schema.
        """
        from doublure.training.owned_critic import OwnedCritic
        from doublure.training.private_gan_settings import PrivateSettings

        key = digest, encoder.schema.to_yaml()
        with self._lock:
            free = self._free.setdefault(key, [])
            critic = free.pop() if free else None
        if critic is None:
            (event,), settings = (access.event for access in plan.training), plan.settings
            if not isinstance(settings, PrivateSettings) or not isinstance(event, GaussianEvent):
                raise wire.garbled("question")
            critic = OwnedCritic(encoder, settings, event, max(1, encoder.schema.public_units))
        try:
            yield critic
        finally:
            with self._lock:
                free.append(critic)
