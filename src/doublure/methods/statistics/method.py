"""``statistics``: what is released once, with noise, trains a generator; no record is looked at twice.

On tables, counts (:mod:`doublure.methods.statistics.tables.method`); on images, mean features
(:mod:`doublure.methods.statistics.images.method`); on time series, counts of each step's values, and products of all
steps' and channels' normal scores (:mod:`doublure.methods.statistics.series.method`); on related tables, counts of
units with one of their rows, and with two that follow one another
(:mod:`doublure.methods.statistics.relational.method`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from doublure.access import Access, events
from doublure.encode.encoder import Encoder
from doublure.guarantee import Guarantee, Kind
from doublure.methods.method import Method
from doublure.methods.statistics.images.method import ImageStatistics
from doublure.methods.statistics.of_kind import StatisticsOfKind
from doublure.methods.statistics.relational.method import RelationalStatistics
from doublure.methods.statistics.series.method import SeriesStatistics
from doublure.methods.statistics.settings import (
    ImageStatisticsSettings,
    RelationalStatisticsSettings,
    SeriesStatisticsSettings,
    StatisticsSettings,
    TableStatisticsSettings,
)
from doublure.methods.statistics.tables.method import TableStatistics
from doublure.private.accounting import Event, GaussianEvent, calibrate
from doublure.schema import Schema
from doublure.training.job import Job, State
from doublure.training.owned import AtOwner
from doublure.training.settings import MethodSettings, Work, by_kind, lowered

if TYPE_CHECKING:
    from doublure.networks.array_generator import AnyGenerator
    from doublure.training.architectures import Critic


class Statistics(Method[StatisticsSettings, Encoder]):
    """Noisy statistics train a generator; see the module.

    Attributes:
        of_kind: What does it, for each kind of data.
    """

    name: ClassVar[str] = "statistics"
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(
        TableStatisticsSettings, ImageStatisticsSettings, SeriesStatisticsSettings, RelationalStatisticsSettings
    )
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)
    of_kind: ClassVar[Mapping[str, StatisticsOfKind[Any]]] = dict(
        zip(
            settings_type,
            (TableStatistics(), ImageStatistics(), SeriesStatistics(), RelationalStatistics()),
            strict=True,
        )
    )

    def resolve_defaults(self, schema: Schema, settings: StatisticsSettings) -> StatisticsSettings:
        """Decide what is left to decide, from declared facts."""
        resolved: StatisticsSettings = self.of_kind[schema.kind].resolve_defaults(schema, settings)
        return resolved

    def decide_noise(
        self, schema: Schema, settings: StatisticsSettings, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> StatisticsSettings:
        """Decide what depends on how much noise there will be: all releases together are one Gaussian."""

        def noise_multiplier() -> float:
            def together(noise: float) -> list[Event]:
                return events((*learned, Access(purpose="all", event=GaussianEvent(noise_multiplier=noise))))

            return calibrate(together, epsilon=epsilon, delta=delta, accountant="rdp")

        decided: StatisticsSettings = self.of_kind[schema.kind].decide_noise(schema, settings, noise_multiplier)
        return decided

    def forecast(
        self, planned: Guarantee, settings: StatisticsSettings, touches: tuple[Access, ...], schema: Schema
    ) -> tuple[str, ...]:
        """Return what a plan says beside its prices."""
        del planned, touches
        return self.of_kind[schema.kind].explained(schema, settings)

    def sample_rate(self, schema: Schema, settings: StatisticsSettings) -> float | None:
        """Every record is looked at."""
        return 1.0

    def accesses(self, schema: Schema, settings: StatisticsSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Return the releases."""
        return self.of_kind[schema.kind].accesses(schema, settings, noise_multiplier)

    def work(self, schema: Schema, settings: StatisticsSettings) -> Work:
        """Return what the releases and the training compute and hold."""
        return self.of_kind[schema.kind].work(schema, settings)

    def warnings(self, schema: Schema, settings: StatisticsSettings) -> tuple[str, ...]:
        """Say when there are too few units for statistics to be seen through noise."""
        return self.of_kind[schema.kind].warnings(schema, settings)

    def asks_owners(self, schema: Schema, settings: StatisticsSettings) -> bool:
        """Whether all releases are sums that owners can answer for."""
        return self.of_kind[schema.kind].asks_owners(schema, settings)

    def at_owner(self, encoder: Encoder, settings: StatisticsSettings) -> AtOwner:
        """Return what an owner computes beside counts."""
        return self.of_kind[encoder.schema.kind].at_owner(encoder, settings)

    def knows_shares(self, schema: Schema) -> bool:
        """The counts or sums that are released say how frequent conditions are."""
        return True

    def needs_torch(self, schema: Schema, settings: StatisticsSettings) -> bool:
        """Whether training computes with torch: not where it counts cells of tables."""
        return self.of_kind[schema.kind].needs_torch(settings)

    def sample_noise(self, settings: StatisticsSettings) -> int:
        """Return how many numbers of noise a sample takes for a record."""
        if isinstance(settings, (ImageStatisticsSettings, SeriesStatisticsSettings)):
            return settings.noise_width
        return super().sample_noise(settings)

    def noise_source(self, settings: StatisticsSettings) -> str:
        """Return what counts are noised from, where there are counts."""
        if isinstance(settings, (TableStatisticsSettings, SeriesStatisticsSettings)):
            return settings.noise_source
        return super().noise_source(settings)

    def rehearsed(self, settings: StatisticsSettings) -> StatisticsSettings:
        """Return the settings with one step in each stage."""
        return lowered(settings, fit_steps=1, batch=2, critic_steps=1, labeller_steps=1, view_images=100)

    def white_box(self, encoder: Encoder, settings: StatisticsSettings, kept: State) -> Critic | None:
        """Return the critic, where one refines what was counted."""
        return self.of_kind[encoder.schema.kind].white_box(encoder, settings, kept)

    def build(self, encoder: Encoder, settings: StatisticsSettings, seed: int) -> AnyGenerator:
        """Return an untrained generator."""
        return self.of_kind[encoder.schema.kind].build(encoder, settings, seed)

    def train(self, job: Job[StatisticsSettings]) -> AnyGenerator:
        """Make the releases, then train."""
        return self.of_kind[job.encoder.schema.kind].train(job, job.settings)


METHOD = Statistics()
