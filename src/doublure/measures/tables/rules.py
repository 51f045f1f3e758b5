"""Rules that real rows keep and synthetic ones may break: states of two columns that never meet, or always do.

A state is a missing cell, a zero, or a value of a discrete column. Two states *never* meet where chance (the product
of their shares) would bring them together in 1 % of the rows and real rows hardly ever have both. One state *always*
brings another where chance would part them in 1 % of the rows and real rows hardly ever do. Hardly ever is less than a
thousandth as often as chance: one husband among women, in a census of thousands, does not hide the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from doublure.data.tables import cells
from doublure.data.tables.rules import find_violations
from doublure.errors import counted
from doublure.intervals import Result
from doublure.measures.resampling import ROWS_OF
from doublure.measures.scores import Score, distance_score
from doublure.measures.tables.coding import MISSING, Coded, Coder
from doublure.measures.tables.fidelity import Tables
from doublure.schema import ResolvedSchema
from doublure.support.arrays import Floats

LEAST_SHARE = 0.01
"""The least share of rows that has a state, and in which chance would break a rule."""

MOST_LISTED = 500
"""The most rules that are listed; all of them count."""

_LEAST_ROWS = 20.0
_HARDLY = 1e-3
_CHUNK_ROWS = 1 << 14
_MOST_STATES = 2_000
_Marks: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


class StateRule(Result):
    """One rule.

    Attributes:
        kind: Whether the states never meet, or the first always brings the second.
        columns: The two columns.
        states: A state of each.
        expected: In which share of real rows chance would break it.
        broken: In which share of synthetic rows it is broken, beside independent columns and real rows kept aside.
    """

    kind: Literal["never", "always"]
    columns: tuple[str, str]
    states: tuple[str, str]
    expected: float
    broken: Score

    @property
    def sentence(self) -> str:
        """The rule in words."""
        (left, right), (one, other) = self.columns, self.states
        if self.kind == "never":
            return f"{left} = {one} never with {right} = {other}"
        return f"{left} = {one} always with {right} = {other}"


class StateRules(Result):
    """All rules that real rows keep.

    Attributes:
        score: The share of rows that break one or more.
        found: How many rules real rows keep.
        broken: How many of them some synthetic row breaks.
        rules: Each, the most often broken first; at most ``MOST_LISTED``.
        states: How many states there are.
    """

    score: Score
    found: int
    broken: int
    rules: tuple[StateRule, ...]
    states: int


@dataclass(frozen=True, kw_only=True)
class _State:
    """A state: one code of a column, or a number's zero."""

    place: int
    column: str
    label: str
    code: int | None

    def marks(self, table: Coded) -> _Marks:
        """Return ``(N,)`` which rows have it."""
        if self.code is None:
            return np.asarray(table.numbers[self.column] == 0, dtype=np.bool_)
        return np.asarray(table.codes[:, self.place] == self.code, dtype=np.bool_)


def rules(coder: Coder, tables: Tables) -> StateRules:
    """Return the rules that real rows keep, and how often others break them."""
    states, marks = _states(coder, tables.train)
    rows = len(tables.train)
    met, shares = _meetings(marks) / rows, marks.mean(axis=0)
    least = max(LEAST_SHARE, _LEAST_ROWS / rows)
    places = np.array([state.place for state in states], dtype=np.int64)
    apart = places[:, None] != places[None, :]
    two_valued = _two_valued(states, [tables.train, *tables.others.values()])
    found: dict[tuple[int, int, bool], float] = {}
    for never, chance, seen in (
        (True, np.outer(shares, shares), met),
        (False, np.outer(shares, 1 - shares), shares[:, None] - met),
    ):
        kept = apart & (chance >= least) & (seen < _HARDLY * chance)
        for left, right in np.argwhere(np.triu(kept) if never else kept).tolist():
            found[_canonical(left, right, never, two_valued)] = float(chance[left, right])
    return _broken(states, found, tables)


