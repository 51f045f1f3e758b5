"""The settings of ``guided``: shares of the budget and training of critic and labeller."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from doublure.access import Access
from doublure.methods.statistics.settings import ImageStatisticsSettings, StatisticsSettings, TableStatisticsSettings
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.classifier_settings import CheckingSettings
from doublure.training.gan_settings import refuse_nothing_to_generate
from doublure.training.image_gan_settings import Channels
from doublure.training.private_gan_settings import Norm, share_event
from doublure.training.settings import LearningRate

LEAST_SHARE = 0.01
_LOT = 1_000


def refuse_tiny_share(share: float | None) -> float | None:
    """Refuse a share so small that float32 could not hold its noise; 0 leaves the stage out."""
    if share is not None and 0 < share < LEAST_SHARE:
        raise ValueError(f"must be 0, or at least {LEAST_SHARE:g}")
    return share


_COMPARED = 0.04
"""Share of a labeller's budget that says whether it is asked. The difference of two counts then has √(2 / .02) = 10
times the noise of the whole budget: at ε = 1 37 images, a point of 4,000. The labeller's noise grows by a fiftieth."""


class GuidedSettings(StatisticsSettings):
    """Settings of a private critic beside the statistics.

    Attributes:
        critic_share: The critic's share of the budget, in 1/σ² (for lots, by the central limit theorem): 0 leaves the
            critic out, else at least 0.01.
        critic_steps: Noisy steps of the critic, T.
        critic_lot: Expected units in a lot; None: 1,000, or all if there are fewer.
        critic_lr: Adam's learning rate of the critic.
        critic_clip: C, the bound on a unit's gradient, from 1e-9 to 1e9.
        critic_threshold: Accuracy on generated records up to which the critic takes more steps for one of the
            generator's (:class:`doublure.training.gan_loop.CriticPace`).
        critic_patience: Fewest steps of the generator before it takes still more.
        refine_lr: Adam's learning rate of the generator that is refined.
        anchor: Weight of the generator's distance from the released statistics.
    """

    critic_share: float = Field(default=0.0, ge=0, le=0.98)
    critic_steps: int = Field(default=200, ge=1, le=1_000_000)
    critic_lot: int | None = Field(default=None, ge=1)
    critic_lr: LearningRate = 3e-4
    critic_clip: Norm = 1.0
    critic_threshold: float = Field(default=0.6, ge=0, le=1)
    critic_patience: int = Field(default=5, ge=1, le=1_000_000)
    refine_lr: LearningRate = 1e-4
    anchor: float = Field(default=1.0, ge=0, le=1e6)

    _none_or_some = field_validator("critic_share", "labeller_share", check_fields=False)(refuse_tiny_share)

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        if self.statistics_share < LEAST_SHARE:
            raise ValueError(f"the stages' shares must leave at least {LEAST_SHARE:g} for the statistics")
        return self

    @property
    def shares(self) -> tuple[float, ...]:
        """Shares of the budget of the stages after the statistics."""
        return (self.critic_share,)

    @property
    @override
    def summary(self) -> str:
        names = ("a private critic that refines", "a private labeller that checks")
        run = [name for name, share in zip(names, self.shares, strict=False) if share]
        return f"statistics, then {' and '.join(run)}" if run else "statistics alone, as critic_share=0"

    @property
    @override
    def statistics_share(self) -> float:
        """The share left for the statistics, rounded so that 1 - 0.9 is 0.1."""
        return round(1 - sum(self.shares), 12)

    def with_lot(self, schema: Schema) -> Self:
        """Return the settings with the critic's lot chosen from the public number of units."""
        if not self.critic_share:
            return self
        refuse_nothing_to_generate(schema)
        return self.model_copy(update={"critic_lot": min(schema.public_units, self.critic_lot or _LOT)})

    def with_critic(
        self, statistics: tuple[Access, ...], schema: Schema, noise_multiplier: float
    ) -> tuple[Access, ...]:
        """Return the accesses of the statistics, and of the critic if there is one."""
        if not self.critic_share:
            return statistics
        return (*statistics, Access(purpose="train the critic", event=self.critic_event(schema, noise_multiplier)))

    def statistics_noise(self, noise_multiplier: float) -> float:
        """Return the noise multiplier of all statistics together."""
        return noise_multiplier / math.sqrt(self.statistics_share)

    def critic_event(self, schema: Schema, noise_multiplier: float) -> GaussianEvent:
        """Return the event of all steps of the critic, which together have the precision of its share."""
        rate = min(1.0, (self.critic_lot or _LOT) / schema.public_units)
        return share_event(noise_multiplier, self.critic_share, rate, self.critic_steps)


