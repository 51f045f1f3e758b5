"""The data dictionary of a release: every column with its type and domain, from public or bought facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doublure.data.tables.writing import defused
from doublure.releasing.writing import WRITERS
from doublure.schema import ResolvedSchema
from doublure.schema.columns import Column, label

VERSION = 2
"""From 2 on a dictionary says all that rules ask of columns."""
_SPACING = ("step", "timezone")
_DEFUSED = "text and column names that a spreadsheet would run as a formula have an apostrophe (') before them"


def dictionary(schema: ResolvedSchema, *, spreadsheet_safe: bool = False, forms: Sequence[str] = ()) -> dict[str, Any]:
    """Return the data dictionary: every column with its type and domain, from public or bought facts.

    Args:
        schema: Every fact known.
        spreadsheet_safe: Say under which name a column is written whose own name a spreadsheet would run.
        forms: The endings of the files of related tables; those of a release that asks for none if left out.
    """
    sources = {name: ", ".join(found) for name, found in schema.sources.items()}
    columns: list[dict[str, Any]] = []
    for name, column in {**schema.columns, **schema.copied}.items():
        values, bounds = [label(value) for value in column.shown_values], column.shown_bounds
        columns.append(
            {
                "name": name,
                "type": column.shown_type,
                "description": column.description,
                "values": values or None,
                "bounds": None if bounds is None else [_plain(end) for end in bounds],
                "precision": column.decimals,
                "missing": column.shown_missing,
                "roles": list(column.roles),
                "derived_from": sources.get(name),
            }
        )
        said = {"dtype": column.dtype, "value_labels": column.value_labels}
        columns[-1] |= {} if column.origin is None else {"origin": column.origin}
        columns[-1] |= {"origin": "copied from a public table", "missing": True} if name in schema.copied else {}
        columns[-1] |= {**column.told, **column.text_form, **_spacing(column)}
        columns[-1] |= {key: fact for key, fact in said.items() if fact is not None}
        if spreadsheet_safe and defused(name) != name:
            columns[-1]["written_as"] = defused(name)
    constraints = [constraint.model_dump(mode="json") for constraint in schema.constraints]
    described: dict[str, Any] = {
        "version": VERSION,
        "kind": schema.file_kind,
        "columns": columns,
        "constraints": constraints,
    }
    if schema.written is not None and schema.written.text_form:
        described["text"] = schema.written.text_form
    if spreadsheet_safe:
        described["spreadsheet_safe"] = _DEFUSED
    described |= WRITERS[schema.kind].described(schema)
    for name, told in described.get("related", {}).items():
        told["file"] = ", ".join(f"{name}.{form}" for form in forms or WRITERS[schema.kind].forms)
    return described


def _spacing(column: Column) -> dict[str, Any]:
    """Return the spacing of a column's cells and their time zone, where they are not the usual ones."""
    fields = type(column).model_fields
    return {key: column.fact(key) for key in _SPACING if key in fields and column.fact(key) != fields[key].default}


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
