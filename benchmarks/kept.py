"""Results as JSON lines: a run that is cut off goes on where it stopped."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from scipy.stats import t as student_t

OUT = Path(__file__).parent / "out"


def finished(name: str) -> list[dict[str, Any]]:
    """Return what was measured so far."""
    path = OUT / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def measure(name: str, cells: Iterable[tuple[Any, ...]], one_cell: Callable[..., dict[str, Any]]) -> None:
    """Measure the cells that are not measured yet, and append each result as soon as it is there."""
    OUT.mkdir(exist_ok=True)
    for cell in cells:
        if list(cell) in [entry["cell"] for entry in finished(name)]:
            continue
        found = {"cell": cell} | one_cell(*cell)
        with (OUT / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)


def interval(differences: list[float]) -> str:
    """Return a mean and Student's 95 % interval."""
    if len(differences) < 2:
        return "–" if not differences else f"{differences[0]:+.4f} (one seed)"
    mean = statistics.mean(differences)
    spread = statistics.stdev(differences) / math.sqrt(len(differences))
    half = float(student_t.ppf(0.975, len(differences) - 1)) * spread
    return f"{mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f})"
