"""Settings -> the untrained encoder beside a public generator; the generator itself is a GAN's."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from doublure.public.settings import PublicImageSettings, PublicSettings
from doublure.training.architectures import critic_of

if TYPE_CHECKING:
    import torch
    from torch import nn

    from doublure.encode.encoder import Encoder


def inversion_encoder_of(settings: PublicSettings, shape: Encoder, initial: torch.Generator) -> nn.Module:
    """Return an untrained encoder: records to their latents, and how uncertain those are.

    Args:
        settings: Of the public generator.
        shape: Of the records.
        initial: Public randomness for the initial weights.
    """
    from doublure.networks.latent import InversionEncoder

    return InversionEncoder(_network(settings, shape, initial), settings.noise_width)


@singledispatch
def _network(settings: PublicSettings, shape: Encoder, initial: torch.Generator) -> nn.Module:
    return critic_of(settings, shape, initial, 2 * settings.noise_width)


@_network.register(PublicImageSettings)
def _of_images(settings: PublicImageSettings, shape: Encoder, initial: torch.Generator) -> nn.Module:
    """Return a critic's network, and wider."""
    wider = {"critic_channels": settings.encoder_channels, "features": settings.encoder_features}
    return critic_of(settings.model_copy(update=wider), shape, initial, 2 * settings.noise_width)
