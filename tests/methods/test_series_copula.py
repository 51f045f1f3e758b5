"""``statistics`` on time series by a copula: plans, releases, and that synthetic series resemble real ones."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import quick_estimates
import torch
from planting import plant
from series_fits import answers_of, fit_series
from tiers import exhaustive

import doublure as db
from doublure.errors import LostRun, SettingError
from doublure.methods.statistics.method import METHOD
from doublure.methods.statistics.series import copula_fit, copula_plan
from doublure.methods.statistics.series.covariance import ScoreMoments, ScoreProducts, estimate_moments
from doublure.methods.statistics.series.gap_chains import gap_chances
from doublure.methods.statistics.settings import CONSTANT_SHARE, GAP_SHARE, SeriesStatisticsSettings
from doublure.networks.copula import CopulaShape, over_gaps, places_at, shares_at
from doublure.planning import Plan
from doublure.private.accounting import epsilon_of
from doublure.private.mechanism import Mechanism
from doublure.private.queries.sums import BoundedSums
from doublure.schema import Schema

SERIES, LENGTH = 3000, 12
HEAD = f"doublure: 1\nkind: series\nunits: {SERIES}\nseries: {{length: {LENGTH}, gaps: missing}}\nchannels:\n"
POWER = "  kw: {type: real, bounds: [-8, 8], precision: 2, missing: false}\n"
HEAT = "  heat: {type: real, bounds: [0, 60], precision: 1, zero_inflated: true, missing: true}\n"
COUNT = "  people: {type: integer, bounds: [0, 30], missing: false}\n"
KIND = "attributes:\n  place: {type: category, values: [hill, coast], missing: false}\n"
WHOLE = HEAD + POWER + HEAT + COUNT + KIND
HOUSES = HEAD.replace("units:", "unit: {name: house, id: unit, max_records: 3}\nunits:") + POWER
DELTA = 1e-5


class Refused(Exception):
    """Stands for a process that is killed."""


def days(n: int = SERIES, seed: int = 0) -> dict[str, Any]:
    """Return days of power, of heat that goes with it and is off or missing for a while, and of people."""
    draw = np.random.default_rng(seed)
    coast = draw.random(n) < 0.4
    course = np.cumsum(draw.normal(0, 0.5, (n, LENGTH)), axis=1) + draw.normal(0, 1, (n, 1))
    kw = np.clip(course + np.sin(np.arange(LENGTH) / 2) + 1.5 * coast[:, None], -8, 8)
    heat = np.clip(20 + 6 * kw + draw.normal(0, 3, (n, LENGTH)), 0, 60).round(1)
    off = draw.random(n) < 0.15
    heat[off, 8:] = np.nan
    people = np.clip(np.round(4 + 2 * kw + draw.normal(0, 1, (n, LENGTH))), 0, 30)
    return {"kw": kw.round(2), "heat": heat, "people": people, "place": np.where(coast, "coast", "hill")}


def planned(text: str = WHOLE, **changes: Any) -> Plan:
    asked = {"epsilon": 10.0, "delta": DELTA} | changes
    return db.plan(db.Schema.parse(text), method="statistics", **asked)


def fitted(folder: Any, text: str = WHOLE, data: dict[str, Any] | None = None, **changes: Any) -> db.Synthesizer:
    return fit_series(folder, data or days(), planned(text, **changes), text)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Learnt from as many series as users' are which ones look real: how near it comes hangs on their number."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copula_plan, "LOOKED_AT", quick_estimates.MANY_SERIES)
        return fitted(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def made(whole):
    return whole.sample(SERIES, seed=2)


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_each_step_has_its_own_values(made):
    real = days()
    for name in ("kw", "heat", "people"):
        spread = np.nanstd(real[name])
        assert np.abs(np.nanmean(made.channel(name), axis=0) - np.nanmean(real[name], axis=0)).max() < 0.15 * spread
        assert np.abs(np.nanstd(made.channel(name), axis=0) - np.nanstd(real[name], axis=0)).max() < 0.15 * spread


def test_channels_go_together_step_by_step(made):
    real = days()
    for one, other in (("kw", "heat"), ("kw", "people"), ("heat", "people")):
        wanted, found = (correlation(data(one), data(other)) for data in (real.__getitem__, made.channel))
        assert wanted > 0.8
        assert found == pytest.approx(wanted, abs=0.08)


def correlation(one, other):
    both = ~np.isnan(one) & ~np.isnan(other)
    return np.corrcoef(one[both], other[both])[0, 1]


def test_steps_go_on_from_one_another(made):
    real = days()["kw"]
    for lag in (1, 3, 6):
        wanted, found = (correlation(kw[:, lag:], kw[:, :-lag]) for kw in (real, made.channel("kw")))
        assert found == pytest.approx(wanted, abs=0.08)


def test_gaps_are_as_long_and_where_they_were(made):
    gaps = np.isnan(made.channel("heat"))
    assert gaps[:, :8].mean() < 0.02
    assert gaps[:, 9:].mean() == pytest.approx(0.15, abs=0.03)
    assert gaps[gaps[:, 9], 10].mean() > 0.9
    assert not np.isnan(made.channel("kw")).any()


def test_attributes_have_their_own_series(whole):
    coast, hill = (whole.sample(1500, given={"place": place}, seed=3).channel("kw") for place in ("coast", "hill"))
    assert coast.mean() - hill.mean() == pytest.approx(1.5, abs=0.25)


def test_values_are_of_the_schema(made):
    people, heat = made.channel("people"), made.channel("heat")
    assert np.array_equal(people, np.round(people))
    assert (people.min(), people.max()) >= (0, 0)
    assert people.max() <= 30
    known = heat[~np.isnan(heat)]
    assert np.array_equal(known, np.round(known, 1))
    real = days()["heat"]
    assert (known == 0).mean() == pytest.approx((real[~np.isnan(real)] == 0).mean(), abs=0.02)


def test_an_attribute_that_makes_no_groups_shifts_the_mean(tmp_path):
    syn = fitted(tmp_path, HEAD + POWER + KIND, grouped=(), bins=64)
    shape = syn.generator.generator.shape
    assert shape.groups == shape.levels
    coast, hill = (syn.sample(1500, given={"place": place}, seed=3).channel("kw") for place in ("coast", "hill"))
    assert coast.mean() - hill.mean() == pytest.approx(1.5, abs=0.3)


@pytest.mark.parametrize("grouped", [("place",), ()])
def test_attributes_without_shares_are_as_frequent_as_the_sums_say(tmp_path, grouped):
    syn = fitted(tmp_path, HEAD + POWER + KIND, grouped=grouped, bins=64)
    assert syn.notes == ()
    real = (days()["place"] == "coast").mean()
    assert real == pytest.approx(0.4, abs=0.03)
    assert (syn.sample(4000, seed=3).attributes["place"] == "coast").mean() == pytest.approx(real, abs=0.03)
    half = syn.sample(100, given={"place": {"coast": 0.5, "hill": 0.5}}, seed=3).attributes["place"]
    assert (half == "coast").sum() == 50
    syn.save(tmp_path / "run")
    assert torch.equal(db.load(tmp_path / "run").generator.shares, syn.generator.shares)


def test_shares_of_attributes_stand_side_by_side_whichever_make_groups():
    shape = CopulaShape(
        sizes=(4,), missing=(False,), length=2, blocks=(2, 3, 2), grouped=(True, False, True), levels=2,
        own_tables=False, exact=False, calm=False,
    )  # fmt: skip
    one, other = np.array([0.9, 0.1]), np.array([0.3, 0.7])
    found = ScoreMoments(
        shares=np.einsum("a,b,c->abc", one, other, [0.5, 0.5]).ravel(), means=np.zeros((8, 2)),
        covariances=np.zeros((8, 2, 2)), effects=np.zeros((3, 2)), effect_shares=np.array([0.2, 0.5, 0.3]),
        shares_within=np.tile([0.2, 0.5, 0.3], (8, 1)), effect_pairs=np.diag([0.2, 0.5, 0.3]),
    )  # fmt: skip
    shares = copula_fit.attribute_shares(shape, found)
    assert shares.tolist() == pytest.approx([0.9, 0.1, 0.2, 0.5, 0.3, 0.3, 0.7])


def test_levels_are_groups_that_no_attribute_knows_of():
    shape = CopulaShape(
        sizes=(4,), missing=(False,), length=2, blocks=(2, 2), grouped=(True, False), levels=2,
        own_tables=False, exact=False, calm=False,
    )  # fmt: skip
    found = ScoreMoments(
        shares=np.array([0.1, 0.3, 0.6, 0.0]), means=np.zeros((4, 2)), covariances=np.zeros((4, 2, 2)),
        effects=np.zeros((2, 2)), effect_shares=np.array([0.5, 0.5]),
        shares_within=np.array([[1.0, 0.0], [0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]), effect_pairs=np.eye(2) / 2,
    )  # fmt: skip
    together, within = copula_fit.shares_by_attributes(shape, found)
    assert together.tolist() == pytest.approx([0.4, 0.6])
    assert within[0].tolist() == pytest.approx([(0.1 * 1 + 0.3 * 0.2) / 0.4, 0.3 * 0.8 / 0.4])
    assert within[1].tolist() == pytest.approx([0.5, 0.5])


SEASONS = """
doublure: 1
kind: series
unit: {name: day}
units: 3000
series: {length: 24, step: 1h}
channels:
  kw: {type: real, bounds: [0, 100], precision: 1, missing: false}
