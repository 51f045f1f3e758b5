"""Public numbers of units that owners declare, which bound their answers.

The number is a promise, as a column's bounds are. It is sent with ``hello``, before anything is charged, and is never
counted from the records. An owner that has more units than it declares is not refused, as one record would decide that:
its own process keeps its answers within the bound (:func:`doublure.private.owners.bound_answer`).

======================================================  ===============================================================
an owner declares nothing                               the plan's declared units bound it; where those are to be
                                                        learned, 2^32 do
it declares more units than the plan has                it is refused, and nothing is charged
all owners together do, ``max_silos`` times             likewise: one of them takes more than its share
what bounds all of them, times a unit's records, is     likewise: a sum of counts would go round, and noise would not
2^63 or more
an owner of a ``bayesgan`` plan declares nothing        likewise: owners' lengths count by their shares of all units
======================================================  ===============================================================

If units are to be learned, only their order of magnitude is known. It limits the declared numbers, and does not bound
an owner that declares nothing, as the bought count would come out too small where it is exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doublure.errors import InputError, SettingError, printable
from doublure.support import yaml12 as yaml_text

if TYPE_CHECKING:
    from doublure.schema import Schema

_COUNTED = 2**63
"""Bound on a sum of counts, beyond which it would wrap around and its exact noise would not."""

MOST = 2**32
"""The most units of an owner: beside a sum of 2^32 C, float64 has steps of 2^-20 C."""

_LESS = "declare how many units the owner has, or plan for as many as there are"


def require_declarable(units: object, schema: Schema, *, field: str) -> None:
    """Refuse a number of units that an owner cannot have under its plan.

    Args:
        units: The declared number, unchecked; None where nothing is declared.
        schema: The plan's.
        field: The field that a refusal names.

    Raises:
        InputError: It is no such number.
    """
    if units is None:
        return
    if type(units) is not int or units < 1:
        raise InputError("declares units that are no whole number above zero", field=field, remedy=_LESS)
    if units > schema.public_units:
        raise InputError(f"declares more units than the plan has ({schema.public_units})", field=field, remedy=_LESS)


def unit_bound(units: int | None, schema: Schema) -> int:
    """Return the number of units that bounds an owner's answers.

    Args:
        units: The declared number; None if nothing is declared.
        schema: The plan's.
    """
    if units is None and not isinstance(schema.units, int):
        return MOST
    return min(MOST, schema.public_units if units is None else units)


def unit_bounds(told: Mapping[str, object], schema: Schema, *, required: bool) -> dict[str, int]:
    """Return the number of units that bounds each owner's answers.

    Args:
        told: Declared numbers by owner, unchecked.
        schema: The plan's.
        required: Whether every owner has to declare its units.

    Raises:
        InputError: An owner declares an impossible number, or nothing where it has to; naming one owner or all.
    """
    declared: dict[str, int | None] = {}
    for owner, units in told.items():
        require_declarable(units, schema, field=f"client {owner}")
        if required and units is None:
            message = "does not declare its units, which say what its share of all distances is"
            raise InputError(message, field=f"client {owner}", remedy="start it with units=…, a public number")
        declared[owner] = units if isinstance(units, int) else None
    together, most = sum(units or 0 for units in declared.values()), schema.public_units * schema.max_silos
    if together > most:
        raise InputError(
            f"declare {together} units together, more than the plan has ({most})", field="clients", remedy=_LESS
        )
    bounds = {owner: unit_bound(units, schema) for owner, units in declared.items()}
    if sum(bounds.values()) * schema.most_records >= _COUNTED:
        raise InputError(
            "may have more records together than whole numbers of 64 bits count",
            field="clients",
            remedy="declare how many units each owner has, and a smaller max_records",
        )
    return bounds


def read(path: Path) -> dict[str, Any]:
    """Return the declared units of a YAML file, by the name of a client's file or folder.

    Raises:
        InputError: The file cannot be read, or is no mapping.
    """
    found = yaml_text.load(path, "file of units")
    if not isinstance(found, dict):
        raise InputError("names no clients", field=path, remedy="write a line a client, such as north.csv: 2500")
    return {str(name): units for name, units in found.items()}


def refuse_unknown_clients(units: Mapping[str, Any], names: list[str]) -> None:
    """Refuse units that are declared for an unknown client.

    Raises:
        SettingError: Naming one.
    """
    if unknown := sorted({*units} - {*names}):
        raise SettingError(
            "is no client", field=f"units {printable(unknown[0])}", remedy="name clients' files as they are"
        )
