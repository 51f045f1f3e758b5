"""The unit of privacy: people or rows, the column that names a person, and how many there are."""

from __future__ import annotations

from typing import Any

from doublure.drafting.whose import likely_id
from doublure.errors import InputError, SettingError
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.unit import NO_ID, PERSON, RECORD, people_in
from doublure.studio import script
from doublure.studio.project import Project
from doublure.studio.step import Page, Step
from doublure.studio.visit import FormErrors, Studio, Visit

UNITS_EPSILON = 0.01
"""The price that ``schema check`` proposes for a noisy number of units."""
_ROWS, _ONE, _SEVERAL = "rows", "one", "several"
_NAME = "unit_name"


def show(visit: Visit) -> Page:
    """Show the question and both answers."""
    project = visit.project
    names = [each.name for each in project.columns]
    likely = likely_id(names)
    unit = project.unit
    answered = bool(project.answers.get("people"))
    saved = {
        "who": _saved_who(project) if answered else _SEVERAL if likely and people_in(likely) else "",
        "unit": unit.get("name") if answered else (people_in(likely) if likely else None) or PERSON,
        "id": (unit.get("id") if unit.get("id") != NO_ID else None) or likely or "",
        "max_records": unit.get("max_records", 1),
        "per_unit": unit.get("per_unit") or (),
    }
    units = project.units
    bought = isinstance(units, dict)
    context = {
        "names": [("", "–"), *((name, name) for name in names)],
        "saved": saved,
        "likely": likely,
        "bought": bought,
        "units": "" if bought or units == UNDECLARED else units,
        "magnitude": units.get("magnitude", "") if bought else "",
        "price": units["learn"] if bought else UNITS_EPSILON,
    }
    return Page("people.html.j2", context)


def keep(visit: Visit) -> str:
    """Keep the answer."""
    found = FormErrors()
    who, name = visit.text("who"), visit.text(_NAME) or PERSON
    unit: dict[str, Any] = {"name": name}
    key: str | None = None
    if who not in (_ROWS, _ONE, _SEVERAL):
        with found.at("who-one"):
            raise SettingError("is not answered", remedy="choose one of the three")
    if who == _ROWS:
        unit = {"name": RECORD, "id": NO_ID}
    if who == _SEVERAL:
        with found.at("id"):
            key = visit.text("id")
            if visit.project.column(key) is None:
                raise SettingError("is no column", remedy="choose the one that names a person")
        with found.at("max_records"):
            unit |= {"id": key, "max_records": _count(visit, "max_records")}
    units: Any = UNDECLARED
    if visit.text("counted") == "buy":
        with found.at("magnitude"):
            price = visit.number("price") if visit.text("price") else UNITS_EPSILON
            units = {"learn": price, "magnitude": float(_count(visit, "magnitude"))}
    else:
        with found.at("units"):
            units = _count(visit, "units")
    found.stop()
    return _kept(visit, unit, units, key)


def _kept(visit: Visit, unit: dict[str, Any], units: Any, key: str | None) -> str:
    def by(before: Project) -> Project:
        new = before.changed(unit=unit, units=units).answer("people", who=visit.text("who"))
        column = None if key is None else before.column(key)
        if column is None or column.facts.get("type") == "id":
            return new
        described = {name: fact for name, fact in column.facts.items() if name == "description"}
        as_id = column.changed(facts={"type": "id", **described}, left_out=False)
        return new.with_columns({column.name: as_id})

    visit.change(by, "Saved: who is protected.")
    return "/columns"


def _saved_who(project: Project) -> str:
    return str(project.answers["people"].get("who", ""))


def _count(visit: Visit, field: str) -> int:
    number = visit.number(field)
    if number < 1 or number != int(number):
        raise InputError("is not a whole number of at least 1", field=field, remedy="write one such as 5000")
    return int(number)


def done(studio: Studio) -> bool:
    """Return whether the question is answered."""
    project = studio.project
    return bool(project.answers.get("people")) or (project.own_schema and project.schema_file is not None)


STEP = Step(key="people", title="Who is protected", show=show, takes={"keep": keep}, same=script.schema, done=done)
