"""Noisy critic steps without a plan: an access, a mechanism and the steps, from one flat set of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from doublure.access import Access
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.mechanism import Mechanism
from doublure.private.noise import NoiseSource, OsKeyedNoise
from doublure.private.queries.lot_gradients import CriticSettings
from doublure.private.records import PrivateRecords

_OF_THE_EVENT = ("noise_multiplier", "sample_rate", "steps")


def critic_steps(
    records: PrivateRecords,
    given: Mapping[str, Any],
    *,
    noise: NoiseSource | None = None,
    authorise: Callable[[int], None] = lambda step: None,
    taken: int = 0,
    mixing: torch.Generator | None = None,
    allow_test_noise: bool = False,
) -> CriticSteps:
    """Return production steps over records.

    Args:
        records: The private records.
        given: What of :class:`GaussianEvent` and of :class:`CriticSettings` a step is, and ``distances``.
        noise: Where noise comes from.
        authorise: Called with the step's number.
        taken: Steps that an earlier session has spent.
        mixing: See there.
        allow_test_noise: See there.
    """
    own = dict(given)
    event = GaussianEvent(**{name: own.pop(name) for name in _OF_THE_EVENT if name in own})
    distances = own.pop("distances", None)
    access = Access(purpose="train the critic", event=event)
    mechanism = Mechanism(
        [access], noise=noise or OsKeyedNoise(), authorise=lambda access, step: authorise(step), taken=taken,
        allow_test_noise=allow_test_noise,
    )  # fmt: skip
    return CriticSteps(mechanism, access, records, CriticSettings(**own), distances=distances, mixing=mixing)
