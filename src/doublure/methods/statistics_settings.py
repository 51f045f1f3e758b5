"""What ``statistics`` needs to know of itself, whatever the kind of data."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Self

from doublure.access import Access
from doublure.methods.base import Job, MethodSettings, Work
from doublure.schema import Schema

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_FEW_UNITS = 1_000


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