attributes:
  weekend: {type: boolean, missing: false}
  season: {type: ordinal, values: [1, 2, 3, 4], missing: false}
"""


@pytest.mark.parametrize(("epsilon", "levels"), [(1.0, 1), pytest.param(3.0, 1, marks=exhaustive), (10.0, 4)])
def test_attributes_that_all_make_groups_keep_their_shares(tmp_path, epsilon, levels):
    """With levels in each of their groups: once, that fit failed after its budget was spent."""
    draw, count = np.random.default_rng(0), 3000
    data = {
        "kw": np.clip(draw.normal(50, 10, (count, 24)).round(1), 0, 100),
        "weekend": draw.random(count) < 0.3,
        "season": draw.choice([1, 2, 3, 4], count, p=[0.1, 0.2, 0.3, 0.4]),
    }
    groups = {"grouped": ("weekend", "season"), "level_groups": levels, "bins": 64}
    syn = fitted(tmp_path, SEASONS, data, epsilon=epsilon, accountant="rdp", **groups)
    made = syn.sample(6000, seed=1).attributes
    (event,) = (access.event for access in syn.plan.touches if access.purpose == copula_plan.PRODUCTS)
    noise = event.noise_multiplier / CONSTANT_SHARE / count  # of a group's share; four have a weekend
    within = 4 * np.hypot(noise * np.sqrt(4 * levels), 0.5 / np.sqrt(6000))
    assert made["weekend"].mean() == pytest.approx(data["weekend"].mean(), abs=within)
    for season in (1, 2, 3, 4):
        own = made["season"].astype(int) == season
        assert own.mean() == pytest.approx((data["season"] == season).mean(), abs=within)
    assert epsilon == 1.0 or within < 0.06
    syn.save(tmp_path / "run")
    assert len(db.load(tmp_path / "run").sample(5, given={"season": 4, "weekend": True}, seed=1)) == 5


def test_few_series_and_much_noise_still_make_series(tmp_path):
    data = {name: cells[:40] for name, cells in days().items()}
    syn = fitted(tmp_path, WHOLE.replace(f"units: {SERIES}", "units: 40"), data, epsilon=0.5, delta=1e-3, bins=64)
    assert any("hardly agree" in warning for warning in syn.plan.warnings)
    assert syn.sample(100, seed=1).values.shape == (100, LENGTH, 3)


def test_all_series_the_same(tmp_path):
    data = {"kw": np.tile(np.arange(LENGTH) - 5.0, (1000, 1))}
    text = (HEAD + POWER).replace(f"units: {SERIES}", "units: 1000")
    found = fitted(tmp_path, text, data, candidates=1).sample(300, seed=1).channel("kw")
    assert np.abs(np.median(found, axis=0) - data["kw"][0]).max() < 0.5


@pytest.mark.parametrize("factor", [10, pytest.param(0.1, marks=exhaustive)])
def test_a_declared_number_that_is_wrong_sets_no_scale(tmp_path, factor):
    text = (HEAD + POWER).replace(f"units: {SERIES}", f"units: {round(SERIES * factor)}")
    real = days()["kw"]
    found = fitted(tmp_path, text, epsilon=30.0, bins=64, candidates=1).sample(1000, seed=1).channel("kw")
    assert np.abs(found.mean(0) - real.mean(0)).max() < 0.3
    assert np.abs(found.std(0) - real.std(0)).max() < 0.4


def test_several_series_of_a_unit(tmp_path):
    text = HOUSES.replace(f"units: {SERIES}", "units: 1000")
    data = days() | {"unit": np.repeat(np.arange(1000), 3)}
    syn = fitted(tmp_path, text, data, epsilon=30.0, bins=64, candidates=1)
    found = syn.sample(1000, seed=1).channel("kw")
    assert np.abs(found.mean(0) - data["kw"].mean(0)).max() < 0.25


def check_products_are_believed_as_far_as_a_whole_units_noise(folder, patch):
    """A unit of three series moves the sum by three: what is taken for its noise is so, or noise becomes covariance."""
    data = {"kw": days(120)["kw"], "unit": np.repeat(np.arange(40), 3)}
    plan = planned(HOUSES.replace(f"units: {SERIES}", "units: 40"), epsilon=30.0, accountant="rdp", bins=16)
    (event,) = (access.event for access in plan.touches if access.purpose == copula_plan.PRODUCTS)
    believed = []

    def told(moments: Any) -> None:
        believed.append(moments.deviations)
        raise Refused

    with patch.context() as one:
        one.setattr(copula_fit, "estimate_moments", told)
        with pytest.raises(Refused):
            fit_series(folder, data, plan, HOUSES)
    scale = 1 / CONSTANT_SHARE  # of the product of the constant with itself
    assert believed[0][0, 0] == pytest.approx(3 * event.noise_multiplier * scale / np.sqrt(2), rel=1e-3)


def test_products_are_believed_as_far_as_a_whole_units_noise(tmp_path_factory, monkeypatch):
    check_products_are_believed_as_far_as_a_whole_units_noise(tmp_path_factory.mktemp("as_it_is"), monkeypatch)
    plant(
        monkeypatch, copula_fit._Fit, "_latent", ("Sensitivity.of_length(self._most, 1)", "Sensitivity.of_length(1, 1)")
    )
    with pytest.raises(AssertionError):
        check_products_are_believed_as_far_as_a_whole_units_noise(tmp_path_factory.mktemp("planted"), monkeypatch)


@pytest.mark.parametrize("changes", [{"grouped": ()}, {"grouped": ("site",)}])
def test_a_plan_says_how_well_means_within_a_value_are_known(tmp_path, monkeypatch, changes):
    text = WHOLE + "  site: {type: category, values: [a, b, c], missing: false}\n"
    data = days() | {"site": np.array(["a", "b", "c"])[np.arange(SERIES) % 3]}
    plan, believed = planned(text, **changes), []

    def read(moments):
        believed.append(moments)
        raise Refused  # what follows from them says no more of it

    monkeypatch.setattr(copula_fit, "estimate_moments", read)
    with pytest.raises(Refused):
        fit_series(tmp_path, data, plan, text)
    (moments,) = believed
    own = moments.of_total[1, 1 + moments.shifts] / (SERIES / 2 * np.sqrt(LENGTH))  # of a place, which half of all have
    (line,) = (line for line in plan.explain().splitlines() if line.startswith("Within a value "))
    assert float(line.partition("place ±")[2].partition(",")[0]) == pytest.approx(own, rel=0.03)
    assert ("site ±" in line) is ("site" not in plan.settings.grouped)


def test_it_is_saved_loaded_and_released(whole, tmp_path):
    whole.save(tmp_path / "run")
    again = db.load(tmp_path / "run")
    assert np.array_equal(whole.sample(50, seed=8).values, again.sample(50, seed=8).values, equal_nan=True)
    db.release(again, tmp_path / "bundle", n=60, seed=1)
    card = json.loads((tmp_path / "bundle/card.json").read_text())
    assert (card["method"], card["executed"]) == ("statistics", True)
    assert "exact rounded normals" in card["guarantee"]["noise_source"]


# -- plans -------------------------------------------------------------------------------------------------------------


def test_what_is_planned_is_what_is_priced():
    """The noise of all releases is together that of one Gaussian of the plan's multiplier."""
    for records in (1, 3):
        unit = f"unit: {{name: meter, id: unit, max_records: {records}}}\n"
        plan = planned(WHOLE.replace("units:", unit + "units:"))
        by_purpose = {access.purpose: access.event for access in plan.touches}
        assert list(by_purpose) == list(copula_plan.shares(plan.schema, plan.settings))
        gaps = by_purpose.pop(copula_plan.GAPS)
        costs = [gaps.tables * (records / gaps.scale) ** 2]
        costs += [1 / event.noise_multiplier**2 for event in by_purpose.values()]
        assert sum(costs) == pytest.approx(1 / plan.noise_multiplier**2)
        assert costs[0] / sum(costs) == pytest.approx(GAP_SHARE)


