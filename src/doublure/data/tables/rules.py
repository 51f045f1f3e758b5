"""Declared rules on whole tables: which rows break one, and what those rows become.

Turn by turn, and within a turn in this order: ``combinations``, ``implies``, ``sum`` (each as listed), ``at_most``;
after every change the columns that ``equal`` and ``determines`` derive follow. Rows that still break a rule after the
last turn take all columns that the rule holds together from another *sampled* row that keeps them all; where there is
none, from the row that showed that the schema's rules can be kept (:func:`doublure.schema.rules.witness`).

Sampled rows may lend one another cells, at random. Records may not: without a source of randomness a row becomes what a
public rule says of that row alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from doublure.data.tables.cells import Floats
from doublure.errors import DataError, printable
from doublure.schema import Schema
from doublure.schema.columns import Column
from doublure.schema.rules import CellSource, NumericRules, Rule, witness

if TYPE_CHECKING:
    from doublure.schema.allowed import Mask
    from doublure.schema.rules.rule import Follow

_TURNS = 6


class TableRules:
    """The rules of a schema, all facts of whose columns are known.

    Args:
        schema: Its rules.
        own: Which of them; all if not given.

    Attributes:
        names: The columns that rules are about.
    """

    def __init__(self, schema: Schema, own: Sequence[Rule] | None = None) -> None:
        rules = schema.constraints if own is None else own
        self._columns = schema.columns
        self._rules = NumericRules.from_rules(rules, schema.columns)
        self._derived = {each.name: each for each in self._rules.derived}
        self.names = tuple(dict.fromkeys(name for rule in rules for name in rule.names))
        self._fixing = sorted(self._rules.kept, key=lambda rule: rule.turn)

    def root_of(self, name: str) -> tuple[str, Follow]:
        """Return the modelled column that another follows from (often itself), and how."""
        steps: list[Follow] = []
        while name in self._derived:
            steps.append(self._derived[name].follow)
            name = self._derived[name].source

        def followed(numbers: Floats) -> Floats:
            for step in reversed(steps):
                numbers = step(numbers)
            return numbers

        return name, followed

    @property
    def movable(self) -> frozenset[str]:
        """The modelled columns that fixing may change, but for rows that no turn fixes."""
        return frozenset(self.root_of(name)[0] for rule in self._rules.kept for name in rule.moves)

    # -- asking ------------------------------------------------------------------------------------------------------

    def broken(self, numbers: Mapping[str, Floats]) -> Mask:
        """Return ``(N,)``: which rows break any rule."""
        found = np.zeros(_length(numbers), dtype=np.bool_)
        for each in self._rules.derived:
            found |= ~_same(numbers[each.name], each.follow(numbers[each.source]))
        for rule in self._fixing:
            found |= rule.broken(numbers)
        return found

    # -- fixing -----------------------------------------------------------------------------------------------------

    def fix(self, numbers: dict[str, Floats], rng: np.random.Generator | None) -> None:
        """Change cells in place until every row keeps every rule.

        Args:
            numbers: Column -> ``(N,)``, all of :attr:`names`.
            rng: Lets sampled rows lend one another cells; without it each row is fixed by itself.
        """
        self._follow(numbers)
        for turn in range(_TURNS):
            moved = False
            for rule in self._fixing:
                off = rule.broken(numbers)
                if off.any():
                    moved = True
                    source = CellSource(rng=rng, turn=turn, sound=~self.broken(numbers), root_of=self.root_of)
                    rule.fix(numbers, off, source)
                    self._follow(numbers)
            if not moved:
                return
        for component in self._rules.components:
            self._replace(numbers, component, rng)

    def _follow(self, numbers: dict[str, Floats]) -> None:
        for each in self._rules.derived:
            numbers[each.name] = each.follow(numbers[each.source])

    def _replace(self, numbers: dict[str, Floats], component: frozenset[str], rng: np.random.Generator | None) -> None:
        """Give rows that no turn has fixed the cells of one that keeps all rules."""
        off = np.zeros(_length(numbers), dtype=np.bool_)
        for rule in self._fixing:
            if set(rule.names) <= component:
                off |= rule.broken(numbers)
        if not off.any():
            return
        lenders = np.flatnonzero(~off)
        if rng is not None and len(lenders):
            chosen = self._alike(numbers, component, np.flatnonzero(off), lenders, rng)
            for name in component:
                numbers[name] = numbers[name].copy()
                numbers[name][off] = numbers[name][chosen]
            return
        row = witness(component, self._columns, self._rules)
        if row is None:  # refused when the schema was read
            raise ValueError("no row keeps all rules")
        for name in component:
            numbers[name] = np.where(off, row[name], numbers[name])

    def _alike(
        self,
        numbers: Mapping[str, Floats],
        component: frozenset[str],
        rows: np.ndarray[Any, np.dtype[np.int64]],
        lenders: np.ndarray[Any, np.dtype[np.int64]],
        rng: np.random.Generator,
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return a lender for each row: one with the same conditions, where there is one."""
        chosen = rng.choice(lenders, len(rows))
        for name in sorted(component):
            if "condition" not in self._columns[name].roles:
                continue
            for value in np.unique(numbers[name][rows]):
                own, lending = numbers[name][rows] == value, lenders[numbers[name][lenders] == value]
                if len(lending):
                    chosen[own] = rng.choice(lending, int(own.sum()))
            break
        return chosen


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
            alone = TableRules(schema, [rule])
            if alone.broken(snapped_numbers(frame, schema.columns, alone.names)).any():
                named = ", ".join(map(printable, alone.names))
                remedy = "fix the rule or the data, or write misfit: coerce"
                raise DataError(f"has records that break the rule {rule.word}", field=named, remedy=remedy)
        return frame
    rules = TableRules(schema, own)
    numbers = snapped_numbers(frame, schema.columns, rules.names)
    rules.fix(numbers, None)  # written back in every row: else one that is fixed would change how others are read
    return frame.assign(**{name: schema.columns[name].loaded_cells_of(numbers[name]) for name in rules.names})


def snapped_numbers(frame: pd.DataFrame, columns: Mapping[str, Column], names: Iterable[str]) -> dict[str, Floats]:
    """Return the numbers of some columns' cells, each the nearest that a cell can have."""
    return {name: columns[name].snapped_numbers_of(frame[name]) for name in names}


def _same(left: Floats, right: Floats) -> Mask:
    close = np.abs(left - right) <= 1e-9 * np.maximum(1.0, np.abs(left))
    found: Mask = close | (np.isnan(left) & np.isnan(right))
    return found


def _length(numbers: Mapping[str, Floats]) -> int:
    return len(next(iter(numbers.values()), ()))


__all__ = ["TableRules", "checked"]
