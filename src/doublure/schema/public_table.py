"""Public reference tables beside related ones: given, never counted, and copied into every sample.

``public: {tracks: {file: tracks.csv, key: nr}}`` with ``references: {track: tracks}`` in a private table says that its
column ``track`` holds keys of a table that is public. The column is one more category of the private table; what
the public table says of a key tells nothing more about any person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from pydantic import Field, StrictStr, model_validator

from doublure.errors import printable
from doublure.schema.columns import Column
from doublure.schema.columns.lookup import PublicColumn
from doublure.schema.fact_states import Frozen, Learn
from doublure.schema.scalars import check_name, label

if TYPE_CHECKING:
    import pandas as pd

    from doublure.schema.related_table import RelatedTable

_Row: TypeAlias = tuple[StrictStr, ...]


class PublicTable(Frozen):
    """A public table, as its file has it.

    Attributes:
        key: The column that other tables name its rows by.
        columns: Its columns.
        rows: Their cells, row by row.
    """

    key: StrictStr
    columns: _Row
    rows: tuple[_Row, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _as_texts(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(rows := given.get("rows"), list | tuple):
            rows = [[label(cell) for cell in row] if isinstance(row, list | tuple) else row for row in rows]
            return given | {"rows": rows}
        return given

    @model_validator(mode="after")
    def _keys_name_rows(self) -> Self:
        for name in self.columns:
            check_name(name)
        if len({*self.columns}) != len(self.columns) or self.key not in self.columns:
            raise ValueError(f"has no one column {printable(self.key)}; fix its header")
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("has rows of several lengths; give each a cell for every column")
        if len({*self.keys}) != len(self.rows) or "" in self.keys:
            raise ValueError(f"has a key in {printable(self.key)} that is empty or stands twice; give each row one")
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each row."""
        place = self.columns.index(self.key)
        return tuple(row[place] for row in self.rows)

    def cells(self, name: str) -> tuple[str, ...]:
        """Return a column."""
        place = self.columns.index(name)
        return tuple(row[place] for row in self.rows)

    @property
    def described(self) -> dict[str, Column]:
        """Its columns, as a schema has them."""
        return {name: PublicColumn(**{"from": self.cells(name)}) for name in self.columns}

    @property
    def frame(self) -> pd.DataFrame:
        """Its rows."""
        import pandas as pd

        return pd.DataFrame({name: pd.Series(self.cells(name), dtype="str") for name in self.columns})


def with_keys(data: Any) -> Any:
    """Return a schema's plain data where columns that name rows of a public table have its keys as values.

    A column that has values already, such as those of a coarser list, keeps them.
    """
    public = data.get("public") if isinstance(data, dict) else None
    if not (isinstance(public, dict) and isinstance(tables := data.get("tables"), dict)):
        return data
    return data | {"tables": {name: _filled(table, public) for name, table in tables.items()}}


def _filled(table: Any, public: Mapping[str, Any]) -> Any:
    references = table.get("references") if isinstance(table, dict) else None
    if not (isinstance(references, dict) and isinstance(table.get("columns"), dict)):
        return table
    columns = dict(table["columns"])
    for own, named in references.items():
        column, found = columns.get(own), public.get(named)
        if isinstance(column, dict) and isinstance(found, dict) and "values" not in column:
            try:
                columns[own] = column | {"values": list(PublicTable.model_validate(found).keys)}
            except ValueError:  # said of the public table itself
                continue
    return table | {"columns": columns}


def check_references(tables: Mapping[str, RelatedTable], public: Mapping[str, PublicTable]) -> None:
    """Refuse references that name no public table, and columns with values that are no keys of it.

    Raises:
        ValueError: With a message for the schema's author.
    """
    for name, table in tables.items():
        if name in public:
            raise ValueError(f"{printable(name)} is private and public; keep one of the two")
        for own, named in (table.references or {}).items():
            shown = printable(f"{name}.{own}")
            if named not in public:
                raise ValueError(f"{shown} refers to {printable(named)}, which is no public table; name one of public")
            column = table.columns.get(own)
            if column is None or not column.listed:
                raise ValueError(f"{shown} refers to a public table; describe it with type: category or code")
            if isinstance(column.fact("values"), Learn):
                raise ValueError(f"{shown} buys values that {printable(named)} says already; leave values out")
            known = {*public[named].keys}
            if any(label(value) not in known for value in column.domain):
                raise ValueError(f"{shown} has values that are no keys of {printable(named)}; leave values out")
