"""Evaluating series: figures between two natural comparisons, gaps that do no harm, real figures on the page alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

from doublure.data.series import Series
from doublure.evaluate import Report, report
from doublure.measures import registry
from doublure.measures.scores import distance_score
from doublure.measures.series import classifiers as students
from doublure.measures.series import evaluate_series, independent_steps
from doublure.measures.series.statistics import autocorrelation
from doublure.results import percent
from doublure.schema import Schema


def by_key(found):
    return {score.key: score for score in found.scores}


@pytest.fixture
def few_rounds(monkeypatch):
    monkeypatch.setattr(students, "ROUNDS", 10)


QUICK = {"classifiers": False, "nearest": False}


@pytest.fixture(scope="module")
def evaluation(schema, waves):
    return evaluate_series(schema, waves(300, 1), waves(400, 2), waves(200, 3))


def test_good_series_are_near_real_ones(evaluation):
    scores = by_key(evaluation)
    distances = ["apart", "autocorrelation", "spectrum", "values", "level", "peaks", "peak_step", "ramps", "steepest"]
    distances += ["steeper", "runs", "longest", "level_by_attribute", "together", "together_by_attribute"]
    others = ["mean_ramp", "frequent", "largest", "missing", "shared_gaps", "discriminative", "predictive", "nearest"]
    known = {"profile", "profile_by_attribute", "gap_lengths", *distances, *others, "too_near"}
    assert set(scores) == known
    assert list(scores)[-4:] == ["discriminative", "predictive", "nearest", "too_near"]
    assert scores["profile_by_attribute"].value > 0.95
    for key in distances:
        assert scores[key].value < 2 * scores[key].real + 0.03
    assert scores["missing"].value == pytest.approx(0.1, abs=0.02)
    assert not evaluation.verdict.warnings


def test_students_and_neighbours_tell_good_series_from_independent_steps(evaluation):
    scores = by_key(evaluation)
    told = scores["discriminative"]
    assert told.value < 0.6
    assert told.interval[0] < 0.55
    assert told.baseline > 0.95
    assert scores["predictive"].value < scores["predictive"].real + 0.05
    assert scores["predictive"].baseline > 0.7
    near = scores["nearest"]
    assert abs(near.value - near.real) < 0.1 * near.real
    assert near.baseline > 2 * near.real
    assert f"two-sample AUC {told.value:.3f}" in evaluation.verdict.headline
    assert "correlates" not in evaluation.verdict.headline  # independent steps have the same profile


def test_each_fault_shows_in_its_own_figure(schema, waves, evaluation):
    good = by_key(evaluation)
    late = by_key(evaluate_series(schema, waves(300, 1, shift=0.25), waves(400, 2), waves(200, 3), **QUICK))
    assert late["profile"].value < 0.5
    assert late["autocorrelation"].value < good["autocorrelation"].value + 0.05
    assert late["peak_step"].value > 5 * good["peak_step"].value
    assert late["apart"].value > 3 * good["apart"].value
    silent = waves(300, 1)
    still = Series(values=np.zeros_like(silent.values), channels=silent.channels, attributes=silent.attributes)
    none = by_key(evaluate_series(schema, still, waves(400, 2), waves(200, 3), **QUICK))
    assert none["runs"].value > 5 * good["runs"].value
    assert none["longest"].value > 5 * good["longest"].value
    rough = by_key(evaluate_series(schema, waves(300, 1, smooth=False), waves(400, 2), waves(200, 3), **QUICK))
    assert rough["autocorrelation"].value > 3 * good["autocorrelation"].value
    assert rough["spectrum"].value > 3 * good["spectrum"].value
    assert rough["profile"].value > 0.9
    assert rough["ramps"].value > 3 * good["ramps"].value
    leaping = waves(300, 1, gaps=0.0)
    leaping.values[:15, 6, 0] += 40
    leaping.values[15:30, 6, 0] -= 40  # the mean at this step stays
    jumps = evaluate_series(schema, leaping, waves(400, 2), waves(200, 3), **QUICK)
    found = by_key(jumps)
    assert found["steeper"].value == pytest.approx(0.05, abs=0.01)  # a tenth of one channel of two
    assert found["steeper"].real < 0.02
    assert found["steepest"].value > good["steepest"].value + 0.02
    assert found["profile"].value > 0.9
    first = next(each for each in jumps.by_channel if (each.key, each.channel) == ("steeper", "a"))
    assert first.value == pytest.approx(0.1, abs=0.02)
    said = f"{percent(first.value)} of the synthetic series change more in a from a step to the next"
    assert any(line.startswith(said) for line in jumps.verdict.lines)
    flat = waves(300, 1)
    larger = Series(values=flat.values * 1.5, channels=flat.channels, attributes=flat.attributes)
    high = by_key(evaluate_series(schema, larger, waves(400, 2), waves(200, 3), **QUICK))
    assert high["peaks"].value > 0.5
    assert high["values"].value > 3 * good["values"].value
    assert high["apart"].value > 3 * good["apart"].value
    moved = flat.values + np.random.default_rng(5).normal(0, 1, (300, 1, 1))
    level = by_key(
        evaluate_series(
            schema,
            Series(values=moved, channels=flat.channels, attributes=flat.attributes),
            waves(400, 2),
            waves(200, 3),
            **QUICK,
        )
    )
    assert level["level"].value > 3 * good["level"].value
    assert level["autocorrelation"].value == pytest.approx(good["autocorrelation"].value, abs=0.01)
    gone = by_key(evaluate_series(schema, waves(300, 1, gaps=0.5), waves(400, 2), waves(200, 3), **QUICK))
    assert gone["missing"].value == pytest.approx(0.5, abs=0.03)


def test_independent_steps_have_profiles_and_no_course(schema, waves):
    real = waves(2000, 2, gaps=0.0)
    drawn = independent_steps(real, 3000, np.random.default_rng(0))
    assert np.allclose(drawn.values.mean(0), real.values.mean(0), atol=0.1)
    assert abs(autocorrelation(drawn.channel("a") - drawn.channel("a").mean(0))[0] - -1 / 11) < 0.05
    assert drawn.attributes["phase"].value_counts().min() > 1300


def test_independent_steps_beat_a_bad_synthesizer_and_it_is_said(schema, waves):
    made = waves(300, 1)
    signs = (-1.0) ** np.arange(12)[None, :, None]
    turned = Series(values=made.values * signs, channels=made.channels, attributes=made.attributes)
    found = evaluate_series(schema, turned, waves(400, 2), waves(200, 3), **QUICK)
    assert any("Independent steps" in warning for warning in found.verdict.warnings)


def test_without_a_holdout_a_quarter_of_the_units_is_kept_aside(schema, waves):
    found = evaluate_series(schema, waves(60, 1), waves(80, 2), unit=np.arange(80) // 4)
    assert (found.rows.train, found.rows.holdout, found.rows.kept_aside) == (60, 20, False)
    assert found.verdict.warnings[0].startswith("The test series are not held out")
    assert any("No holdout" in note for note in found.notes)


def test_what_is_all_missing_or_empty_is_a_result(schema, waves, few_rounds):
    nothing = waves(20, 1, gaps=1.1)
    found = evaluate_series(schema, nothing, waves(80, 2), waves(20, 3))
    assert by_key(found)["values"].value is None
    assert found.verdict.headline.startswith("Worst distance: unknown")
    assert Report(series=found).to_html()


def test_copies_are_warned_of(schema, waves):
    real = waves(400, 2)
    found = evaluate_series(schema, real.take(slice(150)), real, waves(200, 3), classifiers=False)
    scores = by_key(found)
    assert scores["nearest"].value == 0
    assert scores["too_near"].value == 1
    assert any("copies" in warning for warning in found.verdict.warnings)
    assert found.pairs[0].distance == 0
    assert found.pairs[0].synthetic == found.pairs[0].real


def test_a_target_is_told_by_a_student_of_artificial_series(text, waves, few_rounds):
    schema = Schema.parse(
        text.replace(
            "values: [early, late], missing: false", "values: [early, late], missing: false, roles: [target, condition]"
        )
    )
    made = waves(300, 1)
    found = by_key(evaluate_series(schema, made, waves(400, 2), waves(200, 3), nearest=False))["accuracy"]
    assert found.value > 0.95
    assert found.baseline < 0.7
    swapped = made.attributes.assign(
        phase=made.attributes["phase"].cat.rename_categories({"early": "late", "late": "early"})
    )
    wrong = Series(values=made.values, channels=made.channels, attributes=swapped)
    found = by_key(evaluate_series(schema, wrong, waves(400, 2), waves(200, 3), nearest=False))["accuracy"]
    assert found.value < 0.05


def test_the_page_marks_what_it_holds_and_the_figures_are_plain(evaluation, tmp_path):
    made = Report(series=evaluation)
    figures = json.loads(made.to_json())
    assert figures["series"]["internal"]
    assert "do not publish" in repr(made)
    page = made.to_html()
    # A profile, two values' profiles, three curves and four histograms for each channel; twelve pairs.
    assert page.count("<svg") == 2 * (1 + 2 + 3 + 4) + 12
    assert page.count("private: do not publish") == 1
    assert "pairs" not in figures["series"]
    assert page.count("computed on real data: do not publish") >= 3
    assert "independent steps" in page
    made.save(tmp_path / "page.html", tmp_path / "page.json")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o600


class AnySynthesizer:
    """Stands for a fitted synthesizer of series."""

    class guarantee:
        kind, sentence = "none", "No privacy guarantee. Do not publish."
        epsilon = delta = None

    class plan:
        method = "gan"

    def __init__(self, schema, waves):
        self.schema, self.waves, self.run = schema, waves, {}

    def draw(self, n, *, seed=None):
        return self.waves(n, 1 if seed is None else seed)


def test_a_measure_looks_at_all_series_of_a_unit_and_repeats_itself(text, waves, few_rounds):
    """Which of a unit's series a fit may use is drawn at random; what is measured is not."""
    schema = Schema.parse(text.replace("units: 200", "units: 20\nunit: {name: home, id: who, max_records: 2}")).resolve(
        {}
    )
    real, kept = waves(100, 2), waves(40, 3)
    data = {
        name: {"values": one.values, "phase": one.attributes["phase"].to_numpy(), "who": np.arange(len(one)) // 5}
        for name, one in (("real", real), ("kept", kept))
    }
    found = [report(AnySynthesizer(schema, waves), data["real"], data["kept"]) for _ in range(2)]
    assert found[0].series == found[1].series
    assert (found[0].series.rows.train, found[0].series.rows.holdout) == (100, 40)
    assert found[0].series.rows.synthetic == 100
    with pytest.raises(Exception, match="that was fitted"):
        report(AnySynthesizer(schema, waves), data["real"], {**data["real"], "who": np.arange(100) // 5})


def test_a_metric_from_outside_stands_among_the_scores(schema, waves, monkeypatch):
    def level(about, sets, rng):
        means = {role: float(np.nanmean(each.values)) for role, each in sets.items()}
        return distance_score(
            "mean_level", "Level", {role: abs(means[role] - means["test"]) for role in ("value", "real")}
        )

    before = evaluate_series(schema, waves(60, 1), waves(80, 2), waves(40, 3), **QUICK)
    monkeypatch.setattr(registry, "_REGISTERED", {"series": {"mean_level": level}})
    after = evaluate_series(schema, waves(60, 1), waves(80, 2), waves(40, 3), **QUICK)
    assert after.scores == (*before.scores, *after.added)
    assert [score.key for score in after.added] == ["mean_level"]
