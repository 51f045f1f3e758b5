import itertools

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from doublure.attack.roc import ceiling, roc
from doublure.measures.tables.distributions import ColumnFrequencies, NumberDensity
from doublure.measures.tables.quantiles import QuantileShares
from doublure.report import plots


def bars(label):
    return ColumnFrequencies(column="c", kind="category", labels=(label, "b"), real=(0.6, 0.4), synthetic=(0.5, 0.5))


@pytest.mark.parametrize("label", ["a & b", "<b>", r"$\frac{1}{0$", '" onload="x', "日本", "--><script>", "a\u202eb"])
def test_labels_are_text_whatever_they_say(label, parse):
    drawing = plots.frequencies(bars(label))
    page = parse(drawing)
    assert set(page.tags) <= {"svg", "g", "path", "text", "defs", "clippath", "rect", "use"}
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert label.replace("\u202e", r"\u202e") in page.text


def test_colours_and_fonts_come_from_the_page():
    drawing = plots.frequencies(bars("a"))
    assert "var(--real)" in drawing
    assert "var(--synthetic)" in drawing
    assert "font-family" not in drawing
    assert plots.SYNTHETIC not in drawing


def test_a_label_that_is_a_stand_in_colour_is_left_alone(parse):
    assert plots.REAL in parse(plots.frequencies(bars(plots.REAL))).text


def test_drawing_leaves_no_trace_in_matplotlib():
    before = dict(mpl.rcParams)
    plots.frequencies(bars("a"))
    assert dict(mpl.rcParams) == before


def test_the_same_figures_give_the_same_drawing():
    assert plots.frequencies(bars("a")) == plots.frequencies(bars("a"))


@pytest.mark.parametrize(
    ("kind", "edges", "ticks"),
    [
        ("integer", (0.0, 25.0, 50.0, 75.0, 100.0), ["0", "100"]),
        ("integer", (0.0, 10.0, 1000.0, 50_000.0, 4_000_000.0), ["0", "4M", "100", "10k"]),
        ("date", (18_262.0, 18_353.0, 18_444.0, 18_535.0, 18_628.0), ["2020-07-02"]),
    ],
)
def test_bins_are_labelled_by_their_edges(kind, edges, ticks, parse):
    entry = ColumnFrequencies(
        column="c", kind=kind, edges=edges, real=(0.1, 0.2, 0.3, 0.4), synthetic=(0.4, 0.3, 0.2, 0.1)
    )
    text = parse(plots.frequencies(entry)).text.split()
    assert set(ticks) <= set(text)


DAY = 86_400.0


@pytest.mark.parametrize(
    ("kind", "last", "names"),
    [
        ("date", 400.0, ["1970-01-01", "1970-07-20", "1971-02-05"]),
        ("datetime", 400 * DAY, ["1970-01-01", "1970-07-20", "1971-02-05"]),
        ("datetime", DAY / 2, ["00:00\n1970-01-01", "06:00\n1970-01-01", "12:00\n1970-01-01"]),
        ("datetime", DAY, ["00:00\n1970-01-01", "12:00\n1970-01-01", "00:00\n1970-01-02"]),
    ],
)
def test_days_and_moments_have_room_on_an_axis_and_are_told_apart(kind, last, names):
    points, even = tuple(float(point) for point in np.linspace(0, last, 5)), (0.25,) * 4
    bins = tuple(itertools.pairwise(points))
    entries = [
        (
            plots._curves,
            NumberDensity(column="c", kind=kind, scale="linear", points=points, real=(1.0,) * 5, synthetic=(1.0,) * 5),
        ),
        (plots._histogram, ColumnFrequencies(column="c", kind=kind, edges=points, real=even, synthetic=even)),
        (
            plots._quantile_bins,
            QuantileShares(column="c", kind=kind, bins=bins, real=even, synthetic=even, variation=0.0),
        ),
    ]
    for draws, entry in entries:
        axes = Figure().subplots()
        draws(axes, entry)
        told = [label.get_text() for label in axes.get_xticklabels()]
        if isinstance(entry, QuantileShares):
            assert len(told) == len(set(told)) == 3
            assert told[0].endswith("1970-01-01–")
        else:
            assert told == names


def test_empty_bins_at_both_ends_are_not_drawn(parse):
    entry = ColumnFrequencies(
        column="c", kind="integer", edges=(0.0, 10.0, 20.0, 30.0), real=(0.0, 1.0, 0.0), synthetic=(0.0, 1.0, 0.0)
    )
    assert "30" not in parse(plots.frequencies(entry)).text.split()


@pytest.mark.parametrize("shares", [(0.0, 0.0), (1.0, 0.0)])
def test_empty_and_full_columns_can_be_drawn(shares, parse):
    entry = ColumnFrequencies(column="c", kind="integer", edges=(0.0, 1.0, 2.0), real=shares, synthetic=shares)
    assert parse(plots.frequencies(entry)).tags.count("svg") == 1


def test_a_logarithmic_density_is_labelled_in_round_numbers(parse):
    points = tuple(float(10 ** (step / 10)) for step in range(5, 45))
    entry = NumberDensity(
        column="c", kind="integer", scale="log", points=points, real=(1.0,) * 40, synthetic=(0.5,) * 40
    )
    assert {"3.16", "100", "1000", "25.1k"} <= set(parse(plots.density(entry)).text.split())


def test_heat_maps_are_pictures_inside_the_page(parse):
    page = parse(plots.heat_map(("a", "b"), ((1, 0.5), (0.5, 1)), "Association"))
    assert page.attribute("image", "xlink:href")[0].startswith("data:image/png;base64,")
    assert page.attribute("svg", "aria-label") == ["Association, a heat map"]


def test_what_a_claim_allows_stands_on_the_axes_of_the_attack():
    rng = np.random.default_rng(0)
    entry = roc(rng.normal(1, 1, 500), rng.normal(0, 1, 500), 1.0, 1e-5)
    for epsilon, lines in ((1.0, 3), (None, 2)):
        axes = Figure().subplots()
        plots._rates(axes, entry, epsilon, 1e-5)
        assert len(axes.lines) == lines
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        if epsilon is not None:
            shares, allowed = (np.asarray(part) for part in axes.lines[1].get_data())
            assert allowed == pytest.approx([ceiling(share, epsilon, 1e-5) for share in shares])
        assert min(axes.lines[-1].get_xdata()) >= 10 / 500  # fewer others say nothing
        (band,) = axes.collections
        assert band.get_paths()[0].vertices[:, 0].min() == pytest.approx(10 / 500)


def test_too_few_others_draw_no_curve():
    axes = Figure().subplots()
    plots._rates(axes, roc(np.arange(9.0), np.arange(9.0), 1.0, 1e-5), 1.0, 1e-5)
    assert len(axes.lines) == 2
    assert [text.get_text() for text in axes.texts] == ["too few others"]


def test_places_on_an_axis_are_named_in_one_way():
    """A thousand that rounding made was 1e+03 beside 2100."""
    values = (0.25, 12.5, 999.7, 1000.0, 1234.5, 2100.0, 9_999.6, 12_345.0, 999_999.6, 2.5e6, -1000.4)
    assert [plots._tick(value, "real") for value in values] == [
        *("0.25", "12.5", "1000", "1000", "1230", "2100", "10k", "12.3k", "1M", "2.5M", "−1000"),
    ]
