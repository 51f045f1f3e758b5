"""What series look like as a whole: summaries, their noisy shares, and candidates that are chosen by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from series_fits import fit_series

import doublure as db
from doublure.errors import SettingError
from doublure.methods.statistics.series import copula_plan
from doublure.methods.statistics.series.looks import leans_for, posterior_shares
from doublure.methods.statistics.settings import SeriesStatisticsSettings
from doublure.networks.look_names import CUTS, NAMES, QUANTILES
from doublure.networks.series_summaries import SeriesSummaries, summed_leans, to_bins

UNITS, LENGTH = 1500, 30
TEXT = f"""
doublure: 1
kind: series
unit: {{name: house, id: null, max_records: 1}}
units: {UNITS}
series: {{length: {LENGTH}}}
channels:
  litres: {{type: integer, bounds: [0, 100], missing: false}}
"""


def houses(n: int = UNITS, seed: int = 0) -> dict[str, Any]:
    """Return houses: a third is empty, and in others somebody showers once, for a few steps, hard."""
    draw = np.random.default_rng(seed)
    found = np.zeros((n, LENGTH))
    for house in np.flatnonzero(draw.random(n) < 0.67):
        begin, long = draw.integers(0, LENGTH - 4), draw.integers(2, 5)
        found[house, begin : begin + long] = draw.integers(20, 60)
    return {"litres": found}


def planned(**changes: Any) -> db.Plan:
    return db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=10.0, delta=1e-5, **changes)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return synthesizers, by their candidates."""
    folder = tmp_path_factory.mktemp("made")
    found = {}
    for candidates in (1, 8):
        (folder / str(candidates)).mkdir()
        found[candidates] = fit_series(folder / str(candidates), houses(), planned(candidates=candidates), TEXT)
    return found


def even_summaries(single: bool = True, *, missing: bool = False) -> SeriesSummaries:
    """Return the summaries of one channel of ten equally frequent cells, at six steps."""
    tables = torch.linspace(0, 1, 11, dtype=torch.float64).repeat(6, 1)
    return SeriesSummaries.of((10,), tables, torch.full((1, 10), single), missing=(missing,), steepest=True)


def of(found: torch.Tensor, name: str) -> list[int]:
    return found[:, NAMES.index(name)].tolist()


# -- summaries ---------------------------------------------------------------------------------------------------------


def test_summaries_are_what_they_say():
    looks = even_summaries(single=False)
    assert looks.high.tolist() == [8]
    steps = torch.tensor([[[9.5, 9.5, 2.5, 9.5, 2.5, 2.5]], [[4.5] * 6], [[9.5] * 6]])
    found = looks(steps)
    assert of(found, "runs") == [2, 0, 1]
    assert of(found, "longest") == [2, 0, 6]
    assert of(found, "peak") == [9, 4, 9]
    assert of(found, "low") == [2, 4, 9]
    assert of(found, "spread")[1:] == [0, 0]
    assert of(found, "roughness")[1:] == [0, 0]
    high, low = (looks.scores[0, cell].item() for cell in (9, 2))
    assert of(found, "level")[0] == (3 * high + 3 * low) // 6
    assert of(found, "roughness")[0] == 3 * (high - low) ** 2 // 5
    assert of(found, "steepest") == [7, 0, 0]


def test_the_steepest_step_is_of_values_and_not_of_scores():
    """Where the tables of two steps differ, a series of one rank jumps: its scores alone do not know it."""
    low, high = torch.linspace(0, 1, 6), torch.zeros(6)
    tables = torch.stack([torch.cat([low, torch.ones(5)]), torch.cat([high[:5], low])]).double()
    looks = SeriesSummaries.of((10,), tables, torch.zeros(1, 10, dtype=torch.bool), missing=(False,), steepest=True)
    found = looks(torch.tensor([[[2.5, 7.5]], [[2.5, 2.5]]]))
    assert of(found, "roughness")[0] == 0
    assert of(found, "steepest") == [5, 0]
    gap = even_summaries(missing=True)(torch.tensor([[[0.5, 10.5, 9.5, 9.5, 8.5, 8.5]]]))
    assert of(gap, "steepest") == [1]


