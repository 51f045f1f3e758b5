"""Counts of a database equal NumPy's of the same records, to the last bit, for every query of a plan."""

from __future__ import annotations

import numpy as np
import pytest

import doublure as db
from doublure.data.opening import open_data
from doublure.encode.encoder import Encoder
from doublure.private.partitions import SinglePartition
from doublure.private.sql_partitions import SqlFactPartitions, SqlPartitions
from doublure.run.database_records import DatabaseRecords
from doublure.training.job import encoded_records

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")
worlds = pytest.importorskip("worlds")


class Shadow:
    """Counts the same records with NumPy beside the database, and compares every answer.

    Attributes:
        facts: How many answers to questions were equal.
        tables: How many tables were.
        cells: How many cells they have.
    """

    def __init__(self, patch: pytest.MonkeyPatch, rows: object, schema: db.Schema) -> None:
        self.facts = self.tables = self.cells = 0
        source = open_data(rows, "table", schema.written)
        source.check(schema)
        self.loaded = source.load(schema)
        encoded, learned, counted = DatabaseRecords.encoded, SqlFactPartitions.answers, SqlPartitions.answers

        def note(records: DatabaseRecords, encoder: Encoder, path: object) -> DatabaseRecords:
            own = encoder.compact(self.loaded.content)
            self.records = encoded_records(encoder, own, self.loaded.unit, self.loaded.n_units)
            return encoded(records, encoder, path)

        def compare_facts(places: SqlFactPartitions, query: object, *, sample_rate: float) -> object:
            for answer in learned(places, query, sample_rate=sample_rate):
                wanted = next(SinglePartition(self.loaded).answers(query, sample_rate=sample_rate))
                assert answer.stated == wanted.stated
                assert np.array_equal(answer.total, wanted.total) or answer.total == wanted.total
                self.facts += 1
                yield answer

        def compare(places: SqlPartitions, query: object, *, sample_rate: float) -> object:
            for answer in counted(places, query, sample_rate=sample_rate):
                wanted = next(SinglePartition(self.records).answers(query, sample_rate=sample_rate))
                assert answer.stated == wanted.stated
                assert answer.total.dtype == wanted.total.dtype
                assert np.array_equal(answer.total, wanted.total)
                self.tables += len(query.tables)
                self.cells += len(answer.total)
                yield answer

        patch.setattr(DatabaseRecords, "encoded", note)
        patch.setattr(SqlFactPartitions, "answers", compare_facts)
        patch.setattr(SqlPartitions, "answers", compare)


def fit(url, schema, folder, *, table="people", epsilon=1.0, **more):
    plan = db.plan(schema, epsilon=epsilon, delta=1e-6, accountant="rdp", fit_steps=20, starts=1)
    ledger = db.Ledger.create(folder / "people.ledger", dataset="people", epsilon=epsilon, delta=1e-4)
    return db.fit(url, plan, ledger=ledger, out=folder / "run", seed=1, progress=False, table=table, **more)


def test_every_nature_of_a_duckdb_file(tmp_path, monkeypatch):
    schema = worlds.schema()
    url = worlds.duck_file(tmp_path / "f.db", worlds.records(800, wrong=0.5))
    shadow = Shadow(monkeypatch, worlds.duck_rows(tmp_path / "f.db"), schema)
    syn = fit(url, schema, tmp_path)
    assert shadow.tables > 100
    assert shadow.cells > 10_000
    assert len(syn.sample(50, seed=1)) == 50


def test_every_nature_of_a_postgresql_table(tmp_path, monkeypatch, postgres):
    schema, rows = worlds.schema(misfit="coerce"), worlds.records(400, seed=2, wrong=0.5)
    worlds.duck_file(tmp_path / "f.db", rows)
    with postgres.connect() as connection:
        worlds.create(connection.execute, rows, "natures")
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    shadow = Shadow(monkeypatch, worlds.duck_rows(tmp_path / "f.db"), schema)
    with worlds.counted_bytes(postgres.port) as wire:
        url = postgres.url().replace(str(postgres.port), str(wire.port))
        fit(url, schema, tmp_path, table="natures")
    assert shadow.tables > 100
    assert wire.received <= 64 * shadow.cells
    for person, row in enumerate(rows):  # its log has every statement
        assert person < 0 or f"{row[2]!r}" not in postgres.log.split("INSERT INTO natures")[-1].partition("\n")[2]
