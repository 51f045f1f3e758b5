"""MST and AIM of ``dpmm``, given codes in public bins, so that its own binning (which would cost budget) is not used.

PYTHON_OF_THE_ENVIRONMENT dpmm_peer.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
from job import read_job, write_result


def main() -> None:
    """Fit one job."""
    folder = Path(sys.argv[1])
    job, codes = read_job(folder)
    if job.mechanism == "mst":
        model = MSTGM(epsilon=job.epsilon, delta=job.delta, n_jobs=1)
    else:
        limits = {"max_model_size": job.model_mb, "rounds": job.rounds * len(job.sizes)}
        model = AIMGM(epsilon=job.epsilon, delta=job.delta, n_jobs=1, **limits)
    model.set_random_state(np.random.RandomState(job.seed))
    model.set_domain(dict(job.sizes))
    model.fit(pd.DataFrame(codes, columns=list(job.sizes)))
    made = model.generate(n_records=job.rows)[list(job.sizes)].to_numpy().astype(np.int64)
    facts = {"rho": float(model.generator.rho), "cliques": len(model.generator.cliques)}
    write_result(folder, job, made, facts, ("dpmm", "opendp", "numpy"))


if __name__ == "__main__":
    main()
