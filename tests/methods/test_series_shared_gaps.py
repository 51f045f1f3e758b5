"""Gaps that channels share: what is asked of a series, what noisy answers give, and what plans say of gaps."""

from __future__ import annotations

import copy
from itertools import combinations

import air
import numpy as np
import pytest
import torch
from scipy.special import ndtr
from scipy.stats import multivariate_normal
from series_fits import answers_of, fit_series

import doublure as db
from doublure.data.series import Series
from doublure.errors import SettingError
from doublure.methods.statistics.series import copula_plan
from doublure.methods.statistics.series.gap_chains import gap_chances
from doublure.methods.statistics.series.shared_gaps import (
    _STRENGTHS,
    _both_below,
    count_asked,
    expected_steps,
    join_gaps,
    shared_steps,
)

UNITS = 1500


def planned(units: int = UNITS, epsilon: float = 10.0, text: str = "", **changes) -> db.Plan:
    schema = db.Schema.parse(text or air.text(units))
    return db.plan(schema, method="statistics", epsilon=epsilon, delta=1e-5, **changes)


@pytest.fixture(scope="module")
def real():
    return air.days(UNITS, 1, lasting=12.0, gaps=0.02)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def made(folder, real):
    plan = planned(bins=16)
    ledger = db.Ledger.create(folder / "ledger", dataset="days", epsilon=5000.0, delta=0.5)
    return db.fit(air.arrays(real), plan, ledger=ledger, out=folder / "run", seed=1)


def days_of(sampled) -> Series:
    return Series(values=sampled.values, channels=sampled.channels, attributes=sampled.attributes)


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_a_generator_of_before_joins_gaps_of_all_series(made):
    state = {name: own for name, own in made.generator.state_dict().items() if not name.endswith("gap_share")}
    assert len(state) < len(made.generator.state_dict())
    again = copy.deepcopy(made.generator)
    again.load_state_dict(state)
    assert next(own for name, own in again.state_dict().items() if name.endswith("gap_share")) == 1


def test_gaps_stand_together_as_often_as_real_ones(made, real):
    drawn = made.sample(UNITS, seed=2)
    assert air.shared_gaps(days_of(drawn)) == pytest.approx(air.shared_gaps(real), abs=0.2)
    gone, own = np.isnan(drawn.values), np.isnan(real.values)
    assert gone.mean((0, 1)) == pytest.approx(own.mean((0, 1)), abs=0.04)
    for one, other in combinations(range(3), 2):
        both = (gone[:, :, one] & gone[:, :, other]).mean()
        assert both == pytest.approx((own[:, :, one] & own[:, :, other]).mean(), abs=0.04)


def test_it_is_saved_and_loaded_and_goes_on(made, folder):
    assert np.array_equal(
        db.load(folder / "run").sample(20, seed=3).values, made.sample(20, seed=3).values, equal_nan=True
    )
    long = made.sample(200, steps=36, seed=4)
    gone = np.isnan(long.values)
    assert (gone.sum(2) > 1).sum() > 0.4 * (gone.sum(2) > 0).sum()


def test_one_series_moves_the_mean_by_one_at_most(tmp_path, real):
    few = real.take(np.arange(200))
    plan = planned(200, 200.0, bins=16, candidates=1, shared_gaps=True)
    data = air.arrays(few)
    purposes, queries, ask = answers_of(lambda: fit_series(tmp_path, data, plan, air.text(200)), bins=16, curve=1 / 3)
    at = purposes.index(copula_plan.SHARED_GAPS)
    silent = real.take(np.arange(1))
    silent.values[:] = np.nan
    base = few.take(np.arange(5))
    more = Series(
        values=np.concatenate([base.values, silent.values]),
        channels=base.channels,
        attributes=few.take(np.arange(6)).attributes,
    )
    one, other = ask(base)[at], ask(more)[at]
    moved = (np.asarray(other.total, dtype=float) - np.asarray(one.total, dtype=float)) * (one.unit or 1.0)
    assert np.sqrt((moved**2).sum()) == pytest.approx(1, abs=1e-3)
    assert np.sqrt((moved**2).sum()) <= queries[at].sensitivity.l2 * (1 + 1e-12)


