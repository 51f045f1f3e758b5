"""The settings of ``dpgan``: a GAN's networks for each kind of data, with clipping and noise."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from doublure.training.gan_settings import TableAdversarialSettings
from doublure.training.image_gan_settings import ImageAdversarialSettings
from doublure.training.private_gan_settings import IndividualSettings, Norm
from doublure.training.series_gan_settings import SeriesAdversarialSettings
from doublure.training.settings import LearningRate


class DpganSettings(TableAdversarialSettings, IndividualSettings):
    """The settings of ``dpgan`` on tables."""

    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.35, "smallest_lot": 256, "largest_lot": 4096, "steps": 600}


class ImageDpganSettings(ImageAdversarialSettings, IndividualSettings):
    """The settings of ``dpgan`` on images.

    There is no normalisation, which would mix generated images, and no gradient penalty with the logistic loss: the
    steps are clipped and noised, and without it twice as many take the same time. The few steps are larger than those
    of ``gan`` (docs/evidence/methods.md).
    """

    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.02, "smallest_lot": 64, "largest_lot": 1024, "steps": 1500}
    penalties: ClassVar[dict[str, float]] = ImageAdversarialSettings.penalties | {"logistic": 0.0}

    critic_lr: LearningRate = 1e-3
    generator_lr: LearningRate = 1e-3
    generator_batch: int = Field(default=256, ge=1)
    max_grad_norm: Norm = 1.0
    normalisation: Literal["none"] = "none"


class SeriesDpganSettings(SeriesAdversarialSettings, IndividualSettings):
    """The settings of ``dpgan`` on time series."""

    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.1, "smallest_lot": 64, "largest_lot": 2048, "steps": 1000}

    max_grad_norm: Norm = 1.0
