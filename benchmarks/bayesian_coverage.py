"""How often do the Bayesian accountant's confidence bounds hold, and how loose are they?

Triastcyn and Faltings (2022, equation 8) replace the expectation of e^(T c(d)) over gradient distances d by a
Student-t upper bound from m samples. This simulation draws the samples from a known law, so that the truth is known:
log-normal distances (median 0.01, log-sd 0.5) clipped to a public maximum of 0.1, noise std 0.1, q = 1024/60000 and
T = 1856, the setting of the authors' notebooks. Beside it stands the distribution-free empirical Bernstein bound.

    python benchmarks/bayesian_coverage.py [--seed 0] [--trials 2000]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, ndtr

from doublure.private.bayesian import bernstein_log_mean, log_moment, student_t_log_mean

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=2000)
    settings = parser.parse_args()
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
