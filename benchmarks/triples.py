"""Tables of three columns beside those of pairs: what the model makes of them, even where they are exact and free.

On the drawn tables of ``geometry.py``. The four triples are those whose error is furthest above what chance makes, by
the private rows themselves, so that no choice from noisy answers can be better. *Factors*: each column's chances times
a factor by two columns before it, so that its table with them is as counted. *Mixture*: the triples are part of what
the mixture is fitted to. *Counted*: the same from counts with the noise of a tenth of the budget, which is not taken
from others; factors where noise does not explain them.

    python benchmarks/triples.py run [--arms pairs factors mixture counted-factors counted-mixture] [--epsilons 1]
        [--tables 3 4]
    python benchmarks/triples.py table
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import geometry
from dominance import fitted
from doublure.data.tables.opening import open_table
from doublure.methods.statistics.tables import fitting, mixture_fit
from doublure.methods.statistics.tables.fitting import TableFit
from doublure.methods.statistics.tables.mixture_fit import fit_mixture
from doublure.methods.statistics.tables.nodes import NoisyCounts
from doublure.methods.statistics.tables.tree_fit import denoise
from doublure.networks.tree_asked import TreeEvidence
from doublure.networks.tree_draw import TreeDraw
from doublure.networks.tree_tables import Tree
from results import by_cell, finished, mean_and_range, measure

ARMS = ("pairs", "factors", "mixture", "counted-factors", "counted-mixture")
_COUNT, _SHARE, _ROUNDS, _DRAWN, _MOST_CELLS = 4, 0.1, 2, 120_000, 2**18
_REHEARSED = 200
"""Rows below which a fit is the rehearsal of one."""


@dataclass
class Triples:
    """The private rows' codes, and what the fit that is under way does with their triples.

    Attributes:
        arm: Of :data:`ARMS`.
        frame: The private rows.
        factors: Place of a column in the tree -> two places before it, and factors ``(m, m', m'')``.
        rng: The noise.
    """

    arm: str
    frame: Any
    factors: dict[int, list[tuple[int, int, Any]]] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(5))
    chances: Callable[..., Any] = TreeDraw._chances
    rake: Callable[..., Any] = fitting.rake
    fit: Callable[..., Any] = fitting.release_and_fit
    errors: Callable[..., Any] = mixture_fit.squared_errors
    _rows: float = 0.0
    _fit: TableFit | None = None
    _wanted: list[tuple[tuple[int, ...], Any]] = field(default_factory=list)

    def patched(self) -> ExitStack:
        """Return what makes fits use triples."""
        stack, own = ExitStack(), self

        def chances(drawn: TreeDraw, place: int, rows: Any, above: Any, rake: Any) -> Any:
            found = own.chances(drawn, place, rows, above, rake)
            for one, other, factor in own.factors.get(place, ()):
                found = found * factor[drawn.coarse[rows, one], drawn.coarse[rows, other]]
            return found

        stack.enter_context(mock.patch.object(TreeDraw, "_chances", chances))
        stack.enter_context(mock.patch.object(fitting, "rake", self._raked))
        stack.enter_context(mock.patch.object(fitting, "release_and_fit", self._fitted))
        stack.enter_context(mock.patch.object(mixture_fit, "squared_errors", self._squared))
        return stack

    def _fitted(self, job: Any, settings: Any) -> TableFit:
        found = self.fit(job, settings)
        self.factors, self._fit, self._wanted = {}, found, []
        if not self.arm.endswith("mixture") or found.tables.rows < _REHEARSED:
            return found
        shares = np.split(found.probabilities, np.cumsum(found.sizes)[:-1], axis=1)
        drawn = _drawn(fitting.build_generator(job, found).tree)
        order = [0, *(child for _, child in found.tables.edges)]
        codes = self._codes(range(len(shares)))
        chosen = _worst(codes, drawn[:, np.argsort(order)], found.sizes)
        self._rows = len(codes)
        self._wanted = [(triple, self._noisy(_counted(codes, triple, found.sizes))) for triple in chosen]
        rng = np.random.default_rng(job.seed)
        more = [
            fit_mixture(
                found.moments[0], components=count, steps=settings.fit_steps, prior=settings.prior, rng=rng
            ).probabilities
            for count in settings.fits
        ]
        self._wanted = []
        return replace(found, probabilities=np.maximum(np.concatenate(more), 1e-12))

    def _squared(self, probabilities: Any, moments: Any) -> tuple[Any, float, Any]:
        single, misfit, gradient = self.errors(probabilities, moments)
        if not self._wanted:
            return single, misfit, gradient
        starts, more, cells, components = moments.starts, 0.0, moments.cells, len(probabilities)
        for triple, counts in self._wanted:
            places = [slice(starts[own], starts[own] + moments.sizes[own]) for own in triple]
            one, other, last = (probabilities[:, place] for place in places)
            both = (one[:, :, None] * other[:, None]).reshape(components, -1)
            apart = (both.T @ last / components).reshape(counts.shape) - counts / self._rows
            # Chance alone moves an exact count by as much; a noisy one is moved by its noise.
            weight = self._rows**2 / (self._noise**2 if self._noise else np.maximum(counts, 1.0))
            more += float((apart**2 * weight).sum())
            pull = (2 * apart * weight / components / moments.cells).astype(np.float32)
            gradient[:, places[2]] += both @ pull.reshape(-1, counts.shape[2])
            gradient[:, places[0]] += np.einsum("kb,kc,abc->ka", other, last, pull, optimize=True)
            gradient[:, places[1]] += np.einsum("ka,kc,abc->kb", one, last, pull, optimize=True)
            cells += counts.size
        return single, (misfit * moments.cells + more) / cells, gradient

    def _raked(self, tree: Tree, wanted: Any, count: int, rng: Any) -> tuple[Tree, TreeDraw]:
        raked, rows_of_it = self.rake(tree, wanted, count, rng)
        if not self.arm.endswith("factors") or self._fit is None or self._fit.tables.rows < _REHEARSED:
            return raked, rows_of_it
        tables, sizes = self._fit.tables, raked.sizes.tolist()
        codes = self._codes([0, *(child for _, child in tables.edges)])
        rows = len(codes)
        counted = {own: self._noisy(_counted(codes, own, sizes)) for own in _worst(codes, _drawn(raked), sizes)}
        for _ in range(_ROUNDS):
            for own, table in counted.items():
                said = _counted(_drawn(raked), own, sizes) * rows / _DRAWN
                likely = _likely(table, said, self._noise)
                before = self.factors.setdefault(own[2], [])
                before.append((own[0], own[1], (likely + 0.5) / (said + 0.5)))
                raked, rows_of_it = self.rake(tree, wanted, count, rng)
        return raked, rows_of_it

    @property
    def _noise(self) -> float:
        """The deviation of a count's noise; 0 where counts are exact."""
        if self._fit is None or not self.arm.startswith("counted"):
            return 0.0
        events = self._fit.tables._events.values()
        return math.sqrt(_COUNT / _SHARE / sum(event.tables / event.scale**2 for event in events))

    def _noisy(self, counts: Any) -> Any:
        return counts + self._noise * self.rng.standard_normal(counts.shape)

    def _codes(self, order: Any) -> Any:
        tables = self._fit.tables  # type: ignore[union-attr]
        records = tables.encoder.compact(self.frame)
        nodes = [tables.nodes[place] for place in order]
        return np.stack([node.axis(node.coarse).of(records) for node in nodes], axis=1)


def _drawn(tree: Tree) -> Any:
    drawn = TreeDraw(tree, TreeEvidence(tree, {}), _DRAWN, np.random.default_rng(1))
    drawn.draw()
    return drawn.coarse


def _counted(codes: Any, triple: tuple[int, ...], sizes: Any) -> Any:
    shape = tuple(int(sizes[own]) for own in triple)
    cells = np.ravel_multi_index(tuple(codes[:, own] for own in triple), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def _worst(codes: Any, drawn: Any, sizes: Any) -> list[tuple[int, ...]]:
    """Return the triples whose total variation is furthest above what chance makes, by the private rows."""
    scale = len(codes) / len(drawn)

    def above(triple: tuple[int, ...]) -> float:
        real, said = _counted(codes, triple, sizes), _counted(drawn, triple, sizes) * scale
        chance = np.minimum(np.sqrt(2 / np.pi * said * (1 + scale)), 2 * said)
        return float(np.abs(real - said).sum() - chance.sum())

    every = (own for own in combinations(range(len(sizes)), 3) if math.prod(sizes[at] for at in own) <= _MOST_CELLS)
    return sorted(every, key=above, reverse=True)[:_COUNT]


def _likely(counted: Any, said: Any, noise: float) -> Any:
    if not noise:
        return counted
    flat = (-1, counted.shape[2])
    found = denoise(NoisyCounts(counts=counted.reshape(flat), variance=noise**2), said.reshape(flat), ordered=False)
    return found.reshape(counted.shape)


def one_cell(arm: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Make rows once and measure them."""
    frame, schema = geometry.places(seed)
    real = open_table(frame).load(schema).frame
    used = time.process_time()
    with Triples(arm, real).patched():
        made = fitted(schema, frame, epsilon, seed)
    spent = {"processor_seconds": round(time.process_time() - used, 1)}
    return spent | geometry._measures({name: geometry.cells(real[name], made[name]) for name in real})


def table() -> None:
    """Print means over tables."""
    print("| ε | arm | one-way | two-way | three-way | CPU s | tables |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    found = finished("triples")
    for epsilon in sorted({row["cell"][1] for row in found}):
        for arm in ARMS:
            rows = [row for row in found if row["cell"][:2] == [arm, epsilon]]
            shown = (("one_way", ".4f"), ("two_way", ".4f"), ("three_way", ".0f"))
            figures = [mean_and_range([row[key] for row in rows], form) for key, form in shown]
            seconds = statistics.mean(row["processor_seconds"] for row in rows) if rows else 0
            print("| " + " | ".join([f"{epsilon:g}", arm, *figures, f"{seconds:.0f}", str(len(rows))]) + " |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--tables", type=int, nargs="+", default=[3, 4])
    options = parser.parse_args()
    if options.verb == "table":
        table()
        return
    wanted = [(arm, epsilon, seed) for epsilon in options.epsilons for seed in options.tables for arm in options.arms]
    measure("triples", by_cell(wanted, one_cell))


if __name__ == "__main__":
    main()
