"""Attributes beside images, such as age and scanner: counted in pairs with the label, and drawn jointly with it.

One release counts each two of label and attributes, as those of series are
(:mod:`doublure.methods.statistics.series.joint_attributes`). Pixels follow from the label alone: two images of one
label look no more alike for being of one age.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from doublure.access import Access
from doublure.encode.attribute_groups import groups_of
from doublure.errors import SchemaError, counted
from doublure.methods.statistics.of_kind import counting
from doublure.methods.statistics.settings import ATTRIBUTE_SHARE
from doublure.schema.images import MOST_VALUES, ImageSchema
from doublure.training.job import Job

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.encode.encoder import Encoder

PAIRS = "count label and attributes in pairs"
MOST_COMBINATIONS = 100_000
"""Most combinations of label and attributes, of which a table holds every one: some hundred megabytes while images are
drawn, as of series."""


def count_combinations(schema: ImageSchema) -> int:
    """Return the number of combinations of label and attributes, at most where values are still to be learned."""
    return math.prod(
        MOST_VALUES if column.listed and column.learned else groups_of(column) for column in schema.columns.values()
    )


def refuse_too_many(schema: ImageSchema) -> None:
    """Refuse attributes whose combinations no table holds.

    Raises:
        SchemaError: Naming their number.
    """
    if schema.attributes and (count := count_combinations(schema)) > MOST_COMBINATIONS:
        raise SchemaError(
            f"make {counted(count, 'combination')} with the label, and {MOST_COMBINATIONS:,} are the most",
            field="attributes",
            remedy="declare learned values, cut numbers into fewer groups by edges, or leave attributes out",
        )


def share(schema: ImageSchema) -> float:
    """Return the pairs' share of the budget of the statistics."""
    return ATTRIBUTE_SHARE if schema.attributes else 0.0


def accesses(schema: ImageSchema, noise_multiplier: float) -> tuple[Access, ...]:
    """Return what pays for the pairs, of statistics that have this noise together; nothing without attributes."""
    if not schema.attributes:
        return ()
    releases = ((PAIRS, math.comb(len(schema.columns), 2), share(schema)),)
    return counting(releases, records=schema.most_records, noise_multiplier=noise_multiplier)


def explained(schema: ImageSchema, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a plan's line about what the pairs cost and how well they are known."""
    paid = next((access for access in touches if access.purpose == PAIRS), None)
    if paid is None:
        return ()
    from doublure.private.accounting import DiscreteGaussianEvent

    if not isinstance(paid.event, DiscreteGaussianEvent):
        raise TypeError("pairs are counted with discrete Gaussian noise")
    names = ", ".join(schema.attributes)
    return (
        f"Attributes: {names} and the label are counted in {paid.event.tables} pairs for {share(schema):.0%} of the "
        f"statistics' budget, each cell to ±{paid.event.scale:.2g} images; they are drawn with the label, and pixels "
        "follow from the label alone",
    )


def joint(job: Job, encoder: Encoder) -> Tensor | None:
    """Release the pairs, unless an interrupted run has, and return the shares of all combinations; None without."""
    paid = [access for access in job.accesses if access.purpose == PAIRS]
    if not paid:
        return None
    import torch

    from doublure.encode.image import of_images
    from doublure.methods.statistics.series.joint_attributes import joint_shares, pair_query, pair_shares

    job.mechanism.refuse_lost(*paid)
    job.check_stop()
    images = of_images(encoder)
    query = pair_query(images.first_code, images.condition_sizes.values(), images.schema.most_records)
    counted = [own.astype(np.float64) for own in query.split(job.mechanism.release(query, paid[0], job.everyone))]
    deviation = job.mechanism.deviation(paid[0], query.sensitivity)
    records = max(1.0, float(np.mean([own.sum() for own in counted])))
    shares = joint_shares(pair_shares(counted, records, deviation, images.condition_numbers))
    return torch.from_numpy(shares)


def with_conditions(
    generator: nn.Module, encoder: Encoder, shares: Tensor | None = None, together: Tensor | None = None
) -> nn.Module:
    """Return a generator of images with the shares of labels, or the joint ones of labels and attributes.

    Args:
        generator: Maps noise and label to images.
        encoder: The images' encoder.
        shares: ``(K,)`` of labels; left out if a run's weights are loaded afterwards.
        together: ``(combinations,)`` of labels and attributes; likewise.
    """
    from torch import zeros

    from doublure.encode.image import of_images
    from doublure.networks.labelled import OfLabel
    from doublure.networks.shares import WithJointShares, with_shares

    images = of_images(encoder)
    if not images.schema.attributes:
        return with_shares(generator, images.condition_sizes.values(), shares)
    sizes = list(images.condition_sizes.values())
    made = WithJointShares(OfLabel(generator, images.labels), sizes, [True] * len(sizes))
    return made if together is None else made.knowing_groups(together, zeros(len(together), 0))
