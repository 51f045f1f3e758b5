"""Keys of several columns: an order's number within its customer's, a line's within its order's."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.data.relational import open_related
from doublure.errors import SchemaError
from doublure.methods.statistics.tables import work
from doublure.releasing.verifying import verify

TEXT = """
doublure: 1
kind: relational
unit: {name: customer}
units: 300
tables:
  customers:
    key: [country, nr]
    columns:
      country: {type: id}
      nr: {type: id, pattern: "C-{4 digits}"}
      tier: {type: category, values: [a, b], missing: false}
  lines:
    parent: orders
    foreign_key: [land, customer, order]
    max_children: 2
    columns:
      land: {type: id}
      customer: {type: id}
      order: {type: id}
      item: {type: category, values: [p, q], missing: false}
  orders:
    key: [land, customer, order]
    parent: customers
    foreign_key: [land, customer]
    max_children: 2
    columns:
      land: {type: id}
      customer: {type: id}
      order: {type: id}
      paid: {type: boolean, missing: false}
"""


def tables(count=300):
    """Return customers whose numbers repeat in each country, and orders whose numbers repeat for each customer."""
    rng = np.random.default_rng(2)
    place = np.arange(count)
    customers = pd.DataFrame({"country": np.where(place % 2, "fr", "de"), "nr": place // 2, "tier": "a"})
    whose = np.repeat(place, rng.integers(0, 3, count))
    own = pd.Series(whose).groupby(whose).cumcount().to_numpy()
    named = customers.iloc[whose].reset_index(drop=True)
    orders = pd.DataFrame({"land": named.country, "customer": named.nr, "order": own, "paid": own == 0})
    lines = orders[orders.paid].drop(columns="paid").assign(item="p")
    return {"customers": customers, "lines": lines, "orders": orders}


def test_rows_are_told_apart_by_all_columns_of_a_key():
    data = tables()
    data["orders"].loc[0, "land"] = None
    found = open_related(data).load(db.Schema.parse(TEXT)).content
    assert len(found) == 300
    assert len(found.frames["orders"]) == len(data["orders"]) - 1  # a key that is missing in part names nobody
    assert found.frames["orders"]["paid"].to_numpy()[found.hang_on("lines")].all()
    odd = {name: table.astype(object) for name, table in tables(4).items()}
    odd["customers"].loc[:1, ["country", "nr"]] = [["d', 'e", "1"], ["d", "e', '1"]]  # no text runs into the next
    assert len(open_related(odd).load(db.Schema.parse(TEXT)).content) == 4


def test_keys_come_out_fresh_and_lead_to_their_rows(tmp_path):
    plan = db.plan(
        db.Schema.parse(TEXT), epsilon=10.0, delta=1e-5, accountant="rdp", components=4, starts=1, fit_steps=20
    )
    assert "customers.country and customers.nr names each customer" in plan.explain()
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="customers", epsilon=10.0, delta=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "DRAWN", 2000)
        syn = db.fit(tables(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    made = syn.sample(100, seed=1)
    assert [list(frame) for frame in made.values()] == [list(frame) for frame in tables().values()]
    assert made["customers"].nr.tolist()[:2] == ["C-0001", "C-0002"]
    held = made["orders"].merge(made["customers"], left_on=["land", "customer"], right_on=["country", "nr"])
    assert len(held) == len(made["orders"])
    key = ["land", "customer", "order"]
    assert len(made["lines"].merge(made["orders"], on=key)) == len(made["lines"])
    assert not made["orders"].duplicated(key).any()
    db.release(syn, tmp_path / "b", n=100, seed=1)
    assert verify(tmp_path / "b")["executed"]
    package = json.loads((tmp_path / "b" / "datapackage.json").read_text(encoding="utf-8"))
    orders = next(each for each in package["resources"] if each["path"] == "orders.csv")["schema"]
    assert orders["primaryKey"] == key
    assert orders["foreignKeys"][0]["fields"] == ["land", "customer"]
    assert orders["foreignKeys"][0]["reference"]["fields"] == ["country", "nr"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("foreign_key: [land, customer]", "foreign_key: [land]", "not as many columns as the key"),
        ("    foreign_key: [land, customer, order]", "    key: [order, land, customer]\n"
         "    foreign_key: [land, customer, order]", "leave key out"),
        ("key: [country, nr]", "key: [country, country]", "names a column twice"),
        ("key: [country, nr]", "key: [country, tier]", "names tier; describe that column with type: id"),
    ],
)  # fmt: skip
def test_keys_that_name_no_row_are_refused(old, new, said):
    assert old in TEXT
    with pytest.raises(SchemaError, match=said):
        db.Schema.parse(TEXT.replace(old, new))
