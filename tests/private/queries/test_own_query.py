"""The query of docs/evidence/extending.md: it moves as far as it states, and is answered alike wherever records lie."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.access import Access
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.owner_partitions import EmptyRecords, OwnerPartitions
from doublure.private.partitions import SequentialPartitions
from doublure.private.queries.axes import Axis
from doublure.private.records import PrivateRecords
from doublure.schema import Schema

SECTION = (Path(__file__).resolve().parents[3] / "docs" / "evidence" / "extending.md").read_text(encoding="utf-8")
SECTION = SECTION.partition("\n## A query\n")[2]
TABLES = [(Axis.of_codes(0, 3),), (Axis.of_codes(0, 3), Axis.of_codes(1, 4))]


@pytest.fixture
def query_type(tmp_path, monkeypatch):
    """The page's query, from a module of its own: a mutant is planted where source can be read."""
    code = re.findall(r"```python\n(.*?)class Commons\(", SECTION, flags=re.DOTALL)[0]
    (tmp_path / "own_query.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("own_query").CommonValues
    del sys.modules["own_query"]


def held(rows, most=1):
    unit = np.arange(len(rows)) // most
    return PrivateRecords(rows, unit, len(set(unit)), lambda some: (some, None))


def check_one_unit_moves_as_far_as_is_stated(query_type):
    for seed in range(200):
        draw, most = np.random.default_rng(seed), 2
        rows = draw.integers(0, [3, 4], (60, 2)).astype(float)
        query = query_type(tables=TABLES, max_records=most, least=int(draw.integers(1, 30)))
        before, after = (query.answer(held(rows[:count], most), sample_rate=1.0) for count in (58, 60))
        assert before.sensitivity == after.sensitivity == query.sensitivity
        moved = np.abs(after.total - before.total)
        assert np.linalg.norm(moved) <= query.sensitivity.l2
        assert moved.max() <= most


def test_one_unit_moves_it_as_far_as_is_stated(query_type):
    check_one_unit_moves_as_far_as_is_stated(query_type)


def test_the_mutant_that_the_page_names_is_caught(query_type, monkeypatch):
    named = re.search(r'plant\(monkeypatch, CommonValues, "combine", \("(.*?)", "(.*?)"\)\)', SECTION)
    assert named is not None
    plant(monkeypatch, query_type, "combine", named.groups())
    with pytest.raises(AssertionError):
        check_one_unit_moves_as_far_as_is_stated(query_type)


CODES = np.random.default_rng(1).choice(3, 300, p=[0.9, 0.07, 0.03]).astype(float)[:, None]


@pytest.fixture
def asked(query_type):
    """The query, and its answer for all records in one place."""
    query = query_type(tables=TABLES[:1], max_records=1)
    wanted = query.answer(held(CODES), sample_rate=1.0).total.tolist()
    assert wanted == [int((np.bincount(CODES[:, 0].astype(int)) >= 20).sum())] == [2]
    return query, wanted


def answered(query, places):
    places.refuse_unfit(query)
    return places.ask(query, sample_rate=1.0).total.tolist()


def test_partitions_and_owners_answer_alike(asked):
    query, wanted = asked
    parts = {"a": held(CODES[:150]), "b": held(CODES[150:])}
    assert answered(query, SequentialPartitions(parts.values)) == wanted

    def owned(counts, access, names, view):
        return ((name, counts.answer(part, sample_rate=1.0).to_message()) for name, part in parts.items())

    owners = OwnerPartitions(
        owned, EmptyRecords(1, pd.DataFrame({"letter": []})), refused=lambda *said: pytest.fail(str(said)),
        one_unit=False, owners=lambda: [*parts], units=lambda: dict.fromkeys(parts, 300),
    )  # fmt: skip
    owners.paid_by(Access(purpose="count common values", event=DiscreteGaussianEvent(scale=1.0)))
    assert answered(query, owners) == wanted


def test_a_database_answers_alike(asked, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="pip install doublure[sql]")
    pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
    from doublure.data.databases.relation import NamedRelation
    from doublure.encode.table_values import TableValues
    from doublure.run.database_records import DatabaseRecords

    query, wanted = asked
    with duckdb.connect(tmp_path / "f.db") as connection:
        letters = np.array(["a", "b", "c"])[CODES[:, 0].astype(int)].tolist()
        connection.execute("CREATE TABLE letters AS SELECT unnest(?) AS letter", [letters])
    schema = Schema.parse(
        "doublure: 1\nkind: table\nunit: {name: record, id: none}\nunits: 300\n"
        "columns:\n  letter: {type: category, values: [a, b, c], missing: false}\n"
    )
    records = DatabaseRecords(f"duckdb:///{tmp_path / 'f.db'}", NamedRelation(table="letters"))
    try:
        records.check(schema)
        records.read()
        assert answered(query, records.encoded(TableValues(schema.resolve({})), None).partitions()) == wanted
    finally:
        records.close()
