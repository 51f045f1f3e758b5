"""Places at which a stranger was stuck, or lost what was entered: what each says now, and where it leads."""

from __future__ import annotations

import re

import pandas as pd
import pytest
from browsing import Visitor, chromium
from studios import StudioClient

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
    assert "patient_id names that person" in studio.get("/people").text
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
