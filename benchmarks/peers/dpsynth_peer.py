"""``dpsynth.relational`` (google/dpsynth, experimental): a root and a child table, at its own example's settings.

MST on permuted siblings, ``size_sliced`` with so many slots, as in its example of the Californian census. It protects a
row of the root with all that hangs on it, under add/remove. Its noise is NumPy's.

Run by the interpreter of its environment: ``dpsynth_peer.py FOLDER``. The folder holds ``job.json`` and a Parquet file
for each table; what comes out lies beside it as ``made-TABLE.parquet`` and ``facts.json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from dpsynth import discrete_mechanisms, domain
from dpsynth.relational import ForeignKeyRelation, MultiTableConfig

PACKAGES = ("dpsynth", "mbi", "jax", "numpy")


def attribute(facts: Mapping[str, Any]) -> domain.CategoricalAttribute | domain.NumericalAttribute:
    """Return a column's public facts as it takes them; a value is drawn evenly within its interval."""
    if "values" in facts:
        return domain.CategoricalAttribute(possible_values=facts["values"])
    lower, upper = facts["bounds"]
    return domain.NumericalAttribute(
        min_value=lower, max_value=upper, clip_to_range=not facts["missing"], interval_handling="sample"
    )


def main() -> None:
    """Fit one job."""
    folder = Path(sys.argv[1])
    job = json.loads((folder / "job.json").read_text())
    domains = {name: {own: attribute(facts) for own, facts in table.items()} for name, table in job["tables"].items()}
    config = MultiTableConfig(
        domains=domains,
        foreign_keys=[ForeignKeyRelation(**job["link"])],
        discrete_mechanism=discrete_mechanisms.MSTConfig(pgm_iters=job["pgm_iters"]),
        num_permutation_slots=job["slots"],
        exploration_strategy="size_sliced",
    )
    mechanism = config.calibrate(epsilon=job["epsilon"], delta=job["delta"])
    tables = {name: pd.read_parquet(folder / f"{name}.parquet") for name in domains}
    result = mechanism(rng=np.random.default_rng(job["seed"]), data=tables)
    for name, made in result.synthetic_tables.items():
        made.to_parquet(folder / f"made-{name}.parquet", index=False)
    facts = {"versions": {name: version(name) for name in PACKAGES}}
    (folder / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main()
