"""Drafts and checks of related tables: the root is asked for where names leave it open, and lost rows are counted."""

from __future__ import annotations

import csv
import io
import re
import stat
from pathlib import Path

import pandas as pd
import pytest

from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.data.relational import open_related
from doublure.drafting.draft import draft, drafted, redrafted
from doublure.drafting.links import rows_left_out
from doublure.drafting.relations import OpenRoot, proposed
from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.relational import RelationalSchema

LEAGUE = {"fielding": ["player", "place"], "masters": ["player", "born"], "pay": ["player", "year"]}
TEXT = """
doublure: 1
kind: relational
unit: {name: player}
units: 100
tables:
  masters:
    key: player
    columns: {player: {type: id}, born: {type: integer, bounds: [1900, 2000], missing: false}}
  pay:
    parent: masters
    foreign_key: player
    max_children: 2
    columns: {player: {type: id}, year: {type: integer, bounds: [1900, 2020], missing: false}}
"""


def frames() -> dict[str, pd.DataFrame]:
    return {
        "masters": pd.DataFrame({"player": ["a", "b", "a", None, "c"], "born": [1950, 1960, 1970, 1980, 1990]}),
        "pay": pd.DataFrame({"player": ["a", "a", "a", "b", "x", "x", None], "year": [2000] * 6 + [1800]}),
    }


def written(folder: Path) -> Path:
    folder.mkdir()
    for name, frame in frames().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def test_a_root_that_names_leave_open_is_asked_for() -> None:
    """By the order of files, a table of many rows a player was the root, and most rows were lost."""
    with pytest.raises(OpenRoot, match=r"root: may be fielding, masters, pay: player stands in each") as refused:
        proposed(LEAGUE)
    assert "--root" in str(refused.value)
    found = proposed(LEAGUE, root="masters")
    assert (found.root, found.key, [*found.children]) == ("masters", "player", ["fielding", "pay"])
    with pytest.raises(SchemaError, match="root: clubs is none of the tables; name one of fielding, masters, pay"):
        proposed(LEAGUE, root="clubs")


@pytest.mark.parametrize(
    "tables",
    [
        {"stays": ["patient_id", "days"], "patients": ["patient_id", "sex"]},  # the key is named for the table
        {"stays": ["nr", "patients_nr"], "patients": ["nr", "sex"]},  # the child says whose key it holds
        {"stays": ["id", "MRN"], "patients": ["MRN", "sex"]},  # the other one has a key of its own
    ],
)
def test_names_that_say_whose_key_it_is_settle_the_root(tables: dict[str, list[str]]) -> None:
    assert proposed(tables).root == "patients"


def test_a_table_that_lacks_every_key_is_named() -> None:
    with pytest.raises(SchemaError, match=r"tables rates: have no column for customers.customer_id; give each table"):
        proposed({"customers": ["customer_id"], "orders": ["id", "customer_id"], "rates": ["currency", "price"]})


def test_levels_are_proposed_by_the_names_of_keys() -> None:
    shop = {
        "Line": ["LineId", "InvoiceId", "price"],
        "Invoice": ["InvoiceId", "CustomerId", "total"],
        "Customer": ["CustomerId", "country"],
        "Refund": ["refund_id", "InvoiceId", "CustomerId"],
    }
    found = proposed(shop)
    assert (found.root, found.key) == ("Customer", "CustomerId")
    assert {name: (link.parent, link.foreign_key, link.key) for name, link in found.children.items()} == {
        "Invoice": ("Customer", "CustomerId", "InvoiceId"),
        "Line": ("Invoice", "InvoiceId", "LineId"),
        "Refund": ("Invoice", "InvoiceId", "refund_id"),
    }
    drafted = draft({name: pd.DataFrame(columns=columns) for name, columns in shop.items()})
    tables = RelationalSchema.of(drafted).tables
    assert (tables["Line"].parent, tables["Line"].foreign_key, tables["Invoice"].key) == (
        "Invoice",
        "InvoiceId",
        "InvoiceId",
    )


