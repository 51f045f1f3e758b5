"""Wide tables: few of very many pairs, and what is held of each; compared with forming everything at once."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods.statistics.tables import pair_errors, plan, target_fit
from doublure.methods.statistics.tables.noisy_tables import NoisyTables
from doublure.methods.statistics.tables.pair_errors import AllPairs, ChosenPairs
from doublure.methods.statistics.tables.tree_fit import fit_factors
from doublure.networks import swapped_tables, tree_draw, tree_tables

SIZES = [3, 9, 2, 17, 8]
PAIRS = [(0, 1), (1, 3), (2, 4), (4, 3)]


def columns(count: int, kind: str = "{type: category, values: [a, b, c], missing: false}") -> str:
    return "".join(f"  c{number}: {kind}\n" for number in range(count))


def schema_of(count: int, units: int, **kind: str) -> db.Schema:
    return db.Schema.parse(f"doublure: 1\nkind: table\nunits: {units}\ncolumns:\n{columns(count, **kind)}")


def event(made: db.Plan, purpose: str) -> Any:
    return next(access.event for access in made.touches if access.purpose == purpose)


# -- which pairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [500, 5_000, 50_000])
@pytest.mark.parametrize("count", [5, 14, 60, 300])
def test_as_many_pairs_are_scored_as_say_something(count, units):
    """All of them, or as many as keep the noise at a fifth of the units, or eight a column."""
    made = db.plan(
        schema_of(count, units), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", structure="tree"
    )
    scores, every = event(made, plan.SCORES), count * (count - 1) // 2
    assert min(8 * count, every) <= scores.tables <= every
    if scores.tables > 8 * count:
        assert scores.scale <= 0.2002 * units
    if scores.tables < every:
        assert scores.scale >= 0.197 * units  # no fewer than that
    counted = event(made, plan.PAIRS).tables // plan.COPIES[plan.PAIRS]
    assert min(2 * count, every) <= counted <= min(8 * count, every)
    assert counted <= scores.tables


@pytest.mark.parametrize(
    ("over_noise", "groups", "fine"),
    [(0, 16, 1), (100, 16, 12), (400, 16, 24), (1500, 30, 48), (3000, 43, 67), (1e6, 48, 96)],
)
def test_groups_grow_with_the_root_of_units_over_noise(over_noise, groups, fine):
    assert plan.groups_for(over_noise) == groups
    assert plan.fine_groups(over_noise) == fine


def test_a_column_is_joined_to_more_groups_where_noise_is_little(monkeypatch, tmp_path):
    values = np.random.default_rng(0).integers(0, 100, (4000, 2))
    frame = pd.DataFrame({name: values[:, place].astype(str) for place, name in enumerate(("c0", "c1"))})
    schema = schema_of(2, 4000, kind="{type: integer, bounds: [0, 99], missing: false}")
    sizes = []

    def seen(tables: NoisyTables) -> None:
        sizes.append([node.size for node in tables.nodes])
        raise _Seen

    monkeypatch.setattr(NoisyTables, "_count_tree", seen)
    for number, (epsilon, own) in enumerate([(0.05, {}), (50.0, {}), (50.0, {"groups": 12})]):
        made = db.plan(schema, method="statistics", epsilon=epsilon, delta=1e-6, accountant="rdp", **own)
        ledger = db.Ledger.create(tmp_path / f"ledger{number}", dataset="made up", epsilon=100.0, delta=0.1)
        with pytest.raises(_Seen):
            db.fit(frame, made, ledger=ledger, seed=0)
    assert max(sizes[0]) <= 18
    assert min(sizes[1]) >= 36
    assert max(sizes[2]) <= 15


class _Seen(Exception):
    pass


def test_how_many_may_be_said():
    made = db.plan(
        schema_of(60, 5_000), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", scored=77, paired=33
    )
    assert (event(made, plan.SCORES).tables, event(made, plan.PAIRS).tables) == (77, 33 * plan.COPIES[plan.PAIRS])


def test_columns_are_kept_even_with_the_nearest_along_the_tree(monkeypatch):
    monkeypatch.setattr(tree_tables, "_BESIDE", 2)
    #        0 ─ 1 ─ 2 ─ 4,  0 ─ 3 ─ 5
    found = [own.tolist() for own in tree_tables._beside([-1, 0, 1, 0, 2, 3])]
    assert found == [[], [0], [0, 1], [0, 1], [1, 2], [0, 3]]


# -- what is held of a pair --------------------------------------------------------------------------------------------


def noisy_tables(seed: int) -> dict[tuple[int, int], Any]:
    draw = np.random.default_rng(seed)
    shapes = {pair: (SIZES[pair[0]], SIZES[pair[1]]) for pair in PAIRS}
    return {pair: (draw.random(shape), draw.random(shape) + 0.1) for pair, shape in shapes.items()}


def test_blocks_of_pairs_are_one_table_of_all_in_parts(monkeypatch):
    """The same error, cells and slopes, whichever way they are computed."""
    known, found = noisy_tables(1), []
    for most, kind in ((0.0, AllPairs), (2.0, ChosenPairs)):
        monkeypatch.setattr(pair_errors, "_MOST_COUNTED", most)
        errors = pair_errors.pair_errors(SIZES, known)
        assert isinstance(errors, kind)
        probabilities = np.random.default_rng(2).random((6, sum(SIZES)), dtype=np.float32)
        squared, gradient = errors.squared(probabilities)
        found.append((squared, errors.cells, gradient))
    (one, cells, slope), (other, same_cells, same_slope) = found
    assert one == pytest.approx(other, rel=1e-5)
    assert cells == same_cells == sum(table.size for table, _ in known.values())
    np.testing.assert_allclose(slope, same_slope, rtol=1e-4, atol=1e-5)
    starts, rows = np.cumsum([0, *SIZES]), probabilities.astype(np.float64)

    def by_hand(rows):
        total = 0.0
        for (left, right), (table, precision) in known.items():
            one, other = (rows[:, starts[at] : starts[at + 1]] for at in (left, right))
            total += ((one.T @ other / len(rows) - table) ** 2 * precision).sum()
        return total

    assert one == pytest.approx(by_hand(rows), rel=1e-5)
    towards = np.random.default_rng(5).standard_normal(rows.shape)
    moved = (by_hand(rows + 1e-6 * towards) - by_hand(rows - 1e-6 * towards)) / 2e-6
    assert float((slope * towards).sum()) == pytest.approx(moved, rel=1e-4)


def test_memory_that_is_used_again_holds_nothing_of_the_last_use(monkeypatch):
    monkeypatch.setattr(pair_errors, "_MOST_COUNTED", 2.0)
    shared, draw = pair_errors.pair_errors(SIZES, noisy_tables(1)), np.random.default_rng(2)
    for components in (6, 9, 4, 6):
        probabilities = draw.random((components, sum(SIZES)), dtype=np.float32)
        squared, gradient = shared.squared(probabilities)
        kept = gradient.copy()
        fresh, slope = pair_errors.pair_errors(SIZES, noisy_tables(1)).squared(probabilities)
        shared.squared(draw.random((components, sum(SIZES)), dtype=np.float32))
        assert squared == fresh
        assert (gradient == kept).all()
        assert (slope == kept).all()


def test_raking_by_products_is_raking_row_by_row():
    draw = np.random.default_rng(4)
    chances, wanted = draw.random((3000, 7)) * draw.random(7), draw.dirichlet(np.ones(7))
    factor = np.ones(7)
    for _ in range(8):
        found = chances * factor
        found /= found.sum(1, keepdims=True)
        factor = factor * np.clip((wanted + 1e-6) / (found.mean(0) + 1e-6), 0.5, 2)
    np.testing.assert_allclose(tree_draw._raked(chances, wanted), factor, rtol=1e-10)


def test_fine_groups_have_the_shares_of_their_leaves_over_all_rows_after_raking():
    draw = np.random.default_rng(7)
    node = tree_tables.TreeNode(
        part=1, parent=0, starts=np.arange(6), widths=np.ones(6, dtype=np.int64), mass=draw.random(6) + 0.2,
        fine=np.arange(6), coarse=np.array([0, 0, 0, 1, 1, 2]), shares=np.ones((1, 3)) / 3, rake=np.ones(3),
        ties=np.ones((4, 3)), leaning=np.ones((1, 3)), inner=draw.random((4, 6)) + 0.1, missing=-1,
    )  # fmt: skip
    met = draw.integers(100, 900, (4, 3)).astype(float)
    inner = tree_draw._raked_within(node, met)
    np.testing.assert_allclose(inner @ node.membership, 1.0)  # given the parent, as many rows in each coarse group
    rows = (met[:, node.coarse] * inner).sum(0)
    mass = node.mass / (node.mass @ node.membership)[node.coarse] * met.sum(0)[node.coarse]
    np.testing.assert_allclose(rows, mass, rtol=1e-3)
    before = (met[:, node.coarse] * node.within).sum(0)
    assert abs(before - mass).max() > 50


def test_swaps_keep_the_surplus_of_each_cell():
    draw = np.random.default_rng(6)
    rows, values, sizes = 400, 3, np.array([4, 5])
    cells = np.stack([draw.integers(0, size, rows) for size in sizes], axis=1) + np.array([0, 4])
    codes, surplus = draw.integers(0, values, rows), draw.standard_normal((9, values)) * 6
    tables = [np.zeros((9, values)) for _ in range(2)]
    before, given = codes.copy(), surplus.copy()
    swapped_tables._exchange(codes, cells, surplus, np.arange(200), np.arange(200, 400))
    for table, own in zip(tables, (before, codes), strict=True):
        np.add.at(table, (cells.ravel(), np.repeat(own, 2)), 1)
    assert (before != codes).any()
    np.testing.assert_allclose(surplus - given, tables[1] - tables[0], atol=1e-12)
    assert (surplus**2).sum() < (given**2).sum()


def test_factors_of_joint_tables_have_the_margins_asked_for():
    """And are what proportional fitting of whole tables gives, cell by cell."""
    draw = np.random.default_rng(3)
    parent, child = draw.dirichlet(np.ones(6), 5), draw.dirichlet(np.ones(4), 5)
    weights = draw.dirichlet(np.ones(5))
    table = np.einsum("k,kp,kc->pc", weights, parent, child) * draw.uniform(0.8, 1.25, (6, 4))
    table[2] = 0.0
    table /= table.sum()
    ties, own, leaning = fit_factors(parent, child, weights, table)
    found = ties[None] * own[:, :, None] * leaning[:, None]
    joint = (table / np.maximum(table.sum(1, keepdims=True) * table.sum(0), 1e-15))[None]
    joint = joint * (parent * weights[:, None])[:, :, None] * child[:, None, :]
    for _ in range(25):
        joint *= (child * weights[:, None] / np.maximum(joint.sum(1), 1e-18))[:, None, :]
        joint *= (parent * weights[:, None] / np.maximum(joint.sum(2), 1e-18))[:, :, None]
        joint *= (table / np.maximum(joint.sum(0), 1e-18))[None]
    np.testing.assert_allclose(found, joint, atol=1e-12)
    np.testing.assert_allclose(found.sum(0), table, atol=1e-12)


def test_the_targets_fit_follows_the_slope_of_its_loss(monkeypatch):
    """What each number moves the loss by is what was computed beside it."""
    seen = []

    def looked_at(loss, begin, **given):
        towards = np.random.default_rng(6).standard_normal(len(begin))
        at = begin + 0.1 * np.random.default_rng(7).standard_normal(len(begin))
        moved = (loss(at + 1e-5 * towards)[0] - loss(at - 1e-5 * towards)[0]) / 2e-5
        seen.append((float(loss(at)[1] @ towards), moved))
        return minimize(loss, begin, **given)

    minimize = target_fit.optimize.minimize
    monkeypatch.setattr(target_fit.optimize, "minimize", looked_at)
    draw = np.random.default_rng(4)
    sizes = (3, 4)
    groups = np.stack([draw.integers(0, size, 500) for size in sizes], axis=1)
    likely = [draw.dirichlet(np.ones(2), size) for size in sizes]
    tables = [
        SimpleNamespace(counts=1000 * own / len(own) + draw.normal(size=own.shape), variance=1.0) for own in likely
    ]
    nodes = [
        SimpleNamespace(size=size, neighbours=np.append(np.ones(size - 1), 0.0), believed=np.full(size, 1000 / size))
        for size in sizes
    ]
    bias, effects = target_fit.fit_target(nodes, tables, (np.array([400.0, 600.0]), 0.1), groups, np.zeros((500, 2)))
    ((slope, moved),) = seen
    assert slope == pytest.approx(moved, rel=1e-5)
    assert bias.shape == (2,)
    assert effects.shape == (7, 2)
    logits = bias + effects[groups[:, 0]] + effects[3 + groups[:, 1]]
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    counted = np.stack([np.bincount(groups[:, 0], chances[:, value], 3) * 2 for value in range(2)], axis=1)
    apart = np.abs(counted - tables[0].counts)
    assert apart.max() < 0.2 * np.abs(tables[0].counts - tables[0].counts.mean(1, keepdims=True)).max() + 30


# -- from end to end ---------------------------------------------------------------------------------------------------


def wide(rows: int, count: int) -> pd.DataFrame:
    """Return columns of which every six follow from one number each."""
    draw = np.random.default_rng(5)
    hidden = draw.random((rows, -(-count // 6)))
    noise = draw.random((rows, count)) < 0.15
    codes = np.where(noise, draw.integers(0, 3, (rows, count)), (3 * hidden[:, np.arange(count) // 6]).astype(int))
    return pd.DataFrame(np.array(["a", "b", "c"])[codes], columns=[f"c{number}" for number in range(count)])


def test_a_wide_table_keeps_what_near_columns_say_of_one_another(tmp_path):
    """Of 60 columns eight pairs a column are scored; columns of one number go together, others do not."""
    rows, count = 2_000, 60
    real = wide(rows, count)
    made = db.plan(
        schema_of(count, rows), method="statistics", epsilon=8.0, delta=1e-6, accountant="rdp", components=32,
        fit_steps=100, scored=8 * count,
    )  # fmt: skip
    book = db.Ledger.create(tmp_path / "ledger", dataset="wide", epsilon=10.0, delta=0.1)
    found = db.fit(real, made, ledger=book, seed=1).sample(rows, seed=2)
    same = {
        near: [
            np.mean([(table[f"c{one}"].astype(str) == table[f"c{two}"].astype(str)).mean() for one, two in pairs])
            for table in (real, found)
        ]
        for near in (True, False)
        for pairs in [[pair for pair in combinations(range(count), 2) if (pair[0] // 6 == pair[1] // 6) == near]]
    }
    assert same[True][1] == pytest.approx(same[True][0], abs=0.08)
    assert same[True][0] > 0.75
    assert same[False][1] == pytest.approx(same[False][0], abs=0.02)


# -- whether pairs are counted at all ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "units", "structure"), [(2, 50, "columns"), (2, 500, "tree"), (20, 300, "columns"), (20, 5_000, "tree")]
)
def test_pairs_are_counted_where_they_lower_the_forecast_error(count, units, structure):
    made = db.plan(schema_of(count, units), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp")
    assert made.settings.structure == structure
    assert ("most pairs of so few records;" in made.explain()) == (structure == "columns")
    purposes = {access.purpose for access in made.touches}
    assert (plan.PAIRS in purposes) == (structure == "tree")
    more = db.plan(schema_of(count, units), method="statistics", epsilon=10.0, delta=1e-6, accountant="rdp")
    assert more.settings.structure == "tree"  # noise alone decides


@pytest.mark.parametrize(("epsilon", "structure"), [(0.15, "columns"), (10.0, "tree")])
def test_pairs_within_a_target_have_to_pay_too(epsilon, structure):
    text = "doublure: 1\nkind: table\nunits: 500\ndefaults: {missing: false}\ncolumns:\n"
    text += "".join(f"  c{at}: {{type: category, values: [a, b]}}\n" for at in range(20))
    text += "  t: {type: boolean, roles: [target]}\n"
    schema = db.Schema.parse(text)
    assert plan.plan_releases(schema, "t").pairs_within
    made = db.plan(schema, method="statistics", epsilon=epsilon, delta=1e-6, accountant="rdp")
    assert made.settings.structure == structure


def _narrow(wide: int) -> db.Schema:
    listed = {"type": "category", "values": [*"abcde"]}
    columns = {f"c{at}": listed for at in range(26 - wide)}
    columns |= {f"n{at}": {"type": "integer", "bounds": [0, 900]} for at in range(wide)}
    facts = {"doublure": 1, "kind": "table", "units": 780, "defaults": {"missing": False}, "columns": columns}
    return db.Schema.from_plain(facts)


@pytest.mark.parametrize(("noise", "together"), [(4.0, True), (5.0, False)])  # pairs alone would be better at both
def test_errors_of_columns_count_as_those_of_pairs_do(noise, together):
    assert (plan.better_together(_narrow(0), [""], noise) is not None) == together


def test_columns_of_a_narrow_table_are_counted_as_those_of_another():
    narrow, other = (plan.plan_releases(_narrow(wide), "").shares for wide in (0, 1))
    assert narrow[plan.COLUMNS] == other[plan.COLUMNS]


@pytest.mark.parametrize(
    ("epsilon", "roles", "structure", "within"),
    [(0.1, "[target]", "columns", ""), (1.0, "[target]", "tree", "digit"), (1.0, "[]", "columns", "")],
)
def test_a_target_of_many_values_is_not_lost_where_its_pairs_are_affordable(epsilon, roles, structure, within):
    """As 1,600 images of 64 pixels: any pair is mostly noise, and what all of them say of the digit is not."""
    text = "doublure: 1\nkind: table\nunits: 1600\ndefaults: {missing: false}\ncolumns:\n"
    text += "".join(f"  p{at}: {{type: integer, bounds: [0, 16]}}\n" for at in range(64))
    text += f"  digit: {{type: category, values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], roles: {roles}}}\n"
    made = db.plan(db.Schema.parse(text), method="statistics", epsilon=epsilon, delta=1e-5, accountant="rdp")
    assert (made.settings.structure, made.settings.within) == (structure, within)
    assert (plan.BY_TARGET in {access.purpose for access in made.touches}) == bool(within)
    for remedy in ("--set within=digit", """--set 'focus=["COLUMN & digit"]'"""):
        assert (remedy in made.explain()) == (structure == "columns" and roles == "[target]")


def test_columns_alone_are_drawn_independently(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(0, 6, 150)
    frame = pd.DataFrame({name: (values + at) % 6 for at, name in enumerate("abcd")} | {"t": values < 3})
    text = "doublure: 1\nkind: table\nunits: 150\ndefaults: {missing: false}\ncolumns:\n"
    text += "".join(f"  {name}: {{type: integer, bounds: [0, 5]}}\n" for name in "abcd")
    text += "  t: {type: boolean, roles: [target]}\n"
    ledger = db.Ledger.create(tmp_path / "a.ledger", dataset="a", epsilon=100, delta=0.1)
    made = db.plan(
        db.Schema.parse(text), method="statistics", epsilon=30, delta=1e-6, accountant="rdp", structure="columns"
    )
    syn = db.fit(frame, made, ledger=ledger, seed=1)
    rows = syn.sample(4000, seed=1).astype(int)
    assert np.abs(np.corrcoef(rows.to_numpy().T) - np.eye(5)).max() < 0.06
    assert np.abs(np.bincount(rows["a"], minlength=6) / 4000 - np.bincount(values, minlength=6) / 150).max() < 0.06
    assert syn.sample(200, seed=1, given={"t": True})["t"].all()


@pytest.mark.parametrize("asked", [{"within": "c0"}, {"focus": ("c0 & c1",)}, {"paired": 3}])
def test_what_asks_for_pairs_is_refused_beside_columns_alone(asked):
    with pytest.raises(SettingError, match="structure: counts no pair"):
        db.plan(schema_of(5, 500), method="statistics", epsilon=1.0, delta=1e-6, structure="columns", **asked)
    assert (
        db.plan(schema_of(14, 60), method="statistics", epsilon=1.0, delta=1e-6, **asked).settings.structure == "tree"
    )


def test_a_pair_in_focus_is_counted_by_itself_and_not_within_a_target():
    """As the sum over a target's values it is noisier: a slope of two numbers was 26 times as wide as a naive one."""
    text = "doublure: 1\nkind: table\nunits: 20000\ndefaults: {missing: false}\ncolumns:\n"
    text += "".join(f"  n{at}: {{type: integer, bounds: [0, 40]}}\n" for at in range(6))
    text += "  again: {type: boolean, roles: [target]}\n"
    asked = ("n0 & n1", "n0 & again", "n1 & again")
    plans = [
        db.plan(db.Schema.parse(text), method="statistics", epsilon=1.0, delta=1e-5, accountant="rdp", focus=focus)
        for focus in ((), asked)
    ]
    assert [made.settings.pairs for made in plans] == ["within", "beside"]
    assert plans[1].settings.within == "again"
