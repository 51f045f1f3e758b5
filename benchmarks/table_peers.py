"""Other synthesizers on tables that nobody tuned for, measured as ours are (:mod:`tables`).

Peers learn codes: numbers in 20 public bins, or in the cells picked by hand in which targets are set
(:mod:`table_cells`), which is a help that nobody has who was not shown the data. Beside credit and NIST's excerpt,
NIST's nine features at δ = 1e-5: 1000 · (1 − mean total variation of all pairs), ages in fives and as they are; there
every age is a code.

    python benchmarks/table_peers.py run --schemas FOLDER --env-folder FOLDER [--data credit nist nist9] [--epsilon 1]
        [--peers swift mst-mbi aim-gdp ours:statistics] [--cells hand public]
    python benchmarks/table_peers.py table

Resumable; every peer's fit is a process of its own, single-threaded.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from command_line import command_line, some, told

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from job import Job, read_result, write_job
from run import PEERS, interpreter, timed

import doublure as db
import tables
from adult import SHARED
from doublure.data.tables.opening import open_table
from doublure.encode.table import TableEncoder
from doublure.schema import Schema
from results import Case, finished, measure
from table_cells import EDGES, coded

NINE = ("nist_acs_ma2019.csv.gz", "nist_ma2019_9features.schema.yaml", "AGEP", 1e-5)
_YEARS, _BINS = 5, 20


class ByHand:
    """Codes in cells picked by hand, and numbers drawn evenly within them."""

    def __init__(self, name: str, schema: Schema) -> None:
        self._edges = {column: np.array(edges) for column, edges in EDGES[name].items()}
        self._name, self._schema = name, schema
        learned = {column: facts for column, facts in schema.columns.items() if facts.type != "id"}
        self._domains = {
            column: [*map(str, getattr(facts, "domain", ())), *([""] if facts.missing is not False else [])]
            for column, facts in learned.items()
        }
        self.sizes = {
            column: len(self._edges[column]) - 1 + (facts.missing is not False)
            if column in self._edges
            else len(self._domains[column])
            for column, facts in learned.items()
        }

    def codes(self, frame: pd.DataFrame) -> Any:
        """Return ``(N, columns)`` codes."""
        return np.stack([self._coded(column, frame[column]) for column in self.sizes], axis=1)

    def _coded(self, column: str, rows: pd.Series[Any]) -> Any:
        if column in self._edges:
            return coded(self._name, column, rows)
        texts = rows.astype(object).where(rows.notna(), "").astype(str)
        return pd.Categorical(texts, self._domains[column]).codes.astype(int)

    def rows(self, codes: Any, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows as the schema reads them."""
        made = {}
        for place, column in enumerate(self.sizes):
            own = codes[:, place]
            if column not in self._edges:
                made[column] = np.array(self._domains[column], dtype=object)[own]
                continue
            edges = self._edges[column]
            low = edges[np.minimum(own, len(edges) - 2)]
            wide = edges[np.minimum(own, len(edges) - 2) + 1] - low
            texts = (low + np.floor(rng.random(len(own)) * wide)).astype(int).astype(str).astype(object)
            made[column] = np.where(own == len(edges) - 1, self._missing(column), texts)
        texts = pd.DataFrame(made)
        for column in texts:
            if column not in self._edges:
                texts[column] = texts[column].where(texts[column] != "", self._missing(column))
        for column in set(self._schema.columns) - set(texts):  # ids
            texts[column] = np.arange(1, len(texts) + 1).astype(str)
        return open_table(texts).load(self._schema).frame

    def _missing(self, column: str) -> str:
        written = self._schema.columns[column].missing
        return str(written[0]) if isinstance(written, (tuple, list)) else ""


class Public:
    """Codes in public bins, as peers have them elsewhere."""

    def __init__(self, schema: Schema, bins: int) -> None:
        self._encoder = TableEncoder(schema.resolve({}), numerics="bins", bins=bins)
        self.sizes = {block.column: block.size for block in self._encoder.blocks}

    def codes(self, frame: pd.DataFrame) -> Any:
        """Return ``(N, columns)`` codes."""
        return self._encoder.compact(frame).astype(np.int64)

    def rows(self, codes: Any, rng: np.random.Generator) -> pd.DataFrame:
        """Return rows as the schema reads them."""
        return self._encoder.decode(self._encoder.expand(torch.from_numpy(codes.astype(np.float32))), rng)


def nine(folder: Path) -> tuple[pd.DataFrame, Schema]:
    """Return NIST's nine features, as texts, and their public facts."""
    schema = Schema.load(folder / NINE[1])
    frame = pd.read_csv(SHARED / NINE[0], dtype=str, keep_default_na=False)
    return frame[list(schema.columns)], schema


