"""The unit of privacy: people or rows, the column that names a person, and how many there are."""

from __future__ import annotations

from typing import Any

from doublure.drafting.metadata.codebook import keys_of_type
from doublure.drafting.whose import likely_id
from doublure.errors import InputError, SettingError
from doublure.schema.fact_states import UNDECLARED
from doublure.schema.unit import NO_ID, PERSON, RECORD, people_in
from doublure.studio import script
from doublure.studio.project import ONE_EACH, Project, ProjectColumn
from doublure.studio.step import Page, Step
from doublure.studio.steps import related
from doublure.studio.visit import FormErrors, Studio, Visit

UNITS_EPSILON = 0.01
"""The price that ``schema check`` proposes for a noisy number of units."""
_ROWS, _SEVERAL = "rows", "several"
_NAME = "unit_name"


def show(visit: Visit) -> Page:
    """Show the question and both answers."""
    project = visit.project
    names = [each.name for each in project.columns]
    likely = None if project.tables else likely_id(names)
    unit = project.unit
    who = _who(project)
    named = who or project.tables or unit.get("name") != PERSON
    saved = {
        "who": who or (_SEVERAL if likely and people_in(likely) else ""),
        "unit": unit.get("name") if named else (people_in(likely) if likely else None) or PERSON,
        "id": (unit.get("id") if unit.get("id") != NO_ID else None) or likely or "",
        "max_records": unit.get("max_records", 1) if who == _SEVERAL else "",
        "order": unit.get("order") or "",
    }
    units = project.units
    bought = isinstance(units, dict)
    context = {
        "names": [("", "–"), *((name, name) for name in names)],
        "staying": [each.name for each in project.columns if not each.left_out],
        "stays": visit.lists.get("per_unit", ()) if visit.errors else unit.get("per_unit") or (),
        "orders": [("", "they do not"), *((each.name, each.name) for each in project.columns if _orders(each))],
        **related.context(visit),
        "saved": saved,
        "likely": likely,
        "own_id": project.plain_unit.get("id") if who == ONE_EACH else None,
        "bought": bought,
        "units": "" if bought or units == UNDECLARED else units,
        "magnitude": units.get("magnitude", "") if bought else "",
        "price": units["learn"] if bought else UNITS_EPSILON,
    }
    return Page("people.html.j2", context)


def keep(visit: Visit) -> str:
    """Keep the answer."""
    found = FormErrors()
    if visit.project.tables:
        return _keep_related(visit, found)
    who, name = visit.text("who"), visit.text(_NAME) or PERSON
    if not who and (visit.text("max_records") or visit.lists.get("per_unit")):  # only rows of one person have these
        who = _SEVERAL
    unit: dict[str, Any] = {"name": name}
    key: str | None = None
    if who not in (_ROWS, ONE_EACH, _SEVERAL):
        with found.at("who-one"):
            raise SettingError("is not answered", remedy="choose one of the three")
    if who == _ROWS:
        unit = {"name": RECORD, "id": NO_ID}
    if who == _SEVERAL:
        with found.at("id"):
            key = visit.text("id")
            if visit.project.column(key) is None:
                raise SettingError("is no column", remedy="choose the one that names units")
        with found.at("max_records"):
            if not visit.text("max_records"):
                raise SettingError("is empty", remedy="write how many rows of one unit may be used, such as 5")
            unit |= {"id": key, "max_records": _count(visit, "max_records")}
            unit |= _staying(visit, unit["max_records"])
    units = _units(visit, found)
    found.stop()
    after = _answered(visit.project, unit, units, key, who)
    with found.at("per_unit"):
        after.described(visit.studio.folder)
    found.stop()
    visit.change(lambda before: _answered(before, unit, units, key, who), "Saved: who is protected.")
    return "/columns"


def _keep_related(visit: Visit, found: FormErrors) -> str:
    """Keep how tables hang together, the unit's name, and how many units there are."""
    units = _units(visit, found)
    after = related.entered(visit, found)
    unit = {"name": visit.text(_NAME) or PERSON}
    after = after.changed(unit=unit, units=units).answer("people", who=_SEVERAL)
    with found.at("root"):
        after.described(visit.studio.folder)
    found.stop()
    visit.change(lambda before: after, "Saved: who is protected, and how tables hang together.")
    return "/columns"


def _staying(visit: Visit, most: int) -> dict[str, Any]:
    """Return what stays the same within a person; nothing where each row is to stand alone.

    Raises:
        InputError: It is said where one row of each is used.
    """
    stays, order = list(visit.lists.get("per_unit", ())), visit.text("order")
    if stays and most == 1:
        remedy = "use 2 or more, or leave the columns that stay the same unticked"
        raise InputError("is 1, and rows of a person are to come out together", field="max_records", remedy=remedy)
    return ({"per_unit": stays} if stays else {}) | ({"order": order} if stays and order else {})


def _units(visit: Visit, found: FormErrors) -> Any:
    units: Any = UNDECLARED
    if visit.text("counted") == "buy":
        with found.at("magnitude"):
            price = visit.number("price") if visit.text("price") else UNITS_EPSILON
            units = {"learn": price, "magnitude": float(_count(visit, "magnitude"))}
    else:
        with found.at("units"):
            units = _count(visit, "units")
    return units


def _answered(project: Project, unit: dict[str, Any], units: Any, key: str | None, who: str) -> Project:
    new = project.changed(unit=unit, units=units).answer("people", who=who)
    column = None if key is None else project.column(key)
    if column is None or column.facts.get("type") == "id":
        return new
    described = {name: fact for name, fact in column.facts.items() if name == "description"}
    as_id = column.changed(facts={"type": "id", **described}, left_out=False)
    return new.with_columns({column.name: as_id})


def _orders(column: ProjectColumn) -> bool:
    """Return whether rows can follow one another by a column: it has bounds."""
    return not column.left_out and "bounds" in keys_of_type(str(column.facts.get("type")))


def _who(project: Project) -> str:
    """Return the answer that was saved, or that the unit of a codebook or a schema gives; empty without one."""
    unit, saved = project.unit, project.answers.get("people")
    if saved:
        return str(saved.get("who", ""))
    if project.tables or unit.get("id") in (None, UNDECLARED):
        return ""
    if unit["id"] == NO_ID:
        return _ROWS
    alone = project.changed(unit={"name": unit["name"]}).answer("people", who=ONE_EACH).plain_unit
    return ONE_EACH if unit.get("max_records", 1) == 1 and alone.get("id") == unit["id"] else _SEVERAL


def _count(visit: Visit, field: str) -> int:
    number = visit.number(field)
    if number < 1 or number != int(number):
        raise InputError("is not a whole number of at least 1", field=field, remedy="write one such as 5000")
    return int(number)


def done(studio: Studio) -> bool:
    """Return whether the question is answered."""
    project = studio.project
    if project.own_schema and project.schema_file is not None:
        return True
    return bool(project.answers.get("people")) or (bool(_who(project)) and project.units != UNDECLARED)


STEP = Step(key="people", title="Who is protected", show=show, takes={"keep": keep}, same=script.schema, done=done)
