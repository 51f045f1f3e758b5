"""``gan``: the same networks and loop as ``dpgan``, without privacy. A baseline; every artefact says so.

On images it is the WGAN-GP of Triastcyn & Faltings 2018 to 2022 without their noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from doublure.access import Access
from doublure.guarantee import Kind
from doublure.methods.method import Method
from doublure.schema import Schema
from doublure.training.gan_settings import AdversarialSettings, TableAdversarialSettings
from doublure.training.image_gan_settings import ImageAdversarialSettings, require_condition
from doublure.training.job import Job
from doublure.training.series_gan_settings import SeriesAdversarialSettings
from doublure.training.settings import MethodSettings, Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder


class Gan(Method):
    """A GAN that promises nothing; see the module.

    Attributes:
        sizes: By kind of data, how lots and steps follow from the public number of units.
    """

    name: ClassVar[str] = "gan"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images", "series"})
    guarantee: ClassVar[Kind] = "none"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = {
        "table": TableAdversarialSettings,
        "images": ImageAdversarialSettings,
        "series": SeriesAdversarialSettings,
    }
    sizes: ClassVar[dict[str, Any]] = {
        "table": {"lot_share": 0.05, "smallest_lot": 64, "largest_lot": 512, "steps": 4000},
        "images": {"lot_share": 0.001, "smallest_lot": 64, "largest_lot": 64, "steps": 10_000},
        "series": {"lot_share": 0.02, "smallest_lot": 64, "largest_lot": 256, "steps": 3000},
    }

    def resolve_defaults(self, schema: Schema, settings: MethodSettings) -> AdversarialSettings:
        """Decide the lot size and the number of steps from the public number of units."""
        require_condition(schema)
        return self._own(settings).resolve_defaults(schema, **self.sizes[schema.kind])

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float:
        """Return the lot size over the public number of units."""
        return min(1.0, (self._own(settings).lot_size or 1) / schema.public_units)

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Everything, unprotected."""
        return (Access(purpose="train the critic", event=None),)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""
        return self._own(settings).work(schema)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say what is missing."""
        return ("gan has no privacy guarantee: what it makes is for comparison and must not be published",)

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many numbers of noise a sample takes for a record."""
        return self._own(settings).noise_width

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator."""
        import torch

        from doublure.training.gan_loop import build_generator

        return build_generator(encoder, self._own(settings), torch.Generator().manual_seed(seed))

    def train(self, job: Job) -> nn.Module:
        """Train the critic on plain gradients."""
        from doublure.training.critic_steps import PlainCriticTrainer
        from doublure.training.gan_loop import prepare, train

        settings = self._own(job.settings)
        adversaries = prepare(job, settings)
        return train(job, settings, PlainCriticTrainer(job, settings), adversaries)

    def _own(self, settings: MethodSettings) -> AdversarialSettings:
        if not isinstance(settings, AdversarialSettings) or type(settings) not in self.settings_type.values():
            raise TypeError(f"{self.name} was given another method's settings")
        return settings


METHOD = Gan()
