"""The settings that every GAN on images shares, with the networks of Triastcyn & Faltings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from doublure.errors import SchemaError
from doublure.networks.sizes import critic_work, generator_work
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.training.gan_settings import AdversarialSettings
from doublure.training.settings import LearningRate, Work

_BYTES = 4
_PASSES = {True: 12, False: 6}  # passes over the critic for one paired image, with a gradient penalty and without
_HELD = 8
_GUESSED_CLASSES = 10

Channels = Annotated[int, Field(ge=1, le=1024)]


class ImageAdversarialSettings(AdversarialSettings):
    """The networks of a GAN on images.

    The defaults were chosen on the first 50,000 of MNIST's training images, with classifiers tested on its last 10,000
    (docs/evidence/methods.md); the papers' own are ``loss=wgan-gp, n_critic=5, activation=selu`` and rates of 1e-4.

    Attributes:
        critic_channels: Output channels of the critic's convolutions, each of which halves the sides.
        features: d, numbers between the critic's convolutions and its score.
        channels: Channels of the generator's layers; each layer doubles the sides.
        activation: Between layers, in both networks.
        normalisation: ``batch``: batch normalisation and ReLU in the generator (2018); ``none``.
    """

    data: ClassVar[str] = "images"
    sizes: ClassVar[dict[str, Any]] = {"lot_share": 0.001, "smallest_lot": 64, "largest_lot": 64, "steps": 10_000}
    penalties: ClassVar[dict[str, float]] = {"wgan-gp": 10.0, "logistic": 1.0, "hinge": 1.0, "wgan": 0.0}
    betas: ClassVar[tuple[float, float]] = (0.0, 0.9)

    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "logistic"
    n_critic: int = Field(default=1, ge=1, le=1000)
    critic_lr: LearningRate = 3e-4
    generator_lr: LearningRate = 3e-4
    generator_batch: int = Field(default=64, ge=1)
    generator_average: float = Field(default=0.99, ge=0, lt=1)
    critic_channels: tuple[Channels, ...] = Field(default=(16, 32, 64), min_length=1, max_length=6)
    features: int = Field(default=64, ge=1, le=4096)
    channels: tuple[Channels, ...] = Field(default=(128, 64, 32), min_length=1, max_length=6)
    activation: Literal["selu", "leaky_relu"] = "leaky_relu"
    normalisation: Literal["none", "batch"] = "none"

    @override
    def work(self, schema: Schema) -> Work:
        height, width, colours = ImageSchema.of(schema).shape
        shape = (colours, height, width)
        classes = classes_of(schema)
        critic, kept = critic_work(shape, classes, self.critic_channels, self.features)
        generator, drawn = self.drawing_work(schema)
        records, steps = (self.lot_size or 1) * schema.unit.max_records, self.steps or 1
        flops = 2.0 * steps * records * (_PASSES[self.penalty > 0] * critic + generator)
        flops += 2.0 * (steps / self.n_critic) * self.generator_batch * 3 * (critic + generator)
        pixels = height * width * colours
        held = schema.public_units * schema.unit.max_records * (pixels + 4) * 3  # as read, compact, and in unit order
        lot = records * (kept * 2 + pixels * _HELD) + self.generator_batch * (drawn * 3 + kept * 2)
        return Work(flops=flops, steps=steps, memory_bytes=held + _BYTES * lot, drawn_bytes=held)

    def drawing_work(self, schema: Schema) -> tuple[int, int]:
        """Return the generator's multiplications for one image, and the numbers kept of it."""
        height, width, colours = ImageSchema.of(schema).shape
        return generator_work((colours, height, width), self.noise_width + classes_of(schema), self.channels)


def classes_of(schema: Schema) -> int:
    """Return the number of labels, as far as it is public; 0 without labels."""
    label = ImageSchema.of(schema).label
    return 0 if label is None else len(label.domain) or _GUESSED_CLASSES


def label_counts(schema: Schema) -> list[float]:
    """Return the images of each label by its declared shares; even ones where none are, of one label at least."""
    units, label = schema.public_units, ImageSchema.of(schema).label
    if label is not None and isinstance(label.shares, Mapping):
        return [share * units for share in label.shares.values()]
    classes = max(1, classes_of(schema))
    return [units / classes] * classes


def require_condition(schema: Schema, *, attributes: bool = False) -> None:
    """Refuse a label that is not a condition: these generators draw images for given labels, never labels.

    Args:
        schema: The public facts.
        attributes: Whether the method draws attributes beside images.

    Raises:
        SchemaError: The label is a target only, or nothing would draw the attributes.
    """
    if schema.kind != "images":
        return
    if ImageSchema.of(schema).attributes and not attributes:
        remedy = "use method statistics, or guided; or leave them out"
        raise SchemaError("are beside the images, and this method draws none", field="attributes", remedy=remedy)
    if LABEL in set(schema.columns) - set(schema.with_role("condition")):
        remedy = "add condition to its roles, or take label out"
        raise SchemaError("is a target that nothing would make", field=f"{LABEL}.roles", remedy=remedy)
