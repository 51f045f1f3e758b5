"""Other synthesizers beside ours: the same rows, schema, ε, δ, adjacency and evaluation.

    python benchmarks/peers/run.py environments -o FOLDER     # one virtual environment a peer, with pip
    python benchmarks/peers/run.py run --env-folder FOLDER --data adult --epsilon 1 3 --seeds 0 1 2 \
        --peers mst-mbi aim-mbi mst-dpmm aim-dpmm opendp-mst opendp-aim ours:statistics
    python benchmarks/peers/run.py table

Resumable: finished cells are skipped. Every fit is a process of its own, single-threaded, whose peak memory and
seconds (of the clock and of the processor, starting Python and compiling included) are the system's count. See
docs/evidence/benchmarks.md for what is the same for everybody and what is not.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tasks
import torch
from job import Job, read_result, write_job

from doublure.encode.table import TableEncoder
from results import Case, finished, measure

HERE = Path(__file__).resolve().parent
DELTA = 1e-5
PEERS = {
    "mst-mbi": ("mbi", "mst"),
    "aim-mbi": ("mbi", "aim"),
    "mst-dpmm": ("dpmm", "mst"),
    "aim-dpmm": ("dpmm", "aim"),
    "opendp-mst": ("opendp", "mst"),
    "opendp-aim": ("opendp", "aim"),
    "swift": ("dpsynth_tables", "swift"),
    "aim-gdp": ("dpsynth_tables", "aim-gdp"),
}
BASELINES = ("real", "independent")
SINGLE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def timed(command: list[str], limit: float) -> dict[str, Any]:
    """Run a command to its end; return seconds and its peak memory, or what went wrong."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as heard:
        process = subprocess.Popen(command, env=os.environ | SINGLE, stdout=heard, stderr=subprocess.STDOUT)
        while True:
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
            if ended:
                break
            if time.perf_counter() - start > limit:
                process.kill()
            time.sleep(0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        heard.seek(0)
        words = heard.read().decode(errors="replace")
    seconds = time.perf_counter() - start
    found: dict[str, Any] = {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "peak_mib": round(usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)),
    }
    if process.returncode:
        found["failed"] = f"stopped after {limit:g} s" if seconds > limit else words[-600:]
    return found


def interpreter(environment: str, folder: Path | None) -> str:
    """Return the interpreter of a peer's environment: DOUBLURE_PEER_<NAME>, or the folder of all of them."""
    named = os.environ.get(f"DOUBLURE_PEER_{environment.upper()}")
    if named:
        return named
    if folder is None:
        raise SystemExit(f"say where {environment} is: --env-folder FOLDER, or DOUBLURE_PEER_{environment.upper()}")
    return str(folder / environment / "bin" / "python")


