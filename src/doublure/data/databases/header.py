"""The header of a table in a database, as a frame of no rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from doublure.data.databases.address import read_address
from doublure.data.databases.connection import connect
from doublure.data.databases.relation import choose_relation
from doublure.schema.columns import sql_words as sql

if TYPE_CHECKING:
    import pandas as pd


def empty_table(url: str, table: str | None, query: str | None = None) -> pd.DataFrame:
    """Return a frame with the columns of a table in a database, and no row: none is read.

    Args:
        url: Of the database, without a password.
        table: The table or view.
        query: Or a query of rows.

    Raises:
        DataError: The database refuses.
        SettingError: The address or the query is none that is read.
        MissingExtra: A driver is not installed.
    """
    import pandas as pd
    import pyarrow as pa

    types: dict[str, Any] = {
        "whole": pa.int64(), "real": pa.float64(), "decimal": pa.float64(), "truth": pa.bool_(), "day": pa.date32(),
        "moment": pa.timestamp("s"), "zoned": pa.timestamp("s", "UTC"), "clock": pa.time32("s"),
        "span": pa.duration("s"),
    }  # fmt: skip
    database = connect(read_address(url))
    try:
        header = database.header(sql.select("*", of=choose_relation(table, query).source(database)))
    finally:
        database.close()
    empty = pa.schema([(name, types.get(kind, pa.string())) for name, kind in header]).empty_table()
    found: pd.DataFrame = empty.to_pandas(types_mapper=pd.ArrowDtype)  # a stream of Arrow is read once
    return found.astype({name: object for name, kind in header if kind in ("text", "other")})