def test_groups_follow_from_public_figures():
    few, many = (planned(HEAD.replace(f"units: {SERIES}", f"units: {n}") + POWER + KIND) for n in (20, 30_000))
    assert (few.settings.grouped, few.settings.level_groups, few.settings.own_tables) == ((), 1, False)
    assert (many.settings.grouped, many.settings.level_groups, many.settings.own_tables) == (("place",), 4, True)
    assert (few.settings.exact_tables, many.settings.exact_tables) == (False, True)
    assert many.settings.cut_noise == pytest.approx(few.settings.cut_noise * 20 / 30_000, rel=0.01)
    assert "Shares of the budget" in many.explain()
    assert "Groups: place x 4 levels" in many.explain()


def test_chains_are_kept_for_few_values():
    state = "  state: {type: integer, bounds: [0, 5], missing: false}\n"
    assert planned(HEAD + state).settings.model == "chains"
    assert planned(HEAD + state + POWER).settings.model == "copula"
    assert planned(HEAD + POWER, model="chains").settings.model == "chains"


def test_a_plan_is_written_and_read_and_repriced(tmp_path):
    plan = planned()
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    assert epsilon_of([access.event for access in plan.touches], DELTA) <= 10


@pytest.mark.parametrize("name", ["guided", "bayesgan", "latentgan"])
def test_methods_without_series_say_so_in_one_line(name):
    with pytest.raises(SettingError, match=f"method {name}: takes no series; give --method auto"):
        db.plan(db.Schema.parse(WHOLE), method=name, epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize(
    ("name", "value"), [("cut_noise", 0.1), ("noise_width", 3), ("grouped", ["kw"]), ("level_groups", 3)]
)
def test_what_the_plan_fills_in_is_not_given(name, value):
    with pytest.raises(SettingError, match=name):
        planned(**({"grouped": []} | {name: value}))


# -- releases ----------------------------------------------------------------------------------------------------------


def test_what_is_released_is_what_was_planned(tmp_path, monkeypatch):
    asked, released = [], Mechanism.release

    def watched(mechanism, query, access, records, **more):
        asked.append(access)
        return released(mechanism, query, access, records)

    monkeypatch.setattr(Mechanism, "release", watched)
    syn = fitted(tmp_path, bins=16)
    assert asked == list(syn.plan.touches)
    assert [entry["purpose"] for entry in syn.executed if entry["drawn"]] == [access.purpose for access in asked]
    for entry in syn.executed:
        assert entry["event"] == pytest.approx(entry["expected"])


def test_an_interrupted_run_draws_no_noise_twice(tmp_path, monkeypatch):
    ledger = db.Ledger.create(tmp_path / "l", dataset="days", epsilon=5000.0, delta=0.5)
    plan, asked, noised = planned(bins=16), [], Mechanism._noised

    def watched(mechanism, answer, access):
        asked.append(access.purpose)
        return noised(mechanism, answer, access)

    def killed(*_: Any, **__: Any) -> None:
        raise Refused

    monkeypatch.setattr(Mechanism, "_noised", watched)
    with monkeypatch.context() as patch:
        patch.setattr(copula_fit, "estimate_moments", killed)
        with pytest.raises(Refused):
            db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    before = len(asked)
    assert before >= 3
    syn = db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1, resume=True)
    assert len(set(asked)) == len(asked) == len(plan.touches)
    assert len(syn.sample(5)) == 5


