"""What the methods that train a GAN have in common: sizes, work and the generator follow from their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from doublure.methods.method import Method, TakesOwn
from doublure.schema import Schema
from doublure.training.architectures import generator_of
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.image_gan_settings import require_condition
from doublure.training.job import State
from doublure.training.kept_critic import KeptCritic
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

    def white_box(self, encoder: Encoder, settings: MethodSettings, kept: State) -> KeptCritic | None:
        """Return the critic, which takes bodies as they are; its stage's, where a stage comes before or after it."""
        weights = kept.get("critic", kept.get("critic/critic"))
        return None if weights is None else KeptCritic(weights=weights, settings=self._own(settings), shapes=encoder)

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator."""
        import torch

        return generator_of(self._own(settings), encoder, torch.Generator().manual_seed(seed))
