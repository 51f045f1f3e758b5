"""Time series (Frigerio et al. 2019, §6.2): days of water and power, heartbeats; the day or the meter as unit.

    python benchmarks/series.py run                                    # resumable: finished cells are skipped
    python benchmarks/series.py run --data london daiad --unit day --seeds 0 1 2
    python benchmarks/series.py run --data daiad --unit meter --epsilons 6 20 100
    python benchmarks/series.py table
    python benchmarks/series.py picture --data daiad simbench --unit day --settings '{"generator_type": "lstm"}'
    python benchmarks/series.py speed --steps 50 --series 20000        # measured on less, the rest extrapolated
    python benchmarks/series.py speed --settings '{"generator_type": "lstm"}'

A fixed quarter of the units is kept aside; the UCR sets have their official test split. δ = 2e-6, add/remove of one
unit. Every figure of the evaluation is kept, with those of independent steps and of the series kept aside beside it.
Settings are chosen with ``--tune``, which keeps another quarter aside, and with other seeds. ``picture`` draws
synthetic series over the real ones that are nearest under dynamic time warping (Figure 3), the nearest pair first.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import doublure as db
from doublure.data.series import Series, open_series
from doublure.measures.series import evaluate_series
from doublure.measures.series.plot_data import SeriesPair
from doublure.schema import Schema
from results import FIGURES, by_cell, finished, measure

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared" / "data"
DELTA, EPSILON = 2e-6, 6.0
TUNE = 900
MOST_MADE = 10_000
_PAIRS = 4
RECORDS = 20
"""Series of a unit that are used, where a unit has several."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """A set of series.

    Attributes:
        schema: Its example schema.
        file: Where it lies; with ``#train`` where the test split is its own.
        unit: What tells meters apart; None where a series is all that a unit has.
    """

    schema: str
    file: str
    unit: str | None = None


DATA = {
    "london": Data(schema="london-power", file="london_smart_meter_2013.npz", unit="household"),
    "daiad": Data(schema="daiad-water", file="daiad_water_hourly_derived.npz", unit="user"),
    "ecg200": Data(schema="ecg200", file="ucr_ECG200.npz"),
    "powercons": Data(schema="powercons", file="ucr_PowerCons.npz"),
    "simbench": Data(schema="simbench-load", file="simbench_load_15min_2016.npz", unit="profile"),
    "ettm1": Data(schema="ettm1", file="ETTm1.csv.gz"),
}
SHOWN = {
    "profile_by_attribute": "weekday profile",
    "profile": "profile",
    "apart": "by step",
    "autocorrelation": "autocorrelation",
    "spectrum": "spectrum",
    "level": "level",
    "peaks": "peak",
    "discriminative": "two-sample AUC",
    "predictive": "prediction",
    "accuracy": "classes",
    "too_near": "too near",
}


@dataclass(frozen=True, kw_only=True)
class Split:
    """Series to learn from with the unit of each, series kept aside, and the schema they are learned under."""

    train: Series
    units: np.ndarray[Any, np.dtype[np.int64]]
    aside: Series
    schema: Schema


def split(name: str, unit: str, *, tune: bool) -> Split:
    """Read a set and keep a quarter of its units aside."""
    data = DATA[name]
    plain = read_as(data)
    path = SHARED / data.file
    official = "x_test" in np.load(path).files if path.suffix == ".npz" else False
    if official:
        train, aside = (open_series(f"{path}#{half}").load(Schema.from_plain(plain)) for half in ("train", "test"))
        content, units, kept = train.content, train.unit, aside.content
        if tune:
            half = np.random.default_rng(TUNE).random(len(content)) < 0.25
            content, units, kept = content.take(~half), units[~half], content.take(half)
    else:
        loaded = open_series(path).load(Schema.from_plain(plain))
        whole, of = loaded.content, loaded.unit
        if unit == "day":
            of = np.arange(len(whole))
        drawn = np.random.default_rng(TUNE if tune else 0).random(of.max() + 1) < 0.25
        content, units, kept = whole.take(~drawn[of]), of[~drawn[of]], whole.take(drawn[of])
    count = len(np.unique(units))
    return Split(train=content, units=units, aside=kept, schema=learned_as(plain, unit, count))


def read_as(data: Data) -> dict[str, Any]:
    """Return the example schema as a set is read: all series of a meter, identified by it."""
    plain = Schema.load(ROOT / "examples" / "schemas" / f"{data.schema}.schema.yaml").to_plain()
    plain["unit"] = {"name": "unit", "id": data.unit, "max_records": 100_000 if data.unit else 1}
    windows = plain["series"]
    windows.pop("source", None)
    if data.schema == "daiad-water":  # the array of hours, in place of the readings
        windows |= {"time": "date", "irregular": "refuse"}
        windows.pop("timezone", None)
        plain["channels"]["litres"] = {
            "type": "real", "bounds": [0, 400], "precision": 1, "zero_inflated": True, "missing": False
        }  # fmt: skip
    return plain


def learned_as(plain: Mapping[str, Any], unit: str, count: int) -> Schema:
    """Return the schema of series that are cut already; the number of units is rounded, as a published one would be."""
    step = 10 ** max(0, len(str(count)) - 2)
    attributes = {name: dict(column) for name, column in plain.get("attributes", {}).items()}
    for column in attributes.values():
        column.pop("from_time", None)
    protected = {"name": unit, "id": "unit" if unit == "meter" else None}
    series = {"length": plain["series"]["length"], "gaps": plain["series"]["gaps"]}
    own = {
        "unit": protected | {"max_records": RECORDS if unit == "meter" else 1},
        "units": max(step, round(count / step) * step),
        "series": series,
    }
    return Schema.from_plain({**plain, **own, **({"attributes": attributes} if attributes else {})})


def given(found: Split) -> dict[str, Any]:
    """Return the series to learn from as arrays."""
    arrays: dict[str, Any] = {name: found.train.channel(name) for name in found.train.channels}
    arrays |= {str(name): cells.to_numpy() for name, cells in found.train.attributes.items()}
    return arrays | {"unit": found.units}


def fitted(found: Split, name: str, method: str, epsilon: float | None, settings: str, seed: int) -> db.Synthesizer:
    """Plan and fit."""
    budget = {} if epsilon is None else {"epsilon": epsilon, "delta": DELTA}
    plan = db.plan(found.schema, method=method, **budget, **json.loads(settings))
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset=name, epsilon=1000.0, delta=0.01)
        return db.fit(given(found), plan, ledger=ledger, seed=seed, threads=torch.get_num_threads())


def one_cell(
    name: str, unit: str, method: str, epsilon: float | None, settings: str, kept: str, seed: int
) -> dict[str, Any]:
    """Fit once and measure."""
    found = split(name, unit, tune=kept == "tune")
    start, used = time.perf_counter(), time.process_time()
    syn = fitted(found, name, method, epsilon, settings, seed)
    seconds, processor, plan = time.perf_counter() - start, time.process_time() - used, syn.plan
    made = syn.sample(min(MOST_MADE, len(found.train)), seed=seed)
    measured = evaluate_series(syn.schema, made, found.train, found.aside, unit=found.units, seed=seed)  # type: ignore[arg-type]
    return {
        "units": found.schema.public_units,
        "series": len(found.train),
        "sigma": plan.noise_multiplier,
        "sample_rate": plan.sample_rate,
        "steps": plan.steps,
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "scores": {score.key: (score.value, score.baseline, score.real) for score in measured.scores},
    }


def cells_of(options: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Yield what is asked for."""
    kept, epsilons = "tune" if options.tune else "test", [None] if options.method == "gan" else options.epsilons
    for seed, name, unit, epsilon in itertools.product(options.seeds, options.data, options.unit, epsilons):
        if unit == "day" or DATA[name].unit is not None:
            yield name, unit, options.method, epsilon, options.settings, kept, seed


