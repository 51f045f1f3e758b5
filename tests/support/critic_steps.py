"""Noisy critic steps without a plan: an access, a mechanism and the steps, from one flat set of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from doublure.access import Access
from doublure.private.accounting import GaussianEvent
from doublure.private.critic_steps import CriticSteps
from doublure.private.filters import SpendingStore
from doublure.private.mechanism import Mechanism
from doublure.private.noise import NoiseSource, OsKeyedNoise
from doublure.private.queries.lot_gradients import CriticSettings
from doublure.private.records import PrivateRecords

WIDTH, UNITS = 3, 12
_OF_THE_EVENT = ("noise_multiplier", "sample_rate", "steps", "filter_steps")


class Critic(nn.Module):
    """Scores of records ``(B, WIDTH)`` without a constant of their own, and gradients of many lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, 6), nn.LeakyReLU(0.2), nn.Linear(6, 1, bias=False))
        draw = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=draw))

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.body(x).squeeze(1)


def people(units: int = UNITS) -> Tensor:
    return torch.randn(units, WIDTH, generator=torch.Generator().manual_seed(7))


def critic_steps(
    records: PrivateRecords,
    given: Mapping[str, Any],
    *,
    noise: NoiseSource | None = None,
    authorise: Callable[[int], None] = lambda step: None,
    taken: int = 0,
    mixing: torch.Generator | None = None,
    allow_test_noise: bool = False,
    spending: SpendingStore | None = None,
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
        spending: See :class:`CriticSteps`.
    """
    own = dict(given)
    event = GaussianEvent(**{name: own.pop(name) for name in _OF_THE_EVENT if name in own})
    distances = own.pop("distances", None)
    access = Access(purpose="train the critic", event=event)
    mechanism = Mechanism(
        [access], noise=noise or OsKeyedNoise(), authorise=lambda access, step: authorise(step), taken=taken,
        allow_test_noise=allow_test_noise,
    )  # fmt: skip
    return CriticSteps(
        mechanism, access, records, CriticSettings(**own), distances=distances, mixing=mixing, spending=spending
    )
