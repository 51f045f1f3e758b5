"""Water meters as devices: one household a client, beside the same plan with all records in one place.

    python benchmarks/devices.py daiad_water_hourly_derived.npz OUT [--epsilon 10] [--steps 40] [--lot 30]

Of each household 20 whole days are taken: litres by night, morning, day and evening. Federated and central runs have
the same plan, hence the same noise and the same ε; lots, pairing and noise are drawn afresh. Measured of both: the mean
over the four columns of the largest distance between the distributions of real and of synthetic litres
(Kolmogorov-Smirnov, 0 is best), and processor seconds; federated also rounds and bytes a client, and ε where lots are
known. A row of each goes to ``measured/devices.jsonl``. Needs doublure[federated,torch].
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

import doublure as db
from doublure.federated.simulate import simulate
from results import add

DAYS, MOST = 20, 2000
SEED = 1
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
    rows = syn.sample(20_000, seed=SEED)
    return float(np.mean([ks_2samp(real[name], rows[name]).statistic for name in PARTS]))


def traffic(syn: db.Synthesizer, plan: db.Plan, users: int) -> dict[str, Any]:
    """Return rounds, and bytes of arrays a client: of steps for which coins were tossed, the mean over the coins."""
    told, rate = syn.run["federated"], plan.sample_rate or 1.0
    steps = sum(access.event.steps for access in plan.training if getattr(access.event, "sample_rate", 1.0) < 1)
    lots = [rate * steps * size for size in told.get("bytes_a_step", (0, 0))]
    return {
        "rounds": len(told["rounds"]),
        "missed": sum(bool(each["missed"]) for each in told["rounds"]),
        "sent_to_a_client": round(told["bytes_sent"] / users + lots[0]),
        "sent_by_a_client": round(told["bytes_received"] / users + lots[1]),
        "epsilon_where_lots_are_known": told.get("epsilon_where_lots_are_known"),
    }


def fitted(
    way: str, clients: Path, data: Any, plan: db.Plan, out: Path, room: dict[str, float]
) -> tuple[db.Synthesizer, dict[str, Any]]:
    """Fit one way, with a ledger of its own; return the synthesizer and what the fit took."""
    ledger = db.Ledger.create(out / f"{way}.ledger", dataset=way, **room)
    since, began = time.process_time(), time.perf_counter()
    if way == "federated":
        syn = simulate(clients, plan, ledger=ledger, out=out / way, one_unit=True, seed=SEED, threads=1)
    else:
        syn = db.fit(data, plan, ledger=ledger, out=out / way, seed=SEED, threads=1)
    took = {"cpu_seconds": round(time.process_time() - since), "seconds": round(time.perf_counter() - began)}
    return syn, {"way": way, "claim": syn.guarantee.kind, "seed": SEED, **took}


def keep(row: dict[str, Any], syn: db.Synthesizer, plan: db.Plan) -> None:
    """Keep a row, of a federated fit with its traffic, and print it."""
    if row["way"] == "federated":
        row |= traffic(syn, plan, row["users"])
    add("devices", row)
    print(row, flush=True)


def main() -> None:
    """Fit both ways, and keep a row of each."""
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
    row = {"data": "daiad_water", "method": "dpgan", "epsilon": given.epsilon, "delta": 1e-4, "users": units}
    row |= {"each": DAYS, "steps": given.steps, "lot": given.lot}
    for way in ("federated", "central"):
        room = {"epsilon": 2 * given.epsilon, "delta": 1e-3}
        syn, took = fitted(way, clients, real, plan, given.out, room)
        keep(row | took | {"ks": round(distance(real, syn), 4)}, syn, plan)


if __name__ == "__main__":
    main()
