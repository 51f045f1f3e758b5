"""The screens of the way: what they show, what they take, and what they refuse, all at once and beside its field."""

from __future__ import annotations

import re
import time
from html import unescape

import pandas as pd
import pytest
from studios import StudioClient, said_again

import doublure as db
from doublure.studio import script
from doublure.studio.steps import STEPS, look


def errors(answer):
    """Return the errors of a page by their field."""
    found = re.findall(
        r'<li>(?:<a href="#([^"]*)">[^<]*</a>: )?(.*?)</li>', answer.text.split('id="errors"')[1].split("</ul>")[0]
    )
    return dict(found)


def test_an_empty_folder_shows_every_screen(tmp_path):
    client = StudioClient(tmp_path)
    for step in STEPS:
        assert client.get(f"/{step.key}").status_code == 200


def test_the_first_screen_that_is_not_done_comes_first(studio, described):
    assert described.get("/").url.path == "/budget"


def test_nothing_is_shown_of_a_cell(chosen):
    for path in ("/data", "/people", "/columns", "/columns?edit=note", "/columns?edit=email"):
        text = chosen.get(path).text
        assert "example.org" not in text
        assert "alert(1)" not in text


def test_data_and_a_database_are_one_too_many(studio):
    answer = studio.post("/data/choose", place="visits.csv", url="duckdb:///a.duckdb", table="t", form="codebook")
    assert answer.status_code == 422
    assert "choose one of the two" in errors(answer)["place"]


def test_a_table_of_a_database_is_drafted(folder):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{folder / 'visits.csv'}')")
    client = StudioClient(folder)
    answer = client.post("/data/choose", place="", url="duckdb:///clinic.duckdb", table="visits", form="codebook")
    assert answer.status_code == 200
    assert [column.name for column in client.project.columns][:3] == ["patient_id", "sex", "age"]
    assert "--table visits" in client.get("/data").text


def test_a_codebook_in_excel_is_dropped_in(folder):
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    book = folder / "dropped.xlsx"
    with xlsxwriter.Workbook(str(book)) as made:
        sheet = made.add_worksheet()
        for number, row in enumerate(line.split(",") for line in (folder / "codes.csv").read_text().splitlines()):
            for place, cell in enumerate(row):
                sheet.write(number, place, int(cell) if cell.isdigit() else False if cell == "false" else cell)
    content = book.read_bytes()
    book.unlink()
    client = StudioClient(folder)
    answer = client.post(
        "/data/choose", files={"codebook_file": ("dropped.xlsx", content)}, place="visits.csv", form="codebook"
    )
    assert answer.status_code == 200
    plain = StudioClient(folder)
    from_excel = client.project.columns
    plain.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook")
    assert from_excel == plain.project.columns


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("Owner,Meaning", "codes.csv row 1"),
        ("column,owner", "codes.csv row 1, owner"),
        ("column,type\nsex,coded", "codes.csv row 2, type"),
        ("column,type,values\nsex,integer,f|m", "codes.csv row 2"),
    ],
)
def test_what_a_codebook_says_wrongly_is_told_beside_it_with_its_row(studio, folder, line, where):
    (folder / "codes.csv").write_text(line + "\n")
    answer = studio.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook")
    assert list(errors(answer)) == ["codebook"]
    assert errors(answer)["codebook"].startswith(where)


def test_rows_of_a_codebook_that_name_no_column_are_told(studio, folder):
    (folder / "codes.csv").write_text("column,description\nadmited,the day\nsex,of the patient\n")
    answer = studio.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook")
    assert "columns that the data does not have: admited (did you mean admitted?)." in answer.text


def test_a_schema_that_is_there_is_taken(tmp_path):
    db.datasets.demo_files(tmp_path)
    client = StudioClient(tmp_path)
    assert (
        client.post("/data/choose", place="adult.csv", schema="adult.schema.yaml", form="codebook").status_code == 200
    )
    there = db.Schema.load(db.datasets.adult_schema_path())
    assert client.studio.schema() == there
    client.post("/columns/apply", do="leave_out", names=["race"], whom="ticked")
    assert db.Schema.load(tmp_path / "adult.schema.yaml").columns.keys() == there.columns.keys() - {"race"}


