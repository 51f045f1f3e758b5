"""MST and AIM of OpenDP (``opendp.extras.mbi``), all keys public.

PYTHON_OF_THE_ENVIRONMENT opendp_peer.py FOLDER
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl
from job import Codes, Job, read_job, write_result

dp.enable_features("contrib")


def rho_of(epsilon: float, delta: float) -> float:
    """Return the greatest ρ whose (ε, δ) by OpenDP's own conversion is within what is asked."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)

    def spent(rho: float) -> float:
        noisy = dp.m.make_gaussian(*space, scale=(1 / (2 * rho)) ** 0.5)
        return float(dp.c.make_zCDP_to_approxDP(noisy).map(1.0).epsilon(delta))

    low, high = 0.0, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= epsilon else (low, middle)
    return low


def summable(rho: float, columns: int) -> float:
    """Return the next smaller ρ whose parts add up.

    OpenDP 0.16 cuts the share of MST's choices into one part a choice and adds them up again, rounding upwards; where
    that exceeds the share it refuses ("insufficient budget for query"). It depends on ρ and the columns alone.
    """

    def adds_up(tried: float) -> bool:
        rest = _before(_before(tried - tried * 0.5))
        share = _before(_before(rest - rest * dp.mbi.MST().measure_split))
        part, total = _before(share / (columns - 1)), 0.0
        for _ in range(columns - 1):
            rounded = total + part
            below = Fraction(rounded) < Fraction(total) + Fraction(part)
            total = math.nextafter(rounded, math.inf) if below else rounded
        return total <= share

    while not adds_up(rho):
        rho *= 1 - 1e-6
    return rho


def _before(number: float) -> float:
    return math.nextafter(number, -math.inf)


def algorithm(job: Job) -> Any:
    """Return the mechanism with its defaults, within the job's limits."""
    if job.mechanism == "mst":
        return dp.mbi.MST()
    return dp.mbi.AIM(queries=2, max_size=job.model_mb, rounds=job.rounds * len(job.sizes))


def filled(codes: pl.DataFrame, job: Job, rng: np.random.Generator) -> Codes:
    """Return codes; the value "none of the keys", which OpenDP adds to every column, becomes one of the others."""
    columns = []
    for name in job.sizes:
        column = codes[name].to_numpy().astype(np.float64)
        known = column[~np.isnan(column)]
        drawn = rng.choice(known, len(column)) if len(known) else rng.integers(job.sizes[name], size=len(column))
        columns.append(np.where(np.isnan(column), drawn, column).astype(np.int64))
    return np.stack(columns, axis=1)


def main() -> None:
    """Fit one job."""
    folder = Path(sys.argv[1])
    job, codes = read_job(folder)
    np.random.seed(job.seed)  # noqa: NPY002 - mbi samples from the global source
    rho = summable(rho_of(job.epsilon, job.delta), len(job.sizes))
    context = dp.Context.compositor(
        data=pl.DataFrame(codes, schema=list(job.sizes), orient="row").lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    table = (
        context.query(rho=rho)
        .select(*job.sizes)
        .contingency_table(keys={name: list(range(size)) for name, size in job.sizes.items()}, algorithm=algorithm(job))
        .release()
    )
    made = filled(table.synthesize(rows=job.rows), job, np.random.default_rng(job.seed))
    write_result(folder, job, made, {"rho": rho}, ("opendp", "mbi", "jax"))


if __name__ == "__main__":
    main()
