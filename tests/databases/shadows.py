"""A fit in a database, of which every answer is compared with NumPy's of the same records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import doublure as db
from doublure.data.opening import open_data
from doublure.encode.encoder import Encoder
from doublure.private.partitions import SinglePartition
from doublure.private.sql_partitions import SqlFactPartitions, SqlPartitions
from doublure.run.database_records import DatabaseRecords
from doublure.run.database_units import UnitRecords
from doublure.training.job import encoded_records


class Shadow:
    """Counts the same records with NumPy beside the database, and compares every answer.

    Attributes:
        facts: How many answers to questions were equal.
        queries: The counts that were asked for, of which all answers were equal.
    """

    def __init__(self, patch: pytest.MonkeyPatch, rows: object, schema: db.Schema) -> None:
        self.facts, self.queries = 0, list[Any]()
        source = open_data(rows, schema.kind, schema.written)
        source.check(schema)
        self.loaded = source.load(schema)
        learned, counted = SqlFactPartitions.answers, SqlPartitions.answers

        def compare_facts(places: SqlFactPartitions, query: object, *, sample_rate: float) -> object:
            for answer in learned(places, query, sample_rate=sample_rate):
                wanted = next(SinglePartition(self.loaded).answers(query, sample_rate=sample_rate))
                assert answer.stated == wanted.stated
                if isinstance(wanted.total, dict):
                    assert answer.total == wanted.total
                else:
                    assert np.array_equal(answer.total, wanted.total)
                self.facts += 1
                yield answer

        def compare(places: SqlPartitions, query: object, *, sample_rate: float) -> object:
            for answer in counted(places, query, sample_rate=sample_rate):
                self.compare(query, answer, places)
                yield answer

        for owner in (DatabaseRecords, UnitRecords):
            encoded = owner.encoded

            def note(records: Any, encoder: Encoder, path: object, encoded: Any = encoded) -> Any:
                self.encode(encoder)
                return encoded(records, encoder, path)

            patch.setattr(owner, "encoded", note)
        patch.setattr(SqlFactPartitions, "answers", compare_facts)
        patch.setattr(SqlPartitions, "answers", compare)

    def encode(self, encoder: Encoder) -> None:
        own = encoder.compact(self.loaded.content)
        self.encoder = encoder
        self.records = encoded_records(encoder, own, self.loaded.unit, self.loaded.n_units)

    def compare(self, query: Any, answer: Any, places: SqlPartitions | None = None) -> None:
        records, table = self.records, None if places is None else places._table
        if table is not None and table.least is not None:
            records = records.having(*table.least, np.array(table.parts))
        wanted = next(SinglePartition(records).answers(query, sample_rate=1.0))
        assert answer.stated == wanted.stated
        assert answer.total.dtype == wanted.total.dtype
        assert np.array_equal(answer.total, wanted.total)
        self.queries.append(query)

    @property
    def tables(self) -> int:
        return sum(len(query.tables) for query in self.queries)

    @property
    def cells(self) -> int:
        return sum(int(np.prod([axis.size for axis in table])) for query in self.queries for table in query.tables)
