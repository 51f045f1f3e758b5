"""Identities between numbers: found by a noisy count, kept by every row, and none where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods.statistics.tables import plan as tables_plan
from doublure.methods.statistics.tables.identities import (
    Identity,
    decided_identities,
    holding_identities,
    identities_share,
    proposed_identities,
)
from doublure.methods.statistics.tables.nodes import NoisyCounts
from doublure.networks.tree import TreeGenerator
from doublure.networks.tree_identities import KeptIdentities

ROWS = 5000
BOUNDS = {
    "loan": 40_000, "paid": 40_000, "left": 40_000, "fee": 500, "tax": 500, "total": 1000, "weekly_pay": 2000,
    "yearly_pay": 104_000,
}  # fmt: skip


def schema(rows: int = ROWS, names: Any = BOUNDS, more: str = "") -> db.Schema:
    columns = "".join(f"  {name}: {{type: integer, bounds: [0, {BOUNDS[name]}]}}\n" for name in names)
    return db.Schema.parse(
        f"doublure: 1\nkind: table\nunit: {{name: row, id: none}}\nunits: {rows}\ndefaults: {{missing: false}}\n"
        f"columns:\n{columns}  grade: {{type: category, values: [A, B, C]}}\n{more}"
    )


def loans(kept: float = 1.0, seed: int = 0) -> pd.DataFrame:
    """Return loans of which so many rows keep fee + tax = total, and all keep the other two identities."""
    draw = np.random.default_rng(seed)
    loan = np.where(
        draw.random(ROWS) < 0.6, draw.choice([5000, 10_000, 15_000], ROWS), draw.integers(1000, 40_001, ROWS)
    )
    paid = (loan * draw.beta(2, 3, ROWS)).astype(int)
    fee, tax = (draw.gamma(2, mean, ROWS).round().clip(0, 500).astype(int) for mean in (20, 10))
    total = np.where(draw.random(ROWS) < kept, fee + tax, draw.permutation(fee + tax) + 1)
    weekly = draw.normal(600, 150, ROWS).round().clip(0, 2000).astype(int)
    return pd.DataFrame({
        "loan": loan, "paid": paid, "left": loan - paid, "fee": fee, "tax": tax, "total": total.clip(0, 1000),
        "weekly_pay": weekly, "yearly_pay": weekly * 52, "grade": draw.choice(list("ABC"), ROWS),
    })  # fmt: skip


def fitted(frame: pd.DataFrame, own: db.Schema, folder: Any, **settings: Any) -> Any:
    small = {"components": 16, "starts": 1, "fit_steps": 50}
    plan = db.plan(own, method="statistics", epsilon=1.0, delta=1e-6, **small, **settings)
    book = db.Ledger.create(folder / "a.ledger", dataset="rows", epsilon=1.0, delta=1e-4)
    return db.fit(frame, plan, ledger=book, seed=1, out=folder / "run", progress=False)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("planted")
    return fitted(loans(), schema(), folder, identities=12), folder / "run"


def test_planted_identities_are_kept_by_every_row(planted):
    rows = planted[0].sample(4 * ROWS, seed=3)
    assert (rows["fee"] + rows["tax"] == rows["total"]).all()
    assert (rows["paid"] + rows["left"] == rows["loan"]).all()
    assert (rows["weekly_pay"] * 52 == rows["yearly_pay"]).all()
    for name, most in BOUNDS.items():
        assert rows[name].between(0, most).all()


def test_what_is_computed_leaves_the_columns_as_they_were(planted):
    """Within 15 %: at ε = 1 noise moved the mean of one of these eight columns by 8 to 11 % in a third of the fits."""
    real, rows = loans(), planted[0].sample(4 * ROWS, seed=3)
    for name in BOUNDS:
        assert rows[name].mean() == pytest.approx(real[name].mean(), rel=0.15)
    assert (rows["loan"] == 10_000).mean() == pytest.approx((real["loan"] == 10_000).mean(), abs=0.03)


def test_rows_that_were_asked_for_keep_them_too(planted):
    for given in (
        {"total": (100, 120)},
        {"fee": 10, "tax": (0, 20)},
        {"loan": 15_000},
        {"yearly_pay": (26_000, 52_000)},
    ):
        rows = planted[0].sample(300, given=given, seed=1)
        assert (rows["fee"] + rows["tax"] == rows["total"]).all()
        assert (rows["paid"] + rows["left"] == rows["loan"]).all()
        assert (rows["weekly_pay"] * 52 == rows["yearly_pay"]).all()
        for name, wanted in given.items():
            low, high = wanted if isinstance(wanted, tuple) else (wanted, wanted)
            assert rows[name].between(low, high).all()


def test_a_loaded_run_keeps_them(planted):
    again = db.load(planted[1])
    assert again.sample(500, seed=2).equals(planted[0].sample(500, seed=2))


def test_the_internal_report_says_what_was_found(planted):
    report = db.evaluate.report(planted[0], loans(), progress=False)
    (note,) = [own for own in report.measured.notes if own.startswith("Found by noise")]
    assert "fee + tax = total" in note
    assert "paid + left = loan" in note
    assert "weekly_pay × 52 = yearly_pay" in note


def test_missing_cells_stay_missing(tmp_path):
    frame, draw = loans(), np.random.default_rng(5)
    frame["total"] = frame["total"].astype("Int64")
    frame.loc[draw.random(ROWS) < 0.3, "total"] = pd.NA
    own = db.Schema.parse(schema().to_yaml().replace("1000], missing: false", "1000], missing: true"))
    rows = fitted(frame, own, tmp_path).sample(2000, seed=3)
    known = rows["total"].notna()
    assert 0.6 < known.mean() < 0.8
    assert (rows["fee"] + rows["tax"] == rows["total"])[known].all()


def scale(own: db.Schema, count: int) -> float:
    plan = db.plan(own, method="statistics", epsilon=1.0, delta=1e-6, identities=count)
    (event,) = [access.event for access in plan.touches if access.purpose == tables_plan.IDENTITIES]
    return float(event.scale)


def test_no_false_identity_is_found_among_a_thousand_draws():
    """Of fee + tax = total, which four of five rows keep, and of what hardly a row does."""
    frame, draw, noise = loans(kept=0.8), np.random.default_rng(2), scale(schema(), 12)
    wrong = [("fee", "tax", "total"), ("paid", "fee", "loan"), ("left", "tax", "loan"), ("fee", "total", "tax")]
    counts = [np.array([own := int((frame[a] + frame[b] == frame[c]).sum()), ROWS - own, 0]) for a, b, c in wrong]
    assert counts[0][0] > 0.75 * ROWS
    for _ in range(1000):
        noisy = [NoisyCounts(counts=own + np.rint(draw.normal(0, noise, 3)), variance=noise**2) for own in counts]
        named = [Identity(names=(c, a, b), weights=(-1, 1, 1)) for a, b, c in wrong]
        assert not holding_identities([*zip(named, noisy, strict=True)])


def test_a_true_identity_is_found_as_often_as_is_said():
    draw, noise = np.random.default_rng(2), scale(schema(), 12)
    assert noise <= ROWS / 40
    own = Identity(names=("total", "fee", "tax"), weights=(-1, 1, 1))
    true = np.array([ROWS, 0, 0])
    found = sum(
        len(holding_identities([(own, NoisyCounts(counts=true + draw.normal(0, noise, 3), variance=noise**2))]))
        for _ in range(1000)
    )
    assert found >= 965


def test_an_end_to_end_table_without_an_identity_has_none(tmp_path):
    found = fitted(loans(kept=0.8), schema(names=["fee", "tax", "total"]), tmp_path)
    assert isinstance(found.generator, TreeGenerator)
    assert found.generator.tree.identities is None
    assert tables_plan.IDENTITIES in [access.purpose for access in found.plan.touches]


def test_the_plan_says_what_is_looked_for_and_its_price():
    said = str(db.plan(schema(), method="statistics", epsilon=1.0, delta=1e-6).explain())
    assert "Identities: a count of the rows in which each holds, for 0." in said
    assert "fee + tax = total, weekly_pay × 52 = yearly_pay" in said
    more = str(db.plan(schema(), method="statistics", epsilon=1.0, delta=1e-6, identities=5).explain())
    assert "weekly_pay × 52 = yearly_pay, 3 that noisy answers allow" in more


def test_nothing_is_counted_where_nothing_public_proposes_it_or_noise_cannot_decide():
    plain = schema(names=["loan", "fee"])
    assert proposed_identities(plain) == []
    assert db.plan(plain, method="statistics", epsilon=1.0, delta=1e-6).settings.identities == 0
    few = db.plan(schema(rows=200), method="statistics", epsilon=0.5, delta=1e-6)
    assert few.settings.identities == 0
    assert tables_plan.IDENTITIES not in [access.purpose for access in few.touches]


def test_a_table_without_a_proposal_is_counted_as_before():
    own = db.Schema.load(db.datasets.adult_schema_path())
    assert proposed_identities(own) == []
    plan = db.plan(own, method="statistics", epsilon=1.0, delta=1e-6)
    assert tables_plan.IDENTITIES not in [access.purpose for access in plan.touches]


def test_round_bounds_alone_propose_nothing():
    rounded = "".join(
        f"  {name}: {{type: integer, bounds: [0, {most}]}}\n"
        for name, most in (("chol", 2000), ("trig", 3000), ("time", 5000), ("cost", 100_000), ("monthly_cost", 1000))
    )
    own = db.Schema.parse(
        "doublure: 1\nkind: table\nunit: {name: row, id: none}\nunits: 9000\ndefaults: {missing: false}\n"
        f"columns:\n{rounded}"
    )
    assert proposed_identities(own) == []


def test_more_than_noise_can_decide_is_refused():
    with pytest.raises(SettingError, match="identities"):
        db.plan(schema(), method="statistics", epsilon=1.0, delta=1e-6, identities=900)
    with pytest.raises(SettingError, match="identities"):
        db.plan(schema(names=[]), method="statistics", epsilon=1.0, delta=1e-6, identities=1)


def test_columns_of_rules_are_left_to_the_rules():
    ruled = schema(more="constraints:\n  - sum: {total: total, of: [fee, tax]}\n")
    assert [str(own) for own in proposed_identities(ruled)] == ["weekly_pay × 52 = yearly_pay"]


def test_names_propose_a_total_of_many_parts():
    own = db.Schema.parse(
        "doublure: 1\nkind: table\nunit: {name: row, id: none}\nunits: 5000\ndefaults: {missing: false}\ncolumns:\n"
        + "".join(
            f"  {name}: {{type: real, bounds: [0, {most}], precision: 2}}\n"
            for name, most in (("paid_rent", 95), ("paid_tax", 70), ("paid_food", 20), ("paid_total", 200))
        )
    )
    (found,) = proposed_identities(own)
    assert found.names == ("paid_total", "paid_food", "paid_rent", "paid_tax")
    assert found.slack == 2  # four numbers, each rounded by half a cent


def test_the_share_is_that_of_the_rule():
    for seen in (500.0, 1350.0, 6600.0):
        count = decided_identities(seen)
        assert identities_share(count, seen) <= 0.02 + 1e-4
        assert seen * (identities_share(count, seen) / max(count, 1)) ** 0.5 >= 40 or not count


@pytest.mark.parametrize(
    "odd",
    [
        {"weights": np.array([[1, 1]])}, {"slack": np.array([0, 0])}, {"computed": np.array([3])},
        {"computed": np.array([-1])}, {"ends": np.array([[0, 5]])}, {"weights": np.array([[0, 1, -1]])},
        {"ends": np.array([[0, 2**62]] * 3)},
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(odd):
    fits = {
        "weights": np.array([[1, 1, -1]]), "slack": np.array([0]), "computed": np.array([0]),
        "ends": np.array([[0, 5]] * 3),
    }  # fmt: skip
    KeptIdentities(**fits).refuse_unfit(3)
    with pytest.raises(ValueError, match="identities"):
        KeptIdentities(**fits | odd).refuse_unfit(3)


def test_rows_within_narrow_bounds_keep_two_identities_that_share_a_column():
    draw = np.random.default_rng(1)
    rows = draw.integers(0, 11, (3000, 5)).astype(np.float64)  # column 4 may be 11: missing
    rows[::7, 4] = 11
    own = KeptIdentities(
        weights=np.array([[1, 1, -1, 0, 0], [0, 0, 1, 1, -1]]), slack=np.zeros(2, dtype=np.int64),
        computed=np.array([2, 4]), ends=np.array([[0, 10]] * 5),
    )  # fmt: skip
    kept = own.keep(rows, {0: ((3, 8),)}, draw)
    known = rows[:, 4] <= 10
    assert (kept[:, 0] + kept[:, 1] == kept[:, 2]).all()
    assert (kept[:, 2] + kept[:, 3] == kept[:, 4])[known].all()
    assert (kept[~known, 4] == 11).all()
    assert kept[known].max() <= 10
    assert kept.min() >= 0
    assert not own.broken(kept).any()
