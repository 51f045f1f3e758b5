"""Refinement of a generator by a private critic, the middle stage of ``guided``.

The loop, the critic and its noisy steps are those of ``dpgan``. It differs in four ways: the generator is already
fitted to statistics, there are few steps on large lots, the pace follows the critic's accuracy, and the generator's
loss includes its distance from the released statistics.
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


def refine(
    job: Job,
    settings: PrivateSettings,
    access: Access,
    generator: _Generator,
    *,
    distance: Callable[[_Generator], Tensor],
    weight: float,
) -> _Generator:
    """Return a generator refined by a private critic.

    Args:
        job: The stage.
        settings: Settings of critic and generator as adversaries.
        access: The access that pays for the critic's steps.
        generator: The generator to refine, in place.
        distance: A generator's distance from the released statistics.
        weight: Weight of that distance in the generator's loss.
    """

    def anchor(moving: nn.Module) -> Tensor:
        return weight * distance(cast("_Generator", moving))

    adversaries = prepare(job, settings, start=generator, anchor=anchor if weight else None)
    train(job, settings, private_critic_trainer(job, settings, access, adversaries), adversaries)
    with torch.no_grad():
        for kept, new in zip(generator.parameters(), adversaries.average.parameters(), strict=True):
            kept.copy_(new)
    return generator


def with_gradient(probabilities: Tensor, distance: Callable[[Array], tuple[float, Array]]) -> Tensor:
    """Return a distance that is computed in arrays, as a tensor with its gradient.

    Args:
        probabilities: The distance's argument.
        distance: Returns the distance and its gradient by the probabilities.
    """
    found: Tensor = _ArrayFunction.apply(probabilities, distance)  # type: ignore[no-untyped-call]
    return found


class _ArrayFunction(torch.autograd.Function):
    """A function of arrays that computes its value and its gradient together."""

    @staticmethod
    def forward(ctx: Any, moving: Tensor, distance: Callable[[Array], tuple[float, Array]]) -> Tensor:
        """Return the value, and keep the gradient."""
        found, gradient = distance(as_array(moving))
        ctx.gradient = torch.from_numpy(gradient).to(moving)
        return moving.new_tensor(found)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the kept gradient, times the incoming one."""
        return gradients[0] * ctx.gradient, None
