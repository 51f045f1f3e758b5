"""Water meters as devices: one household a client, beside the same plan with all records in one place.

    python benchmarks/devices.py daiad_water_hourly_derived.npz OUT [--epsilon 10] [--steps 40] [--lot 30]

Of each household 20 whole days are taken: litres by night, morning, day and evening. Federated and central runs have
the same plan, hence the same noise and the same ε; lots, pairing and noise are drawn afresh. Printed of both: the mean
over the four columns of the largest distance between the distributions of real and of synthetic litres
(Kolmogorov-Smirnov, 0 is best), and seconds; federated also rounds and bytes a client. Needs doublure[federated,torch].
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

import doublure as db
from doublure.federated.simulate import simulate

DAYS, MOST = 20, 2000
PARTS = {"night": slice(0, 6), "morning": slice(6, 12), "day": slice(12, 18), "evening": slice(18, 24)}


def households(path: Path) -> pd.DataFrame:
    """Return some whole days of each household that has any."""
    litres, draw, frames = np.load(path)["litres"], np.random.default_rng(0), []
    for number, days in enumerate(litres):
        whole = days[np.isfinite(days).all(axis=1)]
        if len(whole):
            chosen = whole[draw.permutation(len(whole))[:DAYS]]
            parts = {name: chosen[:, hours].sum(axis=1).round().clip(0, MOST) for name, hours in PARTS.items()}
            frames.append(pd.DataFrame(parts).astype(int).assign(house=f"h{number:03d}"))
    return pd.concat(frames, ignore_index=True)


def distance(real: pd.DataFrame, syn: db.Synthesizer) -> float:
    """Return the mean Kolmogorov-Smirnov distance of the columns."""
    rows = syn.sample(20_000, seed=1)
    return float(np.mean([ks_2samp(real[name], rows[name]).statistic for name in PARTS]))


def main() -> None:
    """Fit both ways, and print a row of each."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("data", type=Path)
    asked.add_argument("out", type=Path)
    asked.add_argument("--epsilon", type=float, default=10.0)
    asked.add_argument("--steps", type=int, default=40)
    asked.add_argument("--lot", type=int, default=30)
    given = asked.parse_args()
    real = households(given.data)
    units = real["house"].nunique()
    columns = "\n".join(
        f"  {name}: {{type: integer, bounds: [0, {MOST}], zero_inflated: true, missing: false}}" for name in PARTS
    )
    schema = db.Schema.parse(
        f"doublure: 1\nkind: table\nunit: {{name: household, id: house, max_records: {DAYS}}}\nunits: {units}\n"
        f"federated: {{max_silos: 1}}\ncolumns:\n  house: {{type: id}}\n{columns}\n"
    )
    plan = db.plan(
        schema, method="dpgan", epsilon=given.epsilon, delta=1e-4, steps=given.steps, lot_size=given.lot,
        width=32, critic_width=32, noise_width=8,
    )  # fmt: skip
    clients = given.out / "clients"
    clients.mkdir(parents=True)
    for house, rows in real.groupby("house"):
        rows.to_csv(clients / f"{house}.csv", index=False)
    for way in ("federated", "central"):
        ledger = db.Ledger.create(given.out / f"{way}.ledger", dataset=way, epsilon=2 * given.epsilon, delta=1e-3)
        since = time.perf_counter()
        if way == "federated":
            syn = simulate(clients, plan, ledger=ledger, out=given.out / way, one_unit=True, seed=1, threads=1)
        else:
            syn = db.fit(real, plan, ledger=ledger, out=given.out / way, seed=1, threads=1)
        seconds = time.perf_counter() - since
        print(f"{way}: {units} households, epsilon {given.epsilon:g}, KS {distance(real, syn):.3f}, {seconds:.0f} s")
        if way == "federated":
            told, rate = syn.run["federated"], plan.sample_rate or 1.0
            sent, back = (rate * given.steps * size / 1e3 for size in told["bytes_a_step"])
            print(f"  {len(told['rounds'])} rounds, a client is sent {sent:.0f} kB and sends {back:.0f} kB on average")
            print(f"  epsilon where lots are known: {told['epsilon_where_lots_are_known']:.3g}")


if __name__ == "__main__":
    main()
