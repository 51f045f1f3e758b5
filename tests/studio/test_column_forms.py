"""The form of a column, of every type: what is saved untouched stays, and each state is saved or says why not."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pandas as pd
import pytest
from studios import StudioClient, said_again

from doublure.schema.columns import types
from doublure.schema.columns.spelling import TextMarks
from doublure.schema.schema import Schema

SAID = {
    "integer": {"bounds": [0, 9], "missing": ["", "-7"], "step": 3, "value_labels": {"-7": "refused"}},
    "real": {"bounds": [0, 9.5], "missing": True, "precision": 1, "description": "in mg: a|b"},
    "category": {"values": ["a", "b"], "missing": False, "roles": ["condition"], "shares": {"a": 0.3, "b": 0.7}},
    "ordinal": {"values": ["low", "high"], "missing": ["?"], "other": "low"},
    "code": {"values": {"file": "codes.txt"}, "levels": [1], "missing": False},
    "boolean": {"missing": False, "written": {"true": "Y", "false": "N"}},
    "date": {"bounds": ["2020-01-01", "2021-01-01"], "missing": False, "date_format": "DD.MM.YYYY"},
    "datetime": {"bounds": ["2020-01-01T00:00:00", "2021-01-01T00:00:00"], "missing": False, "step": 60},
    "month": {"bounds": ["2020-01", "2021-01"], "missing": False},
    "year": {"bounds": [2000, 2010], "missing": {"learn": 0.02}},
    "time": {"bounds": ["08:00", "10:00"], "missing": False, "step": 60},
    "duration": {"bounds": ["0:00:00", "6:00:00"], "missing": False, "numbers_in": "min"},
    "id": {"missing": ["?"]},
    "fake": {"as": "phone"},
    "public": {"from": "places.csv", "by": "kept"},
    "constant": {"value": "REMOVED"},
}
"""Type -> what is said of a column of it."""


@pytest.fixture
def form_of(tmp_path):
    """Return a studio with one column of some facts beside another that is described, and the column's form."""
    (tmp_path / "rows.csv").write_text("kept,asked\n1,x\n2,y\n")
    (tmp_path / "places.csv").write_text("kept,asked\n1,north\n2,south\n")
    (tmp_path / "codes.txt").write_text("A01\nA02\nB01\n")
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="rows.csv", form="codebook").status_code == 200
    kept = client.project.column("kept").changed(
        facts={"type": "category", "values": ["1", "2"], "missing": False}, left_out=False
    )

    def made(facts):
        def by(before):
            asked = before.column("asked").changed(facts=facts, left_out=False)
            return before.with_columns({"kept": kept, "asked": asked})

        client.studio.change(client.project.version, by, "Given.")
        return client, said_again(client.get("/columns", params={"edit": "asked"}), "/columns/keep")

    return made


def test_every_type_has_a_column_here():
    assert set(SAID) == {*types()}


@pytest.mark.parametrize("type_", types())
def test_a_form_that_is_saved_untouched_changes_nothing(form_of, type_):
    client, form = form_of({"type": type_, **SAID[type_]})
    before = client.project.column("asked").facts
    answer = client.post("/columns/keep", **form)
    assert answer.status_code == 200, re.findall(r'class="error"[^>]*>(.*?)<', answer.text)
    assert client.project.column("asked").facts == before
    assert Schema.load(client.studio.root / "rows.schema.yaml") == client.studio.schema()


@pytest.mark.parametrize("type_", types())
def test_a_form_with_nothing_but_its_type_is_open_where_a_plan_needs_more(form_of, type_):
    bare = {key: fact for key, fact in SAID[type_].items() if key in ("as", "from", "by", "value", "levels")}
    client, form = form_of({"type": type_, **bare})
    assert client.post("/columns/keep", **form).status_code == 200
    schema = client.studio.schema()
    assert {path.rpartition(".")[2] for path in schema.undeclared if ".asked." in path} == {
        *schema.columns["asked"].facts
    }


