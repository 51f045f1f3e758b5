"""What was text before is picked: related tables, rows of a person, the method; and a corrected codebook is taken."""

from __future__ import annotations

import re
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from studios import StudioClient, said_again

import doublure as db
from doublure.planning.offers import method_offers
from doublure.releasing.sizes import count_of_rows, release_size
from doublure.schema import Schema
from doublure.schema.rules.registry import MODELS
from doublure.studio.steps.rules import say
from doublure.training.noisy_tables import NoisyTable

SECRET = "Zyx-secret-cell"


def text_of(answer):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", answer.text.split("<main")[1])))


# -- several rows of a person ------------------------------------------------------------------------------------------


def test_columns_that_stay_the_same_within_a_person_are_ticked(chosen):
    answers = {"who": "several", "id": "patient_id", "max_records": "3", "unit_name": "patient", "counted": "public"}
    staying = {"per_unit": ["sex", "age"], "order": "admitted", "units": "200"}
    assert chosen.post("/people/keep", **answers, **staying).status_code == 200
    schema = Schema.load(chosen.studio.root / "visits.schema.yaml")
    assert (schema.unit.per_unit, schema.unit.order) == (("sex", "age"), "admitted")
    shown = chosen.get("/people").text
    assert 'name="per_unit" value="sex" checked' in shown
    assert 'name="per_unit" value="ward" checked' not in shown
    assert said_again(chosen.get("/people"), "/people/keep")["order"] == "admitted"


def test_a_codebook_that_says_which_rows_belong_together_is_read(studio):
    """Such a schema is of another kind inside, and of a table's in its file."""
    unit = "{name: patient, id: patient_id, per_unit: [sex], max_records: 3}"
    (studio.studio.root / "codes.csv").write_text(f'column,type,values\npatient_id,id,\n,unit,"{unit}"\n')
    answer = studio.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook")
    assert answer.status_code == 200, answer.text
    assert (studio.project.kind, studio.project.unit["per_unit"]) == ("table", ["sex"])
    assert any(each.name == "sex" for each in studio.project.columns)


def test_rows_that_belong_together_need_more_than_one_of_each(chosen):
    answers = {"who": "several", "id": "patient_id", "max_records": "1", "counted": "public", "units": "200"}
    answer = chosen.post("/people/keep", **answers, per_unit=["sex"])
    assert answer.status_code == 422
    assert "use 2 or more" in answer.text.split('id="max_records-error"')[1][:200]
    answer = chosen.post("/people/keep", **(answers | {"max_records": "2"}), per_unit=["patient_id"])
    assert answer.status_code == 422
    assert "per_unit" in answer.text.split('id="errors"')[1][:400]
    assert "per_unit" not in chosen.project.unit


# -- methods -----------------------------------------------------------------------------------------------------------


def test_a_method_is_chosen_and_one_that_does_not_go_is_greyed_with_its_reason(described):
    shown = described.get("/budget").text
    disabled = dict(re.findall(r'id="method-(\w+)"[^>]*?( disabled)? aria-describedby', shown))
    offers = method_offers(described.studio.schema(), 1.0)
    assert {name for name, off in disabled.items() if off} == {each.name for each in offers if each.refused}
    assert {"auto", "statistics", "dpgan"} <= {name for name, off in disabled.items() if not off}
    assert "takes no rows" in shown.split('id="method-evolution-hint"')[1][:300]
    assert "gives no guarantee" in shown.split('id="method-gan-hint"')[1][:300]
    assert all(each.summary in unescape(shown) for each in offers)
    plan = {"epsilon": "1", "delta": "1e-6", "dataset": "visits", "cap_epsilon": "3", "cap_delta": "1e-4"}
    assert described.post("/budget/keep", method="dpgan", **plan).status_code == 200
    assert db.Plan.load(described.studio.root / "plan.json").method == "dpgan"
    assert "--method dpgan" in (described.studio.root / "commands.sh").read_text()


@pytest.mark.parametrize("method", ["gan", "evolution", "nothing"])
def test_a_greyed_method_is_refused_all_the_same(described, method):
    plan = {"epsilon": "1", "delta": "1e-6", "dataset": "visits", "cap_epsilon": "3", "cap_delta": "1e-4"}
    answer = described.post("/budget/keep", method=method, **plan)
    assert answer.status_code == 422
    assert method in answer.text.split('id="errors"')[1][:400]
    assert not (described.studio.root / "plan.json").exists()
    assert not list(described.studio.root.glob("*.ledger"))


