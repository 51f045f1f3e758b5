"""Rules 1, 2, 9 and 16 for tables of three levels: a neighbour lacks one unit with its rows at all levels.

What a unit is follows from keys alone: the first row of the root with a key, all that names it, and all that names
these. Keys of orders repeat here, within a customer and between customers, and some name nobody.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from levels import three_levels

from doublure import planning as plans
from doublure.data.relational import open_related, opening
from doublure.encode import relational as encoding
from doublure.encode.relational import RelationalEncoder
from doublure.private import mechanism
from doublure.private.queries import facts
from doublure.private.queries.facts import make_fact_query
from doublure.private.records import PrivateRecords
from doublure.schema import ResolvedSchema, Schema
from doublure.schema.relational import RelationalSchema

UNITS, ORDERS, LINES = 18, 3, 2
NOTES = """  notes:
    parent: orders
    foreign_key: order
    max_children: 1
    columns:
      order: {type: id}
      length: {type: integer, bounds: [0, 9], missing: false}
"""
PUBLIC = three_levels(UNITS, lines=LINES, tables=NOTES)
BOUGHT = PUBLIC.replace("values: [p, q], missing: true", "values: {learn: 1.0}, other: o, missing: {learn: 1.0}")
FEW = {"components": 2, "fit_steps": 3, "groups": 2, "starts": 1}


def tables(names, seed=0, most=6):
    """Return customers with orders of which keys repeat, and lines and notes that name them."""
    draw, orders, lines, notes = np.random.default_rng(seed), [], [], []
    for nr in names:
        for _ in range(draw.integers(0, most)):
            order = f"o{draw.integers(0, 40)}"
            orders.append((order, nr, int(draw.integers(0, 1000))))
            lines += [(order, draw.choice(["p", "q", None])) for _ in range(draw.integers(0, 4))]
            notes += [(order, int(draw.integers(0, 10))) for _ in range(draw.integers(0, 3))]
    return {
        "customers": pd.DataFrame(
            {"id": names, "tier": draw.choice(["a", "b"], len(names)), "since": draw.integers(0, 900, len(names))}
        ),
        "orders": pd.DataFrame(orders, columns=["nr", "customer", "day"], dtype=object),
        "lines": pd.DataFrame(lines, columns=["order", "item"]),
        "notes": pd.DataFrame(notes, columns=["order", "length"], dtype=object),
    }


def base():
    """Return customers beside an order of nobody, whose key comes first, and lines that name nothing."""
    found = tables([f"c{n}" for n in range(UNITS)])
    orphan = pd.DataFrame([("o3", "nobody", 1), ("o5", None, 1)], columns=["nr", "customer", "day"])
    lost = pd.DataFrame([("o99", "p"), (None, "q")], columns=["order", "item"])
    return found | {"orders": pd.concat([orphan, found["orders"]]), "lines": pd.concat([lost, found["lines"]])}


def without(data, nr):
    """Return the neighbour that lacks a customer: written out by hand, apart from how the library reads."""
    holder: dict[str, str] = {}
    for order, owner in zip(data["orders"]["nr"], data["orders"]["customer"], strict=True):
        if owner in set(data["customers"]["id"]):
            holder.setdefault(order, owner)
    own = {"customers": "id", "orders": "customer"}
    left = {name: data[name][data[name][key] != nr] for name, key in own.items()}
    left |= {name: data[name][data[name]["order"].map(holder) != nr] for name in ("lines", "notes")}
    return {name: table.reset_index(drop=True) for name, table in left.items()}


@cache
def planned(text=PUBLIC):
    return plans.plan(
        Schema.parse(text), method="statistics", epsilon=9.0 if text == BOUGHT else 0.1, delta=1e-3, accountant="rdp",
        **FEW,
    )  # fmt: skip


def loaded(data, text=PUBLIC):
    return open_related(data).load(Schema.parse(text), at_least=0)


def shown(data):
    """Return each unit's numbers as it is counted, by its mark."""
    found = loaded(data)
    encoder = RelationalEncoder(ResolvedSchema.of(Schema.parse(PUBLIC).resolve({})))
    compact = encoder.compact(found.content)
    return dict(zip(found.content.marks.tolist(), map(tuple, compact.tolist()), strict=True))


def check_a_unit_shows_the_same_whoever_else_there_is():
    whole = base()
    everybody = shown(whole)
    assert len(everybody) == UNITS
    owned = {"orders": whole["orders"][2:], "lines": whole["lines"][2:]}
    assert shown(whole | owned) == everybody  # rows that hang on nobody have no say
    for n in range(UNITS):
        fewer = shown(without(whole, f"c{n}"))
        assert len(fewer) == UNITS - 1
        assert fewer.items() <= everybody.items()


def test_a_unit_shows_the_same_whoever_else_there_is():
    check_a_unit_shows_the_same_whoever_else_there_is()


ROWS = "first = some[~keys.iloc[some].duplicated().to_numpy()]"


