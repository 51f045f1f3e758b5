"""A run's critic, rebuilt from the state that the run has kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure.support.tensors import as_tensor
from doublure.training.architectures import critic_of
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.job import State

if TYPE_CHECKING:
    from torch import Tensor

Critic: TypeAlias = "Callable[[Tensor, Tensor | None], Tensor]"
"""Bodies ``(B, *body_shape)`` and conditions ``(B, K)`` or None to scores ``(B,)``, high for what looks real."""


def kept_critic(
    kept: State,
    settings: AdversarialSettings,
    shapes: Any,
    view: Callable[[Tensor], Tensor] | None = None,
    names: Sequence[str] = ("critic", "critic/critic"),
) -> Critic | None:
    """Return a run's critic, without the noise of a noise layer; None where none that fits was kept.

    Args:
        kept: The run's last state.
        settings: Of the critic's network.
        shapes: What that asks of an encoder.
        view: Bodies to what the critic takes; None: bodies as they are.
        names: Of its weights in the state: of the whole run, or of one of its stages.
    """
    import torch

    from doublure.networks.noise_layer import NoiseLayer

    found = next((kept[name] for name in names if name in kept), None)
    if found is None:
        return None
    network, weights = critic_of(settings, shapes, torch.Generator().manual_seed(0)), as_tensor(found)
    if sum(part.numel() for part in network.parameters()) != weights.numel():
        return None
    torch.nn.utils.vector_to_parameters(weights.flatten().float(), network.parameters())
    network.eval()
    for part in network.modules():
        if isinstance(part, NoiseLayer):
            part.silence()
    steered = bool(settings.condition_width(shapes))

    def critic(bodies: Tensor, condition: Tensor | None) -> Tensor:
        scores: Tensor = network(bodies if view is None else view(bodies), condition if steered else None)
        return scores

    return critic
