"""How a fit that counts in a database grows with its records, beside the same records in a file: a row a fit.

The engine makes twelve columns up (DuckDB by ``range()``, PostgreSQL by ``generate_series()``, both by ``random()``
with a seed); DuckDB writes the same rows as Parquet, which ``--memory`` reads. Each fit is a process of its own.
Seconds of the processor are this process's, in which DuckDB counts, or those of the server, too.

    python benchmarks/scale_sql.py --engine duckdb --records 1_000_000 --folder /var/tmp/scale
    python benchmarks/scale_sql.py --engine parquet --records 1_000_000 --folder /var/tmp/scale
    python benchmarks/scale_sql.py --engine postgresql --records 1_000_000
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from command_line import command_line, told
from robustness.killing import borrowed
from scaling import COLUMNS, by_child, keep, measured_fit, table_plan

ASKED = [name for name in COLUMNS if name not in ("job", "school", "owns")]
TABLE = """
CREATE TABLE people AS SELECT
  CASE WHEN random() < 0.05 THEN NULL ELSE a END AS age, floor(random() * 80)::int AS hours,
  CASE WHEN random() < 0.05 THEN NULL ELSE round(exp(8 + a / 100.0 + 2 * random())::numeric(18, 4), 2)::float8 END
    AS income,
  round((random() * 60000 - 20000)::numeric(18, 4), 2)::float8 AS debt,
  round((random() * random())::numeric(18, 6), 4)::float8 AS score, floor(-20 * ln(1 - random()))::int AS visits,
  DATE '2024-06-01' - (a * 365 + floor(random() * 365)::int) AS born,
  TIMESTAMP '2020-01-01' + floor(random() * 157680000)::int * INTERVAL '1 second' AS seen,
  CASE WHEN random() < 0.5 THEN 'f' ELSE 'm' END AS sex, 'r' || lpad(floor(random() * 26)::int::text, 2, '0') AS region,
  a > random() * 90 AS married, CASE WHEN random() < 0.05 THEN NULL ELSE random() < 0.2 END AS smokes
FROM (SELECT floor(random() * 100)::int AS a FROM {rows}) AS people_of
"""


def in_duckdb(folder: Path, records: int) -> Path:
    """Make a file of DuckDB with the table, and the same rows as Parquet; return the file."""
    import duckdb

    path = folder / f"people-{records}.db"
    if not path.exists():
        made = folder / f"making-{records}.db"
        made.unlink(missing_ok=True)
        with duckdb.connect(made) as connection:
            connection.execute("SET threads = 1")
            connection.execute("SET memory_limit = '3GB'")
            connection.execute("SELECT setseed(0.5)")
            connection.execute(TABLE.format(rows=f"range({records})"))
            parquet = path.with_suffix(".parquet")
            connection.execute(f"COPY people TO '{parquet}' (FORMAT parquet, ROW_GROUP_SIZE 1000000)")
        made.rename(path)
    return path


@contextlib.contextmanager
def in_postgres(records: int) -> Iterator[tuple[str, Any]]:
    """Start a server whose table this is; yield its address, and what tells the processor seconds that it took."""
    postgres = borrowed("support/postgres.py")
    postgres._SETTINGS |= {"shared_buffers": "512MB", "max_wal_size": "2GB", "log_statement": "none"}
    programs = postgres.find()
    if programs is None:
        raise SystemExit(postgres.WITHOUT)
    with postgres.running(programs) as server:
        os.environ["PGPASSWORD"] = server.password
        with server.connect() as connection:
            connection.execute("SET max_parallel_workers_per_gather = 0")
            connection.execute("SELECT setseed(0.5)")
            connection.execute(TABLE.format(rows=f"generate_series(1, {records})"))
            connection.execute("ANALYZE people")

        def spent() -> float:
            """Return the seconds of the server and of its processes that have ended."""
            time.sleep(0.5)  # a process that ends is counted once it is waited for
            fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
            return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

        yield server.url(), spent


def fit(data: str, engine: str, units: int, memory: str) -> None:
    """Fit, and print what it took of this process: the way of a child."""
    options: dict[str, Any] = {"memory": memory} if engine == "parquet" else {"table": "people"}
    plan = table_plan(units, ASKED, "unit: {name: record, id: none}\n")
    with tempfile.TemporaryDirectory() as folder:
        _, row = measured_fit(data, plan, Path(folder), **options)
    row |= {
        "columns": len(ASKED), "engine": engine, "records": units, "memory": memory if engine == "parquet" else None,
        "command": f"python benchmarks/scale_sql.py --engine {engine} --records {units}",
    }  # fmt: skip
    print(json.dumps(row))


def main() -> None:
    """Read the command line."""
    given = command_line(
        __doc__, engine=dict(choices=["duckdb", "parquet", "postgresql"], required=True),
        records=dict(type=int, required=True), memory=told("2GB", "for parquet"), folder=Path(tempfile.gettempdir()),
        keep=told(False, "the row"), child=told(str, argparse.SUPPRESS),
    )  # fmt: skip
    if given.child:
        fit(given.child, given.engine, given.records, given.memory)
        return
    with contextlib.ExitStack() as stack:
        spent = None
        if given.engine == "postgresql":
            data, spent = stack.enter_context(in_postgres(given.records))
        else:
            path = in_duckdb(given.folder, given.records)
            data = f"duckdb:///{path}" if given.engine == "duckdb" else str(path.with_suffix(".parquet"))
        before = spent() if spent else 0.0
        words = ["--engine", given.engine, "--records", given.records, "--memory", given.memory]
        row = by_child(__file__, "--child", data, *words)
        if spent:
            row["server_cpu_seconds"] = round(spent() - before, 1)
        print(json.dumps(row), flush=True)
        if given.keep:
            keep("scale_sql", row)


if __name__ == "__main__":
    main()
