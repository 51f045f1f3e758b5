"""Storage types of a typed container's columns, by the names that a schema gives them; a container's public form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast, get_args

import pandas as pd

from doublure.schema.columns.dtypes import Dtype

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = frozenset(get_args(Dtype))


def dtypes_of_arrow(schema: pa.Schema) -> dict[str, Dtype]:
    """Return the storage types of Arrow's columns, as far as a schema has a name for them."""
    import pyarrow as pa

    found: dict[str, str] = {}
    for field in schema:
        kind = field.type
        if pa.types.is_dictionary(kind):
            found[field.name] = "category"
        elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            found[field.name] = "str"
        elif pa.types.is_timestamp(kind):
            found[field.name] = f"datetime64[{kind.unit}]"
        elif pa.types.is_duration(kind):
            found[field.name] = f"timedelta64[{kind.unit}]"
        elif pa.types.is_date32(kind):
            found[field.name] = "date32"
        else:
            found[field.name] = {"float": "float32", "double": "float64"}.get(str(kind), str(kind))
    return _named(found)


def dtypes_of_frame(frame: pd.DataFrame) -> dict[str, Dtype]:
    """Return the storage types of a DataFrame's columns, as far as a schema has a name for them."""
    found: dict[str, str] = {}
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, pd.ArrowDtype):
            import pyarrow as pa

            found |= dtypes_of_arrow(pa.schema([(str(name), dtype.pyarrow_dtype)]))
        elif isinstance(dtype, pd.StringDtype):
            found[str(name)] = "str"
        elif isinstance(dtype, pd.DatetimeTZDtype):
            found[str(name)] = f"datetime64[{dtype.unit}]"
        else:
            found[str(name)] = str(dtype)
    return _named(found)


def _named(found: Mapping[str, str]) -> dict[str, Dtype]:
    return {name.strip(): cast("Dtype", dtype) for name, dtype in found.items() if dtype in _NAMES}
