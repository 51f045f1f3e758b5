"""A rare class that is the target: its count, what it borrows from all rows, and what plan, sample and card say."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.methods.statistics.tables import plan as releases
from doublure.methods.statistics.tables.borrowing import shrink_groups
from doublure.private.accounting import DiscreteGaussianEvent

FRAUDS, UNITS = 78, 20_000
SCHEMA = """
{{doublure: 1, kind: table, units: 20000, defaults: {{missing: false}}, columns: {{
  amount: {{type: real, bounds: [0, 100000], precision: 2}},
  kind: {{type: category, values: [pos, atm, web, wire, cheque]}},
  hour: {{type: integer, bounds: [0, 23]}},
  fraud: {{type: boolean, {fraud}}}}}}}
"""
TARGET = "roles: [target]"


def payments() -> pd.DataFrame:
    draw = np.random.default_rng(7)
    fraud = np.arange(UNITS) < FRAUDS
    usual = draw.choice(["pos", "atm", "web", "wire", "cheque"], UNITS, p=[0.5, 0.25, 0.15, 0.05, 0.05])
    return pd.DataFrame(
        {
            "amount": np.exp(draw.normal(3.5 + 2 * fraud, 1, UNITS)).round(2).clip(0, 1e5),
            "kind": np.where(fraud, draw.choice(["web", "wire"], UNITS), usual),
            "hour": draw.integers(0, 24, UNITS),
            "fraud": fraud,
        }
    )


def planned(fraud: str = TARGET, **settings: Any) -> db.Plan:
    schema = db.Schema.parse(SCHEMA.format(fraud=fraud))
    return db.plan(
        schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp",
        **{"components": 32, "starts": 1, "fit_steps": 60, **settings},
    )  # fmt: skip


def fitted(tmp_path, fraud: str = TARGET, seed: int = 0, **settings: Any) -> db.Synthesizer:
    made = planned(fraud, **settings)
    place = tmp_path / f"ledger{len(list(tmp_path.iterdir()))}"
    ledger = db.Ledger.create(place, dataset="payments", epsilon=9.0, delta=0.1)
    return db.fit(payments(), made, ledger=ledger, seed=seed, progress=False)


def event(made: db.Plan, purpose: str = releases.TARGET) -> DiscreteGaussianEvent | None:
    found = [access.event for access in made.touches if access.purpose == purpose]
    return found[0] if found else None  # type: ignore[return-value]


def apart(one: pd.Series, other: pd.Series) -> float:
    return float(one.value_counts(normalize=True).sub(other.value_counts(normalize=True), fill_value=0).abs().sum() / 2)


def test_a_rare_class_comes_as_often_as_its_own_count_allows(tmp_path):
    """Real: 78 of 20,000; without a count of its own 1 to 240 come out, and a class of noise alone in each column."""
    real, spread = payments(), event(planned()).scale
    kinds, hours, counts = [], [], []
    for seed in range(6):
        rows = fitted(tmp_path, seed=seed).sample(UNITS, seed=seed)
        frauds = rows[rows["fraud"]]
        counts.append(len(frauds))
        kinds.append(apart(frauds["kind"], real["kind"][real["fraud"]]))
        hours.append(apart(frauds["hour"] // 6, real["hour"] // 6))
    errors = np.abs(np.array(counts) - FRAUDS) / spread
    assert errors.max() < 3.5
    assert np.sqrt((errors**2).mean()) < 1.7  # six draws have more once in a thousand times
    whole = apart(real["kind"], real["kind"][real["fraud"]])
    assert whole > 0.7
    assert np.mean(kinds) < whole  # towards the frauds' own kinds, as far as noise allows
    assert np.mean(hours) < 0.2  # and where they are as all rows are, no noise is drawn


@pytest.mark.parametrize(
    ("fraud", "settings", "share"),
    [
        (TARGET, {}, 0.05),
        (TARGET, {"focus": ("fraud",)}, 0.2),
        (TARGET, {"target_share": 0.1}, 0.1),
        (TARGET, {"structure": "columns"}, 0.05),
        (TARGET, {"within": ""}, 0.05),
        ("roles: [target, condition], shares: {true: 0.0039, false: 0.9961}", {}, 0.0),
        ("roles: [target, condition], shares: {learn: 0.2}", {}, 0.0),
    ],
)
def test_the_share_of_the_count_is_a_public_rule(fraud, settings, share):
    made = planned(fraud, **settings)
    costs = {access.purpose: access.event.tables / access.event.scale**2 for access in made.training}
    assert costs.get(releases.TARGET, 0.0) / sum(costs.values()) == pytest.approx(share, abs=1e-3)


def test_no_target_has_no_count_and_an_earlier_plan_has_none():
    assert event(planned("missing: false")) is None
    said = planned("missing: false").to_json()["settings"]
    assert "target_share" not in said  # the hash of such a plan is what it was
    earlier = {name: value for name, value in planned().to_json()["settings"].items() if name != "target_share"}
    assert type(planned().settings).of_plan(earlier).target_share == 0.0


@pytest.mark.parametrize(
    ("fraud", "settings", "field"),
    [
        ("missing: false", {"target_share": 0.1}, "target_share"),
        (TARGET, {"target_share": 0.1, "focus": ("fraud",)}, "focus"),
        ("roles: [target, condition], shares: {true: 0.1, false: 0.9}", {"focus": ("fraud",)}, "focus"),
        (TARGET, {"structure": "columns", "groups": 8}, "structure"),
    ],
)
def test_a_setting_that_would_do_nothing_is_refused(fraud, settings, field):
    with pytest.raises(SettingError) as refused:
        planned(fraud, **settings)
    assert refused.value.field == field


def test_shares_that_are_known_are_kept(tmp_path):
    syn = fitted(tmp_path, "roles: [target, condition], shares: {true: 0.0039, false: 0.9961}")
    assert not any(table.columns == ("fraud",) for table in syn.tables)
    assert abs(syn.sample(60_000, seed=1)["fraud"].mean() - 0.0039) < 0.001
    said = syn.plan.explain().splitlines()
    assert any(line.startswith("Limit: fraud: values of fewer than") and "true (about 78)" in line for line in said)


def test_plan_sample_and_card_say_which_values_are_below_the_noise(tmp_path):
    syn = fitted(tmp_path)
    (table,) = [table for table in syn.tables if table.columns == ("fraud",)]
    counted = dict(zip(table.cells[0], table.counts.tolist(), strict=True))
    assert any(line.startswith("Forecast: rows of each value of fraud") for line in syn.plan.explain().splitlines())
    assert not any(
        line.startswith("Limit: fraud") for line in syn.plan.explain().splitlines()
    )  # nothing public says that a value is rare
    (said,) = [note for note in syn.notes if note.startswith("fraud: values of fewer than")]
    assert f"true (about {max(0, counted['true'])})" in said
    assert "false" not in said
    db.release(syn, tmp_path / "bundle", n=100, seed=1, progress=False)
    assert f"{said}." in json.loads((tmp_path / "bundle" / "card.json").read_text())["limits"]


def test_classes_borrow_only_what_noise_hides():
    rows, draw = np.array([9_900.0, 100.0]), np.random.default_rng(0)
    shares = np.array([0.4, 0.3, 0.2, 0.1])
    same, other = np.outer(shares, rows), np.stack([9_900 * shares, 100 * shares[::-1]], axis=1)
    loud, quiet = np.full((4, 2), 30.0**2), np.full((4, 2), 1.0)
    errors, noisy, spread = [], [], []
    for _ in range(50):
        counts = same + draw.normal(0, 30, same.shape)
        found, left = shrink_groups(counts, loud, rows)
        errors.append(np.abs(found - same)[:, 1].sum())
        noisy.append(np.abs(counts - same)[:, 1].sum())
        spread.append(left[:, 1].mean())
        assert np.abs(found - counts)[:, 0].max() < 1.0  # the class of nearly all rows keeps its own
    assert np.mean(spread) < loud.mean()
    assert np.mean(errors) < 0.65 * np.mean(noisy)
    found, _ = shrink_groups(other, quiet, rows)
    assert found == pytest.approx(other, abs=1.0)  # what noise does not hide stays


def test_the_count_of_a_target_of_many_values_joins_its_column(tmp_path):
    """A target that is not drawn last is a column like others, with one more count."""
    values = [f"v{n}" for n in range(12)]
    schema = db.Schema.parse(
        f"{{doublure: 1, kind: table, units: 3000, defaults: {{missing: false}}, columns: {{"
        f"x: {{type: integer, bounds: [0, 30]}}, y: {{type: category, values: [{', '.join(values)}], {TARGET}}}}}}}"
    )
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"x": draw.integers(0, 31, 3000), "y": np.array(values)[draw.binomial(11, 0.3, 3000)]})
    made = db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", structure="columns")
    assert made.settings.within == ""
    ledger = db.Ledger.create(tmp_path / "ledger", dataset="d", epsilon=9.0, delta=0.1)
    syn = db.fit(frame, made, ledger=ledger, seed=0, progress=False)
    rows = syn.sample(3000, seed=0)
    both = [event(made, purpose) for purpose in (releases.TARGET, releases.COLUMNS)]
    spread = 1 / math.sqrt(sum(own.tables / own.scale**2 for own in both) / 2)
    off = rows["y"].value_counts().reindex(values, fill_value=0) - frame["y"].value_counts().reindex(
        values, fill_value=0
    )
    assert np.sqrt((off**2).mean()) < 2 * spread