def table(options: argparse.Namespace) -> None:
    """Print the table: the mean over seeds; below it independent steps, and the series kept aside."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for entry in finished("series"):
        if entry["cell"][5] == ("tune" if options.tune else "test"):
            cells.setdefault(json.dumps(entry["cell"][:5]), []).append(entry)
    print(f"Python {platform.python_version()}, torch {torch.__version__}, {torch.get_num_threads()} threads, CPU\n")
    print(f"| data | unit | units | method | ε | {' | '.join(SHOWN.values())} | processor s | seeds |")
    print("|---|---|--:|---|--:|" + "--:|" * (len(SHOWN) + 2))
    for key, entries in cells.items():
        name, unit, method, epsilon, settings = json.loads(key)
        first = entries[0]
        heads = [(name, unit, first["units"], method + (f" {settings}" if settings != "{}" else ""), epsilon or "–")]
        heads += [("", "", "", "independent steps", "–"), ("", "", "", "kept aside", "–")]
        for place, head in enumerate(heads):
            figures = []
            for score in SHOWN:
                known = [e["scores"][score][place] for e in entries if e["scores"].get(score)]
                known = [figure for figure in known if figure is not None]
                figures.append(f"{statistics.mean(known):.3f}" if known else "–")
            rest = (
                [round(statistics.mean(e["processor_seconds"] for e in entries)), len(entries)]
                if not place
                else ["", ""]
            )
            print("| " + " | ".join(str(cell) for cell in (*head, *figures, *rest)) + " |")


def picture(options: argparse.Namespace) -> None:
    """Fit each set once, and draw synthetic series over their nearest real ones."""
    unit, epsilon, seed = options.unit[0], None if options.method == "gan" else options.epsilons[0], options.seeds[0]
    rows = {}
    for name in options.data:
        found = split(name, unit, tune=False)
        syn = fitted(found, name, options.method, epsilon, options.settings, seed)
        made = syn.sample(min(MOST_MADE, len(found.train)), seed=seed)
        measured = evaluate_series(
            syn.schema,  # type: ignore[arg-type]
            made,
            found.train,
            found.aside,
            unit=found.units,
            classifiers=False,
            seed=seed,
        )
        rows[name] = measured.pairs[:_PAIRS]
    draw_pairs(rows, FIGURES / "series-nearest.png")


def draw_pairs(rows: Mapping[str, Sequence[SeriesPair]], path: Path) -> None:
    """Draw a row of panes a data set: a synthetic series, and the real one that is nearest to it."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panes = plt.subplots(
        len(rows), _PAIRS, figsize=(2.5 * _PAIRS, 2.3 * len(rows)), layout="constrained", squeeze=False
    )
    for own, (name, pairs) in zip(panes, rows.items(), strict=True):
        for pane, pair in zip(own, pairs, strict=False):
            for said, values, color in (("real", pair.real, "grey"), ("synthetic", pair.synthetic, "C0")):
                known = [math.nan if value is None else value for value in values]
                pane.plot(pair.steps, known, color=color, linewidth=1.1, label=said)
            pane.set(title=f"{name}, {pair.channel}: {pair.distance:.2f} sd")
            pane.spines[["top", "right"]].set_visible(False)
        own[0].legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    print(path)


