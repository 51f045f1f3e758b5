"""Defaults on series against the simplest models: none is ahead, and no measure gets worse with more budget.

One series is the unit, add/remove, δ = 1e-5. All series are private: figures tell synthetic series from them, and a
set of daily loads keeps the fifth aside that :mod:`series_methods` does. ``pjme`` (a region's load, whole days, with
weekend and month), ``turbofan`` (windows of 16 cycles of NASA's FD001, 14 sensors, and how many cycles are left) and
``ecg5000`` are public sets that nobody tuned for; their files are put into benchmarks/out/fetched as published.

    python benchmarks/series_dominance.py run [--data returns] [--arms ours simplest] [--epsilons 1 3 10] [--seeds 0]
    python benchmarks/series_dominance.py table       # means, and their standard errors
    python benchmarks/series_dominance.py verdicts    # what is worse with more ε, and where a simpler model is ahead
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import yaml
from scipy.stats import rankdata

import doublure as db
from command_line import command_line, some
from doublure.schema.series import StateChannel
from peers.gaussian_series import gaussian_series
from results import by_cell, finished, measure
from series_methods import SHARED, schema_of, split

Floats = npt.NDArray[np.float64]

DELTA, MOST_MADE = 1e-5, 4_000
OWN_SCHEMAS = ("carparts", "returns", "mvad")
UCR = {"ecg200": "ucr_ECG200.npz", "powercons": "ucr_PowerCons.npz", "italypower": "ucr_ItalyPowerDemand.npz"}
DAYS = ("ettm1", "simbench", "london", "daiad")
PLANT, PLANT_DAYS, PLANT_HOURS = "plant", 300, 24
PLANT_RULE = {"formula": {"of": "co2", "from": "kwh * 0.0005"}}
FETCHED = Path(__file__).resolve().parent / "out" / "fetched"
SETS = (*OWN_SCHEMAS, *UCR, *DAYS, PLANT, "pjme", "turbofan", "ecg5000", "appliances")


def load(name: str) -> tuple[db.Schema, dict[str, Any]]:
    """Return a set's schema, and its channels and attributes as arrays."""
    if name in MADE:
        return MADE[name]()
    if name in OWN_SCHEMAS:
        schema = db.Schema.load(SHARED / f"{name}.schema.yaml")
        with np.load(SHARED / f"{name}.npz") as file:
            return schema, {key: file[key] for key in file.files if not key.endswith("_test")}
    if name in DAYS:
        train, _ = split(name, tune=False)
        schema = schema_of(name, train)
        return schema, {channel: train[:, :, place] for place, channel in enumerate(schema.channels)}
    with np.load(SHARED / UCR[name]) as file:
        split_names = [key for key in file.files if key.startswith("x_")]
        values = np.concatenate([file[key].astype(float).reshape(len(file[key]), -1) for key in split_names])
        kinds = np.concatenate([file[key.replace("x_", "y_")] for key in split_names]).astype(int).astype(str)
    facts = {
        "doublure": 1,
        "kind": "series",
        "units": len(values),
        "series": {"length": values.shape[1]},
        "channels": {"x": {"type": "real", "bounds": [-10, 10], "precision": 3, "missing": False}},
        "attributes": {
            "kind": {"type": "category", "values": sorted(set(kinds.tolist())), "missing": False, "roles": ["target"]}
        },
    }
    return db.Schema.parse(yaml.safe_dump(facts, sort_keys=False)), {"x": values, "kind": kinds}


def _set(
    length: int, channels: Mapping[str, tuple[float, float, int]], attributes: Mapping[str, Any], units: int
) -> db.Schema:
    """Return a schema: channels have a least and a most number, and digits behind the point."""
    facts = {
        "doublure": 1,
        "kind": "series",
        "units": units,
        "series": {"length": length},
        "channels": {
            name: {"type": "real", "bounds": [low, high], "precision": digits, "missing": False}
            for name, (low, high, digits) in channels.items()
        },
        "attributes": {name: {"missing": False, **facts} for name, facts in attributes.items()},
    }
    return db.Schema.parse(yaml.safe_dump(facts, sort_keys=False))


