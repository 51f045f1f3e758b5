"""A fact's counts, their noise, and what is read off them, in one call each: as a mechanism puts them together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from doublure import noisy_counts
from doublure.noisy_counts import CandidateGrid
from doublure.private import whole_noise
from doublure.private.queries.facts import count_on_grid


def noisy(counts: npt.ArrayLike, *, epsilon: float, max_records: int) -> Any:
    return whole_noise.laplace(counts, epsilon=epsilon, moved=max_records).values


def noisy_count(units: int, *, epsilon: float) -> int:
    return max(0, int(noisy([units], epsilon=epsilon, max_records=1)[0]))


def any_missing(flags: npt.ArrayLike, *, epsilon: float, max_records: int, beta: float = 0.01) -> bool:
    found = noisy([np.count_nonzero(np.asarray(flags, dtype=bool))], epsilon=epsilon, max_records=max_records)
    return noisy_counts.is_seen(int(found[0]), epsilon=epsilon, max_records=max_records, beta=beta)


def noisy_bounds(
    values: npt.ArrayLike, *, epsilon: float, max_records: int, candidates: npt.ArrayLike | None = None, **decades: Any
) -> tuple[float, float]:
    grid = CandidateGrid.from_decades(**decades) if candidates is None else CandidateGrid.from_points(candidates)
    found = noisy(count_on_grid(np.asarray(values, dtype=np.float64), grid), epsilon=epsilon, max_records=max_records)
    return grid.bounds(found, epsilon=epsilon, max_records=max_records)


def discover_categories(values: npt.ArrayLike, *, epsilon: float, delta: float, max_records: int) -> dict[str, int]:
    counts = pd.Series(np.asarray(values, dtype=object)).dropna().astype(str).value_counts()
    plain = {str(name): int(count) for name, count in counts.items()}
    found = whole_noise.thresholded(plain, epsilon=epsilon, delta=delta, moved=max_records).counts
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def noisy_shares(codes: npt.ArrayLike, size: int, *, epsilon: float, max_records: int) -> Any:
    kept = np.asarray(codes, dtype=np.int64)
    counts = np.bincount(kept[(kept >= 0) & (kept < size)], minlength=size)
    found = noisy(counts, epsilon=epsilon, max_records=max_records)
    return noisy_counts.shares(found, epsilon=epsilon, max_records=max_records)
