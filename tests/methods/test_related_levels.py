"""Tables of three levels: what hangs together over them comes out so, keys hold, and a run goes the whole way."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from levels import three_levels

import doublure as db
from doublure.data.records import handed_out
from doublure.data.relational import open_related
from doublure.encode.relational import RelationalEncoder
from doublure.errors import SchemaError
from doublure.measures.relational import evaluate_related
from doublure.methods.statistics.tables import work
from doublure.releasing.verifying import verify
from doublure.releasing.writing import write_sample
from doublure.schema import ResolvedSchema
from doublure.schema.relational import RelationalSchema
from doublure.support.progress import SilentProgress

UNITS = 1500
TEXT = three_levels(
    UNITS,
    lines=4,
    days=400,
    of_customers=", roles: [condition]",
    item="item: {type: category, values: [p, q, r], missing: false}",
    order_key='{type: id, pattern: "O-{5 digits}"}',
    of_lines="""      price: {type: real, bounds: [0, 20], precision: 1, missing: false}
      sent: {type: integer, bounds: [0, 400], missing: false}
""",
    of_orders="""      kind: {type: category, values: [x, y], missing: false}
      total: {type: real, bounds: [0, 80], precision: 1, missing: false}
""",
    rules="""  - {sum: {total: orders.total, of: lines.price}}
  - {at_most: [orders.day, lines.sent]}