def test_a_lost_release_is_not_drawn_again(tmp_path, monkeypatch):
    ledger = db.Ledger.create(tmp_path / "l", dataset="days", epsilon=5000.0, delta=0.5)
    plan = planned(bins=16)

    def killed(*_: Any, **__: Any) -> None:
        raise Refused

    with monkeypatch.context() as patch:
        patch.setattr(Mechanism, "_noised", killed)
        with pytest.raises(Refused):
            db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1)
    with pytest.raises(LostRun, match="price covers one draw"):
        db.fit(days(), plan, ledger=ledger, out=tmp_path / "run", seed=1, resume=True)


# -- sensitivity -------------------------------------------------------------------------------------------------------

ODD = {
    "nothing but a gap": lambda data: data | {"heat": np.full((1, LENGTH), np.nan)},
    "all at the bounds": lambda data: data | {"kw": np.tile([-8.0, 8.0], (1, LENGTH // 2))},
    "beyond the bounds": lambda data: data | {"kw": np.full((1, LENGTH), 1e9)},
    "flat": lambda data: data | {"kw": np.zeros((1, LENGTH)), "people": np.zeros((1, LENGTH))},
    "a spike": lambda data: data | {"kw": np.eye(LENGTH)[3:4] * 8},
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return what every query of a fit answers, exactly, for any other records."""
    purposes, queries, ask = answers_of(
        lambda: fitted(tmp_path_factory.mktemp("answers"), data=days(300), level_groups=2, own_tables=True, bins=64),
        bins=64,
        curve=1 / 3,
    )
    return purposes, queries, lambda data: ask(of_series(data))


def of_series(data):
    import pandas as pd

    from doublure.data.series import Series

    values = np.stack([np.asarray(data[name], dtype=float) for name in ("kw", "heat", "people")], axis=2)
    place = pd.Categorical(data["place"], categories=["hill", "coast"])
    return Series(values=values, channels=("kw", "heat", "people"), attributes=pd.DataFrame({"place": place}))


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("size", [0, 30])
def test_one_series_moves_each_release_by_what_it_is_priced_at(answers, odd, size):
    purposes, queries, ask = answers
    base = {name: cells[:size] for name, cells in days(40).items()}
    more = ODD[odd]({name: cells[:1] for name, cells in days(1, seed=9).items()})
    both = {name: np.concatenate([base[name], more[name]]) for name in base}
    assert set(purposes) == {
        copula_plan.TABLES, copula_plan.GAPS, copula_plan.OWN_TABLES, copula_plan.PRODUCTS, copula_plan.CALM,
        copula_plan.STEEPEST_LOOKS,
    }  # fmt: skip
    for query, one, other in zip(queries, ask(base), ask(both), strict=True):
        moved = (np.asarray(other.total, dtype=float) - np.asarray(one.total, dtype=float)) * (one.unit or 1.0)
        assert 0 < np.sqrt((moved**2).sum()) <= query.sensitivity.l2 * (1 + 1e-12)
        assert np.abs(moved).sum() <= query.sensitivity.l1 * (1 + 1e-12)


def test_products_lie_in_the_common_block_and_in_that_of_one_group(answers):
    purposes, queries, ask = answers
    number = purposes.index(copula_plan.PRODUCTS)
    query = queries[number]
    assert isinstance(query, BoundedSums)
    blocks = np.asarray(ask({name: cells[:1] for name, cells in days(1).items()})[number].total).reshape(1 + 4, -1)
    filled = np.abs(blocks).sum(1) > 0
    assert filled[0]
    assert filled[1:].sum() == 1


# -- parts -------------------------------------------------------------------------------------------------------------


def test_places_and_shares_are_inverse():
    table = torch.tensor([[0.0, 0.2, 0.2, 0.7, 1.0], [0.0, 0.1, 0.9, 1.0, 1.0]])
    shares = torch.tensor([[0.1, 0.05], [0.45, 0.5], [0.9, 0.95]], dtype=torch.float64)
    places = places_at(table, shares.T.contiguous(), torch.tensor([3, 2])).T
    torch.testing.assert_close(shares_at(table, places), shares, atol=1e-3, rtol=0)
    assert (places[:, 1] < 3).all()


def test_gaps_are_bridged_by_straight_lines():
    scores = torch.tensor([[[9.0, 1.0, 9.0, 9.0, 4.0, 9.0]], [[9.0] * 6]])
    known = torch.tensor([[[False, True, False, False, True, False]], [[False] * 6]])
    assert over_gaps(scores, known).tolist() == [[[1, 1, 2, 3, 4, 4]], [[0] * 6]]


def test_gap_chains_give_shares_and_lengths_back():
    draw = np.random.default_rng(0)
    missing = np.zeros((20_000, 10), dtype=bool)
    for step in range(10):
        before = missing[:, step - 1] if step else np.zeros(20_000, dtype=bool)
        missing[:, step] = draw.random(20_000) < np.where(before, 0.8, 0.05)
    counted = np.zeros((9, 2, 2))
    np.add.at(counted, (np.arange(9)[None], missing[:, :-1].astype(int), missing[:, 1:].astype(int)), 1)
    chances, shares = gap_chances(counted, series=20_000, deviation=1.0)
    assert np.abs(shares - missing.mean(0)).max() < 0.01
    assert np.abs(chances[1:] - [0.05, 0.8]).max() < 0.03


@pytest.mark.parametrize(("units", "length", "channels", "seconds"), [(28_000, 48, 1, 2.5), (580, 24, 7, 2.5)])
def test_the_estimated_work_is_what_it_was_measured_to_be(units, length, channels, seconds, monkeypatch):
    """Within a factor of four, on a core that multiplies matrices at 3.1e10 operations a second in a plan's eyes."""
    monkeypatch.setattr(copula_plan, "LOOKED_AT", quick_estimates.MANY_SERIES)
    text = HEAD.replace(str(SERIES), str(units)).replace(f"length: {LENGTH}", f"length: {length}")
    plan = planned(text + "".join(POWER.replace("kw", f"c{number}") for number in range(channels)))
    work = METHOD.work(plan.schema, plan.settings)
    assert isinstance(plan.settings, SeriesStatisticsSettings)
    assert seconds / 4 < work.flops / 3.1e10 < 4 * seconds


# -- missing steps that are bought -------------------------------------------------------------------------------------

BOUGHT = """
doublure: 1
kind: series
units: 400
series: {{length: 6, gaps: missing}}
channels:
  first: {{type: real, bounds: [0, 5], missing: {first}}}
  second: {{type: real, bounds: [0, 5], missing: {second}}}
"""


@pytest.mark.parametrize(
    ("first", "second", "holes"),
    [
        ("{learn: 3}", "true", (True, True)),
        ("{learn: 3}", "true", (False, True)),
        ("true", "{learn: 3}", (True, False)),
        ("{learn: 3}", "{learn: 3}", (False, True)),
        ("{learn: 3}", "false", (True, False)),
        ("{learn: 3}", "false", (False, False)),
    ],
)
def test_whether_steps_are_missing_may_be_bought(first, second, holes, tmp_path):
    """The plan pays for every channel that may turn out to have gaps, and what ran is as it was priced."""
    draw, values = np.random.default_rng(0), np.random.default_rng(1).uniform(0, 5, (2, 400, 6))
    for channel, gappy in zip(values, holes, strict=True):
        channel[(draw.random((400, 6)) < 0.3) & gappy] = np.nan
    plan = db.plan(
        Schema.parse(BOUGHT.format(first=first, second=second)), method="statistics", model="copula", bins=16,
        epsilon=20.0, delta=1e-3, accountant="rdp",
    )  # fmt: skip
    ledger = db.Ledger.create(tmp_path / "ledger.jsonl", dataset="homes", epsilon=20.0, delta=1e-3)
    data = {"first": values[0], "second": values[1]}
    sampled = db.fit(data, plan, ledger=ledger, out=tmp_path / "run", progress=False).sample(400, seed=1)
    missing = [float(np.isnan(sampled.channel(name)).mean()) for name in data]
    assert missing == pytest.approx([0.3 * gappy for gappy in holes], abs=0.08)


def test_a_plan_that_draws_too_few_numbers_for_gaps_that_are_bought_is_refused():
    """Until they were priced, plans drew none for such gaps: those of then are read, and are to be made again."""
    schema = Schema.parse(BOUGHT.format(first="{learn: 3}", second="true"))
    with pytest.raises(SettingError, match="gaps that are still to be bought") as caught:
        db.plan(schema, method="statistics", model="copula", epsilon=20.0, delta=1e-3, noise_width=25, candidates=1)
    assert (caught.value.field, caught.value.remedy) == ("noise_width", "leave it out, and make the plan again")


def test_what_an_attribute_shifts_is_no_difference_of_groups():
    """Beside groups another attribute shifts the level, and its values are not as frequent in both groups."""
    draw, series = np.random.default_rng(0), 40_000
    group = np.arange(series) % 2
    value = (draw.random(series) < np.where(group == 1, 0.7, 0.3)).astype(int)
    waves = 0.8 * draw.normal(size=(series, 4))
    waves[:, 0] += 1.2 * (2 * value - 1)
    rows = np.concatenate([np.ones((series, 1)), np.eye(2)[value], waves], axis=1)
    sums = np.stack([rows[group == one].T @ rows[group == one] for one in (0, 1)])
    tiny = np.full((7, 7), 1e-6)
    found = estimate_moments(
        ScoreProducts(
            sums=sums, deviations=tiny, total=sums.sum(0), of_total=tiny, weights=np.ones(4), channels=1,
            blocks=(2,), numbers=(None,), series=float(series),
        )
    )  # fmt: skip
    assert found.effects[:, 0] == pytest.approx([-1.2, 1.2], abs=0.05)
    assert np.abs(found.means).max() < 0.05
    assert [own[0, 0] for own in found.covariances] == pytest.approx([0.64, 0.64], abs=0.05)


def test_a_number_shifts_levels_as_it_does_where_few_series_have_its_high_values():
    """Noise of those values' counts is as large as the counts; it once stood in the slope's denominator."""
    counts, noise = np.array([260, 248, 252, 227, 159, 58, 29, 10, 3, 0]), 18.0
    numbers, series = np.arange(10.0), float(counts.sum())
    spread = np.sqrt(counts @ (numbers - counts @ numbers / series) ** 2 / series)
    truth, missed = (numbers - counts @ numbers / series) / spread, []
    exact = np.zeros((15, 15))
    exact[0, 1:11] = exact[1:11, 0] = counts
    exact[1:11, 1:11], exact[1:11, 11] = np.diag(counts), counts * truth
    exact[0, 0], exact[11:, 11:] = series, series * np.eye(4)
    exact[11] = exact[:, 11]
    deviations = np.full((15, 15), noise)
    for seed in range(20):
        added = np.random.default_rng(seed).normal(0, noise * np.sqrt(2), (15, 15))
        total = exact + (added + added.T) / 2
        found = estimate_moments(
            ScoreProducts(
                sums=total[None], deviations=deviations, total=total, of_total=deviations, weights=np.ones(4),
                channels=1, blocks=(10,), numbers=(numbers,), series=series,
            )
        )  # fmt: skip
        missed.append(counts @ np.abs(found.effects[:, 0] - truth) / series)
    assert max(missed) < 0.2
