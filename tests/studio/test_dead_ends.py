"""Places at which a stranger was stuck, or lost what was entered: what each says now, and where it leads."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pandas as pd
import pytest
from browsing import Visitor, chromium
from studios import StudioClient, said_again

from doublure.drafting.form_hints import form_hint
from doublure.drafting.metadata.codebook import facts_in_words
from doublure.schema.columns import type_named
from doublure.schema.columns.spelling import TextMarks
from doublure.studio.server import running


def links(answer):
    """Return address -> words of the links of the panel of open facts."""
    panel = re.search(r'<div class="panel" id="open">.*?</div>', answer.text, re.DOTALL)
    assert panel is not None
    return dict(re.findall(r'<a href="([^"]*)">([^<]*)</a>', panel[0]))


def test_an_id_that_appears_later_is_of_the_person_in_each_row(studio):
    studio.post("/data/choose", place="visits.csv", codebook="codes.csv", form="codebook")
    studio.post("/people/keep", who="one", unit_name="patient", counted="public", units="400")
    ticked = {"names": ["patient_id"], "whom": "ticked"}
    studio.post("/columns/apply", do="retype", type="id", **ticked)
    assert "unit.id" not in studio.studio.schema().undeclared
    assert studio.studio.schema().unit.id == "patient_id"
    assert studio.studio.schema().one_each
    assert "patient_id names it" in studio.get("/people").text
    studio.post("/columns/apply", do="leave_out", **ticked)
    assert studio.studio.schema().unit.id is None  # it is derived, and goes with the column


def test_each_open_fact_is_named_with_where_it_is_decided(chosen):
    chosen.post("/columns/apply", do="retype", type="integer", names=["note", "age"], whom="ticked")
    chosen.post("/columns/keep", name="age", **{"edit--type": "integer", "edit--missing-state": "undeclared"})
    found = links(chosen.get("/budget"))
    assert found["/columns?state=undeclared&amp;edit=age#edit"] in ("age: bounds", "age: missing")
    assert {address.partition("&amp;edit=")[2] for address in found} >= {"age#edit"}
    for address in found:
        assert 'id="edit"' in chosen.get(address.replace("&amp;", "&")).text


def test_an_open_unit_is_decided_under_people(tmp_path):
    pd.DataFrame({"stay_id": range(30), "age": range(30)}).to_csv(tmp_path / "stays.csv", index=False)
    (tmp_path / "stays.schema.yaml").write_text(
        "doublure: 1\nkind: table\nunits: undeclared\ncolumns:\n  stay_id: {type: id}\n"
        "  age: {type: integer, bounds: [0, 99], missing: false}\n"
    )
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="stays.csv", schema="stays.schema.yaml")
    shown = client.get("/budget").text
    assert "whose stay_id is" in shown
    assert "how many there are (person)" in shown
    client.post("/people/keep", who="one", unit_name="patient", counted="public", units="30")
    assert "still open" not in client.get("/budget").text


def test_how_many_rows_hang_on_one_is_asked_for_at_once_by_its_table(tmp_path):
    (tmp_path / "shop").mkdir()
    pd.DataFrame({"customer_id": range(9), "vip": ["Y"] * 9}).to_csv(tmp_path / "shop" / "customers.csv", index=False)
    orders = pd.DataFrame({"order_id": range(9), "customer_id": range(9), "pieces": range(9)})
    orders.to_csv(tmp_path / "shop" / "orders.csv", index=False)
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="shop", form="codebook")
    assert links(client.get("/budget"))["/people#table1--max_children"] == "orders: rows of one above, at most"
    form = {"root": "customers", "table0--key": "customer_id", "table1--key": "order_id", "counted": "public",
            "table1--parent": "customers", "table1--foreign_key": "customer_id", "units": "9"}  # fmt: skip
    answer = client.post("/people/keep", **form)
    assert answer.status_code == 422
    beside = re.search(r'id="table1--max_children-error">([^<]*)', answer.text)[1]
    assert beside.startswith("how many rows of orders one above has at most is empty")
    assert client.post("/people/keep", **form, **{"table1--max_children": "4"}).status_code == 200
    assert "/people#table1--max_children" not in links(client.get("/budget"))


def test_what_is_public_is_said_as_people_write_it():
    assert facts_in_words("paid", {"type": "real", "bounds": [0.0, 1000000.0]}) == "0 to 1,000,000"
    assert facts_in_words("rate", {"type": "real", "bounds": [-0.25, 12345.5]}) == "-0.25 to 12,345.5"
    assert facts_in_words("born", {"type": "integer", "bounds": [1900, 2024]}) == "1900 to 2024"
    assert facts_in_words("day", {"type": "date", "bounds": ["2020-01-01", "2024-01-01"]}) == "2020-01-01 to 2024-01-01"
    said = {"type": "boolean", "written": {"true": 1, "false": 0}, "missing": False}
    assert facts_in_words("vip", said) == "1 (yes) | 0 (no) · never missing"
    assert facts_in_words("one", {"type": "category", "values": ["a"]}) == "a"


def test_the_two_cells_of_a_boolean_are_declared_alone_or_for_many(chosen):
    ticked = {"names": ["sex", "ward"], "whom": "ticked"}
    chosen.post("/columns/apply", do="retype", type="boolean", **ticked)
    assert chosen.post("/columns/apply", do="values", many_values="Y|N", **ticked).status_code == 200
    assert chosen.studio.schema().columns["ward"].written == {"true": "Y", "false": "N"}
    assert 'value="Y | N"' in chosen.get("/columns?edit=ward").text
    sent = {"edit--type": "boolean", "edit--missing-state": "declared", "edit--missing": "no"}
    assert chosen.post("/columns/keep", name="sex", **sent, **{"edit--written": "1 | 0"}).status_code == 200
    assert chosen.project.column("sex").facts["written"] == {"true": 1, "false": 0}
    answer = chosen.post("/columns/keep", name="sex", **sent, **{"edit--written": "Y"})
    assert answer.status_code == 422
    assert 'id="edit--written-error"' in answer.text


def test_a_precision_is_declared_for_many_and_passes_over_what_has_none(tmp_path):
    (tmp_path / "labs.csv").write_text("sodium,urea,sex\n" + "140.5,5.25,f\n" * 20)
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="labs.csv", form="codebook")
    for name, type_ in (("sodium", "real"), ("urea", "real"), ("sex", "category")):
        client.post("/columns/apply", do="retype", type=type_, names=[name], whom="ticked")
    answer = client.post("/columns/apply", do="precision", many_precision="1", whom="shown")
    assert "Precision declared: 2 columns." in answer.text
    columns = client.studio.schema().columns
    assert [columns[name].precision for name in ("sodium", "urea")] == [1, 1]
    assert client.post("/columns/apply", do="precision", whom="shown").status_code == 422


def test_what_buying_costs_is_said_before_and_above_half_warned_of(tmp_path):
    names = [f"q{number}" for number in range(24)]
    (tmp_path / "survey.csv").write_text(",".join(names) + "\n" + ",".join("1" * 24) + "\n")
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="survey.csv", form="codebook")
    client.post("/columns/apply", do="retype", type="category", whom="shown")
    client.post("/columns/apply", do="never_missing", whom="shown")
    shown = client.get("/columns").text
    assert "All 24 that are open here would cost ε = 1.2; the plan has ε = 1." in shown
    assert "That is more than half of it." in shown
    assert "bought-much" not in shown
    few = client.get("/columns?q=q1").text  # q1 and q10 to q19
    assert "All 11 that are open here would cost ε = 0.55" in few
    answer = client.post("/columns/apply", do="buy", price="0.05", whom="shown")
    assert sum(each.epsilon for each in client.studio.schema().questions) == pytest.approx(1.2)
    assert "Bought facts cost ε = 1.2, and the plan has ε = 1" in re.sub("<[^>]*>", "", answer.text)


def test_a_length_of_stay_is_proposed_as_what_lies_between_its_days(tmp_path):
    (tmp_path / "stays.csv").write_text("admitted,discharged,los_days\n" + "2024-01-01,2024-01-04,3\n" * 9)
    (tmp_path / "codes.csv").write_text(
        "column,type,lower,upper,missing\nadmitted,date,2024-01-01,2024-12-31,false\n"
        "discharged,date,2024-01-01,2025-12-31,false\nlos_days,integer,0,365,false\n"
    )
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="stays.csv", codebook="codes.csv", form="codebook")
    shown = client.get("/columns").text
    assert "los_days = discharged − admitted, in days" in shown
    assert "admitted ≤ discharged" in shown
    rule = unescape(re.findall(r'name="rule_text" value="([^"]*difference[^"]*)"', shown)[0])
    assert client.post("/columns/rule", rule_kind="yaml", rule_text=rule).status_code == 200
    (kept,) = client.studio.schema().constraints
    assert kept.word == "difference"
    picked = {"rule_of": "los_days", "rule_first": "admitted", "rule_second": "discharged", "unit": "day"}
    client.post("/columns/unrule", number="0")
    assert client.post("/columns/rule", rule_kind="difference", **picked).status_code == 200
    assert client.studio.schema().constraints == (kept,)


def test_a_proposed_rule_of_related_tables_names_their_columns(tmp_path):
    (tmp_path / "stays").mkdir()
    (tmp_path / "stays" / "patients.csv").write_text("patient_id,sex\n1,f\n2,m\n")
    (tmp_path / "stays" / "stays.csv").write_text("patient_id,admitted,discharged\n1,2024-01-01,2024-01-04\n")
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="stays", form="codebook", root="patients").status_code == 200
    shown = client.get("/columns").text
    assert "stays.admitted ≤ stays.discharged" in shown
    rule = unescape(re.findall(r'name="rule_text" value="([^"]*at_most[^"]*)"', shown)[0])
    assert client.post("/columns/rule", rule_kind="yaml", rule_text=rule).status_code == 200


def test_what_does_not_fit_says_what_an_owner_may_do(described):
    root = described.studio.root
    rows = pd.read_csv(root / "visits.csv", dtype=str)
    rows.loc[:2, "ward"] = "secret-ward"
    rows.to_csv(root / "visits.csv", index=False)
    shown = described.post("/columns/misfits", owner="yes").text
    assert "is refused" in shown
    assert "Ask the keeper of the codebook" in shown
    assert "secret-ward" not in shown
    described.post("/columns/misfit", misfit="coerce")
    assert described.studio.schema().misfit == "coerce"
    shown = described.post("/columns/misfits", owner="yes").text
    assert "takes it" in shown
    assert "is refused" not in shown.split('class="panel private"')[1].split("</table>")[0]
    described.post("/columns/misfit", misfit="refuse")
    assert "misfit" not in described.project.keys
    assert described.post("/columns/misfit", misfit="no").status_code == 422


# -- in a browser ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    """Somebody before a table whose header is read, at the width of a telephone."""
    folder = tmp_path_factory.mktemp("dead_ends")
    (folder / "visits.csv").write_text("patient_id,sex,ward\n1,f,A\n1,f,B\n2,m,A\n")
    with chromium() as browser, running(folder) as address:
        found = Visitor(browser, address.url, width=390)
        found.go("/data")
        found.fill(place="visits.csv")
        found.press("button:has-text('Read the header')")
        found.wait("Who is protected?")
        yield found
        assert found.errors == []
        found.leave()


def test_a_page_that_comes_anew_keeps_what_was_typed(visitor):
    page = visitor.page
    visitor.go("/people")
    visitor.fill(unit_name="pat")
    page.locator("#who-several").check()
    page.evaluate("window.dispatchEvent(new PopStateEvent('popstate'))")  # as when a command has ended
    page.locator("#unit_name").press_sequentially("ient")
    visitor.settle()
    assert page.locator("#unit_name").input_value() == "patient"
    assert page.locator("#who-several").is_checked()
    assert page.evaluate("document.activeElement.id") == "unit_name"
    visitor.go("/columns?edit=sex")
    visitor.fill(**{"edit--description": "sex of the patient"})
    page.locator("a:has-text('ward')").first.click()
    visitor.wait("Stored as")
    visitor.settle()
    assert page.locator("#edit input[name=name]").input_value() == "ward"
    assert page.locator("#edit--description").input_value() == ""  # it was typed of another column


def test_while_a_form_is_on_its_way_nothing_else_is_taken(visitor):
    page = visitor.page
    visitor.go("/people")
    page.locator("#who-one").check()
    visitor.fill(units="3")
    held = []
    page.route("**/people/keep", lambda route: held.append(route))
    page.locator("button:has-text('Save')").click()
    page.locator("a[href='/budget']").first.click()
    visitor.wait("Still working")
    assert page.evaluate("document.getElementById('main').inert")
    held[0].continue_()
    visitor.wait("Saved: who is protected")
    page.unroute("**/people/keep")
    assert page.url.endswith("/columns")
    assert not page.evaluate("document.getElementById('main').inert")


def test_undo_leaves_the_title_its_room_and_says_all_that_it_takes_back(visitor):
    visitor.go("/columns")
    said = visitor.page.locator("#undo").get_attribute("title")
    assert len(said) > len("Undo: ")
    assert visitor.page.get_by_role("button", name=said).count() == 1
    widths = [visitor.page.locator(each).bounding_box()["width"] for each in (".title h1", "#undo")]
    assert widths[0] > 220
    assert widths[1] < 120
    assert visitor.overflow() == 0


def test_the_search_leaves_the_keyboard_where_it_is(visitor):
    page = visitor.page
    visitor.go("/columns")
    page.keyboard.press("/")
    page.keyboard.type("se")
    page.keyboard.press("Tab")  # before the list is there
    page.wait_for_timeout(300)
    visitor.settle()
    assert page.locator("#q").input_value() == "se"
    assert page.evaluate("document.activeElement.id") != "q"
    page.locator("#q").focus()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "columns-table"
    assert page.locator("#q").input_value() == "se"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"


@pytest.mark.parametrize(
    ("facts", "words", "cells", "key", "form"),
    [
        (
            {"type": "datetime", "bounds": ["2024-01-01T00:00:00", "2024-12-31T00:00:00"], "missing": False},
            "Admission, TT.MM.JJJJ hh:mm",
            ["13.02.2024 14:23", "29.02.2024 07:05"],
            "date_format",
            "DD.MM.YYYY hh:mm",
        ),
        (
            {"type": "date", "bounds": ["2024-01-01", "2024-12-31"], "missing": False},
            "Between 1/31/2024 and 12/31/2024",
            ["2/13/2024", "2/29/2024"],
            "date_format",
            "M/DD/YYYY",
        ),
        (
            {"type": "real", "bounds": [0, 5000], "precision": 2, "missing": False},
            "Paid, at most 5.000,00",
            ["1.713,25", "4.913,75"],
            "format",
            "#.##0,00",
        ),
    ],
)
def test_cells_of_another_form_say_how_it_is_declared(tmp_path, facts, words, cells, key, form):
    (tmp_path / "rows.csv").write_text("kept;seen\n" + "".join(f"1;{cell}\n" for cell in cells))
    (tmp_path / "book.csv").write_text(f'Variable,Meaning\nkept,One\nseen,"{words}"\n')
    client = StudioClient(tmp_path)
    assert client.post("/data/choose", place="rows.csv", codebook="book.csv", form="codebook").status_code == 200

    def by(before):
        kept = before.column("kept").changed(facts={"type": "integer", "bounds": [0, 2], "missing": False})
        return before.with_columns({"kept": kept, "seen": before.column("seen").changed(facts=facts, left_out=False)})

    client.studio.change(client.project.version, by, "Given.")
    shown = client.post("/columns/misfits", owner="yes").text
    found = unescape(shown[shown.index('id="misfits"') :])
    assert f"declare {key}: {form}, as public words of it say" in found
    assert not [cell for cell in cells if cell in shown]
    link = urlsplit(re.search(r'href="(/columns[?][^"]*declare=[^"]*)"', found)[1])
    asked = client.get("/columns", params=dict(parse_qsl(link.query)))
    entered = said_again(asked, "/columns/keep")
    assert entered[f"edit--{key}"] == form
    assert client.post("/columns/keep", **entered).status_code == 200
    assert "Every cell fits" in client.post("/columns/misfits", owner="yes").text


def test_a_hint_without_public_words_names_what_is_read_and_an_example():
    said = {
        "datetime": ("ISO 8601, as 2024-01-31T14:05", "date_format: such as DD.MM.YYYY hh:mm"),
        "date": ("ISO 8601, as 2024-01-31", "date_format: such as DD.MM.YYYY"),
        "month": ("2024-01", "date_format: such as MM/YYYY"),
        "real": ("decimal point", "format: such as 0,00"),
        "integer": ("decimal point", "format: such as #.##0"),
        "time": ("07:30", ""),
    }
    for name, parts in said.items():
        line = form_hint(type_named(name).model_construct(), TextMarks(), ["2024-01-31", "1,000 to 2,000"]).line
        assert all(part in line for part in parts), name
    integer = form_hint(type_named("integer").model_construct(), TextMarks(), (), fractions=True)
    assert integer.line.startswith("declare type: real, with a precision; or format: #.##0")
    assert form_hint(type_named("category").model_construct(), TextMarks(), ["DD.MM.YYYY"]).line == ""


STAYS = (
    "Variable,Description,Class,Allowed values / range,May be blank?,Codes\n"
    "sex,Sex,Code,,No,1 = male; 2 = female; 9 = unknown\n"
    "admitted,Date of admission,Date,2022-01-01 to 2023-12-31,No,\n"
    "discharged,Day of discharge,Date,not before admission,Yes,\n"
    "los_days,Length of stay,Number,0 - 90,No,\n"
    'crea,Creatinine; <0.2 = below detection limit,"Number, 2 decimals",0.2 to 20,Yes,\n'
    "latitude,,double,,No,\nlongitude,,double,,No,\n"
)


@pytest.fixture
def stays(tmp_path):
    """A table of stays with a codebook in a steward's own words, both chosen."""
    rows = {"stay_id": range(9), "sex": [1, 2, 9] * 3, "admitted": ["2022-03-01"] * 9, "discharged": ["2022-03-04"] * 9,
            "los_days": [3] * 9, "crea": ["1.25"] * 8 + ["<0.2"], "latitude": [33.7] * 9, "longitude": [-118.1] * 9,
            "ward": ["A"] * 9}  # fmt: skip
    pd.DataFrame(rows).to_csv(tmp_path / "stays.csv", index=False)
    (tmp_path / "codes.csv").write_text(STAYS)
    client = StudioClient(tmp_path)
    client.post("/data/choose", place="stays.csv", codebook="codes.csv", form="codebook")
    return client