def pjme() -> tuple[db.Schema, dict[str, Any]]:
    """Return whole days of PJM East's hourly load, in MW."""
    found = pd.read_csv(FETCHED / "PJME_hourly.csv")
    stamps = pd.to_datetime(found["Datetime"], format="mixed", dayfirst=True)
    wide = found.assign(day=stamps.dt.normalize(), hour=stamps.dt.hour)
    wide = wide.pivot_table(index="day", columns="hour", values="PJME_MW", aggfunc="mean").dropna()
    days = pd.DatetimeIndex(wide.index)
    attributes = {
        "weekend": {"type": "boolean"}, "month": {"type": "ordinal", "values": list(range(1, 13))}
    }  # fmt: skip
    schema = _set(24, {"load": (0, 80_000, 0)}, attributes, len(wide))
    return schema, {"load": wide.to_numpy(), "weekend": days.day_of_week >= 5, "month": days.month.to_numpy()}


def turbofan() -> tuple[db.Schema, dict[str, Any]]:
    """Return windows of turbofan engines' sensors, those that vary, and the cycles that are left after each."""
    window, most_left = 16, 400
    found = np.loadtxt(FETCHED / "train_FD001.txt")
    sensors = [place for place in range(5, found.shape[1]) if found[:, place].std() > 1e-3]
    parts, left = [], []
    for engine in np.unique(found[:, 0]):
        own = found[found[:, 0] == engine][:, sensors]
        for first in range(0, len(own) - window + 1, window):
            parts.append(own[first : first + window])
            left.append(min(most_left, len(own) - first - window))
    values = np.stack(parts)
    channels = {}
    for place, sensor in enumerate(sensors):
        low, high = values[:, :, place].min(), values[:, :, place].max()
        channels[f"s{sensor - 4}"] = (float(np.floor(low - (high - low))), float(np.ceil(high + (high - low))), 2)
    attributes = {"left": {"type": "integer", "bounds": [0, most_left]}}
    schema = _set(window, channels, attributes, len(values))
    return schema, {name: values[:, :, place] for place, name in enumerate(channels)} | {"left": np.array(left)}


def ecg5000() -> tuple[db.Schema, dict[str, Any]]:
    """Return the training heartbeats of UCR's ECG5000: five kinds, 140 steps each."""
    values = np.loadtxt(FETCHED / "ECG5000_TRAIN.txt")
    kinds = values[:, 0].astype(int).astype(str)
    attributes = {"kind": {"type": "category", "values": ["1", "2", "3", "4", "5"], "roles": ["target"]}}
    schema = _set(values.shape[1] - 1, {"x": (-10, 10, 3)}, attributes, len(values))
    return schema, {"x": values[:, 1:], "kind": kinds}


def appliances() -> tuple[db.Schema, dict[str, Any]]:
    """Return whole days of a house in hours (UCI's Appliances): what appliances and lights draw, rooms, and weather."""
    found = pd.read_csv(FETCHED / "energydata_complete.csv")
    stamps = pd.to_datetime(found["date"], format="mixed", dayfirst=True)
    channels = {
        "Appliances": (0, 1100, 0), "lights": (0, 100, 0), "T1": (0, 40, 1), "RH_1": (0, 100, 1), "T_out": (-20, 40, 1)
    }  # fmt: skip
    hours = found[list(channels)].groupby([stamps.dt.normalize(), stamps.dt.hour]).mean()
    wide = hours.unstack().dropna()
    values = {name: wide[name].to_numpy() for name in channels}
    schema = _set(24, channels, {"weekend": {"type": "boolean"}}, len(wide))
    return schema, values | {"weekend": pd.DatetimeIndex(wide.index).day_of_week >= 5}