@pytest.mark.parametrize("type_", types())
def test_each_state_of_each_fact_that_a_form_offers_is_saved(form_of, type_):
    facts = {"type": type_, **SAID[type_]}
    client, form = form_of(facts)
    shown = client.get("/columns", params={"edit": "asked"}).text
    offered = set(re.findall(r'name="edit--(\w+)-state" value="(\w*)"', shown))
    assert bool(offered) == (type_ not in ("fake", "public", "constant"))
    for fact, state in offered:
        client, form = form_of(facts)
        answer = client.post("/columns/keep", **form | {f"edit--{fact}-state": state})
        said = [unescape(each) for each in re.findall(r'class="error"[^>]*>(.*?)<', answer.text)]
        if said:  # roles stand in the same form, and shares need one
            of_shares = type_ == "category" and any("shares" in each or "condition" in each for each in said)
            assert of_shares or fact == "shares" or state == "declared", said
            assert state != "declared" or of_shares or said == ["is not given; write it, or choose another answer"]
            continue
        saved = client.project.column("asked").facts.get(fact)
        expected = {"undeclared": "undeclared", "": None, "declared": facts.get(fact)}
        assert saved["learn"] > 0 if state == "learned" else saved == expected[state], (fact, state)


def test_a_column_becomes_made_up_in_its_form_and_for_many_at_once(form_of):
    client, form = form_of({"type": "category", "values": "undeclared", "missing": "undeclared"})
    for do in ({"edit--type": "constant", "edit--value": "X"}, {"edit--type": "fake", "edit--as": "phone"}):
        assert client.post("/columns/keep", **form | do).status_code == 200
        assert "missing" not in client.project.column("asked").facts
    client, _ = form_of({"type": "category", "values": "undeclared", "missing": "undeclared"})
    answer = client.post("/columns/apply", do="retype", names=["asked"], whom="ticked", type="id")
    assert answer.status_code == 200
    assert client.project.column("asked").facts == {"type": "id"}


def test_what_is_bought_is_judged_with_all_that_stands_beside_it(form_of):
    client, form = form_of({"type": "category", "values": ["a", "b"], "missing": ["Other"]})
    assert client.post("/columns/keep", **form | {"edit--values-state": "learned"}).status_code == 200
    facts = client.project.column("asked").facts
    assert facts["other"] not in facts["missing"]


def test_a_codebook_looks_a_column_up_under_its_own_name(tmp_path):
    (tmp_path / "rows.csv").write_text("kept,asked\n1,x\n2,y\n")
    (tmp_path / "places.csv").write_text("kept,asked\n1,north\n2,south\n")
    book = "column,type,values,from,by\nkept,category,1|2,,\nasked,public,,places.csv,kept\n"
    (tmp_path / "codes.csv").write_text(book)
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="rows.csv", codebook="codes.csv", form="codebook").status_code == 200
    assert client.studio.schema().columns["asked"].found_by == "kept"


LABELLED = {
    "type": "category",
    "values": [1, 2, 3],
    "missing": ["", "9"],
    "value_labels": {"1": "day", "2": "night", "3": "both", "9": "unknown"},
}


@pytest.mark.parametrize(
    ("entered", "left"),
    [
        ({"edit--values": "1|2"}, {"1": "day", "2": "night", "9": "unknown"}),
        ({"edit--values": "1|2|3|4"}, LABELLED["value_labels"]),
        ({"edit--missing": "no"}, {"1": "day", "2": "night", "3": "both"}),
        ({"edit--values": "a|b", "edit--missing": "no"}, None),
        ({"edit--values": "1|2", "edit--value_labels": "{1: morning, 2: evening}"}, {"1": "morning", "2": "evening"}),
    ],
)
def test_meanings_of_codes_follow_the_values(form_of, entered, left):
    client, form = form_of(LABELLED)
    answer = client.post("/columns/keep", **form | entered)
    assert answer.status_code == 200, re.findall(r'class="error"[^>]*>(.*?)<', answer.text)
    assert client.studio.schema().columns["asked"].value_labels == left