def test_methods_are_offered_as_a_plan_takes_them(described):
    schema = described.studio.schema()
    for each in method_offers(schema, 1.0):
        if each.refused:
            with pytest.raises(db.errors.DoublureError):
                db.plan(schema, method=each.name, epsilon=1.0, delta=1e-6)
        else:
            assert db.plan(schema, method=each.name, epsilon=1.0, delta=1e-6).epsilon == 1.0


# -- related tables ----------------------------------------------------------------------------------------------------


def shop(folder, customers=60):
    random = np.random.default_rng(5)
    folder.mkdir()
    people = pd.DataFrame({"customer_id": range(customers), "vip": random.choice(["Y", "N"], customers)})
    orders = pd.DataFrame(
        {
            "order_id": range(90),
            "customer_id": random.integers(0, customers, 90),
            "day": pd.date_range("2024-01-01", periods=90).strftime("%Y-%m-%d"),
            "note": SECRET,
        }
    )
    lines = pd.DataFrame({"order_id": random.integers(0, 90, 120), "pieces": random.integers(1, 9, 120)})
    for name, frame in (("customers", people), ("orders", orders), ("lines", lines)):
        frame.to_csv(folder / f"{name}.csv", index=False)
    return {"customers": people, "orders": orders, "lines": lines}


@pytest.fixture
def related(tmp_path):
    shop(tmp_path / "shop")
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="shop", form="codebook").status_code == 200
    return client


def test_what_the_headers_propose_of_related_tables_is_chosen_already(related):
    form = said_again(related.get("/people"), "/people/keep")
    assert (form["root"], form["unit_name"], form["table0--key"]) == ("customers", "customer", "customer_id")
    assert (form["table1--parent"], form["table1--foreign_key"], form["table1--order"]) == (
        "customers", "customer_id", "day",
    )  # fmt: skip
    assert (form["table2--parent"], form["table2--foreign_key"]) == ("orders", "order_id")
    assert SECRET not in related.get("/people").text
    assert SECRET not in related.get("/columns").text


def test_related_tables_are_picked_and_make_the_schema_that_the_file_says(related):
    form = said_again(related.get("/people"), "/people/keep")
    entered = form | {"units": "60", "table1--max_children": "5", "table2--max_children": "4", "table1--order": ""}
    assert related.post("/people/keep", **entered).status_code == 200
    schema = Schema.load(related.studio.root / "shop.schema.yaml")
    assert schema == related.studio.schema()
    assert {name: table.max_children for name, table in schema.tables.items()} == {
        "customers": None, "orders": 5, "lines": 4,
    }  # fmt: skip
    assert schema.tables["orders"].order is None
    facts = [("customers.vip", "boolean"), ("orders.note", "omit"), ("lines.pieces", "integer")]
    for name, type_ in facts:
        related.post("/columns/apply", do="retype", type=type_, names=[name], whom="ticked")
    related.post("/columns/apply", do="never_missing", whom="shown")
    for name, low, high in (("orders.day", "2024-01-01", "2024-12-31"), ("lines.pieces", "1", "9")):
        chosen = {"do": "bounds", "names": [name], "whom": "ticked"}
        assert related.post("/columns/apply", many_lower=low, many_upper=high, **chosen).status_code == 200
    assert related.studio.schema().undeclared == ()
    plan = {"epsilon": "1", "delta": "1e-4", "dataset": "shop", "cap_epsilon": "3", "cap_delta": "1e-2"}
    assert related.post("/budget/keep", **plan).status_code == 200
    made = db.plan(str(related.studio.root / "shop.schema.yaml"), epsilon=1.0, delta=1e-4)
    assert db.Plan.load(related.studio.root / "plan.json").schema_sha256 == made.schema_sha256


def test_all_that_is_wrong_with_related_tables_is_told_beside_its_field(related):
    form = said_again(related.get("/people"), "/people/keep")
    wrong = form | {"units": "60", "table1--max_children": "0", "table2--foreign_key": "", "table1--parent": ""}
    answer = related.post("/people/keep", **wrong)
    assert answer.status_code == 422
    for field in ("table1--max_children", "table2--foreign_key", "table1--parent"):
        assert f'id="{field}-error"' in answer.text
    circle = form | {"units": "60", "table1--max_children": "5", "table2--max_children": "4",
                     "table1--parent": "lines", "table1--foreign_key": "order_id"}  # fmt: skip
    answer = related.post("/people/keep", **circle)
    assert answer.status_code == 422
    assert 'id="root-error"' in answer.text