class TableGuidedSettings(GuidedSettings, TableStatisticsSettings):
    """The settings of ``guided`` on tables.

    Attributes:
        critic_width: Hidden units a layer of the critic.
        critic_depth: Hidden layers of the critic.
        structure: A critic refines the mixture that pairs are fitted by.
    """

    structure: Literal["tree"] = "tree"
    critic_width: int = Field(default=128, ge=1, le=8192)
    critic_depth: int = Field(default=1, ge=0, le=10)

    @property
    @override
    def noise_source(self) -> str:
        return f"{super().noise_source}; os-keyed for the critic" if self.critic_share else super().noise_source


class ImageGuidedSettings(GuidedSettings, ImageStatisticsSettings, CheckingSettings):
    """The settings of ``guided`` on images.

    Attributes:
        sampled_warp: Strength of the warp in sampling. For drawings it is above that in training: the labeller checks
            what a warped image still shows, and a classifier sees more variation than the generator learned.
        sampled_spread: Factor of the generator's noise in sampling. Above 1, more images come from the edges of its
            range, near class boundaries; the labeller checks their labels. By default it is above 1 only for
            photographs with precise label means.
        critic_channels: Output channels of the critic's convolutions.
        labeller_share: The labeller's share, in 1/σ²: 0 leaves it out, else at least 0.01.
        labels_compared: Whether a priced answer says if the labeller is asked (:mod:`doublure.training.label_check`),
            for a share of the labeller's budget; else it always is.
    """

    unsaid: ClassVar[dict[str, Any]] = {**ImageStatisticsSettings.unsaid, "labels_compared": False}

    sampled_warp: float = Field(default=2.0, ge=0, le=4)
    sampled_spread: float = Field(default=1.0, ge=0, le=4)
    critic_channels: tuple[Channels, ...] = Field(default=(16, 32, 64), min_length=1, max_length=6)
    labeller_share: float = Field(default=0.5, ge=0, le=0.99)
    labels_compared: bool = True

    @model_validator(mode="after")
    def _a_critic_has_weights_to_refine(self) -> Self:
        if self.critic_share and self.model == "gaussian":
            raise ValueError("critic_share refines a network, and a Gaussian has none; set model=network")
        return self

    @property
    @override
    def quicker(self) -> tuple[str, Self] | None:
        return None if self.critic_share else super().quicker

    @property
    @override
    def sampling_only_fields(self) -> frozenset[str]:
        return frozenset({"sampled_warp", "sampled_spread", "label_margin"} if self.labeller_share else ())

    @property
    @override
    def shares(self) -> tuple[float, ...]:
        return (*super().shares, self.labeller_share)

    @property
    @override
    def noise_width(self) -> int:
        return self.image_noise * (self.tries if self.labeller_share else 1)

    @property
    def least_known(self) -> float:
        """Images of a label to a unit of noise, below which a labeller learns more noise than images.

        A labeller's vectors have length 1 in ``view_width`` directions. Noise of σ / √share in each is then as long as
        the sum of a label's vectors could be, if all were equal.
        """
        return math.sqrt(self.view_width / self.labeller_share)

    @property
    def compared_share(self) -> float:
        """The share of the budget that says whether the labeller is asked."""
        return _COMPARED * self.labeller_share if self.labels_compared else 0.0

    def labeller_event(self, noise_multiplier: float) -> GaussianEvent:
        """Return the event of all steps of the labeller, which together have the noise of its share."""
        share = self.labeller_share - self.compared_share
        each = noise_multiplier * math.sqrt(self.labeller_steps / share)
        return GaussianEvent(noise_multiplier=each, steps=self.labeller_steps)
