"""The page of a comparison: everybody on one scale, what was claimed, and that it is internal."""

from __future__ import annotations

import json
import stat

import pytest

from doublure.errors import InputError
from doublure.measures.scores import Score, possible
from doublure.report.comparison import UNLIKE, ComparedRun, Comparison, PairedDifference


def score(value, **changes):
    known = {"key": "accuracy", "name": "accuracy", "goal": "high", "range": (0.0, 1.0), "baseline": 0.5, "real": 0.9}
    interval = None if value is None else (value - 0.1, value + 0.1)
    return Score(**(known | {"value": value, "interval": interval, "meaning": "How often."} | changes))


def contender(name, value=0.8, **changes):
    known = {"method": "statistics", "kind": "dp", "guarantee": f"claim of {name}", "epsilon": 1.0, "delta": 1e-5}
    known |= {"unit": "person", "max_records": 1}
    distance = score(0.2, key="two_way", name="two-way TV distance", goal="low", interval=None, baseline=0.3, real=0.1)
    return ComparedRun(**(known | {"name": name, "scores": (score(value), distance)} | changes))


def comparison(*contenders, kept_aside=True, **named):
    return Comparison(kept_aside=kept_aside, contenders=contenders, **named)


def test_everybody_is_on_it_with_claim_figures_and_comparisons():
    html = comparison(contender("one", 0.8), contender("two", 0.7)).to_html()
    for words in ("claim of one", "claim of two", "INTERNAL", "independent columns", "Two-way TV distance"):
        assert words in html
    assert html.count("claim of ") == 2
    assert html.count('<table class="matrix">') == html.count("<table") == 1
    assert html.count('class="scale"') == 2  # a scale a figure, with both runs on it


def test_dots_of_one_figure_share_a_scale():
    html = comparison(contender("one", 0.8), contender("two", 0.6)).to_html()
    places = [float(part.split("%")[0]) for part in html.split('class="letter" style="left:')[1:3]]
    assert places[0] > places[1]
    assert html.count('class="dot real" style') == 2  # one a figure


def test_claims_that_differ_are_said_to():
    like = comparison(contender("one"), contender("two"))
    assert like.warnings == ()
    none = {"kind": "none", "epsilon": None, "delta": None}
    for changes in ({"epsilon": 2.0}, {"delta": 1e-6}, none, {"unit": "visit"}, {"max_records": 9}):
        unlike = comparison(contender("one"), contender("two", **changes))
        assert unlike.warnings == (UNLIKE,)
        assert UNLIKE[:30] in unlike.to_html()
        assert f"! {UNLIKE}" in str(unlike)


def test_rows_that_the_fits_have_seen_are_said_to_be():
    seen = comparison(contender("one"), kept_aside=False)
    assert len(seen.warnings) == 1
    assert seen.warnings[0][:20] in seen.to_html()
    assert "kept aside" in comparison(contender("one")).to_html()


def test_images_are_called_images():
    html = comparison(contender("one"), records="images", least="class means").to_html()
    assert "class means" in html
    assert "independent columns" not in html


def test_what_is_not_known_is_no_error():
    unknown = contender("one", scores=(score(0.5, baseline=None, real=None), score(None)))
    assert "–" in comparison(unknown).to_html()


def test_names_are_escaped_and_nothing_is_loaded():
    html = comparison(contender("<script>alert(1)</script>", guarantee="<b>x</b>\u202e")).to_html()
    assert "<script" not in html
    assert "<b>x" not in html
    assert "\u202e" not in html
    assert 'http-equiv="Content-Security-Policy"' in html


def test_page_and_figures_are_private_and_replaced(tmp_path):
    page, figures = tmp_path / "which.html", tmp_path / "which.json"
    for value in (0.8, 0.7):
        comparison(contender("one", value)).save(page, figures)
    assert json.loads(figures.read_text())["contenders"][0]["scores"][0]["value"] == 0.7
    assert [stat.S_IMODE(path.stat().st_mode) for path in (page, figures)] == [0o600, 0o600]
    figures.write_text("{}")
    with pytest.raises(InputError, match="already exists"):
        comparison(contender("one")).save(page, figures)


def test_a_figure_that_one_run_lacks_is_a_dash_in_either_order():
    distance = score(0.2, key="two_way", name="two-way TV distance", goal="low", interval=None, baseline=0.3, real=0.1)
    lacking = contender("lacking", scores=(distance,))
    for contenders in ((contender("full"), lacking), (lacking, contender("full"))):
        found = comparison(*contenders)
        html = found.to_html()
        assert html.count("not measured for this run") == 1
        assert html.count("Not measured for lacking (a dash in its row): accuracy.") == 1
        assert "All were measured alike" not in html
        place = [one.name for one in contenders].index("lacking") + 1
        rows = {line.split("  ")[0]: line for line in str(found).splitlines()}
        cells = {name: [cell.strip() for cell in row.split("  ") if cell] for name, row in rows.items()}
        assert cells["accuracy"][place] == "–"
        assert cells["two-way TV distance"][place].startswith("0.200")
    assert "All were measured alike" in comparison(contender("one"), contender("two")).to_html()