def test_who_is_protected_has_three_answers(chosen):
    sent = {"unit_name": "patient", "counted": "public", "units": "200"}
    chosen.post("/people/keep", who="rows", **sent)
    assert chosen.project.unit == {"name": "record", "id": "none"}
    chosen.post("/people/keep", who="one", **sent)
    assert chosen.project.unit == {"name": "patient"}
    chosen.post("/people/keep", who="several", id="patient_id", max_records="2", **sent)
    assert chosen.studio.schema().unit.max_records == 2
    chosen.post("/people/keep", who="one", counted="buy", magnitude="1000", price="0.02", unit_name="patient")
    assert chosen.studio.schema().units.learn == 0.02


@pytest.mark.parametrize(
    ("unit", "who", "word"),
    [
        ("{name: case, id: patient_id, max_records: 1}", "one", "case"),
        ("{name: case, id: patient_id, max_records: 4}", "several", "case"),
        ("{name: record, id: none}", "rows", "record"),
    ],
)
def test_a_unit_that_the_codebook_says_is_shown_as_chosen(studio, folder, unit, who, word):
    rows = f'column,type,values\npatient_id,id,\n,unit,"{unit}"\n,units,200\n'
    (folder / "codes.csv").write_text(rows)
    assert studio.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook").status_code == 200
    before = studio.studio.schema()
    page = studio.get("/people")
    shown = said_again(page, "/people/keep")
    assert (shown["who"], shown["unit_name"]) == (who, word)
    assert dict(before.unit)["name"] == word
    assert 'is-done"' in page.text.split('href="/people"')[1].split("</li>")[0]
    assert studio.post("/people/keep", **(shown | {"units": "200"})).status_code == 200
    assert studio.studio.schema().unit == before.unit


def test_all_misfits_of_a_form_are_told_at_once_beside_their_fields(chosen):
    answer = chosen.post("/people/keep", who="several", id="nobody", max_records="0", counted="public", units="many")
    assert answer.status_code == 422
    assert set(errors(answer)) == {"id", "max_records", "units"}
    for field in errors(answer):
        assert re.search(rf'id="{field}"[^>]*aria-describedby="[^"]*{field}-error"[^>]*aria-invalid', answer.text), (
            field
        )
    assert 'value="many"' in answer.text  # what was entered stays


def test_a_column_is_declared_bought_and_left_open(chosen):
    sent = {"edit--type": "integer", "edit--missing-state": "declared", "edit--missing": "no"}
    ends = {"edit--lower": "0", "edit--upper": "99"}
    chosen.post(
        "/columns/keep", name="age", **sent, **ends, **{"edit--bounds-state": "declared", "edit--role": "target"}
    )
    assert chosen.studio.schema().columns["age"].bounds == (0, 99)
    assert chosen.studio.schema().target == "age"
    chosen.post("/columns/keep", name="age", **sent, **{"edit--bounds-state": "learned", "edit--bounds-price": "0.1"})
    assert [(each.column, each.epsilon) for each in chosen.studio.schema().questions] == [("age", 0.1)]
    chosen.post("/columns/keep", name="age", **sent, **{"edit--bounds-state": "undeclared"})
    assert "columns.age.bounds" in chosen.studio.schema().undeclared
    shown = chosen.get("/columns").text
    for state, shape in (("declared", "■"), ("undeclared", "○")):
        assert re.search(rf'class="state {state}"><span class="shape" aria-hidden="true">{shape}</span> \w', shown)


def test_a_new_target_takes_the_role_from_another(chosen):
    for name in ("sex", "ward"):
        facts = {"edit--values-state": "declared", "edit--values": "a|b", "edit--missing-state": "undeclared"}
        chosen.post("/columns/keep", name=name, **{"edit--type": "category", "edit--role": "target"}, **facts)
    assert chosen.studio.schema().target == "ward"


