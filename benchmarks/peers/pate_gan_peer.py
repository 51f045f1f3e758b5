"""PATE-GAN on tables, given codes in public bins."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from job import read_job, write_result
from pate_gan import ROWS, artificial_codes


def main() -> None:
    """Fit the job in the folder."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    job, codes = read_job(folder)
    made, facts = artificial_codes(
        codes, list(job.sizes.values()), epsilon=job.epsilon, delta=job.delta, rows=job.rows, seed=job.seed,
        recipe=ROWS,
    )  # fmt: skip
    write_result(folder, job, made, facts, ("torch",))


if __name__ == "__main__":
    main()
