"""A Markov chain of missing steps from noisy counts of pairs of steps, by post-processing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.methods.statistics.series.marginal_tables import shrink

Floats: TypeAlias = npt.NDArray[np.float64]

_MOST = 1 - 1e-6


def gap_chances(counted: Floats, *, series: float | Floats, deviation: float) -> tuple[Floats, Floats]:
    """Return a Markov chain of missing steps.

    The chance that a gap goes on is the same at all steps; the share of missing cells is each step's own, shrunk
    towards the mean. The chance that a gap begins follows from both.

    Args:
        counted: ``(steps - 1, 2, 2)`` noisy counts: whether a step is missing, whether the next one is.
        series: Number of series, or ``(steps - 1,)`` number of those that reach the second step of each pair.
        deviation: Standard deviation of a count's noise.

    Returns:
        ``(steps, 2)`` the chance that a step is missing after one with a value, and after a missing one; and
        ``(steps,)`` the share of series in which each step is missing.
    """
    here, there = counted[:, 1].sum(1), counted[:, :, 1].sum(1)
    here, there = here / series, there / series
    missing = np.concatenate([here[:1], (here[1:] + there[:-1]) / 2, there[-1:]])
    mean = float(missing.mean())
    noise = float(np.mean(np.square(deviation / np.asarray(series))))
    missing = np.clip(mean + shrink(missing - mean, 2 * noise), 0, _MOST)
    seen = counted[:, 1].sum()
    noise = deviation * np.sqrt(2 * len(counted))
    goes_on = float(np.clip(counted[:, 1, 1].sum() / seen, 0, 1)) if seen > 2 * noise else mean
    chances = np.empty((len(missing), 2))
    chances[0] = missing[0]
    for step in range(1, len(missing)):
        before, now = missing[step - 1], missing[step]
        after = min(goes_on, now / before) if before > 0 else goes_on
        chances[step] = np.clip((now - before * after) / max(1 - before, 1e-9), 0, 1), after
    return chances, missing