def test_misfits_of_a_column_are_beside_their_fields(chosen):
    sent = {"edit--type": "integer", "edit--bounds-state": "declared", "edit--lower": "9", "edit--upper": "1"}
    answer = chosen.post(
        "/columns/keep", name="age", **sent, **{"edit--missing-state": "learned", "edit--missing-price": "a"}
    )
    assert answer.status_code == 422
    assert "edit--missing" in errors(answer)
    answer = chosen.post("/columns/keep", name="age", **sent, **{"edit--missing-state": "undeclared"})
    assert set(errors(answer)) == {"edit--lower"}


def test_many_columns_are_changed_by_a_pattern(tmp_path):
    names = [f"Q{number}_{part}" for number in range(30) for part in range(5)]
    (tmp_path / "survey.csv").write_text(",".join(names) + "\n" + ("1," * 150)[:-1] + "\n")
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="survey.csv", form="codebook")
    shown = client.get("/columns?q=Q28_*").text
    assert shown.count('name="names"') == 5
    client.post("/columns/apply?q=Q28_*", whom="shown", q="Q28_*", state="", do="retype", type="ordinal")
    client.post("/columns/apply?q=Q28_*", whom="shown", q="Q28_*", state="", do="values", many_values="1..5")
    client.post("/columns/apply", whom="shown", q="Q2*_*", state="", do="never_missing")
    columns = client.studio.schema().columns
    assert [name for name, column in columns.items() if column.type == "ordinal"] == [
        f"Q28_{part}" for part in range(5)
    ]
    assert columns["Q28_0"].values == (1, 2, 3, 4, 5)
    assert sum(column.missing is False for column in columns.values()) == 55
    client.post("/columns/apply", whom="shown", q="Q1_*", state="", do="buy", price="0.02")
    assert {each.column for each in client.studio.schema().questions} == {f"Q1_{part}" for part in range(5)}
    begun = time.process_time()  # the machine may do other things beside
    assert client.get("/columns").text.count('name="names"') == 150
    assert time.process_time() - begun < 1


def test_applying_to_none_or_what_does_not_fit_is_told_by_column(chosen):
    assert "no column is ticked" in chosen.post("/columns/apply", do="leave_out", whom="ticked").text
    answer = chosen.post(
        "/columns/apply", do="bounds", names=["age", "sex"], whom="ticked", many_lower="0", many_upper="9"
    )
    assert list(errors(answer)) == ["names--sex"]
    assert chosen.studio.schema().columns["age"].bounds == (18, 120)  # all or none


def test_proposals_are_taken_and_words_in_capitals_stay_open(folder):
    (folder / "codes2.csv").write_text("icd10,zip\n" + "A01.1,01234\n" * 40)
    client = StudioClient(folder)
    client.post("/data/choose", place="codes2.csv", form="codebook")
    assert client.project.column("icd10").proposal["type"] == "code"
    assert client.post("/columns/apply", do="propose", names=["icd10"], whom="ticked").status_code == 200
    assert client.project.column("icd10").facts["values"] == "undeclared"


def test_a_proposal_takes_back_nothing_that_was_said(tmp_path):
    (tmp_path / "labs.csv").write_text("creatinine\n" + "0.75\n1.25\n" * 20)
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="labs.csv", form="codebook")
    assert client.project.column("creatinine").proposal["precision"] == 2
    ticked = {"names": ["creatinine"], "whom": "ticked"}
    client.post("/columns/apply", do="bounds", many_lower="0", many_upper="20", **ticked)
    client.post("/columns/apply", do="may_be_missing", missing_texts="<0.2", **ticked)
    client.post("/columns/apply", do="propose", **ticked)
    found = client.studio.schema().columns["creatinine"]
    assert (found.bounds, found.missing, found.precision) == ((0, 20), ("<0.2",), 2)


