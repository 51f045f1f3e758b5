"""Computations at owners, rebuilt from messages: views, summands, and a critic's step.

Whoever trains sends what follows from public facts and from what was released before (centres, directions, networks as
they are); an owner makes the function of it that its own plan's method has, and nothing else. That a record's part in
an answer follows from that record alone, and how long it may be, is the owner's business: it draws partners and mixing
numbers from its operating system, and clips by its own plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from doublure.errors import SettingError
from doublure.support.messages import Message
from doublure.training.architectures import critic_of, generator_of

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.private.accounting import GaussianEvent
    from doublure.private.queries.lot_gradients import CriticGradients
    from doublure.private.records import PrivateRecords
    from doublure.support.tensors import Array
    from doublure.training.private_gan_settings import PrivateSettings


class Rebuilt(Protocol):
    """What an owner can make by itself.

    Attributes:
        name: Under which its method knows it.
    """

    name: ClassVar[str]

    def to_message(self) -> Message:
        """Return what it follows from, beside plan and schema."""


class View(Rebuilt, Protocol):
    """Records in another form, each from itself alone."""

    def __call__(self, records: PrivateRecords, /) -> PrivateRecords:
        """Return the records."""


class Summand(Rebuilt, Protocol):
    """What a record adds to a sum, as two vectors (:data:`doublure.private.queries.sums.Factors`)."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(L, R)``."""

    def __call__(self, body: Tensor, condition: Tensor | None, /) -> tuple[Tensor, Tensor]:
        """Return ``(B, L)`` and ``(B, R)``."""


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """The networks of a critic's steps, and how they are taken.

    Attributes:
        settings: Of the critic.
        shapes: What the critic's network asks of an encoder.
        generator: Makes an untrained one, to take up states.
        noise_width: Numbers of noise that it takes for a record.
        special: What of a critic's step is not as it usually is.
        distances: m, where lengths of gradients are told beside; 0: none are.
    """

    settings: PrivateSettings
    shapes: Any
    generator: Callable[[], nn.Module]
    noise_width: int
    special: Mapping[str, Any] = field(default_factory=dict)
    distances: int = 0


def adversary_of(settings: PrivateSettings, shapes: Any, **more: Any) -> Adversary:
    """Return a critic whose generator is that of its own settings.

    Args:
        settings: Of both.
        shapes: What networks ask of an encoder.
        more: What of :class:`Adversary` is not as it usually is.
    """

    def generator() -> nn.Module:
        import torch

        return generator_of(settings, shapes, torch.Generator().manual_seed(0))

    return Adversary(settings=settings, shapes=shapes, generator=generator, noise_width=settings.noise_width, **more)


@dataclass(frozen=True, kw_only=True)
class AtOwner:
    """What a method asks of owners beside counts, and how they make it of what they are told.

    Attributes:
        views: By name.
        summands: By name.
        bounds: C of each summand, where it is not 1.
        adversary: Of the critic whose records are seen so (None: as they are).
    """

    views: Mapping[str, Callable[[Message], View]] = field(default_factory=dict)
    summands: Mapping[str, Callable[[Message], Summand]] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    adversary: Callable[[View | None], Adversary] | None = None

    def __or__(self, other: AtOwner) -> AtOwner:
        """Return what one stage asks and what another does."""
        return AtOwner(
            views={**self.views, **other.views},
            summands={**self.summands, **other.summands},
            bounds={**self.bounds, **other.bounds},
            adversary=self.adversary or other.adversary,
        )


def unplanned(what: str) -> SettingError:
    """Return the refusal of something that the owner's plan does not have, or not so."""
    return SettingError("is another one than planned", field=what, remedy="give every owner the same plan.json")


def numbers_of(message: Message, name: str, shape: tuple[int, ...]) -> Tensor:
    """Return one array that was told, of the shape that it must have.

    Raises:
        SettingError: It is not there, or of another form.
    """
    import torch

    found = message.arrays.get(name)
    fits = found is not None and found.dtype == np.float32 and len(found.shape) == len(shape)
    if found is None or not fits or any(want not in (-1, has) for has, want in zip(found.shape, shape, strict=True)):
        raise unplanned(name)
    return torch.from_numpy(found.copy())


class OwnedCritic:
    """What an owner answers a step of a critic with.

    Args:
        adversary: By the owner's plan.
        event: What pays for the steps.
        units: N, the divisor of the step, public.
        planned_units: N as the plan has it.
        own_units: How many of them the owner declares.
    """

    def __init__(
        self, adversary: Adversary, event: GaussianEvent, *, units: int, planned_units: int, own_units: int
    ) -> None:
        import torch

        from doublure.private.noise import secret_draws
        from doublure.private.queries.distances import distance_sample_rate
        from doublure.private.queries.lot_gradients import CriticGradients
        from doublure.training.critic_steps import critic_settings

        settings = adversary.settings
        initial = torch.Generator().manual_seed(0)  # all of it is replaced
        self._generator = adversary.generator().requires_grad_(False)
        self._critic = critic_of(settings, adversary.shapes, initial).requires_grad_(False)
        self._width = adversary.noise_width
        self._draws = secret_draws()
        self._steps = event.steps
        step = critic_settings(settings, expected_units=event.sample_rate * units, **adversary.special)
        self._paired = step.paired
        share = math.ceil(adversary.distances * own_units / planned_units)
        lengths = distance_sample_rate(share, own_units) if adversary.distances else None
        self._queries = {chosen: CriticGradients(step, lengths=None if chosen else lengths) for chosen in (True, False)}

    def query(
        self, step: int, critic: Mapping[str, Array], generator: Mapping[str, Array], *, chosen: bool
    ) -> CriticGradients:
        """Return the query of a step.

        Args:
            step: Counted from 0.
            critic: Its state.
            generator: Its state; none where records have no partners.
            chosen: Whether coins were tossed already, so that nothing beside the gradient is told.

        Raises:
            SettingError: It is no step of the plan, or the networks are others.
        """
        if not 0 <= step < self._steps:
            raise SettingError("is none of the plan", field="step", remedy="ask what the plan says")
        _restore(self._critic, critic)
        if self._paired:
            _restore(self._generator, generator)
        elif generator:
            raise unplanned("network")
        return self._queries[chosen].at(step, self._critic, self._partner)

    def _partner(self, size: int, condition: Tensor | None) -> Tensor:
        rows: Tensor = self._generator(self._draws.normal(size, self._width), condition)
        return rows


def state_of(network: nn.Module) -> dict[str, Array]:
    """Return a network's state, for owners to take up."""
    from doublure.support.tensors import as_array

    return {name: as_array(values) for name, values in network.state_dict().items()}


def _restore(network: nn.Module, state: Mapping[str, Array]) -> None:
    import torch

    from doublure.support.tensors import as_array

    own = network.state_dict()
    fits = own.keys() == state.keys() and all(
        as_array(own[name]).dtype == values.dtype
        and tuple(own[name].shape) == values.shape
        and np.isfinite(values).all()
        for name, values in state.items()
    )
    if not fits:
        raise unplanned("network")
    network.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in state.items()})
