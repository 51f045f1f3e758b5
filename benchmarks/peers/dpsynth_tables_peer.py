"""SWIFT and AIM-GDP of ``dpsynth`` (google/dpsynth, from its repository) on codes, at their own defaults.

All that they release has Gaussian noise, so that a fit is μ-GDP; μ is the largest for which that implies (ε, δ)-DP
under add/remove of one row (Dong, Roth, Su 2022, arXiv:1905.02383, Corollary 2.13). Their noise is NumPy's.

Run by the interpreter of its environment: ``dpsynth_tables_peer.py FOLDER``.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import mbi
import numpy as np
from dpsynth import discrete_mechanisms
from dpsynth.discrete_mechanisms.discrete import DiscreteConfig
from job import read_job, write_result
from scipy.optimize import brentq
from scipy.stats import norm

MECHANISMS = {"swift": discrete_mechanisms.SWIFTConfig, "aim-gdp": discrete_mechanisms.AIMGDPConfig}


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest μ for which μ-GDP implies (ε, δ)-DP."""

    def beyond(mu: float) -> float:
        spent = norm.cdf(-epsilon / mu + mu / 2) - math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
        return float(spent - delta)

    return float(brentq(beyond, 1e-3, 50.0, xtol=1e-12)) * (1 - 1e-9)


def main() -> None:
    """Fit one job."""
    folder = Path(sys.argv[1])
    job, codes = read_job(folder)
    mu = mu_of(job.epsilon, job.delta)
    domain = mbi.Domain(list(job.sizes), list(job.sizes.values()))
    data = mbi.Dataset({name: codes[:, place] for place, name in enumerate(job.sizes)}, domain)
    config = DiscreteConfig(mechanism=MECHANISMS[job.mechanism]())
    result = config.configure(zcdp_rho=mu**2 / 2, delta=job.delta)(np.random.default_rng(), data)
    made = result.synthetic_data.to_dict()
    artificial = np.stack([np.asarray(made[name], dtype=np.int64) for name in job.sizes], axis=1)
    facts = {"mu": mu, "tables": [list(one.clique) for one in result.measurements]}
    write_result(folder, job, artificial, facts, ("dpsynth", "mbi", "jax", "numpy"))


if __name__ == "__main__":
    main()