_UNSAID = ["latitude", "longitude", "ward", "stay_id", "discharged"]
_FIELD = re.compile(r'name="(rule_\w+)" value="([^"]*)"')


def offers(client):
    """Return words -> fields of the rules that the columns' screen offers."""
    found = {}
    for block in re.findall(r"<li>.*?</li>", client.get("/columns").text, re.DOTALL):
        if "rule_text" in block:
            words = re.findall(r"<code>([^<]*)</code>", block)[0]
            found[unescape(words)] = {key: unescape(said) for key, said in re.findall(_FIELD, block)}
    return found


def test_an_order_in_the_words_of_a_codebook_is_offered_and_goes_once_it_holds(stays):
    stays.post("/columns/keep", name="discharged", **{"edit--type": "date", "edit--bounds-state": "declared",
               "edit--lower": "2022-01-01", "edit--upper": "2024-03-31", "edit--missing-state": "declared",
               "edit--missing": "yes"})  # fmt: skip
    assert list(offers(stays)).count("admitted ≤ discharged") == 1
    stays.post("/columns/rule", **offers(stays)["admitted ≤ discharged"])
    assert "admitted ≤ discharged" not in offers(stays)


def test_a_difference_is_offered_with_what_it_needs_and_no_more_once_it_holds(stays):
    test_an_order_in_the_words_of_a_codebook_is_offered_and_goes_once_it_holds(stays)
    (words,) = (each for each in offers(stays) if each.startswith("los_days ="))
    assert offers(stays)[words]["rule_opens"] == "los_days"
    picks = {"rule_kind": "difference", "rule_first": "admitted", "rule_second": "discharged", "rule_of": "los_days"}
    refused = stays.post("/columns/rule", **picks, unit="day")
    assert refused.status_code == 422
    assert "rule_kind</a>" not in refused.text
    assert 'value="los_days" selected' in refused.text
    assert re.search(r'name="rule_opens" value="los_days"[^>]*id="rule-opens"', refused.text)
    assert stays.post("/columns/rule", **picks, unit="day", rule_opens="los_days").status_code == 200
    assert stays.project.column("los_days").facts["missing"] is True
    assert not [each for each in offers(stays) if each.startswith("los_days")]


