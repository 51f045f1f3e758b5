"""Records as the rules of their schema make them, and sampled rows that keep every rule (post-processing: free).

Of sampled rows most keep an ``at_most`` already: numbers that it orders are decoded from the gap between them
(:mod:`doublure.encode.differences`). What breaks a rule is fixed by :mod:`doublure.schema.rules.rule_set`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.tables.cells import Floats
from doublure.errors import DataError, printable
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.columns import Column
from doublure.schema.missing_states import hole_states
from doublure.schema.rules.rule import Rule
from doublure.schema.rules.rule_set import RuleSet
from doublure.support.frames import with_columns

if TYPE_CHECKING:
    from doublure.support.arrays import Mask

    Cells: TypeAlias = pd.DataFrame | Mapping[str, pd.Series[Any]]


def checked(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return records that keep every rule but ``equal`` and ``at_most``, which the encoding takes care of.

    A record is read by itself: what it becomes follows from its own cells and the schema.

    Args:
        frame: As it is loaded.
        schema: With ``misfit``: what becomes of a record that breaks a rule.

    Raises:
        DataError: One breaks a rule, and the schema refuses that.
    """
    own = [rule for rule in schema.constraints if not rule.encoded]
    if not own:
        return frame
    if schema.misfit == "refuse":
        for rule in own:
            if find_violations(rule, frame, schema.columns).any():
                named = ", ".join(map(printable, rule.names))
                remedy = "fix the rule or the data, or write misfit: coerce"
                said = f"has records that break a rule: {rule.requirement(schema.columns)}"
                raise DataError(said, field=named, remedy=remedy)
        return frame
    rules = RuleSet(own, schema.columns)
    numbers = snapped_numbers(frame, schema.columns, rules.names)
    rules.fix(numbers, None)  # written back in every row: else one that is fixed would change how others are read
    return with_columns(frame, {name: schema.columns[name].loaded_cells(numbers[name]) for name in rules.names})


def keep(
    frame: pd.DataFrame, schema: ResolvedSchema, rng: np.random.Generator | None = None, rules: RuleSet | None = None
) -> pd.DataFrame:
    """Return the frame with every rule kept in every row and derived columns filled in.

    Args:
        frame: Decoded rows, in the schema's own dtypes.
        schema: Every fact known.
        rng: Lets rows that break a rule draw cells from those that keep it; without it they take the nearest.
        rules: The schema's rules, if they are at hand.
    """
    rules = rules or RuleSet(schema.constraints, schema.columns)
    if not rules.names:
        return frame
    modelled = [name for name in rules.names if name not in schema.derived]
    numbers = snapped_numbers(frame, schema.columns, modelled)
    before = dict(numbers)
    rules.fix(numbers, rng)
    frame = frame.copy(deep=False)
    for name in rules.names:
        if name not in before or _changed(numbers[name], before[name]):
            frame[name] = schema.columns[name].kept_cells(numbers[name])
    return frame


def _changed(numbers: Floats, before: Floats) -> bool:
    alike = np.array_equal(numbers, before, equal_nan=True)
    return not (alike and np.array_equal(hole_states(numbers), hole_states(before)))


def find_violations(rule: Rule, frame: Cells, columns: Mapping[str, Column]) -> Mask:
    """Return ``(N,)``: which rows of canonical cells break a rule, every fact of whose columns is known."""
    return RuleSet([rule], columns).broken(snapped_numbers(frame, columns, rule.names))


def snapped_numbers(frame: Cells, columns: Mapping[str, Column], names: Iterable[str]) -> dict[str, Floats]:
    """Return the numbers of some columns' cells, each the nearest that a cell can have."""
    return {name: columns[name].snapped_numbers_of(frame[name]) for name in names}
