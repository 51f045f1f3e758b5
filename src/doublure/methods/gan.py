"""``gan``: the same networks and loop as ``dpgan``, without privacy. A baseline; every artefact says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from doublure.access import Access
from doublure.guarantee import Kind
from doublure.methods.adversarial_settings import AdversarialSettings
from doublure.methods.base import Job, MethodSettings, Work
from doublure.schema import Schema

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.table import TableEncoder


class GanSettings(AdversarialSettings):
    """The settings of ``gan``."""


class Gan:
    """A GAN that promises nothing; see the module."""

    name: ClassVar[str] = "gan"
    kinds: ClassVar[frozenset[str]] = frozenset({"table"})
    guarantee: ClassVar[Kind] = "none"
    settings_type: ClassVar[type[MethodSettings]] = GanSettings

    def settle(self, schema: Schema, settings: MethodSettings) -> GanSettings:
        """Decide the lot size and the number of steps from the public number of units."""
        own = _own(settings).with_public_sizes(schema, lot_share=0.05, smallest_lot=64, largest_lot=512, steps=4000)
        return GanSettings.model_validate(own.model_dump())

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float:
        """Return the lot size over the public number of units."""
        return min(1.0, (_own(settings).lot_size or 1) / schema.public_units)

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Everything, unprotected."""
        return (Access(purpose="train the critic", event=None),)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""
        return _own(settings).work(schema)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say what is missing."""
        return ("gan has no privacy guarantee: its understudy is for comparison and must not be published",)

    def build(self, encoder: TableEncoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator."""
        import torch

        from doublure.methods.adversarial import build_generator

        return build_generator(encoder, _own(settings), torch.Generator().manual_seed(seed))

    def train(self, job: Job) -> nn.Module:
        """Train the critic on plain gradients."""
        from doublure.methods.adversarial import prepare, train
        from doublure.methods.plain_teacher import PlainTeacher

        settings = _own(job.settings)
        adversaries = prepare(job, settings)
        return train(job, settings, PlainTeacher(job, settings), adversaries)


def _own(settings: MethodSettings) -> GanSettings:
    if not isinstance(settings, GanSettings):
        raise TypeError("gan was given another method's settings")
    return settings


METHOD = Gan()