@pytest.mark.parametrize(
    ("owner", "name", "edit"),
    [
        (opening._KeyHolders, "__init__", ("keys.notna().to_numpy() & (unit >= 0)", "keys.notna().to_numpy()")),
        (opening._KeyHolders, "__init__", (ROWS, "first = some[~keys.iloc[some].duplicated(keep='last').to_numpy()]")),
        (encoding.RelationalEncoder, "_shown", ("content.marks[units]", "content.marks[units][::-1]")),
        (encoding.RelationalEncoder, "_shown", ("(np.cumsum(many) - many)[units] + which",
                                                "np.roll((np.cumsum(many) - many)[units] + which, 1)")),
        (encoding.RelationalEncoder, "compact", ("heads[child.parent][shown]", "heads[child.parent][shown[::-1]]")),
        (opening, "kept_rows", ("np.lexsort((np.arange(len(unit)), by, unit))",
                                "np.lexsort((by - by.mean() * (np.arange(len(unit)) % 2), unit))")),
    ],
    ids=["an orphan that decides another's lines", "the last row of a key", "another's mark", "another's row",
         "another's head", "an order that others decide"],
)  # fmt: skip
def test_units_that_meet_are_caught(lab, owner, name, edit):
    lab.plant(owner, name, edit)
    with lab.caught():
        check_a_unit_shows_the_same_whoever_else_there_is()


def counted(lab, data, text=PUBLIC, like=None):
    return lab.counted(open_related(data), planned(text), like=like)


def check_a_unit_moves_no_more_than_was_paid_for(lab, names=("c3", "c7")):
    """A unit moves each table by one in one cell at most, at any number of rows on any level."""
    whole = base()
    kept, most = counted(lab, whole), 0.0
    for nr in names:
        other = counted(lab, without(whole, nr), like=kept)
        lab.assert_same_public(kept, other)
        assert lab.price(kept, other) <= (1 + 1e-9) / kept.public["noise_multiplier"]
        most = max(most, *(float((a - b).abs().max()) for a, b in zip(kept.queries, other.queries, strict=True)))
    assert most == 1


def full(item="p"):
    """Return a customer with as many rows on each level as are used, whose cells are all alike."""
    orders = [f"z{n}" for n in range(ORDERS)]
    return {
        "customers": pd.DataFrame({"id": ["z"], "tier": ["a"], "since": [0]}),
        "orders": pd.DataFrame({"nr": orders, "customer": "z", "day": range(ORDERS)}),
        "lines": pd.DataFrame({"order": np.repeat(orders, LINES), "item": item}),
        "notes": pd.DataFrame({"order": orders, "length": 1}),
    }


def test_a_unit_moves_no_more_than_was_paid_for(lab):
    check_a_unit_moves_no_more_than_was_paid_for(lab)
    whole = base()
    kept = counted(lab, whole)
    more = {name: pd.concat([whole[name], own], ignore_index=True) for name, own in full().items()}
    moved = lab.price(kept, counted(lab, more, like=kept))
    assert moved == pytest.approx(1 / kept.public["noise_multiplier"], rel=1e-9)


LIMIT = (mechanism, "_refuse_dearer", ("not stated.l2 <= priced.l2 * (1 + _ROUNDING)", "False"))
SHOWN = "rows[rows[:, part] >= least][:, parts]"
TWICE = (PrivateRecords, "having", (SHOWN, f"np.repeat({SHOWN}, 2 if part >= 3 else 1, axis=0)"))
"""Behind the root's three numbers stands what is shown of lower levels."""


def test_a_grandchild_that_counts_twice_is_caught(lab):
    lab.plant(*LIMIT)
    lab.plant(*TWICE)
    with lab.caught():
        check_a_unit_moves_no_more_than_was_paid_for(lab)


def check_facts_move_what_was_paid_for():
    """A fact of the lowest level pays for as many cells as a unit may have there: those of all levels, multiplied."""
    schema, whole = Schema.parse(BOUGHT), base()
    kept, reached = loaded(whole, BOUGHT), {}
    for question in schema.questions:
        query = make_fact_query(question, schema, {})
        item = None if question.path.endswith("missing") else "p"
        more = {name: pd.concat([whole[name], own], ignore_index=True) for name, own in full(item).items()}
        other = loaded(more, BOUGHT)
        one, two = (query.answer(each, sample_rate=1.0).total for each in (kept, other))
        moved = (
            sum(abs(one.get(n, 0) - two.get(n, 0)) for n in one.keys() | two.keys())
            if isinstance(one, dict)
            else int(np.abs(two - one).sum())
        )
        assert moved <= query.sensitivity.l1
        reached[question.path] = moved
    assert reached == dict.fromkeys(
        ("tables.lines.columns.item.values", "tables.lines.columns.item.missing"), ORDERS * LINES
    )


def test_facts_move_what_was_paid_for():
    check_facts_move_what_was_paid_for()


@pytest.mark.parametrize(
    "edit",
    [
        (RelationalSchema, "most", ("(name, *self.above(name))", "(name,)")),
        (facts, "make_fact_query", ("moved = most * schema.cells_of(name, question.fact)", "moved = most")),
    ],
    ids=["one level alone", "one cell a unit"],
)
def test_facts_that_move_further_are_caught(lab, edit):
    lab.plant(*edit)
    with lab.caught():
        check_facts_move_what_was_paid_for()
