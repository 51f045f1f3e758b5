"""Evaluating series: figures between two natural comparisons, gaps that do no harm, real figures on the page alone."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import Series
from doublure.evaluate.series import autocorrelation, correlation, evaluate_series, furthest, independent_steps
from doublure.evaluate.understudy import SeriesReport, report
from doublure.report import internal_page
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
units: 200
series: {length: 12, gaps: missing}
channels: {a: {type: real, bounds: [-5, 5], missing: true}, b: {type: real, bounds: [0, 9], missing: true}}
attributes: {phase: {type: category, values: [early, late], missing: false}}
"""


def waves(n, seed, shift=0.0, smooth=True, gaps=0.1):
    """Return waves that go on smoothly; the late ones lag behind."""
    rng = np.random.default_rng(seed)
    late = np.arange(n) % 2 == 1
    turns = 2 * np.pi * (np.arange(12) / 12 + np.where(late, 0.35, 0.0)[:, None] + shift)
    rough = rng.standard_normal((n, 12))
    drift = np.cumsum(rough, axis=1) / 4 if smooth else rough / 2
    first = np.sin(turns) + drift
    values = np.stack([first, 4 + np.sin(turns) + 0.1 * rough], axis=2)
    values[rng.random(values.shape) < gaps] = np.nan
    phase = pd.Categorical.from_codes(late.astype(int), ["early", "late"])
    return Series(values=values, channels=("a", "b"), attributes=pd.DataFrame({"phase": phase}))


@pytest.fixture(scope="module")
def schema():
    return Schema.parse(TEXT)


def by_key(found):
    return {score.key: score for score in found.scores}


@pytest.fixture(scope="module")
def evaluation(schema):
    return evaluate_series(schema, waves(300, 1), waves(400, 2), waves(200, 3))


def test_good_series_are_near_real_ones(evaluation):
    scores = by_key(evaluation)
    assert list(scores) == ["profile", "profile_by_attribute", "autocorrelation", "values", "peaks", "missing"]
    assert scores["profile_by_attribute"].value > 0.95
    for key in ("autocorrelation", "values", "peaks"):
        assert scores[key].value < 2 * scores[key].real + 0.03
    assert scores["missing"].value == pytest.approx(0.1, abs=0.02)
    assert not evaluation.verdict.warnings


def test_each_fault_shows_in_its_own_figure(schema, evaluation):
    good = by_key(evaluation)
    late = by_key(evaluate_series(schema, waves(300, 1, shift=0.25), waves(400, 2), waves(200, 3)))
    assert late["profile"].value < 0.5
    assert late["autocorrelation"].value < good["autocorrelation"].value + 0.05
    rough = by_key(evaluate_series(schema, waves(300, 1, smooth=False), waves(400, 2), waves(200, 3)))
    assert rough["autocorrelation"].value > 3 * good["autocorrelation"].value
    assert rough["profile"].value > 0.9
    flat = waves(300, 1)
    larger = Series(values=flat.values * 1.5, channels=flat.channels, attributes=flat.attributes)
    high = by_key(evaluate_series(schema, larger, waves(400, 2), waves(200, 3)))
    assert high["peaks"].value > 0.5
    assert high["values"].value > 3 * good["values"].value
    gone = by_key(evaluate_series(schema, waves(300, 1, gaps=0.5), waves(400, 2), waves(200, 3)))
    assert gone["missing"].value == pytest.approx(0.5, abs=0.03)


def test_independent_steps_have_profiles_and_no_course(schema):
    real = waves(2000, 2, gaps=0.0)
    drawn = independent_steps(real, 3000, np.random.default_rng(0))
    assert np.allclose(drawn.values.mean(0), real.values.mean(0), atol=0.1)
    assert abs(autocorrelation(drawn.channel("a") - drawn.channel("a").mean(0))[0] - -1 / 11) < 0.05
    assert drawn.attributes["phase"].value_counts().min() > 1300


