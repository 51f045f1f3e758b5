"""The untrained encoder beside a public generator, from its settings; the generator itself is a GAN's."""

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
    """Return an untrained encoder of records to their latents and the latents' uncertainty.

    Args:
        settings: The public generator's settings.
        shape: The records' encoder.
        initial: Public randomness for the initial weights.
    """
    from doublure.networks.latent import InversionEncoder

    return InversionEncoder(_network(settings, shape, initial), settings.noise_width)


@singledispatch
def _network(settings: PublicSettings, shape: Encoder, initial: torch.Generator) -> nn.Module:
    return critic_of(settings, shape, initial, 2 * settings.noise_width)


@_network.register(PublicImageSettings)
def _of_images(settings: PublicImageSettings, shape: Encoder, initial: torch.Generator) -> nn.Module:
    """Return a wider network than the critic's."""
    wider = {"critic_channels": settings.encoder_channels, "features": settings.encoder_features}
    return critic_of(settings.model_copy(update=wider), shape, initial, 2 * settings.noise_width)
