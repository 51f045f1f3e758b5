"""The share of the budget that columns' own counts get: halved, doubled and trebled, the other releases scaled.

The tables and measures are those of ``dominance.py``. All arms of a seed draw the same noise, which is seeded, so that
they protect no one and can be compared.

    python benchmarks/budget_split.py run [--data telco mushroom] [--epsilons 0.3 1] [--seeds 11 12 13]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product
from typing import Any
from unittest import mock

import numpy as np

from dominance import SETS, fitted, measures, schema_of, split
from doublure.methods.statistics.tables import method, plan
from results import by_cell, measure

_TIMES = (0.5, 1.0, 2.0, 3.0)
_OF_SHARE = (plan.BY_TARGET, plan.SCORES, plan.PAIRS, plan.TREE)


def one_cell(name: str, epsilon: float, times: float, seed: int) -> dict[str, Any]:
    """Measure rows of a fit whose columns have so many times their share."""
    planned = plan.plan_releases

    def moved(*given: Any, **more: Any) -> plan.PlannedReleases:
        found = planned(*given, **more)
        shares, others = dict(found.shares), [purpose for purpose in _OF_SHARE if purpose in found.shares]
        if plan.PAIRS not in shares:
            return found
        left = sum(shares[purpose] for purpose in others)
        added = min((times - 1) * shares[plan.COLUMNS], 0.9 * left)
        shares |= {purpose: round(shares[purpose] * (1 - added / left), 4) for purpose in others}
        shares[plan.COLUMNS] = round(shares[plan.COLUMNS] + added, 4)
        shares[plan.PAIRS] += 1 - sum(shares.values())
        return replace(found, shares=shares)

    train, test = split(name)
    schema, rng = schema_of(name, len(train)), np.random.default_rng(1000 + seed)

    def noise(size: int, scale: float) -> Any:
        return np.rint(rng.normal(0, scale, size)).astype(np.int64)

    with (
        mock.patch.object(plan, "plan_releases", moved),
        mock.patch.object(method, "plan_releases", moved),
        mock.patch("doublure.private.whole_noise.discrete_normals", noise),
    ):
        found = measures(name, schema, (train, test), fitted(schema, train, epsilon, seed))
    one, two = found["one_way"], found["two_way"]
    return {"one_way": one, "two_way": two, "both": (one or 0.0) + (two or 0.0)}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run"])
    parser.add_argument("--data", nargs="+", default=["mushroom", "telco"], choices=list(SETS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.3, 1.0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[11, 12, 13])
    options = parser.parse_args()
    wanted = list(product(options.data, options.epsilons, _TIMES, options.seeds))
    measure("budget_split", by_cell(wanted, one_cell))


if __name__ == "__main__":
    main()