def test_meanings_of_codes_follow_values_that_many_columns_get_and_another_type(form_of):
    client, _ = form_of(LABELLED)
    change = {"do": "values", "names": ["asked"], "whom": "ticked", "many_values": "2|3"}
    assert client.post("/columns/apply", **change).status_code == 200
    assert client.project.column("asked").facts["value_labels"] == {"2": "night", "3": "both", "9": "unknown"}
    change = {"do": "retype", "names": ["asked"], "whom": "ticked", "type": "boolean"}
    assert client.post("/columns/apply", **change).status_code == 200
    assert client.project.column("asked").facts.get("value_labels") == {"9": "unknown"}


def test_a_codebook_says_meanings_apart_from_what_the_column_is(tmp_path):
    (tmp_path / "rows.csv").write_text("shift\n1\n2\n")
    book = "Variable,Meaning,Allowed values,Unknown coded as\nshift,Which shift,1=day; 2=night,9=not said\n"
    (tmp_path / "codes.csv").write_text(book)
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="rows.csv", codebook="codes.csv", form="codebook").status_code == 200
    facts = client.project.column("shift").facts
    assert facts["description"] == "Which shift"
    assert facts["value_labels"] == {"1": "day", "2": "night", "9": "not said"}
    assert "1 day | 2 night" in client.get("/columns").text


def test_a_long_list_hides_nothing_of_what_stands_beside_it(form_of):
    client, _ = form_of({"type": "category", "values": [f"{code:05d}" for code in range(1000, 1400)], "missing": ["?"]})
    shown = unescape(client.get("/columns").text)
    assert "01000 | 01001" in shown
    assert "… · missing: ?" in shown


CODES = [f"{letter}{number:02d}.{digit}" for letter in "ABCD" for number in range(40) for digit in range(10)][:1453]


@pytest.mark.parametrize("between", ["\r\n", "\n", "\t", " \n\n", "|", " |\n", "\u2028"])
def test_a_list_that_is_pasted_is_as_many_values_as_it_has_lines(form_of, between):
    client, form = form_of(LABELLED)
    pasted = between.join(CODES)
    answer = client.post("/columns/keep", **form | {"edit--values": pasted, "edit--value_labels": ""})
    assert answer.status_code == 200, re.findall(r'class="error"[^>]*>(.*?)<', answer.text)
    assert client.project.column("asked").facts["values"] == CODES
    again = client.post(
        "/columns/keep", **said_again(client.get("/columns", params={"edit": "asked"}), "/columns/keep")
    )
    assert (again.status_code, client.project.column("asked").facts["values"]) == (200, CODES)
    change = {"do": "values", "names": ["asked"], "whom": "ticked", "many_values": between.join(CODES[:3])}
    assert client.post("/columns/apply", **change).status_code == 200
    assert client.project.column("asked").facts["values"] == CODES[:3]


@pytest.mark.parametrize("value", ["".join(CODES), "a\x00b", "A\u200bB"])
def test_a_value_that_cannot_be_one_is_asked_about(form_of, value):
    client, form = form_of(LABELLED)
    answer = client.post("/columns/keep", **form | {"edit--values": value, "edit--value_labels": ""})
    assert answer.status_code == 422
    assert "separate several by line breaks or |" in unescape(answer.text)
    assert client.project.column("asked").facts == LABELLED


def test_a_long_value_that_is_one_is_said_to_be(form_of):
    client, form = form_of(LABELLED)
    long = "x" * 1_001
    entered = form | {"edit--values": f'["{long}", "b"]', "edit--value_labels": ""}
    assert client.post("/columns/keep", **entered).status_code == 200
    assert client.project.column("asked").facts["values"] == [long, "b"]


def test_a_proposal_is_said_in_words(form_of):
    client, _ = form_of({"type": "category", "values": "undeclared", "missing": "undeclared"})
    proposals = ({"type": "id"}, {"type": "fake", "as": "email"}, {"type": "constant", "value": "REMOVED"})
    for proposal in proposals:
        asked = client.project.column("asked").changed(proposal=proposal, why="its name says so")
        client.studio.change(client.project.version, lambda before, new=asked: before.with_columns({"asked": new}), "")
        shown = client.get("/columns", params={"edit": "asked"}).text
        assert "{'" not in shown
        assert "&#39;type&#39;" not in shown
        assert f"Perhaps <b>{proposal['type']}" in shown


