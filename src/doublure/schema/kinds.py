"""Kind of data -> the models of its schema, registered with :class:`~doublure.schema.schema.Schema`."""

from __future__ import annotations

from doublure.schema.images import ImageSchema, ResolvedImageSchema
from doublure.schema.schema import ResolvedSchema, Schema, register
from doublure.schema.series import ResolvedSeriesSchema, SeriesSchema
from doublure.schema.tables import ResolvedTableSchema, TableSchema

KINDS: dict[str, tuple[type[Schema], type[ResolvedSchema]]] = {
    "table": (TableSchema, ResolvedTableSchema),
    "images": (ImageSchema, ResolvedImageSchema),
    "series": (SeriesSchema, ResolvedSeriesSchema),
}

RECORDS: dict[str, str] = {"table": "rows", "images": "images", "series": "series"}
"""Kind of data -> what its records are called."""

for _kind, _models in KINDS.items():
    register(_kind, *_models)