def plant() -> tuple[db.Schema, dict[str, Any]]:
    """Return made-up days of a plant: power, the carbon dioxide that it stands for, two reactive powers, their factor.

    Carbon dioxide is power times a constant, in coarse steps, as in UCI's steel plant.
    """
    draw = np.random.default_rng(0)

    def wave(kept: float, fresh: float) -> Floats:
        found = draw.normal(size=(PLANT_DAYS, PLANT_HOURS))
        for step in range(1, PLANT_HOURS):
            found[:, step] = kept * found[:, step - 1] + fresh * found[:, step]
        return found

    course = np.exp(-(((np.arange(PLANT_HOURS) - 13) / 5.0) ** 2))
    level = np.exp(draw.normal(0, 0.6, (PLANT_DAYS, 1)))
    kwh = np.clip(np.round(3 + 40 * level * course * np.exp(0.5 * wave(0.8, 0.6)), 2), 0, 200)
    lagging = np.clip(np.round(2 + 0.4 * kwh * np.exp(0.3 * wave(0.7, 0.7)), 2), 0, 120)
    leading = np.clip(np.round(20 * np.exp(-kwh / 25) * np.exp(0.5 * wave(0.0, 1.0)), 2), 0, 40)
    factor = np.clip(np.round(100 * kwh / np.sqrt(kwh**2 + lagging**2), 2), 0, 100)
    values = {"kwh": kwh, "co2": np.round(kwh * 0.0005, 2), "lagging": lagging, "leading": leading, "factor": factor}
    bounds = {"kwh": 200, "co2": 0.1, "lagging": 120, "leading": 40, "factor": 100}
    channels = {
        name: {"type": "real", "bounds": [0, most], "precision": 2, "missing": False} for name, most in bounds.items()
    }
    facts = {
        "doublure": 1, "kind": "series", "units": PLANT_DAYS, "series": {"length": PLANT_HOURS}, "channels": channels
    }  # fmt: skip
    return db.Schema.parse(yaml.safe_dump(facts, sort_keys=False)), values


MADE = {PLANT: plant, "pjme": pjme, "turbofan": turbofan, "ecg5000": ecg5000, "appliances": appliances}


def _fitted(schema: db.Schema, data: Mapping[str, Any], epsilon: float, seed: int, **settings: Any) -> Any:
    plan = db.plan(schema, method="statistics", epsilon=epsilon, delta=DELTA, **settings)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="series", epsilon=5000.0, delta=0.01)
        syn = db.fit(dict(data), plan, ledger=ledger, seed=seed, threads=1)
    return syn.sample(min(MOST_MADE, max(1000, len(next(iter(data.values()))))), seed=seed)


def _simplest(schema: db.Schema, data: Mapping[str, Any], epsilon: float, seed: int) -> Any:
    """Return the copula with one group, without any of its options."""
    plain = {
        "level_groups": 1, "own_tables": False, "exact_tables": False, "calm": False, "grouped": (), "candidates": 1,
    }  # fmt: skip
    return _fitted(schema, data, epsilon, seed, model="copula", **plain)


def _declared(schema: db.Schema, data: Mapping[str, Any], epsilon: float, seed: int) -> Any:
    """Return series of a schema that declares the rule between two of the plant's channels."""
    declared = db.Schema.parse(yaml.safe_dump(schema.to_plain() | {"constraints": [PLANT_RULE]}, sort_keys=False))
    return _fitted(declared, data, epsilon, seed)


def _grouped(schema: db.Schema, data: Mapping[str, Any], epsilon: float, seed: int) -> Any:
    """Return series whose numeric attributes form groups, as they did once, in place of shifting along a line."""
    return _fitted(schema, data, epsilon, seed, grouped=tuple(schema.attributes))


