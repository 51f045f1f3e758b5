"""The base class of methods that train a GAN, with sizes, work and generator from their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from doublure.encode.encoder import Encoder
from doublure.methods.method import Method
from doublure.schema import Schema
from doublure.training.architectures import Critic, generator_of, kept_critic
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.image_gan_settings import require_condition
from doublure.training.job import State
from doublure.training.settings import Work

if TYPE_CHECKING:
    from torch import nn


A = TypeVar("A", bound=AdversarialSettings)


class Adversarial(Method[A, Encoder]):
    """A method whose settings are those of a GAN."""

    @override
    def resolve_defaults(self, schema: Schema, settings: A) -> A:
        require_condition(schema)
        return settings.resolve_defaults(schema, **settings.sizes)

    @override
    def work(self, schema: Schema, settings: A) -> Work:
        return settings.work(schema)

    @override
    def sample_noise(self, settings: A) -> int:
        return settings.sample_noise

    @override
    def white_box(self, encoder: Encoder, settings: A, kept: State) -> Critic | None:
        return kept_critic(kept, settings, encoder)

    @override
    def build(self, encoder: Encoder, settings: A, seed: int) -> nn.Module:
        import torch

        return generator_of(settings, encoder, torch.Generator().manual_seed(seed))
