"""Checks that every released row keeps every declared rule, by the data dictionary and the files alone.

It is post-processing, and reads no private record. A rule is asked as a fit asks it (:mod:`doublure.schema.rules`), on
columns that the dictionary's entries describe.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pydantic import TypeAdapter, ValidationError

from doublure.releasing.cells import Cells, DescribedColumn
from doublure.releasing.reading import Batch, ContentMismatch, DescribedTable, key_names
from doublure.schema.columns import Column, type_named
from doublure.schema.columns.calendar_cells import left_out_by_clocks
from doublure.schema.related_constraints import ChildSum, RelatedConstraint, table_of
from doublure.schema.rules.registry import AnyRule
from doublure.schema.rules.rule import Floats, Rule
from doublure.schema.rules.rule_set import RuleSet

SINCE = 2
"""The version of dictionaries from which on they say all that rules ask of columns."""
_CLOSE = 1e-9
_CSV, _ARRAYS, _SINGLE = ".csv", ".npz", "float32"


class _AskedRule(NamedTuple):
    """A rule, and the columns that it names, by its own names."""

    rule: Rule
    columns: Mapping[str, Column]


class _AskedSum(NamedTuple):
    """A sum over the rows of another table, and its columns."""

    rule: ChildSum
    columns: Mapping[str, Column]


class RuleCheck:
    """Checks the rows of a bundle, table by table and batch by batch; a parent's rows come before its children's.

    Args:
        described: The data dictionary.
        form: The ending of the files that are read.

    Raises:
        KeyError, TypeError, ValueError: A rule of the dictionary is none, or does not fit its columns.

    Attributes:
        checked: The number of rules that rows are held against.
        unchecked: The number of those that this form of file, or an earlier dictionary, does not say enough for.
    """

    def __init__(self, described: Mapping[str, Any], form: str) -> None:
        self._related: Mapping[str, Any] = described.get("related") or {}
        entries = {str(entry["name"]): entry for entry in described["columns"]}
        self._of_rows: dict[str, list[_AskedRule]] = {}
        self._sums: list[_AskedSum] = []
        self._held: dict[str, list[Floats]] = {}
        self._added: dict[str, Floats] = {}
        self._columns: dict[str, Column] = {}
        self.checked = self.unchecked = 0
        for home, rule, names in _declared(described):
            columns = {own: described_column(entries[name]) for own, name in names.items()}
            vague = any(_is_vague(column, entries[names[own]], form) for own, column in columns.items())
            if described["version"] < SINCE or vague:
                self.unchecked += 1
                continue
            self.checked += 1
            if isinstance(rule, ChildSum):
                self._sums.append(_AskedSum(rule, columns))
            else:
                self._of_rows.setdefault(home, []).append(_AskedRule(rule, columns))
            if self._related and all(own == name for own, name in names.items()):  # of several tables
                self._columns |= columns

    def check(self, batch: Batch, table: DescribedTable, field: str) -> None:
        """Check the next rows of a table.

        Raises:
            ContentMismatch: One breaks a rule; it names the rule and its columns.
        """
        for rule, columns in self._of_rows.get(table.name, ()):
            numbers = {name: self._numbers(name, columns[name], batch, table) for name in rule.names}
            if (RuleSet([rule], columns).broken(numbers) & ~_shifted(numbers, columns)).any():
                raise ContentMismatch(_said(rule, columns), field)
        for added, _ in self._sums:
            if table_of(added.sum.of) == table.name:
                self._add(added, batch, table)
        for name, column in self._columns.items():
            of, _, own = name.partition(".")
            if of == table.name:
                self._held.setdefault(name, []).append(numbers_in(batch[own], column, table.column(own)))

    def finish(self, field: str) -> None:
        """Check what needs all rows: sums over the rows of another table.

        Raises:
            ContentMismatch: One is another sum.
        """
        for rule, columns in self._sums:
            totals = self._column(rule.sum.total)
            added = self._added.get(rule.sum.of, np.zeros(len(totals)))
            slack = columns[rule.sum.total].unit / 4 or _CLOSE * np.maximum(1.0, np.abs(totals))
            if (np.abs(totals - added) > slack).any():
                raise ContentMismatch(_said(rule, columns), field)

    def _numbers(self, name: str, column: Column, batch: Batch, table: DescribedTable) -> Floats:
        """Return ``(N,)`` numbers of a column; of a parent's column those of each row's parent."""
        of, _, own = name.partition(".") if name in self._columns else (table.name, "", name)
        if of == table.name:
            return numbers_in(batch[own], column, table.column(own))
        found: Floats = self._column(name)[self._parents(batch, table)]
        return found

    def _column(self, name: str) -> Floats:
        """Return all numbers of a column that is held."""
        held = self._held.setdefault(name, [np.zeros(0)])
        held[:] = [np.concatenate(held)]
        return held[0]

    def _parents(self, batch: Batch, table: DescribedTable) -> Any:
        """Return ``(N,)``: the place of each row's parent, counted from 0."""
        told = self._related[table.name]
        key, foreign = key_names(self._related[told["parent"]]["key"]), key_names(told["foreign_key"])
        return batch[foreign[len(key) - 1]].astype(np.int64) - 1

    def _add(self, rule: ChildSum, batch: Batch, table: DescribedTable) -> None:
        own, rows = rule.sum.of.partition(".")[2], len(self._column(rule.sum.total))
        numbers = numbers_in(batch[own], self._columns[rule.sum.of], table.column(own))
        more: Floats = np.bincount(self._parents(batch, table), weights=numbers, minlength=rows).astype(np.float64)
        self._added[rule.sum.of] = self._added.get(rule.sum.of, np.zeros(len(more))) + more


