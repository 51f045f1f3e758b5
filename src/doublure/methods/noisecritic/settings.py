"""The settings of ``noisecritic``: the noise layer, the later estimate, and votes on labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from doublure.training.gan_settings import AdversarialSettings, TableAdversarialSettings
from doublure.training.image_gan_settings import ImageAdversarialSettings
from doublure.training.settings import LearningRate, RecipeSettings

ESTIMATED_ON, ESTIMATE_SEED = 5_000, 0
"""Number of synthetic records in the estimate of the expected loss, and the seed that chooses all its records. With
more synthetic records, the measured effect of one real record is smaller."""


class NoiseLayerSettings(AdversarialSettings):
    """Settings of the noise layer and of the estimated loss, on any kind of data.

    Attributes:
        features: d, numbers that pass through the noise layer.
        feature_clip: C, the norm that they are clipped to, from 1e-9 to 1e9.
        feature_noise: σ, the standard deviation of the noise in each of them, from 1e-9 to 1e9.
        estimate_pairs: N, number of real records in the estimate; γ is 1/(N + 1). None: 1000, or half of the public
            number of units.
    """

    constants: ClassVar[dict[str, Any]] = {
        "noise_source": "os-keyed", "estimate_artificial": ESTIMATED_ON, "estimate_seed": ESTIMATE_SEED,
    }  # fmt: skip

    features: int = Field(default=64, ge=1, le=4096)
    feature_clip: float = Field(default=1.0, ge=1e-9, le=1e9)
    feature_noise: float = Field(default=1.5, ge=1e-9, le=1e9)
    estimate_pairs: int | None = Field(default=None, ge=2, le=1_000_000)


class NoisecriticSettings(TableAdversarialSettings, NoiseLayerSettings):
    """The settings of ``noisecritic`` on tables.

    Attributes:
        estimate_features: The features in which the estimate measures distances: encoded rows.
    """

    sizes: ClassVar[dict[str, Any]] = TableAdversarialSettings.sizes | {"lot_share": 0, "steps": 10_000}
    penalties: ClassVar[dict[str, float]] = TableAdversarialSettings.penalties | {"wgan-gp": 10.0}

    n_critic: int = Field(default=5, ge=1, le=1000)
    critic_lr: LearningRate = 1e-3
    generator_lr: LearningRate = 1e-3
    estimate_features: Literal["rows"] = "rows"


class ImageNoisecriticSettings(ImageAdversarialSettings, NoiseLayerSettings, RecipeSettings):
    """The settings of ``noisecritic`` on images.

    Attributes:
        recipe: The set of defaults: ``paper`` (2019), ``paper-2018``, or ``doublure``: larger steps, fewer of them, and
            an average of the generator's weights (docs/evidence/methods.md has what it brings).
        labels: ``record``: the label is part of the record, and passes through the noise layer with it (2018, §4.1: the
            paper's choice). ``votes``: noisy votes replace it (:mod:`doublure.methods.noisecritic.label_votes`).
        label_epsilon: ε₂ of the votes, for the labels alone.
        label_delta: δ₂ of the votes, below 1/units.
        label_groups: Number of groups of similar images that vote; None: one for a hundred units, at most 1000.
        estimate_features: The features in which the estimate measures distances; None: ``student`` if images have
            labels, else ``pixels``.
    """

    sizes: ClassVar[dict[str, Any]] = ImageAdversarialSettings.sizes | {"steps": 30_000}
    unsaid: ClassVar[dict[str, Any]] = {"recipe": "paper"}
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {},
        "paper-2018": {"activation": "leaky_relu", "normalisation": "batch"},
        "doublure": {
            "n_critic": 2, "critic_lr": 1e-3, "generator_lr": 1e-3, "activation": "leaky_relu", "lot_size": 128,
            "generator_average": 0.999, "steps": 25_000,
        },
    }  # fmt: skip

    recipe: str = "paper"
    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan-gp"
    n_critic: int = Field(default=5, ge=1, le=1000)
    critic_lr: LearningRate = 1e-4
    generator_lr: LearningRate = 1e-4
    activation: Literal["selu", "leaky_relu"] = "selu"
    labels: Literal["record", "votes"] = "record"
    label_epsilon: float | None = Field(default=None, gt=0)
    label_delta: float | None = Field(default=None, gt=0, lt=1)
    label_groups: int | None = Field(default=None, ge=1, le=100_000)
    estimate_features: Literal["student", "pixels", "efficientnet-lite0", "inception-v3"] | None = None

    @model_validator(mode="after")
    def _votes_have_a_price(self) -> Self:
        if self.label_groups is not None and self.labels != "votes":
            raise ValueError("label_groups goes with labels=votes; leave it out")
        prices = {"label_epsilon": self.label_epsilon, "label_delta": self.label_delta}
        for name, price in prices.items():
            if (price is not None) != (self.labels == "votes"):
                raise ValueError(
                    f"{name} and labels=votes go together: give both label_epsilon and label_delta with it"
                )
        return self

    @property
    def votes(self) -> bool:
        """Whether labels are voted on."""
        return self.labels == "votes"
