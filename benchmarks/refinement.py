"""Refinement of drawn rows against all counted tables by exchanges: post-processing that costs no ε.

Two rows exchange their values of a column where that brings the tables of all counted pairs nearer to what was
released, each cell weighted by the precision of its count. The columns alone stay as they are, so does each row's
target, and a missing cell stays missing. *As drawn* are the rows of a fit. *Noisy*: towards the noisy tables, until
they differ from those by no more than the noise. *Denoised*: towards the tables as far as noise lets them be believed,
around what the rows say. *Denoised, to the end*: sixteen sweeps of it. All are of the same fit.

    python benchmarks/refinement.py run [--data nist telco] [--epsilons 1] [--seeds 0]
    python benchmarks/refinement.py table
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any
from unittest import mock

import numpy as np

from dominance import DELTA, SETS, measures, schema_of, split, synthesizer
from doublure.methods.statistics.binning import james_stein_counts
from doublure.methods.statistics.tables import fitting
from doublure.methods.statistics.tables.fitting import TableFit
from doublure.networks.tree import TreeGenerator
from results import by_cell, finished, mean_and_range, measure

ARMS: Mapping[str, tuple[bool, int]] = {
    "as drawn": (False, 0), "noisy": (False, 4), "denoised": (True, 4), "denoised, to the end": (True, 16),
}  # fmt: skip
"""Whether targets are denoised, and sweeps over all columns at most."""
_AT_ONCE = 16


class Refinement:
    """Exchanges between drawn rows, towards the pairs of a fit.

    Args:
        fit: A fit to noisy tables.
        sweeps: Most sweeps.
        denoised: Whether targets are the tables as far as noise lets them be believed.
    """

    def __init__(self, fit: TableFit, sweeps: int, *, denoised: bool) -> None:
        self._tables, self._sweeps, self._denoised = fit.tables, sweeps, denoised
        self.misfits: list[float] = []

    def refined(self, rows: Any) -> Any:
        """Return rows ``(N, parts)`` with values exchanged."""
        tables, rng, rows = self._tables, np.random.default_rng(0), rows.copy()
        nodes = tables.nodes
        codes = np.stack([node.axis(node.coarse).of(rows) for node in nodes], axis=1)
        sizes = [node.size for node in nodes]
        scale = len(rows) / tables.rows
        known = {}
        for pair, noisy in tables.pairs.items():
            counts, variance = noisy.counts.sum(2) * scale, noisy.variances.sum(2) * scale**2
            if self._denoised:
                said = _counted(codes, pair, sizes)
                counts = james_stein_counts(counts, said, variance=float(variance.mean()))
            known[pair] = counts, 1 / variance
        for _ in range(self._sweeps):
            self.misfits.append(self._misfit(codes, known, sizes))
            if not self._denoised and self.misfits[-1] < 1:
                break
            for place, node in enumerate(nodes):
                if node.patterns is None:
                    self._exchange(place, rows, codes, known, rng)
        self.misfits.append(self._misfit(codes, known, sizes))
        return rows

    def _misfit(self, codes: Any, known: Mapping[tuple[int, int], Any], sizes: Any) -> float:
        squared = [
            float(((_counted(codes, pair, sizes) - own) ** 2 * more).sum()) for pair, (own, more) in known.items()
        ]
        return sum(squared) / max(1, sum(own.size for own, _ in known.values()))

    def _exchange(self, place: int, rows: Any, codes: Any, known: Mapping[tuple[int, int], Any], rng: Any) -> None:
        """Exchange one column's values between pairs of rows, in place."""
        node = self._tables.nodes[place]
        tables = []
        for pair, (wanted, precision) in known.items():
            if place in pair:
                other = pair[1 - pair.index(place)]
                turned = (wanted, precision) if pair[0] == other else (wanted.T, precision.T)
                shape = turned[0].shape
                tables.append((other, _shaped(codes, (other, place), shape) - turned[0], turned[1]))
        if not tables:
            return
        there = np.flatnonzero(codes[:, place] < node.size - node.states)
        part = self._tables.target_part
        kinds = rows[there, part] if part >= 0 else np.zeros(len(there))
        order = there[np.lexsort((rng.random(len(there)), kinds))]
        one, other = order[: len(order) // 2 * 2].reshape(-1, 2).T
        same = rows[one, part] == rows[other, part] if part >= 0 else np.ones(len(one), dtype=bool)
        meet = rng.permutation(np.flatnonzero(same & (codes[one, place] != codes[other, place])))
        for start in range(0, len(meet), _AT_ONCE):
            first, second = one[meet[start : start + _AT_ONCE]], other[meet[start : start + _AT_ONCE]]
            mine, theirs = codes[first, place], codes[second, place]
            gain = np.zeros(len(first))
            for beside, surplus, precision in tables:
                p, q = codes[first, beside], codes[second, beside]
                cells = ((p, mine, -1.0), (p, theirs, 1.0), (q, theirs, -1.0), (q, mine, 1.0))
                moved = sum(precision[a, b] * (2 * sign * surplus[a, b] + 1) for a, b, sign in cells)
                gain -= np.where(p == q, 0.0, moved)
            better = np.flatnonzero(gain > 0)
            first, second, mine, theirs = first[better], second[better], mine[better], theirs[better]
            for beside, surplus, _ in tables:
                p, q = codes[first, beside], codes[second, beside]
                for a, b, sign in ((p, mine, -1.0), (p, theirs, 1.0), (q, theirs, -1.0), (q, mine, 1.0)):
                    np.add.at(surplus, (a, b), sign)
            codes[first, place], codes[second, place] = theirs, mine
            own = node.leaves.part
            rows[first, own], rows[second, own] = rows[second, own].copy(), rows[first, own].copy()


def _counted(codes: Any, pair: tuple[int, int], sizes: Any) -> Any:
    return _shaped(codes, pair, (sizes[pair[0]], sizes[pair[1]]))


def _shaped(codes: Any, pair: tuple[int, int], shape: tuple[int, int]) -> Any:
    cells = codes[:, pair[0]] * shape[1] + codes[:, pair[1]]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(float)


def one_cell(name: str, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit once, and measure each arm's rows."""
    train, test = split(name)
    schema = schema_of(name, len(train))
    build, fits, found = fitting.build_generator, [], {}
    call = TreeGenerator.__call__

    def built(job: Any, fit: TableFit) -> Any:
        fits.append(fit)
        return build(job, fit)

    made: dict[str, Any] = {}

    def draws(generator: Any, noise: Any, condition: Any = None) -> Any:
        return now(call(generator, noise, condition))

    now: Callable[[Any], Any] = lambda rows: rows  # noqa: E731
    with mock.patch.object(fitting, "build_generator", built), mock.patch.object(TreeGenerator, "__call__", draws):
        syn = synthesizer(schema, train, epsilon, seed)
        for arm, (denoised, sweeps) in ARMS.items():
            began = time.process_time()
            own = Refinement(fits[-1], sweeps, denoised=denoised)
            now = own.refined if sweeps else (lambda rows: rows)
            made[arm] = syn.sample(len(train), seed=seed)
            spent = time.process_time() - began
            found[arm] = measures(name, schema, (train, test), made[arm]) | {
                "misfits": [round(each, 3) for each in (own.misfits[:1] + own.misfits[-1:])],
                "processor_seconds": round(spent, 1),
            }
    return {"arms": found, "delta": DELTA}


_SHOWN = {"one_way": ".4f", "two_way": ".4f", "three_way": ".0f", "boosting_auc": ".3f", "processor_seconds": ".1f"}


def table() -> None:
    """Print means over seeds."""
    print("| data | ε | arm | one-way | two-way | three-way | AUC | CPU s | misfit before, after | fits |")
    print("|---|--:|---|--:|--:|--:|--:|--:|---|--:|")
    found = finished("refinement")
    for name, epsilon in sorted({tuple(row["cell"][:2]) for row in found}):
        rows = [row["arms"] for row in found if tuple(row["cell"][:2]) == (name, epsilon)]
        for arm in ARMS:
            figures = [mean_and_range([row[arm][key] for row in rows], form) for key, form in _SHOWN.items()]
            misfits = ", ".join(f"{value:g}" for value in rows[0][arm]["misfits"])
            print("| " + " | ".join([name, f"{epsilon:g}", arm, *figures, misfits, str(len(rows))]) + " |")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("--data", nargs="+", default=["nist", "telco"], choices=list(SETS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    if options.verb == "table":
        table()
        return
    wanted = [(name, epsilon, seed) for epsilon in options.epsilons for seed in options.seeds for name in options.data]
    measure("refinement", by_cell(wanted, one_cell))


if __name__ == "__main__":
    main()
