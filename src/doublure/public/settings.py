"""The settings of a public generator: those of ``gan`` without conditions, and those of its encoder.

No record here is private. These settings alone fix the networks, so that ``public.json`` and a plan can describe them
and a run folder can be read without the public one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from pydantic import Field
from typing_extensions import override

from doublure.errors import SettingError
from doublure.schema import Schema
from doublure.training.gan_settings import AdversarialSettings, TableAdversarialSettings
from doublure.training.image_gan_settings import ImageAdversarialSettings
from doublure.training.settings import LearningRate, by_kind

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

Objective: TypeAlias = Literal["wgan-gp", "autoencoder"]


class PublicSettings(AdversarialSettings):
    """Settings that public generators of every kind share.

    Attributes:
        objective: ``autoencoder``, a variational one with latents close to N(0, I): it trains in a fraction of the
            time and has an encoder already; or ``wgan-gp``, the paper's (Gulrajani et al. 2017).
        noise_width: d, latent numbers.
        lot_size: Records in a step.
        steps: Steps of the critic, or of the autoencoder.
        autoencoder_lr: Adam's learning rate for an autoencoder, or for an encoder trained beside a GAN.
        proposer: Whether ``wgan-gp`` is followed by an encoder, trained on generated records, that proposes the start
            of an inversion.
        proposer_steps: Steps of that encoder.
    """

    generator_named: ClassVar[str] = "noise_width, width, depth, bins and numerics"
    encoder_named: ClassVar[str] = generator_named
    """The settings that fix the shapes of the encoder's weights."""

    objective: Objective = "autoencoder"
    autoencoder_lr: float = Field(default=1e-3, gt=0, le=1)
    proposer: bool = True
    proposer_steps: int = Field(default=2_000, ge=1, le=10_000_000)

    @override
    def condition_width(self, encoder: Encoder) -> int:
        return 0


class PublicImageSettings(ImageAdversarialSettings, PublicSettings):
    """A public generator of images.

    Attributes:
        encoder_channels: Output channels of the encoder's convolutions.
        encoder_features: Units of its last hidden layer.
    """

    generator_named: ClassVar[str] = "noise_width, channels, activation and normalisation"
    encoder_named: ClassVar[str] = "noise_width, encoder_channels, encoder_features and activation"
    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.002, "smallest_lot": 64, "largest_lot": 128}

    loss: Literal["wgan-gp"] = "wgan-gp"
    n_critic: int = Field(default=5, ge=1, le=1000)
    noise_width: int = Field(default=32, ge=1, le=4096)
    encoder_channels: tuple[int, ...] = Field(default=(32, 64, 64), min_length=1, max_length=6)
    encoder_features: int = Field(default=256, ge=1, le=4096)


class PublicTableSettings(TableAdversarialSettings, PublicSettings):
    """A public generator of rows."""

    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.02, "smallest_lot": 64, "largest_lot": 512}

    loss: Literal["wgan-gp"] = "wgan-gp"
    n_critic: int = Field(default=5, ge=1, le=1000)
    critic_lr: LearningRate = 5e-4
    noise_width: int = Field(default=32, ge=1, le=4096)


TYPES = by_kind(PublicImageSettings, PublicTableSettings)
_STEPS: dict[Objective, int] = {"autoencoder": 6_000, "wgan-gp": 20_000}


def read(kind: str, given: dict[str, Any]) -> PublicSettings:
    """Return settings of a kind of data.

    Raises:
        SettingError: A setting is unknown or out of range, or there are no public generators of this kind.
    """
    if kind not in TYPES:
        remedy = "give images or a table"
        raise SettingError(f"there is no public generator of kind {kind}", field="kind", remedy=remedy)
    return TYPES[kind].read(given)


def resolve_defaults(settings: PublicSettings, schema: Schema) -> PublicSettings:
    """Return settings with the lot size and the number of steps chosen from the number of public records."""
    return settings.resolve_defaults(schema, steps=_STEPS[settings.objective], **settings.sizes)
