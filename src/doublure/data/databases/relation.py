"""What is read of a database: a table or view by its name, or a query of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doublure.errors import SettingError, printable

if TYPE_CHECKING:
    from doublure.data.databases.connection import Database


@dataclass(frozen=True, kw_only=True)
class Relation:
    """A table or view of a database.

    Attributes:
        table: Its name, with its schema's before it if need be: ``clinic.people``.
    """

    table: str

    @property
    def shown(self) -> str:
        """The name in messages."""
        return printable(self.table)

    @property
    def public(self) -> Mapping[str, Any]:
        """The public facts of it."""
        return {"table": self.table}

    def source(self, database: Database) -> Any:
        """Return what a statement selects from.

        Raises:
            SettingError: It has no name.
        """
        from sqlglot import exp

        parts = self.table.split(".")
        if not all(parts) or len(parts) > 3:
            raise SettingError("is no name of a table", field="table", remedy="write people, or clinic.people")
        names = [exp.to_identifier(part, quoted=True) for part in parts]
        return exp.Table(**dict(zip(("this", "db", "catalog"), reversed(names), strict=False)))


def relation_of(table: str | None, query: str | None) -> Relation:
    """Return what is read.

    Raises:
        SettingError: Neither or both are given.
    """
    if table is None:
        raise SettingError("is needed with a database", field="table", remedy="give the table or view to read")
    return Relation(table=table)