# -- parts -------------------------------------------------------------------------------------------------------------


def test_steps_that_two_channels_miss_are_counted():
    """Of three channels of two cells the second has no gaps; 2.5 is a gap, and 3.5 lies behind the series' end."""
    gap, end = 2.5, 3.5
    body = torch.tensor([
        [[gap, gap, 0.5, gap], [0.5] * 4, [gap, 1.5, gap, gap]],
        [[0.5, 0.5, end, end], [0.5, 0.5, end, end], [0.5, gap, end, end]],
    ])  # fmt: skip
    assert shared_steps(body, (2, 2, 2), (True, False, True)).tolist() == [[0.5], [0.0]]
    assert shared_steps(body, (2, 2, 2), (False, False, True)).shape == (2, 0)
    three = torch.tensor([[[gap, gap, 0.5, gap], [gap, 0.5, gap, gap], [gap, gap, gap, 0.5]]])
    assert shared_steps(three, (2, 2, 2), (True, True, True)).tolist() == [[0.5, 0.5, 0.5, 1.0]]
    assert [count_asked(channels) for channels in range(5)] == [0, 0, 1, 4, 7]


def test_two_normal_numbers_lie_below_limits_as_often_as_is_known():
    for first, second in ((-1.0, 0.5), (-2.0, -1.8), (0.3, 0.3)):
        found = _both_below(np.array(first), np.array(second))
        for place in (0, 20, 40, 60):
            rho = _STRENGTHS[place]
            known = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([first, second])
            assert found[place] == pytest.approx(known, abs=2e-4)


def test_expected_steps_are_those_that_chains_have():
    draw, place = np.random.default_rng(0), 48
    chances = np.array([[[0.05, 0.05], [0.04, 0.7], [0.06, 0.7]], [[0.1, 0.1], [0.08, 0.5], [0.07, 0.6]]])
    never, reach = np.array([0.1, 0.2]), np.array([1.0, 1.0, 0.5])
    rho = _STRENGTHS[place]
    factor = np.linalg.cholesky([[1, rho], [rho, 1]])
    uniform = ndtr(draw.standard_normal((200_000, 4, 2)) @ factor.T)
    nothing, gone = uniform[:, 3] < never, np.zeros((200_000, 2), dtype=bool)
    total = 0.0
    for step in range(3):
        chance = np.where(gone, chances[:, step, 1], chances[:, step, 0])
        gone = uniform[:, step] < chance
        total += reach[step] * ((gone | nothing).all(1)).mean() / 3
    assert expected_steps(chances, never, reach)[0, place] == pytest.approx(total, abs=2e-3)


def correlations(counted, expected, noise: float, **chains) -> np.ndarray:
    """Return the correlations of the numbers that gaps are drawn from, where they go together in all series."""
    share, factor = join_gaps(counted, expected, noise=noise, **chains)
    assert share == pytest.approx(1)
    return factor @ factor.T


def test_what_noise_hides_falls_independently():
    chains = {"chances": np.tile([[0.05, 0.7]], (2, 10, 1)), "never": np.zeros(2), "reach": np.ones(10)}
    expected = expected_steps(**chains)
    truth = expected[:, 50]
    assert correlations(truth, expected, 1e-6, **chains)[0, 1] == pytest.approx(_STRENGTHS[50], abs=0.02)
    assert correlations(truth, expected, 10.0, **chains) == pytest.approx(np.eye(2), abs=1e-2)


def lasting(series: int, begins: float, draw: np.random.Generator) -> np.ndarray:
    """Return gaps ``(series, 10)`` that last three steps."""
    found = np.zeros((series, 10), dtype=bool)
    for step in range(10):
        before = found[:, step - 1] if step else np.zeros(series, dtype=bool)
        found[:, step] = draw.random(series) < np.where(before, 2 / 3, begins)
    return found


