"""A ledger in a table of PostgreSQL, for teams that share no disk: connect, lock, read, append, make durable.

Each line of the file is a row, so that the same chain is read and the same rules hold. A transaction takes the ledger's
advisory lock, reads, inserts and commits; a row's place is its primary key, so that two writers without the lock could
not both commit. A trigger refuses every other change. A line is never cut short.

The commit is the moment of durability. So `synchronous_commit` is set, and the server is refused if it is a standby, or
if its settings or the table's let a confirmed commit be lost. A warning at the commit counts as a failure: PostgreSQL
gives one where it stopped waiting for its standby. A standby that is promoted without the last rows holds a shorter
chain, which every process that has read the longer one refuses.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from doublure.errors import LedgerError
from doublure.ledger.place import Append, LedgerPlace
from doublure.support.extras import require_sql
from doublure.support.postgres import PostgresAddress

if TYPE_CHECKING:
    from psycopg import Connection

_NAME = "ledger"
_TABLE = "doublure.ledger"
_MADE = """
CREATE SCHEMA IF NOT EXISTS doublure;
CREATE TABLE doublure.ledger (
    name text NOT NULL, sequence bigint NOT NULL CHECK (sequence > 0), line text NOT NULL, PRIMARY KEY (name, sequence)
);
CREATE FUNCTION doublure.ledger_only_grows() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$;
CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON doublure.ledger
    FOR EACH STATEMENT EXECUTE FUNCTION doublure.ledger_only_grows();
"""
# An idle transaction holds the lock, so it ends after a minute; rows that a policy hides are an error, not a gap.
_BEGIN = """
SET LOCAL synchronous_commit = on; SET LOCAL row_security = off; SET LOCAL idle_in_transaction_session_timeout = '60s'
"""
_STATE = """
SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'),
    pg_is_in_recovery(), (SELECT relkind::text || relpersistence::text FROM pg_class WHERE oid = to_regclass(%s))
