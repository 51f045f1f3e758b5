"""MST and AIM on ``mbi``, which estimates and samples but has no mechanisms; these are written from their papers.

MST: McKenna, Miklau, Sheldon, "Winning the NIST Contest", 2021, arXiv:2108.04978. AIM: McKenna, Mullins, Sheldon,
Miklau, 2022, arXiv:2201.12677. Both are ρ-zCDP under add/remove of one row; the noise is NumPy's, as in the authors'
own code, so what floating point gives away is not counted here.

Run by the interpreter of its environment: ``mbi_peer.py FOLDER``.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import opt_einsum
from job import Codes, Job, read_job, write_result
from zcdp import rho_of

jax.config.update("jax_enable_x64", True)  # both before mbi is imported, which asks for them
jax.config.update("jax_enable_compilation_cache", False)

from mbi import Dataset, Domain, LinearMeasurement, MarkovRandomField, junction_tree  # noqa: E402
from mbi.estimation import MirrorDescent, minimum_variance_unbiased_total  # noqa: E402

Clique = tuple[str, ...]
Floats = np.ndarray[Any, np.dtype[np.float64]]

MST_STEPS = 5_000
AIM_STEPS = 1_000
LAST_STEPS = 5_000
MOST_CELLS = 10_000.0
TOLERANCE = 1e-6


class Tables:
    """The private rows: every answer leaves noisy."""

    def __init__(self, data: Dataset, rng: np.random.Generator) -> None:
        self.data = data
        self._rng = rng

    def measure(self, clique: Clique, sigma: float) -> LinearMeasurement:
        """Return the counts of a clique with Gaussian noise: ρ = 1 / 2σ²."""
        counts = self.exact(clique).ravel()
        return LinearMeasurement(counts + self._rng.normal(0, sigma, counts.size), clique, sigma)

    def choose(self, scores: Mapping[Clique, float], epsilon: float, sensitivity: float = 1.0) -> Clique:
        """Return a clique by the exponential mechanism: ρ = ε² / 8."""
        cliques = list(scores)
        noisy = 0.5 * epsilon / sensitivity * np.array([scores[clique] for clique in cliques])
        return cliques[int(np.argmax(noisy + self._rng.gumbel(size=len(cliques))))]

    def exact(self, clique: Clique) -> Floats:
        """Return exact counts; for the two mechanisms above only."""
        counts: Floats = np.asarray(self.data.project(clique).datavector(flatten=False), dtype=np.float64)
        return counts


def estimate(
    domain: Domain,
    measured: list[LinearMeasurement],
    rows: float,
    steps: int,
    start: MarkovRandomField | None = None,
) -> MarkovRandomField:
    """Return the graphical model of so many rows that explains the measurements.

    The count of rows is handed on because mbi does not take it from measurements over joined codes.
    """
    return MirrorDescent().estimate(domain, measured, rows, iters=steps, warm_start=start, tol=TOLERANCE)


def merged(measured: list[LinearMeasurement]) -> dict[str, Codes]:
    """Return, for each column, where each code goes: those below three standard deviations are joined (MST, §3.3)."""
    mapping = {}
    for one in measured:
        seen = np.asarray(one.noisy_measurement) >= 3 * one.stddev
        if not seen.any():
            seen[:] = True
        codes = np.full(seen.size, int(seen.sum()), dtype=np.int64)
        codes[seen] = np.arange(int(seen.sum()))
        mapping[one.clique[0]] = codes
    return mapping


def mst(data: Dataset, job: Job, rho: float, rng: np.random.Generator) -> tuple[Dataset, dict[str, Any]]:
    """A third of ρ each for single columns, for choosing a tree, and for its pairs."""
    names = list(data.domain.attributes)
    sigma = math.sqrt(3 / (2 * rho))
    singles = [Tables(data, rng).measure((name,), sigma * math.sqrt(len(names))) for name in names]
    mapping = merged(singles)
    tables = Tables(data.compress(mapping), rng)
    domain = tables.data.domain
    measured = [one.compress(mapping, data.domain) for one in singles]
    rows = minimum_variance_unbiased_total(singles)
    model = estimate(domain, measured, rows, MST_STEPS)
    alone = {name: np.asarray(model.project((name,)).datavector()) for name in names}
    scores = {}
    for one, other in itertools.combinations(names, 2):
        guess = np.outer(alone[one], alone[other]) / rows
        scores[one, other] = float(np.abs(tables.exact((one, other)) - guess).sum())
    tree = spanning_tree(tables, scores, names, rho / 3)
    measured += [tables.measure(pair, sigma * math.sqrt(len(tree))) for pair in tree]
    model = estimate(domain, measured, rows, MST_STEPS)
    kept = {name: int(codes.max()) + 1 for name, codes in mapping.items()}
    return model.synthetic_data(rows=job.rows).decompress(mapping), {"tree": tree, "sizes_kept": kept}


def spanning_tree(tables: Tables, scores: dict[Clique, float], names: list[str], rho: float) -> list[Clique]:
    """Choose pairs one by one, heaviest first with noise, until all columns hang together."""
    part = {name: name for name in names}
    tree: list[Clique] = []
    epsilon = math.sqrt(8 * rho / (len(names) - 1))
    while len(tree) < len(names) - 1:
        apart = {pair: score for pair, score in scores.items() if part[pair[0]] != part[pair[1]]}
        chosen = tables.choose(apart, epsilon)
        tree.append(chosen)
        old, new = part[chosen[0]], part[chosen[1]]
        part = {name: new if own == old else own for name, own in part.items()}
    return tree


def aim_workload(domain: Domain, target: str) -> dict[Clique, float]:
    """Return candidates with weights: all pairs, all triples with the target (small enough), and what they hold."""
    names = list(domain.attributes)
    pairs = list(itertools.combinations(names, 2))
    triples = [domain.canonical((*pair, target)) for pair in pairs if target not in pair]
    asked = [clique for clique in (*pairs, *triples) if domain.size(clique) <= MOST_CELLS]
    closed = {part for clique in asked for size in (1, 2, 3) for part in itertools.combinations(clique, size)}
    closed |= {(name,) for name in names}
    return {part: float(sum(len(set(part) & set(clique)) for clique in asked)) for part in sorted(closed)}


def answers(model: MarkovRandomField, cliques: Iterable[Clique]) -> dict[Clique, Floats]:
    """Return the model's own counts. NumPy, because compiling one program a clique and round costs minutes."""
    places = {name: place for place, name in enumerate(model.domain.attributes)}
    operands: list[Any] = []
    for clique in model.cliques:
        table = np.asarray(model.potentials[clique].datavector(flatten=False), dtype=np.float64)
        operands += [np.exp(table - table.max()), [places[name] for name in clique]]
    found = {}
    for clique in cliques:
        table = opt_einsum.contract(*operands, [places[name] for name in clique], optimize="greedy")
        found[clique] = table * (float(model.total) / table.sum())
    return found


