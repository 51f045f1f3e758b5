"""Series by several methods, beside two plain private ones: figures and a picture of real and synthetic days.

    python benchmarks/series_methods.py run                       # resumable: finished cells are skipped
    python benchmarks/series_methods.py run --data ettm1 --ways copula --epsilons 1 --seeds 1 2
    python benchmarks/series_methods.py table                     # the table for docs/evidence/journal/series.md
    python benchmarks/series_methods.py picture                   # docs/figures/series-days.png

One day is a series and the unit, add/remove, δ = 1e-5; transformers by hours. A fixed fifth of the days is kept
aside. ``--tune`` keeps another one aside: settings are chosen there, and the public centre and radius of the Gaussian
and of the variational autoencoder (``vae``) too.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import doublure as db
from command_line import command_line, some, told
from peers.gaussian_series import gaussian_series
from peers.vae_series import vae_series
from results import FIGURES, by_cell, finished, mean_and_range, measure
from series_measures import MEASURES, figures

Floats = npt.NDArray[np.float64]

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
DELTA, MOST_MADE, FEWEST_MADE = 1e-5, 8_000, 4_000
KEPT, TUNE = 46, 900
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "copula": ("statistics", {"model": "copula"}),
    "chains": ("statistics", {"model": "chains"}),
    "dpgan": ("dpgan", {}),
    "dpgan, lstm": ("dpgan", {"generator_type": "lstm"}),
}
PEERS = {"gaussian": gaussian_series, "vae": vae_series}


@dataclass(frozen=True, kw_only=True)
class Data:
    """A set of days.

    Attributes:
        channels: Public facts of each.
        centre: Of the peers, public, as a share of the bounds.
        radius: Likewise.
    """

    channels: dict[str, dict[str, Any]]
    centre: float
    radius: float


LOAD = {"type": "real", "bounds": [-50, 50], "precision": 3, "missing": False}
DATA = {
    "ettm1": Data(
        channels={name: LOAD for name in ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL")}
        | {"OT": LOAD | {"bounds": [-20, 80]}},
        centre=0.5, radius=0.03,
    ),
    "simbench": Data(
        channels={"pload": {"type": "real", "bounds": [0, 1], "missing": False}}, centre=0.3, radius=0.35
    ),
    "london": Data(
        channels={"kwh": {"type": "real", "bounds": [0, 10], "precision": 3, "missing": False}}, centre=0.1, radius=0.1
    ),
    "daiad": Data(
        channels={
            "litres": {
                "type": "real", "bounds": [0, 400], "precision": 1, "zero_inflated": True, "missing": False,
            }
        },
        centre=0.1, radius=0.2,
    ),
}  # fmt: skip


def days(name: str) -> Floats:
    """Return whole days ``(N, length, channels)``, within their public bounds."""
    if name == "ettm1":
        import pandas as pd

        quarters = pd.read_csv(SHARED / "ETTm1.csv.gz").iloc[: 725 * 96, 1:].to_numpy(dtype=float)
        found = quarters.reshape(725, 24, 4, -1).mean(2)
    else:
        files = {
            "simbench": ("simbench_load_15min_2016.npz", "pload"),
            "london": ("london_smart_meter_2013.npz", "kwh"),
            "daiad": ("daiad_water_hourly_derived.npz", "litres"),
        }
        file, array = files[name]
        whole = np.load(SHARED / file)[array].astype(float)
        found = whole.reshape(-1, whole.shape[-1], 1)
        found = found[~np.isnan(found).any((1, 2))]
    bounds = np.array([facts["bounds"] for facts in DATA[name].channels.values()], dtype=float)
    return np.clip(found, bounds[:, 0], bounds[:, 1])


def split(name: str, *, tune: bool) -> tuple[Floats, Floats]:
    """Return days to learn from, and days kept aside."""
    whole = days(name)
    aside = np.random.default_rng(TUNE if tune else KEPT).random(len(whole)) < 0.2
    return whole[~aside], whole[aside]


def schema_of(name: str, train: Floats) -> db.Schema:
    """Return the schema; the number of units is rounded, as a published one would be."""
    step = 10 ** max(0, len(str(len(train))) - 2)
    return db.Schema.from_plain(
        {
            "doublure": 1,
            "kind": "series",
            "units": round(len(train) / step) * step,
            "series": {"length": train.shape[1], "gaps": "refuse"},
            "channels": DATA[name].channels,
        }
    )


def synthetic(name: str, train: Floats, way: str, epsilon: float, settings: str, seed: int) -> tuple[Floats, float]:
    """Return synthetic days and the processor seconds of fitting and sampling."""
    n, begun = min(max(len(train), FEWEST_MADE), MOST_MADE), time.process_time()
    own = json.loads(settings)
    if way in PEERS:
        bounds = np.array([facts["bounds"] for facts in DATA[name].channels.values()], dtype=float)
        public = {"centre": DATA[name].centre, "radius": DATA[name].radius} | own
        made = PEERS[way](train, bounds[:, 0], bounds[:, 1], epsilon=epsilon, delta=DELTA, n=n, seed=seed, **public)
        return made, time.process_time() - begun
    method, chosen = WAYS[way]
    plan = db.plan(schema_of(name, train), method=method, epsilon=epsilon, delta=DELTA, **chosen, **own)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset=name, epsilon=100.0, delta=0.01)
        arrays = {channel: train[:, :, place] for place, channel in enumerate(DATA[name].channels)}
        syn = db.fit(arrays, plan, ledger=ledger, seed=seed, threads=torch.get_num_threads())
    return syn.sample(n, seed=seed).values, time.process_time() - begun


def one_cell(name: str, way: str, epsilon: float | None, settings: str, kept: str, seed: int) -> dict[str, Any]:
    """Fit once and measure."""
    train, aside = split(name, tune=kept == "tune")
    if way == "real" or epsilon is None:
        made, seconds = train, 0.0
    else:
        made, seconds = synthetic(name, train, way, epsilon, settings, seed)
    return {"units": len(train), "seconds": round(seconds, 1), **figures(made, train, aside)}


def cells_of(options: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """Yield what is asked for."""
    kept = "tune" if options.tune else "test"
    for seed, name, way in itertools.product(options.seeds, options.data, options.ways):
        for epsilon in (None,) if way == "real" else options.epsilons:
            yield name, way, epsilon, options.settings, kept, seed


def table(*, tune: bool) -> None:
    """Print the table: means over seeds, with least and most of several."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in finished("series_methods"):
        if row["cell"][4] == ("tune" if tune else "test"):
            cells.setdefault(tuple(row["cell"][:4]), []).append(row)
    print(f"| data | method | ε | {' | '.join(MEASURES.values())} | processor s | seeds |")
    print("|---|---|--:|" + "--:|" * (len(MEASURES) + 2))
    for (name, way, epsilon, settings), rows in sorted(cells.items(), key=lambda item: (item[0][0], item[0][2] or 0)):
        shown = [mean_and_range([row[key] for row in rows if key in row], ".3f") for key in MEASURES]
        said = way + (f" {settings}" if settings != "{}" else "")
        seconds = mean_and_range([row["seconds"] for row in rows], ".0f")
        print(f"| {name} | {said} | {epsilon or '–'} | {' | '.join(shown)} | {seconds} | {len(rows)} |")


