"""Kind of data -> the model of its schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from doublure.schema.images import ImageSchema, ResolvedImageSchema
from doublure.schema.schema import Schema
from doublure.schema.series import ResolvedSeriesSchema, SeriesSchema
from doublure.schema.tables import ResolvedTableSchema, TableSchema

KINDS: dict[str, tuple[type[Schema], type[Schema]]] = {
    "table": (TableSchema, ResolvedTableSchema),
    "images": (ImageSchema, ResolvedImageSchema),
    "series": (SeriesSchema, ResolvedSeriesSchema),
}

RECORDS: dict[str, str] = {"table": "rows", "images": "images", "series": "series"}
"""Kind of data -> what its records are called."""


def model(kind: object, *, resolved: bool) -> type[Schema]:
    """Return the model of a kind, or of its resolved facts."""
    found = KINDS.get(kind) if isinstance(kind, str) else None
    # What is no kind at all is refused by a table's own model, which says what may stand there.
    return (found or KINDS["table"])[resolved]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of all kinds together."""
    kinds: Any = Annotated[TableSchema | ImageSchema | SeriesSchema, Field(discriminator="kind")]
    return TypeAdapter(kinds).json_schema()
