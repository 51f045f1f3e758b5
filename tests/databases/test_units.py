"""Units of related tables, and of one table that is split, are counted in a database as NumPy counts them."""

from __future__ import annotations

import hashlib
import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sqlglot", reason="pip install doublure[sql]")
pytest.importorskip("duckdb", reason="pip install doublure[sql]")

import worlds
from engines import ENGINES, made_in
from linked_tables import TEXT, made_up
from planting import plant
from shadows import Shadow
from tiers import crossed

import doublure as db
from doublure.data.databases import linking, reading
from doublure.data.databases.connection import DuckDatabase
from doublure.data.relational import open_related, opening, visits
from doublure.encode import related_in_sql, relational
from doublure.errors import DataError, SchemaError, SettingError
from doublure.private.partitions import SinglePartition
from doublure.private.queries.facts import make_fact_query
from doublure.private.sql_partitions import CodeTable, SqlPartitions
from doublure.run.database_units import RelatedRecords, UnitRecords
from doublure.schema.missing_states import hole_states

SHOPS = """
doublure: 1
kind: relational
unit: {name: customer}
units: 60
misfit: coerce
tables:
  customers:
    key: nr
    columns:
      nr: {type: id}
      tier: {type: category, values: [a, b], missing: false}
      since: {type: integer, bounds: [0, 900], missing: true}
  lines:
    parent: orders
    foreign_key: [nr, at]
    max_children: 3
    columns:
      nr: {type: id}
      at: {type: id}
      item: {type: category, values: [p, q, r, s, t, u, v, w, x], missing: true}
      price: {type: real, bounds: [0, 10], precision: 1, missing: ["-1", "-2"]}
  orders:
    key: [nr, at]
    parent: customers
    foreign_key: nr
    max_children: 4
    order: day
    columns:
      nr: {type: id}
      at: {type: id}
      day: {type: integer, bounds: [0, 999], missing: false}
      due: {type: integer, bounds: [0, 999], missing: true}
  visits:
    parent: customers
    foreign_key: nr
    max_children: 3
    order: day
    columns:
      nr: {type: id}
      day: {type: date, bounds: [2020-01-01, 2022-12-31], missing: false}
      ward: {type: category, values: [A, B], other: Z, missing: false}
constraints: [{at_most: [customers.since, orders.day]}, {at_most: [customers.since, orders.due]}]
"""
TYPES = {
    "nr": "VARCHAR", "at": "INTEGER", "tier": "VARCHAR", "since": "INTEGER", "item": "VARCHAR",
    "price": "DOUBLE PRECISION", "day": "INTEGER", "due": "INTEGER", "ward": "VARCHAR", "born": "INTEGER",
    "sex": "VARCHAR", "cost": "DOUBLE PRECISION", "order": "VARCHAR", "since_at": "TIMESTAMP", "came": "TIMESTAMP",
    "gone": "TIMESTAMP",
}  # fmt: skip


def shops(customers, seed=0):
    """Return tables in which keys repeat, rows name nobody, and some have more rows than are used."""
    draw = np.random.default_rng(seed)

    def maybe(cell):
        return None if draw.random() < 0.15 else cell

    names = [f"c{n}" for n in range(customers)]
    people = [(name, str(draw.choice(["a", "b", "?"])), maybe(int(draw.integers(-9, 950)))) for name in names]
    people += [("c1", "b", 3), (None, "a", 5)]
    orders, lines, seen = [], [], []
    for name in [*names, "nobody", None]:
        for _ in range(draw.integers(0, 7)):
            orders.append(
                (name, maybe(int(draw.integers(0, 5))), int(draw.integers(0, 999)), maybe(int(draw.integers(0, 999))))
            )
        for _ in range(draw.integers(0, 12)):
            price = maybe(float(draw.choice([-1, -2, round(draw.uniform(0, 12), 1)])))
            lines.append((name, int(draw.integers(0, 5)), maybe(str(draw.choice([*"pqrstuvwx"]))), price))
        for _ in range(draw.integers(0, 5)):
            seen.append(
                (name, f"{draw.integers(2020, 2023)}-0{draw.integers(1, 9)}-11", str(draw.choice(["A", "B", "C"])))
            )
    columns = {"customers": ["nr", "tier", "since"], "orders": ["nr", "at", "day", "due"],
               "lines": ["nr", "at", "item", "price"], "visits": ["nr", "day", "ward"]}  # fmt: skip
    return {
        name: pd.DataFrame(rows, columns=columns[name], dtype=object)
        for name, rows in (("customers", people), ("orders", orders), ("lines", lines), ("visits", seen))
    }


