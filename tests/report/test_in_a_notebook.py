"""A report in a notebook: its page below the cell, its figures as a frame, and drawings that are looked at."""

from __future__ import annotations

import html
import io
import json
import re
import sys
import webbrowser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from PIL import Image

from doublure.data.series import Series
from doublure.errors import InputError, SettingError
from doublure.evaluate import Report, SeriesEvaluation, evaluate_series
from doublure.measures.scores import Score
from doublure.report.display import InlinePage
from doublure.report.drawing import SYNTHETIC
from doublure.report.figures import Figure
from doublure.schema import Schema


@pytest.fixture
def cell(monkeypatch):
    """Return what a notebook's cell is given to display."""
    displayed = []
    module = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=object()),
        display=SimpleNamespace(display=displayed.append),
        version_info=(9, 0),  # matplotlib asks for it
    )
    monkeypatch.setitem(sys.modules, "IPython", module)
    return displayed


def test_the_page_is_shown_below_the_cell(hostile_report, cell):
    hostile_report.show()
    (shown,) = cell
    frame = shown._repr_html_()
    assert re.match(r'<iframe sandbox="" title="report" style="[^"]*" srcdoc="[^"]*"></iframe>$', frame)
    assert html.unescape(re.search('srcdoc="([^"]*)"', frame).group(1)) == hostile_report.to_html()
    assert repr(InlinePage("private")) == "InlinePage()"


def test_elsewhere_a_browser_opens_a_private_file(hostile_report, monkeypatch):
    opened, kept = [], []
    monkeypatch.setattr(Report, "to_html", lambda self: "a page")
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    monkeypatch.setattr("atexit.register", lambda *call, **rest: kept.append((call, rest)))
    hostile_report.show()
    file = Path(opened[0].removeprefix("file://"))
    assert file.read_text(encoding="utf-8") == "a page"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    ((remove, folder), rest) = kept[0]
    remove(folder, **rest)
    assert not file.parent.exists()


def test_without_a_browser_it_says_what_to_do(hostile_report, monkeypatch):
    monkeypatch.setattr(Report, "to_html", lambda self: "a page")
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    with pytest.raises(InputError, match="no browser"):
        hostile_report.show()


def test_scores_are_a_frame(hostile_report):
    found, scores = hostile_report.scores, hostile_report.table.scores
    assert list(found.columns) == ["name", "synthetic", "low", "high", "baseline", "real", "goal", "meaning"]
    assert list(found.index) == [score.key for score in scores]
    for score, (_, row) in zip(scores, found.iterrows(), strict=True):
        for key, value in (("synthetic", score.value), ("baseline", score.baseline), ("real", score.real)):
            assert row[key] == value if value is not None else np.isnan(row[key])
        assert (row["low"], row["high"]) == score.interval if score.interval else np.isnan(row["low"])
    assert found[["synthetic", "low", "real"]].dtypes.eq("float64").all()


# -- figures -----------------------------------------------------------------------------------------------------------


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def test_every_column_of_a_table_is_drawn(hostile_report):
    for entry in hostile_report.table.frequencies:
        figure = hostile_report.plot(entry.column)
        drawn = Image.open(io.BytesIO(figure._repr_png_()))
        pixels = np.asarray(drawn.convert("RGB")).astype(int)
        assert pixels[0, 0].tolist() == [255, 255, 255]
        orange = (pixels[..., 0] > 200) & (abs(pixels[..., 1] - 85) < 30) & (pixels[..., 2] < 80)
        assert orange.sum() > 40  # synthetic rows are there: more than the legend's diamond


def test_a_number_has_two_panels_with_their_axes_named(hostile_report):
    figure = hostile_report.plot("wide")
    first, second = figure.axes
    assert "zero: " in titles(figure)[0]
    assert (first.get_xlabel(), second.get_xlabel(), second.get_ylabel()) == ("wide", "wide", "density")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["real", "synthetic"]
    assert isinstance(figure, Figure)


