"""Rules 2, 3, 6, 8, 9, 11 and 16 for records in a database: what is checked, and mutants that the checks kill."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds
from engines import made_in
from planting import plant

import doublure as db
from doublure.data.databases import reading
from doublure.data.databases.connection import DatabaseSession, DuckDatabase
from doublure.data.databases.relation import NamedRelation
from doublure.encode.table_values import TableValues
from doublure.errors import NotAsPriced, SettingError
from doublure.private.queries.axes import Axis, Intervals, Patterns
from doublure.private.queries.counts import Counts
from doublure.private.queries.facts import make_fact_query
from doublure.private.sql_partitions import SqlPartitions
from doublure.run.database_records import DatabaseRecords
from doublure.schema.columns import number_sql
from doublure.schema.columns.sql_words import SqlWords

MOST = 2
KEPT = ("person", "age", "dose", "typed", "job", "born", "size")


def schema() -> db.Schema:
    lines = worlds.text(unit="person", most=MOST).splitlines()
    return db.Schema.parse("\n".join(line for line in lines if line[:2] != "  " or line.split(":")[0].strip() in KEPT))


def counted(url: str, own: db.Schema, query: Counts | None = None) -> list[np.ndarray]:
    """Return the counts of some tables, of single columns and of pairs."""
    records = DatabaseRecords(url, NamedRelation(table="people"))
    try:
        records.check(own)
        records.read()
        places = records.encoded(TableValues(own.resolve({})), None).partitions()
        asked = query or tables(own)
        places.refuse_unfit(asked)
        (answer,) = places.answers(asked, sample_rate=1.0)
        return asked.split(answer.total)
    finally:
        records.close()


def tables(own: db.Schema, most: int = MOST) -> Counts:
    domains = TableValues(own.resolve({})).domains
    axes = []
    for part, domain in enumerate(domains):
        starts = domain.initial_partition()[::7].astype(float)
        axes.append(Intervals(part=part, starts=starts, cells=np.arange(len(starts)), size=len(starts)))
    gone = tuple(float(domain.last + 1) for domain in domains)
    patterns = Patterns(
        parts=tuple(range(len(domains))), marks=gone, cells=np.arange(2 ** len(domains)), size=2 ** len(domains)
    )
    pairs = [*itertools.pairwise(axes)]
    return Counts(tables=[*((axis,) for axis in axes), *pairs, (patterns,)], max_records=most)


def neighbours(tmp_path, *, people: int = 30) -> None:
    """Compare the counts of data with those of the same data without one person, for several of them."""
    own, rows = schema(), worlds.records(150, seed=5, wrong=0.5, people=people)
    whole = counted(worlds.duck_file(tmp_path / "all.db", rows), own)
    for person in range(4):
        left = [row for row in rows if row[0] != person]
        less = counted(worlds.duck_file(tmp_path / f"{person}.db", left), own)
        used = min(MOST, len(rows) - len(left))
        for one, other in zip(whole, less, strict=True):
            moved = one - other
            assert moved.min() >= 0
            assert moved.sum() == used


def test_a_unit_moves_each_table_by_its_own_records(tmp_path):
    """Rules 9 and 16: no cell decides how another record is read, or whether it is used."""
    neighbours(tmp_path)


@pytest.mark.parametrize(
    ("owner", "name", "old", "new"),
    [
        (reading, "bounded", "sql.whole(most)", "sql.whole(most + 1)"),
        (reading, "bounded", "ranked([UNIT], content_order(cells))", "ranked([], content_order(cells))"),
        (reading, "bounded", "exp.column(RANK) <= sql.whole(most)", "exp.column(RANK) >= sql.whole(most)"),
        (
            number_sql, "fitted_number", "sql.case((sql.is_null(number), otherwise), otherwise=inside)",
            "sql.case((sql.is_null(number), exp.Window(this=exp.Avg(this=number.copy()))), otherwise=inside)",
        ),
        (
            number_sql, "fitted_number", "clipped(whole, *ends)",
            "whole - exp.Window(this=exp.Avg(this=number.copy()))",
        ),
    ],
)  # fmt: skip
def test_a_reading_that_looks_at_other_records_is_seen(owner, name, old, new, tmp_path, monkeypatch):
    from sqlglot import exp

    monkeypatch.setattr(owner, "exp", exp, raising=False)
    plant(monkeypatch, owner, name, (old, new))
    with pytest.raises((AssertionError, SettingError)):  # or the ranks tell that units are not bounded
        neighbours(tmp_path)


CODES = [f"c{number}" for number in range(30)]
"""More than are compared one by one: a table of them is joined."""


def collated(tmp_path, name: str, texts: list[str], *, learned: bool) -> dict[str, int]:
    """Return what is counted of a column by whose collation ``C1`` equals ``c1``."""
    import duckdb

    path = tmp_path / name
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people (job VARCHAR COLLATE NOCASE)")
        connection.executemany("INSERT INTO people VALUES (?)", [[text] for text in texts])
    values = "{learn: 0.5}" if learned else str([*CODES, "C1"])
    head = "doublure: 1\nkind: table\nunit: {name: record, id: none}\nunits: 50\nmisfit: coerce\ncolumns:\n"
    own = db.Schema.parse(f"{head}  job: {{type: category, values: {values}, other: none, missing: false}}")
    records = DatabaseRecords(f"duckdb:///{path}", NamedRelation(table="people"))
    try:
        records.check(own)
        records.read()
        if learned:
            query = make_fact_query(own.questions[0], own, {})
            (answer,) = records.facts().answers(query, sample_rate=1.0)
            return dict(answer.total)
        encoder = TableValues(own.resolve({}))
        records.encoded(encoder, None)
        first, last = encoder.domains[0].first, encoder.domains[0].last
        query = Counts(tables=[(Axis.of_codes(0, last - first + 1),)], max_records=1)
        (answer,) = records.partitions().answers(query, sample_rate=1.0)
        labels = own.columns["job"].labels
        return {labels[place]: int(count) for place, count in enumerate(answer.total) if count}
    finally:
        records.close()


@pytest.mark.parametrize("learned", [True, False])
def test_no_collation_makes_two_texts_one(learned, tmp_path, monkeypatch):
    """Rules 2 and 16: a text would meet two of a list and count twice, or take the name of another record's text."""

    def moves() -> None:
        whole = collated(tmp_path, "whole.db", ["C1", "c1", "c1", "c2"], learned=learned)
        less = collated(tmp_path, "less.db", ["c1", "c1", "c2"], learned=learned)
        assert whole == {"C1": 1, "c1": 2, "c2": 1}
        assert less == {"c1": 2, "c2": 1}

    moves()
    for name in ("whole.db", "less.db"):
        (tmp_path / name).unlink()
    monkeypatch.setattr(SqlWords, "bytewise", None)
    with pytest.raises(AssertionError):
        moves()