def test_a_place_on_a_map_can_be_said_before_its_bounds(stays):
    stays.post("/columns/rule", **offers(stays)["longitude and latitude are one place on the map"])
    assert stays.project.rules == ({"point": ["longitude", "latitude"]},)


@pytest.mark.parametrize("mark", [";", " |", "\n", ","])
def test_values_with_meanings_are_read_in_the_form_as_in_a_codebook(stays, mark):
    form = {"edit--type": "category", "edit--values-state": "declared", "edit--values": f"1 = male{mark} 2 = female",
            "edit--missing-state": "declared", "edit--missing": "no"}  # fmt: skip
    assert stays.post("/columns/keep", name="sex", **form).status_code == 200
    facts = stays.project.column("sex").facts
    assert (facts["values"], facts["value_labels"]) == ([1, 2], {"1": "male", "2": "female"})


def test_values_of_which_no_cell_can_be_one_are_told_in_the_table(stays):
    told = "cells are stored as numbers, and no declared value is one"
    assert told not in stays.get("/columns").text
    form = {"edit--type": "category", "edit--values-state": "declared", "edit--values": "male | female",
            "edit--missing-state": "declared", "edit--missing": "no"}  # fmt: skip
    stays.post("/columns/keep", name="sex", **form)
    assert told in stays.get("/columns").text