def test_one_column_takes_its_proposal_or_is_left_out_in_its_own_form(chosen):
    shown = chosen.get("/columns?edit=email").text
    assert 'id="edit-propose"' in shown
    assert 'id="edit-leave-out"' in shown
    assert 'id="edit-take-in"' in chosen.get("/columns?edit=note").text
    answer = chosen.post("/columns/keep", name="email", **{"edit--type": "fake"})
    assert list(errors(answer)) == ["edit--as"]  # what it lacks, and not the type


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        (
            {"rule_kind": "at_most", "rule_first": "admitted", "rule_second": "discharged"},
            {"at_most": ["admitted", "discharged"]},
        ),
        (
            {
                "rule_kind": "implies",
                "rule_first": "sex",
                "rule_second": "age",
                "rule_when": "f",
                "rule_then": "18..60",
            },
            {"implies": {"when": {"sex": "f"}, "then": {"age": [18, 60]}}},
        ),
        (
            {"rule_kind": "yaml", "rule_text": "{at_most: [admitted, discharged]}"},
            {"at_most": ["admitted", "discharged"]},
        ),
    ],
)
def test_rules_are_built_from_pickers(chosen, fields, rule):
    assert chosen.post("/columns/rule", **fields).status_code == 200
    assert [dict(each) for each in chosen.project.rules] == [rule]
    assert len(db.Schema.load(chosen.studio.root / "visits.schema.yaml").constraints) == 1
    assert chosen.post("/columns/rule", **fields).status_code == 422  # it is there already
    chosen.post("/columns/unrule", number="0")
    assert chosen.project.rules == ()


@pytest.mark.parametrize("kind", ["at_most", "sum", "missing_together", "implies", "difference", "yaml", "nothing"])
def test_a_rule_without_its_parts_is_refused(chosen, kind):
    answer = chosen.post("/columns/rule", rule_kind=kind)
    assert answer.status_code == 422
    assert chosen.project.rules == ()


def test_the_owner_alone_is_shown_what_does_not_fit(described):
    assert "only the owner" in described.post("/columns/misfits").text
    described.post(
        "/columns/keep",
        name="age",
        **{
            "edit--type": "integer",
            "edit--bounds-state": "declared",
            "edit--lower": "18",
            "edit--upper": "40",
            "edit--missing-state": "declared",
            "edit--missing": "no",
        },
    )
    shown = described.post("/columns/misfits", owner="yes")
    assert shown.status_code == 200
    assert "lies beyond the bounds" in shown.text
    assert (described.studio.root / "misfits.csv").stat().st_mode & 0o777 == 0o600
    described.post("/columns/apply", do="leave_out", names=["ward"], whom="ticked")
    assert "lies beyond the bounds" not in described.get("/columns").text  # it was of another schema


@pytest.mark.parametrize(("misfit", "becomes"), [("coerce", "leaves it out"), ("refuse", "is refused")])
def test_records_that_name_no_unit_are_left_out_of_a_fit_that_coerces(chosen, misfit, becomes):
    path = chosen.studio.root / "visits.csv"
    rows = pd.read_csv(path, dtype=str)
    rows.loc[:6, "patient_id"] = ""
    rows.to_csv(path, index=False)
    chosen.post("/columns/misfit", misfit=misfit)
    shown = chosen.post("/columns/misfits", owner="yes").text
    row = next(each for each in shown.split("<tr>") if "names no unit" in each)
    assert f'<td data-label="a fit">{becomes}</td>' in row


def test_hostile_names_are_shown_as_text(tmp_path):
    names = ["<script>alert(1)</script>", "a\u202eb", "x" * 3000, "'\"&", "{{ 7 * 7 }}"]
    (tmp_path / "<img src=x>.csv").write_text(
        ",".join(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names) + "\n1,2,3,4,5\n"
    )
    client = StudioClient(tmp_path)
    chosen = client.post("/data/choose", place="<img src=x>.csv", form="codebook")
    for answer in (chosen, *(client.get(path) for path in ("/data", "/people", "/columns"))):
        assert "<script>alert" not in answer.text
        assert "<img src=x" not in answer.text
        assert "\u202e" not in answer.text.replace('value="a\u202eb"', "")
        assert ">49<" not in answer.text