def speed(options: argparse.Namespace) -> None:
    """Measure what 20,000 days of 96 steps take to fit, and a million to sample, on less of both."""
    text = (
        "doublure: 1\nkind: series\nunit: {name: day}\nunits: 20000\nseries: {length: 96, gaps: refuse}\n"
        "channels: {kw: {type: real, bounds: [0, 10], precision: 3, missing: false}}\n"
        "attributes: {weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false}}\n"
    )
    draw = np.random.default_rng(0)
    turns = 2 * np.pi * np.arange(96) / 96
    values = np.clip(2 + np.sin(turns + draw.random((20_000, 1))) + draw.gamma(0.5, 1, (20_000, 96)), 0, 10)
    data = {"kw": values, "weekday": draw.integers(0, 7, 20_000)}
    schema = Schema.parse(text)
    own = json.loads(options.settings)
    whole = db.plan(schema, method=options.method, epsilon=EPSILON, delta=DELTA, **own)
    partly = options.method == "dpgan"  # whose steps are all alike
    taken = []
    for steps in (options.steps, 2 * options.steps) if partly else (whole.steps,):
        asked = own | {"steps": steps}
        plan = db.plan(schema, method="dpgan", epsilon=EPSILON, delta=DELTA, **asked) if partly else whole
        with tempfile.TemporaryDirectory() as folder:
            ledger = db.Ledger.create(Path(folder) / "ledger", dataset="speed", epsilon=100.0, delta=0.01)
            start, used = time.perf_counter(), time.process_time()
            syn = db.fit(data, plan, ledger=ledger, seed=0, threads=options.threads, out=Path(folder) / "run")
            taken.append((time.perf_counter() - start, time.process_time() - used))
    start, used = time.perf_counter(), time.process_time()
    count = sum(len(part) for part in syn.sample_chunks(options.series, seed=0))
    sampled = (time.perf_counter() - start, time.process_time() - used)
    print(f"{options.method}, {options.settings}, {options.threads} thread(s)")
    for what, place in (("clock", 0), ("processor", 1)):
        if partly:
            each = (taken[1][place] - taken[0][place]) / options.steps
            fixed = max(0.0, taken[0][place] - options.steps * each)
            print(
                f"{what}: {options.steps} and {2 * options.steps} steps took {taken[0][place]:.1f} and "
                f"{taken[1][place]:.1f} s; {whole.steps} steps, extrapolated: {fixed + (whole.steps or 0) * each:.0f} s"
            )
        else:
            print(f"{what}: the fit took {taken[0][place]:.1f} s")
        print(
            f"{what}: {count:,} series of 96 steps sampled in {sampled[place]:.2f} s; a million, extrapolated: "
            f"{sampled[place] / count * 1e6:.0f} s"
        )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table", "picture", "speed"])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=list(DATA))
    parser.add_argument("--unit", nargs="+", default=["day", "meter"], choices=["day", "meter"])
    parser.add_argument("--method", default="dpgan", choices=["statistics", "dpgan", "gan"])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[EPSILON])
    parser.add_argument("--settings", default="{}", help="JSON settings of the method")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=50, help="of the speed's fit")
    parser.add_argument("--series", type=int, default=20_000, help="of the speed's sample")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    if options.verb == "speed" and options.method == "gan":
        parser.error("speed is of a method that keeps an epsilon: give --method dpgan or statistics")
    torch.set_num_threads(options.threads)
    if options.verb == "run":
        measure("series", by_cell(cells_of(options), one_cell))
    else:
        {"table": table, "picture": picture, "speed": speed}[options.verb](options)


if __name__ == "__main__":
    main()