def test_two_tables_that_hang_on_none_are_asked_about() -> None:
    shop = {
        "invoice": ["invoice_id", "customer_id", "employee_id"],
        "line": ["line_id", "invoice_id"],
        "customer": ["customer_id"],
        "employee": ["employee_id"],
    }
    with pytest.raises(OpenRoot, match="root: may be customer, employee: other tables hang on each"):
        proposed(shop)
    found = proposed(shop, root="customer")
    assert {name: link.parent for name, link in found.children.items()} == {"invoice": "customer", "line": "invoice"}
    assert found.others == {"employee": "employee_id"}


def test_tables_that_others_refer_to_are_proposed_as_public() -> None:
    shop = {
        "Customer": ["CustomerId", "country"],
        "Invoice": ["InvoiceId", "CustomerId", "Total"],
        "InvoiceLine": ["InvoiceLineId", "InvoiceId", "TrackId", "Quantity"],
        "Track": ["TrackId", "Name", "GenreId"],
        "Genre": ["GenreId", "Name"],
        "Playlist": ["PlaylistId", "Name"],
        "PlaylistTrack": ["PlaylistId", "TrackId"],
    }
    made = drafted({name: pd.DataFrame(columns=columns) for name, columns in shop.items()}, root="Customer")
    assert [*RelationalSchema.of(made.schema).tables] == ["Customer", "Invoice", "InvoiceLine"]
    text = made.to_yaml()
    assert "# public:\n#   Track: {file: Track.csv, key: TrackId}\n#   Genre: {file: Genre.csv, key: GenreId}\n" in text
    assert "# PlaylistTrack hangs on no other table, and is left out." in text
    assert Schema.parse(text.replace("undeclared", "9", 1)).kind == "relational"


FORUM = {
    "users": ["user_id", "level", "manager_id"],
    "posts": ["post_id", "user_id", "reply_to", "liked_user_id", "day"],
    "likes": ["like_id", "user_id", "post_id", "stars"],
}


def test_columns_that_may_name_rows_are_offered_as_links() -> None:
    made = drafted({name: pd.DataFrame(columns=columns) for name, columns in FORUM.items()})
    assert made.named == {
        "users": {"manager_id": "users"},
        "posts": {"reply_to": "posts", "liked_user_id": "users"},
        "likes": {"post_id": "posts"},  # and not user_id, by which it hangs on its parent
    }
    text = made.to_yaml()
    assert "    # links: {reply_to: {to: posts}, liked_user_id: {to: users}}\n    columns:\n" in text
    taken = text.replace("    # links:", "    links:")
    for name in ("manager_id", "reply_to", "liked_user_id"):
        taken = re.sub(rf"( {name}:) {{type: [^#\n]*}}", r"\1 {type: id}", taken)
    taken = re.sub(r"( {6}post_id:) {type: category[^\n]*}", r"\1 {type: id}", taken)
    links = {name: {*(table.links or {})} for name, table in RelationalSchema.of(Schema.parse(taken)).tables.items()}
    assert links == {name: {*named} for name, named in made.named.items()}


def test_names_of_other_things_offer_no_link() -> None:
    orders = {
        "customers": ["customer_id", "parents", "boss_level"],
        "orders": ["order_id", "customer_id", "day"],
        "lines": ["line_id", "customer_id", "order_price"],
    }
    assert drafted({name: pd.DataFrame(columns=columns) for name, columns in orders.items()}).named == {}


def test_a_root_is_kept_when_facts_are_asked_for() -> None:
    tables = {name: pd.DataFrame({own: [1] for own in columns}) for name, columns in LEAGUE.items()}
    made = drafted(tables, root="masters")
    assert redrafted(tables, made.metadata, made).schema == made.schema  # type: ignore[arg-type]
    assert RelationalSchema.of(draft(tables, root="pay")).root == "pay"
    with pytest.raises(SchemaError, match="root: is one of several tables; leave it out for table"):
        draft(tables["masters"], root="masters")


def test_the_terminal_asks_for_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["schema", "draft", str(written(tmp_path / "d")), "-o", str(tmp_path / "s.yaml")]
    assert run_guarded(app, words) == 2
    assert "--root" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin", io.StringIO("clubs\nmasters\n"))
    assert run_guarded(app, [*words, "--ask"]) == 0
    assert "Which table has one row for each unit (masters, pay)?" in capsys.readouterr().err
    assert RelationalSchema.of(Schema.load(tmp_path / "s.yaml")).root == "masters"
    assert run_guarded(app, [*words, "--root", "pay", "--force"]) == 0
    assert RelationalSchema.of(Schema.load(tmp_path / "s.yaml")).root == "pay"