def test_the_forecast_of_an_epsilon_is_live_and_reads_no_data(described):
    (described.studio.root / "visits.csv").unlink()
    few, many = (described.get(f"/budget/forecast?epsilon={epsilon}&delta=1e-4") for epsilon in (0.2, 5))
    margins = [float(re.search(r"± ([\d,]+) rows", each.text)[1].replace(",", "")) for each in (few, many)]
    assert margins[0] > 4 * margins[1]
    assert "coin" in few.text
    assert described.get("/budget/forecast?epsilon=a&delta=1e-4").status_code == 422
    assert described.get("/budget/forecast?epsilon=-1&delta=1e-4").status_code == 422


def test_the_margin_is_that_of_the_plan(described):
    from doublure.planning.forecasts import forecast_plan

    plan = db.plan(described.studio.schema(), epsilon=1.0, delta=1e-4, accountant="rdp")
    said = forecast_plan(plan).margin
    shown = described.get("/budget/forecast?epsilon=1&delta=1e-4").text
    assert f"± {said:,.0f} rows" in shown
    exact = forecast_plan(db.plan(described.studio.schema(), epsilon=1.0, delta=1e-4)).margin
    assert exact <= said < 1.2 * exact  # the quick bound is above, and not by much


def test_the_budget_is_refused_all_at_once(described):
    answer = described.post("/budget/keep", dataset="", cap_epsilon="a", cap_delta="", epsilon="", delta="2")
    assert set(errors(answer)) == {"dataset", "cap_epsilon", "cap_delta", "epsilon"}
    assert not (described.studio.root / "plan.json").exists()
    answer = described.post("/budget/keep", dataset="a/b", cap_epsilon="3", cap_delta="1e-3", epsilon="1", delta="1e-4")
    assert set(errors(answer)) == {"dataset"}
    answer = described.post("/budget/keep", dataset="v", cap_epsilon="3", cap_delta="1e-3", epsilon="1", delta="0.5")
    assert list(errors(answer)) == ["delta"]


def test_the_budget_waits_until_nothing_is_open(chosen):
    assert "still open" in chosen.get("/budget").text
    answer = chosen.post("/budget/keep", dataset="v", cap_epsilon="3", cap_delta="1e-3", epsilon="1", delta="1e-4")
    assert answer.status_code == 422
    assert not list(chosen.studio.root.glob("*.ledger"))


OWN_WORDS = """Variable,What it means,Allowed values / range,Unknown coded as,Owner
sex,Sex,"f = female, m = male",,IT
age,Age in years,"0 to 1,000",n/a,IT
ward,The ward,see list wards.txt,,IT
"""


def test_a_codebook_in_own_words_says_what_was_not_read_of_it(studio, folder):
    """At once beside what was read, and at each column until somebody has decided about it."""
    (folder / "own.csv").write_text(OWN_WORDS)
    answer = studio.post("/data/choose", place="visits.csv", codebook="own.csv", form="codebook")
    assert "Not read of the codebook: the headings Owner; what the rows of ward say in part." in answer.text
    why = "Codebook: not read of its values: see list wards.txt (no list of codes called wards.txt lies beside it)"
    assert why in unescape(studio.get("/columns").text)
    age = studio.project.column("age")
    assert (age.facts["bounds"], age.facts["missing"], age.unread) == ([0, 1000], ["", "n/a"], ())
    sent = {"edit--type": "category", "edit--values-state": "declared", "edit--values": "MAIN"}
    studio.post("/columns/keep", name="ward", **sent, **{"edit--missing-state": "declared", "edit--missing": "no"})
    assert why not in unescape(studio.get("/columns").text)