def peer_rows(
    task: tasks.Task, peer: str, epsilon: float, seed: int, arguments: argparse.Namespace
) -> tuple[pd.DataFrame | None, dict[str, Any]]:
    """Let a peer fit codes in public bins, and decode its rows as ours are: uniformly within the bin."""
    environment, mechanism = PEERS[peer]
    encoder = TableEncoder(task.resolved, numerics="bins", bins=arguments.bins)
    job = Job(
        mechanism=mechanism,
        sizes={block.column: block.size for block in encoder.blocks},
        target=task.target,
        epsilon=epsilon,
        delta=DELTA,
        seed=seed,
        rows=len(task.train),
        seconds=arguments.seconds,
        rounds=arguments.aim_rounds,
        model_mb=arguments.model_mb,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_job(folder, job, encoder.compact(task.train).astype(np.int64))
        script = str(HERE / f"{environment}_peer.py")
        found = timed([interpreter(environment, arguments.env_folder), script, str(folder)], arguments.limit)
        if "failed" in found:
            return None, found
        codes, facts = read_result(folder)
    rows = encoder.expand(torch.from_numpy(codes.astype(np.float32)))
    return encoder.decode(rows, np.random.default_rng(seed)), found | facts


def own_rows(
    task: tasks.Task, method: str, epsilon: float, seed: int, limit: float
) -> tuple[pd.DataFrame | None, dict[str, Any]]:
    """Fit one of our methods."""
    with tempfile.TemporaryDirectory() as folder:
        words = [task.name, method, str(epsilon), str(DELTA), str(seed), folder]
        found = timed([sys.executable, str(HERE / "doublure_peer.py"), *words], limit)
        if "failed" in found:
            return None, found
        facts = json.loads((Path(folder) / "facts.json").read_text())
        return pd.read_parquet(Path(folder) / "artificial.parquet"), found | facts


def one_cell(
    task: tasks.Task, peer: str, epsilon: float | None, seed: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Fit and measure one peer."""
    rows: pd.DataFrame | None
    found: dict[str, Any] = {}
    if peer == "real":
        rows = task.train
    elif peer == "independent":
        rows = tasks.independent(task, seed)
    elif peer.startswith("ours:"):
        rows, found = own_rows(task, peer.removeprefix("ours:"), epsilon or 0.0, seed, arguments.limit)
    else:
        rows, found = peer_rows(task, peer, epsilon or 0.0, seed, arguments)
    yes = 0.5 if rows is None else float(rows[task.target].astype(str).isin(task.positive).mean())
    if rows is not None and not 1 < yes * len(rows) < len(rows) - 1:
        return found | {"failed": "collapsed: its rows have one class", **tasks.distances(task, rows)}
    if rows is not None:  # other real rows say how near rows can be that were not learned from
        found |= tasks.scores(task, rows, seed) | tasks.distances(task, task.test if peer == "real" else rows)
    return found


def key_of(data: str, peer: str, epsilon: float | None, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what makes a cell that cell."""
    limits: dict[str, Any] = {}
    if peer in PEERS:
        aim = PEERS[peer][1] == "aim"
        limits["bins"] = arguments.bins
        limits["rounds_a_column"] = arguments.aim_rounds if aim else None
        limits["model_mb"] = arguments.model_mb if aim else None
        limits["cap"] = arguments.seconds if peer == "aim-mbi" else None
    delta = None if epsilon is None else DELTA
    return {"data": data, "peer": peer, "epsilon": epsilon, "delta": delta, "seed": seed, **limits}


def cases(arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for data in arguments.data:
        task = tasks.load(data)
        wanted: list[tuple[str, float | None]] = [(peer, None) for peer in BASELINES]
        wanted += [(peer, epsilon) for peer in arguments.peers for epsilon in arguments.epsilon]
        for seed, (peer, epsilon) in product(arguments.seeds, wanted):
            key = key_of(data, peer, epsilon, seed, arguments)
            yield key, partial(one_cell, task, peer, epsilon, seed, arguments)


def run(arguments: argparse.Namespace) -> None:
    """Measure what is not measured yet."""
    measure("peers", cases(arguments), lambda row: json.dumps({name: row[name] for name in row if name != "taken"}))


def table(arguments: argparse.Namespace) -> None:
    """Print a table for each data set: mean over seeds, and the range."""
    results = finished("peers")
    versions = sorted({pair for row in results for pair in row.get("versions", {}).items()})
    names = dict.fromkeys(name for name, _ in versions)
    each = (f"{name} {' and '.join(own for other, own in versions if other == name)}" for name in names)
    print(f"Python {platform.python_version()}, {', '.join(each)} (a peer's own each)")
    kind = ("epsilon", "peer", "bins", "model_mb", "rounds_a_column", "cap")
    for data in arguments.data:
        of_data = [row for row in results if row["data"] == data]
        real = [row["forest"] for row in of_data if row["peer"] == "real"]
        if not real:
            continue
        heads = ["method", "bins", "ε", "δ", "adjacency", "forest", "share of real", "AUC", "one-way", "two-way"]
        heads += ["seconds", "CPU s", "MiB", "seeds"]
        print(f"\n**{data}**\n\n| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
        kinds = {tuple(row.get(name) for name in kind) for row in of_data}
        for own in sorted(kinds, key=lambda own: (own[0] or 0.0, *map(str, own[1:]))):
            rows = [row for row in of_data if tuple(row.get(name) for name in kind) == own]
            print("| " + " | ".join(map(str, _cells(rows, statistics.mean(real)))) + " |")


def _cells(rows: list[dict[str, Any]], real: float) -> list[object]:
    """Return one line of a table, from all seeds of a peer with the same limits."""
    first, done = rows[0], [row for row in rows if "failed" not in row]
    limits = [f"{first['model_mb']:g} MB"] if first.get("model_mb") else []
    limits += [f"{first['rounds_a_column']} rounds a column"] if first.get("rounds_a_column") else []
    limits += [f"{first['cap']:g} CPU s"] if first.get("cap") else []
    cells: list[object] = [first["peer"] + (f" (at most {', '.join(limits)})" if limits else "")]
    cells += [first.get("bins") or "–", "–", "–", "–"]
    if first["epsilon"] is not None:
        cells[2:] = [first["epsilon"], f"{first['delta']:g}", "add/remove of a row"]
    if not done:
        return [*cells, first["failed"].strip().splitlines()[-1], *["–"] * 7, 0]
    share = statistics.mean(row["forest"] for row in done) / real
    cells += [_spread(done, "forest", 4), f"{share:.3f}", _spread(done, "boosting_auc", 3)]
    cells += [_spread(done, "one_way", 3), _spread(done, "two_way", 3)]
    for name in ("seconds", "cpu_seconds", "peak_mib"):
        own = [row[name] for row in done if name in row]
        cells.append(f"{statistics.mean(own):.0f}" if own else "–")
    return [*cells, len(done)]


def _spread(rows: list[dict[str, Any]], name: str, digits: int) -> str:
    values = [row[name] for row in rows]
    mean, low, high = (f"{value:.{digits}f}" for value in (statistics.mean(values), min(values), max(values)))
    return mean if low == high else f"{mean} ({low}–{high})"


def environments(arguments: argparse.Namespace) -> None:
    """Make one virtual environment a peer from its pinned requirements."""
    for name in sorted({environment for environment, _ in PEERS.values()}):
        place = arguments.out / name
        if not place.exists():
            venv.create(place, with_pip=True)
        pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-r", str(HERE / "requirements" / f"{name}.txt")]
        failed = subprocess.run(pip, check=False).returncode
        print(f"{name}: {'could not be installed' if failed else place}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table", "environments"], nargs="?", default="run")
    parser.add_argument("--data", nargs="+", default=list(tasks.NAMES), choices=tasks.NAMES)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--peers", nargs="*", default=["mst-mbi", "ours:statistics"], help=f"{list(PEERS)}, ours:METHOD"
    )
    parser.add_argument("--bins", type=int, default=32, help="the most public bins of a number, for peers")
    parser.add_argument("--seconds", type=float, default=600.0, help="of the processor; then aim-mbi ends")
    parser.add_argument("--aim-rounds", type=int, default=16, help="into which AIM first cuts its budget, a column")
    parser.add_argument("--model-mb", type=float, default=80.0, help="the largest graphical model of AIM")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which a fit is stopped")
    parser.add_argument("--env-folder", type=Path, help="where `environments` put them")
    parser.add_argument("-o", "--out", type=Path, default=Path("peer-environments"), help="for `environments`")
    arguments = parser.parse_args()
    {"run": run, "table": table, "environments": environments}[arguments.what](arguments)


if __name__ == "__main__":
    main()
