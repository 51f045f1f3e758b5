"""What a stage releases: the releases of a table by itself, without those of columns that are given.

How columns that are given go together is known from earlier stages: it is drawn from what was fitted to them, which is
free. Only what a stage's own columns have to do with them, and with one another, is counted.
"""

from __future__ import annotations

import math

from doublure.methods.statistics.relational.stages import Stage
from doublure.methods.statistics.tables import plan
from doublure.methods.statistics.tables.plan import Releases

_PAIRS_A_COLUMN = 8
_COLUMNS_AS_THEY_ARE = 0.1


def stage_releases(stage: Stage) -> Releases:
    """Return the releases of a stage's table, by their purposes."""
    if not stage.known:
        return plan.releases(stage.schema, "")
    columns = dict(list(stage.schema.columns.items())[stage.known :])
    alone = plan.releases(stage.schema.model_copy(update={"columns": columns}), "")
    pairs = math.comb(stage.known + len(columns), 2) - math.comb(stage.known, 2)
    tables = {name: alone.tables[name] for name in (plan.CELLS, plan.VALUES, plan.REPEATED) if name in alone.tables}
    tables |= {
        plan.COLUMNS: plan.COPIES[plan.COLUMNS] * len(columns),
        plan.SCORES: pairs,
        plan.PAIRS: plan.COPIES[plan.PAIRS] * min(pairs, _PAIRS_A_COLUMN * len(columns)),
        plan.TREE: plan.COPIES[plan.TREE] * len(columns),
    }
    shares = {name: plan.SHARES[name] for name in tables}
    if plan.CELLS not in tables:
        shares[plan.COLUMNS] = _COLUMNS_AS_THEY_ARE
    shares[plan.PAIRS] += 1 - sum(shares.values())
    return Releases(tables=tables, shares=shares, pairs_within=False)
