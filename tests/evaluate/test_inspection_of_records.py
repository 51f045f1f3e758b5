"""Inspecting rows and series: each fault that is planted is found by its own sign, and a correct run has none."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import Series
from doublure.errors import SettingError
from doublure.evaluate import inspect
from doublure.schema import Schema

TABLE = """
doublure: 1
kind: table
unit: {name: person}
units: 4000
columns:
  weight: {type: real, bounds: [0, 200], precision: 1, missing: false}
  girth: {type: real, bounds: [0, 200], precision: 1, missing: false}
  town: {type: category, values: [a, b, c, d], missing: false}
  ill: {type: category, values: ["no", "yes"], missing: false, roles: [target]}
"""
SERIES = """
doublure: 1
kind: series
unit: {name: meter}
units: 500
series: {time: at, length: 24, step: 1h, gaps: drop}
channels:
  use: {type: real, bounds: [0, 100], precision: 3, missing: false}
  heat: {type: real, bounds: [0, 100], precision: 3, missing: false}
"""
SEEN = 1_500


def rows(n, rng):
    weight = rng.normal(80, 12, n).clip(30, 190).round(1)
    girth = (weight * 0.6 + rng.normal(0, 5, n)).clip(10, 190).round(1)
    ill = (weight + rng.normal(0, 4, n)) > 85
    return pd.DataFrame(
        {
            "weight": weight,
            "girth": girth,
            "town": pd.Categorical.from_codes(rng.integers(4, size=n), ["a", "b", "c", "d"]),
            "ill": pd.Categorical.from_codes(ill.astype(int), ["no", "yes"]),
        }
    )


def days(n, rng):
    hours = np.arange(24)
    course = np.exp(-((hours - 8) ** 2) / 8) + 2 * np.exp(-((hours - 19) ** 2) / 10)
    use = 12 * course * rng.uniform(0.6, 1.4, (n, 1)) + rng.normal(5, 1.5, (n, 24))
    heat = 60 + 5 * np.cos(hours * np.pi / 12) + rng.normal(0, 3, (n, 24))
    return np.clip(np.stack([use, heat], axis=2), 0, 100)


@dataclass(frozen=True)
class Pretended:
    """A synthesizer of rows or series that something may have been done to, in a quarter of them."""

    schema: Any
    broken: Any = None
    share: float = 0.25
    run: Any = field(default_factory=dict)

    guarantee = SimpleNamespace(kind="dp", sentence="claim of dp", epsilon=1.0, delta=1e-5)
    plan = SimpleNamespace(method="statistics", settings=None)

    def draw(self, n, *, seed=None):
        rng = np.random.default_rng(seed)
        made = rows(n, rng) if self.schema.kind == "table" else days(n, rng)
        if self.broken:
            made = self.broken(made, rng.random(n) < self.share, rng)
        if self.schema.kind == "table":
            return made
        return Series(values=made, channels=("use", "heat"), attributes=pd.DataFrame(index=range(n)))


def pounds(table, which, rng):
    table.loc[which, "weight"] = (table.loc[which, "weight"] / 2.2).round(1)
    return table


def exchanged(table, which, rng):
    table.loc[which, ["weight", "girth"]] = table.loc[which, ["girth", "weight"]].to_numpy()
    return table


def one_weight(table, which, rng):
    table.loc[which, "weight"] = 77.7
    return table


def one_row(table, which, rng):
    table.loc[which] = table.iloc[[0] * int(which.sum())].set_axis(table.index[which])
    return table


def wrong_labels(table, which, rng):
    table.loc[which, "ill"] = np.where(table.loc[which, "ill"] == "yes", "no", "yes")
    return table


def other_rows_weights(table, which, rng):
    table.loc[which, "weight"] = rng.permutation(table.loc[which, "weight"].to_numpy())
    return table


def a_town_lost(table, which, rng):
    table.loc[table["town"] == "b", "town"] = "a"
    return table


ROW_FAULTS = [
    (pounds, "below_weight"), (exchanged, "exchanged_weight_girth"), (one_weight, "constant_weight"),
    (one_row, "alike"), (wrong_labels, "label_ill"), (a_town_lost, "rare_town_1"),
]  # fmt: skip


def late(values, which, rng):
    values[which] = np.roll(values[which], 4, axis=1)
    return values


def tenfold(values, which, rng):
    values[which, :, 0] = np.clip(values[which, :, 0] * 10, 0, 100)
    return values


def stuck(values, which, rng):
    values[which, :, 1] = values[which, :1, 1]
    return values


def channels_exchanged(values, which, rng):
    values[which] = values[which][:, :, ::-1]
    return values


def one_day(values, which, rng):
    values[which] = values[0]
    return values


SERIES_FAULTS = [
    (late, "shifted_use_4"), (tenfold, "outside_use"), (stuck, "constant_heat"), (one_day, "alike"),
    (channels_exchanged, "exchanged_use_heat"),
]  # fmt: skip


def inspected(text, broken, **changes):
    schema = Schema.parse(text).resolve({})
    right = [Pretended(schema)] * 5
    return inspect(Pretended(schema, broken, **changes), right, images=SEEN, seed=1)


@pytest.mark.parametrize(("broken", "key"), ROW_FAULTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_fault_in_a_quarter_of_the_rows_is_found_by_its_sign(broken, key):
    found = inspected(TABLE, broken)
    assert key in [entry.key for entry in found.found]
    assert found.records == "rows"
    assert found.slices == ()


def test_rows_that_were_joined_wrongly_look_torn():
    """Weakest of the signs: many weights are likely beside many girths."""
    found = inspected(TABLE, other_rows_weights, share=0.6)
    assert "torn" in [entry.key for entry in found.found]


@pytest.mark.parametrize(("broken", "key"), SERIES_FAULTS, ids=lambda each: getattr(each, "__name__", each))
def test_a_fault_in_a_quarter_of_the_series_is_found_by_its_sign(broken, key):
    found = inspected(SERIES, broken)
    assert key in [entry.key for entry in found.found]


@pytest.mark.parametrize("text", [TABLE, SERIES])
def test_nothing_stands_out_where_nothing_is_wrong(text):
    found = inspected(text, None)
    assert [entry.key for entry in found.found] == []
    assert "Nothing stands out" in str(found)


def test_rows_that_were_all_copied_leave_no_share_changed():
    """What the documentation says cannot be found: twice as many of everything are the same shares."""
    schema = Schema.parse(TABLE).resolve({})
    values = Pretended(schema).draw(3000, seed=5)
    twice = pd.concat([values, values], ignore_index=True)
    for name in ("weight", "town"):
        assert twice[name].value_counts(normalize=True).equals(values[name].value_counts(normalize=True))


def test_rows_and_series_say_nothing_alone_and_other_records_are_refused():
    table, series = (Pretended(Schema.parse(text).resolve({})) for text in (TABLE, SERIES))
    for alone in (table, series):
        with pytest.raises(SettingError, match="alone do not say"):
            inspect(alone, images=10)
    with pytest.raises(SettingError, match="makes other rows"):
        inspect(table, [series], images=10)
    narrow = Pretended(Schema.parse(TABLE.replace("[a, b, c, d]", "[a, b, c]")).resolve({}))
    with pytest.raises(SettingError, match="makes other rows"):
        inspect(table, [narrow], images=10)


def test_what_it_costs_is_told_first_and_the_page_calls_the_records_by_their_name():
    told: list[str] = []
    listener = SimpleNamespace(stage=lambda name, total=None: told.append(name), at=lambda done: None)
    schema = Schema.parse(TABLE).resolve({})
    found = inspect(Pretended(schema), [Pretended(schema)] * 2, images=300, progress=listener)
    assert told[0] == "draw 1,500 synthetic rows, train no network"
    page = found.to_html()
    assert "Is something wrong with these rows?" in page
    assert "Rows that" in page
    assert "Sample images" not in page