def create(run, tables):
    """Create tables by a function that runs a statement."""
    for name, frame in tables.items():
        kinds = TYPES | ({"day": "DATE"} if name in ("visits", "stays") else {})
        columns = ", ".join(f'"{column}" {kinds[column]}' for column in frame)
        run(f"CREATE TABLE {name} ({columns})")
        rows = ", ".join(f"({', '.join(map(worlds.literal, row))})" for row in frame.itertuples(index=False, name=None))
        run(f"INSERT INTO {name} VALUES {rows}")


def digest(said: str) -> int:
    return int(hashlib.md5(said.encode(), usedforsecurity=False).hexdigest()[:8], 16)


@pytest.fixture(autouse=True)
def same_choices(monkeypatch):
    """Let memory mark units as a database does, and the database put equal rows in the order of their numbers."""

    def marked(keys):
        return np.array([digest(f"{key}|") for key in keys], dtype=np.uint64)

    def remarked(marks, turn=0):
        return np.array([digest(f"{mark}.{turn}") for mark in marks.tolist()], dtype=np.uint64)

    for module in (opening, visits):
        monkeypatch.setattr(module, "mark_keys", marked)
    monkeypatch.setattr(relational, "remarked", remarked)
    by_content = reading.content_order
    for module in (linking, reading):
        monkeypatch.setattr(module, "content_order", lambda cells: by_content(cells)[1:])


def in_order(frame: pd.DataFrame, columns, keys) -> pd.DataFrame:
    """Return rows in the order in which the database takes them: numbers, missing first, then states, then keys."""
    read = {
        name: column.numbers_of(opening.cells.canonical(frame[name], column, name, "coerce"))
        for name, column in columns.items()
        if column.modelled
    }
    by = [np.where(np.isnan(numbers), -np.inf, numbers) for numbers in read.values()]
    by += [hole_states(numbers) for numbers in read.values()]
    by += [frame[name].astype(object).map(lambda cell: "" if cell is None else str(cell)).to_numpy() for name in keys]
    order = sorted(range(len(frame)), key=lambda at: tuple(each[at] for each in by))
    return frame.iloc[order].reset_index(drop=True)


def fit(url, schema, folder, **more):
    plan = db.plan(schema, epsilon=20.0, delta=1e-6, accountant="rdp", fit_steps=1, starts=1, components=2, groups=2)
    ledger = db.Ledger.create(folder / "ledger", dataset="shops", epsilon=20.0, delta=1e-4)
    return db.fit(url, plan, ledger=ledger, out=folder / "run", seed=1, progress=False, **more)


STAYS = """
doublure: 1
kind: table
unit: {name: patient, id: nr, per_unit: [born, sex], max_records: 3, order: day}
units: 60
misfit: coerce
columns:
  nr: {type: id}
  born: {type: integer, bounds: [1920, 2010], missing: true}
  sex: {type: category, values: [f, m], missing: ["?", "-"]}
  day: {type: date, bounds: [2020-01-01, 2022-12-31], missing: false}
  ward: {type: category, values: [A, B, C, D, E, F, G, H, I], other: Z, missing: true}
  cost: {type: real, bounds: [0, 100], precision: 1, missing: true}
"""


def stays(patients, seed=3):
    """Return visits of patients, whose own cells differ between rows, or are missing in some; some name nobody."""
    draw, rows = np.random.default_rng(seed), []
    for patient in [*range(patients), None]:
        for _ in range(draw.integers(1, 6)):
            cost = None if draw.random() < 0.2 else float(draw.integers(-50, 1100)) / 10
            born = int(draw.integers(1915, 2015)) if draw.random() < 0.7 else None
            day, sex = f"{draw.integers(2020, 2023)}-0{draw.integers(1, 9)}-11", str(draw.choice(["f", "m", "?", "-"]))
            rows.append((patient, born, sex, day, str(draw.choice([*"ABCDEFGHIJ"])), cost))
    names = ["nr", "born", "sex", "day", "ward", "cost"]
    return {"stays": pd.DataFrame(rows, columns=names, dtype=object)}


