"""The made-up table of the benchmarks of scale, and a fit of which processor seconds are noted stage by stage."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from results import MEASURED

REGIONS = [f"r{number:02}" for number in range(26)]
JOBS = [f"j{number:02}" for number in range(40)]
COLUMNS = {
    "age": "{type: integer, bounds: [0, 110], missing: true}",
    "hours": "{type: integer, bounds: [0, 99], missing: false}",
    "income": "{type: real, bounds: [0, 1000000], precision: 2, missing: true}",
    "debt": "{type: real, bounds: [-100000, 1000000], precision: 2, missing: false}",
    "score": "{type: real, bounds: [0, 1], precision: 4, missing: false}",
    "visits": "{type: integer, bounds: [0, 10000], missing: false}",
    "born": "{type: date, bounds: [1900-01-01, 2025-01-01], missing: false}",
    "seen": "{type: datetime, bounds: [2020-01-01, 2025-01-01], missing: false}",
    "sex": "{type: category, values: [f, m], missing: false}",
    "region": f"{{type: category, values: [{', '.join(REGIONS)}], missing: false}}",
    "job": f"{{type: category, values: [{', '.join(JOBS)}], other: other, missing: true}}",
    "school": "{type: ordinal, values: [none, primary, secondary, tertiary], missing: false}",
    "married": "{type: boolean, missing: false}",
    "smokes": "{type: boolean, missing: true}",
    "owns": '{type: category, values: ["no", "yes"], missing: false}',
}
EPSILON, DELTA, SEED = 1.0, 1e-9, 0


def make_schema(units: int, columns: Iterable[str], unit: str = "") -> Any:
    """Return the schema of some of the columns."""
    import doublure as db

    lines = "".join(f"  {name}: {COLUMNS[name]}\n" for name in columns)
    return db.Schema.parse(f"doublure: 1\nkind: table\n{unit}units: {units}\ncolumns:\n{lines}")


def measured_fit(data: Any, plan: Any, folder: Path, **options: Any) -> tuple[Any, dict[str, Any]]:
    """Fit, and return the synthesizer and what the fit took of this process.

    Args:
        data: The data.
        plan: Of them.
        folder: Of the ledger and the run.
        options: Of the fit.
    """
    import doublure as db

    stages: list[tuple[str, float]] = []

    class Told:
        """Notes when each stage began."""

        def stage(self, name: str, total: int | None = None) -> None:
            """Note it."""
            stages.append((name, time.process_time()))

        def at(self, done: int) -> None:
            """Say nothing."""

    ledger = db.Ledger.create(folder / "ledger", dataset="scale", epsilon=10.0, delta=0.1)
    start, before = time.perf_counter(), time.process_time()
    syn = db.fit(data, plan, ledger=ledger, out=folder / "run", seed=SEED, progress=Told(), **options)
    wall, cpu = time.perf_counter() - start, time.process_time() - before
    spent: dict[str, float] = {}
    for (name, at), end in zip(stages, [*(at for _, at in stages[1:]), time.process_time()], strict=True):
        spent[name] = round(spent.get(name, 0.0) + end - at, 2)
    return syn, {
        "method": plan.method, "epsilon": plan.epsilon, "delta": plan.delta, "seed": SEED,
        "date": time.strftime("%Y-%m-%d"), "cpu_seconds": round(cpu, 1), "seconds": round(wall, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000, "load": round(os.getloadavg()[0], 1),
        "cpu_by_stage": spent,
    }  # fmt: skip


def table_plan(units: int, columns: Sequence[str], unit: str = "") -> Any:
    """Return the plan of a fit to some of the columns."""
    import doublure as db

    return db.plan(make_schema(units, columns, unit), method="statistics", epsilon=EPSILON, delta=DELTA)


def by_child(program: str, *words: object) -> dict[str, Any]:
    """Return the row that a program prints last, in a process of its own."""
    ask = [sys.executable, program, *map(str, words)]
    found: dict[str, Any] = json.loads(
        subprocess.run(ask, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )
    return found


def keep(name: str, row: dict[str, Any]) -> None:
    """Append a row to those that are measured."""
    with (MEASURED / f"{name}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