def test_bars_are_the_shares(hostile_report):
    (entry,) = (entry for entry in hostile_report.table.frequencies if entry.column == "target")
    (axes,) = hostile_report.plot("target").axes
    for bars in axes.containers:
        assert [bar.get_width() for bar in bars] == pytest.approx(list(entry.real))
    (diamonds,) = axes.lines
    assert list(diamonds.get_xdata()) == pytest.approx(list(entry.synthetic))


def test_the_legend_shows_the_marks_that_are_drawn(hostile_report):
    """Diamonds beside bars; an outline beside an area, and dashes where curves stand beside it."""
    bars = hostile_report.plot("target").legends[0]
    (mark,) = [line for line in bars.findobj(Line2D) if line.get_color() == SYNTHETIC]
    assert (mark.get_marker(), mark.get_linestyle()) == ("D", "None")
    both = hostile_report.plot("wide").legends[0]
    (dashes,) = [line for line in both.findobj(Line2D) if line.get_color() == SYNTHETIC]
    assert (dashes.get_marker(), dashes.get_linestyle()) == ("None", "--")
    outlines = [patch for patch in both.findobj(Patch) if not patch.get_fill()]
    assert [to_hex(patch.get_edgecolor()) for patch in outlines] == [SYNTHETIC]


def test_another_name_is_refused_with_a_near_one(hostile_report):
    with pytest.raises(SettingError) as caught:
        hostile_report.plot("wede")
    assert (caught.value.field, caught.value.remedy) == ("wede", "did you mean wide?")
    with pytest.raises(SettingError, match="is needed: there are several"):
        hostile_report.plot()


@pytest.fixture(scope="module")
def of_series():
    channel = "{a: {type: real, bounds: [-5, 5], missing: true}}"
    text = f"doublure: 1\nkind: series\nunits: 90\nseries: {{length: 6, gaps: missing}}\nchannels: {channel}\n"

    def draw(seed):
        values = np.random.default_rng(seed).normal(size=(90, 6, 1)).clip(-5, 5)
        return Series(values=values, channels=("a",), attributes=pd.DataFrame(index=range(90)))

    schema = Schema.parse(text).resolve({})
    return Report(series=evaluate_series(schema, draw(1), draw(2), draw(3), classifiers=False, nearest=False))


def test_a_channel_is_drawn_and_may_be_left_out_where_there_is_one(of_series):
    assert titles(of_series.plot()) == [
        "a: mean, and where four in five lie",
        "autocorrelation (independent steps in grey)",
    ]
    assert of_series.plot("a")._repr_png_() == of_series.plot()._repr_png_()
    assert "Evaluation" in of_series._repr_html_()


def test_figures_stand_under_their_kinds_name(of_series):
    text = of_series.to_json()
    assert list(json.loads(text))[-1] == "series"
    assert of_series.series is of_series.measured
    again = Report.model_validate_json(text)
    assert type(again.measured) is SeriesEvaluation
    assert again.to_json() == text
    with pytest.raises(AttributeError, match="table"):
        _ = of_series.table


def test_images_show_synthetic_ones_and_shares_of_labels():
    sheet = io.BytesIO()
    Image.new("L", (40, 20), 99).save(sheet, format="png")

    def share(value):
        return Score(key="share", name="share", value=value, real=0.5, goal="near", range=(0, 1))

    classes = [{"label": label, "share": share(value)} for label, value in (("cat", 0.4), ("dog", 0.6))]
    rows = {"synthetic": 10, "train": 10, "holdout": 10, "kept_aside": True}
    found = Report.model_validate(
        {"images": {"seed": 0, "rows": rows, "notes": (), "versions": {},
                    "classifiers": (), "classifiers_skipped": "few",
                    "classes": classes, "pixels": (), "trained": {}, "artificial_sheet": sheet.getvalue(),
                    "real_sheet": b"private"}}
    )  # fmt: skip
    sheet_axes, shares = found.plot().axes
    assert np.asarray(sheet_axes.images[0].get_array()).shape[:2] == (20, 40)
    assert [bar.get_width() for bar in shares.containers[0]] == [0.5, 0.5]
    assert list(shares.lines[0].get_xdata()) == [0.4, 0.6]
