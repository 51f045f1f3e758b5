"""Kind of data -> the model of its schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from doublure.errors import SchemaError
from doublure.schema.images import ImageSchema, ResolvedImageSchema
from doublure.schema.schema import Schema
from doublure.schema.table import ResolvedTableSchema, TableSchema

KINDS: dict[str, tuple[type[Schema], type[Schema]]] = {
    "table": (TableSchema, ResolvedTableSchema),
    "images": (ImageSchema, ResolvedImageSchema),
}


def model(kind: object, *, resolved: bool) -> type[Schema]:
    """Return the model of a kind, or of its resolved facts.

    Raises:
        SchemaError: The kind is not read by this version.
    """
    if kind == "series":
        remedy = f"use kind: {' or '.join(KINDS)}"
        raise SchemaError("kind series is not read by this version", field="kind", remedy=remedy)
    found = KINDS.get(kind) if isinstance(kind, str) else None
    # What is no kind at all is refused by a table's own model, which says what may stand there.
    return (found or KINDS["table"])[resolved]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of all kinds together."""
    kinds: Any = Annotated[TableSchema | ImageSchema, Field(discriminator="kind")]
    return TypeAdapter(kinds).json_schema()
