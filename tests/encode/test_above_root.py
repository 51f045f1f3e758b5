"""Columns of a child table above one of the root: counted by their gap, drawn as they are."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from planting import plant

import doublure as db
from doublure.data.relational import open_related
from doublure.encode.above_root import above_root
from doublure.encode.columns import integer_domain
from doublure.encode.relational import RelationalEncoder
from doublure.methods.statistics.relational import fitting, stages
from doublure.methods.statistics.relational.fitting import StageValues
from doublure.methods.statistics.relational.stages import list_stages
from doublure.networks.related_layout import RootGap
from doublure.schema import ResolvedSchema
from doublure.training.job import encoded_records

TEXT = """
doublure: 1
kind: relational
unit: {name: customer}
units: 300
tables:
  customers:
    key: nr
    columns:
      nr: {type: id}
      since: {type: integer, bounds: [100, 1000], missing: true}
  orders:
    parent: customers
    foreign_key: nr
    max_children: 3
    order: placed
    columns:
      nr: {type: id}
      placed: {type: integer, bounds: [100, 1000], missing: false}
      paid: {type: integer, bounds: [50, 1200], missing: true}
constraints:
  - {at_most: [customers.since, orders.placed]}
  - {at_most: [customers.since, orders.paid]}
"""
HARDLY = TEXT.replace("since: {type: integer, bounds: [100, 1000]", "since: {type: integer, bounds: [-5000, 1000]")


def resolved(text):
    return ResolvedSchema.of(db.Schema.parse(text).resolve({}))


def made_up(count=300):
    """Return customers of whom a third have no first day, and orders of which one in five is not paid."""
    rng = np.random.default_rng(5)
    since = rng.integers(100, 901, count)
    many = rng.integers(0, 4, count)
    owner = np.repeat(np.arange(count), many)
    placed = since[owner] + rng.integers(0, 100, len(owner))
    paid = pd.Series(placed + rng.integers(0, 100, len(owner)), dtype="Int64").where(rng.random(len(owner)) > 0.2)
    known = pd.Series(since, dtype="Int64").where(np.arange(count) % 3 > 0)
    return {
        "customers": pd.DataFrame({"nr": np.arange(count), "since": known}),
        "orders": pd.DataFrame({"nr": owner, "placed": placed, "paid": paid}),
    }


def test_which_columns_are_counted_by_their_gap_is_public():
    assert above_root(resolved(TEXT), "orders") == {"placed": "since", "paid": "since"}
    assert above_root(resolved(HARDLY), "orders") == {}
    other = TEXT.replace("orders.paid]", "orders.placed]").replace(
        "- {at_most: [customers.since, orders.placed]}", "", 1
    )
    assert above_root(resolved(other), "orders") == {"placed": "since"}


def test_units_are_counted_by_gaps_that_give_their_values_back():
    encoder = RelationalEncoder(resolved(TEXT))
    content = open_related(made_up()).load(encoder.schema).content
    compact = encoder.compact(content)
    orders = encoder.layout.children[0]
    rows = encoder.tables["orders"].compact(content.frames["orders"])
    many = content.counts("orders")
    begins = np.cumsum(many) - many
    some = np.flatnonzero(many)
    for each in orders.above:
        gaps = compact[some, orders.first.start + each.place]
        below = compact[some, each.below]
        assert (gaps >= 0).all()
        np.testing.assert_array_equal(each.numbers(gaps, below), rows[begins[some], each.place])
    known = some[compact[some, 1] <= 1000]
    assert compact[known, orders.first.start].max() < 100  # an order comes less than 100 days after the first day


@pytest.mark.parametrize(("number", "below", "gap", "back"), [
    (150.0, 120.0, 30.0, 150.0),
    (110.0, 120.0, 0.0, 120.0),
    (150.0, 1001.0, 50.0, 150.0),
    (1201.0, 120.0, 1101.0, 1201.0),
])  # fmt: skip
def test_a_gap_and_back(number, below, gap, back):
    above = RootGap(place=1, below=1, first=100, last=1000, highest=1200)
    assert above.gaps(np.array([number]), np.array([below])) == gap
    assert above.numbers(np.array([gap]), np.array([below])) == back
    assert above.numbers(np.array([1100.0]), np.array([900.0])) == 1200


@pytest.mark.parametrize("anywhere", [True, False])
def test_stages_count_what_units_hold(anywhere):
    encoder = RelationalEncoder(resolved(TEXT))
    compact = encoder.compact(open_related(made_up()).load(encoder.schema).content)
    stages = list_stages(encoder.schema, anywhere=anywhere)
    assert [stage.turn for stage in stages] == (
        ["first", "first", "any", "next"] if anywhere else ["first", "first", "next"]
    )
    for stage in stages:
        values = StageValues(encoder, stage)
        assert values.columns == list(stage.schema.columns)
        held = compact[compact[:, 0] >= (0 if stage.child < 0 else 2 if stage.following else 1)][:, values.parts]
        for place, domain in enumerate(values.domains):
            assert domain.first <= held[:, place].min()
            assert held[:, place].max() <= domain.last + domain.nullable
    for stage in stages[1:-1]:
        assert "orders, above customers.placed" in stage.schema.columns
    assert "orders, before, above customers.paid" in stages[-1].schema.columns
    assert "orders, before.placed" in stages[-1].schema.columns


GAPPY = TEXT.replace("placed: {type: integer", "how: {type: category, values: [web, shop], missing: true}\n"
                     "      placed: {type: integer")  # fmt: skip


def check_a_plan_counts_as_many_values_as_records_have():
    """Missing ones among them: what a stage's table is planned for is what its records are counted by."""
    encoder = RelationalEncoder(resolved(GAPPY))
    for stage in list_stages(encoder.schema, anywhere=True):
        planned = [integer_domain(stage.schema, name) for name in stage.schema.columns]
        counted = StageValues(encoder, stage).domains
        assert [(own.first, own.last + own.nullable) for own in planned] == [
            (own.first, own.last + own.nullable) for own in counted
        ]


