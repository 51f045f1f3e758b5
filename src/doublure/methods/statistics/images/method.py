"""``statistics`` on images: the noisy mean of fixed features, once, teaches a generator.

No public data and no network looks at a private image: the features are wavelets and cosines. The whole release is a
few thousand numbers for each label, with the noise of one Gaussian mechanism.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from doublure.access import Access
from doublure.methods.method import Job, LearningRate, Work
from doublure.methods.statistics.settings import StatisticsSettings
from doublure.networks.sizes import (
    WARP_WIDTH,
    fourier_work,
    paths,
    pixels,
    places,
    scattering_work,
    upsampling_work,
)
from doublure.private.accounting import GaussianEvent
from doublure.private.noise import SourceName
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.training.image_gan_settings import Channels, classes_of, refuse_unsteered

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_BYTES = 4
_FEW_IMAGES = 1_000
_FEWEST_FEATURES = 2
_Bandwidth: TypeAlias = Annotated[float, Field(ge=1e-3, le=1e3)]


class ImageStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on images.

    Attributes:
        features: D, numbers released for each label.
        bandwidths: Of the Gaussian kernels whose features these are; two images are at most some 2 apart.
        second_order: The share of them that sees second-order scattering, and with it textures; learning takes some
            three times as long.
        fine_detail: The share that sees the pixels themselves, and with them where each line stands; it hardly takes
            time.
        feature_seed: Public; fixes the features.
        fit_steps: Steps of the generator.
        batch: Generated images in a step.
        generator_lr: Learning rate at the start (Adam); it falls along a cosine.
        generator_average: Weight of the past in the moving average of the generator's weights that is released.
        latent: Numbers of noise an image, beside six that say how it is warped.
        warp: How strongly images are turned, stretched and shifted at random, while the generator learns and when it is
            sampled; 1 is up to 12 degrees and an eighth of the size, 0 nothing.
        hidden: Units of the generator's first layer.
        channels: Of its small map, and of each map after a doubling.
        noise_source: ``os-keyed``, or ``chacha20`` for a cryptographic stream.
    """

    features: int = Field(default=4096, ge=2, le=1_000_000, multiple_of=2)
    bandwidths: tuple[_Bandwidth, ...] = Field(default=(0.5, 0.25), min_length=1, max_length=16)
    second_order: float = Field(default=0.0, ge=0, lt=1)
    fine_detail: float = Field(default=0.0, ge=0, lt=1)
    feature_seed: int = Field(default=0, ge=0, lt=2**63)
    fit_steps: int = Field(default=2000, ge=1, le=10_000_000)
    batch: int = Field(default=400, ge=2)
    generator_lr: LearningRate = 2e-3
    generator_average: float = Field(default=0.99, ge=0, lt=1)
    latent: int = Field(default=16, ge=1, le=4096)
    warp: float = Field(default=1.0, ge=0, le=4)
    hidden: int = Field(default=256, ge=1, le=65_536)
    channels: tuple[Channels, ...] = Field(default=(64, 32, 16), min_length=1, max_length=6)
    noise_source: Literal["os-keyed", "chacha20"] = "os-keyed"

    @property
    def stream(self) -> SourceName:
        """As they say."""
        return self.noise_source

    @model_validator(mode="after")
    def _some_features_of_each(self) -> Self:
        for name, number in (("second_order", self.second_order_features), ("fine_detail", self.fine_detail_features)):
            if getattr(self, name) and number < _FEWEST_FEATURES:
                raise ValueError(f"{name} gets no features of its own; set features higher")
        if self.first_order_features < _FEWEST_FEATURES:
            raise ValueError("second_order and fine_detail leave no features of the first order; set one of them lower")
        return self

    @property
    def first_order_features(self) -> int:
        """How many features see first-order scattering."""
        return self.features - self.second_order_features - self.fine_detail_features

    @property
    def second_order_features(self) -> int:
        """How many features see second-order scattering."""
        return 2 * round(self.second_order * self.features / 2)

    @property
    def fine_detail_features(self) -> int:
        """How many features see the pixels."""
        return 2 * round(self.fine_detail * self.features / 2)

    @property
    def image_noise(self) -> int:
        """Z, all numbers of noise that one image is made of."""
        return self.latent + WARP_WIDTH

    @property
    def noise_width(self) -> int:
        """Numbers of noise that a sample takes for an image."""
        return self.image_noise

    def settled(self, schema: Schema) -> Self:
        """Nothing is left to decide; a label that nothing would make is refused."""
        refuse_unsteered(schema)
        return self

    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """One access: the sums of features."""
        event = GaussianEvent(noise_multiplier=noise_multiplier)
        return (Access(purpose="average the images' features for each label", event=event, whole=True),)

    def work(self, schema: Schema) -> Work:
        """Return what the release and the teaching compute and hold."""
        if not isinstance(schema, ImageSchema):
            raise TypeError("settings for images need a schema of images")
        height, width, colours = schema.shape
        shape, records = (colours, height, width), schema.public_units * schema.unit.max_records
        classes = max(1, classes_of(schema))
        drawn, kept = self.drawing_work(schema)
        (waves, matrices), deep = scattering_work(shape, 1), self.second_order_features
        inputs = colours * places(shape) * (paths(1) + 2)
        frequencies, held = inputs * self.first_order_features // 2, 6 * inputs
        frequencies += colours * pixels(shape) * self.fine_detail_features // 2
        if deep:
            more, further = scattering_work(shape, 2)
            deeper = colours * places(shape) * paths(2)
            waves, matrices = waves + more, matrices + further
            frequencies, held = frequencies + deeper * deep // 2, held + 24 * deeper
        seen = waves + frequencies + fourier_work(self.features)
        # Forwards, and backwards through fixed features once; through a generator also to its weights.
        flops = 2.0 * records * seen + self.fit_steps * self.batch * (6.0 * drawn + 4.0 * seen)
        numbers = self.batch * (4 * self.features + 3 * kept + held) + matrices
        numbers += 2 * frequencies + 4 * classes * self.features
        steps = sum(getattr(access.event, "steps", 1) for access in self.accesses(schema, 1.0))
        return Work(
            flops=flops,
            steps=steps,
            free_steps=self.fit_steps,
            memory_bytes=_BYTES * numbers + 3 * records * (height * width * colours + 4),
        )

    def drawing_work(self, schema: ImageSchema) -> tuple[int, int]:
        """Return the generator's multiplications for one image, and the numbers kept of it."""
        height, width, colours = schema.shape
        inputs = self.latent + max(1, classes_of(schema))
        return upsampling_work((colours, height, width), inputs, self.hidden, self.channels)

    def warnings(self, schema: Schema) -> tuple[str, ...]:
        """Say when a label has too few images for their mean features to be seen through noise."""
        each = schema.public_units // max(1, classes_of(schema) if isinstance(schema, ImageSchema) else 1)
        if each < _FEW_IMAGES:
            return (f"some {each} images a label are few for noisy mean features; expect shapes at best",)
        return ()

    def build(self, encoder: Encoder, seed: int) -> nn.Module:
        """Return an untaught generator."""
        from doublure.methods.statistics.images.mean_embedding import generator_for

        return generator_for(encoder, self, seed)

    def train(self, job: Job) -> nn.Module:
        """Release the mean features, then teach the generator."""
        from doublure.methods.statistics.images.mean_embedding import teaching
        from doublure.training.noisy_sums import NoisySums

        return teaching(job, self, NoisySums(job, job.accesses)).average