def test_each_run_keeps_yardsticks_of_its_own():
    html = comparison(contender("one"), contender("two", scores=(score(0.8, real=0.7),))).to_html()
    assert "real rows 90.0\u00a0%" in html
    assert "real rows 70.0\u00a0%" in html
    assert "scales" in html


def test_yardsticks_that_differ_by_chance_are_one_and_not_called_the_same():
    """As where two runs have bought their bounds: bins differ by noise, and figures with them."""
    found = comparison(contender("one"), contender("two", scores=(score(0.8, real=0.901), contender("two").scores[1])))
    assert found.differences == ()
    assert not found.same_references
    html = found.to_html()
    assert "All were measured alike" not in html
    assert "differs" not in html


def test_classifiers_of_one_key_are_told_by_their_names():
    scores = tuple(score(value, name=name) for name, value in (("Forest", 0.8), ("Logistic", 0.7)))
    found = comparison(contender("one", scores=scores), contender("two", scores=scores[::-1]))
    assert [[other.value for other in entry.scores] for entry in found.side_by_side] == [[0.8, 0.8], [0.7, 0.7]]


def test_runs_are_titled_by_method_and_epsilon():
    none = contender("none", method="gan", kind="none", epsilon=None, delta=None)
    html = comparison(contender("one"), none).to_html()
    assert "statistics, ε = 1<small>one</small>" in html
    assert "gan<small>none</small>" in html


def paired(first, second, *interval):
    value = sum(interval) / 2
    return PairedDifference(key="accuracy", name="accuracy", first=first, second=second, value=value, interval=interval)


@pytest.mark.parametrize(
    ("intervals", "best"),
    [
        ({("one", "two"): (0.01, 0.2), ("one", "three"): (0.02, 0.3), ("two", "three"): (-0.1, 0.2)}, {0}),
        ({("two", "one"): (-0.2, 0.01), ("one", "three"): (0.02, 0.3), ("two", "three"): (-0.1, 0.2)}, {0, 1}),
        ({("one", "two"): (-0.01, 0.2), ("one", "three"): (0.0, 0.3), ("two", "three"): (-0.1, 0.2)}, set()),
        ({("one", "two"): (0.01, 0.2)}, set()),  # of the third nobody knows
        ({}, set()),
    ],
)
def test_a_winner_is_named_only_where_the_paired_interval_excludes_0(intervals, best):
    runs = [contender("one", 0.8), contender("two", 0.7), contender("three", 0.65)]
    found = comparison(*runs, paired=[paired(*names, *ends) for names, ends in intervals.items()])
    accuracy, distance = found.side_by_side
    assert (accuracy.best, accuracy.first) == (best, 0)
    assert distance.best == set()  # not resampled, however far apart
    html = found.to_html()
    assert html.count("(best)") == len(best)
    assert html.count("<small>no interval</small>") == 2 - sum("one" in names for names in intervals) + 2
    assert sum("*" in line for line in str(found).splitlines()[:-4]) == bool(best)


def test_a_difference_says_by_how_much_and_who():
    runs = [contender("one", 0.7), contender("two", 0.8)]
    html = comparison(*runs, paired=[paired("one", "two", -0.15, -0.05)]).to_html()
    assert "<small>B better by 10.0 points</small><small>5.0 to 15.0 points</small>" in html
    assert "0.700 (5.0 to 15.0 points)" in str(comparison(*runs, paired=[paired("one", "two", -0.15, -0.05)]))


def test_one_run_alone_is_no_contest():
    html = comparison(contender("one")).to_html()
    assert "★ is the best run" not in html
    assert "better by" not in html
    assert "no clear difference" not in html


def test_runs_of_one_title_are_told_apart_by_their_folders():
    html = comparison(contender("folder-a"), contender("folder-b")).to_html()
    legend = html[html.index('class="legend"') : html.index("<table")]
    assert "folder-a" in legend
    assert "folder-b" in legend


@pytest.mark.parametrize(
    ("key", "ends", "shown"),
    [
        ("coefficient_signs", (-0.234, 1.234), (-0.234, 1.0)),
        ("overall", (-140.0, 20.0), (-100.0, 20.0)),
        ("coefficients", (-0.2, 1.2), (-0.2, 1.2)),  # its range is what was seen, no bound
    ],
)
def test_a_difference_is_shown_as_far_as_it_is_possible(key, ends, shown):
    full = (0.0, 100.0) if key == "overall" else (0.0, 1.0)
    assert possible(score(0.5, key=key, range=full), ends) == shown
