"""``guided``: private statistics teach a generator, and a private labeller checks what it makes.

One plan splits ε over the stages; a share of zero leaves a stage out. First the mean embedding of ``statistics``
(:mod:`doublure.methods.mean_embedding`), then a linear labeller on scattering features
(:mod:`doublure.methods.labelling`). An artificial image is handed out for a label once the labeller sees that label
in it, so that what the understudy is labelled with is as good as the labeller, and not only as the generator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, field_validator

from doublure.access import Access
from doublure.errors import SchemaError
from doublure.guarantee import Kind
from doublure.methods.base import Job, MethodSettings, Work
from doublure.methods.image_settings import classes_of
from doublure.methods.image_statistics import ImageStatisticsSettings
from doublure.methods.statistics import Statistics
from doublure.networks.sizes import paths, places, scattering_work
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_BYTES = 4
_LEAST_SHARE = 0.01


class GuidedSettings(ImageStatisticsSettings):
    """The settings of ``guided``.

    Attributes:
        sampled_warp: How strongly images are warped when they are sampled: more than the generator learned with, as the
            labeller says what a warped image still shows, so that a student sees more than the generator could draw.
        labeller_share: The labeller's share of what is spent, in 1/σ²: 0 leaves it out, else at least 0.01.
        labeller_steps: Of noisy gradient descent, each on all records.
        labeller_lr: None: from the public number of units and the noise.
        labeller_momentum: Of gradient descent.
        labeller_clip: C, the bound on a record's gradient, from 1e-9 to 1e9.
        view_images: Generated images that show the labeller where to look.
        view_width: Directions that it looks in.
        tries: How often an image is drawn, at most, until the labeller sees its label.
    """

    sampled_warp: float = Field(default=2.0, ge=0, le=4)
    labeller_share: float = Field(default=0.5, ge=0, le=0.99)
    labeller_steps: int = Field(default=60, ge=1, le=100_000)
    labeller_lr: float | None = Field(default=None, gt=0)
    labeller_momentum: float = Field(default=0.9, ge=0, lt=1)
    labeller_clip: float = Field(default=0.1, ge=1e-9, le=1e9)
    view_images: int = Field(default=10_000, ge=100)
    view_width: int = Field(default=500, ge=1)
    tries: int = Field(default=4, ge=1, le=100)

    @field_validator("labeller_share")
    @classmethod
    def _none_or_some(cls, share: float) -> float:
        # So little that its noise would be no number that float32 can carry is refused before anything is charged.
        if 0 < share < _LEAST_SHARE:
            raise ValueError(f"input should be 0, or at least {_LEAST_SHARE:g}")
        return share

    @property
    def noise_width(self) -> int:
        """Numbers of noise that the generator takes for an image."""
        return self.image_noise * (self.tries if self.labeller_share else 1)

    def settled(self, schema: Schema) -> Self:
        """Refuse images without labels, unless no labeller is wanted."""
        if self.labeller_share and not schema.with_role("condition"):
            remedy = "declare a label with the role condition, or set labeller_share=0"
            raise SchemaError("has nothing that a labeller could tell apart", field=f"{LABEL}", remedy=remedy)
        return super().settled(schema)

    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """The sums of features, and each step of the labeller."""
        if not self.labeller_share:
            return super().accesses(schema, noise_multiplier)
        first, each = multipliers(noise_multiplier, self.labeller_share, self.labeller_steps)
        event = GaussianEvent(noise_multiplier=each, steps=self.labeller_steps)
        return (*super().accesses(schema, first), Access(purpose="teach the labeller", event=event))

    def work(self, schema: Schema) -> Work:
        """Return what all stages compute and hold."""
        work = super().work(schema)
        if not self.labeller_share or not isinstance(schema, ImageSchema):
            return work
        height, width, colours = schema.shape
        shape, records = (colours, height, width), schema.public_units * schema.unit.max_records
        waves, matrices = scattering_work(shape, 2)
        seen = colours * places(shape) * paths(2)
        flops = 2.0 * (records + self.view_images) * (waves + seen * self.view_width)
        flops += 2.0 * self.view_images * seen**2 + 10.0 * seen**3
        flops += 4.0 * records * self.labeller_steps * self.view_width * max(1, classes_of(schema))
        held = 2 * records * self.view_width + _BYTES * (self.view_images * seen + 4 * seen**2 + matrices)
        return Work(flops=work.flops + flops, steps=work.steps, memory_bytes=work.memory_bytes + held)

    def build(self, encoder: Encoder, seed: int) -> nn.Module:
        """Return an untaught generator, with its labeller."""
        from doublure.methods.mean_embedding import generator_for, of_images
        from doublure.networks.labelled import LabelledGenerator, Labeller

        generator = generator_for(encoder, self, seed)
        if not self.labeller_share:
            return generator
        generator.warp = self.sampled_warp
        labeller = Labeller(of_images(encoder).body_shape, classes=encoder.condition_width)
        return LabelledGenerator(generator, labeller, noise_width=self.image_noise, tries=self.tries)

    def train(self, job: Job) -> nn.Module:
        """Make the releases stage by stage."""
        from doublure.methods.labelling import labelled
        from doublure.methods.mean_embedding import taught
        from doublure.networks.labelled import LabelledGenerator

        sums = self.sums(job)
        generator = taught(job, self, sums)
        labeller = labelled(job, self, generator, sums) if self.labeller_share else None
        if labeller is None:
            return generator
        generator.warp = self.sampled_warp
        return LabelledGenerator(generator, labeller, noise_width=self.image_noise, tries=self.tries)


class Guided(Statistics):
    """Statistics, then a labeller; see the module."""

    name: ClassVar[str] = "guided"
    kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[dict[str, type[MethodSettings]]] = {"images": GuidedSettings}


def multipliers(noise_multiplier: float, share: float, steps: int) -> tuple[float, float]:
    """Return the noise multipliers of one release and of each of so many steps, that together are one Gaussian's.

    Noise multipliers of Gaussian mechanisms on all records add up as 1/σ² = Σ 1/σ_t².

    Args:
        noise_multiplier: σ of all together.
        share: Of 1/σ², for the steps; in (0, 1).
        steps: How many.
    """
    return noise_multiplier / math.sqrt(1 - share), noise_multiplier * math.sqrt(steps / share)


METHOD = Guided()
