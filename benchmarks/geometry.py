"""A table of tight geometry: longitude, latitude, tract and county say nearly the same, and few columns beside them.

No public table of ours is like it, so that it is drawn: people gather in cities and their quarters, tracts are nearest
centres, counties are tracts together, and wealth goes with the quarter. Each seed is another table. Defaults learn the
coordinates; with *equal cells* ours and peers learn the cells in which rows are judged (20 quantile cells of the
private rows, repeated values apart), which nobody has who was not shown the data.

    python benchmarks/geometry.py run [--arms ours unscored unvoted cells resampled mst-mbi aim-mbi] [--epsilons 1 10]
        [--tables 3 4 telco] [--env-folder FOLDER] [--limit 400]
    python benchmarks/geometry.py table

Tables of ``dominance.py`` can be named beside drawn ones, to compare in equal cells there too.

Counties follow from tracts: how many rows have a wrong one is measured with votes of codes, and without.

AIM ends after so many seconds of the processor; what is left of its budget goes into one last round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from command_line import command_line, some

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from job import Job, read_result, write_job
from run import PEERS, interpreter, timed

from dominance import ARMS, DELTA, SETS, fitted, schema_of, split
from doublure.data.tables.opening import open_table
from doublure.schema import Schema
from results import by_cell, finished, mean_and_range, measure
from tables import apart, cells

_ROWS, _CITIES, _QUARTERS, _TRACTS, _COUNTIES = 15_000, 7, 12, 90, 8
_WEST, _SOUTH, _EAST, _NORTH = -71.6, 42.2, -70.8, 42.8
_TRIPLES = 200
_ARMS = ["ours", "unscored", "unvoted", "cells", "resampled", "mst-mbi", "aim-mbi"]


def places(seed: int) -> tuple[pd.DataFrame, Schema]:
    """Return a table's rows, as texts, and its public facts."""
    rng = np.random.default_rng(seed)
    low, high = np.array([_WEST, _SOUTH]), np.array([_EAST, _NORTH])
    span = high - low
    cities = rng.uniform(low, high, (_CITIES, 2))
    quarters = np.repeat(cities, _QUARTERS, axis=0) + rng.normal(0, span / 18, (_CITIES * _QUARTERS, 2))
    quarter = rng.choice(len(quarters), _ROWS, p=rng.dirichlet(np.full(len(quarters), 0.5)))
    point = np.clip(quarters[quarter] + rng.normal(0, span / 120, (_ROWS, 2)), low, high)
    near = quarters[rng.permutation(len(quarters))[: _TRACTS * 2 // 3]]
    centres = np.concatenate([near, rng.uniform(low, high, (_TRACTS - len(near), 2))])
    tract = _nearest(point, centres)
    county = _nearest(centres, rng.uniform(low, high, (_COUNTIES, 2)))[tract]
    wealth = rng.normal(0, 1, len(quarters))[quarter]
    kind = (rng.random((_ROWS, 4)) < np.array([0.2, 0.5, 0.8, 1.0])).argmax(1)
    kind = np.where(rng.random(_ROWS) < 0.3, 3 * (wealth > 0), kind)
    frame = pd.DataFrame(
        {
            "lon": point[:, 0].round(4),
            "lat": point[:, 1].round(4),
            "tract": [f"T{own:02d}" for own in tract],
            "county": [f"C{own}" for own in county],
            "kind": [f"k{own}" for own in kind],
            "value": np.exp(rng.normal(6 + 0.5 * wealth + 0.2 * kind, 0.7)).round().clip(1, 20_000).astype(int),
            "hour": rng.normal(13 + 3 * (kind == 1) - 2 * (kind == 2), 4).round().clip(0, 23).astype(int),
            "month": rng.integers(1, 13, _ROWS),
        }
    ).astype(str)
    columns = {
        "lon": {"type": "real", "bounds": [_WEST, _EAST], "precision": 4},
        "lat": {"type": "real", "bounds": [_SOUTH, _NORTH], "precision": 4},
        "tract": {"type": "category", "values": [f"T{own:02d}" for own in range(_TRACTS)]},
        "county": {"type": "category", "values": [f"C{own}" for own in range(_COUNTIES)]},
        "kind": {"type": "category", "values": [f"k{own}" for own in range(4)]},
        "value": {"type": "integer", "bounds": [1, 20_000]},
        "hour": {"type": "integer", "bounds": [0, 23]},
        "month": {"type": "integer", "bounds": [1, 12]},
    }
    return frame, _schema(columns)


def _nearest(points: Any, centres: Any) -> Any:
    return ((points[:, None] - centres[None]) ** 2).sum(2).argmin(1)


def _schema(columns: dict[str, Any], units: int = _ROWS) -> Schema:
    unit = {"name": "row", "id": None, "max_records": 1}
    return Schema.from_plain(
        {"doublure": 1, "kind": "table", "unit": unit, "units": units, "defaults": {"missing": False},
         "columns": columns}
    )  # fmt: skip


def one_cell(arm: str, epsilon: float, seed: int | str, given: argparse.Namespace) -> dict[str, Any]:
    """Make rows once and measure them."""
    frame, schema = places(seed) if isinstance(seed, int) else _real(seed)
    real = open_table(frame).load(schema).frame
    if not isinstance(seed, int):
        real, seed = real[[name for name, facts in schema.columns.items() if facts.modelled]], 0
    if arm in ARMS:
        used = time.process_time()
        made = ARMS[arm](schema, frame, epsilon, seed)
        spent = {"processor_seconds": round(time.process_time() - used, 1)}
        if "county" in real:
            lies_in = dict(zip(real["tract"].astype(str), real["county"].astype(str), strict=True))
            known = made["tract"].astype(str).map(lies_in)
            spent["wrong_county"] = float((known.notna() & (known != made["county"].astype(str))).mean())
        return spent | _measures({name: cells(real[name], made[name]) for name in real})
    codes = np.stack([np.unique(cells(real[name], real[name])[0], return_inverse=True)[1] for name in real], axis=1)
    found, spent = _from_cells(arm, epsilon, seed, codes, schema, given)
    return spent | (
        {} if found is None else _measures({name: (codes[:, at], found[:, at]) for at, name in enumerate(real)})
    )


def _real(name: str) -> tuple[pd.DataFrame, Schema]:
    train, _ = split(name)
    return train, schema_of(name, len(train))


def _from_cells(
    arm: str, epsilon: float, seed: int, codes: Any, schema: Schema, given: argparse.Namespace
) -> tuple[Any, dict[str, Any]]:
    """Return rows ``(N, columns)`` that were learnt from cells, and what they cost."""
    learned = {name: facts for name, facts in schema.columns.items() if facts.modelled}
    sizes = {name: int(own) + 1 for name, own in zip(learned, codes.max(0), strict=True)}
    if arm == "resampled":
        return codes[np.random.default_rng(seed).integers(0, len(codes), len(codes))], {}
    if arm == "cells":
        ordered = [facts.bounded for facts in learned.values()]
        columns = {
            name: {"type": "integer", "bounds": [0, size - 1]} if own
            else {"type": "category", "values": [str(code) for code in range(size)]}
            for own, (name, size) in zip(ordered, sizes.items(), strict=True)
        }  # fmt: skip
        used = time.process_time()
        made = fitted(_schema(columns, len(codes)), pd.DataFrame(codes.astype(str), columns=list(sizes)), epsilon, seed)
        return made.astype(str).astype(float).to_numpy().astype(int), {
            "processor_seconds": round(time.process_time() - used, 1)
        }
    environment, mechanism = PEERS[arm]
    job = Job(
        mechanism=mechanism, sizes=sizes, target=next(iter(sizes)), epsilon=epsilon, delta=DELTA, seed=seed,
        rows=len(codes), seconds=given.limit, rounds=16, model_mb=80.0,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        write_job(Path(folder), job, codes)
        script = str(Path(__file__).parent / "peers" / f"{environment}_peer.py")
        found = timed([interpreter(environment, given.env_folder), script, folder], 10 * given.limit)
        if "failed" in found:
            return None, found
        made, facts = read_result(Path(folder))
    return made, {"processor_seconds": found["cpu_seconds"], "cut_by_clock": facts.get("cut_by_clock", False)}


def _measures(coded: dict[str, Any]) -> dict[str, float]:
    names, draw = list(coded), np.random.default_rng(7)
    triples = [tuple(draw.choice(names, 3, replace=False)) for _ in range(_TRIPLES)]
    return {
        "one_way": statistics.mean(apart(coded, (name,)) for name in names),
        "two_way": statistics.mean(apart(coded, pair) for pair in combinations(names, 2)),
        "three_way": 1000 * (1 - statistics.mean(apart(coded, triple) for triple in triples)),
    }


def table() -> None:
    """Print means over tables."""
    print("| table | ε | arm | one-way | two-way | three-way | wrong county | CPU s | tables |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    found = [(row["cell"][2] if row["cell"][2] in SETS else "drawn", row) for row in finished("geometry")]
    for name, arm, epsilon in sorted(
        {(name, *row["cell"][:2]) for name, row in found}, key=lambda key: (key[0], key[2], _ARMS.index(key[1]))
    ):
        rows = [row for own, row in found if own == name and row["cell"][:2] == [arm, epsilon]]
        shown = (("one_way", ".4f"), ("two_way", ".4f"), ("three_way", ".0f"))
        shown += (("wrong_county", ".4f"), ("processor_seconds", ".0f"))
        figures = [mean_and_range([row[key] for row in rows if key in row], form) for key, form in shown]
        print("| " + " | ".join([name, f"{epsilon:g}", arm, *figures, str(len(rows))]) + " |")


def _table(text: str) -> int | str:
    return text if text in SETS else int(text)


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], arms=some(_ARMS), epsilons=[1.0],
        tables=dict(type=_table, nargs="+", default=[3, 4], help="a seed, or a table of dominance.py"),
        env_folder=Path(), limit=400.0,
    )  # fmt: skip
    if options.verb == "table":
        table()
        return
    wanted = [(arm, epsilon, seed) for epsilon in options.epsilons for seed in options.tables for arm in options.arms]
    measure("geometry", by_cell(wanted, lambda *cell: one_cell(*cell, options)))


if __name__ == "__main__":
    main()
