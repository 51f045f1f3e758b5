"""``dpgan``: a GAN whose critic learns from clipped, noised gradients.

Frigerio et al. 2019, Algorithm 1 (on Xie et al. 2018 and Abadi et al. 2016), done so that its guarantee holds: the
whole paired loss of each unit is clipped once, lots are Poisson, every step of the critic is an event, and the clipping
decay leaves σ alone. On images the networks are those of Triastcyn & Faltings 2022 without normalisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from doublure.access import Access
from doublure.guarantee import Kind
from doublure.methods.dpgan.settings import DpganSettings, ImageDpganSettings, SeriesDpganSettings
from doublure.methods.method import Method
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.image_gan_settings import require_condition
from doublure.training.job import Job
from doublure.training.private_gan_settings import PrivateSettings
from doublure.training.settings import MethodSettings, Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_FEW_UNITS = 2_000


_SIZES: dict[str, Any] = {
    "table": {"lot_share": 0.35, "smallest_lot": 256, "largest_lot": 4096, "steps": 600},
    "images": {"lot_share": 0.02, "smallest_lot": 64, "largest_lot": 1024, "steps": 1500},
    "series": {"lot_share": 0.1, "smallest_lot": 64, "largest_lot": 2048, "steps": 1000},
}


class Dpgan(Method):
    """Clipped, noised critic gradients; see the module."""

    name: ClassVar[str] = "dpgan"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images", "series"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = {
        "table": DpganSettings,
        "images": ImageDpganSettings,
        "series": SeriesDpganSettings,
    }
    sizes: ClassVar[Mapping[str, Any]] = _SIZES

    def resolve_defaults(self, schema: Schema, settings: MethodSettings) -> PrivateSettings:
        """Decide the lot size (large lots drown the noise) and the number of steps from the public number of units."""
        require_condition(schema)
        return self._own(settings).resolve_defaults(schema, **self.sizes[schema.kind])

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float:
        """Return q = lot size / public number of units."""
        return min(1.0, (self._own(settings).lot_size or 1) / schema.public_units)

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """One access: all T noisy critic steps."""
        event = GaussianEvent(
            noise_multiplier=noise_multiplier,
            sample_rate=self.sample_rate(schema, settings),
            steps=self._own(settings).steps or 1,
        )
        return (Access(purpose="train the critic", event=event),)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""
        return self._own(settings).work(schema)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say when there are too few units for a critic to learn through noise."""
        if schema.public_units < _FEW_UNITS:
            return (f"{schema.public_units} units are few for a private GAN; expect rough marginals",)
        return ()

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many numbers of noise a sample takes for a record."""
        return self._own(settings).noise_width

    def max_grad_norm(self, settings: MethodSettings) -> float:
        """Return C, the bound on a unit's gradient."""
        return self._own(settings).max_grad_norm

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator."""
        import torch

        from doublure.training.gan_loop import build_generator

        return build_generator(encoder, self._own(settings), torch.Generator().manual_seed(seed))

    def train(self, job: Job) -> nn.Module:
        """Train the critic by :class:`CriticSteps`, the generator by the critic."""
        from doublure.training.critic_steps import private_critic_trainer
        from doublure.training.gan_loop import prepare, train

        settings = self._own(job.settings)
        adversaries = prepare(job, settings)
        teacher = private_critic_trainer(job, settings, job.accesses[0], adversaries)
        return train(job, settings, teacher, adversaries)

    def _own(self, settings: MethodSettings) -> PrivateSettings:
        if not isinstance(settings, PrivateSettings) or type(settings) not in self.settings_type.values():
            raise TypeError(f"{self.name} was given another method's settings")
        return settings


METHOD = Dpgan()
