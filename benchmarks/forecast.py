"""Plans' forecasts of their time beside what the fits then take.

    python -m benchmarks.forecast [NAME ...] [--threads 1]      (0: as many as a fit takes that was told nothing)
    python -m benchmarks.forecast --table SCHEMA DATA [--keep]  (a table of one's own: statistics, ε = 1, δ = 1e-6)

Small fits of most methods, on data that comes with the package, with scikit-learn, or is made up. Time is that of the
processor, so that what else the machine does hardly matters; a forecast within two or three times what was measured is
a good one. Measured is the fit alone, without imports, on so many threads; beside it stands its time by the clock.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import doublure as db
from doublure.public import fit as fit_public

MEASURED = Path(__file__).parent / "measured" / "forecast.jsonl"
Case = tuple[db.Plan, Any]


def adult(method: str, epsilon: float = 1.0, **settings: Any) -> Case:
    """The demo, and the README's example."""
    schema = db.Schema.load(db.datasets.adult_schema_path())
    return db.plan(schema, method=method, epsilon=epsilon, delta=1e-6, **settings), db.datasets.demo_split()[0]


def digits(method: str, units: int = 1797, **settings: Any) -> Case:
    """docs/images.md."""
    from sklearn.datasets import load_digits

    found = load_digits()
    schema = db.Schema.parse(f"""
    doublure: 1
    kind: images
    units: {units}
    images: {{shape: [8, 8, 1], range: [0, 16]}}
    label: {{values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], roles: [target, condition]}}
    """)
    data = {"images": found.images[:units], "labels": found.target[:units]}
    return db.plan(schema, method=method, epsilon=10.0, delta=1e-5, **settings), data


def noise_images(method: str, side: int, units: int, **settings: Any) -> Case:
    """Images of nothing: time does not ask what they show."""
    rng = np.random.default_rng(0)
    schema = db.Schema.parse(f"""
    doublure: 1
    kind: images
    units: {units}
    images: {{shape: [{side}, {side}, 1]}}
    label: {{values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], roles: [target, condition]}}
    """)
    data = {
        "images": rng.integers(0, 256, (units, side, side), dtype=np.uint8),
        "labels": rng.integers(0, 10, units),
    }
    return db.plan(schema, method=method, epsilon=10.0, delta=1e-5, **settings), data


def meters(method: str, days: int = 14, length: int = 4, **settings: Any) -> Case:
    """docs/series.md."""
    rng = np.random.default_rng(0)
    moments = pd.date_range("2024-03-04", periods=days * length, freq=f"{24 // length}h")
    readings = pd.concat(
        pd.DataFrame({"meter": f"m{number}", "time": moments, "litres": np.round(90 * rng.random(days * length), 1)})
        for number in range(40)
    )
    schema = db.Schema.parse(f"""
    doublure: 1
    kind: series
    unit: {{name: meter, id: meter, max_records: 7}}
    units: 40
    series: {{time: time, length: {length}, step: {24 // length}h, timezone: Europe/Paris, gaps: missing}}
    channels: {{litres: {{type: real, bounds: [0, 200], precision: 1, missing: true}}}}
    attributes: {{weekend: {{type: boolean, missing: false, from_time: weekend}}}}
    """)
    return db.plan(schema, method=method, epsilon=6.0, delta=1e-3, **settings), readings


