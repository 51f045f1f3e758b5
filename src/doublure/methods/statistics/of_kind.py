"""The base class of ``statistics`` on one kind of data, also used by methods that begin with its releases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from doublure.access import Access, events
from doublure.methods.method import ErrorForecast, Released
from doublure.methods.statistics.settings import StatisticsSettings
from doublure.private.accounting import DiscreteGaussianEvent, Event, GaussianEvent, calibrate
from doublure.schema import Schema
from doublure.training.job import Job, State
from doublure.training.owned import OwnerTasks
from doublure.training.settings import Work

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.networks.array_generator import AnyGenerator
    from doublure.training.architectures import Critic

S = TypeVar("S", bound=StatisticsSettings)

_FEW_UNITS = 1_000
_LEAST_SCALE = 0.01


class StatisticsStrategy(ABC, Generic[S]):
    """The method's contract (:class:`doublure.methods.method.Method`) for one kind of data and its settings.

    For every kind, the releases include the shares of conditions, and the generator draws conditions by them
    (:class:`doublure.networks.steering.ConditionPrior`).
    """

    def needs_torch(self, settings: S) -> bool:
        """Whether training computes with torch."""
        return True

    def asks_owners(self, schema: Schema, settings: S) -> bool:
        """Whether all releases are sums that owners can answer for."""
        return bool(self.work(schema, settings).records_bytes)

    def at_owner(self, encoder: Encoder, settings: S) -> OwnerTasks:
        """Return the computations of an owner beside counts."""
        return OwnerTasks()

    def ready(self, settings: S) -> None:
        """Check that everything a fit needs beside the private data is there, before anything is charged."""
        return

    @abstractmethod
    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        """Return the settings with every None decided from public facts."""

    def decide_noise(self, schema: Schema, settings: S, noise_multiplier: Callable[[], float]) -> S:
        """Return the settings with those decided that depend on the amount of noise.

        Args:
            schema: The public facts.
            settings: With defaults resolved.
            noise_multiplier: Computes σ of all releases together.
        """
        del schema, noise_multiplier
        return settings

    def explained(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> tuple[str, ...]:
        """Return further lines for the explanation of a plan, among them the limits that follow from noise."""
        del schema, settings, touches
        return ()

    def expected_errors(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> ErrorForecast | None:
        """Return the forecast of errors; see :class:`doublure.methods.method.Method`."""
        del schema, settings, touches
        return None

    def noise_limits(
        self, schema: Schema, settings: S, touches: tuple[Access, ...], released: Released
    ) -> tuple[str, ...]:
        """Return limits of every sample that follow from noise; see :class:`doublure.methods.method.Method`."""
        del schema, settings, touches, released
        return ()

    def fitted_limits(self, schema: Schema, settings: S, generator: AnyGenerator) -> tuple[str, ...]:
        """Return limits of every sample that the released answers decide; see the method's contract."""
        del schema, settings, generator
        return ()

    def shown_together(
        self, schema: Schema, settings: S, touches: tuple[Access, ...]
    ) -> Mapping[str, tuple[Access, ...]]:
        """Return accesses of which a plan shows one line, by the name of that line."""
        del schema, settings, touches
        return {}

    @abstractmethod
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        """Return the releases; together they have the noise of one Gaussian mechanism of this multiplier."""

    @abstractmethod
    def work(self, schema: Schema, settings: S) -> Work:
        """Return the cost of the releases and the training."""

    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        """Return a warning if units are too few for noisy statistics."""
        if schema.public_units < _FEW_UNITS:
            return (f"{schema.public_units} units are few for noisy statistics; expect little more than averages",)
        return ()

    def limits(self, schema: Schema, settings: S) -> tuple[str, ...]:
        """Return limits of every sample."""
        return ()

    def white_box(self, encoder: Encoder, settings: S, kept: State) -> Critic | None:
        """Return the critic, if one refines the generator."""
        return None

    @abstractmethod
    def build(self, encoder: Encoder, settings: S, seed: int) -> AnyGenerator:
        """Return an untrained generator."""

    @abstractmethod
    def train(self, job: Job, settings: S) -> AnyGenerator:
        """Make the releases and return the generator fitted to them."""


def counting(
    releases: Iterable[tuple[str, int, float]], *, records: int, noise_multiplier: float
) -> tuple[Access, ...]:
    """Return one access for each release of tables; together they have the noise of one Gaussian of this multiplier.

    A unit changes each table by at most ``records``, and n tables by √n times that in L2.

    Args:
        releases: For each its purpose, its number of tables (0: no access), and its share of the budget.
        records: The most records of a unit.
        noise_multiplier: σ of all of them together.
    """
    return tuple(
        Access(
            purpose=purpose,
            event=DiscreteGaussianEvent(
                scale=max(_LEAST_SCALE, noise_multiplier * records * math.sqrt(tables / share)),
                tables=tables,
                records=records,
            ),
        )
        for purpose, tables, share in releases
        if tables
    )


def overall_noise(learned: tuple[Access, ...], *, epsilon: float, delta: float) -> float:
    """Return σ of all releases together, beside the accesses that buy facts; by a quick bound.

    Args:
        learned: The accesses that buy facts.
        epsilon: The total ε.
        delta: The total δ.
    """

    def together(noise: float) -> list[Event]:
        return events((*learned, Access(purpose="all", event=GaussianEvent(noise_multiplier=noise))))

    return calibrate(together, epsilon=epsilon, delta=delta, accountant="rdp")


def counted_events(job: Job) -> list[DiscreteGaussianEvent]:
    """Return the plan's releases of tables, in order."""
    return [access.event for access in job.accesses if isinstance(access.event, DiscreteGaussianEvent)]
