"""Results as JSON lines: a run that is cut off goes on where it stopped, on another machine too.

What was measured lies under ``measured`` and is committed, since it stands behind ``docs/results.md`` and
``docs/evidence/journal``; what is large or can be made again (fits, pictures, pages) lies under ``out`` and is not.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import spearmanr
from scipy.stats import t as student_t

OUT = Path(__file__).parent / "out"
FIGURES = Path(__file__).parent.parent / "docs" / "figures"
MEASURED = Path(__file__).parent / "measured"

Case: TypeAlias = "tuple[Mapping[str, Any], Callable[[], Mapping[str, Any]]]"
"""What tells a result from all others, and how the rest of it is measured."""

Spread: TypeAlias = tuple[float, float, float]
"""Least, mean and most over seeds."""


def finished(name: str, file: Path | None = None) -> list[dict[str, Any]]:
    """Return what was measured so far: kept rows, or those of a file."""
    path = file or MEASURED / f"{name}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def known(name: str, key: Mapping[str, Any], file: Path | None = None) -> bool:
    """Return whether there is a result that agrees with all of a key."""
    wanted = json.loads(json.dumps(key))  # a tuple comes back as a list
    return any(wanted.items() <= row.items() for row in finished(name, file))


def add(name: str, row: Mapping[str, Any], file: Path | None = None) -> None:
    """Append a result and its date."""
    path = file or MEASURED / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    dated = {**row, "date": datetime.now(UTC).date().isoformat()}
    with path.open("a") as opened:
        opened.write(json.dumps(dated) + "\n")


def measure(
    name: str,
    cases: Iterable[Case],
    said: Callable[[Mapping[str, Any]], str] = json.dumps,
    *,
    file: Path | None = None,
) -> None:
    """Measure the cases that are not measured yet; append each result as soon as it is there, and say it.

    Without a file they are appended to the kept rows, which are committed.

    Raises:
        SystemExit: It was interrupted; exit code 130, after a line on how it goes on.
    """
    for key, make in cases:
        if not known(name, key, file):
            try:
                row = {**key, **make()}
            except KeyboardInterrupt:
                print("interrupted: the same command goes on with this case", file=sys.stderr)
                raise SystemExit(130) from None
            add(name, row, file)
            print(said(row), flush=True)
        else:
            print(f"kept: {json.dumps(key)}; take its line out of {file or f'benchmarks/measured/{name}.jsonl'}")


def by_cell(cells: Iterable[tuple[Any, ...]], one_cell: Callable[..., Mapping[str, Any]]) -> Iterator[Case]:
    """Return the cases of a table's cells, which are measured by what tells them apart."""
    return (({"cell": cell}, partial(one_cell, *cell)) for cell in cells)


def spread(values: Sequence[float]) -> Spread:
    """Return least, mean and most."""
    return min(values), statistics.mean(values), max(values)


def mean_and_range(values: Sequence[float], form: str) -> str:
    """Return a mean and, of several values, the least and the most."""
    if not values:
        return "–"
    low, middle, high = (format(value, form) for value in spread(values))
    return middle if len(values) == 1 else f"{middle} ({low}–{high})"


def interval(differences: list[float]) -> str:
    """Return a mean and Student's 95 % interval."""
    if len(differences) < 2:
        return "–" if not differences else f"{differences[0]:+.4f} (one seed)"
    mean, half = mean_and_half(differences)
    return f"{mean:+.4f} ({mean - half:+.4f} to {mean + half:+.4f})"


def mean_and_half(values: list[float]) -> tuple[float, float]:
    """Return a mean and half of Student's 95 % interval; one value says nothing of its spread, and has zero."""
    if len(values) < 2:
        return values[0], 0.0
    error = statistics.stdev(values) / math.sqrt(len(values))
    return statistics.mean(values), float(student_t.ppf(0.975, len(values) - 1)) * error


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> Spread:
    """Return Spearman's correlation between the ends of what 95 of 100 resamples give."""
    rng, values = np.random.default_rng(0), np.array([first, second]).T
    drawn = [values[rng.integers(len(values), size=len(values))] for _ in range(2000)]
    spread = [spearmanr(*sample.T).statistic for sample in drawn if len(np.unique(sample, axis=0)) > 2]
    low, high = np.nanquantile(spread, [0.025, 0.975])
    return float(low), float(spearmanr(*values.T).statistic), float(high)
