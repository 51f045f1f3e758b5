"""The worst case, for any method: four rows or five, fitted again and again, looked at from outside."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from doublure.attack import worst_case
from doublure.attack.report import AttackReport
from doublure.attack.results import Claim
from doublure.attack.world import Refit
from doublure.auditing.inside import refitting
from doublure.encode.columns import Floats
from doublure.errors import SettingError
from doublure.evaluate.table import versions
from doublure.planning import plan as planned
from doublure.progress import Progress
from doublure.schema import Schema

_ALIKE, _SAMPLED = 4, 200
_COLUMNS = ("a", "b", "c")
_SCHEMA = {
    "doublure": 1,
    "kind": "table",
    "units": _ALIKE,
    "columns": {name: {"type": "boolean", "missing": False} for name in _COLUMNS},
}
_CELLS = 2 ** np.arange(len(_COLUMNS))


def audit_method(
    method: str,
    *,
    epsilon: float = 4.0,
    delta: float = 1e-5,
    runs: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> AttackReport:
    """Fit a method to four rows and to five, many times, and hold what is sampled against its claim.

    Args:
        method: Its name, as ``--method`` takes it.
        epsilon: The ε to claim.
        delta: The δ to claim.
        runs: Runs a world.
        seed: Fixes every random choice but privacy noise.
        progress: Who listens.
        settings: Of the method; few steps make an audit quick, and what they cost is in the plan as ever.

    Raises:
        SettingError: The method claims no ε, a setting is wrong, or there are too few runs.
    """
    plan = planned(Schema.from_plain(_SCHEMA), method=method, epsilon=epsilon, delta=delta, **settings)
    if plan.guarantee.epsilon is None:
        raise SettingError("claims no ε", field="method", remedy="audit a method of kind dp or bayesian-dp")
    schema = plan.schema.resolve({})
    make = partial(_counts, refitting(schema, plan, plan.guarantee), seed)
    claim = Claim.of(plan.guarantee)
    found = worst_case.audit(make, claim, runs=runs, progress=progress)
    return AttackReport(claim=claim, attacks=(found,), seed=seed, versions=versions())


def rows(fifth: bool) -> pd.DataFrame:
    """Return the table of one of the worlds: rows that are all alike, and one that is their opposite."""
    values = np.zeros((_ALIKE + fifth, len(_COLUMNS)), dtype=bool)
    values[_ALIKE:] = True
    return pd.DataFrame(values, columns=list(_COLUMNS))


def _counts(refit: Refit, seed: int, fifth: bool, number: int) -> Floats:
    """Return how often each of the eight possible rows is sampled, ``(8,)``."""
    # The public seed differs from run to run and not from world to world: an attacker knows it.
    drawn = refit(rows(fifth), seed + number).sample(_SAMPLED, number)
    codes = drawn[list(_COLUMNS)].astype(int).to_numpy() @ _CELLS
    return np.bincount(codes, minlength=int(_CELLS.sum()) + 1).astype(np.float64)