def _is_vague(column: Column, entry: Mapping[str, Any], form: str) -> bool:
    """Return whether a form of file says less of a column than rules ask: its kind of missing, or all of its digits."""
    single = form == _ARRAYS or entry.get("dtype") == _SINGLE
    return (form != _CSV and column.missing_states > 1) or (single and column.plain and not column.unit)


def _declared(described: Mapping[str, Any]) -> Iterator[tuple[str, Rule, dict[str, str]]]:
    """Yield the declared rules: the table whose rows each is asked of, the rule, and its names -> the dictionary's."""
    related: Mapping[str, Any] = described.get("related") or {}
    try:
        if not related:
            for rule in _rules(described.get("constraints") or (), AnyRule):
                yield "data", rule, {name: name for name in rule.names}
            return
        for table, told in related.items():
            for rule in _rules(told.get("constraints") or (), AnyRule):
                yield str(table), rule, {name: f"{table}.{name}" for name in rule.names}
        for rule in _rules(described.get("constraints") or (), RelatedConstraint):
            homes = sorted({table_of(name) for name in rule.names}, key=lambda name: _level(related, name))
            yield homes[-1], rule, {name: name for name in rule.names}
    except ValidationError:
        raise ValueError("constraints") from None


def _rules(written: Iterable[Any], model: Any) -> list[Rule]:
    return [TypeAdapter[Rule](model).validate_python(each) for each in written]


def _level(related: Mapping[str, Any], name: str) -> int:
    level = 0
    while level < len(related) and (above := related[name].get("parent")) is not None:
        name, level = above, level + 1
    return level


def described_column(entry: Mapping[str, Any]) -> Column:
    """Return the column that an entry of the dictionary describes, every fact known.

    Raises:
        KeyError, ValueError: It describes none.
    """
    model = type_named(str(entry["type"]))
    keys = {field.alias or name for name, field in model.model_fields.items()} - {"type", "roles", "dtype"}
    facts = {key: fact for key, fact in entry.items() if key in keys and fact is not None}
    facts.pop("value_labels", None)
    try:
        return model.model_validate({"type": entry["type"], **facts})
    except ValidationError:
        raise ValueError(str(entry["name"])) from None


def numbers_in(cells: Cells, column: Column, told: DescribedColumn) -> Floats:
    """Return the ``(N,)`` numbers of read cells, as rules ask for them: of labels their places."""
    if not told.labelled:
        return column.snapped(cells.astype(np.float64))
    places = {value: float(place) for place, value in enumerate(told.values)}
    found = pd.Series(cells, dtype=object).map(places)
    numbers: Floats = np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))
    if column.missing_states > 1:  # a mapping makes all missing cells alike
        gone = pd.isna(cells)
        numbers[gone] = [math.nan if cell is None else cell for cell in cells[gone]]
    return numbers


def _shifted(numbers: Mapping[str, Floats], columns: Mapping[str, Column]) -> Any:
    """Return ``(N,)``: which rows hold a moment that stands for others, too: where clocks went forward.

    An hour that they left out is written as the moment after it, so that what follows from it may seem to differ.
    """
    found = np.zeros(len(next(iter(numbers.values()))), dtype=np.bool_)
    for name, column in columns.items():
        if column.zone is not None and name in numbers:
            known = ~np.isnan(numbers[name])
            found[known] |= left_out_by_clocks(numbers[name][known] - 1, column.zone)
    return found


def _said(rule: Rule, columns: Mapping[str, Column]) -> str:
    return f"has a row that breaks a declared rule: {rule.requirement(columns)}"
