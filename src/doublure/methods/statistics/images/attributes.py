"""Attributes beside images, such as age and scanner: counted in pairs with the label, and drawn jointly with it.

One release counts each two of label and attributes, as those of series are
(:mod:`doublure.methods.statistics.series.joint_attributes`). Pixels follow from the label alone: two images of one
label look no more alike for being of one age.

Numbers are counted in as many groups as forecast the smallest error of their correlation with the label. Of K values
and B groups, noise of standard deviation s in each of K B cells adds K B (s / N)² to the squared error, since
standardised values have mean squares of 1. A number that is drawn evenly within groups of widths w keeps √(1 - Σ w³) of
a correlation, for numbers that are spread evenly over their bounds.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from doublure.access import Access
from doublure.encode.attribute_groups import groups_of
from doublure.errors import SchemaError, counted, printable
from doublure.methods.statistics.of_kind import counting
from doublure.methods.statistics.settings import ATTRIBUTE_SHARE
from doublure.schema.images import MOST_VALUES, ImageSchema
from doublure.schema.rules.rule import list_names
from doublure.support.arrays import Floats, Ints
from doublure.training.job import Job

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.encode.encoder import Encoder

_NAMED = 5
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


def limits(schema: ImageSchema) -> tuple[str, ...]:
    """Return what images do not show; nothing without attributes."""
    if not schema.attributes:
        return ()
    do = "does" if len(schema.attributes) == 1 else "do"
    seen = "follow from the label alone, and" if schema.label is not None else "are drawn by themselves, and"
    return (f"Pixels {seen} {list_names([*schema.attributes])} {do} not change them",)


def _noise(touches: tuple[Access, ...]) -> float | None:
    """Return the standard deviation of the noise of a cell of the pairs; None where there are none."""
    paid = next((access for access in touches if access.purpose == PAIRS), None)
    if paid is None:
        return None
    from doublure.private.accounting import DiscreteGaussianEvent

    if not isinstance(paid.event, DiscreteGaussianEvent):
        raise TypeError("pairs are counted with discrete Gaussian noise")
    return paid.event.scale


def cells_by_forecast(schema: ImageSchema, noise: float) -> dict[str, Ints]:
    """Return, for label and attributes, the cell in which each value or group is counted ``(groups,)``.

    Args:
        schema: Label and attributes; where values are still to be learned, as many as are guessed.
        noise: Standard deviation of the noise of a cell, in images.
    """
    sizes = {name: groups_of(column) for name, column in schema.columns.items()}
    (first, of_first), (_, of_second) = list(sizes.items())[:2]
    found = {}
    for name, size in sizes.items():
        column, beside = schema.columns[name], of_second if name == first else of_first
        joinable = column.bounded and not column.may_be_missing and not column.cuts
        ways = range(2, size + 1) if joinable else [size]
        found[name] = min(
            (np.arange(size, dtype=np.int64) * groups // size for groups in ways),
            key=lambda cells: _squared_error(cells, beside, noise / schema.public_units),
        )
    return found


def _squared_error(cells: Ints, beside: int, noise: float) -> float:
    """Return the forecast of the module: the squared error of a correlation of 1."""
    widths = np.bincount(cells) / len(cells)
    return float(beside * len(widths) * noise**2 + (1 - math.sqrt(max(0.0, 1 - float((widths**3).sum())))) ** 2)


def noisy_pairs(schema: ImageSchema, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a line on the pairs of which a cell's noise exceeds its even share of the images; nothing if none."""
    if (noise := _noise(touches)) is None:
        return ()
    sizes = {name: int(own.max()) + 1 for name, own in cells_by_forecast(schema, noise).items()}
    held = {pair: schema.public_units / math.prod(sizes[name] for name in pair) for pair in combinations(sizes, 2)}
    worst = sorted((pair for pair, each in held.items() if each < noise), key=lambda pair: held[pair])
    if not worst:
        return ()
    named = [f"{' × '.join(map(printable, pair))} (some {held[pair]:.2g} images a cell)" for pair in worst[:_NAMED]]
    more = f" and {len(worst) - _NAMED} more" if len(worst) > _NAMED else ""
    return (
        f"mostly noise of ±{noise:.2g} images a cell: {', '.join(named)}{more}; join values, leave attributes out, or "
        "give more epsilon",
    )


def explained(schema: ImageSchema, touches: tuple[Access, ...]) -> tuple[str, ...]:
    """Return a plan's lines about what the pairs cost and how well they are known."""
    if (noise := _noise(touches)) is None:
        return ()
    names, count = ", ".join(map(printable, schema.attributes)), math.comb(len(schema.columns), 2)
    cells = cells_by_forecast(schema, noise)
    fewer = [f"{printable(name)} in {own.max() + 1} groups" for name, own in cells.items() if own.max() + 1 < len(own)]
    return (
        f"Attributes: {names} and the label are counted in {count} pairs for {share(schema):.0%} of the "
        f"statistics' budget, each cell to ±{noise:.2g} images{', ' * bool(fewer)}{', '.join(fewer)}; they are drawn "
        "with the label",
        *(f"Warning: pairs are {said}" for said in noisy_pairs(schema, touches)),
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
    cells = [*cells_by_forecast(images.schema, _noise(tuple(job.accesses)) or 0.0).values()]
    query = pair_query(images.first_code, cells, images.schema.most_records)
    held = [own.astype(np.float64) for own in query.split(job.mechanism.release(query, paid[0], job.everyone))]
    deviation = job.mechanism.deviation(paid[0], query.sensitivity)
    records = max(1.0, float(np.mean([own.sum() for own in held])))
    numbers = [
        None if own is None else _means(own, at) for own, at in zip(images.condition_numbers, cells, strict=True)
    ]
    shares = joint_shares(pair_shares(held, records, deviation, numbers)).reshape([own.max() + 1 for own in cells])
    for axis, own in enumerate(cells):  # evenly within joined groups
        within = np.expand_dims(np.bincount(own)[own], [place for place in range(len(cells)) if place != axis])
        shares = np.take(shares, own, axis=axis) / within
    return torch.from_numpy(shares.reshape(-1))


def _means(numbers: Floats, cells: Ints) -> Floats:
    """Return the mean number of each cell."""
    return np.bincount(cells, numbers) / np.bincount(cells)


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
