"""``statistics`` on time series: a copula of all channels and steps, or chains for channels of few values.

A copula (:mod:`doublure.methods.statistics.series.copula_fit`) is fitted to each step's values and to products of
normal scores; chains (:mod:`doublure.methods.statistics.series.chains`) to neighbouring steps of each channel. Both
make each release once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from doublure.access import Access
from doublure.errors import SettingError
from doublure.methods.statistics.of_kind import StatisticsStrategy, counted_events
from doublure.methods.statistics.series import chains, copula_plan
from doublure.methods.statistics.settings import SeriesStatisticsSettings
from doublure.networks.sizes import chain_noise
from doublure.schema import Schema
from doublure.schema.series import SeriesSchema
from doublure.training.job import Job
from doublure.training.settings import Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

S = TypeVar("S", bound=SeriesStatisticsSettings)


class TimeSeriesStatistics(StatisticsStrategy[S]):
    """``statistics`` on time series; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: S) -> S:
        schema = SeriesSchema.of(schema)
        model = settings.model
        if model is None:
            most = max(copula_plan.count_values(schema, name) for name in schema.channels)
            model = "chains" if most <= copula_plan.FEW_VALUES and schema.ends_at is None else "copula"
        if model == "chains" and schema.ends_at is not None:
            remedy = "leave it out, or take the attribute with from_length out"
            raise SettingError("chains take no series of different lengths", field="model", remedy=remedy)
        if settings.steepest and (model == "chains" or settings.candidates == 1):
            raise SettingError(
                f"chooses nothing: {'chains count' if model == 'chains' else 'candidates=1 counts'} no whole series",
                field="steepest",
                remedy="leave it out, or set model=copula"
                if model == "chains"
                else "leave it out, or raise candidates",
            )
        if settings.shared_gaps and model == "chains":
            raise SettingError(
                "chains draw gaps of each channel apart",
                field="shared_gaps",
                remedy="leave it out, or set model=copula",
            )
        channels = len(schema.channels)
        missing = sum(schema.may_have_gaps(name) for name in schema.channels)
        declared = sum(schema.may_be_missing(name) for name in schema.channels)
        if settings.candidates is None and model == "copula":
            settings = settings.model_copy(update={"candidates": copula_plan.CANDIDATES})
        width = copula_plan.noise_numbers(schema, settings, missing=missing)
        former = copula_plan.noise_numbers(schema, settings, missing=declared)  # earlier versions: declared gaps only
        if model == "chains":
            width = former = chain_noise(channels, schema.length)
        if settings.noise_width not in (0, width, former):
            raise SettingError(f"is {width} for these series", field="noise_width", remedy="leave it out")
        unknown = [name for name in settings.grouped or () if name not in schema.attributes]
        if unknown:
            raise SettingError("names no attribute", field="grouped", remedy="list attributes of the schema")
        return settings.model_copy(update={"noise_width": settings.noise_width or width, "model": model})

    @override
    def decide_noise(self, schema: Schema, settings: S, noise_multiplier: Callable[[], float]) -> S:
        if settings.model == "chains":
            return settings
        if settings.cut_noise is not None:
            raise SettingError("is filled in by the plan", field="cut_noise", remedy="leave it out")
        return copula_plan.decide(SeriesSchema.of(schema), settings, noise_multiplier())

    @override
    def accesses(self, schema: Schema, settings: S, noise_multiplier: float) -> tuple[Access, ...]:
        of_model = chains.accesses if settings.model == "chains" else copula_plan.accesses
        return of_model(SeriesSchema.of(schema), settings, noise_multiplier)

    @override
    def work(self, schema: Schema, settings: S) -> Work:
        return (chains.work if settings.model == "chains" else copula_plan.work)(SeriesSchema.of(schema), settings)

    @override
    def warnings(self, schema: Schema, settings: S) -> tuple[str, ...]:
        if settings.model == "chains":
            return super().warnings(schema, settings)
        return copula_plan.warnings(SeriesSchema.of(schema), settings)

    @override
    def explained(self, schema: Schema, settings: S, touches: tuple[Access, ...]) -> tuple[str, ...]:
        return () if settings.model == "chains" else copula_plan.explain(SeriesSchema.of(schema), settings, touches)

    @override
    def build(self, encoder: Encoder, settings: S, seed: int) -> nn.Module:
        from doublure.methods.statistics.series import copula_fit, transition_tables
        from doublure.networks.shares import with_shares

        if settings.model != "chains":
            return copula_fit.with_attributes(copula_fit.build(encoder, settings), encoder, settings)
        return with_shares(transition_tables.build(encoder, settings), encoder.condition_sizes.values())

    @override
    def train(self, job: Job, settings: S) -> nn.Module:
        from doublure.methods.statistics.series import copula_fit, transition_tables

        if settings.model == "chains":
            return transition_tables.fit(job, settings, counted_events(job))
        return copula_fit.fit(job, settings)
