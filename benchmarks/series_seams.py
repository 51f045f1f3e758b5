"""Series that go on beyond a window: how steps go together at seams, beside within windows and in real series.

    python benchmarks/series_seams.py run [--data ettm1 daiad]     # resumable: finished cells are skipped
    python benchmarks/series_seams.py table

One day is a series and the unit, add/remove, δ = 1e-5, all days private. Synthetic series go on for sixty days.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import doublure as db
from command_line import command_line, some
from results import by_cell, finished, measure
from series_methods import DATA, SHARED, days, schema_of

Floats = npt.NDArray[np.float64]

DELTA, SERIES, WINDOWS = 1e-5, 40, 60
FILES = {
    "simbench": ("simbench_load_15min_2016.npz", "pload"),
    "london": ("london_smart_meter_2013.npz", "kwh"),
    "daiad": ("daiad_water_hourly_derived.npz", "litres"),
}


def runs(name: str) -> Floats:
    """Return days that follow one another ``(sources, days, length, channels)``, NaN where a value is missing."""
    if name == "ettm1":
        return days(name)[None]
    file, array = FILES[name]
    bounds = next(iter(DATA[name].channels.values()))["bounds"]
    return np.clip(np.load(SHARED / file)[array].astype(float)[..., None], *bounds)


def figures(series: Floats) -> dict[str, float]:
    """Return autocorrelations over steps at a seam and within windows, spreads of steps, and that of days' means.

    Args:
        series: ``(sources, days, length, channels)``.
    """
    length = series.shape[2]
    scored = (series - np.nanmean(series, (0, 1))) / np.nanstd(series, (0, 1))
    flat = scored.reshape(len(series), -1, series.shape[3])
    found: dict[str, float] = {}
    for lag in (1, 4):
        place = np.arange(flat.shape[1] - lag) % length
        for where, own in (("seam", place + lag >= length), ("within", place + lag < length)):
            found[f"lag {lag}, {where}"] = _correlation(flat[:, :-lag][:, own], flat[:, lag:][:, own])
    raw = series.reshape(flat.shape)
    steps = np.diff(raw, axis=1) / np.nanstd(raw, (0, 1))
    seams = np.arange(1, raw.shape[1]) % length == 0
    found["step, seam"], found["step, within"] = (float(np.nanstd(steps[:, own])) for own in (seams, ~seams))
    whole = np.where(np.isnan(series).any(2), np.nan, series.mean(2))
    for lag in (1, 7):
        found[f"mean of a day after {lag}"] = _correlation(whole[:, :-lag], whole[:, lag:])
    return {name: round(figure, 3) for name, figure in found.items()}


def _correlation(one: Floats, other: Floats) -> float:
    """Return the mean correlation of channels, over what both have."""
    found = []
    for left, right in zip(one.reshape(-1, one.shape[-1]).T, other.reshape(-1, other.shape[-1]).T, strict=True):
        known = ~(np.isnan(left) | np.isnan(right))
        found.append(np.corrcoef(left[known], right[known])[0, 1])
    return float(np.mean(found))


def one_cell(name: str, arm: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Measure real days, or a fit whose windows go on, or are drawn apart."""
    whole = runs(name)
    if arm == "real":
        return figures(whole)
    own = whole.reshape(-1, *whole.shape[2:])
    own = own[~np.isnan(own).any((1, 2))]
    schema = schema_of(name, own)
    plan = db.plan(schema, method="statistics", epsilon=epsilon, delta=DELTA)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="days", epsilon=100.0, delta=0.01)
        data = {channel: own[:, :, place] for place, channel in enumerate(schema.channels)}
        syn = db.fit(data, plan, ledger=ledger, seed=seed, threads=1)
    if arm == "goes on":
        values = syn.sample(SERIES, steps=WINDOWS * own.shape[1], seed=seed).values
    else:
        values = syn.sample(SERIES * WINDOWS, seed=seed).values
    return figures(values.reshape(SERIES, WINDOWS, *own.shape[1:]))


def table() -> None:
    """Print a line a cell."""
    rows = finished("series_seams")
    keys = [key for key in rows[0] if key not in ("cell", "date")]
    print(f"| data | series | {' | '.join(keys)} |\n|---|---|{'--:|' * len(keys)}")
    for row in rows:
        print(f"| {row['cell'][0]} | {row['cell'][1]} | {' | '.join(f'{row[key]:.3f}' for key in keys)} |")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], data=some(["ettm1", *FILES]),
        arms=["real", "goes on", "apart"],
    )  # fmt: skip
    if options.verb == "table":
        table()
        return
    cells = [(name, arm, 10.0, 0) for name in options.data for arm in options.arms]
    measure("series_seams", by_cell(cells, one_cell))


if __name__ == "__main__":
    main()
