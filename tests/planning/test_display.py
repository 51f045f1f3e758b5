"""What a notebook shows of a plan's price: each access in a row, figures at the right, the total below."""

from __future__ import annotations

import re

import pytest

import doublure as db

TABLE = """
doublure: 1
kind: table
units: 3000
columns:
  age: {type: integer, bounds: {learn: 0.1}, missing: false}
  job: {type: category, values: [cook, nurse], missing: false}
"""


def rows_of(plan):
    """Return each row of the table of prices: its class, and text and class of its cells."""
    (table,) = [one for one in re.findall("<table>.*?</table>", plan._repr_html_(), re.S) if "touches private" in one]
    cell = re.compile(r"<t[hd]([^>]*)>(.*?)</t[hd]>", re.S)
    return [(mark, [(text, kind) for kind, text in cell.findall(row)])
            for mark, row in re.findall("<tr([^>]*)>(.*?)</tr>", table, re.S)]  # fmt: skip


@pytest.fixture(scope="module")
def priced():
    return db.plan(
        db.Schema.parse(TABLE), method="dpgan", epsilon=2.0, delta=1e-6, accountant="rdp", lot_size=100, steps=9
    )


def test_each_access_is_a_row_and_the_last_is_the_total(priced):
    _, *rows, (mark, last) = rows_of(priced)
    assert [row[0][0] for _, row in rows] == [access.purpose for access in priced.touches]
    assert [text for text, _ in rows[0][1]] == ["find bounds for age", "0.1", "0"]
    assert [text for text, _ in last] == ["total (composed, not added up)", "2", "1e-06"]
    assert "last" in mark
    assert not any("last" in other for other, _ in rows)


def test_figures_stand_at_the_right(priced):
    for _, row in rows_of(priced):
        name, *figures = (kind for _, kind in row)
        assert len(set(figures)) == 1
        assert name != figures[0]


def test_what_claims_nothing_has_no_total():
    plain = db.plan(db.Schema.parse(TABLE.replace("{learn: 0.1}", "[0, 99]")), method="gan", lot_size=100, steps=9)
    _, *rows = rows_of(plain)
    assert [row[0][0] for _, row in rows] == [access.purpose for access in plain.touches]
    assert all(row[1][0] == "not protected" for _, row in rows)


@pytest.mark.parametrize(("most", "said"), [(1, "one person"), (2, "one person, at most 2 records of each")])
def test_the_unit_says_how_many_records_it_may_have(most, said):
    schema = TABLE.replace("units:", f"unit: {{name: person, id: nr, max_records: {most}}}\nunits:")
    schema = schema.replace("columns:", "columns:\n  nr: {type: id}").replace("{learn: 0.1}", "[0, 99]")
    plan = db.plan(db.Schema.parse(schema), method="gan", lot_size=100, steps=9)
    assert f"Unit of privacy: {said}\n" in plan.explain()
    assert f"<span>unit of privacy</span>{said}</div>" in plan._repr_html_()
