"""Tables in each engine that is tested: a file of DuckDB, or the tests' own PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ENGINES = ("duckdb", "postgresql")


def made_in(engine: str, make: Callable[[Any], object], folder: Path, request: pytest.FixtureRequest) -> str:
    """Return the address of a database in which a function has made tables, by what runs a statement.

    Args:
        engine: Of :data:`ENGINES`.
        make: Takes what runs a statement.
        folder: Of a file.
        request: Of the test: the password of the server is in the environment until it ends.
    """
    if engine == "duckdb":
        import duckdb

        (folder / "made.db").unlink(missing_ok=True)
        with duckdb.connect(folder / "made.db") as connection:
            make(connection.execute)
        return f"duckdb:///{folder / 'made.db'}"
    server = request.getfixturevalue("postgres")
    request.getfixturevalue("monkeypatch").setenv("PGPASSWORD", server.password)
    _clear(server)
    request.addfinalizer(lambda: _clear(server))  # other tests make tables of these names
    with server.connect() as connection:
        make(connection.execute)
    return str(server.url())


def _clear(server: Any) -> None:
    """Drop all tables of the database but those of ledgers."""
    with server.connect() as connection:
        for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall():
            connection.execute(f'DROP TABLE "{name}" CASCADE')
