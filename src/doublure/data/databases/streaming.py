"""Rows of databases as Arrow, for methods that need records, and synthetic rows written back.

DuckDB gives and takes Arrow by itself; PostgreSQL does by ADBC, which keeps its types. A stream tells its header first;
its rows are asked for when they are read, which is after the charge. They are read once, in one statement, and so in
one snapshot.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlencode

from typing_extensions import override

from doublure.data.databases.address import DatabaseAddress, DuckAddress, read_address
from doublure.data.databases.connection import connect, require_driver
from doublure.data.databases.relation import NamedRelation, SourceRelation
from doublure.errors import DataError, SettingError, printable
from doublure.schema.columns import sql_words as sql
from doublure.support.postgres import PostgresAddress

if TYPE_CHECKING:
    import pyarrow as pa

    from doublure.schema import Schema

R = TypeVar("R")
_ROWS = 2**16


class ArrowDatabase(ABC):
    """A connection over which rows go as Arrow, in one transaction.

    Attributes:
        dialect: sqlglot's name of its language.
    """

    dialect: str

    @abstractmethod
    def rows(self, text: str) -> pa.RecordBatchReader:
        """Return what a statement gives; raises what the driver raises."""

    @abstractmethod
    def run(self, text: str) -> None:
        """Run a statement; raises what the driver raises."""

    @abstractmethod
    def make(self, table: NamedRelation, rows: pa.RecordBatchReader) -> None:
        """Make a table of rows; raises what the driver raises."""

    @abstractmethod
    def keep(self) -> None:
        """Commit."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; what is not committed is gone."""


class ArrowDuck(ArrowDatabase):
    """A file of DuckDB.

    Args:
        address: Of the file.
        writes: Whether it is written to; it is made if it is not there.
    """

    dialect = "duckdb"

    def __init__(self, address: DuckAddress, *, writes: bool) -> None:
        import duckdb

        self._connection = duckdb.connect(address.database, read_only=not writes)
        for statement in address.settings:
            self._connection.execute(statement)
        self._connection.execute("BEGIN TRANSACTION")

    @override
    def rows(self, text: str) -> pa.RecordBatchReader:
        found: pa.RecordBatchReader = self._connection.sql(text).to_arrow_reader(_ROWS)
        return found

    @override
    def run(self, text: str) -> None:
        self._connection.execute(text)

    @override
    def make(self, table: NamedRelation, rows: pa.RecordBatchReader) -> None:
        self._connection.register("doublure_made", rows)
        self.run(f"CREATE TABLE {_said(table, self.dialect)} AS SELECT * FROM doublure_made")
        self._connection.unregister("doublure_made")

    @override
    def keep(self) -> None:
        self._connection.execute("COMMIT")

    @override
    def close(self) -> None:
        self._connection.close()


class ArrowPostgres(ArrowDatabase):
    """A database of a PostgreSQL server, by ADBC; libpq reads the password from its own places.

    Args:
        address: Of the database.
        writes: Whether it is written to.
    """

    dialect = "postgres"

    def __init__(self, address: PostgresAddress, *, writes: bool) -> None:
        from adbc_driver_postgresql import dbapi

        given = {"dbname" if key == "database" else key: str(value) for key, value in address.arguments().items()}
        self._connection = dbapi.connect(f"postgresql:///?{urlencode(given, quote_via=quote)}")
        self._cursor = self._connection.cursor()
        self._cursor.execute("SET standard_conforming_strings = on")
        if not writes:
            self._cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    @override
    def rows(self, text: str) -> pa.RecordBatchReader:
        self._cursor.execute(text)
        found: pa.RecordBatchReader = self._cursor.fetch_record_batch()
        return found

    @override
    def run(self, text: str) -> None:
        self._cursor.execute(text)

    @override
    def make(self, table: NamedRelation, rows: pa.RecordBatchReader) -> None:
        *schema, name = table.table.split(".")
        self._cursor.adbc_ingest(name, rows, mode="create", db_schema_name=schema[-1] if schema else None)

    @override
    def keep(self) -> None:
        self._connection.commit()

    @override
    def close(self) -> None:
        self._cursor.close()
        self._connection.close()


def _open(address: DatabaseAddress, *, writes: bool = False) -> ArrowDatabase:
    """Return a connection for Arrow.

    Raises:
        MissingExtra: A library is not installed.
        DataError: The database refuses, or there is no such file; the driver's message is not shown.
    """
    require_driver(address.engine)
    if isinstance(address, DuckAddress):
        if not writes and not Path(address.database).is_file():
            raise DataError("there is no such file", field=address.database, remedy="give the path of a database")
        return _guarded(address, partial(ArrowDuck, address, writes=writes))
    require_driver(address.engine, "adbc_driver_postgresql")
    return _guarded(address, partial(ArrowPostgres, address, writes=writes))


def _guarded(address: DatabaseAddress, act: Callable[[], R]) -> R:
    """Return what a call of a driver returns.

    Raises:
        DataError: It refuses; no context holds the driver's message, which quotes cells.
    """
    try:
        return act()
    except Exception as error:  # a driver's own, of any class
        code = getattr(error, "sqlstate", None) or type(error).__name__
    remedy = "see the server's own log; the user needs SELECT on the table, or CREATE where one is written"
    raise DataError(f"refused a statement ({printable(str(code))})", field=address.engine, remedy=remedy)