@pytest.mark.parametrize("engine", ENGINES)
def test_related_tables(engine, tmp_path, monkeypatch, request):
    tables, schema = shops(60), db.Schema.parse(SHOPS)
    url = made_in(engine, lambda run: create(run, tables), tmp_path, request)
    held = {
        name: in_order(tables[name], table.columns, [*table.foreign_keys, *table.keys])
        for name, table in schema.tables.items()
    }
    shadow = Shadow(monkeypatch, held, schema)
    syn = fit(url, schema, tmp_path)
    assert shadow.tables > 50
    assert set(syn.sample(20, seed=1)) == set(tables)


IMPLIED = "constraints: [{implies: {when: {sex: f}, then: {born: [1950, 2010]}}}]\n"


@pytest.mark.parametrize(("rules", "engine"), crossed([IMPLIED, ""], ENGINES))
def test_visits(engine, rules, tmp_path, monkeypatch, request):
    tables, schema = stays(60), db.Schema.parse(STAYS + rules)
    url = made_in(engine, lambda run: create(run, tables), tmp_path, request)
    shadow = Shadow(monkeypatch, in_order(tables["stays"], schema.columns, ["nr"]), schema)
    syn = fit(url, schema, tmp_path, table="stays")
    assert shadow.tables > 30
    assert list(syn.sample(20, seed=1)) == [*tables["stays"]]


MOMENTS = """
doublure: 1
kind: relational
unit: {name: guest}
units: 40
misfit: coerce
tables:
  guests:
    key: nr
    columns:
      nr: {type: id}
      since_at: {type: datetime, bounds: ['1969-12-20T00:00:00', '1970-01-20T23:59:59'], step: 60, missing: false}
  stays:
    parent: guests
    foreign_key: nr
    max_children: 4
    order: came
    columns:
      nr: {type: id}
      came: {type: datetime, bounds: ['1969-12-20T00:00:00', '1970-02-01T23:59:59'], step: 60, missing: false}
      gone: {type: datetime, bounds: ['1969-12-20T00:00:00', '1970-02-10T23:59:59'], step: 60, missing: true}
constraints: [{at_most: [guests.since_at, stays.came]}, {at_most: [stays.came, stays.gone]}]
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_gaps_between_moments(engine, tmp_path, monkeypatch, request):
    """Before 1970 numbers of minutes are negative; what is left of a day is not."""
    draw, schema = np.random.default_rng(5), db.Schema.parse(MOMENTS)

    def moment(most):
        return str(np.datetime64("1969-12-20T00:00:00") + draw.integers(0, most * 86_400))

    guests = [(f"g{n}", moment(30)) for n in range(40)]
    rows = [(f"g{n}", moment(40), moment(50)) for n in range(40) for _ in range(draw.integers(0, 6))]
    tables = {
        "guests": pd.DataFrame(guests, columns=["nr", "since_at"], dtype=object),
        "stays": pd.DataFrame(rows, columns=["nr", "came", "gone"], dtype=object),
    }
    url = made_in(engine, lambda run: create(run, tables), tmp_path, request)
    held = {
        name: in_order(tables[name], table.columns, [*table.foreign_keys, *table.keys])
        for name, table in schema.tables.items()
    }
    shadow = Shadow(monkeypatch, held, schema)
    fit(url, schema, tmp_path)
    assert shadow.tables > 30


@pytest.mark.parametrize("engine", ENGINES)
def test_facts_of_units_are_learned_there(engine, tmp_path, request):
    text = SHOPS.replace(
        "tier: {type: category, values: [a, b]", "tier: {type: category, values: {learn: 1.0}, other: o"
    )
    text = text.replace(
        "due: {type: integer, bounds: [0, 999], missing: true}",
        "due: {type: integer, bounds: {learn: 1.0}, missing: {learn: 1.0}}",
    )
    text = text.replace(", {at_most: [customers.since, orders.due]}", "")
    tables, schema = shops(60), db.Schema.parse(text.replace("units: 60", "units: {learn: 1.0, magnitude: 50}"))
    url = made_in(engine, lambda run: create(run, tables), tmp_path, request)
    declared = db.Schema.parse(SHOPS).tables
    held = {name: in_order(tables[name], t.columns, [*t.foreign_keys, *t.keys]) for name, t in declared.items()}
    everybody = SinglePartition(open_related(held).load(schema))
    records = RelatedRecords.of(url, None, None, at_least=1)
    try:
        records.check(schema)
        records.read()
        for question in schema.questions:
            query = make_fact_query(question, schema, {})
            (ours,), (wanted,) = ([*places.answers(query, sample_rate=1.0)] for places in (records.facts(), everybody))
            assert ours.stated == wanted.stated
            assert np.array_equal(ours.total, wanted.total)
    finally:
        records.close()
    assert len(schema.questions) == 4


# -- what one unit can do ----------------------------------------------------------------------------------------------

KEYED = """
doublure: 1
kind: relational
unit: {name: customer}
units: 9
tables:
  customers:
    key: nr
    columns:
      nr: {type: id}
      tier: {type: category, values: [a, b], missing: false}
  lines:
    parent: orders
    foreign_key: order
    max_children: 2
    columns:
      order: {type: id}
      item: {type: category, values: [p, q], missing: true}
  orders:
    key: order
    parent: customers
    foreign_key: nr
    max_children: 3
    order: day
    columns:
      order: {type: id}
      nr: {type: id}
      day: {type: integer, bounds: [0, 999], missing: false}
