"""A run's critic, rebuilt from the state that the run has kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from doublure.support.tensors import as_tensor
from doublure.training.architectures import critic_of
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.job import State

if TYPE_CHECKING:
    from torch import Tensor

    from doublure.support.tensors import Array

Scorer: TypeAlias = "Callable[[Tensor, Tensor | None], Tensor]"
"""Bodies ``(B, *body_shape)`` and conditions ``(B, K)`` or None to scores ``(B,)``, high for what looks real."""


@dataclass(frozen=True, kw_only=True)
class KeptCritic:
    """What a critic is rebuilt from.

    Attributes:
        weights: All of them, in one vector.
        settings: Of its network.
        shapes: What its network asks of an encoder.
        view: Bodies of records to what the critic takes; None: bodies as they are.
    """

    weights: Array | Tensor
    settings: AdversarialSettings
    shapes: Any
    view: Callable[[Tensor], Tensor] | None = None

    @classmethod
    def of(cls, kept: State, settings: AdversarialSettings, shapes: Any) -> KeptCritic | None:
        """Return the critic of a run's state, which takes bodies as they are; its stage's, where there are several."""
        weights = kept.get("critic", kept.get("critic/critic"))
        return None if weights is None else cls(weights=weights, settings=settings, shapes=shapes)

    def scorer(self) -> Scorer | None:
        """Return what scores records, without a noise layer's noise; None where the weights are another network's."""
        import torch

        from doublure.networks.noise_layer import NoiseLayer

        network, weights = (
            critic_of(self.settings, self.shapes, torch.Generator().manual_seed(0)),
            as_tensor(self.weights),
        )
        if sum(part.numel() for part in network.parameters()) != weights.numel():
            return None
        torch.nn.utils.vector_to_parameters(weights.flatten().float(), network.parameters())
        network.eval()
        for part in network.modules():
            if isinstance(part, NoiseLayer):
                part.silence()
        steered = bool(self.settings.condition_width(self.shapes))

        def scores(bodies: Tensor, condition: Tensor | None) -> Tensor:
            seen = bodies if self.view is None else self.view(bodies)
            found: Tensor = network(seen, condition if steered else None)
            return found

        return scores