class DatabaseStream:
    """A table or a query of a database as a stream of Arrow, whose rows are asked for once they are read.

    Args:
        url: Of the database, without a password.
        relation: What is read of it.
        schema: Says of one table which columns are needed: cells of others stay where they are. None: all are read.
    """

    def __init__(self, url: str, relation: SourceRelation, schema: Schema | None = None) -> None:
        self._address = read_address(url)
        self._relation = relation
        self._schema = schema

    @property
    def public(self) -> Mapping[str, Any]:
        """The public facts of it."""
        return {"database": {"engine": self._address.engine, **self._relation.public}}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a stream whose header is known; no row is read before the first is asked for.

        Raises:
            DataError: The database refuses.
            SettingError: The query is none that is read.
        """
        import pyarrow as pa

        checked = connect(self._address)
        try:
            source = self._relation.source(checked)
            statement = sql.select("*", of=source)
            stored = dict(checked.header(statement.copy()))
        finally:
            checked.close()
        with closing(_open(self._address)) as database:
            header = _guarded(
                self._address, lambda: database.rows(statement.limit(0).sql(dialect=database.dialect)).schema
            )
        own = self._schema
        needed = [name for name in header.names if own is None or not own.only_columns or name in own.columns]
        if needed and len({*header.names}) == len(header):
            header = pa.schema([header.field(name) for name in needed])
            finite = own is not None and own.misfit == "coerce"
            cells = (_finite(name) if finite and stored.get(name) in _TIMES else _cell(name) for name in needed)
            statement = sql.select(*cells, of=source.copy())
        reader = pa.RecordBatchReader.from_batches(header, self._batches(statement, header))
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self, statement: Any, header: pa.Schema) -> Iterator[pa.RecordBatch]:
        with closing(_open(self._address)) as database:
            found = _guarded(self._address, lambda: database.rows(statement.sql(dialect=database.dialect)))
            if not found.schema.equals(header):
                raise DataError("was changed meanwhile", field=self._relation.shown, remedy="fit again")
            yield from found

    def __repr__(self) -> str:
        return "DatabaseStream(private)"


_TIMES = ("day", "moment", "zoned")


def _cell(name: str) -> sql.Expr:
    from sqlglot import exp

    return exp.column(name, quoted=True)


def _finite(name: str) -> sql.Expr:
    """Return a time, NULL for an endless one: Arrow has none, and a driver gives another time for it."""
    cell = _cell(name)
    return sql.case((sql.call("ISFINITE", cell), cell)).as_(name, quoted=True)


@contextmanager
def table_output(url: str, *, forced: bool) -> Iterator[Path]:
    """Yield a path for Parquet, whose rows become a table at the end; of one that cannot be written nothing stays.

    Args:
        url: Of the table.
        forced: Whether a table that is there may be replaced.

    Raises:
        InputError: The table is there, or the database refuses.
    """
    address = read_address(url, of_table=True)
    table = NamedRelation(table=str(address.inside))
    table.named()
    made = isinstance(address, DuckAddress) and not Path(address.database).exists()
    if not (forced or made):
        with closing(_open(address)) as database:
            _refuse_taken(address, database, table)
    with tempfile.TemporaryDirectory(prefix="doublure-") as folder:
        path = Path(folder, "table.parquet")
        yield path
        try:
            write_back(path, address, table, forced=forced)
        except BaseException:
            if made and isinstance(address, DuckAddress):
                Path(address.database).unlink(missing_ok=True)
            raise


def write_back(path: Path, address: DatabaseAddress, table: NamedRelation, *, forced: bool) -> None:
    """Make a table of the rows of a Parquet file, in one transaction.

    Raises:
        SettingError: The table is there, and is not to be replaced.
        DataError: The database refuses.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with closing(_open(address, writes=True)) as database, pq.ParquetFile(path) as file:
        placed = _placed(address, database, table)
        if forced:
            _guarded(address, lambda: database.run(f"DROP TABLE IF EXISTS {_said(placed, database.dialect)}"))
        else:
            _refuse_taken(address, database, placed)
        header = pa.schema([(each.name, _plain(each.type)) for each in file.schema_arrow])
        batches = (
            batch
            for own in file.iter_batches(_ROWS)
            for batch in pa.Table.from_batches([own]).cast(header).to_batches()
        )
        rows = pa.RecordBatchReader.from_batches(header, batches)
        _guarded(address, lambda: database.make(placed, rows))
        _guarded(address, database.keep)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a list, which databases know no lists for, and else the type."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _placed(address: DatabaseAddress, database: ArrowDatabase, table: NamedRelation) -> NamedRelation:
    """Return a table with the schema in which it is made.

    To drop it by its name alone would drop a table of that name in any schema that the user's path leads to.
    """
    if "." in table.table:
        return table
    found = _guarded(address, lambda: database.rows("SELECT CURRENT_SCHEMA").read_all())
    return NamedRelation(table=f"{found.column(0)[0].as_py()}.{table.table}")


def _refuse_taken(address: DatabaseAddress, database: ArrowDatabase, table: NamedRelation) -> None:
    """Refuse a table that is there.

    Raises:
        SettingError: It is.
    """
    from sqlglot import exp

    named = _placed(address, database, table).named()
    own = [exp.column("table_name").eq(sql.text(named.name)), exp.column("table_schema").eq(sql.text(named.db))]
    found = sql.select(exp.Count(this=exp.Star()).as_("n"), of=exp.to_table("information_schema.tables")).where(*own)
    counts = _guarded(address, lambda: database.rows(found.sql(dialect=database.dialect)).read_all())
    if counts.column(0)[0].as_py():
        raise SettingError("is there already", field=table.shown, remedy="name another table, or give --force")


def _said(table: NamedRelation, dialect: str) -> str:
    return str(table.named().sql(dialect=dialect))