def test_independent_steps_beat_a_bad_understudy_and_it_is_said(schema):
    made = waves(300, 1)
    signs = (-1.0) ** np.arange(12)[None, :, None]
    turned = Series(values=made.values * signs, channels=made.channels, attributes=made.attributes)
    found = evaluate_series(schema, turned, waves(400, 2), waves(200, 3))
    assert any("Independent steps" in warning for warning in found.verdict.warnings)


def test_an_autocorrelation_by_hand():
    """A wave of two steps and one that never changes; gaps count as the mean."""
    values = np.array([[1.0, -1, 1, -1], [5, 5, 5, 5], [np.nan] * 4])
    assert autocorrelation(values) == pytest.approx([-0.75, 0.5])
    assert autocorrelation(np.array([[1.0, np.nan, 1, -2]])) == pytest.approx([-2 / 6, 1 / 6])
    assert (autocorrelation(np.full((3, 6), 2.0)) == 0).all()
    assert correlation(np.array([1.0, 2, np.nan]), np.array([2.0, 4, 9])) == pytest.approx(1.0)
    assert correlation(np.ones(3), np.arange(3.0)) is None
    assert furthest(np.array([1.0, 2]), np.array([3.0, 4])) == 1.0
    assert furthest(np.zeros(0), np.ones(1)) is None


def test_without_a_holdout_a_quarter_of_the_units_is_kept_aside(schema):
    found = evaluate_series(schema, waves(60, 1), waves(80, 2), unit=np.arange(80) // 4)
    assert (found.rows.train, found.rows.holdout, found.rows.kept_aside) == (60, 20, False)
    assert found.verdict.warnings[0].startswith("The fit has seen these series")
    assert any("No holdout" in note for note in found.notes)


def test_what_is_all_missing_or_empty_is_a_result(schema):
    nothing = waves(20, 1, gaps=1.1)
    found = evaluate_series(schema, nothing, waves(80, 2), waves(20, 3))
    assert by_key(found)["values"].value is None
    assert "–" in found.verdict.headline
    assert internal_page(SeriesReport(series=found))


def test_the_page_marks_what_it_holds_and_the_figures_are_plain(evaluation, tmp_path):
    made = SeriesReport(series=evaluation)
    figures = json.loads(made.to_json())
    assert figures["series"]["internal"]
    assert "do not publish" in repr(made)
    page = internal_page(made)
    assert page.count("<svg") == 4  # a profile and an autocorrelation for each channel
    assert page.count("computed on real data: do not publish") >= 3
    assert "independent steps" in page
    made.save(tmp_path / "page.html", tmp_path / "page.json")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600


class Understudy:
    """Stands for a fitted synthesizer of series."""

    class guarantee:
        kind, sentence = "none", "No privacy guarantee. Do not publish."

    class plan:
        method = "gan"

    def __init__(self, schema):
        self.schema = schema

    def sample(self, n, *, seed=None):
        return waves(n, 1 if seed is None else seed)


def test_a_measure_looks_at_all_series_of_a_unit_and_repeats_itself():
    """Which of a unit's series a fit may use is drawn at random; what is measured is not."""
    schema = Schema.parse(TEXT.replace("units: 200", "units: 20\nunit: {name: home, id: who, max_records: 2}"))
    real, kept = waves(100, 2), waves(40, 3)
    data = {
        name: {"values": one.values, "phase": one.attributes["phase"].to_numpy(), "who": np.arange(len(one)) // 5}
        for name, one in (("real", real), ("kept", kept))
    }
    found = [report(Understudy(schema), data["real"], data["kept"]) for _ in range(2)]
    assert found[0].series == found[1].series
    assert (found[0].series.rows.train, found[0].series.rows.holdout) == (100, 40)
    assert found[0].series.rows.synthetic == 100
    with pytest.raises(Exception, match="the fit has seen"):
        report(Understudy(schema), data["real"], {**data["real"], "who": np.arange(100) // 5})
