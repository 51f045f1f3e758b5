"""What ``statistics`` needs to know of itself, whatever the kind of data."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

from doublure.access import Access
from doublure.methods.method import Job, MethodSettings, Work
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.schema import Schema

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_FEW_UNITS = 1_000
_LEAST_SCALE = 0.01


def counting(
    releases: Iterable[tuple[str, int, float]], *, records: int, noise_multiplier: float
) -> tuple[Access, ...]:
    """Return one access a release of tables; their noise together is that of one Gaussian of this multiplier.

    A unit moves each table by ``records`` at most, and n tables by √n times that in L2.

    Args:
        releases: Of each its purpose, how many tables it has (none: no access), and its share of the budget.
        records: The most records of a unit.
        noise_multiplier: σ, of all of them together.
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


def counting_accesses(accesses: Iterable[Access]) -> list[Access]:
    """Return those that count tables, a release each."""
    return [access for access in accesses if isinstance(access.event, DiscreteGaussianEvent)]


def counted_events(job: Job) -> list[DiscreteGaussianEvent]:
    """Return the plan's releases of tables, in order."""
    return [access.event for access in job.accesses if isinstance(access.event, DiscreteGaussianEvent)]


class StatisticsSettings(MethodSettings):
    """Which statistics are released, and how a generator learns from them."""

    @property
    def checkpoint_every(self) -> int:
        """Each release is kept by itself."""
        return 1

    @abstractmethod
    def settled(self, schema: Schema) -> Self:
        """Return the settings with every None decided from public facts."""

    @abstractmethod
    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """Return what is released; its noise together is that of one Gaussian of this multiplier."""

    @abstractmethod
    def work(self, schema: Schema) -> Work:
        """Return what the releases and the teaching compute and hold."""

    def warnings(self, schema: Schema) -> tuple[str, ...]:
        """Say when there are too few units for statistics to be seen through noise."""
        if schema.public_units < _FEW_UNITS:
            return (f"{schema.public_units} units are few for noisy statistics; expect little more than averages",)
        return ()

    @abstractmethod
    def build(self, encoder: Encoder, seed: int) -> nn.Module:
        """Return an untaught generator."""

    @abstractmethod
    def train(self, job: Job) -> nn.Module:
        """Make the releases and return the generator that they teach."""
