"""Violations of each declared rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from doublure.data.tables import cells
from doublure.data.tables.rules import find_violations
from doublure.errors import counted
from doublure.intervals import Result
from doublure.schema import ResolvedSchema


class RuleViolations(Result):
    """Violations of one declared rule.

    Attributes:
        rule: Its keyword.
        columns: Its columns.
        synthetic: Number of synthetic rows that break it.
        real: Number of real rows that break it.
    """

    rule: str
    columns: tuple[str, ...]
    synthetic: int
    real: int


def broken_rules(schema: ResolvedSchema, synthetic: pd.DataFrame, real: pd.DataFrame) -> tuple[RuleViolations, ...]:
    """Return each declared rule with the number of rows that break it.

    Args:
        schema: Every fact known.
        synthetic: Rows of the schema, as sampled or loaded.
        real: Real rows, likewise.
    """
    found = []
    for rule in schema.constraints:
        frames = (_read(schema, frame, rule.names) for frame in (synthetic, real))
        counts = [int(find_violations(rule, frame, schema.columns).sum()) for frame in frames]
        found.append(RuleViolations(rule=rule.word, columns=rule.names, synthetic=counts[0], real=counts[1]))
    return tuple(found)


def sentence(rules: Sequence[RuleViolations]) -> str:
    """Return a summary of the rules' figures in one line."""
    broken = [rule for rule in rules if rule.synthetic]
    if not broken:
        return f"Synthetic rows keep all declared rules ({len(rules)})."
    told = ", ".join(
        f"{rule.rule} of {' and '.join(rule.columns)} in {counted(rule.synthetic, 'row')}" for rule in broken
    )
    return f"Synthetic rows break declared rules: {told}."


def _read(schema: ResolvedSchema, frame: pd.DataFrame, names: Sequence[str]) -> dict[str, pd.Series[Any]]:
    """Return canonical cells; a missing cell is one, even where the schema says that none is missing."""
    found = {}
    for name in names:
        column = schema.columns[name]
        open_to_holes = column if column.may_be_missing else column.model_copy(update={"missing": True})
        found[name] = cells.canonical_again(frame[name].reset_index(drop=True), open_to_holes, name)
    return found
