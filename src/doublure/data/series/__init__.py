"""LOAD: time series from rows or arrays, cut at public boundaries, read under a schema; and writing synthetic ones."""

from doublure.data.series.opening import open_series
from doublure.data.series.records import Series, SeriesSet
from doublure.data.series.sources import SeriesSource

__all__ = ["Series", "SeriesSet", "SeriesSource", "open_series"]
