"""How many units each owner has: public, declared by the owner, and what bounds all that it sends.

The number is a promise to the others, as a column's bounds are: it is told with ``hello``, before anything is charged,
and is never counted off the records. An owner that has more units than it declares is not refused, for one record would
decide that: its own process keeps its answers within the bound (:func:`doublure.private.owners.bounded`).

======================================================  ===============================================================
an owner declares nothing                               the plan's declared units bound it; where those are to be
                                                        learned, 2^32 do
it declares more units than the plan has                it is refused, and nothing is charged
all owners together do, ``max_silos`` times             likewise: one of them takes more than its share
what bounds all of them, times a unit's records, is     likewise: a sum of counts would go round, and noise would not
2^63 or more
of a ``bayesgan`` plan somebody declares nothing        likewise: owners' lengths count by their shares of all units
======================================================  ===============================================================

Of units that are to be learned nothing is known but their order of magnitude. It limits what may be declared, and
bounds nobody who has declared nothing: the count that is bought would come out too small wherever it is exceeded.
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
"""What a sum of counts stays below, for exact noise goes no further round."""

MOST = 2**32
"""More units than anybody has: beside a sum of 2^32 C float64 has steps of 2^-20 C."""

_LESS = "declare how many units the owner has, or plan for as many as there are"


def require_declarable(units: object, schema: Schema, *, field: str) -> None:
    """Refuse a number of units that an owner cannot have, by its plan.

    Args:
        units: As it came; None where nothing is declared.
        schema: The plan's.
        field: What is named.

    Raises:
        InputError: So it is.
    """
    if units is None:
        return
    if type(units) is not int or units < 1:
        raise InputError("declares units that are no whole number above zero", field=field, remedy=_LESS)
    if units > schema.public_units:
        raise InputError(f"declares more units than the plan has ({schema.public_units})", field=field, remedy=_LESS)


def bound_of(units: int | None, schema: Schema) -> int:
    """Return how many units an owner's answers are held against.

    Args:
        units: What it declares; None: nothing.
        schema: The plan's.
    """
    if units is None and not isinstance(schema.units, int):
        return MOST
    return min(MOST, schema.public_units if units is None else units)


def bounds_of(told: Mapping[str, object], schema: Schema, *, everybody: bool) -> dict[str, int]:
    """Return how many units each owner's answers are held against.

    Args:
        told: What each declares, as it came, by owner.
        schema: The plan's.
        everybody: Whether each has to declare its units.

    Raises:
        InputError: Somebody declares what there cannot be, or nothing; naming one, or all.
    """
    declared: dict[str, int | None] = {}
    for owner, units in told.items():
        require_declarable(units, schema, field=f"client {owner}")
        if everybody and units is None:
            message = "does not declare its units, which say what its share of all distances is"
            raise InputError(message, field=f"client {owner}", remedy="start it with units=…, a public number")
        declared[owner] = units if isinstance(units, int) else None
    together, most = sum(units or 0 for units in declared.values()), schema.public_units * schema.max_silos
    if together > most:
        raise InputError(
            f"declare {together} units together, more than the plan has ({most})", field="clients", remedy=_LESS
        )
    bounds = {owner: bound_of(units, schema) for owner, units in declared.items()}
    if sum(bounds.values()) * schema.most_records >= _COUNTED:
        raise InputError(
            "may have more records together than whole numbers of 64 bits count",
            field="clients",
            remedy="declare how many units each owner has, and a smaller max_records",
        )
    return bounds


def read(path: Path) -> dict[str, Any]:
    """Return what a YAML file declares for each client, by the name of its file or folder.

    Raises:
        InputError: The file cannot be read, or holds something else.
    """
    found = yaml_text.load(path, "file of units")
    if not isinstance(found, dict):
        raise InputError("names no clients", field=path, remedy="write a line a client, such as north.csv: 2500")
    return {str(name): units for name, units in found.items()}


def of_clients(units: Mapping[str, Any], names: list[str]) -> None:
    """Refuse units that are declared for a client that there is not.

    Raises:
        SettingError: Naming one.
    """
    if unknown := sorted({*units} - {*names}):
        raise SettingError(
            "is no client", field=f"units {printable(unknown[0])}", remedy="name clients' files as they are"
        )
