"""Evaluation of synthetic time series: distances, classifiers, nearest neighbours, and the data of its plots.

Every figure has two references. *Independent steps* draws each step independently from the real values at that step:
right profiles and values, no course through time. *Real* is the best to hope for: other real series, or models trained
on real ones. All of it is computed on real data: internal.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from pydantic import Field
from typing_extensions import override

from doublure.data.series import Series
from doublure.data.series.clock import clock_texts
from doublure.measures.evaluation import Evaluation
from doublure.measures.holdout import seen_note, split_real
from doublure.measures.registry import add_registered
from doublure.measures.resampling import Resamples
from doublure.measures.scores import Score
from doublure.measures.series import plot_data as drawings
from doublure.measures.series.classifiers import LAGS, MOST_TRAINING, ROUNDS, classifier_scores
from doublure.measures.series.figures import ChannelFigure, channel_figures, distances
from doublure.measures.series.influence import resample_distances
from doublure.measures.series.nearest_neighbours import MOST_SEARCHED, QUERIES, NearestSeries, nearest_scores
from doublure.measures.series.plot_data import (
    ChannelCurve,
    ChannelHistogram,
    ChannelProfile,
    GroupFigures,
    SeriesPair,
    ValueProfile,
)
from doublure.measures.series.statistics import series_statistics
from doublure.measures.series.verdict import beaten_scores, verdict
from doublure.results import Verdict, versions
from doublure.schema.series import SeriesSchema
from doublure.support.progress import Progress, SilentProgress

MOST_SERIES = 20_000
"""Default limit of synthetic series drawn."""


class SeriesEvaluation(Evaluation):
    """All measurements of a set of series. Computed on real data: internal.

    Attributes:
        scores: The headline figures: distances, then classifiers, then neighbours.
        by_channel: The figures that are means over channels, of each channel.
        groups: Level and correlation of channels within each value of an attribute.
        classifiers_skipped: The reason where there are no classifiers.
        clock: The time of day at each step; null where a series is not one day.
        profiles: Each channel's mean and spread at each step.
        by_value: Each channel's mean for each value of an attribute.
        curves: Autocorrelation, spectrum, and distance by step, of each channel.
        histograms: Level, peak, step of the peak, and largest change, of each channel.
        pairs: Synthetic series beside the nearest real ones, for the page alone. Private.
    """

    kind: ClassVar[str] = "series"

    scores: tuple[Score, ...]
    by_channel: tuple[ChannelFigure, ...] = ()
    groups: tuple[GroupFigures, ...] = ()
    classifiers_skipped: str | None
    clock: tuple[str, ...] | None
    profiles: tuple[ChannelProfile, ...]
    by_value: tuple[ValueProfile, ...]
    curves: tuple[ChannelCurve, ...]
    histograms: tuple[ChannelHistogram, ...]
    pairs: tuple[SeriesPair, ...] = Field(default=(), exclude=True, repr=False)

    @property
    @override
    def verdict(self) -> Verdict:
        return verdict(self.scores, self.by_channel, self.groups, kept_aside=self.rows.kept_aside)

    @property
    @override
    def beaten(self) -> frozenset[str]:
        return frozenset(score.key for score in beaten_scores(self.scores))

    @override
    def plus(self, added: tuple[Score, ...]) -> Self:
        return super().plus(added).model_copy(update={"scores": (*self.scores, *added)})


def evaluate_series(
    schema: SeriesSchema,
    synthetic: Series,
    train: Series,
    holdout: Series | None = None,
    *,
    unit: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    classifiers: bool = True,
    nearest: bool = True,
    seed: int = 0,
    progress: Progress | None = None,
    resamples: Resamples | None = None,
) -> SeriesEvaluation:
    """Compare synthetic series with real ones.

    Args:
        schema: Their channels and attributes.
        synthetic: Synthetic series.
        train: The real series the synthesizer was fitted on.
        holdout: Real series kept aside. Without them a fixed quarter of ``train`` takes their place (and leaves
            ``train``); the notes say so, as the fit has seen them.
        unit: ``(N,)`` the unit of each series of ``train``, so that a unit's series stay together in the split.
        classifiers: Whether classifiers are trained.
        nearest: Whether nearest real series are searched.
        seed: Fixes every random choice made here.
        progress: Receives progress events.
        resamples: Receives resampled figures, for a comparison of several runs; its own if not given.

    Raises:
        DataError: There are too few series.
    """
    rng = np.random.default_rng(seed)
    both = split_real(train, holdout, unit, rng, field="the real set", records="series")
    real, test = both.train, both.test
    sets = {"value": synthetic, "baseline": independent_steps(real, len(synthetic), rng), "real": real, "test": test}
    statistics = {name: series_statistics(schema, each) for name, each in sets.items()}
    clock = clock_texts(schema.series, schema.length)
    listener, kept = progress or SilentProgress(), resamples or Resamples(seed=seed)
    by_channel = channel_figures(schema, statistics)
    apart = distances(schema, statistics, by_channel)
    resample_distances(apart, statistics, kept)
    listener.stage("train models")
    trained, skipped = (
        classifier_scores(schema, sets, seed, kept) if classifiers else ((), "No classifier was asked for.")
    )
    listener.stage("search nearest series")
    near: tuple[tuple[Score, ...], NearestSeries | None] = nearest_scores(sets, seed) if nearest else ((), None)
    found = SeriesEvaluation(
        seed=seed,
        rows=both.rows(len(synthetic)),
        scores=tuple(kept.sure(score) for score in (*apart, *trained, *near[0])),
        by_channel=by_channel,
        groups=drawings.group_figures(schema, statistics),
        classifiers_skipped=skipped,
        clock=None if clock is None else tuple(clock),
        profiles=drawings.profiles(schema, real, synthetic),
        by_value=drawings.value_profiles(schema, statistics),
        curves=drawings.curves(schema, statistics),
        histograms=drawings.histograms(schema, statistics),
        pairs=drawings.pairs(real, synthetic, near[1]),
        notes=_notes(both.kept_aside, classifiers=bool(trained), nearest=near[1] is not None),
        versions=versions(),
    )
    return add_registered(found, schema, sets)


def independent_steps(real: Series, n: int, rng: np.random.Generator) -> Series:
    """Return the baseline: attributes with real shares, and each step of each channel a real value at that step."""
    drawn = rng.choice(len(real), n)
    rows = rng.integers(0, len(real), (n, real.length, len(real.channels)))
    steps, channels = np.arange(real.length)[:, None], np.arange(len(real.channels))
    attributes = real.attributes.iloc[drawn].reset_index(drop=True)
    return Series(values=real.values[rows, steps, channels], channels=real.channels, attributes=attributes)


def _notes(kept_aside: bool, *, classifiers: bool, nearest: bool) -> tuple[str, ...]:
    notes = [
        "Independent steps draws each step on its own from the real values at that step: right profiles, no "
        "correlation in time.",
        "All series of a unit are compared, not only those that a fit may use.",
    ]
    if classifiers:
        notes.append(
            f"Classifiers and forecasts are boosted trees of {ROUNDS} rounds, fixed beforehand, on at most "
            f"{MOST_TRAINING:,} series. Two-sample AUC: trained on half of both sets, tested on the other halves. "
            f"Forecast: a step from the {LAGS} before it, tested on the real test series."
        )
    if nearest:
        notes.append(
            f"Nearest series: {QUERIES} of each set, searched among at most {MOST_SEARCHED:,} real ones by dynamic "
            "time warping within a tenth of the length."
        )
    return (*notes, *seen_note(kept_aside, "series", "units"))
