"""Days of a city's air, drawn: channels that go together otherwise in each season, and gaps that stand together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from doublure.data.series import Series

CHANNELS = ("dust", "ozone", "warmth")
SEASONS = ("winter", "spring", "summer", "autumn")
TEXT = """
doublure: 1
kind: series
unit: {name: day, id: null, max_records: 1}
units: UNITS
series: {length: 12, gaps: missing}
channels:
  dust: {type: real, bounds: [0, 400], precision: 0, missing: true}
  ozone: {type: real, bounds: [0, 300], precision: 0, missing: true}
  warmth: {type: real, bounds: [-20, 45], precision: 1, missing: true}
attributes:
  season: {type: category, values: [winter, spring, summer, autumn], missing: false}
"""
_TOGETHER = {"winter": -0.8, "spring": -0.2, "summer": 0.8, "autumn": 0.2}
_LEVELS = {"winter": 160.0, "spring": 100.0, "summer": 60.0, "autumn": 100.0}


def text(units: int) -> str:
    """Return the schema of so many days."""
    return TEXT.replace("UNITS", str(units))


def days(
    n: int,
    seed: int,
    *,
    seasonal: bool = True,
    shared: float = 0.8,
    gaps: float = 0.04,
    lasting: float = 3.0,
) -> Series:
    """Return days.

    Args:
        n: How many.
        seed: Fixes them.
        seasonal: Whether dust and ozone go together by season, and dust has seasons' levels.
        shared: Share of gaps that are of all channels.
        gaps: Share of steps at which one begins.
        lasting: Mean number of steps of a gap.
    """
    draw = np.random.default_rng(seed)
    season = draw.integers(0, 4, n)
    rho = np.array([_TOGETHER[name] for name in SEASONS])[season] if seasonal else np.zeros(n)
    level = np.array([_LEVELS[name] for name in SEASONS])[season] if seasonal else np.full(n, 100.0)
    slow = draw.standard_normal((3, n, 1)) * 0.7 + draw.standard_normal((3, n, 12)).cumsum(2) * 0.2
    second = rho[:, None] * slow[0] + np.sqrt(1 - rho**2)[:, None] * slow[1]
    noon = np.sin(2 * np.pi * (np.arange(12) - 3) / 12)
    values = np.stack(
        [level[:, None] + 30 * slow[0] - 10 * noon, 80 + 25 * second + 20 * noon, 12 + 6 * slow[2] + 5 * noon], axis=2
    )
    values = np.clip(np.round(values, 1), [0, 0, -20], [400, 300, 45])
    values[_gone(n, draw, shared=shared, gaps=gaps, lasting=lasting)] = np.nan
    chosen = pd.Categorical.from_codes(season, list(SEASONS))
    return Series(values=values, channels=CHANNELS, attributes=pd.DataFrame({"season": chosen}))


def arrays(series: Series) -> dict[str, Any]:
    """Return days as arrays that a fit reads."""
    return {name: series.channel(name) for name in series.channels} | {"season": series.attributes["season"].to_numpy()}


def shared_gaps(series: Series) -> float:
    """Return the share of steps at which two channels have no value, among those at which one has none."""
    gone = np.isnan(series.values).sum(2)
    return float((gone > 1).sum() / max(1, (gone > 0).sum()))


def _gone(n: int, draw: np.random.Generator, *, shared: float, gaps: float, lasting: float) -> Any:
    """Return ``(n, 12, 3)`` whether a step has no value: some gaps are of all channels, others of one."""
    found = np.zeros((n, 12, 3), dtype=bool)
    for channels, chance in ((range(3), gaps * shared), *(((one,), gaps * (1 - shared)) for one in range(3))):
        missing = np.zeros(n, dtype=bool)
        for step in range(12):
            missing = draw.random(n) < np.where(missing, 1 - 1 / lasting, chance)
            found[:, step, list(channels)] |= missing[:, None]
    return found