def test_the_largest_change_is_counted_where_noise_lets_its_tail_be_told():
    """By public figures alone; a plan that does not say so, of an earlier version, does not count it."""
    few = db.Schema.parse(TEXT.replace(f"units: {UNITS}", "units: 300"))
    assert planned().settings.steepest is True
    assert db.plan(few, method="statistics", epsilon=1.0, delta=1e-4).settings.steepest is False
    assert planned(candidates=1).settings.steepest is False
    written = planned(steepest=False).to_json()
    earlier = {**written, "settings": {key: own for key, own in written["settings"].items() if key != "steepest"}}
    assert not db.Plan.from_json(earlier, reprice=False).settings.steepest


def test_the_release_is_called_by_what_it_counts():
    """Without the largest change it is called as it was; a file's own words are not shown."""
    purposes = [[each.purpose for each in planned(steepest=counted).touches] for counted in (True, False)]
    assert "count series by level, spread, peak, runs and steepest step" in purposes[0]
    assert "count series by level, spread, peak and runs" in purposes[1]
    plan = planned(steepest=True).to_json()
    touches = [
        {**each, "purpose": each["purpose"].replace(", runs and steepest step", " and runs")}
        for each in plan["touches"]
    ]
    assert db.Plan.from_json({**plan, "touches": touches}).to_json() == plan


@pytest.mark.parametrize("others", [{"candidates": 1}, {"model": "chains"}])
def test_the_largest_change_is_not_asked_for_where_nothing_counts_it(others):
    with pytest.raises(SettingError, match=r"^steepest: chooses nothing: .*; leave it out, or "):
        planned(steepest=True, **others)


def test_of_a_frequent_value_its_steps_are_counted():
    tables = torch.cat([torch.zeros(6, 1), torch.linspace(0.7, 1, 10).repeat(6, 1)], dim=1)
    looks = SeriesSummaries.of((10,), tables, torch.ones(1, 10, dtype=torch.bool), missing=(False,))
    assert looks.frequent.tolist() == [0]
    assert of(looks(torch.tensor([[[0.5, 0.5, 3.5, 0.5, 9.5, 1.5]]])), "low") == [3]


def test_missing_steps_count_as_nothing():
    looks = even_summaries(single=False, missing=True)
    found = looks(torch.tensor([[[10.5, 9.5, 10.5, 9.5, 10.5, 2.5]], [[10.5] * 6], [[2.5] * 3 + [11.5] * 3]]))
    assert found[:, -1].tolist() == [3, 6, 0]  # what is after the end is not missing
    assert looks.cuts(found)[-1, -1] == 6
    assert of(found, "runs") == [2, 0, 0]
    assert of(found, "peak") == [9, -1, 2]
    assert of(found, "low") == [2, 10, 2]


def test_a_series_summaries_are_its_own_whatever_is_beside_it():
    looks, body = even_summaries(), torch.rand(40, 1, 6, generator=torch.Generator().manual_seed(0)) * 11
    together = looks(body)
    assert together.dtype == torch.int64
    assert all(torch.equal(together[row : row + 1], looks(body[row : row + 1])) for row in range(40))
    assert torch.equal(together.flip(0), looks(body.flip(0)))


# -- shares ------------------------------------------------------------------------------------------------------------


def test_where_noise_hides_them_shares_stay_the_models():
    drawn, draw = np.full(24, 1 / 24), np.random.default_rng(0)
    missed = []
    for _ in range(20):
        counted = drawn + draw.normal(0, 0.3, 24)
        missed.append(np.abs(posterior_shares(counted, drawn, noise=0.3, draws=10**6) - drawn).sum() / 2)
    assert np.mean(missed) < 0.25
    assert np.abs(counted - drawn).sum() / 2 > 2


