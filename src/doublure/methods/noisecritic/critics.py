"""The critics of ``noisecritic``: those of ``gan``, with the noise layer before the score."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doublure.methods.noisecritic.settings import ImageNoisecriticSettings, NoisecriticSettings, NoiseLayerSettings
from doublure.private.noise import secret_draws
from doublure.training.architectures import critic_of, image_critic, vector_critic

if TYPE_CHECKING:
    import torch
    from torch import nn

    from doublure.encode.encoder import Encoder


@critic_of.register(NoisecriticSettings)
def critic_of_rows(
    settings: NoisecriticSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    """Return an untrained critic of rows; ``outputs`` stays 1, the score behind the noise layer."""
    return _noisy(vector_critic(settings, encoder, initial, settings.features), settings, initial)


@critic_of.register(ImageNoisecriticSettings)
def critic_of_images(
    settings: ImageNoisecriticSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    """Return an untrained critic of images; likewise."""
    return _noisy(image_critic(settings, encoder, initial, settings.features), settings, initial)


def _noisy(body: nn.Module, settings: NoiseLayerSettings, initial: torch.Generator) -> nn.Module:
    """Return a critic that scores a body's features through the noise layer, whose noise is secret."""
    from doublure.networks.noise_layer import NoiseLayer, NoisyCritic

    normals = secret_draws().normal
    layer = NoiseLayer(clip=settings.feature_clip, std=settings.feature_noise, normals=normals)
    return NoisyCritic(body, features=settings.features, layer=layer, generator=initial)