def test_a_list_of_one_value_is_shown_and_kept_without_the_mark_of_a_codebook(chosen):
    sent = {"edit--type": "category", "edit--values-state": "declared", "edit--values": "MAIN"}
    chosen.post("/columns/keep", name="ward", **sent, **{"edit--missing-state": "declared", "edit--missing": "no"})
    assert chosen.studio.schema().columns["ward"].values == ("MAIN",)
    shown = chosen.get("/columns?edit=ward").text
    assert "MAIN |" not in shown
    assert re.search(r'name="edit--values"[^>]*>MAIN</textarea>', shown)


JARGON = re.compile(r"\de-\d|TVD|\bpld\b|\brdp\b|total variation", re.IGNORECASE)
"""Words of programs and statisticians, which stand in a fold or in code alone."""


def in_the_open(page):
    """Return the text of a page outside folds, code and forms of commands."""
    text = re.sub(r"(?s)<(details|code|pre|script|style|select)\b.*?</\1>", " ", page.split('id="main"')[1])
    fields = re.findall(r'<input[^>]* value="([^"]*)"', re.sub(r'<input type="hidden"[^>]*>', "", text))
    return unescape(" ".join([re.sub(r"<[^>]+>", " ", text), *fields]))


@pytest.mark.parametrize("method", ["auto", "guided", "dpgan"])
def test_the_plan_is_told_without_jargon(described, method):
    query = {"epsilon": "0.7", "delta": "3e-05", "method": method}
    quick = '<main id="main">' + described.get("/budget/forecast", params=query).text
    cap = {"cap_epsilon": "3", "cap_delta": "3e-05", "epsilon": "1", "delta": "2e-05", "dataset": "clinic"}
    pages = [described.get("/budget").text, quick, described.post("/budget/keep", method=method, **cap).text]
    pages.append(described.get("/fit").text)
    for page in pages:
        assert not JARGON.findall(in_the_open(page))
    assert "0.00002" in in_the_open(pages[2])
    assert "1 in 50,000" in in_the_open(pages[2])
    assert ("total variation" in pages[2].lower()) == (method != "dpgan")  # for a statistician, in a fold


def test_notes_of_a_codebook_go_once_many_columns_are_decided(folder):
    book = "Variable,Meaning,Values\nage,in years,see the annex\nward,ward,one of the three\n"
    (folder / "codes.csv").write_text(book)
    client = StudioClient(folder)
    assert client.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook").status_code == 200
    note = "Codebook: not read of its values"
    assert client.get("/columns").text.count(note) == 2
    change = {"names": ["ward"], "whom": "ticked"}
    assert client.post("/columns/apply", do="never_missing", **change).text.count(note) == 2  # values are open still
    assert client.post("/columns/apply", do="values", many_values="A|B|C", **change).text.count(note) == 1
    assert client.post("/columns/apply", do="propose", names=["age"], whom="ticked").status_code == 422
    change = {"names": ["age"], "whom": "ticked"}
    client.post("/columns/apply", do="never_missing", **change)
    shown = client.post("/columns/apply", do="bounds", many_lower="0", many_upper="120", **change).text
    assert note not in shown


def test_a_point_is_said_in_words(tmp_path):
    (tmp_path / "places.csv").write_text("lon,lat\n4.1,50.2\n5.1,51.3\n")
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="places.csv", form="codebook").status_code == 200
    shown = unescape(client.get("/columns").text)
    assert "<code>lon and lat are one place on the map</code>" in shown


def test_a_long_list_is_saved_with_one_schema_and_nothing_is_read_back(chosen, monkeypatch):
    """What was written is not parsed to show it, and the schema that judged it is the one that is shown."""
    from doublure.studio.project import FILE, Project
    from doublure.support import yaml12

    values = [f"{letter}{number:03d}" for letter in "ABCDEF" for number in range(300)]
    form = said_again(chosen.get("/columns", params={"edit": "ward"}), "/columns/keep")
    version, made, parsed = chosen.project.version, [], []
    described, parse = Project.described, yaml12.parse
    monkeypatch.setattr(Project, "described", lambda project, folder: made.append(1) or described(project, folder))
    monkeypatch.setattr(yaml12, "parse", lambda text, name: parsed.append(name) or parse(text, name))
    answer = chosen.post("/columns/keep", version=version, **form | {"edit--values": "\n".join(values)})
    assert answer.status_code == 200
    assert (len(made), FILE in parsed) == (1, False)
    monkeypatch.undo()
    assert chosen.project.column("ward").facts["values"] == values


