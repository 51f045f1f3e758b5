"""The pages docs/sources.md and docs/evidence/sources.md are typed against a real server."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("adbc_driver_postgresql", reason="pip install doublure[sql]")

from shell import type_in

from doublure.releasing.bundle import verify

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = "".join((DOCS / name).read_text(encoding="utf-8") for name in ("sources.md", "evidence/sources.md"))
ADDRESS = "postgresql://anna@127.0.0.1:5432/clinic"


def test_the_page_goes_from_a_server_to_a_bundle(tmp_path, monkeypatch, postgres):
    draw = random.Random(4)
    with postgres.connect() as connection:
        connection.execute("CREATE TABLE visitors (visitor int, age int, arrived timestamp, ward text, cost numeric)")
        rows = ", ".join(
            f"({draw.randrange(300)}, {draw.randint(18, 90)}, '2024-{draw.randint(1, 12):02}-03 10:00:00', "
            f"'{draw.choice('ABCD')}', {draw.choice(['NULL', draw.randint(0, 5000)])})"
            for _ in range(600)
        )
        connection.execute(f"INSERT INTO visitors VALUES {rows}")
        connection.execute(
            "CREATE TABLE patients AS SELECT nr, (ARRAY['f', 'm'])[1 + nr % 2] AS sex FROM"
            " generate_series(1, 300) AS nr"
        )
        connection.execute(
            "CREATE TABLE stays AS SELECT 1 + (n * 7) % 310 AS nr, DATE '2024-01-01' + n % 300 AS"
            " admitted, (n % 90)::numeric AS cost FROM generate_series(1, 600) AS n"
        )
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    monkeypatch.chdir(tmp_path)
    schemas = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    for name, schema in zip(("visitors", "tables"), schemas, strict=True):
        Path(f"{name}.yaml").write_text(schema)
    assert PAGE.count(ADDRESS) > 3
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        type_in(block.replace(ADDRESS, postgres.url()))
    assert verify("bundle", ledger="visitors.ledger")["files"] > 3
    assert verify("tables-bundle", ledger="tables.ledger")["files"] > 3
    assert "age: {type: integer" in Path("draft.yaml").read_text()
    assert "parent: patients" in Path("tables.draft.yaml").read_text()
    with postgres.connect() as connection:
        for table in ("synthetic_visitors", "released_visitors"):
            rows = connection.execute(f"SELECT ward, arrived FROM {table}").fetchall()
            assert len(rows) == 600
            assert {type(cell).__name__ for row in rows for cell in row} == {"str", "datetime"}
