"""One small world of a database: a table with every nature, stored in many ways, and its schema."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

import doublure as db

COLUMNS = {
    "person": "BIGINT", "age": "INTEGER", "dose": "DOUBLE PRECISION", "price": "DECIMAL(10,2)", "typed": "VARCHAR",
    "score": "DOUBLE PRECISION", "job": "VARCHAR", "grade": "INTEGER", "coded": "VARCHAR", "smokes": "BOOLEAN",
    "says": "VARCHAR", "born": "DATE", "seen": "TIMESTAMP", "sent": "VARCHAR", "day": "VARCHAR", "wake": "TIME",
    "bed": "VARCHAR", "stay": "VARCHAR", "minutes": "INTEGER", "month": "VARCHAR", "year": "INTEGER", "size": "REAL",
}  # fmt: skip
"""Column -> its type in SQL, in both engines."""

TEXT = """
doublure: 1
kind: table
unit: {name: record, id: UNIT, max_records: MOST}
units: 400
misfit: MISFIT
columns:
  person: {type: id}
  age: {type: integer, bounds: [18, 90], missing: false}
  dose: {type: real, bounds: [0, 10], precision: 1, missing: true}
  price: {type: real, bounds: [-5.5, 999.99], precision: 2, missing: false}
  typed: {type: integer, bounds: [-1000, 100000], step: 5, missing: ["-7", "-8"]}
  score: {type: real, bounds: [-1, 1], missing: true}
  job: {type: category, values: [cook, nurse, "it's"], other: Other, missing: ["?", "NA"]}
  grade: {type: ordinal, values: [1, 2, 3, 4], missing: [-9]}
  coded: {type: category, values: [1, 2, 10], missing: true}
  smokes: {type: boolean, missing: true}
  says: {type: boolean, missing: true}
  born: {type: date, bounds: [1930-01-01, 2005-12-31], missing: true}
  seen: {type: datetime, bounds: [2020-01-01T00:00:00, 2023-12-31T23:59:59], step: 60, missing: false}
  sent: {type: datetime, bounds: [2020-01-01T00:00:00, 2023-12-31T23:59:59], missing: true}
  day: {type: date, bounds: [2020-01-01, 2023-12-31], missing: true}
  wake: {type: time, bounds: ["04:00", "23:00"], step: 60, missing: true}
  bed: {type: time, missing: true}
  stay: {type: duration, bounds: ["0:00:00", "72:00:00"], step: 60, missing: true}
  minutes: {type: duration, bounds: ["0:00:00", "10:00:00"], numbers_in: min, missing: true}
  month: {type: month, bounds: ["2019-01", "2024-12"], missing: true}
  year: {type: year, bounds: [1990, 2024], missing: true}
  size: {type: real, bounds: [0, 250], step: 0.5, missing: false}
