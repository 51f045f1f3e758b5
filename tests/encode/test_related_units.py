"""Units of related tables as numbers and back: what a unit shows, and that every constraint is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from planting import plant

import doublure as db
from doublure.data.relational import open_related
from doublure.data.relational.records import marked
from doublure.encode import across_tables
from doublure.encode.relational import RelationalEncoder
from doublure.errors import InputError
from doublure.schema import ResolvedSchema
from doublure.support.mixing import remarked

TEXT = """
doublure: 1
kind: relational
unit: {name: customer}
units: 50
tables:
  customers:
    key: nr
    columns:
      nr: {type: id}
      since: {type: date, bounds: [2000-01-01, 2024-12-31], missing: true}
      closed: {type: date, bounds: [2000-01-01, 2030-12-31], missing: true}
      tier: {type: category, values: [low, high], missing: false, roles: [condition]}
      spent: {type: real, bounds: [0, 400], precision: 1, missing: false}
  orders:
    key: order
    parent: customers
    foreign_key: nr
    max_children: 4
    order: placed
    columns:
      order: {type: id}
      nr: {type: id}
      placed: {type: date, bounds: [2010-01-01, 2020-12-31], missing: false}
      paid: {type: date, bounds: [2010-01-01, 2021-12-31], missing: true}
      price: {type: real, bounds: [0, 99.9], precision: 1, missing: false}
  calls:
    parent: customers
    foreign_key: nr
    max_children: 3
    columns:
      nr: {type: id}
      topic: {type: category, values: [a, b, c], missing: true}
constraints:
  - {at_most: [orders.placed, orders.paid]}
  - {at_most: [customers.since, orders.placed, customers.closed]}
  - {sum: {total: customers.spent, of: orders.price}}
"""


@pytest.fixture(scope="module")
def encoder():
    return RelationalEncoder(ResolvedSchema.of(db.Schema.parse(TEXT).resolve({})))


@pytest.fixture
def drawn(encoder):
    return encoder.decode(torch.from_numpy(encoder.uniform(400, np.random.default_rng(1))))


def number(cells):
    return pd.to_datetime(cells).astype("int64").where(cells.notna(), np.nan).to_numpy(dtype=float)


def test_every_constraint_is_kept(drawn):
    customers, orders = drawn.frames["customers"], drawn.frames["orders"]
    assert list(customers) == ["since", "closed", "tier", "spent"]
    owner = drawn.parents["orders"]
    placed, paid = number(orders["placed"]), number(orders["paid"])
    since, closed = number(customers["since"])[owner], number(customers["closed"])[owner]
    assert not (paid < placed).any()
    assert not (placed < since).any()
    assert not (closed < placed).any()
    sums = np.bincount(owner, orders["price"], len(drawn)).round(1)
    assert customers["spent"].tolist() == pytest.approx(sums.tolist())
    follow = np.flatnonzero(owner[1:] == owner[:-1])
    assert (placed[follow + 1] >= placed[follow]).all()


def check_rules_across_tables_look_at_a_units_own_rows(encoder):
    """What is changed of one unit is the same whoever else is decoded, and of one without rows there is nothing."""
    rows = encoder.uniform(60, np.random.default_rng(2))
    together, alone = encoder.decode(rows), [encoder.decode(rows[[place]]) for place in range(60)]
    whole = alone[0].joined(alone)
    for name, frame in together.frames.items():
        pd.testing.assert_frame_equal(frame, whole.frames[name])
    last = encoder.schema.columns["orders.placed"].bounds[1]
    bare = together.frames["customers"]["since"][together.counts("orders") == 0].dropna()
    assert (bare > pd.Timestamp(last)).any()


def test_rules_across_tables_look_at_a_units_own_rows(encoder):
    check_rules_across_tables_look_at_a_units_own_rows(encoder)


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("_moved", ("own[self.above]", "own[self.above[::-1]]")),
        ("_moved", ("nearest.at(found, self.above, own)", "found[:] = nearest.reduce(own) if len(own) else np.nan")),
        (
            "_moved",
            ("found = np.full(rows, np.nan)", "found = np.full(rows, nearest.reduce(own) if len(own) else np.nan)"),
        ),
    ],
    ids=["a floor of another's", "an end of everybody's", "one without rows beside one with"],
)
def test_rules_that_look_at_others_are_caught(encoder, monkeypatch, name, edit):
    plant(monkeypatch, across_tables._OrderedPair, name, edit)
    with pytest.raises(AssertionError):
        check_rules_across_tables_look_at_a_units_own_rows(encoder)


def test_units_show_rows_of_their_own(encoder, drawn):
    layout, compact = encoder.layout, encoder.compact(drawn)
    assert compact.shape == (400, layout.counted_width)
    orders, calls = layout.children
    rows = encoder.tables["orders"].compact(drawn.frames["orders"])
    owner, first = drawn.parents["orders"], np.cumsum(drawn.counts("orders")) - drawn.counts("orders")
    seen, shown = set(), set()
    for unit in range(400):
        many = int(drawn.counts("orders")[unit])
        assert compact[unit, 0] == many
        if many:
            assert compact[unit, orders.first].tolist() == rows[first[unit]].tolist()
        if many > 1:
            own = rows[owner == unit]
            before, after = compact[unit, orders.before], compact[unit, orders.next].copy()
            after[orders.order] += before[orders.order]
            place = next(
                p for p in range(many - 1) if np.array_equal(own[p], before) and np.array_equal(own[p + 1], after)
            )
            assert compact[unit, orders.left] == many - 2 - place
            seen.add((many, place))
        if many:
            own, place = rows[owner == unit], int(compact[unit, orders.place])
            assert compact[unit, orders.any].tolist() == own[place].tolist()
            shown.add((many, place))
    assert shown == {(many, place) for many in range(1, 5) for place in range(many)}  # every row is somebody's
    assert seen == {(2, 0), (3, 0), (3, 1), (4, 0), (4, 1), (4, 2)}  # every pair is somebody's
    assert calls.order == -1
    assert compact[:, calls.left].max() == calls.most - 1  # rows without an order follow one another in any


def check_a_pair_without_an_order_is_of_two_rows(encoder):
    """Each of three rows is somebody's first, before and next; never is one row both."""
    count = 200
    calls = pd.DataFrame({"nr": np.repeat(np.arange(count), 3), "topic": list("abc") * count})
    orders = pd.DataFrame({name: [] for name in ("order", "nr", "placed", "paid", "price")}, dtype=object)
    customers = pd.DataFrame({"nr": np.arange(count), "since": None, "closed": None, "tier": "low", "spent": 0.0})
    content = open_related({"customers": customers, "orders": orders, "calls": calls}).load(encoder.schema).content
    compact, place = encoder.compact(content), encoder.layout.children[1]
    first, before, following = (compact[:, part.start] for part in (place.first, place.before, place.next))
    assert set(zip(before, following, strict=True)) == {(b, n) for b in range(3) for n in range(3) if b != n}
    assert set(first) == {0, 1, 2}