def test_a_rule_of_one_table_stands_with_that_table(related):
    form = said_again(related.get("/people"), "/people/keep")
    related.post("/people/keep", **(form | {"units": "60", "table1--max_children": "5", "table2--max_children": "4"}))
    text = "{implies: {when: {orders.note: x}, then: {orders.day: missing}}}"
    assert related.post("/columns/rule", rule_kind="yaml", rule_text=text).status_code == 200
    plain = related.project.plain_schema()
    assert {"implies": {"when": {"note": "x"}, "then": {"day": "missing"}}} in plain["tables"]["orders"]["constraints"]
    assert related.studio.schema() == Schema.load(related.studio.root / "shop.schema.yaml")


def test_a_root_that_names_leave_open_is_asked_for(tmp_path):
    (tmp_path / "two").mkdir()
    for name in ("alpha", "beta"):
        (tmp_path / "two" / f"{name}.csv").write_text(f"nr,{name}_size\n1,2\n")
    client = StudioClient(tmp_path)
    answer = client.post("/data/choose", place="two", form="codebook")
    assert answer.status_code == 422
    assert "may be alpha, beta" in answer.text.split('id="root-error"')[1][:300]
    assert client.post("/data/choose", place="two", form="codebook", root="beta").status_code == 200
    assert client.get("/people").text.count('value="beta" selected') >= 1
    assert "--root beta" in client.get("/data").text


