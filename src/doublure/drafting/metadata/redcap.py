"""REDCap's data dictionary (CSV), as a project exports it or its API gives it.

Of each field it says the type, the choices, the validation and whether an answer is required. A checkbox is a column a
choice. Exports have a column more for each form: whether it is complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from doublure.drafting.codebook import DataDescription, Entry
from doublure.drafting.metadata.form import (
    MetadataForm,
    bounds,
    csv_rows,
    labelled,
    line,
    listed,
    meaning,
    read_header,
    read_text,
)
from doublure.drafting.proposals import subject_named
from doublure.errors import SchemaError, counted
from doublure.schema.columns import unmodelled_types

_TITLE = "a REDCap data dictionary"
_NAMES = {
    "Variable / Field Name": "field_name",
    "Form Name": "form_name",
    "Field Type": "field_type",
    "Field Label": "field_label",
    "Choices, Calculations, OR Slider Labels": "select_choices_or_calculations",
    "Text Validation Type OR Show Slider Number": "text_validation_type_or_show_slider_number",
    "Text Validation Min": "text_validation_min",
    "Text Validation Max": "text_validation_max",
    "Identifier?": "identifier",
    "Branching Logic (Show field only if...)": "branching_logic",
    "Required Field?": "required_field",
}
"""Header of an export -> name in the API."""
_TAG = re.compile(r"<[^<>]+>")
_CHOSEN = ("radio", "dropdown")
_NO_COLUMN = ("descriptive",)
_OMITTED = {"notes": "free text", "file": "a file", "signature": "a signature", "sql": "a query of the project"}
_COMPLETE = {"0": "incomplete", "1": "unverified", "2": "complete"}
_DECIMALS = re.compile(r"number_(\d)dp")
_OTHER_DAY = re.compile(r"(\d{2})[-/](\d{2})[-/](\d{4})(.*)")


def read(path: Path) -> DataDescription:
    """Read a data dictionary.

    Raises:
        InputError: The file cannot be read.
        SchemaError: It has no such header, or a row is malformed.
    """
    rows = csv_rows(read_text(path, _TITLE), path.name)
    header = [_NAMES.get(name.strip(), name.strip()) for name in next(rows, [])]
    if "field_name" not in header or "field_type" not in header:
        remedy = "export the data dictionary of the project as CSV"
        raise SchemaError("has no header of a data dictionary", field=f"{path.name} row 1", remedy=remedy)
    entries: dict[str, Entry] = {}
    forms: dict[str, str] = {}
    for number, cells in enumerate(rows, start=2):
        if not any(cells):
            continue
        if len(cells) != len(header):
            message = f"has {counted(len(cells), 'field')} and the header {len(header)}"
            raise SchemaError(message, field=f"{path.name} row {number}", remedy="export it again")
        field = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        place = f"{path.name} row {number}"
        forms.setdefault(field.get("form_name", ""), place)
        if field["field_type"] not in _NO_COLUMN:
            entries |= _columns(field, place, first=not entries)
    for form, place in forms.items():
        facts = labelled({"type": "ordinal", "values": [0, 1, 2], "missing": False}, _COMPLETE)
        entries[f"{form}_complete"] = Entry(place=place, facts=facts)
    return DataDescription(name=path.name, form=_TITLE, entries=entries)


def _columns(field: Mapping[str, str], place: str, *, first: bool) -> dict[str, Entry]:
    """Return the columns of a field; the first field of a project is the record's id."""
    name, kind, label = field["field_name"], field["field_type"], _TAG.sub("", field.get("field_label", ""))
    if first:
        return {name: Entry(place=place, facts={"type": "id"}, description=meaning(label))}
    choices = _choices(field) if kind in (*_CHOSEN, "checkbox") else {}
    if kind == "checkbox":
        return {
            f"{name}___{re.sub('[^a-z0-9_]', '_', code.lower())}": Entry(
                place=place, facts={"type": "boolean"}, description=meaning(f"{label}: {choice}")
            )
            for code, choice in choices.items()
        }
    if kind in _OMITTED:
        return {name: Entry(place=place, description=meaning(label), omitted=True)}
    facts, notes = _facts(field, kind, choices)
    may_be_missing = field.get("required_field", "").lower() != "y" or bool(field.get("branching_logic"))
    if facts and facts["type"] not in unmodelled_types():
        facts["missing"] = may_be_missing
    return {name: Entry(place=place, facts=labelled(facts, choices), description=meaning(label), notes=notes)}


def _choices(field: Mapping[str, str]) -> dict[str, str]:
    """Return code -> label of ``1, Male | 2, Female``."""
    pairs = (each.partition(",") for each in field.get("select_choices_or_calculations", "").split("|"))
    return {code.strip(): _TAG.sub("", label).strip() for code, _, label in pairs if code.strip()}


def _facts(field: Mapping[str, str], kind: str, choices: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    if kind in _CHOSEN:
        return ({"type": "category", "values": listed(choices)} if choices else {}), ()
    if kind in ("yesno", "truefalse"):
        return {"type": "boolean"}, ()
    if kind == "calc":
        return {"type": "real"}, (f"calculated: {line(field.get('select_choices_or_calculations', ''))}",)
    validation = field.get("text_validation_type_or_show_slider_number", "")
    lower, upper = (_day(field.get(f"text_validation_{end}", ""), validation) for end in ("min", "max"))
    if kind == "slider":
        ends, notes = bounds(lower or 0, upper or 100)
        return {"type": "integer", **ends}, notes
    facts = _validated(validation)
    if not facts:
        return (_identifying(field["field_name"]) if field.get("identifier", "").lower() == "y" else {}), ()
    ends, notes = bounds(lower, upper)
    return (facts if facts["type"] in unmodelled_types() else facts | ends), notes


def _identifying(name: str) -> dict[str, Any]:
    """Return what a text that identifies people is: made up where its name says what it holds, else numbered anew."""
    subject = subject_named(name.replace("_", " "))
    return {"type": "id"} if subject is None else {"type": "fake", "as": subject}


def _validated(validation: str) -> dict[str, Any]:
    """Return the type that a validation means; nothing for one that says only how a text is spelt."""
    if validation == "integer":
        return {"type": "integer"}
    if validation.startswith("number"):
        found = _DECIMALS.match(validation)
        return {"type": "real"} | ({"precision": int(found[1])} if found else {})
    if validation.startswith("datetime"):
        return {"type": "datetime"} | ({} if "seconds" in validation else {"step": 60})
    if validation.startswith("date_"):
        return {"type": "date"}
    if validation in ("time", "time_hh_mm_ss"):
        return {"type": "time"} | ({"step": 60} if validation == "time" else {})
    if validation in ("email", "phone"):
        return {"type": "fake", "as": validation}
    return {}


def _day(text: str, validation: str) -> str:
    """Return a day in ISO 8601, of a field whose days are written another way."""
    found = _OTHER_DAY.fullmatch(text)
    if found is None or not validation.startswith("date"):
        return text
    first, second, year, clock = found.groups()
    day, month = (second, first) if validation.endswith("mdy") else (first, second)
    return f"{year}-{month}-{day}{clock}"


FORM = MetadataForm(
    title=_TITLE,
    read=read,
    recognises=lambda path: {_NAMES.get(name, name) for name in read_header(path)} >= {"field_name", "field_type"},
)
