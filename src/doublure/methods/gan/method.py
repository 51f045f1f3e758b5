"""``gan``: a baseline with the networks and the loop of ``dpgan``, without privacy.

Every artefact says that it is not private. On images it is the WGAN-GP of Triastcyn & Faltings 2018 to 2022 without
their noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from doublure.access import Access
from doublure.guarantee import Kind
from doublure.methods.adversarial import A, Adversarial
from doublure.schema import Schema
from doublure.training.gan_settings import AdversarialSettings, TableAdversarialSettings
from doublure.training.image_gan_settings import ImageAdversarialSettings
from doublure.training.job import Job
from doublure.training.series_gan_settings import SeriesAdversarialSettings
from doublure.training.settings import MethodSettings, by_kind

if TYPE_CHECKING:
    from torch import nn


class Gan(Adversarial[A]):
    """A GAN without any guarantee; see the module."""

    name: ClassVar[str] = "gan"
    guarantee: ClassVar[Kind] = "none"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(
        TableAdversarialSettings, ImageAdversarialSettings, SeriesAdversarialSettings
    )
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)

    @override
    def sample_rate(self, schema: Schema, settings: A) -> float:
        return min(1.0, (settings.lot_size or 1) / schema.public_units)

    @override
    def accesses(self, schema: Schema, settings: A, noise_multiplier: float) -> tuple[Access, ...]:
        return (Access(purpose="train the critic", event=None),)

    @override
    def warnings(self, schema: Schema, settings: A) -> tuple[str, ...]:
        return ("gan has no privacy guarantee: what it makes is for comparison and must not be published",)

    @override
    def train(self, job: Job[A]) -> nn.Module:
        from doublure.training.critic_steps import PlainCriticTrainer
        from doublure.training.gan_loop import prepare, train

        settings = job.settings
        adversaries = prepare(job, settings)
        return train(job, settings, PlainCriticTrainer(job, settings), adversaries)


METHOD = Gan[AdversarialSettings]()