def test_several_tables_of_a_database_are_drafted_together(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    frames = shop(tmp_path / "shop")
    with duckdb.connect(str(tmp_path / "shop.db")) as base:
        for name, frame in frames.items():
            base.register("given", frame)
            base.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
            base.unregister("given")
    client = StudioClient(tmp_path)
    answer = client.post("/data/choose", url="duckdb:///shop.db", table="customers, orders, lines", form="codebook")
    assert answer.status_code == 200, text_of(answer)
    assert client.project.tables["orders"]["parent"] == "customers"
    same = client.get("/data").text
    assert "--table customers,orders,lines" in same
    assert SECRET not in same + client.get("/columns").text
    commands = client.get("/people").text.split('aria-labelledby="same-commands"')[1]
    assert "--table" not in commands.split("</pre>")[0]  # tables of a schema are read by their own names


# -- a corrected codebook ----------------------------------------------------------------------------------------------


@pytest.fixture
def book(chosen):
    return (chosen.studio.root / "codes.csv").read_text()


def correction(book):
    return book.replace("18,120", "0,120") + "email,omit,,,,,\n"


def dropped(client, text, **fields):
    said = {"place": "visits.csv", "form": "codebook"} | fields
    return client.post("/data/choose", files={"codebook_file": ("codes.csv", text.encode(), "text/csv")}, **said)


def test_a_corrected_codebook_says_what_it_changes_and_then_replaces_the_old_one(chosen, book):
    root = chosen.studio.root
    chosen.post("/columns/apply", do="values", names=["ward"], whom="ticked", many_values="A|B|C|D")
    answer = dropped(chosen, correction(book))
    shown = text_of(answer)
    assert "18 to 120" in shown
    assert "0 to 120" in shown
    assert "email no row" in shown
    assert "sex" not in shown.split("What the new one changes")[1].split("These columns become")[0]
    assert (root / "codes.csv").read_text() == book
    form = said_again(answer, "/data/decide")
    answer = chosen.post("/data/decide", **(form | {"do": "replace"}))
    assert answer.status_code == 200
    assert (root / "codes.csv").read_text() == correction(book)
    assert chosen.project.column("age").facts["bounds"] == [0, 120]
    assert chosen.project.column("ward").facts["values"] == ["A", "B", "C", "D"]  # what was decided beside stays
    assert chosen.project.unit["id"] == "patient_id"
    assert not list(root.glob(".dropped*"))
    assert 'aria-label="Undo: codes.csv replaced"' in answer.text
    chosen.post("/undo", step="columns")
    assert (root / "codes.csv").read_text() == book
    assert chosen.project.column("age").facts["bounds"] == [18, 120]


def test_the_old_codebook_can_be_left_and_a_wrong_one_replaces_nothing(chosen, book):
    root = chosen.studio.root
    form = said_again(dropped(chosen, correction(book)), "/data/decide")
    assert chosen.post("/data/decide", **(form | {"do": "leave"})).status_code == 200
    assert (root / "codes.csv").read_text() == book
    assert not list(root.glob(".dropped*"))
    answer = dropped(chosen, book.replace("18,120", "old,120"))
    assert answer.status_code == 422
    assert "codes.csv row 3" in answer.text
    assert ".dropped" not in answer.text
    assert not list(root.glob(".dropped*"))
    assert chosen.post("/data/decide", **(form | {"do": "replace"})).status_code == 422


def test_a_refused_codebook_does_not_stay_and_the_next_one_is_compared_with_nothing(studio, folder):
    (folder / "codes.csv").unlink()
    wrong = "column,type,values\nsex,integer,f|m\n"
    answer = dropped(studio, wrong)
    assert answer.status_code == 422
    assert "codes.csv row 2" in answer.text
    assert not (folder / "codes.csv").exists()
    right = "column,type,values,missing\nsex,category,f|m,false\n"
    answer = dropped(studio, right)
    assert str(answer.url).endswith("/people")
    assert studio.project.column("sex").facts["values"] == ["f", "m"]
    assert dropped(studio, wrong.replace("integer", "coded")).status_code == 422
    assert (folder / "codes.csv").read_text() == right


def test_a_file_that_was_never_read_as_the_codebook_is_not_compared_with(studio, folder):
    (folder / "codes.csv").write_text("column,type,values\nsex,category,x|y\n")
    answer = dropped(studio, "column,type,values,missing\nsex,category,f|m,false\n")
    shown = text_of(answer)
    assert "nothing to compare the new one with" in shown
    assert "What the new one changes" not in shown
    assert "x y" not in shown
    form = said_again(answer, "/data/decide")
    assert studio.post("/data/decide", **(form | {"do": "replace"})).status_code == 200
    assert studio.project.column("sex").facts["values"] == ["f", "m"]


def test_the_same_codebook_again_asks_nothing(chosen, book):
    answer = dropped(chosen, book)
    assert str(answer.url).endswith("/people")


# -- what undo takes back, and who decided -----------------------------------------------------------------------------


def test_undo_says_what_it_takes_back(chosen):
    assert 'aria-label="Undo: who is protected"' in chosen.get("/columns").text
    chosen.post("/columns/apply", do="leave_out", names=["email"], whom="ticked")
    assert 'aria-label="Undo: left out: 1 column"' in chosen.get("/columns").text
    assert "Undone: left out: 1 column." in chosen.post("/undo", step="columns").text


def test_who_decided_is_in_the_project_and_in_nothing_that_is_public(described):
    plan = {"epsilon": "1", "delta": "1e-6", "dataset": "visits", "cap_epsilon": "3", "cap_delta": "1e-4"}
    who = {"decided_name": "Ada Steward", "decided_role": "data protection officer", "decided_date": "2026-11-29"}
    assert described.post("/budget/keep", **plan, **who).status_code == 200
    root = described.studio.root
    assert "Ada Steward" in (root / "project.yaml").read_text()
    others = [path for path in root.rglob("*") if path.is_file() and path.name != "project.yaml"]
    assert others
    assert not [path.name for path in others if b"Ada Steward" in path.read_bytes()]
    assert 'value="Ada Steward"' in described.get("/budget").text


# -- how many rows a release holds -------------------------------------------------------------------------------------


def test_the_noisy_tables_say_how_many_rows_there_are():
    random = np.random.default_rng(7)
    shares = random.dirichlet(np.ones(12))
    found = []
    for _ in range(200):
        tables = []
        for size, error in ((12, 4.0), (3, 9.0), (12, 40.0)):
            exact = random.multinomial(10_000, shares if size == 12 else [0.2, 0.3, 0.5])
            counts = np.rint(exact + random.normal(0, error, size)).astype(np.int64)
            cells = tuple(map(str, range(size)))
            tables.append(NoisyTable(columns=("a",), cells=(cells,), counts=counts, standard_error=error))
        rows, error = count_of_rows(tables)
        found.append((rows - 10_000) / error)
    assert abs(np.mean(found)) < 4 / np.sqrt(200)
    assert 0.8 < np.std(found) < 1.2
    assert count_of_rows(()) is None


def shown_size(unit, tables=(), default_n=200):
    facts = "columns: {p: {type: id}, sex: {type: category, values: [f, m], missing: false}, n: {type: boolean}}"
    schema = Schema.parse(
        f"doublure: 1\nkind: table\nunit: {unit}\nunits: 200\ndefaults: {{missing: false}}\n{facts}\n"
    )
    return release_size(SimpleNamespace(schema=schema, tables=tables, default_n=default_n))


def test_a_release_is_proposed_as_large_as_the_data_and_says_whose_rows_they_are():
    counted = NoisyTable(
        columns=("sex",), cells=(("f", "m"),), counts=np.array([250, 260], dtype=np.int64), standard_error=3.0
    )
    several = shown_size("{name: patient, id: p, max_records: 3}", [counted])
    assert several.n == 510
    assert "510 rows (standard error 5)" in several.sentence
    assert "those of 200 patients, at most 3 of each" in several.sentence
    assert shown_size("{name: patient, id: p, max_records: 3}").n == 200
    assert "is not public" in shown_size("{name: patient, id: p, max_records: 3}").sentence
    together = shown_size("{name: patient, id: p, max_records: 3, per_unit: [sex]}", [counted], default_n=430)
    assert (together.n, "of about 200 patients" in together.sentence) == (430, True)
    assert shown_size("{name: person, id: p}", [counted]).sentence == "200 rows, one for each person."
    assert shown_size("{id: none}", [counted]).sentence == "200 rows, the public number of rows."


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "/etc/passwd", "x\u202ey"])
def test_no_name_of_a_codebook_leads_out_of_the_folder(chosen, name):
    assert chosen.get("/data", params={"codebook": name}).status_code in (200, 422)
    answer = chosen.post("/data/decide", codebook=name, place="visits.csv", do="replace")
    assert answer.status_code == 422
    assert "root:x" not in answer.text  # no line of it