"""

WRONG: dict[str, list[Any]] = {
    "age": [120, -3, None], "dose": [float("inf"), float("nan"), -1.0, 99.95], "price": [None],
    "typed": ["many", "1.5", "1e3", " +12 ", ".5", "5.", "inf", "-inf", "1e400"], "job": ["", " cook ", "clown"],
    "coded": ["01", "1.0", "3", " 2 ", "1e1"], "says": ["maybe", "Y", "0.0"],
    "sent": ["2021-02-30", "2024-02-29T12:00:00Z", "2021-06-01 12:00:00+02:00", "2021-06-01T12:00-0530", "soon",
             "2021-06-01 24:00", "2021-06-01T25:00", "2021-06-01T23:59:60", "2021-06-01T23:60"],
    "day": ["2020-02-29", "2021-02-29", "2021-13-01", "2021-06-01T12:00:00", "NaT"],
    "bed": ["7:05", "24:00", "25:00", "12:60", "23:60"], "grade": [7],
    "stay": ["1:30", "P1W", "PT", "2 days, 1:00:00", "3 h"],
    "month": ["2020-13", "2020-02-01", "2020-02-02"], "size": [1e9, None], "year": [1500], "minutes": [10**6],
}  # fmt: skip
"""Cells that do not fit, or fit in an odd way."""


def text(*, unit: str = "none", most: int = 1, misfit: str = "coerce", **replaced: str) -> str:
    """Return the schema as text, in which lines of columns are replaced."""
    lines = TEXT.replace("UNIT", unit).replace("MOST", str(most)).replace("MISFIT", misfit).splitlines()
    lines = [line.replace(", max_records: 1", "") if unit == "none" else line for line in lines]
    for name, line in replaced.items():
        at = next(at for at, each in enumerate(lines) if each.startswith(f"  {name}:"))
        lines[at] = f"  {name}: {line}"
    return "\n".join(lines)


def schema(**more: Any) -> db.Schema:
    """Return the schema of :func:`text`."""
    return db.Schema.parse(text(**more))


def records(rows: int, *, seed: int = 1, wrong: float = 0.0, people: int | None = None) -> list[tuple[Any, ...]]:
    """Return raw records, of whose cells some do not fit."""
    draw = random.Random(seed)

    def moment() -> str:
        return (
            f"{draw.randint(2020, 2023)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
            f" {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}"
        )

    def maybe(value: Any, share: float = 0.1) -> Any:
        return None if draw.random() < share else value

    def row(number: int) -> tuple[Any, ...]:
        return (
            number if people is None else draw.randrange(people), draw.randint(18, 90), maybe(draw.random() * 10),
            draw.randint(-550, 99_999) / 100, draw.choice(["-7", "-8", "15", "-1000", "2500", "12", "13", "99997", ""]),
            maybe(draw.uniform(-1, 1)), draw.choice(["cook", "nurse", "it's", "?", "NA", "clown"]),
            draw.choice([1, 2, 3, 4, -9, None]), draw.choice(["1", "2", "10", "01", None]),
            maybe(draw.random() < 0.3), draw.choice(["yes", "NO", "t", "0", None]),
            maybe(f"{draw.randint(1930, 2005)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"), moment(),
            maybe(moment().replace(" ", draw.choice(" T"))), maybe(moment()[:10]),
            maybe(f"{draw.randint(4, 22):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}"),
            maybe(f"{draw.randint(0, 23)}:{draw.randint(0, 59):02}"),
            draw.choice(["1:30:00", "PT2H30M", "90 min", "P1DT1H", "2 days 03:00:00", "1.5 h", None]),
            maybe(draw.randint(0, 600)), maybe(moment()[:7]), maybe(draw.randint(1990, 2024)),
            draw.randint(0, 2500) / 10,
        )  # fmt: skip

    found = [list(row(number)) for number in range(rows)]
    names = [*COLUMNS]
    for each in found:
        if draw.random() < wrong:
            name = draw.choice([*WRONG])
            each[names.index(name)] = draw.choice(WRONG[name])
    return [tuple(each) for each in found]


def literal(cell: Any) -> str:
    """Return a cell in SQL."""
    if cell is None:
        return "NULL"
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float) and (cell != cell or abs(cell) == float("inf")):
        return f"'{'NaN' if cell != cell else 'Infinity' if cell > 0 else '-Infinity'}'"
    return str(cell) if isinstance(cell, (int, float)) else "'" + str(cell).replace("'", "''") + "'"


def create(run: Any, rows: list[tuple[Any, ...]], name: str = "people") -> None:
    """Create the table by a function that runs a statement."""
    run(f"CREATE TABLE {name} ({', '.join(f'{column} {kind}' for column, kind in COLUMNS.items())})")
    for first in range(0, len(rows), 200):
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows[first : first + 200])
        if values:
            run(f"INSERT INTO {name} VALUES {values}")


def duck_file(path: Any, rows: list[tuple[Any, ...]], name: str = "people") -> str:
    """Write a DuckDB file with the table, and return its URL."""
    import duckdb

    with duckdb.connect(path) as connection:
        create(connection.execute, rows, name)
    return f"duckdb:///{path}"


def duck_rows(path: Any, name: str = "people") -> pa.Table:
    """Return the rows of a table of a DuckDB file."""
    import duckdb

    with duckdb.connect(path, read_only=True) as connection:
        return connection.sql(f"SELECT * FROM {name}").to_arrow_table()


class Wire:
    """A port that passes bytes on to another, and counts those that come back.

    Attributes:
        port: On the loopback interface.
        received: Bytes from the server.
    """

    def __init__(self, target: int) -> None:
        self.received = 0
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for source, goal in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, goal, source is server), daemon=True).start()

    def _pump(self, source: socket.socket, goal: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                self.received += len(data) if counted else 0
                goal.sendall(data)
            goal.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Listen no more."""
        self._listening.close()


@contextlib.contextmanager
def counted_bytes(port: int) -> Iterator[Wire]:
    """Yield a port that counts what a server on another sends."""
    wire = Wire(port)
    try:
        yield wire
    finally:
        wire.close()
