"""Addresses of PostgreSQL servers: no password in them, TLS unless the server is on this machine."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from doublure.errors import SettingError, printable

SCHEMES = ("postgresql", "postgres")
TLS = ("require", "verify-ca", "verify-full")
"""Modes in which nothing is sent in plain text; the last one is the default."""
_PARAMETERS = frozenset(
    {
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode", "krbsrvname"),
        *("host", "connect_timeout", "target_session_attrs"),
    }
)
"""Parameters that an address may hold; none is a secret, and none names another server than messages do."""
_PATIENCE = 10
"""Seconds until a server counts as unreachable; libpq's own default waits without end."""
_OWN_ROOTS = Path(".postgresql", "root.crt")


@dataclass(frozen=True, kw_only=True)
class PostgresAddress:
    """The address of a database, and of something in it.

    Attributes:
        host: Empty: the local socket.
        port: None: the driver's default.
        user: None: the driver's default.
        database: Its name.
        inside: The rest of the path, such as the name of a ledger or a table; None without one.
        parameters: Those of the query, such as ``sslmode``.
    """

    engine: ClassVar[str] = SCHEMES[0]

    host: str
    database: str
    port: int | None = None
    user: str | None = None
    inside: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> PostgresAddress:
        """Read ``postgresql://user@host:port/database/inside?sslmode=…``; ``#inside`` is read, too.

        Raises:
            SettingError: It holds a password or an unknown parameter, names no database, or asks for no TLS.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # its message would show the address, and a password in it
            remedy = "write postgresql://user@host:port/database"
            raise SettingError("is no address of a server", field="address", remedy=remedy) from None
        name = f"{parts.scheme}://{printable(parts.hostname or '')}"
        parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
        if parts.password is not None or "password" in parameters:
            remedy = "leave it out: set PGPASSWORD, or write it into ~/.pgpass"
            _refuse(name, "holds a password, which run folders and logs would keep", remedy)
        if unknown := sorted(parameters.keys() - _PARAMETERS):
            remedy = f"known are {', '.join(sorted(_PARAMETERS))}; set others in the driver's environment"
            _refuse(name, f"has an unknown parameter: {printable(unknown[0])}", remedy)
        database, _, inside = unquote(parts.path).strip("/").partition("/")
        if not database or "/" in inside:
            _refuse(name, "names no database", f"write {SCHEMES[0]}://user@host:port/database")
        found = cls(
            host=parameters.pop("host", "") or parts.hostname or os.environ.get("PGHOST", ""),
            port=port,
            user=None if parts.username is None else unquote(parts.username),
            database=database,
            inside=unquote(parts.fragment) or inside or None,
            parameters=parameters,
        )
        if not found.local and parameters.get("sslmode", TLS[-1]) not in TLS:
            _refuse(name, "asks for a connection without TLS", f"give sslmode={TLS[-1]}, or leave it out")
        return found

    @property
    def local(self) -> bool:
        """Whether the server is on this machine."""
        return on_this_machine(self.host)

    def __str__(self) -> str:
        """Return the address, as a run folder keeps it."""
        own = self.parameters if not self.host.startswith("/") else {"host": self.host, **self.parameters}
        host = "" if self.host.startswith("/") else f"[{self.host}]" if ":" in self.host else self.host
        place = "".join(
            [
                "" if self.user is None else f"{quote(self.user, safe='')}@",
                host,
                "" if self.port is None else f":{self.port}",
                f"/{quote(self.database, safe='')}",
                "" if self.inside is None else f"/{quote(self.inside, safe='')}",
            ]
        )
        return f"{SCHEMES[0]}://{place}" + (f"?{urlencode(own)}" if own else "")

    @property
    def name(self) -> str:
        """The address without user and parameters, as messages say it."""
        bare = PostgresAddress(host=self.host, port=self.port, database=self.database, inside=self.inside)
        return str(bare).partition("?")[0]

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``psycopg.connect``; the driver adds the password from its own places."""
        given: dict[str, Any] = {"connect_timeout": _PATIENCE, "application_name": "doublure", **self.parameters}
        if not self.local:
            given = with_tls(given)
        given |= {"dbname": self.database} | ({"host": self.host} if self.host else {})
        return given | {key: value for key in ("port", "user") if (value := getattr(self, key)) is not None}


def on_this_machine(host: str) -> bool:
    """Return whether a server is on this machine: a socket, or the loopback.

    Args:
        host: Its name; empty: what the environment names, or the local socket.
    """
    if os.environ.get("PGHOSTADDR") or os.environ.get("PGSERVICE"):  # they would name another server
        return False
    host = host or os.environ.get("PGHOST", "")
    if "," in host:  # the driver tries one after another
        return all(each and on_this_machine(each) for each in host.split(","))
    if not host or host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def with_tls(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a connection to another machine, whose name is checked if they do not say otherwise."""
    found = {"sslmode": TLS[-1], **given}
    roots = "sslrootcert" in given or "PGSSLROOTCERT" in os.environ or (Path.home() / _OWN_ROOTS).exists()
    return found if roots or found["sslmode"] != TLS[-1] else {**found, "sslrootcert": "system"}


def is_postgres(given: object) -> bool:
    """Whether something is the address of a PostgreSQL server."""
    return isinstance(given, str) and given.partition("://")[0] in SCHEMES and "://" in given


def _refuse(name: str, message: str, remedy: str) -> NoReturn:
    raise SettingError(message, field=name, remedy=remedy)
