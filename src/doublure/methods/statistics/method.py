"""``statistics``: what is released once, with noise, teaches a generator; no record is looked at twice.

On tables, counts (:mod:`doublure.methods.statistics.tables.method`); on images, mean features
(:mod:`doublure.methods.statistics.images.method`); on time series, counts of neighbouring steps
(:mod:`doublure.methods.statistics.series.method`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from doublure.access import Access
from doublure.guarantee import Kind
from doublure.methods.method import Job, Method, MethodSettings, Work
from doublure.methods.statistics.images.method import ImageStatisticsSettings
from doublure.methods.statistics.series.method import SeriesStatisticsSettings
from doublure.methods.statistics.settings import StatisticsSettings
from doublure.methods.statistics.tables.method import TableStatisticsSettings
from doublure.schema import Schema

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder


class Statistics(Method):
    """Noisy statistics teach a generator; see the module."""

    name: ClassVar[str] = "statistics"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images", "series"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = {
        "table": TableStatisticsSettings,
        "images": ImageStatisticsSettings,
        "series": SeriesStatisticsSettings,
    }

    def settle(self, schema: Schema, settings: MethodSettings) -> StatisticsSettings:
        """Decide what is left to decide, from declared facts."""
        return _own(settings).settled(schema)

    def sample_rate(self, schema: Schema, settings: MethodSettings) -> float | None:
        """Every record is looked at."""
        return 1.0

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Return the releases."""
        return _own(settings).accesses(schema, noise_multiplier)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what the releases and the teaching compute and hold."""
        return _own(settings).work(schema)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say when there are too few units for statistics to be seen through noise."""
        return _own(settings).warnings(schema)

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many numbers of noise a sample takes for a record."""
        own = _own(settings)
        if isinstance(own, (ImageStatisticsSettings, SeriesStatisticsSettings)):
            return own.noise_width
        return super().sample_noise(settings)

    def noise_source(self, settings: MethodSettings) -> str:
        """Return what counts are noised from, where there are counts."""
        own = _own(settings)
        if isinstance(own, (TableStatisticsSettings, SeriesStatisticsSettings)):
            return own.noise_source
        return super().noise_source(settings)

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untaught generator."""
        return _own(settings).build(encoder, seed)

    def train(self, job: Job) -> nn.Module:
        """Make the releases, then teach."""
        return _own(job.settings).train(job)


def _own(settings: MethodSettings) -> StatisticsSettings:
    if not isinstance(settings, StatisticsSettings):
        raise TypeError("statistics was given another method's settings")
    return settings


METHOD = Statistics()
