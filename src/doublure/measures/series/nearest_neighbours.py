"""Nearest real series under dynamic time warping (Frigerio et al. 2019, §6.2), for an internal sheet alone.

Dynamic time warping lets one series run ahead of the other for a while, here for a tenth of its length (Sakoe & Chiba's
band), and sums squared distances along the best such path. The distances are square roots of that sum per step, in
standard deviations of each real channel. Gaps are interpolated linearly; series longer than 96 steps are averaged down.

Nothing here is private: the sheet shows real series beside synthetic ones, and is never released.

References:
    Sakoe & Chiba (1978), Dynamic programming algorithm optimization for spoken word recognition.
    Keogh & Ratanamahatana (2005), Exact indexing of dynamic time warping: the bound that skips most pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from doublure.data.series import Series
from doublure.encode.grids import Floats
from doublure.intervals import wilson
from doublure.measures.classification import Labels
from doublure.measures.scores import Score
from doublure.measures.series.classifiers import shorten
from doublure.measures.series.figures import PLACES, make_score

QUERIES = 100
"""Number of series of a set whose neighbours are searched."""

MOST_SEARCHED = 5_000
"""Most real series searched; of more, a uniform sample."""

TOO_NEAR = 0.05
"""Share of other real series whose distance counts as too near."""

_LONGEST = 96
_BAND = 0.1
_ROUND = 32


@dataclass(frozen=True, kw_only=True)
class NearestSeries:
    """Neighbours found for one set.

    Attributes:
        rows: ``(Q,)`` the indices of the queried series.
        found: ``(Q,)`` the nearest real series of each.
        distances: ``(Q,)`` the distance to it.
    """

    rows: Labels
    found: Labels
    distances: Floats


def nearest_scores(sets: Mapping[str, Series], seed: int) -> tuple[tuple[Score, ...], NearestSeries | None]:
    """Return the scores of nearness to the real set, and the neighbours of the synthetic series.

    Args:
        sets: ``value``, ``baseline``, ``test``, and ``real``, which is searched for neighbours.
        seed: Fixes the queried and the searched series.
    """
    if min(len(each) for each in sets.values()) < 1:
        return (), None
    rng = np.random.default_rng([seed, 13])
    spread = _spread(sets["real"])
    searched = _drawn(len(sets["real"]), MOST_SEARCHED, rng)
    real = _plain(sets["real"].take(searched), spread)
    found = {}
    for role, place in PLACES.items():
        rows = _drawn(len(sets[place]), QUERIES, rng)
        nearest, distances = neighbours(_plain(sets[place].take(rows), spread), real)
        found[role] = NearestSeries(rows=rows, found=searched[nearest], distances=distances)
    figures = {role: float(np.median(each.distances)) for role, each in found.items()}
    limit = float(np.quantile(found["real"].distances, TOO_NEAR))
    closer = {role: each.distances < limit for role, each in found.items()}
    near = {role: float(each.mean()) for role, each in closer.items()}
    interval = wilson(int(closer["value"].sum()), len(closer["value"]))
    median = (
        "The median distance to the nearest real series (dynamic time warping, in standard deviations). Much below the "
        "real figure is copying."
    )
    meaning = "The share of series that stand nearer to a real one than 19 in 20 other real series do."
    scores = (
        make_score("nearest", "Nearest real series", "near", (0.0, 1e6), figures, median),
        make_score("too_near", "Too near", "near", (0.0, 1.0), near, meaning, interval),
    )
    return scores, found["value"]


def neighbours(queries: Floats, series: Floats) -> tuple[Labels, Floats]:
    """Return the nearest series of each query, exactly, and their distances.

    Args:
        queries: ``(Q, length, channels)``, no gaps.
        series: ``(N, length, channels)``, no gaps.
    """
    length = queries.shape[1]
    band = max(1, round(_BAND * length))
    bounds = np.stack([_bound(query, series, band) for query in queries])
    order = np.argsort(bounds, axis=1, kind="stable")
    best, found = np.full(len(queries), np.inf), np.zeros(len(queries), dtype=np.int64)
    for first in range(0, len(series), _ROUND):
        open_ = np.flatnonzero(bounds[np.arange(len(queries)), order[:, first]] < best)
        if not len(open_):
            break
        tried = order[open_, first : first + _ROUND]
        costs = warp_distance(np.repeat(queries[open_], tried.shape[1], axis=0), series[tried.reshape(-1)], band)
        costs = costs.reshape(tried.shape)
        place = costs.argmin(axis=1)
        cost = costs[np.arange(len(open_)), place]
        better = cost < best[open_]
        best[open_[better]] = cost[better]
        found[open_[better]] = tried[better, place[better]]
    return found, np.sqrt(best / length)


def warp_distance(first: Floats, second: Floats, band: int) -> Floats:
    """Return the sum of squared distances along the best path, pair by pair, ``(B,)``.

    Args:
        first: ``(B, length, channels)``.
        second: ``(B, length, channels)``.
        band: Most steps that one series may run ahead of the other.
    """
    pairs, length = first.shape[:2]
    one, other = (np.ascontiguousarray(each.transpose(1, 2, 0)) for each in (first, second))
    # before[at], row[at]: the cheapest path that aligns the first steps of one series with ``at`` steps of the other.
    before = np.full((length + 1, pairs), np.inf)
    before[0] = 0.0
    for step in range(1, length + 1):
        row = np.full((length + 1, pairs), np.inf)
        low, high = max(1, step - band), min(length, step + band)
        costs = ((one[step - 1] - other[low - 1 : high]) ** 2).sum(axis=1)
        reached = np.minimum(before[low : high + 1], before[low - 1 : high])
        for at in range(low, high + 1):
            np.minimum(reached[at - low], row[at - 1], out=row[at])
            row[at] += costs[at - low]
        before = row
    reached_end: Floats = before[length]
    return reached_end


def _bound(query: Floats, series: Floats, band: int) -> Floats:
    """Return Keogh's lower bound on the warped distance of a query from each series, ``(N,)``."""
    windows = [query[max(0, step - band) : step + band + 1] for step in range(len(query))]
    low, high = (np.stack([end(window, axis=0) for window in windows]) for end in (np.min, np.max))
    beyond = np.maximum(series - high, 0.0) + np.maximum(low - series, 0.0)
    bound: Floats = (beyond**2).sum(axis=(1, 2))
    return bound


def _drawn(n: int, most: int, rng: np.random.Generator) -> Labels:
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def _spread(real: Series) -> Floats:
    """Return each channel's standard deviation, 1 for a constant one."""
    found = []
    for name in real.channels:
        values = real.channel(name)[~np.isnan(real.channel(name))]
        found.append(float(values.std()) if len(values) else 0.0)
    spread = np.array(found)
    return np.where(spread > 0, spread, 1.0)


def _plain(series: Series, spread: Floats) -> Floats:
    """Return series without gaps, of at most ``_LONGEST`` steps, in standard deviations."""
    values = shorten(series.values, _LONGEST) / spread
    steps = np.arange(values.shape[1])
    for row, channel in np.argwhere(np.isnan(values).any(axis=1)):
        own = values[row, :, channel]
        known = ~np.isnan(own)
        values[row, :, channel] = np.interp(steps, steps[known], own[known]) if known.any() else 0.0
    return values