def _canonical(left: int, right: int, never: bool, two_valued: Mapping[int, int]) -> tuple[int, int, bool]:
    """Return the same rule in one form: where a column has two states only, not to have one is to have the other."""
    if not never and right in two_valued:
        right, never = two_valued[right], True
    return (min(left, right), max(left, right), True) if never else (left, right, False)


def _states(coder: Coder, train: Coded) -> tuple[list[_State], _Marks]:
    """Return the states that enough real rows have, and ``(N, S)`` which have them."""
    known: list[_State] = []
    for place, (name, column) in enumerate(coder.columns.items()):
        if column.bounded:
            known.append(_State(place=place, column=name, label=MISSING, code=coder.sizes[place] - 1))
            if column.plain:
                known.append(_State(place=place, column=name, label="0", code=None))
        else:
            labels = coder.labels(name)
            known += [_State(place=place, column=name, label=text, code=code) for code, text in enumerate(labels)]
    shares = [state.marks(train).mean() for state in known]
    order = sorted(range(len(known)), key=lambda number: -shares[number])[:_MOST_STATES]
    kept = [known[number] for number in sorted(order) if shares[number] >= LEAST_SHARE]
    marks = np.zeros((len(train), len(kept)), dtype=np.bool_)
    for number, state in enumerate(kept):
        marks[:, number] = state.marks(train)
    return kept, marks


def _two_valued(states: Sequence[_State], tables: Sequence[Coded]) -> dict[int, int]:
    """Return the other state of each state whose column has two in all tables together, and nothing else."""
    places: dict[int, list[int]] = {}
    for number, state in enumerate(states):
        if state.code is not None:
            places.setdefault(state.place, []).append(number)
    found: dict[int, int] = {}
    for place, own in places.items():
        if len(own) == 2:
            codes = {states[number].code for number in own}
            if all(set(np.unique(table.codes[:, place]).tolist()) <= codes for table in tables):
                found |= {own[0]: own[1], own[1]: own[0]}
    return found


def _meetings(marks: _Marks) -> Floats:
    """Return ``(S, S)`` in how many rows two states meet."""
    total = np.zeros((marks.shape[1], marks.shape[1]))
    for start in range(0, len(marks), _CHUNK_ROWS):
        part = marks[start : start + _CHUNK_ROWS].astype(np.float32)
        total += part.T @ part  # exact: a chunk's counts are far below 2 ** 24
    return total


def _broken(states: Sequence[_State], found: Mapping[tuple[int, int, bool], float], tables: Tables) -> StateRules:
    needed = {number for left, right, _ in found for number in (left, right)}
    each: dict[str, dict[tuple[int, int, bool], float]] = {}
    either: dict[str, float] = {}
    for role, table in tables.others.items():
        marks = {number: states[number].marks(table) for number in needed}
        any_of = np.zeros(len(table), dtype=np.bool_)
        each[role] = {}
        for left, right, never in found:
            rows = marks[left] & (marks[right] if never else ~marks[right])
            any_of |= rows
            each[role][left, right, never] = float(rows.mean())
        either[role] = float(any_of.mean())
        tables.resamples.add("broken_rules", role, either[role], {ROWS_OF[role]: any_of.astype(np.float64)})
    score = distance_score(
        "broken_rules",
        "Broken rules",
        either,
        "The share of rows with two states that real rows never have together, or with one that they never have "
        "without the other.",
    )
    value = each["value"]
    listed = [
        StateRule(
            kind="never" if never else "always",
            columns=(states[left].column, states[right].column),
            states=(states[left].label, states[right].label),
            expected=found[left, right, never],
            broken=distance_score(
                "broken", "broken", {role: shares[left, right, never] for role, shares in each.items()}
            ),
        )
        for left, right, never in sorted(found, key=lambda key: -value[key])[:MOST_LISTED]
    ]
    return StateRules(
        score=tables.resamples.sure(score),
        found=len(found),
        broken=sum(share > 0 for share in value.values()),
        rules=tuple(listed),
        states=len(states),
    )


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


def broken_declared_rules(
    schema: ResolvedSchema, synthetic: pd.DataFrame, real: pd.DataFrame
) -> tuple[RuleViolations, ...]:
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
