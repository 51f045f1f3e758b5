"""A critic and a generator as an owner of records holds them: at each step those of whoever trains.

The owner makes partners and mixing numbers by itself, from its operating system, and clips by its own plan.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from doublure.encode.encoder import Encoder
from doublure.errors import SettingError
from doublure.private.accounting import GaussianEvent
from doublure.private.noise import secret_draws
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.support.tensors import Array, as_array
from doublure.training.critic_steps import critic_settings
from doublure.training.private_gan_settings import PrivateSettings


class OwnedCritic:
    """What an owner answers a step of a critic with.

    Args:
        encoder: Of the resolved schema.
        settings: Of the owner's plan.
        event: What pays for the steps.
        units: N, public.
    """

    def __init__(self, encoder: Encoder, settings: PrivateSettings, event: GaussianEvent, units: int) -> None:
        initial = torch.Generator().manual_seed(0)  # all of it is replaced
        self._generator = settings.generator(encoder, initial).requires_grad_(False)
        self._critic = settings.critic(encoder, initial).requires_grad_(False)
        self._width = settings.noise_width
        self._draws = secret_draws(settings.stream)
        self._steps = event.steps
        step = critic_settings(settings, expected_units=event.sample_rate * units)
        self._query = CriticGradients(step, source=settings.stream)

    def query(self, step: int, critic: Mapping[str, Array], generator: Mapping[str, Array]) -> CriticGradients:
        """Return the query of a step.

        Args:
            step: Counted from 0.
            critic: Its state.
            generator: Its state.

        Raises:
            SettingError: It is no step of the plan, or the networks are others.
        """
        if not 0 <= step < self._steps:
            raise SettingError("is none of the plan", field="step", remedy="ask what the plan says")
        _take_up(self._critic, critic)
        _take_up(self._generator, generator)
        return self._query.at(step, self._critic, self._partner)

    def _partner(self, size: int, condition: Tensor | None) -> Tensor:
        rows: Tensor = self._generator(self._draws.normal(size, self._width), condition)
        return rows


def told(network: nn.Module) -> dict[str, Array]:
    """Return a network's state, for owners to take up."""
    return {name: as_array(values) for name, values in network.state_dict().items()}


def _take_up(network: nn.Module, state: Mapping[str, Array]) -> None:
    own = network.state_dict()
    fits = own.keys() == state.keys() and all(
        as_array(own[name]).dtype == values.dtype
        and tuple(own[name].shape) == values.shape
        and np.isfinite(values).all()
        for name, values in state.items()
    )
    if not fits:
        raise SettingError("is another one than planned", field="network", remedy="give every owner the same plan.json")
    network.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in state.items()})