FAR = {
    "duckdb": {"day": ("DATE", "5881580-07-10"), "seen": ("DATE", "-290308-01-01")},
    "postgresql": {
        "price": ("NUMERIC", "1e400"), "low": ("NUMERIC", "-1e-400"), "day": ("DATE", "5874897-12-31"),
        "seen": ("TIMESTAMPTZ", "294276-12-31 23:59:59+00"),
    },
}  # fmt: skip
"""Engine -> column -> its type, and a cell that neither float64 nor the clock of a zone holds."""
FAR_TYPES = {
    "price": "{type: real, bounds: [0, 9], precision: 1, missing: true}",
    "low": "{type: real, bounds: [0, 9], precision: 1, missing: true}",
    "day": "{type: date, bounds: [2020-01-01, 2021-01-01], missing: true}",
    "seen": "{type: datetime, bounds: [2020-01-01T00:00:00, 2021-01-01T00:00:00], timezone: Asia/Tokyo, missing: true}",
}


@pytest.mark.parametrize("engine", [*FAR])
def test_no_cell_ends_a_statement(engine, tmp_path, request):
    """Rules 17 and 19: with misfit: coerce, no record refuses a fit."""
    columns = FAR[engine]

    def make(run):
        run(f"CREATE TABLE far ({', '.join(f'{name} {kind}' for name, (kind, _) in columns.items())})")
        run(f"INSERT INTO far VALUES ({', '.join(repr(cell) for _, cell in columns.values())})")

    url = made_in(engine, make, tmp_path, request)
    head = "doublure: 1\nkind: table\nunit: {name: record, id: none}\nunits: 50\nmisfit: coerce\ncolumns:\n"
    own = db.Schema.parse(head + "".join(f"  {name}: {FAR_TYPES[name]}\n" for name in columns))
    records = DatabaseRecords(url, NamedRelation(table="far"), at_least=1)
    try:
        records.check(own)
        records.read()
        records.encoded(TableValues(own.resolve({})), None)
    finally:
        records.close()


def test_more_records_than_planned_are_refused(tmp_path):
    """Rule 2: the sensitivity holds for the records that there are, or nothing is counted."""
    url = worlds.duck_file(tmp_path / "f.db", worlds.records(60, people=10))
    with pytest.raises(SettingError, match="max_records"):
        counted(url, schema(), tables(schema(), most=1))


