"""``statistics``: a generator fitted to noisy statistics that are released once.

The statistics are, on tables, counts (:mod:`doublure.methods.statistics.tables.method`); on images, mean features
(:mod:`doublure.methods.statistics.images.method`); on time series, counts of each step's values and products of all
steps' and channels' normal scores (:mod:`doublure.methods.statistics.series.method`); on related tables, counts of
units with one of their rows, and with two consecutive ones (:mod:`doublure.methods.statistics.relational.method`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from doublure.access import Access
from doublure.encode.encoder import Encoder
from doublure.guarantee import Guarantee, Kind
from doublure.methods.method import ErrorForecast, Method, Released
from doublure.methods.statistics.images.method import ImageStatistics
from doublure.methods.statistics.of_kind import StatisticsStrategy, overall_noise
from doublure.methods.statistics.relational.method import RelationalStatistics
from doublure.methods.statistics.series.method import TimeSeriesStatistics
from doublure.methods.statistics.settings import (
    ImageStatisticsSettings,
    RelationalStatisticsSettings,
    SeriesStatisticsSettings,
    StatisticsSettings,
    TableStatisticsSettings,
    VisitsStatisticsSettings,
)
from doublure.methods.statistics.tables.method import TableStatistics
from doublure.schema import Schema
from doublure.training.job import Job, State
from doublure.training.owned import OwnerTasks
from doublure.training.settings import MethodSettings, Work, by_kind, lower_settings

if TYPE_CHECKING:
    from doublure.networks.array_generator import AnyGenerator
    from doublure.training.architectures import Critic


class Statistics(Method[StatisticsSettings, Encoder]):
    """Noisy statistics train a generator; see the module.

    Attributes:
        of_kind: The implementation for each kind of data.
    """

    name: ClassVar[str] = "statistics"
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(
        TableStatisticsSettings,
        ImageStatisticsSettings,
        SeriesStatisticsSettings,
        RelationalStatisticsSettings,
        VisitsStatisticsSettings,
    )
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)
    of_kind: ClassVar[Mapping[str, StatisticsStrategy[Any]]] = dict(
        zip(
            settings_type,
            (
                TableStatistics(),
                ImageStatistics(),
                TimeSeriesStatistics(),
                RelationalStatistics(),
                RelationalStatistics(),
            ),
            strict=True,
        )
    )

    @override
    def resolve_defaults(self, schema: Schema, settings: StatisticsSettings) -> StatisticsSettings:
        resolved: StatisticsSettings = self.of_kind[schema.kind].resolve_defaults(schema, settings)
        return resolved

    @override
    def ready(self, schema: Schema, settings: StatisticsSettings) -> None:
        self.of_kind[schema.kind].ready(settings)

    @override
    def decide_noise(
        self, schema: Schema, settings: StatisticsSettings, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> StatisticsSettings:
        noise = partial(overall_noise, learned, epsilon=epsilon, delta=delta)
        decided: StatisticsSettings = self.of_kind[schema.kind].decide_noise(schema, settings, noise)
        return decided

    @override
    def forecast(
        self, planned: Guarantee, settings: StatisticsSettings, touches: tuple[Access, ...], schema: Schema
    ) -> tuple[str, ...]:
        del planned
        return self.of_kind[schema.kind].explained(schema, settings, touches)

    @override
    def shown_together(
        self, schema: Schema, settings: StatisticsSettings, touches: tuple[Access, ...]
    ) -> Mapping[str, tuple[Access, ...]]:
        return self.of_kind[schema.kind].shown_together(schema, settings, touches)

    @override
    def sample_rate(self, schema: Schema, settings: StatisticsSettings) -> float | None:
        return 1.0

    @override
    def accesses(self, schema: Schema, settings: StatisticsSettings, noise_multiplier: float) -> tuple[Access, ...]:
        return self.of_kind[schema.kind].accesses(schema, settings, noise_multiplier)

    @override
    def work(self, schema: Schema, settings: StatisticsSettings) -> Work:
        return self.of_kind[schema.kind].work(schema, settings)

    @override
    def warnings(self, schema: Schema, settings: StatisticsSettings) -> tuple[str, ...]:
        return self.of_kind[schema.kind].warnings(schema, settings)

    @override
    def limits(self, schema: Schema, settings: StatisticsSettings) -> tuple[str, ...]:
        return self.of_kind[schema.kind].limits(schema, settings)

    @override
    def expected_errors(
        self, schema: Schema, settings: StatisticsSettings, touches: tuple[Access, ...]
    ) -> ErrorForecast | None:
        return self.of_kind[schema.kind].expected_errors(schema, settings, touches)

    @override
    def noise_limits(
        self, schema: Schema, settings: StatisticsSettings, touches: tuple[Access, ...], released: Released
    ) -> tuple[str, ...]:
        return self.of_kind[schema.kind].noise_limits(schema, settings, touches, released)

    @override
    def fitted_limits(self, schema: Schema, settings: StatisticsSettings, generator: AnyGenerator) -> tuple[str, ...]:
        return self.of_kind[schema.kind].fitted_limits(schema, settings, generator)

    @override
    def asks_owners(self, schema: Schema, settings: StatisticsSettings) -> bool:
        return self.of_kind[schema.kind].asks_owners(schema, settings)

    @override
    def at_owner(self, encoder: Encoder, settings: StatisticsSettings) -> OwnerTasks:
        return self.of_kind[encoder.schema.kind].at_owner(encoder, settings)

    @override
    def knows_shares(self, schema: Schema) -> bool:
        return True

    @override
    def needs_torch(self, schema: Schema, settings: StatisticsSettings) -> bool:
        return self.of_kind[schema.kind].needs_torch(settings)

    @override
    def sample_noise(self, settings: StatisticsSettings) -> int:
        if isinstance(settings, (ImageStatisticsSettings, SeriesStatisticsSettings)):
            return settings.noise_width
        return super().sample_noise(settings)

    @override
    def noise_source(self, settings: StatisticsSettings) -> str:
        if isinstance(settings, (TableStatisticsSettings, SeriesStatisticsSettings)):
            return settings.noise_source
        return super().noise_source(settings)

    @override
    def rehearsed(self, settings: StatisticsSettings) -> StatisticsSettings:
        return lower_settings(settings, fit_steps=1, batch=2, critic_steps=1, labeller_steps=1, view_images=100)

    @override
    def white_box(self, encoder: Encoder, settings: StatisticsSettings, kept: State) -> Critic | None:
        return self.of_kind[encoder.schema.kind].white_box(encoder, settings, kept)

    @override
    def build(self, encoder: Encoder, settings: StatisticsSettings, seed: int) -> AnyGenerator:
        return self.of_kind[encoder.schema.kind].build(encoder, settings, seed)

    @override
    def train(self, job: Job[StatisticsSettings]) -> AnyGenerator:
        return self.of_kind[job.encoder.schema.kind].train(job, job.settings)


METHOD = Statistics()