def test_a_misfit_that_a_description_calls_missing_leads_to_its_declaration(stays):
    form = {"edit--type": "real", "edit--bounds-state": "declared", "edit--lower": "0.2", "edit--upper": "20",
            "edit--precision": "2", "edit--missing-state": "declared", "edit--missing": "yes",
            "edit--description": "Creatinine; <0.2 = below detection limit"}  # fmt: skip
    stays.post("/columns/keep", name="crea", **form)
    stays.post(
        "/columns/apply",
        do="leave_out",
        names=["latitude", "longitude", "ward", "stay_id", "discharged"],
        whom="ticked",
    )
    stays.post("/people/keep", who="one", unit_name="patient", counted="public", units="9")
    shown = stays.post("/columns/misfits", owner="yes").text
    (address,) = re.findall(r'<a href="([^"]*)">Declare it', shown)
    edit = stays.get(unescape(address)).text
    assert re.search(r'id="edit--missing"[^>]* value="\|&lt;0.2"', edit)


def test_what_needs_a_decision_is_shown_alone_and_a_proposal_is_taken_in_one_click(chosen):
    rows = re.findall(r'<tr id="row-.*?</tr>', chosen.get("/columns").text, re.DOTALL)
    row = next(each for each in rows if "perhaps" in each)
    fields = dict(re.findall(r'name="(names|whom|do)" value="([^"]*)"', row.split("perhaps")[1]))
    assert fields["do"] == "propose"
    name = fields["names"]
    shown = chosen.get("/columns?state=decide").text
    assert f'value="{name}"' in shown
    assert 'name="names" value="age"' not in shown
    proposal = chosen.project.column(name).proposal
    assert chosen.post("/columns/apply", **fields).status_code == 200
    assert chosen.project.column(name).facts["type"] == proposal["type"]