@pytest.mark.parametrize("cause", [(0, 1, 2), (0, 1), ()])
def test_three_channels_lack_values_together_as_often_as_real_ones(cause):
    """Of one cause all pairs share the same steps; at the right number for each, three pairs had others, too."""
    draw, size = np.random.default_rng(0), 20_000
    real = np.stack([lasting(size, 0.008 if one in cause else 0.04, draw) for one in range(3)], axis=2)
    real[:, :, list(cause)] |= lasting(size, 0.032, draw)[:, :, None]
    codes = real.astype(int)
    pairs = np.array([
        [[[(codes[:, step, one] * 2 + codes[:, step + 1, one] == 2 * here + there).sum() for there in (0, 1)]
          for here in (0, 1)] for step in range(9)]
        for one in range(3)
    ])  # fmt: skip
    chains = {
        "chances": np.array([gap_chances(own, series=size, deviation=1.0)[0] for own in pairs]),
        "never": np.zeros(3), "reach": np.ones(10),
    }  # fmt: skip
    body = torch.from_numpy(codes.transpose(0, 2, 1) + 0.5)
    counted = shared_steps(body, (1, 1, 1), (True, True, True)).mean(0).numpy()
    share, factor = join_gaps(counted, expected_steps(**chains), noise=1e-3, **chains)
    numbers = draw.standard_normal((size, 10, 3))
    numbers[: round(share * size)] @= factor.T
    uniform, gone, made = ndtr(numbers), np.zeros((size, 3), dtype=bool), np.zeros_like(real)
    for step in range(10):
        gone = uniform[:, step] < np.where(gone, chains["chances"][:, step, 1], chains["chances"][:, step, 0])
        made[:, step] = gone
    together = [(own.sum(2) > 1).sum() / (own.sum(2) > 0).sum() for own in (made, real)]
    assert together[0] == pytest.approx(together[1], abs=0.05)
    assert made.mean((0, 1)) == pytest.approx(real.mean((0, 1)), abs=0.01)


# -- plans -------------------------------------------------------------------------------------------------------------


def test_a_plan_says_how_gaps_of_channels_stand():
    """By public figures alone, and no more than a hundredth of the budget is for it."""
    many, few = planned(), planned(60, 1.0)
    assert many.settings.shared_gaps is True
    assert few.settings.shared_gaps is False
    assert copula_plan.SHARED_GAPS in [each.purpose for each in many.touches]
    assert copula_plan.SHARED_GAPS not in [each.purpose for each in few.touches]
    assert "Gaps of two channels stand together as often as a noisy mean says" in many.explain()
    assert "Gaps fall independently by channel" in few.explain()
    assert "missing steps of a channel, of 18,000, are within two deviations of noise" in many.explain()
    assert not any("noise hides gaps" in warning for warning in many.warnings)
    assert any("noise hides gaps: up to" in warning for warning in few.warnings)


def test_the_noise_of_a_share_of_gaps_is_what_it_is_said_to_be():
    """Chains are estimated from noisy counts alone: their noise, again and again, is that of the forecast."""
    plan = planned(bins=16)
    access = next(each for each in plan.touches if each.purpose == copula_plan.GAPS)
    schema = plan.schema
    said = copula_plan.gap_noise(schema, copula_plan._multiplier(schema, plan.settings.cut_noise))
    draw, found = np.random.default_rng(0), []
    for _ in range(200):
        counted = np.full((11, 2, 2), UNITS / 4) + draw.normal(0, access.event.scale, (11, 2, 2))
        found.append(gap_chances(counted, series=UNITS, deviation=access.event.scale)[1].mean())
    assert np.std(found) == pytest.approx(said, rel=0.25)


def test_an_earlier_plan_shares_none():
    written = planned(shared_gaps=False).to_json()
    earlier = {**written, "settings": {key: own for key, own in written["settings"].items() if key != "shared_gaps"}}
    assert not db.Plan.from_json(earlier, reprice=False).settings.shared_gaps


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        (air.text(UNITS).replace("precision: 0, missing: true", "precision: 0, missing: false"), {}, "two channels"),
        (air.text(UNITS), {"model": "chains"}, "chains draw gaps"),
    ],
)
def test_shared_gaps_where_there_are_none_are_refused(text, changes, said):
    with pytest.raises(SettingError, match=said) as caught:
        planned(text=text, shared_gaps=True, **changes)
    assert caught.value.field == "shared_gaps"