def even_digits(folder: str, **settings: Any) -> Case:
    """docs/latent.md: even digits through a generator of odd ones."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images, odd = (found.images * 255 / 16).round().astype(np.uint8)[..., None], found.target % 2 == 1
    shape = db.Schema.parse("{doublure: 1, kind: images, images: {shape: [8, 8, 1]}}")
    facts = {"data": "odd digits", "people": "writers", "licence": "CC BY 4.0", "shared_people": "possible"}
    public = Path(folder) / "public"
    if not public.exists():
        np.savez(Path(folder) / "odd.npz", images=images[odd])
        odd_digits = str(Path(folder) / "odd.npz")
        fit_public(odd_digits, shape, provenance=facts, out=public, seed=1, noise_width=12, steps=300)
    schema = db.Schema.parse("""
    doublure: 1
    kind: images
    units: 900
    images: {shape: [8, 8, 1]}
    label: {values: [0, 2, 4, 6, 8], roles: [target, condition]}
    """)
    made = db.plan(schema, method="latentgan", epsilon=5.0, delta=1e-5, public=str(public), **settings)
    return made, {"images": images[~odd], "labels": found.target[~odd]}


CASES: Mapping[str, Callable[[str], Case]] = {
    "README, statistics": lambda _: adult("statistics"),
    "Adult, guided": lambda _: adult("guided", critic_share=0.3),
    "Adult, dpgan, 200 steps": lambda _: adult("dpgan", epsilon=3.0, steps=200),
    "images.md, guided": lambda _: digits("guided", features=512, fit_steps=50),
    "digits, statistics, 100 steps": lambda _: digits("statistics", fit_steps=100),
    "digits, dpgan, 100 steps": lambda _: digits("dpgan", steps=100),
    "28 x 28, guided, 30 steps": lambda _: noise_images("guided", 28, 4000, fit_steps=30),
    "28 x 28, dpgan, 20 steps": lambda _: noise_images("dpgan", 28, 4000, steps=20),
    "latent.md, latentgan": even_digits,
    "series.md, auto": lambda _: meters("auto"),
    "hours, statistics": lambda _: meters("statistics", length=24),
    "hours, dpgan, 100 steps": lambda _: meters("dpgan", length=24, steps=100),
}


def measured(made: db.Plan, data: Any, threads: int | None) -> tuple[float, float]:
    """Return the seconds that a fit takes: of the processor, and by the clock."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "a.ledger", dataset="a", epsilon=100.0, delta=0.1)
        if isinstance(data, dict):
            np.savez(Path(folder) / "a.npz", **data)
            data = Path(folder) / "a.npz"
        began, clock = time.process_time(), time.perf_counter()
        db.fit(data, made, ledger=ledger, out=Path(folder) / "run", seed=0, threads=threads)
        return time.process_time() - began, time.perf_counter() - clock


def own_table(schema: str, data: str, threads: int | None, *, keep: bool) -> None:
    """Say what the plan of a table forecasts, and what its fit takes; keep both on request."""
    made = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6)
    taken, clock = measured(made, data, threads)
    row = {
        "command": "python -m benchmarks.forecast --table SCHEMA DATA --keep",
        "data": Path(data).name,
        "columns": len(made.schema.columns),
        "units": made.schema.public_units,
        "method": "statistics",
        "epsilon": 1.0,
        "delta": 1e-6,
        "seed": 0,
        "threads": threads,
        "forecast_seconds": made.seconds_estimate,
        "fit_seconds": round(taken, 1),
        "ratio": round(made.seconds_estimate / taken, 2),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    print(json.dumps(row), f"clock {clock:.1f} s")
    if keep:
        with MEASURED.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the cases' names; all of them if none is given")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--table", nargs=2, metavar=("SCHEMA", "DATA"), help="in place of the cases")
    parser.add_argument("--keep", action="store_true", help=f"of the table, in {MEASURED.name}")
    given = parser.parse_args()
    if given.table:
        own_table(*given.table, given.threads or None, keep=given.keep)
        return
    import torch  # noqa: F401 - its import is no part of a fit

    print(f"{'':<34}{'forecast':>10}{'measured':>10}{'ratio':>8}{'clock':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            if given.names and not any(part in name for part in given.names):
                continue
            made, data = case(folder)
            forecast, (taken, clock) = made.seconds_estimate, measured(made, data, given.threads or None)
            print(f"{name:<34}{forecast:>9.1f}s{taken:>9.1f}s{forecast / taken:>8.2f}{clock:>9.1f}s", flush=True)


if __name__ == "__main__":
    main()
