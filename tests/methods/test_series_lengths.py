"""Series of different lengths and numbers beside them: what comes out, and by what one series moves each release."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from series_fits import answers_of, fit_series

import doublure as db
from doublure.data.series import Series, open_series
from doublure.encode.attribute_groups import GROUPS, codes_of, codes_within, groups_of, key_names
from doublure.encode.series import SeriesEncoder
from doublure.encode.series_places import SeriesPlaces
from doublure.errors import SettingError
from doublure.measures.series import classifiers
from doublure.methods.statistics.series import copula_plan
from doublure.schema import Schema

N, LENGTH, SHORTEST = 3000, 12, 3
TEXT = f"""
doublure: 1
kind: series
units: {N}
series: {{length: {LENGTH}, gaps: missing}}
channels:
  pulse: {{type: real, bounds: [0, 200], precision: 1, missing: false}}
  fever: {{type: real, bounds: [34, 42], precision: 1, missing: true}}
attributes:
  age: {{type: integer, bounds: [20, 89], missing: false}}
  hours: {{type: integer, bounds: [{SHORTEST}, {LENGTH}], missing: false, from_length: true}}
"""


def stays(n: int = N, seed: int = 0) -> dict[str, np.ndarray]:
    """Return stays: the old have a higher pulse, fever rises, and a tenth of it is missing."""
    draw = np.random.default_rng(seed)
    age = draw.integers(20, 90, n)
    steps = np.where(draw.random(n) < np.where(age > 60, 0.2, 0.8), SHORTEST + draw.integers(0, 3, n), LENGTH)
    pulse = 60 + age[:, None] + np.cumsum(draw.normal(0, 2, (n, LENGTH)), axis=1)
    fever = 37 + 0.1 * np.arange(LENGTH) + draw.normal(0, 0.5, (n, LENGTH))
    fever[draw.random((n, LENGTH)) < 0.1] = np.nan
    after = np.arange(LENGTH) >= steps[:, None]
    pulse[after], fever[after] = np.nan, np.nan
    return {"pulse": pulse.round(1), "fever": fever.round(1), "age": age}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    plan = db.plan(Schema.parse(TEXT), method="statistics", epsilon=10.0, delta=1e-5)
    return fit_series(tmp_path_factory.mktemp("lengths"), stays(), plan, TEXT + "  age:\n")


@pytest.fixture(scope="module")
def made(whole):
    return whole.sample(N, seed=2)


def real() -> Series:
    return open_series(stays()).load(Schema.parse(TEXT)).content


def test_series_end_as_often_as_they_did_at_each_step(made):
    found, wanted = (np.bincount(each.steps, minlength=LENGTH + 1) / N for each in (made, real()))
    assert np.abs(found - wanted).max() < 0.04
    assert found[6:LENGTH].sum() < 0.1


def test_nothing_stands_behind_an_end_and_gaps_before_it_are_as_many(made):
    assert np.isnan(made.values[~made.inside]).all()
    assert not np.isnan(made.channel("pulse")[made.inside]).any()
    assert np.isnan(made.channel("fever")[made.inside]).mean() == pytest.approx(0.1, abs=0.02)
    assert len(made.frame()) == made.steps.sum()


def test_each_step_has_the_values_of_those_that_reach_it(made):
    wanted = real()
    for name, spread in (("pulse", 20.0), ("fever", 0.5)):
        for figure in (np.nanmean, np.nanstd):
            apart = figure(made.channel(name), axis=0) - figure(wanted.channel(name), axis=0)
            assert np.abs(apart).mean() < 0.2 * spread


def test_a_number_goes_with_the_values(made):
    def together(each: Series) -> float:
        return float(np.corrcoef(each.attributes["age"].astype(float), each.channel("pulse")[:, 0])[0, 1])

    assert together(real()) > 0.95
    assert together(made) > 0.9


def test_attributes_go_together(whole, made):
    """Who is old stays long here, and so it is in what is made; what is asked for says how frequent the others are."""
    old = {each: content.attributes["age"].astype(float) > 60 for each, content in (("real", real()), ("made", made))}
    long = {each: content.steps == LENGTH for each, content in (("real", real()), ("made", made))}
    wanted, found = (long[each][old[each]].mean() - long[each][~old[each]].mean() for each in ("real", "made"))
    assert wanted > 0.4
    assert found == pytest.approx(wanted, abs=0.2)
    asked = whole.sample(1000, given={"hours": LENGTH}, seed=4).attributes["age"].astype(float)
    assert (asked > 60).mean() == pytest.approx(old["real"][long["real"]].mean(), abs=0.15)


def test_a_number_that_is_asked_for_is_what_comes(whole):
    assert set(whole.sample(40, given={"hours": 4}, seed=1).steps) == {4}
    some = whole.sample(200, given={"age": (33, 41)}, seed=1).attributes["age"]
    assert some.between(33, 41).all()
    assert some.nunique() > 4
    with pytest.raises(SettingError, match="given age"):
        whole.sample(1, given={"age": 95})


def test_the_same_seed_draws_the_same_numbers(whole, made):
    assert whole.sample(N, seed=2).attributes.equals(made.attributes)


def test_evaluation_knows_lengths_and_numbers(whole, monkeypatch):
    monkeypatch.setattr(classifiers, "ROUNDS", 10)
    found = db.evaluate.report(whole, stays(400), stays(300, seed=5))
    shown = found.model_dump_json()
    assert "20 to 26" in shown
    assert '"key":"missing"' in shown


# -- codes -----------------------------------------------------------------------------------------------------------


def test_what_is_after_the_end_is_a_code_of_its_own_and_a_gap_another():
    schema, content = Schema.parse(TEXT), real()
    places = SeriesPlaces(schema, bins=32)
    fever = places.compact(content)[:, LENGTH : 2 * LENGTH]
    cells, inside = len(places.cells[1]), content.inside
    assert (np.floor(fever[~inside]) == cells + 1).all()
    assert (np.floor(fever[inside & np.isnan(content.channel("fever"))]) == cells).all()
    assert places.sizes == [len(places.cells[0]) + 1, cells + 2]


def test_networks_see_the_last_value_go_on():
    schema, content = Schema.parse(TEXT), real()
    encoder = SeriesEncoder(schema)
    again = encoder.decode(encoder.encode(content))
    assert (again.steps == content.steps).mean() > 0.5  # lengths come back as the middle of their group
    pulse = encoder.compact(content)[:, :LENGTH]
    short = content.steps == SHORTEST
    assert (pulse[short, SHORTEST:] == pulse[short, SHORTEST - 1][:, None]).all()


def test_numbers_fall_in_groups_by_public_bounds():
    age = Schema.parse(TEXT).attributes["age"]
    assert groups_of(age) == GROUPS
    assert key_names(age)[0] == "20 to 26"
    assert codes_of(age, pd.Series([20, 26, 27, 89, 500])).tolist() == [0, 0, 1, 9, 9]
    assert codes_within(age, age.between(26, 27)) == (0, 1)
    cut = Schema.parse(TEXT.replace("bounds: [20, 89]", "bounds: [20, 89], edges: [30, 65]")).attributes["age"]
    assert key_names(cut) == ["20 to 29", "30 to 64", "65 to 89"]
    open_ = Schema.parse(TEXT.replace("bounds: [20, 89]", "bounds: undeclared")).attributes["age"]
    assert groups_of(open_) == GROUPS  # guessed, for a plan's estimates


def test_chains_take_no_series_of_different_lengths():
    with pytest.raises(SettingError, match="different lengths"):
        db.plan(Schema.parse(TEXT), method="statistics", epsilon=1.0, delta=1e-5, model="chains")
    few = TEXT.replace("bounds: [0, 200], precision: 1", "bounds: [0, 3], precision: 0")
    few = few.replace("bounds: [34, 42], precision: 1", "bounds: [0, 3], precision: 0")
    plan = db.plan(Schema.parse(few), method="statistics", epsilon=1.0, delta=1e-5)
    assert plan.settings.model == "copula"


# -- sensitivity -----------------------------------------------------------------------------------------------------

ODD = {
    "as short as can be": lambda one: _ending(one, SHORTEST),
    "whole": lambda one: _ending(stays(1, seed=77), LENGTH),
    "an extreme age": lambda one: {**one, "age": np.array([10**9])},
    "all gap": lambda one: {**one, "fever": np.full((1, LENGTH), np.nan)},
    "beyond every bound": lambda one: {**one, "pulse": one["pulse"] * 1e9, "fever": one["fever"] * -1e9},
}


def _ending(data, steps):
    values = {name: np.where(np.arange(LENGTH) < steps, np.nan_to_num(data[name], nan=40.0), np.nan)
              for name in ("pulse", "fever")}  # fmt: skip
    return {**data, **values}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return what every query of a fit answers, exactly, for any other records."""
    schema = Schema.parse(TEXT)
    plan = db.plan(schema, method="statistics", epsilon=10.0, delta=1e-5, grouped=["hours"], own_tables=True, bins=64)
    purposes, queries, ask = answers_of(
        lambda: fit_series(tmp_path_factory.mktemp("answers"), stays(), plan, TEXT),
        bins=plan.settings.bins,
        curve=plan.settings.curve,
    )
    return purposes, queries, lambda data: ask(open_series(data).load(schema, at_least=0).content)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("size", [1, 30])
def test_one_series_moves_each_release_by_what_it_is_priced_at(answers, odd, size):
    purposes, queries, ask = answers
    assert purposes == [
        copula_plan.TABLES, copula_plan.GAPS, copula_plan.ATTRIBUTES, copula_plan.OWN_TABLES, copula_plan.PRODUCTS,
        copula_plan.STEEPEST_LOOKS,
    ]  # fmt: skip
    base = {name: cells[:size] for name, cells in stays(40).items()}
    more = ODD[odd]({name: cells[:1] for name, cells in stays(1, seed=9).items()})
    both = {name: np.concatenate([base[name], more[name]]) for name in base}
    for query, one, other in zip(queries, ask(base), ask(both), strict=True):
        moved = (np.asarray(other.total, dtype=float) - np.asarray(one.total, dtype=float)) * (one.unit or 1.0)
        assert 0 < np.sqrt((moved**2).sum()) <= query.sensitivity.l2 * (1 + 1e-12)
        assert np.abs(moved).sum() <= query.sensitivity.l1 * (1 + 1e-12)
