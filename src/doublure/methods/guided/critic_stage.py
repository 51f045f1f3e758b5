"""Settings of the critic's stage of ``guided``, as those of a private GAN with a trained generator."""

from __future__ import annotations

from typing import Any

from doublure.methods.dpgan.settings import DpganSettings, ImageDpganSettings
from doublure.methods.guided.settings import ImageGuidedSettings, TableGuidedSettings


def critic_of_tables(settings: TableGuidedSettings, noise_width: int) -> DpganSettings:
    """Return the settings of the stage on tables.

    Args:
        settings: The settings of ``guided``, with defaults resolved.
        noise_width: Numbers of noise for a row.
    """
    return DpganSettings(
        **_shared(settings),
        critic_width=settings.critic_width,
        critic_depth=settings.critic_depth,
        generator_average=0.99,
        noise_width=noise_width,
    )


def critic_of_images(settings: ImageGuidedSettings) -> ImageDpganSettings:
    """Return the settings of the stage on images, from those of ``guided``."""
    return ImageDpganSettings(
        **_shared(settings),
        critic_channels=settings.critic_channels,
        noise_width=settings.image_noise,
    )


def _shared(settings: TableGuidedSettings | ImageGuidedSettings) -> dict[str, Any]:
    """Return the settings common to both: losses, lots and rates."""
    return {
        "loss": "logistic",
        "gradient_penalty": 0.0,
        "lot_size": settings.critic_lot,
        "steps": settings.critic_steps,
        "max_grad_norm": settings.critic_clip,
        "critic_lr": settings.critic_lr,
        "critic_threshold": settings.critic_threshold,
        "critic_patience": settings.critic_patience,
        "generator_lr": settings.refine_lr,
    }
