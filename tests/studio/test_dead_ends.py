"""Places at which a stranger was stuck, or lost what was entered: what each says now, and where it leads."""

from __future__ import annotations

import re

import pandas as pd
from studios import StudioClient


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