# -- the same without the studio ---------------------------------------------------------------------------------------


def test_the_python_of_every_screen_runs_in_its_order_with_nothing_but_the_data(tmp_path, small, monkeypatch):
    from doublure.studio import script

    (tmp_path / "made").mkdir()
    (tmp_path / "again").mkdir()
    client = StudioClient(tmp_path / "made")
    small.frame()[["sex", "age"]].to_csv(tmp_path / "made" / "people.csv", index=False)
    book = "column,type,values,lower,upper,missing\nsex,category,Female|Male,,,false\nage,integer,,0,100,false\n"
    (tmp_path / "made" / "codes.csv").write_text(book)
    client.post("/data/choose", place="people.csv", codebook="codes.csv", form="codebook")
    client.post("/people/keep", who="one", unit_name="person", counted="public", units="300")
    plan = {"epsilon": "1", "delta": "1e-6", "dataset": "people", "cap_epsilon": "2", "cap_delta": "1e-4"}
    assert client.post("/budget/keep", **plan).status_code == 200
    release = {"rows": 50, "formats": ["csv"], "bundle": "bundle", "title": "Synthetic people"}
    project = client.project.answer("fit", run="run", again=False).answer("look", holdout="", examples=0)
    project = project.answer("release", **release)
    for name in ("people.csv", "codes.csv", "people.schema.yaml"):
        (tmp_path / "again" / name).write_bytes((tmp_path / "made" / name).read_bytes())
    monkeypatch.chdir(tmp_path / "again")
    for of in (script.data, *script.COMMANDS.values()):
        exec(of(project).python, {})
    assert db.verify("bundle", ledger="people.ledger")["epsilon"] == 1.0