def test_rows_that_a_fit_leaves_out_are_counted() -> None:
    schema = RelationalSchema.of(Schema.parse(TEXT))
    assert [(each.column, str(each)) for each in rows_left_out(schema, frames())] == [
        ("masters.player", "has no key: 1 of 5 rows are left out"),
        ("masters.player", "repeats a key of an earlier row: 1 of 5 rows are left out"),
        ("pay.player", "names no parent: 1 of 7 rows are left out"),
        ("pay.player", "names no row of masters: 2 of 7 rows are left out"),
        ("pay.player", "is beyond max_children: 2: 1 of 7 rows are left out"),
    ]
    whole = {"masters": frames()["masters"].iloc[[0, 1]], "pay": frames()["pay"].iloc[[0, 3]]}
    assert rows_left_out(schema, whole) == []


LEVELS = """
doublure: 1
kind: relational
unit: {name: customer}
units: 3
tables:
  customers: {key: nr, columns: {nr: {type: id}, tier: {type: category, values: [a, b], missing: false}}}
  orders:
    {key: order, parent: customers, foreign_key: nr, max_children: 2, order: day,
     columns: {order: {type: id}, nr: {type: id}, day: {type: integer, bounds: [0, 9], missing: false}}}
  lines:
    {parent: orders, foreign_key: order, max_children: 1,
     columns: {order: {type: id}, item: {type: category, values: [p], missing: false}}}
"""


def test_rows_that_are_left_out_are_counted_at_every_level() -> None:
    data = {
        "customers": pd.DataFrame({"nr": [1, 2], "tier": ["a", "?"]}),
        "orders": pd.DataFrame({"order": ["x", "y", "y", None, "z"], "nr": [1, 1, 2, 1, 9], "day": [3, 2, 1, 0, 0]}),
        "lines": pd.DataFrame({"order": ["x", "y", "y", "z", None, "w"], "item": "p"}),
    }
    found = rows_left_out(RelationalSchema.of(Schema.parse(LEVELS)), data)
    assert [(each.column, str(each)) for each in found] == [
        ("orders.order", "has no key: 1 of 5 rows stay, and nothing hangs on them"),
        ("orders.order", "repeats a key of an earlier row: 1 of 5 rows stay, and nothing hangs on them"),
        ("orders.nr", "names no row of customers: 1 of 5 rows are left out"),
        ("orders.nr", "is beyond max_children: 2: 1 of 5 rows are left out"),
        ("lines.order", "names no parent: 1 of 6 rows are left out"),
        ("lines.order", "names no row of orders: 2 of 6 rows are left out"),
        ("lines.order", "hangs on a row that is left out: 1 of 6 rows are left out"),
        ("lines.order", "is beyond max_children: 1: 1 of 6 rows are left out"),
    ]
    fit = (
        open_related(data)
        .load(Schema.parse(LEVELS.replace("units: 3", "units: 3\nmisfit: coerce")), at_least=0)
        .content
    )
    assert {name: len(frame) for name, frame in fit.frames.items()} == {"customers": 2, "orders": 3, "lines": 1}


def test_only_the_owner_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(Path("d"))
    Path("s.yaml").write_text(TEXT)
    words = ["schema", "check", "s.yaml", "--data", "d", "--values", "out.csv", "--force"]
    assert run_guarded(app, words) == 0
    with Path("out.csv").open(newline="") as file:
        rows = [*csv.reader(file)][1:]
    assert len(rows) == 6
    assert rows[1] == ["", "masters.player", "", "repeats a key of an earlier row: 1 of 5 rows are left out"]
    assert rows[-1][:3] == ["7", "pay.year", "1800"]
    assert stat.S_IMODE(Path("out.csv").stat().st_mode) == 0o600
    shown = capsys.readouterr()
    assert "left out" not in shown.out + shown.err  # no terminal: it may be a log
    assert run_guarded(app, [*words, "--json"]) == 0
    assert "left out" not in capsys.readouterr().out
    monkeypatch.setattr("doublure.cli.schema.interactive", lambda: True)
    run_guarded(app, words)
    assert "#   pay.player: is beyond max_children: 2: 1 of 7 rows are left out" in capsys.readouterr().out