def test_what_is_known_is_taken_and_in_between_it_is_smoother_than_noise():
    drawn, places = np.full(24, 1 / 24), np.linspace(-1, 1, 24)
    truth = drawn * (1 + 0.8 * places)
    close = posterior_shares(truth, drawn, noise=1e-5, draws=10**9)
    assert np.abs(close - truth).sum() / 2 < 1e-3
    draw, missed, noisy = np.random.default_rng(1), [], []
    for _ in range(20):
        counted = truth + draw.normal(0, 0.015, 24)
        missed.append(np.abs(posterior_shares(counted, drawn, noise=0.015, draws=10**6) - truth).sum())
        noisy.append(np.abs(counted - truth).sum())
    assert np.mean(missed) < 0.6 * np.mean(noisy)
    assert np.mean(missed) < 0.7 * np.abs(drawn - truth).sum()


def test_a_bin_that_the_model_never_draws_gets_nothing():
    drawn = np.append(np.full(12, 1 / 12), np.zeros(12))
    found = posterior_shares(np.full(24, 1 / 24), drawn, noise=0.01, draws=8000)
    assert found[12:].tolist() == [0.0] * 12
    assert found.sum() == pytest.approx(1)


def test_kept_candidates_have_the_wanted_shares_and_keep_slow_waves():
    source = torch.Generator().manual_seed(0)
    waves = torch.randn(8000, 2, generator=source, dtype=torch.float64)
    looks = torch.stack([waves[:, 0].abs() + waves[:, 1] * 0.5, torch.randn(8000, generator=source)], dim=1)
    whole = (looks * 1000).long()
    cuts = torch.quantile(whole.double(), torch.tensor(QUANTILES).double(), dim=0).ceil().long().T.contiguous()
    bins = to_bins(whole, cuts)
    drawn = torch.nn.functional.one_hot(bins, CUTS + 1).double().mean(0)
    wanted = drawn * torch.linspace(0.4, 1.6, CUTS + 1)
    wanted = wanted / wanted.sum(1, keepdim=True)
    leans, holds = leans_for(bins, waves, wanted, candidates=8)
    chances = torch.softmax((summed_leans(bins, leans) + waves @ holds[0]).view(-1, 8), dim=1).flatten() / 1000
    reached = (torch.nn.functional.one_hot(bins, CUTS + 1) * chances[:, None, None]).sum(0)
    assert float((reached - wanted).abs().sum(1).max()) < 0.02
    assert float((chances @ waves - waves.mean(0)).abs().max()) < 0.01
    unheld, _ = leans_for(bins, torch.zeros(8000, 1, dtype=torch.float64), wanted, candidates=8)
    moved = torch.softmax(summed_leans(bins, unheld).view(-1, 8), dim=1).flatten() / 1000
    assert float((moved @ waves - waves.mean(0)).abs().max()) > 0.05


def test_kept_candidates_keep_slow_waves_within_each_value_of_attributes():
    """Levels of two kinds differ; what spreads the levels of all would move both kinds apart."""
    source = torch.Generator().manual_seed(0)
    kinds = torch.eye(2, dtype=torch.float64).repeat(500, 1)
    waves = torch.randn(8000, 1, generator=source, dtype=torch.float64)
    waves += (kinds @ torch.tensor([[-1.0], [1.0]], dtype=torch.float64)).repeat_interleave(8, 0)
    whole = (waves * 1000).long()
    cuts = torch.quantile(whole.double(), torch.tensor(QUANTILES).double(), dim=0).ceil().long().T.contiguous()
    bins = to_bins(whole, cuts)
    drawn = torch.nn.functional.one_hot(bins, CUTS + 1).double().mean(0)
    wanted = drawn * (1 + torch.linspace(-1, 1, CUTS + 1).square())
    wanted = wanted / wanted.sum(1, keepdim=True)
    own = waves.view(-1, 8)

    def moved(conditions: torch.Tensor | None) -> float:
        leans, holds = leans_for(bins, waves, wanted, conditions, candidates=8)
        hold = holds[0] if conditions is None else holds[0] + conditions @ holds[1:]
        chances = torch.softmax(summed_leans(bins, leans).view(-1, 8) + own * hold, dim=1)
        return float(((chances * own).sum(1) - own.mean(1))[kinds[:, 1] > 0].mean().abs())

    assert moved(None) > 0.1
    assert moved(kinds) < 0.03