def aim(data: Dataset, job: Job, rho: float, rng: np.random.Generator) -> tuple[Dataset, dict[str, Any]]:
    """Measure, round after round, what the model so far explains worst (AIM, Algorithm 2)."""
    tables, domain = Tables(data, rng), data.domain
    weights = aim_workload(domain, job.target)
    rounds = job.rounds * len(domain)
    sigma, epsilon = math.sqrt(rounds / (2 * 0.9 * rho)), math.sqrt(8 * 0.1 * rho / rounds)
    measured = [tables.measure((name,), sigma) for name in domain.attributes]
    used = len(measured) / (2 * sigma**2)
    rows = minimum_variance_unbiased_total(measured)
    model = estimate(domain, measured, rows, AIM_STEPS)
    exact = {clique: tables.exact(clique) for clique in weights}
    taken, last, cut = [], False, False
    while not last:
        cut = time.process_time() > job.seconds
        if cut or rho - used < 2 * (1 / (2 * sigma**2) + epsilon**2 / 8):
            sigma, epsilon, last = math.sqrt(1 / (2 * 0.9 * (rho - used))), math.sqrt(8 * 0.1 * (rho - used)), True
        used += 1 / (2 * sigma**2) + epsilon**2 / 8
        allowed = _small_enough(model, weights, min(1.0, used / rho) * job.model_mb)
        guessed = answers(model, allowed)
        bias = math.sqrt(2 / math.pi) * sigma
        scores = {
            clique: weights[clique] * (float(np.abs(exact[clique] - guessed[clique]).sum()) - bias * exact[clique].size)
            for clique in allowed
        }
        clique = tables.choose(scores, epsilon, max(weights[one] for one in allowed))
        measured.append(tables.measure(clique, sigma))
        model = estimate(domain, measured, rows, LAST_STEPS if last else AIM_STEPS, model)
        moved = float(np.abs(answers(model, [clique])[clique] - guessed[clique]).sum())
        taken.append([list(clique), round(sigma, 1), round(time.process_time())])
        if moved <= bias * exact[clique].size:
            sigma, epsilon = sigma / 2, epsilon * 2
    return model.synthetic_data(rows=job.rows), {"rounds": len(taken), "cut_by_clock": cut, "taken": taken}


def _small_enough(model: MarkovRandomField, weights: Mapping[Clique, float], most: float) -> list[Clique]:
    """Return candidates that keep the model within so many MB, and those that it already holds."""
    held = [set(clique) for clique in model.cliques]
    return [
        clique
        for clique in weights
        if any(set(clique) <= own for own in held)
        or junction_tree.hypothetical_model_size(model.domain, [*model.cliques, clique]) <= most
    ]


def main() -> None:
    """Fit one job."""
    folder = Path(sys.argv[1])
    job, codes = read_job(folder)
    np.random.seed(job.seed)  # noqa: NPY002 - mbi samples from the global source
    rho = rho_of(job.epsilon, job.delta)
    data = Dataset({name: codes[:, place] for place, name in enumerate(job.sizes)}, Domain.fromdict(job.sizes))
    made, facts = {"mst": mst, "aim": aim}[job.mechanism](data, job, rho, np.random.default_rng())
    artificial = np.stack([np.asarray(made.data[name], dtype=np.int64) for name in job.sizes], axis=1)
    write_result(folder, job, artificial, {"rho": rho, **facts}, ("mbi", "jax", "numpy"))


if __name__ == "__main__":
    main()
