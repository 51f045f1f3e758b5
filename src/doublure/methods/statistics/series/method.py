"""``statistics`` on time series: noisy tables of neighbouring steps, once, teach chains.

Two releases, each with exact discrete Gaussian noise. First every step's values in fine public bins and every series'
level; then each two neighbouring steps in groups that follow from the first, within each level, and each step within
each value of each attribute. Markov chains are then fitted to the noisy tables
(:mod:`doublure.methods.statistics.series.chain_fit`). No series is looked at twice, and the fit can be repeated for
nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from doublure.access import Access
from doublure.errors import SettingError
from doublure.methods.method import Job, Work
from doublure.methods.statistics.settings import StatisticsSettings, counted_events, counting
from doublure.networks.sizes import chain_noise
from doublure.schema import Schema
from doublure.schema.series import SeriesSchema

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_BYTES = 4
_STATES = 2
_GUESSED_VALUES = 10
MOST_GROUPS = 128
"""The most combinations of attributes' values that a fit follows; of more, it follows a sample."""
_HELD = 8
"""Arrays of the size of all transitions that a step of the fit holds: chances, products, and their gradients."""
_FLOPS_A_CHANCE = 1600.0
"""What a step of the fit does with a chance of a transition, and as much again with its logit for all attributes'
values together: element by element it waits for memory, about as long as for so many operations on matrices."""
_FLOPS_A_CELL = 300_000.0
"""Likewise, what exact noise on a cell of a table takes: some ten microseconds."""


class SeriesStatisticsSettings(StatisticsSettings):
    """The settings of ``statistics`` on time series.

    Attributes:
        single_share: The share of the budget for each step's fine bins and the levels.
        groups: Into how many groups a step's values are joined, at most; zero and missing are beside them.
        levels: Into how many groups the series' levels are joined, at most.
        bins: The most fine bins a channel is cut into.
        curve: Bins of channels that cannot be negative are of equal width in this power of the share of the bounds.
        prior: How strongly a step is held to all steps, and a value of an attribute to all values.
        persistence: The correlation from one step to the next of where a value stands within its group.
        fit_steps: Steps of each chain's fit.
        noise_width: Numbers that a series is made of, from its length.
        numerics: Channels are always counted in public bins.
    """

    single_share: float = Field(default=0.1, ge=0.01, le=0.99)
    groups: int = Field(default=18, ge=2, le=100)
    levels: int = Field(default=8, ge=1, le=64)
    bins: int = Field(default=256, ge=2, le=1000)
    curve: float = Field(default=1 / 3, gt=0, le=1)
    prior: float = Field(default=1.0, ge=0, le=1e6)
    persistence: float = Field(default=0.9, ge=0, lt=1)
    fit_steps: int = Field(default=300, ge=1, le=1_000_000)
    noise_width: int = Field(default=0, ge=0)
    numerics: Literal["bins"] = "bins"

    @property
    def noise_source(self) -> str:
        """The noise is exact."""
        return "opendp discrete Gaussian"

    def settled(self, schema: Schema) -> Self:
        """Decide how much noise a series is made of, from its public length."""
        width = chain_noise(len(_series(schema).channels), _series(schema).length)
        if self.noise_width not in (0, width):
            raise SettingError(f"is {width} for these series", field="noise_width", remedy="leave it out")
        return self.model_copy(update={"noise_width": width})

    def accesses(self, schema: Schema, noise_multiplier: float) -> tuple[Access, ...]:
        """One access a release; their noise together is that of one Gaussian of this multiplier."""
        releases = zip(
            ("count each step's values and each series' level", "count steps in pairs, and within attributes"),
            _tables(_series(schema)),
            (self.single_share, 1 - self.single_share),
            strict=True,
        )
        return counting(releases, records=schema.unit.max_records, noise_multiplier=noise_multiplier)

    def work(self, schema: Schema) -> Work:
        """Return what counting and fitting compute and hold."""
        schema = _series(schema)
        groups = self.groups + _STATES
        values = [len(one.domain) or _GUESSED_VALUES for one in schema.attributes.values()]
        rows, channels = min(MOST_GROUPS, math.prod(values)), len(schema.channels)
        logits = self.levels * schema.length * groups**2
        cells = channels * schema.length * (self.bins + self.levels * groups**2 + sum(values) * groups)
        flops = _FLOPS_A_CHANCE * self.fit_steps * channels * (1 + rows) * logits + _FLOPS_A_CELL * cells
        records = schema.public_units * schema.unit.max_records
        held = 10 * records * channels * (schema.length + 1)
        kept = channels * schema.length * (3 * self.levels * groups**2 + 2 * self.bins)
        return Work(
            flops=flops, steps=len(_tables(schema)), memory_bytes=_BYTES * (held + kept + _HELD * rows * logits)
        )

    def build(self, encoder: Encoder, seed: int) -> nn.Module:
        """Return an untaught generator."""
        from doublure.methods.statistics.series.transition_tables import untaught

        return untaught(encoder, self)

    def train(self, job: Job) -> nn.Module:
        """Release the tables, then fit."""
        from doublure.methods.statistics.series.transition_tables import taught

        return taught(job, self, counted_events(job))


def _tables(schema: SeriesSchema) -> tuple[int, int]:
    """Return how many tables the two releases have."""
    channels, attributes, length = len(schema.channels), len(schema.attributes), schema.length
    singles = channels * (length + 1)
    return singles, channels * (length - 1 + attributes * (length + 1)) + channels - 1


def _series(schema: Schema) -> SeriesSchema:
    if not isinstance(schema, SeriesSchema):
        raise TypeError("settings for series need a schema of series")
    return schema
