"""How a fit that reads its records in partitions grows with them: processor seconds and peak memory, a line a size.

Made-up records (15 columns: numbers, categories, dates, moments) are written as Parquet in parts, once a size; each fit
is a process of its own. ``--model`` fits a line to the measured rows, and says how far it is off where it was measured.

    python benchmarks/scale.py --records 1_000_000 --folder /var/tmp/scale
    python benchmarks/scale.py --model
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from command_line import command_line, told
from results import finished
from scaling import COLUMNS, JOBS, REGIONS, SEED, by_child, keep, measured_fit, table_plan

_PART = 1_000_000
SAMPLED = 500_000
COMMAND = "python benchmarks/scale.py --records {records} --memory {memory}"


def write_records(folder: Path, records: int) -> Path:
    """Write made-up records, a million a part, and return their folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = folder / str(records)
    if out.exists():
        return out
    made = Path(tempfile.mkdtemp(dir=folder))
    for number, start in enumerate(range(0, records, _PART)):
        size = min(_PART, records - start)
        draw = np.random.default_rng([0, number])
        age = draw.integers(0, 100, size)
        income = np.round(draw.lognormal(9 + age / 100, 1, size), 2)
        school = np.minimum(draw.poisson(age / 40, size), 3)

        def names(values: list[str], codes: Any) -> Any:
            return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), values)

        def some(values: Any, size: int = size, draw: Any = draw) -> Any:
            return pa.array(values, mask=draw.random(size) < 0.05)

        born = (np.datetime64("2024-06-01") - age * 365 - draw.integers(0, 365, size)).astype("datetime64[D]")
        seen = np.datetime64("2020-01-01T00:00:00", "s") + draw.integers(0, 5 * 365 * 86_400 - 1, size)
        table = pa.table(
            {
                "age": some(age), "hours": np.minimum(draw.poisson(38, size), 99),
                "income": some(np.minimum(income, 1e6)), "debt": np.round(draw.normal(0, 20_000, size), 2),
                "score": np.round(draw.beta(2, 5, size), 4), "visits": np.minimum(draw.geometric(0.05, size), 10_000),
                "born": born, "seen": seen, "sex": names(["f", "m"], draw.integers(0, 2, size)),
                "region": names(REGIONS, draw.integers(0, 26, size)), "job": names(JOBS, draw.integers(0, 40, size)),
                "school": names(["none", "primary", "secondary", "tertiary"], school),
                "married": age > draw.integers(0, 90, size), "smokes": some(draw.random(size) < 0.2),
                "owns": names(["no", "yes"], (income > draw.lognormal(9, 1, size)).astype(int)),
            }
        )  # fmt: skip
        pq.write_table(table, made / f"part-{number:05}.parquet")
    made.rename(out)
    return out


def fit(data: str, units: int, memory: str) -> None:
    """Fit, and print what it took of this process: the way of a child."""
    import torch

    from doublure.private.codes import PARTITION_RECORDS
    from doublure.releasing.writing import write_sample

    torch.set_num_threads(1)
    options: dict[str, Any] = {} if memory == "all" else {"memory": memory}
    with tempfile.TemporaryDirectory(dir=Path(data).parent) as folder:
        syn, row = measured_fit(data, table_plan(units, [*COLUMNS]), Path(folder), **options)
        drawn = time.process_time()
        write_sample(syn, Path(folder) / "sample", SAMPLED, seed=SEED)
        sampled = time.process_time() - drawn
    row |= {
        "columns": len(COLUMNS), "records": units, "memory": memory,
        "command": COMMAND.format(records=units, memory=memory),
        "partitions": math.ceil(units / PARTITION_RECORDS), "sampled": SAMPLED,
        "sample_cpu_seconds": round(sampled, 1),
        "sample_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
    }  # fmt: skip
    print(json.dumps(row))


def model() -> None:
    """Print a line through the measured rows, and its error on each of them."""
    own = [row for row in finished("scale") if row["memory"] != "all"]
    records, cpu = np.array([[row["records"], row["cpu_seconds"]] for row in own]).T
    weights = 1 / cpu  # relative errors count alike
    (each, fixed), *_ = np.linalg.lstsq(np.stack([records, np.ones(len(own))], 1) * weights[:, None], cpu * weights)
    print(f"{fixed:.1f} s + {each * 1e6:.2f} s a million records, of one core")
    for row, seconds in zip(own, each * records + fixed, strict=True):
        print(
            f"{row['records']:>12,}: measured {row['cpu_seconds']:.1f} s, model {seconds / row['cpu_seconds'] - 1:+.0%}"
        )
    for size in (10**8, 10**9, 10**10):
        print(f"{size:>14,}: {(each * size + fixed) / 60:.0f} minutes of one core")


def main() -> None:
    """Read the command line."""
    given = command_line(
        __doc__, records=dict(type=int, nargs="*", default=[]), memory=told("2GB", "'all' holds the records"),
        folder=Path(tempfile.gettempdir()), child=told(str, argparse.SUPPRESS), model=False,
    )  # fmt: skip
    if given.child:
        fit(given.child, given.records[0], given.memory)
        return
    for records in given.records:
        data = write_records(given.folder, records)
        row = by_child(__file__, "--child", data, "--records", records, "--memory", given.memory)
        print(json.dumps(row), flush=True)
        keep("scale", row)
    if given.model:
        model()


if __name__ == "__main__":
    main()
