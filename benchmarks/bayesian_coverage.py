"""How often do the Bayesian accountant's confidence bounds hold, and how loose are they?

Triastcyn and Faltings (2022, equation 8) replace the expectation of e^(T c(d)) over gradient distances d by a
Student-t upper bound from m samples. This simulation draws the samples from a known law, so that the truth is known:
log-normal distances (median 0.01, log-sd 0.5) clipped to a public maximum of 0.1, noise std 0.1, q = 1024/60000 and
T = 1856, the setting of the authors' notebooks. Beside it stands the distribution-free empirical Bernstein bound.

    python benchmarks/bayesian_coverage.py [--seed 0] [--trials 2000]
    python benchmarks/bayesian_coverage.py --longest .0086 .015 .03 --trials 100    # rows are kept

``--longest`` takes the paper's own regime: q = 64/60000, T = 12,000, m = 8 distances in each step, noise of a hundredth
of the largest distance, and log-normal distances like those of a kept run (median .0018, of 800 the longest .0086),
none of which is longer than it says. Each trial is a whole run, whose bounds are added up as in the accountant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr, ndtri, stdtrit

from command_line import command_line
from doublure.private.bayesian import bernstein_log_mean, log_moment, student_t_log_mean
from results import by_cell, measure

MEDIAN, LOG_STD, LARGEST = 0.01, 0.5, 0.1
NOISE_STD, SAMPLE_RATE, STEPS = 0.1, 1024 / 60000, 1856
ORDERS = (2, 4, 8, 16, 32)
SIZES = (8, 28, 1024)
GAMMA, AUTHORS_GAMMA = 0.01, 2.0**-53  # the authors' default, 1 − 1e-16, in float64


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    order: int
    size: int
    truth: float  # c(λ) of the whole run: T times the cost of one step
    worst: float
    student: float  # coverage, in [0, 1]
    student_authors: float
    bernstein: float
    student_ratio: float  # median bound over truth
    bernstein_ratio: float


def exponents(distances: NDArray[np.float64], order: int) -> NDArray[np.float64]:
    """Return T c(d) for each distance."""
    return STEPS * log_moment(np.minimum(distances, LARGEST) / NOISE_STD, order, SAMPLE_RATE)


def log_truth(order: int) -> float:
    """Return log E[e^(T c(d))], by the midpoint rule below the maximum and exactly at it."""
    clipped_at = math.log(LARGEST / MEDIAN) / LOG_STD
    edges = np.linspace(-9.0, clipped_at, 200_001)
    middles = (edges[:-1] + edges[1:]) / 2
    masses = np.diff(ndtr(edges))
    inside = logsumexp(exponents(MEDIAN * np.exp(LOG_STD * middles), order), b=masses)
    return float(np.logaddexp(inside, exponents(np.array([LARGEST]), order)[0] + math.log(ndtr(-clipped_at))))


def simulate(order: int, size: int, trials: int, rng: np.random.Generator) -> Row:
    """Draw ``trials`` samples of ``size`` distances and compare each bound with the truth."""
    truth, worst = log_truth(order), float(exponents(np.array([LARGEST]), order)[0])
    bounds = np.empty((trials, 3))
    for trial in range(trials):
        values = exponents(MEDIAN * np.exp(LOG_STD * rng.standard_normal(size)), order)
        bounds[trial] = (
            student_t_log_mean(values, GAMMA),
            student_t_log_mean(values, AUTHORS_GAMMA),
            bernstein_log_mean(values, GAMMA, worst),
        )
    coverage = (bounds >= truth).mean(axis=0)
    ratios = np.median(bounds, axis=0) / truth
    return Row(
        order=order,
        size=size,
        truth=truth,
        worst=worst,
        student=float(coverage[0]),
        student_authors=float(coverage[1]),
        bernstein=float(coverage[2]),
        student_ratio=float(ratios[0]),
        bernstein_ratio=float(ratios[2]),
    )


REGIME = {"median": 0.0018, "of_800": 0.0086, "sigma": 0.01, "rate": 64 / 60000, "steps": 12_000, "distances": 8}
REGIME_ORDERS = (4, 8, 16)
REGIME_GAMMA = 1e-11 / REGIME["steps"] / 16
"""A tenth of δ_μ = 1e-10 over all steps and the 16 orders."""


def tail(longest: float, order: int, seed: int, trials: int) -> dict[str, float]:
    """Return how often the sum of a run's Student-t bounds is at least the true cost, and that cost."""
    rng, steps, size = np.random.default_rng(seed), int(REGIME["steps"]), int(REGIME["distances"])
    spread = math.log(REGIME["of_800"] / REGIME["median"]) / float(ndtri(1 - 1 / 800))
    grid = np.linspace(0.0, longest, 4001)
    costs = steps * log_moment(grid / REGIME["sigma"], order, REGIME["rate"])
    edges = np.linspace(-9.0, math.log(longest / REGIME["median"]) / spread, 200_001)
    middles = REGIME["median"] * np.exp(spread * (edges[:-1] + edges[1:]) / 2)
    inside = logsumexp(np.interp(middles, grid, costs), b=np.diff(ndtr(edges)))
    truth = float(np.logaddexp(inside, costs[-1] + math.log(ndtr(-edges[-1]))))
    held, factor = 0, -float(stdtrit(size - 1, REGIME_GAMMA)) / math.sqrt(size - 1)
    for _ in range(trials):
        drawn = np.minimum(REGIME["median"] * np.exp(spread * rng.standard_normal((steps, size))), longest)
        values = np.interp(drawn, grid, costs)
        top = values.max(axis=1, keepdims=True)
        excess = np.expm1(values - top)
        bounds = top[:, 0] + np.log1p(excess.mean(axis=1) + factor * excess.std(axis=1))
        held += bool(bounds.sum() / steps >= truth)
    return {"truth": truth, "held": held / trials}


def main() -> None:
    settings = command_line(__doc__, seed=0, trials=2000, longest=dict(type=float, nargs="*", default=[]))
    if settings.longest:
        cells = [
            (longest, order, settings.seed, settings.trials) for longest in settings.longest for order in REGIME_ORDERS
        ]
        measure("bayesian_tail", by_cell(cells, tail))
        return
    rng = np.random.default_rng(settings.seed)
    print(f"`python benchmarks/bayesian_coverage.py --seed {settings.seed} --trials {settings.trials}`\n")
    print("| λ | m | true cost | worst case | t 99 %: held | t 1−1e-16: held | Bernstein 99 %: held |", end="")
    print(" t / truth | Bernstein / truth |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for order in ORDERS:
        for size in SIZES:
            row = simulate(order, size, settings.trials, rng)
            print(
                f"| {row.order} | {row.size} | {row.truth:.4g} | {row.worst:.4g} | {row.student:.1%} | "
                f"{row.student_authors:.1%} | {row.bernstein:.1%} | "
                f"{row.student_ratio:.3g} | {row.bernstein_ratio:.3g} |"
            )
    print("\nCosts are c(λ) of the whole run (T steps alike); the last two columns are medians of the 99 % bounds.")


if __name__ == "__main__":
    main()
