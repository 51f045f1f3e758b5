"""Connections to databases: one transaction of one snapshot, and no message of a driver, which would quote cells."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from typing_extensions import override

from doublure.data.databases.address import DatabaseAddress, DuckAddress
from doublure.errors import DataError, MissingExtra
from doublure.schema.columns import sql_words as sql
from doublure.schema.columns.sql_words import PostgresWords, SqlWords, StoredAs
from doublure.support.postgres import PostgresAddress

R = TypeVar("R")
_WORK_MEMORY = "256MB"
"""Memory for the cells of one statement in PostgreSQL: some 2^18 at a few hundred bytes, and as much again."""
_HASH_MEMORIES = 1000
"""A factor on that memory for plans that hash, the largest allowed: no statement has more cells than that holds."""

_KINDS: dict[str, StoredAs] = {
    **dict.fromkeys(
        ["tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint",
         "uhugeint", "int2", "int4", "int8", "oid"], "whole"),
    **dict.fromkeys(["float", "double", "float4", "float8", "real"], "real"),
    **dict.fromkeys(["decimal", "numeric"], "decimal"),
    **dict.fromkeys(["boolean", "bool"], "truth"),
    **dict.fromkeys(["varchar", "text", "bpchar", "char", "name", "uuid", "enum", "citext"], "text"),
    "date": "day", "time": "clock", "interval": "span",
    **dict.fromkeys(["timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"], "moment"),
    **dict.fromkeys(["timestamp with time zone", "timestamptz"], "zoned"),
}  # fmt: skip


class DatabaseSession(ABC):
    """A connection in one transaction, which is rolled back in the end.

    Attributes:
        engine: Its name in a URL.
        words: The engine's spelling of words.
        sets_at_once: How many tables a statement counts at most; None for as many as fit.
    """

    engine: ClassVar[str]
    words: ClassVar[type[SqlWords]]
    sets_at_once: ClassVar[int | None] = None

    @abstractmethod
    def begin(self) -> None:
        """Begin the transaction, whose snapshot all statements see.

        Raises:
            DataError: The database refuses.
        """

    def holds(self, table: Any) -> bool:
        """Return whether a name may be that of a table or view; an engine may take it for a file's otherwise."""
        return True

    @abstractmethod
    def settle(self) -> None:
        """Have statements from here on planned as counts over codes: small tables are joined, and sets are hashed.

        Raises:
            DataError: The database refuses.
        """

    @abstractmethod
    def header(self, statement: Any) -> list[tuple[str, StoredAs]]:
        """Return the names of a statement's columns, and how they are stored; no row of it is read.

        Raises:
            DataError: The database refuses.
        """

    @abstractmethod
    def close(self) -> None:
        """Roll the transaction back, and close the connection: temporary tables are gone."""

    @abstractmethod
    def _run(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement; raises what the driver raises."""

    @abstractmethod
    def _code(self, error: BaseException) -> str | None:
        """Return what an error of the driver is called, without its message; None for an error of another kind."""

    def rows(self, statement: Any) -> list[tuple[Any, ...]]:
        """Return the rows that a statement gives.

        Args:
            statement: A syntax tree.

        Raises:
            DataError: The database refuses; the driver's message is not shown.
        """
        return self.run(statement.sql(dialect=self.words.dialect))

    def run(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement in the engine's own language.

        Raises:
            DataError: As :meth:`rows`.
        """
        return self.guarded(lambda: self._run(text))

    def store(self, name: str, statement: Any) -> None:
        """Keep what a statement gives as a temporary table of this session.

        Raises:
            DataError: As :meth:`rows`.
        """
        self.run(f"CREATE TEMPORARY TABLE {name} AS {statement.sql(dialect=self.words.dialect)}")

    def insert(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Keep public columns as a temporary table.

        Args:
            name: The table's name.
            columns: Name -> its whole numbers, real numbers, or texts.
        """
        kinds = {str: "text", float: "double", int: "bigint"}
        types = (
            f"{column} {sql.type_in(kinds[type(values[0])], self.words.dialect)}" for column, values in columns.items()
        )
        self.run(f"CREATE TEMPORARY TABLE {name} ({', '.join(types)})")
        self.guarded(lambda: self._fill(name, columns))

    @abstractmethod
    def _fill(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows to a table; raises what the driver raises."""

    def guarded(self, act: Callable[[], R]) -> R:
        """Return what a call of the driver returns.

        Raises:
            DataError: It refuses. The error names the driver's code, and no context holds its message.
        """
        try:
            return act()
        except Exception as error:
            code = self._code(error)
            if code is None:
                raise
        remedy = "see the server's own log; the user needs SELECT on the table and TEMPORARY on the database"
        raise DataError(f"refused a statement ({code})", field=self.engine, remedy=remedy)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(private)"


class DuckDatabase(DatabaseSession):
    """A file of DuckDB, opened for reading."""

    engine: ClassVar[str] = "duckdb"
    words: ClassVar[type[SqlWords]] = SqlWords

    def __init__(self, address: DuckAddress) -> None:
        import duckdb

        self._errors = duckdb.Error
        path = Path(address.database)
        if not path.is_file():
            raise DataError("there is no such file", field=path, remedy="give the path of a DuckDB database")
        self._connection = self.guarded(lambda: duckdb.connect(path, read_only=True))
        for statement in address.settings:
            self.run(statement)

    @override
    def begin(self) -> None:
        self.run("BEGIN TRANSACTION")

    @override
    def holds(self, table: Any) -> bool:
        named = self.run("SELECT table_name FROM information_schema.tables")
        return table.name.lower() in {str(name).lower() for (name,) in named}

    @override
    def settle(self) -> None:
        # Else it hashes the records, and looks each row of the small table up.
        self.run("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        self.run("SET perfect_ht_threshold = 18")  # cells of a statement, in bits: they are counted without hashing

    @override
    def header(self, statement: Any) -> list[tuple[str, StoredAs]]:
        text = statement.limit(0).sql(dialect="duckdb")
        found = self.guarded(lambda: self._connection.execute(text).description)
        return [(name, stored_as(str(kind))) for name, kind, *_ in found or ()]

    @override
    def close(self) -> None:
        self._connection.close()

    @override
    def _run(self, text: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(text).fetchall()
        return found

    @override
    def _fill(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        import pyarrow as pa

        self._connection.register("doublure_sent", pa.table({key: pa.array(own) for key, own in columns.items()}))
        self._connection.execute(f"INSERT INTO {name} SELECT * FROM doublure_sent")
        self._connection.unregister("doublure_sent")

    @override
    def _code(self, error: BaseException) -> str | None:
        return type(error).__name__ if isinstance(error, self._errors) else None


class PostgresDatabase(DatabaseSession):
    """A database of a PostgreSQL server."""

    engine: ClassVar[str] = "postgresql"
    words: ClassVar[type[SqlWords]] = PostgresWords
    sets_at_once: ClassVar[int | None] = 16
    """Hash tables that stay in a processor's cache: a record took 0.10 µs a table with 4 to 26, and 0.21 with 78."""

    def __init__(self, address: PostgresAddress) -> None:
        import psycopg

        self._errors = psycopg.Error
        self._connection = self.guarded(lambda: psycopg.connect(**address.arguments(), autocommit=True))
        self.run("SET standard_conforming_strings = on")  # else a backslash in a text would let it end elsewhere

    @override
    def begin(self) -> None:
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.run("SET LOCAL idle_in_transaction_session_timeout = 0")
        # A role may search pg_temp last; a table of the same name would be counted in place of this session's.
        self.run("SELECT set_config('search_path', 'pg_temp, ' || current_setting('search_path'), true)")

    @override
    def settle(self) -> None:
        self.run(f"SET LOCAL work_mem = '{_WORK_MEMORY}'")
        # Else it takes a tenth of the records for groups of each set, and sorts them by half of the sets.
        self.run(
            f"SELECT set_config(name, '{_HASH_MEMORIES}', true) FROM pg_settings WHERE name = 'hash_mem_multiplier'"
        )
        self.run("SET LOCAL jit = off")  # it compiles for seconds what runs once

    @override
    def header(self, statement: Any) -> list[tuple[str, StoredAs]]:
        text = statement.limit(0).sql(dialect="postgres")
        found = self.guarded(lambda: self._connection.execute(text).description) or []
        return [(each.name, self._kind(each.type_code)) for each in found]

    def _kind(self, oid: int) -> StoredAs:
        known = self._connection.adapters.types.get(oid)
        if known is not None:
            return stored_as(known.name) if oid == known.oid else "other"  # not of an array of it
        rows = self.run(f"SELECT CASE WHEN typtype = 'e' THEN 'enum' ELSE typname END FROM pg_type WHERE oid = {oid}")
        return stored_as(str(rows[0][0])) if rows else "other"

    @override
    def store(self, name: str, statement: Any) -> None:
        self.run(f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS {statement.sql(dialect='postgres')}")
        self.run(f"ANALYZE {name}")

    @override
    def close(self) -> None:
        self._connection.close()

    @override
    def _run(self, text: str) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(text)
        return [] if cursor.description is None else cursor.fetchall()

    @override
    def _fill(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copied:
            for row in zip(*columns.values(), strict=True):
                copied.write_row(row)

    @override
    def _code(self, error: BaseException) -> str | None:
        if not isinstance(error, self._errors):
            return None
        code = getattr(error, "sqlstate", None)
        return type(error).__name__ if code is None else f"SQLSTATE {code}"


_ENGINES: dict[str, tuple[str, type[DuckDatabase | PostgresDatabase]]] = {
    "duckdb": ("duckdb", DuckDatabase),
    "postgresql": ("psycopg", PostgresDatabase),
}


def stored_as(name: str) -> StoredAs:
    """Return the storage type of an engine's own name for it.

    Example:
        >>> stored_as("DECIMAL(10,2)"), stored_as("ENUM('a')"), stored_as("INTEGER[]")
        ('decimal', 'text', 'other')
    """
    bare = name.lower()
    return "other" if bare.endswith("]") else _KINDS.get(bare.partition("(")[0], "other")


def connect(address: DatabaseAddress) -> DatabaseSession:
    """Return a connection; no table is looked at.

    Raises:
        DataError: There is no such file, or the server refuses.
        MissingExtra: Its driver is not installed.
    """
    require_driver(address.engine)
    engine: Any = _ENGINES[address.engine][1]
    found: DatabaseSession = engine(address)
    return found


def require_driver(engine: str, *more: str) -> None:
    """Refuse to go on without the libraries of an engine.

    Raises:
        MissingExtra: One is not installed.
    """
    for library in ("sqlglot", _ENGINES[engine][0], *more):
        if importlib.util.find_spec(library) is None:
            remedy = "pip install 'doublure[sql]'"
            raise MissingExtra(f"needs {library}", field=f"{engine}://", remedy=remedy)
