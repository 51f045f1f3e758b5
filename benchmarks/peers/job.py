"""What a peer is handed, and what it hands back. Nothing here needs more than NumPy, so every environment has it.

A job is a folder: ``job.json`` (public facts, ε, δ, seed, limits), ``rows.csv`` (the private rows as codes), and, when
the peer is done, ``artificial.csv`` (its rows as codes) and ``facts.json`` (what it says about itself).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

Codes = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One fit.

    Attributes:
        mechanism: Which of the peer's mechanisms: mst or aim.
        sizes: How many codes each column has; public.
        target: The column that is predicted.
        epsilon: ε under add/remove of one row.
        delta: δ.
        seed: For what may be seeded.
        rows: How many synthetic rows to make.
        seconds: Of the processor, after which to come to an end: what is left of the budget goes into one last round.
        rounds: Into how many rounds a column AIM cuts its budget to begin with; the paper's is 16.
        model_mb: The largest graphical model, in MB of eight-byte cells (AIM).
    """

    mechanism: str
    sizes: dict[str, int]
    target: str
    epsilon: float
    delta: float
    seed: int
    rows: int
    seconds: float
    rounds: int
    model_mb: float


def write_job(folder: Path, job: Job, codes: Codes) -> None:
    """Lay out a job."""
    (folder / "job.json").write_text(json.dumps(asdict(job)))
    _write(folder / "rows.csv", codes, list(job.sizes))


def read_job(folder: Path) -> tuple[Job, Codes]:
    """Return a job and its private rows, (N, columns)."""
    return Job(**json.loads((folder / "job.json").read_text())), _read(folder / "rows.csv")


def write_result(folder: Path, job: Job, codes: Codes, facts: Mapping[str, Any], packages: tuple[str, ...]) -> None:
    """Hand back synthetic rows, (rows, columns) in the job's order of columns."""
    _write(folder / "artificial.csv", codes, list(job.sizes))
    named = {name: version(name) for name in packages}
    (folder / "facts.json").write_text(json.dumps({**facts, "versions": named}))


def read_result(folder: Path) -> tuple[Codes, dict[str, Any]]:
    """Return the synthetic rows and what the peer said about itself."""
    return _read(folder / "artificial.csv"), json.loads((folder / "facts.json").read_text())


def _write(path: Path, codes: Codes, names: list[str]) -> None:
    np.savetxt(path, codes, fmt="%d", delimiter=",", header=",".join(names), comments="")


def _read(path: Path) -> Codes:
    return np.loadtxt(path, dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
