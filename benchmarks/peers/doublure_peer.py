"""One of our own methods in a process of its own, so that its time and memory are measured like a peer's.

python doublure_peer.py DATA METHOD EPSILON DELTA SEED FOLDER
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import tasks

import doublure as db


def main() -> None:
    """Fit, sample, and leave the rows in the folder."""
    name, method, epsilon, delta, seed, place = sys.argv[1:]
    task, folder = tasks.load(name), Path(place)
    plan = db.plan(task.schema, method=method, epsilon=float(epsilon), delta=float(delta))
    ledger = db.Ledger.create(folder / "ledger", dataset=name, epsilon=100.0, delta=0.01)
    synthesizer = db.fit(task.train, plan, ledger=ledger, seed=int(seed), threads=1)
    synthesizer.sample(len(task.train), seed=int(seed)).to_parquet(folder / "artificial.parquet")
    versions = {"doublure": db.__version__, "torch": version("torch")}
    (folder / "facts.json").write_text(json.dumps({"versions": versions}))


if __name__ == "__main__":
    main()
