"""The page of series: names cannot attack it, ids are its own, and what is drawn is all that was measured."""

import re

import numpy as np
import pandas as pd
import pytest
from markupsafe import Markup

from doublure.data.series import Series
from doublure.evaluate import Report
from doublure.measures.series import SeriesEvaluation, evaluate_series
from doublure.measures.series import plot_data as drawings
from doublure.report.series import series_context
from doublure.schema import Schema

HOSTILE, BIDI = '<script>alert("x")</script>', "safe\u202egnp.exe"
LONG = "a channel that goes on and on " * 5


@pytest.fixture(scope="module")
def found():
    channel = {"type": "real", "bounds": [0, 10], "missing": True}
    schema = Schema.from_plain(
        {
            "doublure": 1, "kind": "series", "units": 100,
            "series": {"time": "t", "length": 24, "step": "1h", "gaps": "missing"},
            "channels": {HOSTILE: channel, LONG.strip(): channel},
            "attributes": {HOSTILE + "2": {"type": "category", "values": [HOSTILE, BIDI], "missing": False}},
        }
    )  # fmt: skip

    def made(n, seed):
        draw = np.random.default_rng(seed)
        values = draw.random((n, 24, 2)) * 5
        values[draw.random(values.shape) < 0.05] = np.nan
        attributes = pd.DataFrame({HOSTILE + "2": pd.Categorical(draw.choice([HOSTILE, BIDI], n), [HOSTILE, BIDI])})
        return Series(values=values, channels=tuple(schema.channels), attributes=attributes)

    return evaluate_series(schema, made(40, 1), made(40, 2), made(30, 3), classifiers=False)


@pytest.fixture(scope="module")
def html(found):
    return Report(series=found).to_html()


def test_nothing_hostile_becomes_markup(html, parse):
    page = parse(html)
    assert "script" not in page.tags
    assert "&lt;script&gt;alert" in html
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "\u202e" not in html
    assert r"safe\u202egnp.exe" in html


def test_long_names_leave_room_for_what_is_drawn(html):
    assert "a channel that goes on and on " * 2 not in html
    for what in ("autocorrelation", "spectrum", "distance by step", "level", "step of the peak"):
        assert html.count(f'<span class="faint">{what}</span>') == 2


def test_ids_are_unique_and_references_resolve(html, parse):
    page = parse(html)
    assert len(set(page.ids)) == len(page.ids)
    wanted = set(re.findall(r"url\(#([^)]*)\)", html))
    assert wanted <= set(page.ids)


def test_days_are_drawn_by_the_clock(found, html):
    assert found.clock[6] == "06:00:00"
    assert html.count("18:00") >= 2 * (1 + 2 + 1) + 12


def test_days_of_the_week_have_their_names(found):
    entries = [drawings._in_words(str(day), "weekday") for day in (0, 6)]
    assert entries == ["Monday", "Sunday"]
    assert drawings._in_words("12", "month") == "December"
    assert drawings._in_words("3", None) == "3"
    assert drawings._in_words("Other", "weekday") == "Other"
    assert {entry.words for entry in found.by_value} == {HOSTILE, BIDI}


def test_why_nobody_was_taught_is_said(html):
    assert "No classifier was asked for." in html


def many(channels: int, values: int) -> SeriesEvaluation:
    """Return an evaluation of so many channels, of which the last are furthest off, by an attribute of so many."""
    names = [f"c{number}" for number in range(channels)]
    kinds = [f"v{number}" for number in range(values)]
    schema = Schema.from_plain(
        {
            "doublure": 1, "kind": "series", "units": 100, "series": {"length": 6},
            "channels": {name: {"type": "real", "bounds": [0, 20], "missing": False} for name in names},
            "attributes": {
                "kind": {"type": "category", "values": kinds, "missing": False},
                "side": {"type": "category", "values": ["left", "right"], "missing": False},
            },
        }
    )  # fmt: skip

    def made(n, seed, off):
        draw = np.random.default_rng(seed)
        values = draw.random((n, 6, channels)) * 5 + off * np.arange(channels)
        kind = pd.Categorical.from_codes(np.arange(n) % values_of, kinds)
        side = pd.Categorical.from_codes(draw.integers(0, 2, n), ["left", "right"])
        return Series(values=values, channels=tuple(names), attributes=pd.DataFrame({"kind": kind, "side": side}))

    values_of = values
    return evaluate_series(
        schema, made(60, 1, 0.5), made(60, 2, 0.0), made(60, 3, 0.0), classifiers=False, nearest=False
    )


@pytest.mark.parametrize(
    ("channels", "drawn", "left_out"),
    [(4, ["c0", "c1", "c2", "c3"], []), (8, ["c7", "c6", "c5", "c4", "c3", "c2"], ["c0", "c1"])],
)
def test_all_channels_are_drawn_or_those_that_are_furthest_off(monkeypatch, channels, drawn, left_out):
    for name in ("profile", "curve", "frequencies", "value_profile"):
        monkeypatch.setattr(f"doublure.report.plots.{name}", lambda *_: Markup(""))
    context = series_context(many(channels, 12))
    for what in ("profiles", "curves", "histograms", "by_value"):
        entries = [entry["channel"] if what == "by_value" else entry["name"] for entry in context[what]]
        assert list(dict.fromkeys(entries)) == drawn
    assert context["channels_left_out"] == left_out
    # Of each channel that is drawn, all values of one attribute at least.
    assert all(len(section["drawings"]) in (12, 2) for section in context["by_value"])
    shown = {section["attribute"] for section in context["by_value"]}
    assert set(context["by_value_left_out"]) == {"kind", "side"} - shown
    assert len(shown) == (2 if channels == 4 else 1)


def test_the_page_says_what_it_leaves_out(monkeypatch):
    for name in ("profile", "curve", "frequencies", "value_profile"):
        monkeypatch.setattr(f"doublure.report.plots.{name}", lambda *_: Markup("<svg></svg>"))
    found = many(8, 13)
    page = Report(series=found).to_html()
    assert "Left out: c0, c1." in page
    assert "Not drawn by kind." in page  # of more than twelve values
    assert page.count('class="mark">worse than baseline') == len(found.beaten)
    assert "Worst: c7, " in page
