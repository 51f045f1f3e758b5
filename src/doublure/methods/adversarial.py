"""What the methods that train a GAN have in common: sizes, work and the generator follow from their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from doublure.methods.method import Method, TakesOwn
from doublure.schema import Schema
from doublure.training.architectures import generator_of
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.image_gan_settings import require_condition
from doublure.training.settings import MethodSettings, Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

A = TypeVar("A", bound=AdversarialSettings)


class Adversarial(TakesOwn[A], Method):
    """A method whose settings are those of a GAN."""

    def resolve_defaults(self, schema: Schema, settings: MethodSettings) -> A:
        """Decide the lot size and the number of steps from the public number of units."""
        require_condition(schema)
        own = self._own(settings)
        return own.resolve_defaults(schema, **own.sizes)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds."""
        return self._own(settings).work(schema)

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many numbers of noise a sample takes for a record."""
        return self._own(settings).sample_noise

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator."""
        import torch

        return generator_of(self._own(settings), encoder, torch.Generator().manual_seed(seed))
