"""Addresses of databases: URLs without a password, told apart from files by their scheme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from doublure.errors import SettingError, printable
from doublure.support.postgres import TLS, on_this_machine

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.ASCII | re.IGNORECASE)
_NAMES = {"postgres": "postgresql"}
RUN = ("duckdb", "postgresql")
"""Engines that are connected to, and tested."""
COMPILED = ("bigquery", "snowflake", "spark")
"""Engines whose SQL is compiled, and was never run."""
_SECRETS = ("password", "sslpassword", "passfile")
_OPTIONS = (
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "connect_timeout",
    "application_name",
    "target_session_attrs",
)
_FIELD = "database"


@dataclass(frozen=True, kw_only=True)
class DatabaseAddress:
    """The address of a database.

    Attributes:
        engine: ``duckdb`` or ``postgresql``.
        database: The path of a file, or the name of a database.
        host: The server's name; empty: this machine, by the driver's defaults.
        port: Its port; None: the driver's default.
        user: The user's name; empty: the driver's default.
        options: Further options of the driver.
    """

    engine: str
    database: str
    host: str = ""
    port: int | None = None
    user: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def local(self) -> bool:
        """Whether nothing goes over a network: a file, a socket, or the loopback interface."""
        return self.engine == "duckdb" or on_this_machine(self.host)


def url_scheme(source: object) -> str | None:
    """Return the scheme of a URL, in small letters; None of anything else."""
    found = _SCHEME.match(source) if isinstance(source, str) else None
    return None if found is None else _NAMES.get(found[1].lower(), found[1].lower())


def is_database(source: object) -> bool:
    """Return whether a source is the URL of a database, connected to or not."""
    return url_scheme(source) in (*RUN, *COMPILED)


def read_address(url: str) -> DatabaseAddress:
    """Return the address that a URL says.

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
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SettingError("has a URL that is none", field=_FIELD, remedy=f"write {_example(engine)}") from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.password is not None or set(options) & set(_SECRETS):
        remedy = "take it out; set PGPASSWORD, or use the driver's own file such as ~/.pgpass"
        raise SettingError("has a password in its URL", field=_FIELD, remedy=remedy)
    if engine == "duckdb":
        return _duckdb(parts, options)
    odd = [name for name in options if name not in _OPTIONS]
    if odd:
        raise SettingError(
            f"has the option {printable(odd[0])}, which is not read",
            field=_FIELD,
            remedy=f"take it out; read are {', '.join(_OPTIONS)}",
        )
    database = unquote(parts.path.lstrip("/"))
    if not database or parts.fragment:
        raise SettingError("has a URL without a database", field=_FIELD, remedy=f"write {_example(engine)}")
    found = DatabaseAddress(
        engine="postgresql",
        database=database,
        host=unquote(parts.hostname or ""),
        port=port,
        user=unquote(parts.username or ""),
        options=options,
    )
    if not found.local and options.get("sslmode", TLS[-1]) not in TLS:
        remedy = "write sslmode=verify-full, or leave it out"
        raise SettingError("has a server elsewhere without TLS", field=_FIELD, remedy=remedy)
    return found


def _duckdb(parts: SplitResult, options: Mapping[str, str]) -> DatabaseAddress:
    path = unquote(parts.path)
    if parts.netloc or options or parts.fragment or len(path) < 2:
        remedy = f"write {_example('duckdb')}, with four slashes where its path begins with one"
        raise SettingError("has a URL that is no path", field=_FIELD, remedy=remedy)
    return DatabaseAddress(engine="duckdb", database=path[1:])


def _example(engine: str | None) -> str:
    return "duckdb:///file.db" if engine == "duckdb" else "postgresql://user@host/database"