def picture(names: list[str]) -> None:
    """Draw real days beside synthetic ones at ε = 1 and 10."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panes = plt.subplots(len(names), 3, figsize=(10, 2.3 * len(names)), layout="constrained", squeeze=False)
    for row, name in zip(panes, names, strict=True):
        train, _ = split(name, tune=False)
        sets = {"real": train[np.random.default_rng(5).permutation(len(train))]}
        for epsilon in (1.0, 10.0):
            sets[f"synthetic, ε = {epsilon:g}"] = synthetic(name, train, "copula", epsilon, "{}", 0)[0]
        low, top = np.quantile(train[:, :, :2], [0.0005, 0.9995])
        for pane, (said, values) in zip(row, sets.items(), strict=True):
            hours = np.arange(values.shape[1]) * 24 / values.shape[1]
            for channel in range(min(2, values.shape[2])):
                pane.plot(hours, values[:7, :, channel].T, color=f"C{channel}", linewidth=0.8, alpha=0.8)
            pane.set(title=f"{name}: {said}", ylim=(min(0, 1.2 * low), 1.05 * top), xticks=[0, 6, 12, 18, 24])
            pane.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURES / "series-days.png", dpi=100)


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table", "picture"], data=some(DATA),
        ways=some(["real", *PEERS, *WAYS], ["real", "copula", "chains", "gaussian"]), epsilons=[1.0, 3.0, 10.0],
        settings=told("{}", "JSON settings of the method"), tune=False, seeds=[0], threads=1,
    )  # fmt: skip
    torch.set_num_threads(options.threads)
    if options.verb == "run":
        measure("series_methods", by_cell(cells_of(options), one_cell))
    elif options.verb == "table":
        table(tune=options.tune)
    else:
        picture(options.data if options.data != list(DATA) else ["ettm1", "simbench"])


if __name__ == "__main__":
    main()