""",
)


def made_up(count, seed):
    """Return customers whose orders' kind follows their tier, and lines whose number and item follow the kind."""
    rng = np.random.default_rng(seed)
    tier = rng.choice(["a", "b"], count, p=[0.3, 0.7])
    since = rng.integers(0, 100, count)
    orders, lines = [], []
    for nr in range(count):
        day = since[nr]
        for _ in range(rng.integers(0, 4)):
            kind = "x" if rng.random() < (0.9 if tier[nr] == "a" else 0.1) else "y"
            day += rng.integers(0, 60)
            name, total = f"o{len(orders)}", 0.0
            for _ in range(1 if kind == "x" else rng.integers(2, 5)):
                item = rng.choice(["p", "q", "r"], p=[0.8, 0.1, 0.1] if kind == "x" else [0.1, 0.2, 0.7])
                price = round({"p": 2, "q": 8, "r": 15}[item] + rng.random() * 3, 1)
                total += price
                lines.append((name, item, price, day + rng.integers(0, 9)))
            orders.append((name, nr, day, kind, round(total, 1)))
    return {
        "customers": pd.DataFrame({"id": np.arange(count), "tier": tier, "since": since}),
        "lines": pd.DataFrame(lines, columns=["order", "item", "price", "sent"]),
        "orders": pd.DataFrame(orders, columns=["nr", "customer", "day", "kind", "total"]),
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("levels")
    plan = db.plan(
        db.Schema.parse(TEXT), epsilon=20.0, delta=1e-5, accountant="rdp", components=16, starts=1, fit_steps=80
    )
    ledger = db.Ledger.create(folder / "ledger", dataset="customers", epsilon=20.0, delta=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "DRAWN", 4000)
        db.fit(made_up(UNITS, 1), plan, ledger=ledger, out=folder / "run", seed=1)
    return folder / "run"


@pytest.fixture(scope="module")
def syn(run):
    return db.load(run)


def joined(data):
    lines = data["lines"].merge(data["orders"], left_on="order", right_on="nr")
    return lines.merge(data["customers"], left_on="customer", right_on="id")


def test_every_level_hangs_on_the_one_above(syn):
    made = next(syn.sample_chunks(600, seed=3, chunk_rows=250))
    assert list(made.handed_out()) == ["customers", "lines", "orders"]
    made = syn.sample(600, seed=3)
    whole = joined(made)
    assert len(whole) == len(made["lines"])
    assert made["orders"].nr.tolist() == [f"O-{n:05}" for n in range(1, len(made["orders"]) + 1)]
    assert made["orders"].groupby("customer").size().max() <= 3
    assert made["lines"].groupby("order").size().max() <= 4
    sums = whole.groupby("nr").price.sum()
    assert np.allclose(sums, made["orders"].set_index("nr").total.loc[sums.index], atol=1e-6)
    assert (whole.day >= whole.since).all()
    assert (whole.sent >= whole.day).all()


def test_what_hangs_together_over_levels_comes_out_so(syn):
    real, made = joined(made_up(UNITS, 2)), joined(syn.sample(UNITS, seed=2))
    for above in ("kind", "tier"):
        one, two = (pd.crosstab(data[above], data["item"], normalize=True) for data in (real, made))
        apart = np.outer(one.sum(axis=1), one.sum(axis=0))
        assert np.abs((one - two).to_numpy()).sum() < 0.5 * np.abs((one - apart).to_numpy()).sum()
    sizes = [data.groupby("kind").nr.apply(lambda own: len(own) / own.nunique()) for data in (real, made)]
    assert np.allclose(*sizes, rtol=0.1)


def test_a_bundle_of_levels_is_verified(syn, tmp_path):
    db.release(syn, tmp_path / "bundle", n=120, seed=1)
    assert verify(tmp_path / "bundle")["files"] > 8
    sizes = {name: len(pd.read_csv(tmp_path / "bundle" / f"{name}.csv")) for name in ("orders", "lines")}
    assert 100 < sizes["orders"] < sizes["lines"]


def test_levels_are_evaluated(syn):
    found = evaluate_related(syn.schema, syn.sample(400, seed=2), made_up(400, 1), made_up(400, 2), tables=False)
    scores = {score.key: score for score in found.scores}
    assert {"children orders", "children lines", "parent_child lines", "transitions lines"} <= {*scores}
    assert scores["parent_child lines"].value < scores["parent_child lines"].baseline


class Counted(SilentProgress):
    """Keeps what it is told."""

    def __init__(self):
        self.stages, self.done = [], []

    def stage(self, name, total=None):
        self.stages.append((name, total))

    def at(self, done):
        self.done.append(done)


@pytest.mark.parametrize("given", [{}, {"customers.tier": "a"}])
def test_units_are_counted_while_the_rows_of_one_chunk_are_drawn(syn, tmp_path, given):
    told = Counted()
    assert write_sample(syn, tmp_path / "made", 400, given=given, seed=2, progress=told) == 400
    assert told.stages == [("draw made", 400)]
    assert told.done == sorted(told.done)
    assert told.done[-1] == 400
    within = set(told.done) - {400}
    assert len(within) > 4  # of at most 3 orders and 4 lines, a step each
    quiet = handed_out(syn.draw(400, given=given, seed=2), syn.schema)
    for name, frame in quiet.items():
        assert len(pd.read_csv(tmp_path / "made" / f"{name}.csv")) == len(frame)
    chunks = [list(syn.sample_chunks(400, given=given, seed=2, told=each)) for each in (None, lambda _: None)]
    for one, other in zip(*chunks, strict=True):
        for name, frame in one.handed_out().items():
            pd.testing.assert_frame_equal(frame, other.handed_out()[name])


def test_a_release_counts_units_too(syn, tmp_path):
    told = Counted()
    db.release(syn, tmp_path / "bundle", n=400, seed=1, progress=told)
    assert len(set(told.done) - {400}) > 4


def test_units_that_are_drawn_sum_up_to_all(syn):
    added, worlds = [], (1, 50, 400)
    for n in worlds:
        (rows,) = syn.sample_chunks(n, seed=n, told=added.append)
        assert len(rows) == n
        assert n - 1 <= sum(added) <= n + 1e-6 or not rows.counts_of_rows("lines").any()
        added.clear()


def test_a_plan_says_a_line_a_table(syn):
    lines = syn.plan.explain().splitlines()
    tables = ["customers", "orders", "lines"]
    for begin in ("  count ", "Noise to count "):
        found = [line.removeprefix(begin).split()[0].rstrip(":") for line in lines if line.startswith(begin)]
        assert sorted(found) == sorted(tables)
    purposes = [access.purpose for access in syn.plan.touches]
    assert len(purposes) > 8 * len(tables)
    assert len(lines) < len(purposes)
    assert len(syn.plan.to_json()["touches"]) == len(purposes)


def units(data):
    return open_related(data).load(db.Schema.parse(TEXT), at_least=1).content


def test_units_are_taken_and_joined_with_all_levels():
    whole = units(made_up(40, 5))
    some = whole.take(np.array([3, 8, 9, 3]))
    again = whole.take(slice(3)).joined([whole.take(slice(3)), whole.take(slice(3, None))])
    for name in whole.frames:
        pd.testing.assert_frame_equal(again.frames[name], whole.frames[name])
    assert all((again.hang_on(name) == whole.hang_on(name)).all() for name in whole.parents)
    assert some.fingerprints()[[0, 1, 2, 3]].tolist() == whole.fingerprints()[[3, 8, 9, 3]].tolist()
    lines = some.handed_out()["lines"].merge(some.handed_out()["orders"], left_on="order", right_on="nr")
    assert lines.customer.value_counts().sort_index().tolist() == [
        n for n in whole.counts("lines")[[3, 8, 9, 3]] if n
    ]  # fmt: skip
    moved = dataclasses.replace(whole, above={"lines": np.sort(whole.above["lines"][::-1] // 2)})
    assert (moved.fingerprints() != whole.fingerprints()).any()


def test_what_is_drawn_is_read_back_the_same():
    encoder = RelationalEncoder(ResolvedSchema.of(db.Schema.parse(TEXT).resolve({})))
    drawn = encoder.decode(encoder.uniform(60, np.random.default_rng(1)))
    again = open_related(drawn).load(encoder.schema).content
    for name, frame in drawn.frames.items():
        pd.testing.assert_frame_equal(again.frames[name], frame, check_dtype=False)
    assert (again.above["lines"] == drawn.above["lines"]).all()
    assert encoder.compact(again).shape == (60, encoder.layout.counted_width)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    foreign_key: order\n    max_children: 4\n    columns:\n      order: {type: id}\n",
         "    key: line\n    foreign_key: order\n    max_children: 4\n    columns:\n      order: {type: id}\n"
         "      line: {type: id}\n", "lines hangs on itself|orders hangs on itself"),
        ("    key: nr\n    parent", "    parent", "orders is a parent; name its key"),
        ("max_children: 3", "max_children: 900", "may have 3,600 rows") ,
        ("      kind: {", "      rows of lines: {", "as its rows are counted"),
        ("orders.total, of: lines.price", "customers.since, of: lines.price", "for its parent"),
        ("[customers.since, orders.day]", "[customers.since, lines.sent]", "not parent and child"),
    ],
)  # fmt: skip
def test_what_no_levels_could_be_is_refused(old, new, said):
    assert old in TEXT
    text = TEXT.replace("parent: customers", "parent: lines") if "itself" in said else TEXT
    text = text.replace(old, new).replace("max_children: 4", "max_children: 400" if "900" in new else "max_children: 4")
    with pytest.raises(SchemaError, match=said.replace("3,600", "360,000")):
        db.Schema.parse(text)


def test_a_unit_pays_for_the_rows_of_all_levels():
    schema = RelationalSchema.of(db.Schema.parse(TEXT))
    assert schema.children == ("orders", "lines")
    assert (schema.cells_of("lines.item", "values"), schema.most_of_parent("lines")) == (12, 4)
    assert "orders.nr names a row of one customer alone" in schema.assumed