@pytest.fixture
def workbooks(folder):
    """A folder with the visits, and their codebook, in workbooks beside other sheets; the CSV files are gone."""
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    for book, csv, named in (("book.xlsx", "codes.csv", "codes"), ("rows.xlsx", "visits.csv", "all visits")):
        lines = [line.split(",") for line in (folder / csv).read_text().splitlines()]
        with xlsxwriter.Workbook(str(folder / book)) as made:
            made.add_worksheet("read me").write(0, 0, "ask us")
            sheet = made.add_worksheet(named)
            for number, row in enumerate(lines):
                sheet.write_row(number, 0, [int(cell) if cell.isdigit() else cell for cell in row])
        (folder / csv).unlink()
    with xlsxwriter.Workbook(str(folder / "single.xlsx")) as made:
        made.add_worksheet("only").write(0, 0, "x")
    (folder / "broken.xlsx").write_bytes(b"no workbook")
    return StudioClient(folder)


def test_sheets_of_a_workbook_of_several_are_choices_of_data_and_codebook(workbooks):
    page = workbooks.get("/data").text
    for field in ("place", "codebook"):
        offered = re.findall(r'<option value="([^"]*)"', page.split(f'<select id="{field}"')[1].split("</select>")[0])
        sheets = ["book.xlsx#read me", "book.xlsx#codes", "broken.xlsx", "rows.xlsx#read me", "rows.xlsx#all visits"]
        assert offered == ["", *sheets, "single.xlsx"]
    chosen = {"place": "rows.xlsx#all visits", "codebook": "book.xlsx#codes", "form": "codebook"}
    assert workbooks.post("/data/choose", **chosen).status_code == 200
    project = workbooks.project
    assert (project.source.place, project.codebook) == (chosen["place"], chosen["codebook"])
    assert project.schema_file == "rows.schema.yaml"
    assert project.column("sex").facts["values"] == ["f", "m"]
    again = said_again(workbooks.get("/data"), "/data/choose")
    assert (again["place"], again["codebook"]) == (chosen["place"], chosen["codebook"])
    assert "draft 'rows.xlsx#all visits' --codebook 'book.xlsx#codes'" in script.data(project).commands
    assert workbooks.post("/columns/misfits", owner="yes").status_code == 200


def test_a_workbook_that_is_dropped_in_stays_until_a_sheet_is_chosen(workbooks):
    path = workbooks.studio.root / "book.xlsx"
    content = path.read_bytes()
    path.unlink()
    dropped = {"codebook_file": ("book.xlsx", content)}
    answer = workbooks.post("/data/choose", files=dropped, place="rows.xlsx#all visits", form="codebook")
    assert "name one: book.xlsx#read me, book.xlsx#codes" in errors(answer)["codebook"]
    assert '<option value="book.xlsx#codes"' in answer.text


def test_a_sheet_that_is_not_there_is_told_beside_its_field(workbooks):
    answer = workbooks.post("/data/choose", place="rows.xlsx#gone", form="codebook")
    assert "has no such sheet" in errors(answer)["place"]
    answer = workbooks.post("/data/choose", place="none.xlsx#gone", form="codebook")
    assert "is not there" in errors(answer)["place"]


def test_rows_to_compare_with_are_chosen_by_sheet_too(workbooks):
    workbooks.post("/data/choose", place="rows.xlsx#all visits", codebook="book.xlsx#codes", form="codebook")
    offered = look._data_files(workbooks.studio)
    assert {"rows.xlsx#all visits", "book.xlsx#read me", "single.xlsx"} <= set(offered)
    assert "book.xlsx#codes" not in offered