@pytest.mark.parametrize(
    ("written", "book", "said"),
    [
        ("%Y-%m-%d %H:%M", "datetime", "step: 60"),
        ("%Y-%m-%dT%H:%M", "datetime", "date_format: YYYY-MM-DDThh:mm"),
        ("%d.%m.%Y %H:%M", "datetime", "date_format: DD.MM.YYYY hh:mm"),
        ("%H:%M", "time", "step: 60"),
    ],
)
def test_times_of_a_codebook_come_out_in_the_form_they_came_in(tmp_path, written, book, said):
    moments = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.arange(300) * 131, unit="min")
    pd.DataFrame({"seen": moments.strftime(written)}).to_csv(tmp_path / "rows.csv", index=False)
    ends = "00:00:00,23:59:59" if book == "time" else "2024-01-01T00:00:00,2024-12-31T23:59:59"
    (tmp_path / "codes.csv").write_text(f"column,type,lower,upper,missing\nseen,{book},{ends},false\n")
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="rows.csv", codebook="codes.csv", form="codebook").status_code == 200
    shown = unescape(client.get("/columns").text.replace("<wbr>", ""))
    assert f"perhaps {said}" in shown
    assert client.post("/columns/apply", do="propose", names=["seen"], whom="ticked").status_code == 200
    assert "perhaps" not in client.get("/columns").text.split("<tbody>")[1].split("</tbody>")[0]
    column = client.studio.schema().columns["seen"]
    marks = TextMarks()
    spelling = column.spelling(marks)
    raw = pd.read_csv(tmp_path / "rows.csv", dtype="str")["seen"]
    cells = column.read(raw if spelling is None else raw.map(spelling), "seen", "refuse")
    shown = column.csv_cells(column.cells_of(column.numbers_of(cells)), marks).astype(str)
    assert list(shown) == list(raw)


def test_what_a_made_column_needs_is_picked_and_its_form_says_why_nothing_is_empty(form_of):
    client, _ = form_of({"type": "fake", "as": "phone"})
    shown = client.get("/columns", params={"edit": "asked"}).text
    above, further = shown.split('id="further-keys"')
    assert '<select id="edit--as" name="edit--as"' in above
    assert 'id="made-hint"' in further
    hints = dict(re.findall(r'class="hint" id="edit--(\w+)-hint">([^<]*)', shown))
    assert {"as", "locale", "pattern", "who", "per", "sex", "form"} <= {key for key, hint in hints.items() if hint}


def test_an_id_says_what_it_becomes_and_its_form_proposes_the_pattern_of_public_words(tmp_path):
    (tmp_path / "rows.csv").write_text("nr,age\n2024-00001,3\n2024-00002,4\n")
    (tmp_path / "codes.csv").write_text(
        'column,type,description\nnr,id,"case number, such as 2024-00001"\nage,integer,\n'
    )
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="rows.csv", codebook="codes.csv", form="codebook").status_code == 200
    assert "made anew: 1, 2, 3, …" in client.get("/columns").text
    answer = client.get("/columns", params={"edit": "nr"})
    assert "proposed by public words" in answer.text
    assert client.post("/columns/keep", **said_again(answer, "/columns/keep")).status_code == 200
    assert client.project.column("nr").facts["pattern"] == "{4 digits}-{5 digits}"
    assert "made anew: 1, 2, 3, …" not in client.get("/columns").text


def test_a_number_format_that_is_proposed_brings_its_decimals(form_of):
    client, _ = form_of({"type": "real", "bounds": [0, 9], "missing": False})
    shown = client.get("/columns", params={"edit": "asked", "declare": "format", "as": "#.##0,00"})
    saved = said_again(shown, "/columns/keep")
    assert (saved["edit--format"], saved["edit--precision"]) == ("#.##0,00", "2")
    assert client.post("/columns/keep", **saved).status_code == 200
    assert client.project.column("asked").facts["precision"] == 2