def test_a_draft_is_shown_with_all_that_says_how_its_text_is_read(tmp_path, monkeypatch):
    from doublure.cli.main import app
    from doublure.cli.terminal import run_guarded

    (tmp_path / "people.csv").write_bytes("made by a clinic\nname;größe\nJörg;1\n".encode("latin-1"))
    client = StudioClient(tmp_path)
    told = {"encoding": "latin-1", "delimiter": ";", "skip_rows": "1"}
    assert client.post("/data/choose", place="people.csv", form="codebook", **told).status_code == 200
    commands = unescape(client.get("/data").text).split("<code>doublure ")[1].split("</code>")[0]
    monkeypatch.chdir(tmp_path)
    import shlex

    assert run_guarded(app, shlex.split(commands)) == 0
    assert set(Schema.load(tmp_path / "people.draft.yaml").columns) == {"name", "größe"}


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    """Somebody before a folder of related tables and a table of visits, at the width of a telephone, in the dark."""
    from browsing import Visitor, chromium

    from doublure.studio.server import running

    folder = tmp_path_factory.mktemp("picked")
    shop(folder / "shop")
    (folder / "visits.csv").write_text("patient_id,sex,ward\n1,f,A\n1,f,B\n2,m,A\n")
    (folder / "codes.csv").write_text("column,type,values,lower,upper,missing\nsex,category,f|m,,,false\n")
    with chromium() as browser, running(folder) as address:
        found = Visitor(browser, address.url, scheme="dark", width=390)
        yield found
        assert found.elsewhere() == []
        assert found.errors == []
        found.leave()


def test_rows_of_a_person_and_a_corrected_codebook_go_by_keyboard(visitor, tmp_path):
    page = visitor.page
    visitor.go("/data")
    visitor.fill(place="visits.csv", codebook="codes.csv")
    visitor.press("button:has-text('Read the header')")
    visitor.wait("Who is protected?")
    page.locator("#stays summary").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    for _ in range(3):  # patient_id, sex: the second box
        if page.evaluate("document.activeElement.value") == "sex":
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    visitor.fill(max_records="2", units="2")
    assert visitor.violations() == []
    assert visitor.overflow() == 0
    visitor.press("button:has-text('Save')")
    visitor.go("/people")
    assert page.locator("input[name=per_unit][value=sex]").is_checked()
    visitor.go("/data")
    (tmp_path / "codes.csv").write_text("column,type,values,lower,upper,missing\nsex,category,f|m|x,,,false\n")
    page.locator("#codebook_file").set_input_files(str(tmp_path / "codes.csv"))
    visitor.press("button:has-text('Read the header')")
    visitor.wait("What the new one changes")
    assert visitor.violations() == []
    assert visitor.overflow() == 0
    page.locator("#replace").focus()
    page.keyboard.press("Enter")
    visitor.wait("codes.csv is replaced")
    assert "f | m | x" in visitor.text()


def test_related_tables_are_accessible_and_fit_a_telephone(visitor):
    visitor.go("/data")
    visitor.fill(place="shop", codebook="")
    visitor.press("button:has-text('Read the header')")
    visitor.wait("How do the tables hang together?")
    assert visitor.violations() == []
    assert visitor.overflow() == 0
    visitor.page.locator("#table1--max_children").fill("5")
    visitor.page.locator("#table2--max_children").fill("4")
    visitor.fill(units="60")
    visitor.press("button:has-text('Save')")
    visitor.wait("and how tables hang together")
    assert visitor.violations() == []
    assert visitor.overflow() == 0


RULES = {
    "at_most": {"at_most": ["a", "b"]},
    "equal": {"equal": ["a", "b"]},
    "implies": {"implies": {"when": {"a": "missing"}, "then": {"b": [0, 1]}}},
    "determines": {"determines": ["a", "b"], "map": {"file": "map.csv"}},
    "sum": {"sum": {"total": "t", "of": ["a", "b"]}},
    "combinations": {"combinations": "pairs.csv"},
    "difference": {"difference": {"of": "los", "from": "a", "to": "b", "unit": "day"}},
    "age": {"age": {"of": "age", "born": "dob", "at": "a"}},
    "product": {"product": {"of": "t", "from": ["a", "b"]}},
    "formula": {"formula": {"of": "t", "from": "a * 2"}},
    "range": {"range": {"of": "a", "least": 100, "most": "0.5 * b"}},
    "missing_together": {"missing_together": ["a", "b"]},
    "point": {"point": ["lon", "lat"]},
}


def test_every_rule_is_said_in_words():
    assert set(RULES) == {model.word for model in MODELS}
    for word, rule in RULES.items():
        said = say(rule)
        assert "{" not in said, word
        assert all(name in said for name in re.findall(r"'(\w+\.csv|lon|lat|dob)'", str(rule)))