def k_marginal(real: pd.DataFrame, made: pd.DataFrame, years: int) -> float:
    """Return the score of all pairs of columns, ages in cells of so many years."""
    codes = {}
    for name in real:
        both = pd.concat([real[name], made[name]]).astype(object)
        both = both.where(both.notna(), "").astype(str)
        both = both.astype(float) // years if name == NINE[2] else both
        codes[name] = np.split(np.unique(both, return_inverse=True)[1], [len(real)])
    return 1000 * (1 - statistics.mean(tables._apart(codes, pair) for pair in combinations(codes, 2)))


def one_cell(name: str, peer: str, cells: str, epsilon: float, seed: int, given: argparse.Namespace) -> dict[str, Any]:
    """Fit one peer once and measure it."""
    if name == "nist9":
        private, schema = nine(given.schemas)
        delta, rows = NINE[3], (private, private)
    else:
        rows, delta = tables.split(name), tables.DELTA
        schema = tables.schema_of(name, given.schemas, 1)
    frame = open_table(rows[0][list(schema.columns)]).load(schema).frame
    if peer.startswith("ours:"):
        made, found = _ours(peer.removeprefix("ours:"), schema, rows[0], epsilon, delta, seed)
    else:
        coding = ByHand(name, schema) if cells == "hand" else Public(schema, _BINS if name != "nist9" else 100)
        environment, mechanism = PEERS[peer]
        job = Job(
            mechanism=mechanism, sizes=coding.sizes, target=next(iter(coding.sizes)), epsilon=epsilon, delta=delta,
            seed=seed, rows=len(frame), seconds=given.limit, rounds=16, model_mb=80.0,
        )  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            write_job(Path(folder), job, coding.codes(frame))
            script = str(Path(__file__).parent / "peers" / f"{environment}_peer.py")
            found = timed([interpreter(environment, given.env_folder), script, folder], given.limit)
            if "failed" in found:
                return found
            codes, facts = read_result(Path(folder))
        found, made = found | facts, coding.rows(codes, np.random.default_rng(seed))
    if name != "nist9":
        return found | tables.measures(name, schema, rows, made)
    return found | {"k_marginal_fives": k_marginal(frame, made, _YEARS), "k_marginal": k_marginal(frame, made, 1)}


def _ours(
    method: str, schema: Schema, rows: pd.DataFrame, epsilon: float, delta: float, seed: int
) -> tuple[pd.DataFrame, dict[str, Any]]:
    plan = db.plan(schema, method=method, epsilon=epsilon, delta=delta)
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="nobody tuned", epsilon=100.0, delta=0.1)
        used = time.process_time()
        synthesizer = db.fit(rows, plan, ledger=ledger, seed=seed, threads=1)
        used = time.process_time() - used
    return synthesizer.sample(len(rows), seed=seed), {"cpu_seconds": round(used, 1)}


def cases(given: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for epsilon, name, peer, cells, seed in product(given.epsilon, given.data, given.peers, given.cells, given.seeds):
        own = "as they are" if peer.startswith("ours:") else "public" if name == "nist9" else cells
        delta = NINE[3] if name == "nist9" else tables.DELTA
        key = {"data": name, "peer": peer, "cells": own, "epsilon": epsilon, "delta": delta, "seed": seed}
        yield key, partial(one_cell, name, peer, own, epsilon, seed, given)


def table() -> None:
    """Print what was measured."""
    shown = {"one_way": ".4f", "two_way": ".3f", "three_way": ".0f", "boosting_auc": ".3f", "k_marginal_fives": ".0f",
             "k_marginal": ".0f", "cpu_seconds": ".0f"}  # fmt: skip
    heads = ["data", "ε", "δ", "method", "cells", *shown]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in sorted(finished("table_peers"), key=lambda row: (row["data"], row["epsilon"], row["peer"])):
        figures = [format(row[name], form) if name in row else "–" for name, form in shown.items()]
        named = [row[name] for name in ("data", "epsilon", "delta", "peer", "cells")]
        print(f"| {' | '.join(map(str, [*named, *figures]))} |")


def main() -> None:
    """Read the command line."""
    given = command_line(
        __doc__, ["run", "table"], schemas=told(Path, "a folder with the schemas of all three"),
        data=some(["credit", "nist", "nist9"]),
        peers=told(["swift", "mst-mbi"], f"{list(PEERS)}, ours:METHOD"),
        cells=some(["hand", "public"]), epsilon=[1.0], seeds=[0],
        limit=told(7200.0, "seconds of the clock after which a fit is stopped"),
        env_folder=told(Path, "where peers' environments are"),
    )  # fmt: skip
    if given.verb == "table":
        table()
    else:
        measure("table_peers", cases(given))


if __name__ == "__main__":
    main()
