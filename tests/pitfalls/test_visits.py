"""Rules 1, 2, 9, 16, 17 and 21 for visits in one table: a neighbour has one person more, with all rows.

Record and replay as of related tables, which the table is split into. What a person is follows from that person's rows
alone: which rows are used, which of two births counts. Mutants beside it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure import planning as plans
from doublure.data.relational import visits
from doublure.data.relational.visits import open_visits
from doublure.encode.relational import RelationalEncoder
from doublure.encode.visits import VisitsEncoder
from doublure.errors import DoublureError
from doublure.private.queries.facts import make_fact_query
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.visits import PEOPLE, VisitsSchema

PEOPLE_THERE, MOST = 24, 3
PUBLIC = f"""
doublure: 1
kind: table
unit: {{name: patient, id: nr, max_records: {MOST}, per_unit: [sex, born], order: day}}
units: {PEOPLE_THERE}
columns:
  nr: {{type: id}}
  sex: {{type: category, values: [f, m], missing: false}}
  born: {{type: integer, bounds: [1930, 2010], missing: true}}
  day: {{type: integer, bounds: [0, 999], missing: false}}
  ward: {{type: category, values: [heart, lung], other: Other, missing: true}}
"""
MOMENTS = PUBLIC.replace(
    "day: {type: integer, bounds: [0, 999]", "day: {type: datetime, bounds: ['1969-12-01', '1970-02-01'], step: 60"
)
UNORDERED = PUBLIC.replace(", order: day", "")
BOUGHT = (
    PUBLIC.replace(f"units: {PEOPLE_THERE}\n", f"units: {{learn: 1.0, magnitude: {PEOPLE_THERE}}}\n")
    .replace("values: [heart, lung], other: Other, missing: true",
             "values: {learn: 1.0}, other: Other, missing: {learn: 1.0}")
    .replace("bounds: [1930, 2010]", "bounds: {learn: 1.0}")
)  # fmt: skip
FEW = {"components": 2, "fit_steps": 3, "groups": 2, "starts": 1}


def rows_of(nr, many, draw, **cells):
    """Return a person's rows; a birth that is missing in some of them, and wrong in one."""
    born = draw.integers(1930, 2011)
    told = np.where(draw.random(many) > 0.3, born, None)
    told[: many // 3] = 1931
    made = {
        "nr": [nr] * many,
        "sex": [draw.choice(["f", "m"])] * many,
        "born": told,
        "day": draw.integers(0, 1000, many),
        "ward": draw.choice(["heart", "lung", "liver", None], many),
    }
    return pd.DataFrame(made | cells)


def table(count=PEOPLE_THERE):
    """Return the rows of ordinary patients, from one to five each, in no order."""
    draw = np.random.default_rng(3)
    rows = pd.concat([rows_of(f"p{n}", 1 + n % 5, draw) for n in range(count)], ignore_index=True)
    return rows.iloc[draw.permutation(len(rows))].reset_index(drop=True)


def one_more(many=2, **cells):
    return rows_of("one more", many, np.random.default_rng(9), **cells)


ODD_PEOPLE = {
    "one row": one_more(1),
    "as many as are used": one_more(MOST),
    "many more than are used": one_more(40),
    "without a birth": one_more(3, born=None),
    "of another birth in each row": one_more(30, born=range(1940, 1970)),
    "of two sexes": one_more(3, sex=["f", "m", "m"]),
    "on one day": one_more(3, day=5, ward="heart"),
}


def with_person(base, more):
    """Return the neighbour that has one person more, whose rows stand among the others'."""
    first, last = more[: len(more) // 2], more[len(more) // 2 :]
    return pd.concat([base[:3], first, base[3:20], last, base[20:]], ignore_index=True)


def without_person(base, nr):
    return base[base["nr"] != nr].reset_index(drop=True)


def planned(text):
    return plans.plan(Schema.parse(text), method="statistics", epsilon=9.0 if text == BOUGHT else 0.1, delta=1e-3,
                      accountant="rdp", **FEW)  # fmt: skip


def counted(lab, rows, text=PUBLIC, like=None):
    rows = at_moments(rows) if text == MOMENTS else rows
    return lab.counted(open_visits(rows), planned(text), like=like)


def check_whole_people_move_what_was_paid_for(lab, text=PUBLIC):
    base = table()
    kept = counted(lab, base, text)
    paid = 1 / kept.public["noise_multiplier"]
    moved = {
        name: lab.price(kept, counted(lab, with_person(base, more), text, like=kept))
        for name, more in ODD_PEOPLE.items()
        if name in ("one row", "as many as are used", "many more than are used", "of two sexes")
    }
    for full in ("as many as are used", "many more than are used"):
        assert moved[full] == pytest.approx(paid, rel=1e-9)
    assert max(moved.values()) <= paid * (1 + 1e-9)
    assert 0 < moved["one row"] < paid
    assert lab.price(kept, counted(lab, without_person(base, "p7"), text, like=kept)) <= paid * (1 + 1e-9)


@pytest.mark.parametrize("text", [PUBLIC, UNORDERED, MOMENTS], ids=["in order", "in the file's order", "by moments"])
def test_whole_people_move_what_was_paid_for(lab, text):
    check_whole_people_move_what_was_paid_for(lab, text)


@pytest.mark.parametrize("text", [PUBLIC, BOUGHT], ids=["declared", "bought"])
def test_nothing_seen_depends_on_a_person(lab, text):
    base = table()
    kept = counted(lab, base, text)
    for name in ("many more than are used", "of another birth in each row"):
        more = ODD_PEOPLE[name]
        lab.assert_same_public(kept, counted(lab, with_person(base, more), text, like=kept))
    lab.assert_same_public(kept, counted(lab, without_person(base, "p7"), text, like=kept))


# -- facts that are bought ---------------------------------------------------------------------------------------------


def distance(one, other):
    if isinstance(one, dict):
        return sum(abs(one.get(name, 0) - other.get(name, 0)) for name in one.keys() | other.keys())
    return int(np.abs(other - one).sum())


def check_facts_move_what_was_paid_for():
    """A fact of single rows moves by max_records cells, one of the person by a single cell."""
    schema, base = Schema.parse(BOUGHT), table()
    alike = [one_more(40, ward="heart"), one_more(40, ward=None)]
    sources = [base, *(with_person(base, more) for more in (*ODD_PEOPLE.values(), *alike)), without_person(base, "p7")]
    kept, *others = [open_visits(rows).load(schema, at_least=0) for rows in sources]
    reached = {}
    for question in schema.questions:
        query = make_fact_query(question, schema, {})
        alone = query.answer(kept, sample_rate=1.0).total
        moved = [distance(alone, query.answer(each, sample_rate=1.0).total) for each in others]
        assert max(moved) <= query.sensitivity.l1 == query.sensitivity.l2
        reached[question.path] = max(moved)
    assert reached == {
        "units": 1, "columns.born.bounds": 1, "columns.ward.values": MOST, "columns.ward.missing": MOST,
    }  # fmt: skip


def test_facts_move_what_was_paid_for():
    check_facts_move_what_was_paid_for()


@pytest.mark.parametrize(
    "edit",
    [
        (VisitsSchema, "cells_of", ("self.unit.max_records", "1")),
        (visits, "kept_rows", ("np.arange(len(placed)) - begins < most", "begins >= 0")),
    ],
    ids=["one cell a person", "rows that are not bounded"],
)
def test_facts_that_move_further_are_caught(lab, edit):
    lab.plant(*edit)
    with lab.caught():
        check_facts_move_what_was_paid_for()


# -- what a person is --------------------------------------------------------------------------------------------------


def shown(rows, text=PUBLIC):
    """Return each person's numbers as they are counted, by what tells the person apart: the number of the id."""
    schema = Schema.parse(text)
    found = open_visits(rows).load(schema, at_least=0)
    compact = VisitsEncoder(ResolvedSchema.of(schema.resolve({}))).compact(found.content)
    return dict(zip(found.content.marks.tolist(), map(tuple, compact.tolist()), strict=True))


def check_a_person_shows_the_same_whoever_else_there_is():
    base = table()
    for text in (PUBLIC, UNORDERED):
        alone = shown(base, text)
        assert len(alone) == PEOPLE_THERE
        for more in ODD_PEOPLE.values():
            beside = shown(with_person(base, more), text)
            assert len(beside) == PEOPLE_THERE + 1
            assert alone.items() <= beside.items()
        assert shown(without_person(base, "p7"), text).items() <= alone.items()


def test_a_person_shows_the_same_whoever_else_there_is():
    check_a_person_shows_the_same_whoever_else_there_is()


@pytest.mark.parametrize(
    "edit",
    [
        (
            "_first_cells",
            ("np.searchsorted(owner, np.arange(units))", "np.searchsorted(owner, np.arange(units))[::-1]"),
        ),
        ("_first_cells", ("there[first]", "there[np.argsort(there[first])]")),
        ("split", ("pd.Series(names, dtype=object)", "pd.Series(np.arange(len(names)))")),
        ("split", ("frame.iloc[kept]", "frame.iloc[np.sort(kept)]")),
    ],
    ids=["another person's cell", "a cell of whoever is first", "marks by place", "rows that change hands"],
)
def test_people_that_meet_are_caught(lab, edit):
    lab.plant(visits, *edit)
    with pytest.raises((AssertionError, IndexError, DoublureError)):
        check_a_person_shows_the_same_whoever_else_there_is()


def at_moments(rows):
    """Return rows whose days are moments around 1970."""
    return rows.assign(day=np.datetime64("1969-12-01", "s") + 5200 * rows["day"].to_numpy().astype(np.int64))


def check_a_gap_between_moments_is_of_one_person():
    base = at_moments(table())
    alone = shown(base, MOMENTS)
    for more in ODD_PEOPLE.values():
        assert alone.items() <= shown(with_person(base, at_moments(more)), MOMENTS).items()
    assert shown(without_person(base, "p7"), MOMENTS).items() <= alone.items()


def test_a_gap_between_moments_is_of_one_person():
    check_a_gap_between_moments_is_of_one_person()


@pytest.mark.parametrize("meeting", ["np.sort({})", "np.roll({}, 1)"])
def test_a_gap_above_another_person_s_moment_is_caught(lab, meeting):
    before = "found[several, child.before.start + child.order]"
    lab.plant(RelationalEncoder, "_show", (before, meeting.format(before)))
    with lab.caught():
        check_a_gap_between_moments_is_of_one_person()


def test_what_differs_within_a_person_is_decided_by_that_person_s_rows():
    rows = pd.DataFrame(
        {
            "nr": ["a", "b", "a", "b", "c", "a", "c", ""],
            "sex": ["f", "m", "m", "m", "f", "m", "f", "f"],
            "born": [None, 1950, 1940, 1960, None, 1930, None, 1999],
            "day": [30, 20, 10, 10, 5, 20, 1, 1],
            "ward": ["heart", "lung", None, "lung", "liver", "lung", "heart", "heart"],
        }
    )
    for text in (PUBLIC, PUBLIC.replace("columns:", "misfit: coerce\ncolumns:")):
        known = rows if "coerce" in text else rows[:7]
        found = open_visits(known).load(Schema.parse(text)).content
        people = found.frames[PEOPLE]
        assert people["sex"].tolist() == ["m", "m", "f"]  # of the first day
        assert people["born"].fillna(0).tolist() == [1940, 1960, 0]  # of the first day that has one
        assert found.frames["records"]["day"].tolist() == [10, 20, 30, 10, 20, 1, 5]
    unordered = open_visits(rows[:7]).load(Schema.parse(UNORDERED.replace("max_records: 3", "max_records: 2"))).content
    assert unordered.frames[PEOPLE]["sex"].tolist() == ["f", "m", "f"]  # of the first row
    assert unordered.frames[PEOPLE]["born"].fillna(0).tolist() == [1940, 1950, 0]
    assert unordered.frames["records"]["day"].tolist() == [30, 10, 20, 10, 5, 1]


def test_a_person_with_rows_beyond_the_most_is_read_as_without_them():
    base, far = table(), one_more(40)
    first = far.iloc[np.argsort(far["day"], kind="stable")[:MOST]]
    assert shown(with_person(base, far)) == shown(with_person(base, first))


def test_no_message_names_a_cell_of_a_person():
    rows = table().astype(object)
    rows.loc[5, "day"] = "s3cr3t"
    with pytest.raises(DoublureError) as refused:
        open_visits(rows).load(Schema.parse(PUBLIC))
    assert "s3cr3t" not in str(refused.value)
    coerced = Schema.parse(PUBLIC.replace("columns:", "misfit: coerce\ncolumns:"))
    assert open_visits(rows).load(coerced).n_units == PEOPLE_THERE
