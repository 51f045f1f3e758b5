"""The settings of a private labeller, which several methods share."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from doublure.networks.sizes import paths, places, scattering_work
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.training.image_gan_settings import classes_of
from doublure.training.private_gan_settings import Norm
from doublure.training.settings import MethodSettings

MOMENTUM = 0.9
"""Momentum of a labeller's gradient descent; its rate follows from the public number of units and the noise."""
MOST_COMPARED = 30_000
"""Most generated images that a labeller is judged by: what labels and wide warps are worth shows no earlier."""
_BYTES = 4
_OF_DIRECTIONS = 4.0  # operations, times the cube of a side, of finding a symmetric matrix's largest eigenvalues


def images_compared(schema: Schema) -> int:
    """Return how many generated images a labeller's labels are judged by.

    As many as there are units, which is what is drawn by default, at most 30,000: what labels are worth shows late. Of
    MNIST's at ε = 1 both ways teach a small classifier alike up to 8,000 images, and from 30,000 on the labeller's
    teach more (docs/evidence/journal/images.md).
    """
    return min(schema.public_units, MOST_COMPARED)


class LabellerSettings(MethodSettings):
    """Training of a labeller, and its use when images are sampled.

    Attributes:
        labeller_steps: Steps of noisy gradient descent, each on all records.
        labeller_clip: C, the bound on a record's gradient, from 1e-9 to 1e9.
        view_images: Generated images that features are standardised on.
        view_width: Main directions of the features that are kept.
        tries: Most draws of an image until the labeller recognises its label.
    """

    constants: ClassVar[dict[str, Any]] = {"labeller_lr": None, "labeller_momentum": MOMENTUM}

    labeller_steps: int = Field(default=60, ge=1, le=100_000)
    labeller_clip: Norm = 0.1
    view_images: int = Field(default=10_000, ge=100)
    view_width: int = Field(default=500, ge=1)
    tries: int = Field(default=4, ge=1, le=100)

    def labeller_work(self, schema: Schema, drawn: int, checked: int = 0) -> tuple[float, int]:
        """Return the operations and the bytes of a labeller.

        Args:
            schema: The images' schema.
            drawn: The generator's multiplications for one image that features are standardised on.
            checked: Generated images whose labels it checks.
        """
        height, width, colours = ImageSchema.of(schema).shape
        shape, records = (colours, height, width), schema.public_units * schema.unit.max_records
        waves, matrices = scattering_work(shape, 2)
        seen = colours * places(shape) * paths(2)
        side = min(seen, self.view_images)  # of the matrix whose main directions are found
        generated = self.view_images + checked
        flops = 2.0 * (records + generated) * (waves + seen * self.view_width) + 2.0 * generated * drawn
        flops += 2.0 * self.view_images * seen * side + _OF_DIRECTIONS * side**3
        flops += 4.0 * records * self.labeller_steps * self.view_width * max(1, classes_of(schema))
        numbers = seen * (self.view_images + self.view_width) + 2 * side**2 + matrices
        return flops, 2 * records * self.view_width + _BYTES * numbers


class CheckingSettings(LabellerSettings):
    """Settings of a labeller that checks images drawn for a label.

    Attributes:
        label_margin: Log odds by which the labeller must prefer another label before an image loses the label that it
            was drawn for.
    """

    label_margin: float = Field(default=0.0, ge=0, le=100)
