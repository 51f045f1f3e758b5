"""Addresses of databases: URLs without a password, told apart from files by their scheme."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from doublure.errors import SettingError, printable
from doublure.support.postgres import PostgresAddress

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.ASCII | re.IGNORECASE)
_NAMES = {"postgres": "postgresql"}
RUN = ("duckdb", "postgresql")
"""Engines that are connected to, and tested."""
COMPILED = ("bigquery", "snowflake", "spark")
"""Engines whose SQL is compiled, and was never run."""
ELSEWHERE = "read are duckdb:/// and postgresql://; of another database, export the table as CSV or Parquet"
"""The remedy for a database that is not read."""
_FIELD = "database"


@dataclass(frozen=True, kw_only=True)
class DuckAddress:
    """The address of a file of DuckDB, and of something in it.

    Attributes:
        database: The path of the file.
        inside: A table; None without one.
    """

    engine: ClassVar[str] = "duckdb"

    database: str
    inside: str | None = None

    @property
    def settings(self) -> tuple[str, ...]:
        """Statements after which nothing in the file loads or reads what lies outside its own folder.

        A view of a received file may name any file, or an address in the network.
        """
        folder = str(Path(self.database).resolve().parent).replace("'", "''")
        return (
            "SET autoinstall_known_extensions = false",
            "SET python_enable_replacements = false",  # else a name may be that of a variable of this process
            f"SET allowed_directories = ['{folder}']",
            "SET enable_external_access = false",
        )


DatabaseAddress: TypeAlias = DuckAddress | PostgresAddress


def url_scheme(source: object) -> str | None:
    """Return the scheme of a URL, in small letters; None of anything else."""
    found = _SCHEME.match(source) if isinstance(source, str) else None
    return None if found is None else _NAMES.get(found[1].lower(), found[1].lower())


def is_database(source: object) -> bool:
    """Return whether a source is the URL of a database, connected to or not."""
    return url_scheme(source) in (*RUN, *COMPILED)


def read_address(url: str, *, of_table: bool = False) -> DatabaseAddress:
    """Return the address that a URL says.

    Args:
        url: ``duckdb:///file.db?table=people``, or ``postgresql://user@host/database/people``.
        of_table: Whether it has to name a table; else it must not.

    Raises:
        SettingError: It has a password, a part that is not read, or an engine that is not connected to; it is not
            shown.
    """
    engine = url_scheme(url)
    if engine in COMPILED:
        raise SettingError(
            f"{engine} is not connected to: its SQL is compiled, and was never run",
            field=_FIELD,
            remedy="use duckdb:// or postgresql://, or export the table as Parquet",
        )
    if engine not in RUN:
        raise SettingError("is no database that is read", field=f"{printable(engine or '')}://", remedy=ELSEWHERE)
    found = _duckdb(url) if engine == "duckdb" else PostgresAddress.parse(url)
    if of_table and not found.inside:
        raise SettingError("names no table", field=_FIELD, remedy=f"write {_EXAMPLES[found.engine]}")
    if found.inside and not of_table:
        raise SettingError("names a table in its URL", field=_FIELD, remedy="give the table by itself, as --table")
    return found


_EXAMPLES = {"duckdb": "duckdb:///file.db?table=people", "postgresql": "postgresql://user@host/database/people"}


def _duckdb(url: str) -> DuckAddress:
    parts = urlsplit(url)
    path, options = unquote(parts.path), dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.netloc or options.keys() - {"table"} or parts.fragment or len(path) < 2:
        remedy = "write duckdb:///file.db, with four slashes where its path begins with one"
        raise SettingError("has a URL that is no path", field=_FIELD, remedy=remedy)
    return DuckAddress(database=path[1:], inside=options.get("table"))
