"""Propose whom a guarantee protects, by the names of columns alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from doublure.drafting.code_lists import FEWEST
from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.unit import NO_ID, RECORD, is_id_name, people_in, unit_word
from doublure.support import yaml12 as yaml_text

OF_RECORDS = f"unit: {{name: {RECORD}, id: {NO_ID}}}"
"""The answer that single records are protected."""
_SEVERAL = "max_records: NUMBER"


def unit_yaml(name: str, several: str = "") -> str:
    """Return the YAML that says that a column names the units.

    Args:
        name: The column.
        several: Further keys, for units of several records.

    Example:
        >>> unit_yaml("MRN"), unit_yaml("stay_id", "max_records: 2")
        ('unit: {name: patient, id: MRN}', 'unit: {name: stay, id: stay_id, max_records: 2}')
    """
    more = f", {several}" if several else ""
    return f"unit: {{name: {yaml_text.inline(unit_word(name))}, id: {yaml_text.inline(name)}{more}}}"


def id_names(columns: Mapping[str, Column]) -> list[str]:
    """Return the columns that are named as ids; a person's word beside a short declared list is a category's name."""
    few = {name for name, column in columns.items() if column.listed and 0 < (column.size or 0) < FEWEST}
    return [name for name in columns if is_id_name(name, of_few=name in few)]


def likely_id(names: Iterable[str]) -> str | None:
    """Return the column that may name people: the first named after them, else the first that is named as an id.

    Example:
        >>> likely_id(["age", "stay_id", "patient_id"]), likely_id(["age", "stay_id"]), likely_id(["age"])
        ('patient_id', 'stay_id', None)
    """
    named = [name for name in names if is_id_name(name)]
    return next((name for name in named if people_in(name) is not None), named[0] if named else None)


def proposed_units(names: Iterable[str]) -> Iterator[str]:
    """Yield the answers to whose records they are, as YAML with the condition of each; none without an id."""
    name = likely_id(names)
    if name is None:
        return
    who, shown = printable(unit_word(name)), printable(name)
    kept = "per_unit: [COLUMN, COLUMN]"
    yield f"{unit_yaml(name, _SEVERAL)}  # if {shown} names a {who} that may have several rows"
    yield f"{unit_yaml(name, f'{_SEVERAL}, {kept}')}  # and synthetic rows are to repeat, too"
    yield f"{OF_RECORDS}  # if single rows are to be protected"
