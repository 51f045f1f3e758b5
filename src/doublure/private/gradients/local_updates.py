"""Local updates: units take several steps of a critic by themselves, and their updates stand in for gradients.

A unit begins with the critic as it is, takes k steps of plain gradient descent on its own records alone, and sends the
mean of their gradients, which is how far it has moved the critic over k times the learning rate (McMahan et al. 2018,
DP-FedAvg). The update is clipped as a gradient is: once, as a whole, to C.

Guarantee: none of its own. A unit's update follows from that unit's records, the critic as it was, and draws that are
secret and fresh; no other unit has any part in it, so that the sum of clipped updates moves by C at most.

==============================  =====================================================================
edge case                       what happens
==============================  =====================================================================
a gradient on the way that is   the whole update is not finite, and counts for zero
not finite
a unit without a record         its update is zero
==============================  =====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.gradients.loss import CriticLoss
from doublure.private.gradients.lots import LotGradients, RecordGradients

# Of a float32 vector of up to 2^24 numbers: what rounding may hide of its length.
_ROUNDING = 2.0**-20


@dataclass(frozen=True, kw_only=True)
class LocalSteps:
    """Settings of the steps that units take by themselves.

    Attributes:
        count: k, the number of steps.
        rate: The learning rate of a step.
    """

    count: int
    rate: float

    def __post_init__(self) -> None:
        if self.count < 1 or not self.rate > 0:
            raise SettingError("must be at least 1, at a rate above 0", field="local_steps", remedy="take 1")


@dataclass(frozen=True)
class UnitUpdate:
    """One unit's update, in the form of :class:`doublure.private.gradients.UnitGradients`. Private.

    Args:
        units: Index of the unit in the lot, (1,).
        update: (P,) float32.
    """

    units: Tensor
    update: Tensor

    def norms(self) -> Tensor:
        """Return a bound on its length, (1,) float64; NaN or infinite where it is not finite."""
        norm: Tensor = self.update.double().norm().view(1) * (1 + _ROUNDING)
        return norm

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Return the update times its weight, (1,); of weight zero, zeros whatever it is."""
        weight = weights.double()
        kept = torch.where(weight > 0, self.update.double(), 0.0)
        return (kept * weight).to(self.update.dtype)


class LocalUpdates:
    """Computes units' updates of one critic.

    Args:
        critic: The critic, which is copied and never changed.
        loss: The loss of one record.
        steps: The steps that each unit takes.
    """

    def __init__(self, critic: nn.Module, loss: CriticLoss, steps: LocalSteps) -> None:
        self._critic = critic
        self._moved = deepcopy(critic)
        self._gradients = RecordGradients(self._moved, loss)
        self._steps = steps

    def of(self, units: int, gradients: Callable[[RecordGradients, int], LotGradients]) -> LotGradients:
        """Return the updates of a lot's units, as its gradients.

        Args:
            units: Number of units in the lot, G.
            gradients: Returns the gradients of the unit at a place, with fresh partners on each call.
        """
        zero = torch.cat([parameter.detach().reshape(-1) for parameter in self._critic.parameters()]) * 0

        def updates() -> Iterator[UnitUpdate]:
            for place in range(units):
                yield UnitUpdate(torch.tensor([place], device=zero.device), self._update(place, gradients))

        def together(sizes: Sequence[int]) -> Tensor:
            raise SettingError("are not clipped together", field="local_steps", remedy="set clipping=record")

        return LotGradients(units, zero, updates, together)  # type: ignore[arg-type]

    @torch.no_grad()
    def _update(self, place: int, gradients: Callable[[RecordGradients, int], LotGradients]) -> Tensor:
        self._moved.load_state_dict(self._critic.state_dict())
        found = []
        for _ in range(self._steps.count):
            with torch.enable_grad():
                found.append(gradients(self._gradients, place).sums([1])[0].detach())
            moved = torch.split(found[-1], [parameter.numel() for parameter in self._moved.parameters()])
            for parameter, own in zip(self._moved.parameters(), moved, strict=True):
                parameter.sub_(self._steps.rate * own.view_as(parameter))
        return torch.stack(found).mean(dim=0)