def _gaussian(schema: db.Schema, data: Mapping[str, Any], epsilon: float, seed: int) -> Any:
    """Return draws of a plain Gaussian whose public centre and radius are taken from the private series: flattered."""
    values = np.stack([np.asarray(data[name], dtype=float) for name in schema.channels], axis=2)
    bounds = np.array([schema.channels[name].bounds for name in schema.channels], dtype=float)
    shares = (values - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
    centre = float(shares.mean())
    radius = float(np.quantile(np.sqrt(((shares - centre) ** 2).mean((1, 2))), 0.95))
    return gaussian_series(
        values, bounds[:, 0], bounds[:, 1], epsilon=epsilon, delta=DELTA, n=1000, centre=centre, radius=radius,
        seed=seed,
    )  # fmt: skip


ARMS: dict[str, Callable[[db.Schema, Mapping[str, Any], float, int], Any]] = {
    "ours": _fitted,
    "simplest": _simplest,
    "gaussian": _gaussian,
    "declared": _declared,
    "grouped": _grouped,
}


OF_ARM = {"declared": (PLANT,), "grouped": ("turbofan",)}
"""The sets of arms that not every set has."""


def one_cell(name: str, arm: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Make series once and measure them."""
    schema, data = load(name)
    used = time.process_time()
    made = ARMS[arm](schema, data, epsilon, seed)
    used = time.process_time() - used
    values = np.asarray(made if isinstance(made, np.ndarray) else made.values, dtype=float)
    real = np.stack([_numbers(schema, channel, data[channel]) for channel in schema.channels], axis=2)
    found = figures(schema, values, real)
    if schema.attributes and not isinstance(made, np.ndarray):
        errors = [
            _within(schema, name, (values, made.attributes[name]), (real, data[name])) for name in schema.attributes
        ]
        found["within"] = round(float(np.mean(errors)), 4)
    return found | {"processor_seconds": round(used, 1)}


def _within(schema: db.Schema, name: str, made: tuple[Floats, Any], real: tuple[Floats, Any]) -> float:
    """Return the mean error of channels within an attribute's values, or its fifths, in deviations of a channel.

    For a value that no series was made with, all that were made stand.
    """
    numeric = schema.attributes[name].bounded
    cells = [np.asarray(own, dtype=float if numeric else str) for _, own in (made, real)]
    if numeric:
        cuts = np.unique(np.quantile(cells[1], [0.2, 0.4, 0.6, 0.8]))
        cells = [np.searchsorted(cuts, own) for own in cells]
    scale, error = real[0].std((0, 1)), 0.0
    for value in np.unique(cells[1]):
        within = [own[cell == value] for (own, _), cell in zip((made, real), cells, strict=True)]
        one, other = ((own if len(own) else made[0]).mean((0, 1)) for own in within)
        error += float((cells[1] == value).mean() * np.abs((one - other) / scale).mean())
    return error


def _numbers(schema: db.Schema, channel: str, values: Any) -> Floats:
    """Return a channel's numbers; of states their places in the list."""
    column = schema.channels[channel]
    if not isinstance(column, StateChannel):
        return np.asarray(values, dtype=float)
    places = {str(value): place for place, value in enumerate(column.values)}
    found: Floats = np.vectorize(lambda value: places[str(value)])(values).astype(float)
    return found


def figures(schema: db.Schema, made: Floats, real: Floats) -> dict[str, float]:
    """Return figures of synthetic series ``(N, length, channels)``; of states how often they change.

    Errors of means and deviations by step, in deviations of a channel. Errors of autocorrelations in a window, of
    values, of their ranks among all of a channel, which a few high values do not decide, and of absolute values. Errors
    of channels' correlations; KS of levels, peaks and numbers of runs above the 90 % quantile; errors of the shares of
    zeros; and the largest value over the real one, as a logarithm.
    """
    if any(isinstance(column, StateChannel) for column in schema.channels.values()):
        return _of_states(made, real)
    scale = real.std((0, 1))
    cut = np.quantile(real, 0.9, axis=(0, 1))
    found = {
        "mean": float(np.abs((made.mean(0) - real.mean(0)) / scale).mean()),
        "overall_mean": float(made.mean()),
        "sd": float(np.abs((made.std(0) - real.std(0)) / scale).mean()),
        "autocorrelation": _apart(made, real, _autocorrelation),
        "rank_autocorrelation": _apart(_ranks(made), _ranks(real), _autocorrelation),
        "volatility": _apart(made, real, lambda own: _autocorrelation(np.abs(own - own.mean((0, 1))))),
        "level_ks": _ks(made.mean(1), real.mean(1)),
        "peak_ks": _ks(made.max(1), real.max(1)),
        "runs_ks": _ks(_runs(made > cut), _runs(real > cut)),
        "zeros": float(np.abs((made == 0).mean((0, 1)) - (real == 0).mean((0, 1))).mean()),
        "largest": float(np.abs(np.log(np.abs(made).max((0, 1)) / np.abs(real).max((0, 1)))).mean()),
        "at_upper": float(np.mean([
            (made[:, :, place] >= column.bounds[1]).mean() for place, column in enumerate(schema.channels.values())
        ])),
    }  # fmt: skip
    if real.shape[2] > 1:
        above = np.triu_indices(real.shape[2], 1)
        found["correlation"] = float(np.abs(_correlations(made) - _correlations(real))[above].mean())
    return {name: round(figure, 4) for name, figure in found.items()}


def _of_states(made: Floats, real: Floats) -> dict[str, float]:
    """Return figures of states: changes a series, and total variations of steps, transitions and whole paths' pairs."""
    states = int(max(made.max(), real.max())) + 1

    def counted(codes: Floats, size: int) -> Floats:
        found: Floats = np.bincount(codes.astype(int).ravel(), minlength=size) / codes.size
        return found

    def between(one: Floats, other: Floats) -> float:
        return float(np.abs(one - other).sum() / 2)

    steps = [between(counted(made[:, step], states), counted(real[:, step], states)) for step in range(real.shape[1])]
    moves = [
        counted(own[:, :-1][own[:, 1:] != own[:, :-1]] * states + own[:, 1:][own[:, 1:] != own[:, :-1]], states**2)
        for own in (made, real)
    ]
    third = real.shape[1] // 3
    paths = [
        counted(own[:, third // 2] * states**2 + own[:, third + third // 2] * states + own[:, -third // 2], states**3)
        for own in (made, real)
    ]
    never = moves[1] == 0
    changes = [(own[:, 1:] != own[:, :-1]).sum((1, 2)) for own in (made, real)]
    return {
        "changes": round(float(changes[0].mean()), 3),
        "changes_ks": round(_ks(changes[0][:, None], changes[1][:, None]), 4),
        "values": round(float(np.mean(steps)), 4),
        "moves": round(between(*moves), 4),
        "unseen_moves": round(float(moves[0][never].sum()), 4),
        "paths": round(between(*paths), 4),
    }


def _apart(made: Floats, real: Floats, of: Callable[[Floats], Floats]) -> float:
    return float(np.abs(of(made) - of(real)).mean())


def _autocorrelation(series: Floats) -> Floats:
    apart = series - series.mean((0, 1))
    variance = (apart**2).mean((0, 1)) + 1e-12
    lags = range(1, min(24, series.shape[1] - 1))
    return np.array([(apart[:, lag:] * apart[:, :-lag]).mean((0, 1)) / variance for lag in lags])


def _ranks(series: Floats) -> Floats:
    """Return the ranks of values ``(N, length, channels)`` among all of a channel; those that are alike share one."""
    flat = series.reshape(-1, series.shape[2])
    found: Floats = rankdata(flat, axis=0).reshape(series.shape) / len(flat)
    return found


def _correlations(series: Floats) -> Floats:
    found: Floats = np.corrcoef(series.reshape(-1, series.shape[2]).T)
    return found


def _runs(above: npt.NDArray[np.bool_]) -> Floats:
    found: Floats = (np.diff(above.astype(int), axis=1, prepend=0) == 1).sum(1).astype(float)
    return found


def _ks(made: Floats, real: Floats) -> float:
    """Return the mean Kolmogorov-Smirnov statistic of columns."""
    found = []
    for one, other in zip(made.T, real.T, strict=True):
        places = np.concatenate([one, other])
        shares = [np.searchsorted(np.sort(own), places, "right") / len(own) for own in (one, other)]
        found.append(np.abs(shares[0] - shares[1]).max())
    return float(np.mean(found))


def _cells_of(rows: Sequence[Mapping[str, Any]], name: str) -> dict[tuple[str, float], list[Mapping[str, Any]]]:
    """Return a set's rows by arm and ε."""
    found: dict[tuple[str, float], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["cell"][0] == name:
            found.setdefault((row["cell"][1], row["cell"][2]), []).append(row)
    return found


def _mean_and_error(cells: Sequence[Mapping[str, Any]], key: str) -> tuple[float, float]:
    """Return a figure's mean over fits and its standard error; NaN of one fit."""
    found = np.array([row[key] for row in cells if key in row])
    return float(found.mean()), float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else float("nan")


def table() -> None:
    """Print means over fits and their standard errors."""
    rows = finished("series_dominance")
    for name in dict.fromkeys(row["cell"][0] for row in rows):
        own = _cells_of(rows, name)
        keys = [key for key in next(iter(own.values()))[0] if key not in ("cell", "date")]
        print(f"\n| {name}: ε, arm | {' | '.join(keys)} | fits |\n|---|{'--:|' * (len(keys) + 1)}")
        for (arm, epsilon), cells in sorted(own.items(), key=lambda one: (one[0][1], one[0][0])):
            shown = [
                f"{mean:.3f}" if np.isnan(error) else f"{mean:.3f} ±{error:.3f}"
                for mean, error in (_mean_and_error(cells, key) for key in keys)
            ]
            print(f"| {epsilon:g} {arm} | {' | '.join(shown)} | {len(cells)} |")


NO_ERRORS = ("cell", "date", "overall_mean", "changes", "processor_seconds")
"""What a row has that is no error, so that less of it is not better."""


def verdicts() -> None:
    """Print where more ε is worse, and where a simpler arm is ahead, by more than two standard errors."""
    rows = finished("series_dominance")
    asked, worse = {"more ε": 0, "simpler": 0}, list[str]()
    for name in dict.fromkeys(row["cell"][0] for row in rows):
        own = _cells_of(rows, name)
        for (arm, epsilon), cells in own.items():
            budgets = sorted(other for one, other in own if one == "ours" and other > epsilon)
            pairs = []
            if arm == "ours" and budgets:
                pairs.append(("more ε", cells, own[arm, budgets[0]], f"ε = {epsilon:g} to {budgets[0]:g}"))
            if arm not in ("ours", "declared") and ("ours", epsilon) in own:
                pairs.append(("simpler", cells, own["ours", epsilon], f"ε = {epsilon:g}, {arm} and ours"))
            for kind, better, other, said in pairs:
                for key in [key for key in better[0] if key not in NO_ERRORS]:
                    (one, its), (two, theirs) = _mean_and_error(better, key), _mean_and_error(other, key)
                    if np.isnan(its) or np.isnan(theirs):
                        continue
                    asked[kind] += 1
                    if two - one > 2 * np.hypot(its, theirs):
                        worse.append(f"{kind}: {name}, {key}, {said}: {one:.3f} ±{its:.3f}, {two:.3f} ±{theirs:.3f}")
    print("\n".join(sorted(worse)))
    for kind, count in asked.items():
        print(f"{kind}: {sum(own.startswith(kind) for own in worse)} of {count} comparisons are worse by 2 errors")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table", "verdicts"], data=some(SETS), arms=some(ARMS), epsilons=[1.0, 3.0, 10.0], seeds=[0],
    )  # fmt: skip
    if options.verb != "run":
        {"table": table, "verdicts": verdicts}[options.verb]()
        return
    measure(
        "series_dominance",
        by_cell(
            [
                (name, arm, epsilon, seed)
                for seed in options.seeds
                for name in options.data
                for epsilon in options.epsilons
                for arm in options.arms
                if (name != "mvad" or arm == "ours") and name in OF_ARM.get(arm, SETS)
            ],
            one_cell,
        ),
    )


if __name__ == "__main__":
    main()
