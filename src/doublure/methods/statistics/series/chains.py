"""``statistics`` on series of few values: noisy tables of neighbouring steps, once, train chains.

Two releases, each with exact discrete Gaussian noise. First every step's values in fine public bins and every series'
level; then each two neighbouring steps in groups that follow from the first, within each level, and each step within
each value of each attribute. Markov chains are then fitted to the noisy tables
(:mod:`doublure.methods.statistics.series.chain_fit`). No series is looked at twice, and the fit can be repeated for
nothing.
"""

from __future__ import annotations

import math

from doublure.access import Access
from doublure.encode.attribute_groups import groups_of
from doublure.methods.statistics.of_kind import counting
from doublure.methods.statistics.settings import MOST_GROUPS, SINGLE_SHARE, SeriesStatisticsSettings
from doublure.schema.series import SeriesSchema
from doublure.training.settings import Work

_BYTES = 4
_STATES = 2
_HELD = 8
"""Arrays of the size of all transitions that a step of the fit holds: chances, products, and their gradients."""
_FLOPS_A_CHANCE = 1600.0
"""What a step of the fit does with a chance of a transition, and as much again with its logit for all attributes'
values together: element by element it waits for memory, about as long as for so many operations on matrices."""
_FLOPS_A_CELL = 300_000.0
"""Likewise, what exact noise on a cell of a table takes: some ten microseconds."""


def accesses(schema: SeriesSchema, settings: SeriesStatisticsSettings, noise_multiplier: float) -> tuple[Access, ...]:
    """Return one access a release; their noise together is that of one Gaussian of this multiplier."""
    releases = zip(
        ("count each step's values and each series' level", "count steps in pairs, and within attributes"),
        _tables(schema),
        (SINGLE_SHARE, 1 - SINGLE_SHARE),
        strict=True,
    )
    return counting(releases, records=schema.unit.max_records, noise_multiplier=noise_multiplier)


def work(schema: SeriesSchema, settings: SeriesStatisticsSettings) -> Work:
    """Return what counting and fitting compute and hold."""
    groups = settings.groups + _STATES
    values = [groups_of(one) for one in schema.attributes.values()]
    rows, channels = min(MOST_GROUPS, math.prod(values)), len(schema.channels)
    logits = settings.levels * schema.length * groups**2
    cells = channels * schema.length * (settings.bins + settings.levels * groups**2 + sum(values) * groups)
    flops = _FLOPS_A_CHANCE * settings.fit_steps * channels * (1 + rows) * logits + _FLOPS_A_CELL * cells
    records = schema.public_units * schema.unit.max_records
    held = 10 * records * channels * (schema.length + 1)
    kept = channels * schema.length * (3 * settings.levels * groups**2 + 2 * settings.bins)
    return Work(flops=flops, steps=len(_tables(schema)), memory_bytes=_BYTES * (held + kept + _HELD * rows * logits))


def _tables(schema: SeriesSchema) -> tuple[int, int]:
    """Return how many tables the two releases have."""
    channels, attributes, length = len(schema.channels), len(schema.attributes), schema.length
    singles = channels * (length + 1)
    return singles, channels * (length - 1 + attributes * (length + 1)) + channels - 1
