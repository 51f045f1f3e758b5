"""A private critic refines a generator that was trained on statistics: the middle stage of ``guided``.

The loop, the critic and its noisy steps are those of ``dpgan``; what differs is where it begins, few steps on large
lots, a pace that follows how well the critic does, and that the generator is held to the statistics released before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from doublure.access import Access
from doublure.support.tensors import Array, as_array
from doublure.training.critic_steps import private_critic_trainer
from doublure.training.gan_loop import prepare, train
from doublure.training.job import Job
from doublure.training.private_gan_settings import PrivateSettings

_Generator = TypeVar("_Generator", bound=nn.Module)


def refined(
    job: Job,
    settings: PrivateSettings,
    access: Access,
    generator: _Generator,
    *,
    distance: Callable[[_Generator], Tensor],
    weight: float,
) -> _Generator:
    """Return a generator that has followed a private critic.

    Args:
        job: The stage.
        settings: Of critic and generator as adversaries.
        access: What pays for its steps.
        generator: Where it begins.
        distance: How far a generator is from what was released before.
        weight: Of that distance in the generator's loss.
    """

    def anchor(moving: nn.Module) -> Tensor:
        return weight * distance(cast("_Generator", moving))

    adversaries = prepare(job, settings, start=generator, anchor=anchor if weight else None)
    train(job, settings, private_critic_trainer(job, settings, access, adversaries), adversaries)
    with torch.no_grad():
        for kept, new in zip(generator.parameters(), adversaries.average.parameters(), strict=True):
            kept.copy_(new)
    return generator


def measured(probabilities: Tensor, distance: Callable[[Array], tuple[float, Array]]) -> Tensor:
    """Return a distance that is computed in arrays, with its gradient.

    Args:
        probabilities: Of what.
        distance: Returns how far they are, and what that changes by with each of them.
    """
    found: Tensor = _Measured.apply(probabilities, distance)  # type: ignore[no-untyped-call]
    return found


class _Measured(torch.autograd.Function):
    """A number whose gradient is computed with it."""

    @staticmethod
    def forward(ctx: Any, moving: Tensor, distance: Callable[[Array], tuple[float, Array]]) -> Tensor:
        """Measure."""
        found, gradient = distance(as_array(moving))
        ctx.gradient = torch.from_numpy(gradient).to(moving)
        return moving.new_tensor(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Multiply."""
        return gradients[0] * ctx.gradient, None