def test_columns_that_are_left_out_leave_the_unit_too(chosen):
    staying = {"per_unit": ["sex", "age"], "order": "admitted", "units": "200"}
    chosen.post(
        "/people/keep",
        who="several",
        id="patient_id",
        unit_name="patient",
        counted="public",
        max_records="3",
        **staying,
    )
    said = chosen.post("/columns/apply", do="leave_out", names=["age", "ward", "admitted"], whom="ticked")
    assert said.status_code == 200
    assert "age, admitted are taken out, too" in said.text
    assert chosen.project.unit["per_unit"] == ["sex"]
    assert "order" not in chosen.project.unit
    chosen.post("/columns/apply", do="leave_out", names=["sex"], whom="ticked")
    assert "per_unit" not in chosen.project.unit


def test_rows_of_a_person_are_asked_for_and_answer_what_a_row_is(stays):
    shown = stays.get("/people").text
    assert re.search(r'id="max_records"[^>]* value=""', shown)
    assert shown.index('id="order"') < shown.index('id="stays"')
    form = {"id": "stay_id", "unit_name": "patient", "counted": "public", "units": "200"}
    asked = stays.post("/people/keep", who="several", **form)
    assert "write how many rows of one unit may be used" in asked.text
    assert stays.post("/people/keep", max_records="3", **form).status_code == 200
    assert stays.project.unit["max_records"] == 3