def a_fit(tmp_path, url, own=None):
    plan = db.plan(own or schema(), epsilon=1.0, delta=1e-6, accountant="rdp", fit_steps=5, starts=1)
    ledger = db.Ledger.create(tmp_path / "l", dataset="people", epsilon=1.0, delta=1e-4)
    return ledger, lambda: db.fit(url, plan, ledger=ledger, out=tmp_path / "run", progress=False, table="people")


def test_another_sensitivity_than_was_priced_gives_nothing_out(tmp_path, monkeypatch):
    """Rules 2 and 6: the answer's own sensitivity is compared before noise is drawn."""
    url = worlds.duck_file(tmp_path / "f.db", worlds.records(60, people=30))
    plant(
        monkeypatch, SqlPartitions, "answers",
        ("Sensitivity.of_cells(len(counts), query.max_records)", "Sensitivity.of_cells(1, query.max_records)"),
    )  # fmt: skip
    _, fit = a_fit(tmp_path, url)
    with pytest.raises(NotAsPriced):
        fit()


def test_everybody_is_asked(tmp_path, monkeypatch):
    """Rule 3: a database draws no lots, and refuses a query that is priced as one."""
    records = DatabaseRecords(worlds.duck_file(tmp_path / "f.db", worlds.records(20)), NamedRelation(table="people"))
    records.check(schema())
    records.read()
    places = records.encoded(TableValues(schema().resolve({})), None).partitions()
    query = Counts(tables=[(Axis.of_codes(0, 200),)], max_records=MOST)

    def refuses() -> None:
        with pytest.raises(SettingError, match="asks every unit"):
            next(places.answers(query, sample_rate=0.5))

    refuses()
    plant(monkeypatch, SqlPartitions, "answers", ("require_everyone(sample_rate)", "None"))
    with pytest.raises(pytest.fail.Exception):
        refuses()
    records.close()


def statements(monkeypatch, ledger) -> list[tuple[str, bool]]:
    """Note each statement that may read a row, and whether the plan was charged by then."""
    said: list[tuple[str, bool]] = []
    run, head = DuckDatabase._run, DuckDatabase.header

    def note(database: DatabaseSession, text: str) -> object:
        if re.search(r'"?people"?', text):
            said.append((text, bool(db.Ledger.open(ledger.path).entries[1:])))
        return run(database, text)

    def header(database: DatabaseSession, statement: object) -> object:
        assert not said
        return head(database, statement)

    monkeypatch.setattr(DuckDatabase, "_run", note)
    monkeypatch.setattr(DuckDatabase, "header", header)
    return said


def test_the_charge_is_on_disk_before_a_row_is_read(tmp_path, monkeypatch):
    """Rule 11; and rule 8: nothing is drawn in the database."""
    url = worlds.duck_file(tmp_path / "f.db", worlds.records(60, people=30))
    ledger, fit = a_fit(tmp_path, url)
    said = statements(monkeypatch, ledger)
    fit()
    assert said
    assert all(charged for _, charged in said)
    assert not any(re.search(r"random|setseed|uuid", text, re.IGNORECASE) for text, _ in said)


def test_a_row_that_is_read_before_the_charge_is_seen(tmp_path, monkeypatch):
    url = worlds.duck_file(tmp_path / "f.db", worlds.records(60, people=30))
    ledger, fit = a_fit(tmp_path, url)
    plant(
        monkeypatch, DatabaseRecords, "check",
        ("names = [name for name, _ in header]",
         "names = [name for name, _ in header]\ndatabase.rows(sql.select('*', of=source))"),
    )  # fmt: skip
    said = statements(monkeypatch, ledger)
    fit()
    assert not all(charged for _, charged in said)


def test_no_row_leaves_the_database(tmp_path, monkeypatch):
    """Every statement that gives rows gives counts: whole numbers, and labels where values are bought."""
    url = worlds.duck_file(tmp_path / "f.db", worlds.records(60, people=30))
    run, given = DuckDatabase._run, list[object]()

    def note(database: DatabaseSession, text: str) -> list[tuple[object, ...]]:
        rows = run(database, text)
        if not text.startswith(("CREATE", "INSERT", "DROP", "SET", "BEGIN")):
            given.extend(cell for row in rows for cell in row)
        return rows

    monkeypatch.setattr(DuckDatabase, "_run", note)
    _, fit = a_fit(tmp_path, url)
    fit()
    assert given
    assert all(type(cell) is int for cell in given)
