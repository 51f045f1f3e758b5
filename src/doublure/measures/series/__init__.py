"""Measures of time series: distances, classifiers, nearest neighbours; computed on real data, internal."""

from doublure.measures.series.evaluation import (
    MOST_SERIES,
    SeriesEvaluation,
    evaluate_series,
    independent_steps,
)

__all__ = ["MOST_SERIES", "SeriesEvaluation", "evaluate_series", "independent_steps"]
