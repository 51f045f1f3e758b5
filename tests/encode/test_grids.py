"""Public bins: few values one by one, incomes by equal ratio, everything else by equal width."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.encode.columns import encoding
from doublure.encode.numeric import snapped_numbers
from doublure.errors import SchemaError
from doublure.schema.columns import (
    BoundedColumn,
    CategoryColumn,
    DateColumn,
    DatetimeColumn,
    IntegerColumn,
    NumberColumn,
    RealColumn,
)


@pytest.mark.parametrize(
    ("column", "lower", "upper", "unit"),
    [
        (IntegerColumn(bounds=(-3, 9)), -3, 9, 1),
        (RealColumn(bounds=(0.25, 0.75), precision=1), 0.3, 0.7, 0.1),
        (RealColumn(bounds=(0.1, 0.3), precision=1), 0.1, 0.3, 0.1),
        (RealColumn(bounds=(0.25, 0.75)), 0.25, 0.75, 0),
        (DateColumn(bounds=("1970-01-02", "1970-01-11")), 1, 10, 1),
        (DatetimeColumn(bounds=("1970-01-01T00:00:30", "1970-01-01T01:00:59"), step=60), 60, 3600, 60),
        (DatetimeColumn(bounds=("1969-12-31T23:00:00", "1970-01-01T00:00:00"), step=3600), -3600, 0, 3600),
    ],
)
def test_bounds_move_inwards_to_the_grid(column: NumberColumn, lower: float, upper: float, unit: float) -> None:
    assert (*column.known_grid, column.unit) == pytest.approx((lower, upper, unit))


def test_a_far_end_moves_no_whole_number_of_the_near_one() -> None:
    """Bounds that noise put at the end of exact numbers made -9 of a lower bound of 0."""
    column = IntegerColumn(bounds=(0, 2**53), missing=False)
    assert column.known_grid == (0.0, float(2**53))
    assert column.snap(np.array([-9.0, 2.0**53])).tolist() == [0.0, float(2**53)]


@pytest.mark.parametrize("bounds", ["undeclared", {"learn": 0.1}])
def test_unknown_bounds_have_no_grid(bounds: object) -> None:
    with pytest.raises(SchemaError, match="bounds: is not known yet"):
        IntegerColumn(bounds=bounds).known_grid  # noqa: B018


def test_snapping() -> None:
    grid = number(-1.0, 2.0, 0.5)
    assert grid.snap(np.array([-9.0, -0.3, -0.2, 0.24, 0.26, 9.0])).tolist() == [-1.0, -0.5, 0.0, 0.0, 0.5, 2.0]
    assert not np.signbit(grid.snap(np.array([-0.1]))).any()
    continuum = number(-1.0, 2.0, 0.0)
    assert continuum.snap(np.array([-9.0, -0.0, 0.3])).tolist() == [-1.0, 0.0, 0.3]
    assert not np.signbit(continuum.snap(np.array([-0.0]))).any()


@pytest.mark.parametrize("lower", [-1.5, 0.0, 0.05])
def test_there_is_one_nearest_value_bit_for_bit(lower: float) -> None:
    """Encoders had 0.5700000000000001 where tables and their rules had 0.57, for 250 of 2,000 values."""
    column = RealColumn(bounds=(lower, 97.3), precision=2)
    given = np.random.default_rng(0).uniform(lower, 97.3, 2000)
    nearest = np.round(given, 2)
    found = column.snap(given)
    assert found.tobytes() == nearest.tobytes()
    assert column.snap(found).tobytes() == nearest.tobytes()
    assert column.snapped_numbers_of(column.cells_of(given)).tobytes() == nearest.tobytes()
    assert snapped_numbers(column, given).tobytes() == nearest.tobytes()
    steps = encoding(column, "steps", 1)
    assert steps.numbers(steps.coded(given), None).tobytes() == nearest.tobytes()
    bins = encoding(column, "bins", 10_000)  # one a value: each value falls in its own
    assert bins.numbers(bins.coded(given), None).tobytes() == nearest.tobytes()
    scaled = encoding(column, "scaled", 1)
    assert scaled.numbers(scaled.coded(given), None).tobytes() == nearest.tobytes()


def test_a_value_falls_in_its_own_bin_whatever_its_last_bits() -> None:
    column = RealColumn(bounds=(-1.5, 97.3), precision=2)
    values = column.snap(-1.5 + 0.01 * np.arange(9881))
    (codes,) = encoding(column, "bins", 10_000).coded(values)
    assert codes.tolist() == [*range(9881)]


def number(lower: float, upper: float, unit: float = 1.0, **facts: object) -> RealColumn:
    return RealColumn(bounds=(lower, upper), step=unit or None, **facts)


def test_few_values_are_bins_of_their_own() -> None:
    assert number(1.0, 4.0).bins(32).edges.tolist() == [1, 2, 3, 4, 5]
    assert number(1.0, 4.0).bins(32).names == ("1", "2", "3", "4")
    assert len(number(0.0, 31.0).bins(32).edges) == 33
    assert number(0.0, 3.0, zero_inflated=True).bins(32).edges.tolist() == [1, 2, 3, 4]
    assert number(-2.0, 0.0, spikes=(0.0,)).bins(32).edges.tolist() == [-2, -1, 0]
    for curve in (1.0, 0.5):  # zero alone: one bin, which nothing falls in
        assert number(0.0, 0.5, zero_inflated=True).bins(32, curve=curve).edges.tolist() == [0, 1]


def test_bins_are_named_by_their_lowest_and_highest_value() -> None:
    assert IntegerColumn(bounds=(0, 9)).bins(2).names == ("0 to 4", "5 to 9")
    assert RealColumn(bounds=(0.0, 1.0)).bins(2).names == ("0 to 0.5", "0.5 to 1")
    assert DateColumn(bounds=("2020-01-01", "2020-01-04")).bins(2).names == (
        "2020-01-01 to 2020-01-02", "2020-01-03 to 2020-01-04",
    )  # fmt: skip
    listed = CategoryColumn(values=("a", "b")).bins(1)
    assert (listed.names, listed.edges.tolist(), listed.highs.tolist()) == (("a", "b"), [0, 1, 2], [0, 1])


def widths(column: BoundedColumn, bins: int = 32) -> np.ndarray:
    return np.diff(column.bins(bins).edges)


def test_wide_counts_by_equal_ratio() -> None:
    edges = number(0.0, 99_999.0).bins(32).edges
    ratios = edges[12:-1] / edges[11:-2]
    assert ratios.max() < 1.6  # ten thousand and a hundred thousand are as far apart as ten and a hundred
    assert widths(number(0.0, 99_999.0))[-1] > 1_000


@pytest.mark.parametrize(
    "column",
    [
        number(0.0, 1.0, 0.0),  # shares: 0.001 is no smaller a thing than 0.9
        number(0.0, 1.0, 0.001),
        number(0.0, 500.0, 0.0),
        number(17.0, 90.0),
        number(-50_000.0, 50_000.0),
        number(0.0, 99_999.0, scale="linear"),
        DateColumn(bounds=("1970-01-01", "2030-12-31")),
        DatetimeColumn(bounds=("1970-01-02", "2030-12-31")),
    ],
)
def test_everything_else_by_equal_width(column: BoundedColumn) -> None:
    wide = widths(column)
    assert len(wide) == 32
    assert wide.max() <= wide.min() + max(column.unit, 1e-9) * 1.001


def test_the_calendar_has_no_small_numbers() -> None:
    early = DateColumn(bounds=(dt.date(1970, 1, 2), dt.date(2030, 12, 31)))
    late = DateColumn(bounds=(dt.date(2000, 1, 2), dt.date(2060, 12, 31)))
    assert np.abs(widths(early) - widths(late)).max() <= 1


numbers = st.builds(
    lambda start, length, unit, even: number(
        start * (unit or 1), (start + length) * (unit or 1), unit, scale="linear" if even else None
    ),
    st.integers(-2_000, 2_000),
    st.integers(1, 100_000),
    st.sampled_from([0.0, 0.01, 0.1, 1.0, 60.0]),
    st.booleans(),
)


@examples(300)
@given(numbers, st.integers(1, 64), st.booleans())
def test_bins_cover_the_grid_once(column: RealColumn, bins: int, apart: bool) -> None:
    lower, upper = column.known_grid
    apart = apart and lower <= 0 <= upper
    column = column.model_copy(update={"zero_inflated": apart})
    edges, unit = column.bins(bins).edges, column.unit
    assert 1 <= len(edges) - 1 <= bins
    assert (np.diff(edges) > 0).all()
    first, last = edges[0], edges[-1] - unit
    dropped = unit * (apart and lower == 0), unit * (apart and upper == 0)
    assert first == pytest.approx(lower + dropped[0])
    assert last == pytest.approx(upper - dropped[1])
    if unit:
        steps = (edges - lower) / unit
        assert np.abs(steps - np.rint(steps)).max() < 1e-6
        assert (edges[:-1] == column.snap(edges[:-1])).all()