"""
_DIGEST = """
SELECT encode(sha256(convert_to(coalesce(string_agg(line || E'\\n', '' ORDER BY sequence), ''), 'UTF8')), 'hex')
FROM doublure.ledger WHERE name = %s AND sequence <= %s
"""
_ROWS = "SELECT line FROM doublure.ledger WHERE name = %s AND sequence > %s ORDER BY sequence"
_PLAIN_TABLE = "rp"
"""The kind and persistence of a table that is neither a view nor lost in a crash."""
_NO_RIGHT, _TAKEN, _READ_ONLY = "42501", "23505", "25006"
_PATIENCE, _PAUSE = 60.0, 0.5
"""Seconds for which a server that was reached before may be away, such as for its restart."""


class ServerPlace(LedgerPlace):
    """One ledger among those of a database.

    Args:
        url: ``postgresql://user@host:port/database/name``; a name that is left out is ``ledger``.

    Raises:
        SettingError: It holds a password, or asks for no TLS.
        MissingExtra: The driver is not installed.
    """

    def __init__(self, url: str) -> None:
        self._address = PostgresAddress.parse(url)
        self._ledger = self._address.inside or _NAME
        self.name, self.address = self._address.name, str(self._address)
        self._reached = False
        require_sql(f"a ledger at {self.name}")

    @override
    def create(self, line: bytes) -> None:
        with self._transaction() as connection:
            _lock(connection, "")  # one for all: the table is made once
            if not self._is_there(connection):
                connection.execute(_MADE)
            self._refuse_unsafe(connection)
            if self._lines(connection, 0):
                remedy = "open it, or choose another name"
                raise LedgerError("already exists and is never overwritten", field=self.name, remedy=remedy)
            self._insert(connection, 1, line)

    @override
    @contextmanager
    def locked(self, *, to_append: bool, known: bytes) -> Iterator[tuple[Append, bytes]]:
        with self._transaction() as connection:
            if not self._is_there(connection):
                raise self._missing()
            if to_append:
                _lock(connection, self._ledger)
            self._refuse_unsafe(connection)
            data = self._read(connection, known)
            if not data:
                raise self._missing()

            def append(line: bytes) -> None:
                with self._said():
                    self._insert(connection, data.count(b"\n") + 1, line)
                    _commit(connection, self.name)

            yield append, data

    @override
    def exists(self) -> bool:
        with self._transaction() as connection:
            return self._is_there(connection) and bool(self._read(connection, b""))

    @override
    def refuse_unsafe(self) -> None:
        return  # each transaction does

    def _read(self, connection: Connection, known: bytes) -> bytes:
        """Return all lines; those that are known are compared there, by their hash, and not sent."""
        count = known.count(b"\n")
        if count:
            (found,) = _one(connection, _DIGEST, self._ledger, count)
            if found != hashlib.sha256(known).hexdigest():
                known, count = b"", 0
        return known + b"".join(line.encode() + b"\n" for line in self._lines(connection, count))

    def _lines(self, connection: Connection, after: int) -> list[str]:
        return [line for (line,) in connection.execute(_ROWS, (self._ledger, after))]

    def _insert(self, connection: Connection, sequence: int, line: bytes) -> None:
        row = (self._ledger, sequence, line.decode("ascii").removesuffix("\n"))
        done = connection.execute("INSERT INTO doublure.ledger VALUES (%s, %s, %s) RETURNING name, sequence, line", row)
        if done.fetchall() != [row]:  # a rule or a trigger of the owner's own has dropped or changed it
            remedy = "remove rules and triggers that are not doublure's from the table"
            raise LedgerError(f"{_TABLE} did not take the record as it is", field=self.name, remedy=remedy)

    def _is_there(self, connection: Connection) -> bool:
        (found,) = _one(connection, "SELECT to_regclass(%s) IS NOT NULL", _TABLE)
        return bool(found)

    def _missing(self) -> LedgerError:
        remedy = "create it with `doublure budget init`, or fix the address"
        return LedgerError("does not exist", field=self.name, remedy=remedy)

    def _refuse_unsafe(self, connection: Connection) -> None:
        """Refuse a server that may lose a commit that it has confirmed, or that need not know the last one."""
        commit, fsync, whole, standby, table = _one(connection, _STATE, _TABLE)
        wrong = [
            f"{key} is {value}"
            for key, value, safe in (
                ("synchronous_commit", commit, "on"),
                ("fsync", fsync, "on"),
                ("full_page_writes", whole, "on"),
            )
            if value != safe
        ]
        if standby:
            raise LedgerError("is a standby, which may lag", field=self.name, remedy="give the primary's address")
        if wrong:
            said = f"may lose what it has confirmed: {', '.join(wrong)}"
            raise LedgerError(said, field=self.name, remedy="set it to on, or keep the ledger on another server")
        if table != _PLAIN_TABLE:
            remedy = "make it anew with `doublure budget init`, in a database without it"
            raise LedgerError(f"{_TABLE} is no plain, logged table", field=self.name, remedy=remedy)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Yield a connection of its own within a transaction; it commits at the end, unless something failed."""
        with self._said():
            connection = self._connected()
            try:
                connection.execute(_BEGIN)
                yield connection
                _commit(connection, self.name)
            finally:
                connection.close()

    def _connected(self) -> Connection:
        import psycopg

        until = time.monotonic() + (_PATIENCE if self._reached else 0)
        while True:
            try:
                connection = psycopg.connect(**self._address.arguments())
            except psycopg.OperationalError:
                if time.monotonic() >= until:
                    remedy = "check host, port and database, the user and PGPASSWORD or ~/.pgpass, and TLS"
                    raise LedgerError("cannot be reached", field=self.name, remedy=remedy) from None
                time.sleep(_PAUSE)
            else:
                self._reached = True
                return connection

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Replace what the driver says."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            remedy = "see the server's log"
            if error.sqlstate == _NO_RIGHT:
                remedy = f"grant SELECT and INSERT on {_TABLE}, and USAGE on its schema; its maker needs CREATE"
            elif error.sqlstate == _READ_ONLY:
                remedy = "give the address of a server that may be written to"
            elif error.sqlstate == _TAKEN:
                remedy = "another process wrote at the same moment: try again"
            code = f"error {error.sqlstate}" if error.sqlstate else "the connection was lost"
            raise LedgerError(f"the server did not do it ({code})", field=self.name, remedy=remedy) from None


def _lock(connection: Connection, ledger: str) -> None:
    """Take the lock of a ledger until the transaction ends; it waits for others."""
    number = int.from_bytes(hashlib.sha256(f"doublure ledger {ledger}".encode()).digest()[:8], signed=True)
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (number,))


def _commit(connection: Connection, name: str) -> None:
    """Commit, and refuse a commit that the server is not sure of.

    Raises:
        LedgerError: It gave a warning, as where it stopped waiting for its standby.
    """
    warned: list[Any] = []
    connection.add_notice_handler(lambda notice: warned.append(notice.severity_nonlocalized))
    connection.commit()
    if "WARNING" in warned:
        remedy = "see the server's log and its standby, then resume the run"
        raise LedgerError("the server is not sure that its standby has the record", field=name, remedy=remedy)


def _one(connection: Connection, query: str, *values: object) -> tuple[Any, ...]:
    found = connection.execute(query, values).fetchone()
    return () if found is None else tuple(found)
