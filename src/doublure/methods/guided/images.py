"""``guided`` on images: mean features teach a generator, a critic refines it, a labeller checks what it makes.

First the mean embedding of ``statistics`` (:mod:`doublure.methods.statistics.images.mean_embedding`); then a critic of
images (:mod:`doublure.methods.guided.refining`); then a linear labeller on scattering features
(:mod:`doublure.training.private_classifier`). An artificial image is handed out for a label once the labeller sees that
label in it, so that what the understudy is labelled with is as good as the labeller, and not only as the generator.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from pydantic import Field

from doublure.access import Access
from doublure.errors import SchemaError
from doublure.methods.dpgan.method import ImageDpganSettings
from doublure.methods.guided.settings import GuidedSettings
from doublure.methods.method import Job, Work
from doublure.methods.statistics.images.method import ImageStatisticsSettings
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.training.classifier_settings import CheckingSettings
from doublure.training.image_gan_settings import Channels

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.networks.labelled import Labeller
    from doublure.networks.upsampling import UpsamplingGenerator


class ImageGuidedSettings(GuidedSettings, ImageStatisticsSettings, CheckingSettings):
    """The settings of ``guided`` on images.

    Attributes:
        sampled_warp: How strongly images are warped when they are sampled: more than the generator learned with, as the
            labeller says what a warped image still shows, so that a student sees more than the generator could draw.
        sampled_spread: What the generator's noise is multiplied by when it is sampled: above 1, so that images come
            more often from the edges of what the generator can draw, where labels meet. The labeller says which.
        critic_channels: Output channels of the critic's convolutions.
        labeller_share: The labeller's share, in 1/σ²: 0 leaves it out, else at least 0.01.
    """

    sampled_warp: float = Field(default=2.0, ge=0, le=4)
    sampled_spread: float = Field(default=1.5, ge=0, le=4)
    critic_channels: tuple[Channels, ...] = Field(default=(16, 32, 64), min_length=1, max_length=6)
    labeller_share: float = Field(default=0.5, ge=0, le=0.99)

    @property
    def only_sampling(self) -> frozenset[str]:
        """How images are varied for the labeller to name, and how sure it has to be; without one they are not."""
        return frozenset({"sampled_warp", "sampled_spread", "label_margin"} if self.labeller_share else ())

    @property
    def shares(self) -> tuple[float, ...]:
        """What critic and labeller take."""
        return (*super().shares, self.labeller_share)

    @property
    def noise_width(self) -> int:
        """Numbers of noise that the generator takes for an image."""
        return self.image_noise * (self.tries if self.labeller_share else 1)

    def settled(self, schema: Schema) -> Self:
        """Refuse images without labels, unless no labeller is wanted."""
        if self.labeller_share and not schema.with_role("condition"):
            remedy = "declare a label with the role condition, or set labeller_share=0"
            raise SchemaError("has nothing that a labeller could tell apart", field=f"{LABEL}", remedy=remedy)
        return super().settled(schema).with_lot(schema)

    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """The sums of features, each step of the critic, and each step of the labeller."""
        statistics = ImageStatisticsSettings.accesses(self, schema, self.statistics_noise(noise_multiplier))
        found = self.with_critic(statistics, schema, noise_multiplier)
        if not self.labeller_share:
            return found
        return (*found, Access(purpose="teach the labeller", event=self.labeller_event(noise_multiplier), whole=True))

    def labeller_event(self, noise_multiplier: float) -> GaussianEvent:
        """Return all steps of the labeller, whose noise together is that of its share."""
        each = noise_multiplier * math.sqrt(self.labeller_steps / self.labeller_share)
        return GaussianEvent(noise_multiplier=each, steps=self.labeller_steps)

    def adversarial(self) -> ImageDpganSettings:
        """Return the critic's stage as the settings of a private GAN, whose generator is the one taught before."""
        return ImageDpganSettings(
            loss="logistic",
            gradient_penalty=0.0,
            lot_size=self.critic_lot,
            steps=self.critic_steps,
            max_grad_norm=self.critic_clip,
            critic_lr=self.critic_lr,
            critic_threshold=self.critic_threshold,
            critic_patience=self.critic_patience,
            critic_channels=self.critic_channels,
            generator_lr=self.refine_lr,
            noise_width=self.image_noise,
            noise_source=self.noise_source,
        )

    def work(self, schema: Schema) -> Work:
        """Return what all stages compute and hold."""
        work = super().work(schema)
        flops, held = work.flops, work.memory_bytes
        if self.critic_share:
            critic = self.adversarial().work(schema)
            flops, held = flops + critic.flops, max(held, critic.memory_bytes)
        if self.labeller_share and isinstance(schema, ImageSchema):
            more, kept = self.labeller_work(schema, self.drawing_work(schema)[0])
            flops, held = flops + more, held + kept
        return replace(work, flops=flops, memory_bytes=held)

    def build(self, encoder: Encoder, seed: int) -> nn.Module:
        """Return an untaught generator, with its labeller."""
        from doublure.methods.statistics.images.mean_embedding import generator_for, of_images
        from doublure.networks.labelled import Labeller

        generator = generator_for(encoder, self, seed)
        if not self.labeller_share:
            return generator
        return self._checked(generator, Labeller(of_images(encoder).body_shape, classes=encoder.condition_width))

    def train(self, job: Job) -> nn.Module:
        """Make the releases stage by stage."""
        from doublure.methods.guided.refining import refined
        from doublure.methods.statistics.images.mean_embedding import teaching
        from doublure.training.noisy_sums import NoisySums
        from doublure.training.private_classifier import labelled

        before = 1
        first = job.stage("statistics", after=0)
        lesson = teaching(first, self, NoisySums(first, job.accesses[:1]))
        generator = lesson.average
        if self.critic_share:
            stage = job.stage("critic", after=before)
            generator = refined(
                stage, self.adversarial(), job.accesses[1], generator, weight=self.anchor, distance=lesson.loss
            )
            before += self.critic_steps
        if not self.labeller_share:
            return generator
        last = job.stage("labeller", after=before)
        sums = NoisySums(last, job.accesses[-1:])
        return self._checked(generator, labelled(last, self, generator, self.image_noise, sums))

    def _checked(self, generator: UpsamplingGenerator, labeller: Labeller) -> nn.Module:
        generator.warp, generator.spread = self.sampled_warp, self.sampled_spread
        return self.checked(generator, labeller, self.image_noise)
