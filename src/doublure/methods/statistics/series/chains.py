"""``statistics`` on series of few values: Markov chains fitted to noisy tables of neighbouring steps.

There are two releases, each with exact discrete Gaussian noise. The first counts every step's values in fine public
bins, and every series' level. The second counts each two neighbouring steps within each level, in groups that follow
from the first, and each step within each value of each attribute. Markov chains are then fitted to the noisy tables
(:mod:`doublure.methods.statistics.series.chain_fit`). The fit can be repeated without cost.
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
"""Arrays of the size of all transitions in a step of the fit: chances, products, and their gradients."""
_FLOPS_A_CHANCE = 1600.0
"""Cost of a transition's chance in a step of the fit, and again of its logit for all attributes' values, in operations
on matrices: elementwise work waits for memory."""
_FLOPS_A_CELL = 300_000.0
"""Cost of exact noise on a cell of a table, some ten microseconds, in the same unit."""


def accesses(schema: SeriesSchema, settings: SeriesStatisticsSettings, noise_multiplier: float) -> tuple[Access, ...]:
    """Return one access a release; together they have the noise of one Gaussian mechanism of this multiplier."""
    releases = zip(
        ("count each step's values and each series' level", "count steps in pairs, and within attributes"),
        _tables(schema),
        (SINGLE_SHARE, 1 - SINGLE_SHARE),
        strict=True,
    )
    return counting(releases, records=schema.most_records, noise_multiplier=noise_multiplier)


def work(schema: SeriesSchema, settings: SeriesStatisticsSettings) -> Work:
    """Return the cost of counting and fitting."""
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
    """Return the numbers of tables of the two releases."""
    channels, attributes, length = len(schema.channels), len(schema.attributes), schema.length
    singles = channels * (length + 1)
    return singles, channels * (length - 1 + attributes * (length + 1)) + channels - 1