def test_a_plan_counts_as_many_values_as_records_have():
    check_a_plan_counts_as_many_values_as_records_have()


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("_counted", ("beyond = 0 if together else int(domain.nullable)", "beyond = 0")),
        ("_counted", ("_missing_as_value(domain)", "replace(domain, nullable=0)")),
        ("root_gap", ("_missing_as_value(gaps)", "replace(gaps, nullable=0)")),
    ],
)
def test_a_missing_value_that_is_left_out_is_caught(monkeypatch, name, edit):
    plant(monkeypatch, stages, name, edit)
    with pytest.raises(AssertionError):
        check_a_plan_counts_as_many_values_as_records_have()


def check_a_stage_counts_those_who_have_its_rows(monkeypatch):
    """Of the root all units, of first rows those with a row, of next rows those with two; nobody else counts."""
    encoder = RelationalEncoder(resolved(TEXT))
    content = open_related(made_up()).load(encoder.schema).content
    records = encoded_records(encoder, encoder.compact(content), np.arange(len(content)), len(content), "cpu")
    many = content.counts("orders")

    def having(part, least, parts, domains):
        return SimpleNamespace(records=records.having(part, least, parts))

    monkeypatch.setattr(fitting, "replace", lambda job, **changed: job.records.n_units)
    job = SimpleNamespace(having=having, progress=None)
    found = [fitting._staged(job, encoder, stage, (), []) for stage in list_stages(encoder.schema, anywhere=True)]
    assert found == [len(content), (many > 0).sum(), (many > 0).sum(), (many > 1).sum()]
    assert len(set(found)) == 3


def test_a_stage_counts_those_who_have_its_rows(monkeypatch):
    check_a_stage_counts_those_who_have_its_rows(monkeypatch)


@pytest.mark.parametrize("fewest", [{False: 1.0, True: 1.0}, {False: 0.0, True: 2.0}, {False: 2.0, True: 2.0}])
def test_others_in_a_stage_are_caught(monkeypatch, fewest):
    monkeypatch.setattr(fitting, "_FEWEST", fewest)
    with pytest.raises(AssertionError):
        check_a_stage_counts_those_who_have_its_rows(monkeypatch)


def test_a_fit_draws_what_lies_above(tmp_path):
    plan = db.plan(db.Schema.parse(TEXT.replace("units: 300", "units: 3000")), epsilon=8.0, delta=1e-5,
                   accountant="rdp", components=16, starts=1, fit_steps=100)  # fmt: skip
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="orders", epsilon=8.0, delta=1e-4)
    syn = db.fit(made_up(3000), plan, ledger=ledger, seed=0)
    made = syn.sample(2000, seed=1)
    orders = made["orders"].merge(made["customers"], on="nr")
    later = (orders["placed"] - orders["since"]).dropna()
    assert (later >= 0).all()
    assert (later <= 150).mean() > 0.9  # real ones: less than 100; drawn one by one, some 40 % would lie within
    assert (later == 0).mean() < 0.1  # and most others would be moved onto the day itself
    paid = (orders["paid"] - orders["since"]).dropna()
    assert (paid >= 0).all()
    assert (paid <= 250).mean() > 0.9
    assert 0.15 < orders["paid"].isna().mean() < 0.25
