"""Conditions on sampled records: ``given={"sex": "Female", "age": (30, 40), "job": ["cook", "nurse"]}``.

==========================================  ================  =======================================
Python                                      ``--given``       a cell fits if it is
==========================================  ================  =======================================
``{"job": "cook"}``                         ``job=cook``      this value
``{"age": (30, 40)}``, also ``(30, None)``  ``age=30..40``    in the range, both ends included
``{"job": ["cook", "nurse"]}``              ``job=cook,nurse``  one of these
``{"pdays": None}``                         ``pdays=``        missing
``{"sex": {"f": 0.5, "m": 0.5}}``           ``--shares``      each of these in its share of the records
==========================================  ================  =======================================

Conditions that no record can meet are refused before anything is drawn.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from doublure.data.records import taken
from doublure.encode.attribute_groups import codes_within
from doublure.errors import SettingError, printable
from doublure.schema import ResolvedSchema
from doublure.schema.allowed import Allowed
from doublure.schema.columns import Column
from doublure.schema.rules.rule_set import RuleSet

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

_MOST_GROUPS = 1_000


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Conditions that every record must meet.

    Attributes:
        schema: The resolved schema.
        fixed: Accepted codes by condition, which the generator is asked for.
        by_rejection: Accepted cells by other column.
        checked: Accepted cells by column of ``fixed`` that may differ from the generator's condition, because a rule
            changes it or a number belongs to its group.
    """

    schema: ResolvedSchema
    fixed: Mapping[str, tuple[int, ...]]
    by_rejection: Mapping[str, Allowed]
    checked: Mapping[str, Allowed]

    @property
    def sure(self) -> bool:
        """Whether every record that is drawn fits."""
        return not (self.by_rejection or self.checked)

    def fitting(self, records: Any) -> Any:
        """Return the records that meet the conditions."""
        for name, cells in {**self.by_rejection, **self.checked}.items():
            beside = records if hasattr(records, "__getitem__") else records.attributes
            records = taken(records, cells.has(self.schema.columns[name].snapped_numbers_of(beside[name])))
        return records


@dataclass(frozen=True, kw_only=True)
class ConditionGroups:
    """Groups of records and their shares, which add up to 1; one group where no distribution is asked for."""

    groups: tuple[tuple[Conditions, float], ...]

    @property
    def by_rejection(self) -> bool:
        """Whether records of one group are drawn until enough fit, so that no chunk follows from its number alone."""
        return len(self.groups) == 1 and not self.groups[0][0].sure

    def counts(self, done: int, size: int) -> list[int]:
        """Return the number of records of each group among the next ``size`` after the first ``done``."""
        ends = np.cumsum([share for _, share in self.groups])
        ends /= ends[-1]
        before, after = (np.floor(np.append(0.0, ends) * count + 0.5) for count in (done, done + size))
        return [int(count) for count in np.diff(after) - np.diff(before)]


def read(given: Mapping[str, object], schema: ResolvedSchema, encoder: Encoder) -> ConditionGroups:
    """Parse and check conditions.

    Raises:
        SettingError: There is no such column, it cannot have this value, or shares do not add up.
    """
    choices = [_choices(name, value) for name, value in given.items()]
    if math.prod(map(len, choices)) > _MOST_GROUPS:
        remedy = f"ask for at most {_MOST_GROUPS} groups of records"
        raise SettingError("divides the records into too many groups", field="given", remedy=remedy)
    groups = []
    for chosen in itertools.product(*choices):
        asked = {name: value for name, (value, _) in zip(given, chosen, strict=True)}
        groups.append((_one(asked, schema, encoder), math.prod(share for _, share in chosen)))
    return ConditionGroups(groups=tuple(groups))


def _choices(name: str, value: object) -> list[tuple[object, float]]:
    """Return the values that a condition asks for, with their shares."""
    if not isinstance(value, Mapping):
        return [(value, 1.0)]
    field, shares = f"given {printable(name)}", list(value.values())
    numbers = [
        math.nan if isinstance(share, bool) or not isinstance(share, (int, float)) else share for share in shares
    ]
    if not numbers or not all(0 <= share <= 1 for share in numbers) or abs(sum(numbers) - 1) > 0.01:
        raise SettingError("has shares that do not add up to 1", field=field, remedy="write {a: 0.5, b: 0.5}")
    return [(key, share) for key, share in zip(value, numbers, strict=True) if share > 0]


def _one(given: Mapping[str, object], schema: ResolvedSchema, encoder: Encoder) -> Conditions:
    fixed: dict[str, tuple[int, ...]] = {}
    by_rejection: dict[str, Allowed] = {}
    checked: dict[str, Allowed] = {}
    conditions = set(schema.with_role("condition"))
    for asked, value in given.items():
        name = schema.asked(asked)
        column = schema.columns.get(name)
        if column is not None and column.bounded and name in conditions:
            checked[name] = _cells(column, value, f"given {printable(name)}")
            fixed[name] = codes_within(column, checked[name])
            continue
        if column is None or not schema.asked_by_cells:
            fixed[name] = _codes(name, value, column, encoder)
            continue
        cells = _cells(column, value, f"given {printable(name)}")
        if name not in conditions:
            by_rejection[name] = cells
            continue
        fixed[name] = _listed(cells)
        if schema.only_columns and any(name in rule.names for rule in schema.constraints):
            checked[name] = cells
    _refuse_clash({**by_rejection, **checked}, schema)
    return Conditions(schema=schema, fixed=fixed, by_rejection=by_rejection, checked=checked)


def _refuse_clash(asked: Mapping[str, Allowed], schema: ResolvedSchema) -> None:
    """Refuse conditions that the declared rules exclude, before any row is drawn.

    Raises:
        SettingError: Naming the columns.
    """
    if schema.only_columns and (names := RuleSet(schema.constraints, schema.columns).clash(asked)):
        field = f"given {', '.join(map(printable, names))}"
        remedy = "ask for cells that the schema's constraints allow"
        raise SettingError("is what no row can be by the declared rules", field=field, remedy=remedy)


def _codes(name: str, value: object, column: Column | None, encoder: Encoder) -> tuple[int, ...]:
    """Return the codes of a label or an attribute; the encoder refuses unknown ones."""
    values = column.several(value) if column is not None else [value]
    return tuple(dict.fromkeys(encoder.condition_codes({name: each})[name] for each in values))


def _listed(cells: Allowed) -> tuple[int, ...]:
    if cells.span is not None:
        return tuple(range(int(cells.span[0]), int(cells.span[1]) + 1))
    return tuple(dict.fromkeys(map(int, cells.values)))


def _cells(column: Column, value: object, field: str) -> Allowed:
    try:
        return Allowed.from_answer(column.asked(value))
    except ValueError as error:
        message, _, remedy = str(error).partition("; ")
        raise SettingError(message, field=field, remedy=remedy or "see schema.yaml") from None
