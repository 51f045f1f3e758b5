"""The unit of privacy: whom a guarantee protects, and which column names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

from pydantic import (
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    StrictStr,
    model_serializer,
    model_validator,
)

from doublure.errors import printable
from doublure.schema.fact_states import Frozen
from doublure.schema.scalars import Positive

UNIT_ID = "unit.id"
"""The path of the question that an id raises: whose it is."""
NO_ID = "none"
"""The ``id`` of a file that protects records, and not people."""
RECORD = "record"
PERSON = "person"

_ALWAYS = frozenset({"name", "id", "max_records"})
_PEOPLE = {
    **dict.fromkeys(("person", "people", "individual", "human"), PERSON),
    **dict.fromkeys(("bioguide", "govtrack", "icpsr", "wikidata", "orcid", "isni", "viaf", "npi", "ssn"), PERSON),
    **dict.fromkeys(("patient", "patients", "mrn"), "patient"),
    **dict.fromkeys(("subject", "subjects", "subj"), "subject"),
    **dict.fromkeys(("customer", "customers", "cust"), "customer"),
    **{
        word: word
        for word in (
            "client", "member", "user", "employee", "student", "pupil", "participant", "respondent", "household",
            "citizen", "resident", "donor", "applicant", "borrower", "passenger", "guest", "driver", "tenant",
        )
    },
}  # fmt: skip
"""Words of names -> what one of them is called. The words are those of columns in public data sets."""
_SEVERAL = frozenset({"people", "patients", "subjects", "customers"})
"""Words of several: a column with such a name alone counts them."""
_IDS = frozenset(
    {
        *("id", "ids", "uuid", "guid", "nr", "nbr", "mrn", "ssn", "pid"),
        *("bioguide", "govtrack", "icpsr", "wikidata", "orcid", "isni", "viaf", "npi"),
    }
)
"""Words of identifiers; the second line are registers of people that public data sets refer to."""
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def is_id_name(name: str, *, of_few: bool = False) -> bool:
    """Return whether a column is named as an identifier, such as ``MRN``, ``patient`` or ``stay_id``; ``paid`` is none.

    Args:
        name: Of the column.
        of_few: Whether few values are declared: then a word for a person alone, such as ``citizen``, names a group.

    Example:
        >>> [name for name in ("MRN", "Patient", "patientId", "case nr", "paid", "people") if is_id_name(name)]
        ['MRN', 'Patient', 'patientId', 'case nr']
    """
    parts = _parts(name)
    alone = len(parts) == 1 and parts[0] in _PEOPLE.keys() - _SEVERAL
    return bool(parts) and (parts[-1] in _IDS or (alone and not of_few))


def people_in(name: str) -> str | None:
    """Return the word for the people that a column names, by its own name; None where it says none.

    Example:
        >>> people_in("MRN"), people_in("customer_id"), people_in("stay_id")
        ('patient', 'customer', None)
    """
    return next((_PEOPLE[part] for part in _parts(name) if part in _PEOPLE), None)


def unit_word(name: str) -> str:
    """Return the word for what a column of ids names, by its own name; a person where that has no word but the id's.

    Example:
        >>> [unit_word(name) for name in ("MRN", "station_id", "meterId", "nr")]
        ['patient', 'station', 'meter', 'person']
    """
    return people_in(name) or " ".join(part for part in _parts(name) if part not in _IDS) or PERSON


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PARTS.findall(name)]


class Unit(Frozen):
    """The unit of privacy, which the guarantee protects.

    ``id`` names the column that tells units apart when a unit has several records; at most ``max_records`` of each
    are used (the first ones in file order; of series, ones drawn at random). A file's ``id: none`` says that each
    record is a unit, whatever it is about. ``per_unit`` splits a table: :mod:`doublure.schema.visits`.
    """

    name: StrictStr = Field(default=PERSON, min_length=1)
    id: StrictStr | None = Field(
        default=None, description="the column that names units; none: records are protected, not people"
    )
    max_records: Positive = 1
    per_unit: tuple[StrictStr, ...] = Field(
        default=(), description="columns of a table that stay the same within a unit, whose rows come out together"
    )
    order: StrictStr | None = Field(default=None, description="the column by which a unit's rows follow one another")
    _each_record: bool = PrivateAttr(default=False)

    @property
    def each_record(self) -> bool:
        """Whether records are protected, and not the people that they are about."""
        return self._each_record

    @model_validator(mode="wrap")
    @classmethod
    def _read_none(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not (isinstance(data, Mapping) and data.get("id") == NO_ID):
            return handler(data)
        made = handler({"name": RECORD, **data, "id": None})
        if people_in(made.name) is not None:
            raise ValueError(f"id is {NO_ID}, and name promises more than a record; write name: {RECORD}")
        made._each_record = True
        return made

    @model_serializer(mode="wrap")
    def _write_none(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        kept = {key: value for key, value in written.items() if key in _ALWAYS or value}
        return kept | {"id": NO_ID} if self.each_record else kept

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.max_records > 1 and self.id is None:
            raise ValueError("max_records above 1 needs an id; name the column that identifies units")
        if self.per_unit and self.max_records == 1:
            raise ValueError("per_unit is for units of several rows; say how many of each are used: max_records")
        if len(set(self.per_unit)) < len(self.per_unit):
            raise ValueError("per_unit names a column twice; keep one")
        if self.order is not None and not self.per_unit:
            raise ValueError(
                "order goes with per_unit; name the columns that stay the same within a unit, or remove it"
            )
        if printable(self.name) != self.name:
            raise ValueError("name is long or has invisible characters; write one word, such as person")
        return self