"""


UNITS = 9


def keyed(customers, seed=1):
    """Return orders of which keys repeat, within a customer and between customers, and lines that name them."""
    draw, orders, lines = (
        np.random.default_rng(seed),
        [("o3", "nobody", 1), ("o5", None, 1)],
        [("o99", "p"), (None, "q")],
    )
    names = [f"c{n}" for n in range(customers)]
    for nr in names:
        for _ in range(draw.integers(0, 6)):
            order = f"o{draw.integers(0, 15)}"
            orders.append((order, nr, int(draw.integers(0, 1000))))
            lines += [(order, draw.choice(["p", "q", None])) for _ in range(draw.integers(0, 4))]
    return {
        "customers": pd.DataFrame([(nr, str(draw.choice(["a", "b"]))) for nr in names], columns=["nr", "tier"]),
        "orders": pd.DataFrame(orders, columns=["order", "nr", "day"], dtype=object),
        "lines": pd.DataFrame(lines, columns=["order", "item"], dtype=object),
    }


def without(tables, nr):
    """Return the neighbour that lacks a customer with all that hangs on it, written out by hand."""
    owned = tables["orders"][tables["orders"]["nr"].isin(tables["customers"]["nr"])]
    first = owned.sort_values(["day", "nr"]).drop_duplicates("order").set_index("order")["nr"]
    left = {name: tables[name][tables[name]["nr"] != nr] for name in ("customers", "orders")}
    return left | {"lines": tables["lines"][tables["lines"]["order"].map(first) != nr]}


def shown(engine, tables, folder, request):
    """Return the units as the database counts them."""
    schema = db.Schema.parse(KEYED)
    url = made_in(engine, lambda run: create(run, tables), folder, request)
    records = RelatedRecords.of(url, None, None, at_least=1)
    try:
        records.check(schema)
        records.read()
        records.encoded(relational.RelationalEncoder(schema.resolve({})), None)
        return Counter(records._session[0].run("SELECT * FROM doublure_codes"))
    finally:
        records.close()


def a_unit_is_the_same_whoever_else_there_is(engine, folder, request):
    tables = keyed(UNITS)
    whole = shown(engine, tables, folder, request)
    assert whole.total() == UNITS
    for nr in tables["customers"]["nr"]:
        less = shown(engine, without(tables, nr), folder, request)
        assert less.total() == UNITS - 1
        assert less < whole


@pytest.mark.parametrize("engine", ENGINES)
def test_a_unit_is_the_same_whoever_else_there_is(engine, tmp_path, request):
    """Rules 2, 9 and 16: a unit moves one cell of a table by one, and no other is read otherwise."""
    a_unit_is_the_same_whoever_else_there_is(engine, tmp_path, request)


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (linking, "_store_units", ("ranked(near, content_order(cells))", "ranked([], content_order(cells))")),
        (linking, "_store_units", ("cells.words.marked(label).as_(MARK)", "number.copy().as_(MARK)")),
        (linking, "_turned", ("ranked([within], by)", "ranked([], by)")),
        (linking, "link_tables", ("_column(_SAME).eq(sql.whole(1))", "_column(_SAME) > sql.whole(0)")),
        (related_in_sql.UnitsInSql, "_shown", ("ranked([OWNER], [exp.column(ROW)])", "ranked([], [exp.column(ROW)])")),
        (related_in_sql.UnitsInSql, "_shown", ("exp.column(MARK)", "exp.column(ROW)")),
        (related_in_sql.UnitsInSql, "_picked", ("exp.column(MARK)", "exp.column(ROW)")),
    ],
)
def test_a_unit_that_others_change_is_seen(owner, name, edit, tmp_path, monkeypatch, request):
    plant(monkeypatch, owner, name, edit)
    with pytest.raises((AssertionError, DataError)):
        a_unit_is_the_same_whoever_else_there_is("duckdb", tmp_path, request)


def noted(monkeypatch, ledger):
    """Note each statement, what it gave, and whether the plan was charged by then."""
    said: list[tuple[str, list[object], bool]] = []
    run = DuckDatabase._run

    def note(database, text):
        reads = re.search("orders|lines|customers", text) is not None
        charged = reads and bool(db.Ledger.open(ledger.path).entries[1:])
        rows = run(database, text)
        said.append((text, [cell for row in rows for cell in row], charged))
        return rows

    monkeypatch.setattr(DuckDatabase, "_run", note)
    return said


def a_noted_fit(tmp_path, monkeypatch, request):
    url = made_in("duckdb", lambda run: create(run, keyed(UNITS)), tmp_path, request)
    few = {"fit_steps": 1, "starts": 1, "components": 2, "groups": 2}
    plan = db.plan(db.Schema.parse(KEYED), epsilon=1.0, delta=1e-6, accountant="rdp", **few)
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="shops", epsilon=1.0, delta=1e-4)
    said = noted(monkeypatch, ledger)
    db.fit(url, plan, ledger=ledger, seed=1, progress=False)
    read = [each for each in said if re.search("orders|lines|customers", each[0])]
    assert read
    return said, [charged for _, _, charged in read]


def test_units_are_read_after_the_charge_and_none_leaves_the_database(tmp_path, monkeypatch, request):
    """Rules 8, 10 and 11: nothing is drawn there, and what comes back are whole numbers, of cells."""
    said, charged = a_noted_fit(tmp_path, monkeypatch, request)
    assert all(charged)
    assert not any(re.search(r"random|setseed|uuid", text, re.IGNORECASE) for text, _, _ in said)
    given = [cell for text, cells, _ in said if not text.startswith(("CREATE", "INSERT", "DROP")) for cell in cells]
    assert given
    assert all(type(cell) is int for cell in given)


def test_a_unit_that_is_read_before_the_charge_is_seen(tmp_path, monkeypatch, request):
    early = "self._known = self._found(self._database, schema, self._database.words())"
    plant(monkeypatch, UnitRecords, "check", (early, f"{early}\nself._database.run('SELECT count(*) FROM orders')"))
    assert not all(a_noted_fit(tmp_path, monkeypatch, request)[1])


def test_units_with_several_records_are_not_seen_in_parts():
    """Rule 2: each record would count as a unit."""
    places = SqlPartitions(None, CodeTable(name="codes", domains=(), most_records=2))
    with pytest.raises(TypeError, match="several units"):
        places.having(0, 0.0, np.arange(2), [(0, 1), (0, 1)])


@pytest.mark.parametrize(("field", "given"), [("table", {"table": "orders"}), ("query", {"query": "SELECT 1"})])
def test_related_tables_are_read_by_their_own_names(field, given, tmp_path, request):
    url = made_in("duckdb", lambda run: create(run, keyed(UNITS)), tmp_path, request)
    with pytest.raises(SettingError) as caught:
        fit(url, db.Schema.parse(KEYED), tmp_path, **given)
    assert caught.value.field == field


def test_rows_that_name_others_are_refused_before_the_charge(tmp_path):
    """Rule 20: they are not looked up there, and no failure after the charge costs ε."""
    import duckdb

    with duckdb.connect(tmp_path / "linked.db") as connection:
        for name, frame in made_up(60).items():
            connection.register("given", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    with pytest.raises(SchemaError) as caught:
        fit(f"duckdb:///{tmp_path / 'linked.db'}", db.Schema.parse(TEXT.replace("units: 400", "units: 60")), tmp_path)
    assert caught.value.field == "employees.boss"
    assert str(caught.value) == (
        "employees.boss: names rows, which are not looked up in a database; describe the column with type: id alone, "
        "or fit an export"
    )
    assert len(db.Ledger.open(tmp_path / "ledger").entries) == 1


def test_a_cell_of_a_table_that_does_not_fit_is_named_by_it(tmp_path, request):
    """Rule 16: the column is named by its table, and no cell is."""
    tables = keyed(UNITS)
    tables["lines"].loc[3, "item"] = "astronaut"
    url = made_in("duckdb", lambda run: create(run, tables), tmp_path, request)
    with pytest.raises(DataError) as caught:
        fit(url, db.Schema.parse(KEYED), tmp_path)
    assert caught.value.field == "lines.item"
    assert "astronaut" not in str(caught.value)