# -- the whole ---------------------------------------------------------------------------------------------------------


def apart(one: Any, other: Any) -> float:
    """Return the Kolmogorov-Smirnov statistic."""
    places = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(own), places, "right") / len(own) for own in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def test_events_are_as_frequent_long_and_high_as_they_were(made):
    real = houses()["litres"]
    runs = {8: 0.0, 1: 0.0}
    for candidates, syn in made.items():
        series = syn.sample(UNITS, seed=3).channel("litres")
        summaries = [
            (series > 0).sum(1), series.max(1), (np.diff(series > 0, axis=1, prepend=0) & (series > 0)).sum(1),
        ]  # fmt: skip
        truth = [(real > 0).sum(1), real.max(1), (np.diff(real > 0, axis=1, prepend=0) & (real > 0)).sum(1)]
        runs[candidates] = float(np.mean([apart(one, other) for one, other in zip(summaries, truth, strict=True)]))
        assert series.mean() == pytest.approx(real.mean(), rel=0.15)
    assert runs[8] < 0.6 * runs[1]


def test_who_was_never_measured_is_as_many_as_there_were(tmp_path):
    """A third of patients has no arterial line; in others a value is missing now and then."""
    text = TEXT.replace(f"{{length: {LENGTH}}}", f"{{length: {LENGTH}, gaps: missing}}")
    text += "  line: {type: integer, bounds: [0, 100], missing: true}\n"
    draw = np.random.default_rng(5)
    pulse = np.clip(np.round(50 + 10 * draw.normal(size=(UNITS, 1)) + 5 * draw.normal(size=(UNITS, LENGTH))), 0, 100)
    line = pulse.copy()
    line[draw.random((UNITS, LENGTH)) < 0.2] = np.nan
    line[draw.random(UNITS) < 0.3] = np.nan
    gone, now_and_then = {}, {}
    for candidates in (1, 8):
        (tmp_path / str(candidates)).mkdir()
        plan = db.plan(
            db.Schema.parse(text), method="statistics", epsilon=10.0, delta=1e-5, bins=64, candidates=candidates
        )
        syn = fit_series(tmp_path / str(candidates), {"litres": pulse, "line": line}, plan, text)
        found = np.isnan(syn.sample(UNITS, seed=3).channel("line"))
        gone[candidates] = found.all(axis=1).mean()
        now_and_then[candidates] = found[~found.all(axis=1)].mean()
    assert gone[8] == pytest.approx(np.isnan(line).all(axis=1).mean(), abs=0.04)
    assert now_and_then[8] == pytest.approx(0.2, abs=0.04)
    assert gone[1] < 0.05


def test_a_saved_synthesizer_chooses_as_it_did(made, tmp_path):
    made[8].save(tmp_path / "run")
    again = db.load(tmp_path / "run").sample(50, seed=4).channel("litres")
    assert np.array_equal(again, made[8].sample(50, seed=4).channel("litres"))


def test_plans_of_before_buy_no_looks_and_draw_what_they_drew():
    said = planned().settings.model_dump(exclude={"candidates", "noise_width"})
    former = SeriesStatisticsSettings.of_plan(said)
    assert former.candidates == 1
    assert copula_plan.LOOKS not in copula_plan.shares(planned().schema, former)
    assert planned(candidates=1).settings.noise_width == 2 * LENGTH + 1
    assert copula_plan.shares(planned().schema, planned().settings)[copula_plan.STEEPEST_LOOKS] == pytest.approx(0.1)