def test_a_pair_without_an_order_is_of_two_rows(encoder, monkeypatch):
    check_a_pair_without_an_order_is_of_two_rows(encoder)
    plant(monkeypatch, RelationalEncoder, "_show", ("following >= before", "following > before"))
    with pytest.raises(AssertionError):
        check_a_pair_without_an_order_is_of_two_rows(encoder)


LETTERS = "abcdefghi"


def check_what_is_as_in_the_row_before_is_said(many=300):
    """Of a list of nine values or more, by the two rows that a unit shows; of shorter ones their table says it."""
    text = TEXT.replace("[a, b, c], missing: true", f"[{', '.join(LETTERS)}], missing: true").replace(
        "    columns:\n      nr: {type: id}\n      topic", "    order: day\n    columns:\n      nr: {type: id}\n"
        "      day: {type: integer, bounds: [0, 9], missing: false}\n      topic"
    )  # fmt: skip
    encoder = RelationalEncoder(db.Schema.parse(text).resolve({}))
    draw = np.random.default_rng(2)
    topics = draw.choice([*LETTERS[:2], None], 3 * many)
    calls = pd.DataFrame({"nr": np.repeat(np.arange(many), 3), "day": list(range(3)) * many, "topic": topics})
    orders = pd.DataFrame({name: [] for name in ("order", "nr", "placed", "paid", "price")}, dtype=object)
    customers = pd.DataFrame({"nr": np.arange(many), "since": None, "closed": None, "tier": "low", "spent": 0.0})
    content = open_related({"customers": customers, "orders": orders, "calls": calls}).load(encoder.schema).content
    compact, place = encoder.compact(content), encoder.layout.children[1]
    assert encoder.layout.children[0].repeats == ()
    assert place.repeats == (1,)
    before, following = (compact[:, part.start + 1] for part in (place.before, place.next))
    assert (compact[:, place.same.start] == (before == following)).all()
    assert 0.2 < (before == following).mean() < 0.5


def test_what_is_as_in_the_row_before_is_said(monkeypatch):
    check_what_is_as_in_the_row_before_is_said()
    plant(
        monkeypatch,
        RelationalEncoder,
        "_show",
        ("rows[begins + before, place]", "rows[begins, place]"),
    )
    with pytest.raises(AssertionError):
        check_what_is_as_in_the_row_before_is_said()


def test_a_unit_shows_its_rows_evenly(encoder):
    marks = remarked(marked(60_000), 1)
    shares = np.bincount((marks % np.uint64(3)).astype(int)) / 60_000
    assert np.abs(shares - 1 / 3).max() < 0.01


def test_what_is_drawn_is_read_back_the_same(encoder, drawn):
    again = open_related(drawn).load(encoder.schema).content
    for name, frame in drawn.frames.items():
        pd.testing.assert_frame_equal(frame, again.frames[name], check_dtype=False, check_categorical=False)
    assert again.parents["orders"].tolist() == drawn.parents["orders"].tolist()


def test_conditions_are_the_roots(encoder):
    assert encoder.condition_codes({"customers.tier": "high"}) == {"customers.tier": 1}
    rng = np.random.default_rng(0)
    assert encoder.draw_conditions(3, rng, {"customers.tier": (1,)}).tolist() == [[0.0, 1.0]] * 3


def test_numbers_that_are_not_finite_are_refused(encoder):
    with pytest.raises(InputError, match="not finite"):
        encoder.decode(torch.full((2, encoder.width), float("nan")))
