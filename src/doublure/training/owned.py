"""Computations at data owners, rebuilt from messages: views, summands and a critic's step.

The trainer sends parameters that follow from public facts and earlier releases: centres, directions, network weights.
An owner builds from them only the functions of its own plan's method. The owner alone enforces the guarantee: it maps
each record by itself, draws partners and mixing numbers from its operating system, and clips by its own plan.
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


class OwnerFunction(Protocol):
    """A function of records that an owner can rebuild from a message.

    Attributes:
        name: The key under which the method registers it.
    """

    name: ClassVar[str]

    def to_message(self) -> Message:
        """Return its parameters, other than plan and schema."""


class RecordView(OwnerFunction, Protocol):
    """A map of records that transforms each record by itself."""

    def __call__(self, records: PrivateRecords, /) -> PrivateRecords:
        """Return the records."""


class RecordSummand(OwnerFunction, Protocol):
    """A record's summand, as two vectors (:data:`doublure.private.queries.sums.Factors`)."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(L, R)``."""

    def __call__(self, body: Tensor, condition: Tensor | None, /) -> tuple[Tensor, Tensor]:
        """Return ``(B, L)`` and ``(B, R)``."""


@dataclass(frozen=True, kw_only=True)
class Adversary:
    """The networks of a critic's steps, and how they are taken.

    Attributes:
        settings: The critic's settings.
        shapes: The encoder, or an object with the shapes that the critic's network reads.
        generator: Builds an untrained generator, whose weights are then replaced.
        noise_width: Numbers of noise for a record.
        special: Overrides for a critic's step.
        distances: m, gradient lengths reported beside the gradient; 0 for none.
    """

    settings: PrivateSettings
    shapes: Any
    generator: Callable[[], nn.Module]
    noise_width: int
    special: Mapping[str, Any] = field(default_factory=dict)
    distances: int = 0


def build_adversary(settings: PrivateSettings, shapes: Any, **more: Any) -> Adversary:
    """Return a critic whose generator is built from the same settings.

    Args:
        settings: The settings of both networks.
        shapes: The encoder, or an object with the shapes that networks read.
        more: Further fields of :class:`Adversary`.
    """

    def generator() -> nn.Module:
        import torch

        return generator_of(settings, shapes, torch.Generator().manual_seed(0))

    return Adversary(settings=settings, shapes=shapes, generator=generator, noise_width=settings.noise_width, **more)


@dataclass(frozen=True, kw_only=True)
class OwnerTasks:
    """Computations that a method asks of owners beside counts, as builders from messages.

    Attributes:
        views: Builders by name.
        summands: Builders by name.
        bounds: C of each summand, where it is not 1.
        adversary: Builds the critic for records under a view; None as its argument: records without a view.
    """

    views: Mapping[str, Callable[[Message], RecordView]] = field(default_factory=dict)
    summands: Mapping[str, Callable[[Message], RecordSummand]] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    adversary: Callable[[RecordView | None], Adversary] | None = None

    def __or__(self, other: OwnerTasks) -> OwnerTasks:
        """Return the tasks of two stages together."""
        return OwnerTasks(
            views={**self.views, **other.views},
            summands={**self.summands, **other.summands},
            bounds={**self.bounds, **other.bounds},
            adversary=self.adversary or other.adversary,
        )


def unplanned(what: str) -> SettingError:
    """Return the refusal of a part that differs from the owner's plan."""
    return SettingError("is another one than planned", field=what, remedy="give every owner the same plan.json")


def read_floats(message: Message, name: str, shape: tuple[int, ...]) -> Tensor:
    """Return one float32 array of a message, with its shape checked; -1 accepts any length.

    Raises:
        SettingError: It is missing, or has another shape or type.
    """
    import torch

    found = message.arrays.get(name)
    fits = found is not None and found.dtype == np.float32 and len(found.shape) == len(shape)
    if found is None or not fits or any(want not in (-1, has) for has, want in zip(found.shape, shape, strict=True)):
        raise unplanned(name)
    return torch.from_numpy(found.copy())


class OwnerCritic:
    """Builder of an owner's query for a step of a critic.

    Args:
        adversary: Built by the owner's plan.
        event: The event that pays for the steps.
        units: N, the divisor of the step, public.
        planned_units: N in the plan.
        own_units: Units that the owner declares.
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
            critic: The critic's state.
            generator: The generator's state; empty where records have no partners.
            chosen: Whether the coins of the lot were tossed already; then no lengths are reported beside the gradient.

        Raises:
            SettingError: The step is not in the plan, or the networks differ from it.
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


def network_arrays(network: nn.Module) -> dict[str, Array]:
    """Return a network's state as arrays, for a message to owners."""
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
