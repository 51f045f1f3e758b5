"""A table of all natures of columns: what each does with its cells, its numbers, its texts and its public tree."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import natures
import numpy as np
import pandas as pd
import pytest

from doublure.errors import DataError
from doublure.schema import columns
from doublure.schema.columns import CategoryColumn, DateColumn, ParsedColumn, RealColumn
from doublure.schema.fact_states import Fact

INF = math.inf


@dataclass(frozen=True)
class Nature:
    """A column, and what is known of it.

    Attributes:
        text: Its facts, never missing.
        cells: Raw cells -> the number of each, the lowest and the highest among them.
        texts: Written values -> the number of each.
        misfits: Raw cells that do not fit -> the number that each is coerced to; None is missing.
        refused: What a misfit is refused with, of those that are not read for the nearest value.
        called: Some numbers in units -> their names.
        sampled: The dtype of cells as they are sampled, and of those that may be missing.
        loaded: Of cells as they are loaded.
    """

    text: str
    cells: dict[Any, float]
    misfits: dict[Any, float | None]
    refused: dict[Any, str]
    called: dict[int, str]
    sampled: tuple[str, str]
    loaded: str
    unit: float = 1.0
    texts: dict[Any, float] = field(default_factory=dict)

    @property
    def nullable(self) -> str:
        return self.text.replace("missing: false", "missing: ['?']")


class PercentColumn(RealColumn):
    type: Literal["percent"] = "percent"
    bounds: Fact[tuple[float, float]] = (0.0, 100.0)
    precision: int | None = 1


class DepartmentColumn(CategoryColumn):
    type: Literal["department"] = "department"
    values: Fact[tuple[str, ...]] = ("01", "02", "03")


class PaceColumn(ParsedColumn):
    """Minutes and seconds a kilometre: like no type of the package."""

    type: Literal["pace"] = "pace"
    bounds: Fact[tuple[str, str]] = ("2:00/km", "10:00/km")
    examples: ClassVar[dict[Any, float]] = {"5:12/km": 312.0}

    def parse(self, cell: Any) -> float:
        minutes, seconds = cell.removesuffix("/km").split(":")
        if not cell.endswith("/km"):
            raise ValueError(cell)
        return 60 * int(minutes) + int(seconds)

    @classmethod
    def format(cls, number: float) -> str:
        return f"{round(number) // 60}:{round(number) % 60:02}/km"


class TermColumn(DateColumn):
    type: Literal["term"] = "term"
    bounds: Fact[tuple[dt.date, dt.date]] = (dt.date(2020, 1, 1), dt.date(2020, 12, 31))


NO_INTEGER, NO_REAL = "has cells that are no integer", "has cells that are no real"
NO_TIME, NO_DURATION = "has cells that are no time", "has cells that are no duration"
NO_WHOLE, INFINITE, UNLISTED = "no whole number", "has infinite cells", "has values outside the schema's list"
DAY, DAYS, HOURS = 86_400.0, 18_262.0, 438_288 * 3600.0  # 2020-01-01
NATURES = {
    "integer": Nature(
        "{type: integer, bounds: [-3, 90], missing: false}",
        {"-3": -3, 0: 0, "7": 7, 7.0: 7, " 90 ": 90, np.int8(5): 5},
        {"x": None, "2.5": 2, 3.5: 4, INF: 90, "-inf": -3, 400: 90, "": None},
        {"x": NO_INTEGER, "2.5": NO_WHOLE, INF: INFINITE},
        {-3: "-3", 90: "90"},
        ("int64", "Int64"), "float64", texts={"7": 7, 7: 7},
    ),
    "integer with a step": Nature(
        "{type: integer, bounds: [0, 90000], step: 100, scale: log, spikes: [1500], missing: false}",
        {0: 0, "1500": 1500, 90_000: 90_000},
        {"x": None, "1e9": 90_000, -1: 0},
        {"x": NO_INTEGER, "inf": INFINITE},
        {0: "0", 15: "1500", 900: "90000"},
        ("int64", "Int64"), "float64", unit=100, texts={"1500": 1500},
    ),
    "integer with edges": Nature(
        "{type: integer, bounds: [0, 5000], edges: [10, 20, 2500], missing: false}",
        {0: 0, 5000: 5000, 20: 20},
        {"1,5": None, 6000: 5000},
        {"1,5": NO_INTEGER},
        {20: "20"},
        ("int64", "Int64"), "float64", texts={"20": 20},
    ),
    "integer with zeros": Nature(
        "{type: integer, bounds: [-1000, 10000], zero_inflated: true, scale: symlog, missing: false}",
        {0: 0, -1000: -1000, 10_000: 10_000},
        {"zero": None, 1e12: 10_000},
        {"zero": NO_INTEGER},
        {0: "0", -1000: "-1000"},
        ("int64", "Int64"), "float64", texts={0: 0},
    ),
    "real": Nature(
        "{type: real, bounds: [-1.5, 2.5], precision: 2, missing: false}",
        {-1.5: -1.5, "0.57": 0.57, 2.5: 2.5, "1e-1": 0.1},
        {"x": None, "0,5": None, INF: 2.5, -7: -1.5},
        {"x": NO_REAL, INF: INFINITE},
        {57: "0.57", -150: "-1.5", 0: "0"},
        ("float64", "float64"), "float64", unit=0.01, texts={"0.57": 0.57, 0.1: 0.1},
    ),
    "real with a step": Nature(
        "{type: real, bounds: [0, 20], step: 0.5, missing: false}",
        {0: 0, 7.5: 7.5, "20": 20},
        {"half": None, 21: 20},
        {"half": NO_REAL},
        {15: "7.5"},
        ("float64", "float64"), "float64", unit=0.5, texts={"7.5": 7.5},
    ),
    "percent": Nature(
        "{type: percent, missing: false}",
        {0: 0, "99.5": 99.5, 100: 100},
        {"x": None, 101: 100},
        {"x": "has cells that are no percent"},
        {995: "99.5"},
        ("float64", "float64"), "float64", unit=0.1, texts={"99.5": 99.5},
    ),
    "category": Nature(
        "{type: category, values: [b, a, 3], missing: false}",
        {"b": 0, " a": 1, 3: 2, "3": 2},
        {"c": 0, "": 0, 2.5: 0},
        {"c": UNLISTED},
        {0: "b", 2: "3"},
        ("category", "category"), "category", texts={"a": 1, 3: 2},
    ),
    "category with an other": Nature(
        "{type: category, values: [b, a], other: rest, missing: false}",
        {"b": 0, "a": 1, "rest": 2, "c": 2, 5: 2},
        {"": 2, "b\0": 2},
        {"b\0": "NUL"},
        {2: "rest"},
        ("category", "category"), "category", texts={"rest": 2},
    ),
    "category of numbers": Nature(
        "{type: category, values: [1, 2, 10], missing: false}",
        {1: 0, "01": 0, "2.0": 1, 10: 2},
        {"x": 0, 11: 0},
        {"x": UNLISTED, 11: UNLISTED},
        {2: "10"},
        ("category", "category"), "category", texts={10: 2, "10": 2},
    ),
    "department": Nature(
        "{type: department, missing: false}",
        {"01": 0, "02": 1, "03": 2},
        {"1": 0, "77": 0},
        {"1": UNLISTED},
        {0: "01"},
        ("category", "category"), "category", texts={"03": 2},
    ),
    "ordinal": Nature(
        "{type: ordinal, values: [low, 2, high], missing: false}",
        {"low": 0, 2: 1, "high": 2},
        {"medium": 0},
        {"medium": UNLISTED},
        {1: "2"},
        ("category", "category"), "category", texts={"high": 2, 2: 1},
    ),
    "boolean": Nature(
        "{type: boolean, missing: false}",
        {False: 0, "yes": 1, "T": 1, 0.5 * 2: 1, "n": 0},
        {"maybe": 0, 2: 0, "": 0},
        {"maybe": "has cells that are no boolean"},
        {0: "false", 1: "true"},
        ("bool", "boolean"), "category", texts={"true": 1, True: 1, "no": 0},
    ),
    "time": Nature(
        "{type: time, bounds: ['06:00', '20:00'], step: 900, missing: false}",
        {"06:00": 21_600, "7:15": 26_100, dt.time(12, 30): 45_000, "19:45:00.25": 71_100, "20:00:00": 72_000},
        {"7.15": None, "25:00": None, "07:60": None, "24:00": 21_600, "23:00": 72_000, 7: None, True: None},
        {"7.15": NO_TIME, "24:01": NO_TIME, 7: NO_TIME, dt.time(7, tzinfo=dt.UTC): NO_TIME, b"07:00": NO_TIME},
        {24: "06:00:00", 79: "19:45:00"},
        ("time32[s][pyarrow]", "time32[s][pyarrow]"), "float64", unit=900,
        texts={"07:15": 26_100, dt.time(19, 45): 71_100},
    ),
    "time of the whole day": Nature(
        "{type: time, missing: false}",
        {"00:00": 0, "24:00": 0, "7:00:01": 25_201, "23:59:59": 86_399},
        {"midnight": None},
        {"midnight": NO_TIME},
        {25_201: "07:00:01"},
        ("time32[s][pyarrow]", "time32[s][pyarrow]"), "float64", texts={"23:59:59": 86_399},
    ),
    "duration": Nature(
        "{type: duration, bounds: ['-0:30:00', PT6H], step: 60, numbers_in: min, missing: false}",
        {
            "-0:30:00": -1800, "1:30:00": 5400, "PT1H30M": 5400, "90 min": 5400, 90: 5400, "90": 5400, 0: 0,
            dt.timedelta(hours=2): 7200, np.timedelta64(7200, "s"): 7200, "0 days 02:00:00": 7200, "P0DT1H0.0S": 3600,
            "-1 days +23:45:00": -900, "6 h": 21_600,
        },
        {"long": None, "1:30": None, "1 day": 21_600, "-2:00:00": -1800, "P": None, "1:60:00": None, "P1Y": None},
        {"long": NO_DURATION, "1:30": NO_DURATION, "PT": NO_DURATION, True: NO_DURATION, (1,): NO_DURATION},
        {90: "1:30:00", -30: "-0:30:00", 0: "0:00:00"},
        ("timedelta64[s]", "timedelta64[s]"), "float64", unit=60, texts={"1:30:00": 5400, "PT1H": 3600, 6: 360},
    ),
    "pace": Nature(
        "{type: pace, missing: false}",
        {"2:00/km": 120, " 5:12/km ": 312, "10:00/km": 600},
        {"5:12": None, 312: None, "1:00/km": 120, "fast": None},
        {"5:12": "has cells that are no pace", "fast": "has cells that are no pace"},
        {312: "5:12/km"},
        ("str", "str"), "float64", texts={"5:12/km": 312},
    ),
    "date": Nature(
        "{type: date, bounds: [2020-01-01, 2020-12-31], missing: false}",
        {"2020-01-01": DAYS, dt.date(2020, 3, 1): DAYS + 60, "2020-12-31T23:00:00+01:00": DAYS + 365},
        {"31.1.2020": None, "2020-02-30": None, "2050-01-01": DAYS + 365, 5: None},
        {"31.1.2020": "has cells that are no date", 5: "has cells that are no date"},
        {18_262: "2020-01-01"},
        ("datetime64[s]", "datetime64[s]"), "datetime64[s]", texts={"2020-03-01": DAYS + 60},
    ),
    "term": Nature(
        "{type: term, missing: false}",
        {"2020-01-01": DAYS, "2020-12-31": DAYS + 365},
        {"spring": None},
        {"spring": "has cells that are no term"},
        {18_262: "2020-01-01"},
        ("datetime64[s]", "datetime64[s]"), "datetime64[s]", texts={"2020-01-01": DAYS},
    ),
    "datetime": Nature(
        "{type: datetime, bounds: [2020-01-01T00:00:00, 2020-01-31T00:00:00], step: 3600, missing: false}",
        {"2020-01-01": HOURS, "2020-01-02 05:00": HOURS + 29 * 3600, dt.datetime(2020, 1, 31): HOURS + 30 * DAY},
        {"soon": None, "2030-01-01": HOURS + 30 * DAY},
        {"soon": "has cells that are no datetime"},
        {438_288: "2020-01-01T00:00:00"},
        ("datetime64[s]", "datetime64[s]"), "datetime64[s]", unit=3600,
        texts={"2020-01-02T05:00:00": HOURS + 29 * 3600},
    ),
    "datetime in a zone": Nature(
        "{type: datetime, bounds: [2020-03-28T00:00:00, 2020-03-30T00:00:00], step: 1800, timezone: Europe/Paris, "
        "missing: false}",
        {
            "2020-03-28": 1_585_353_600.0, "2020-03-29T00:30:00Z": 1_585_445_400.0,
            dt.datetime(2020, 3, 29, 12, tzinfo=dt.UTC): 1_585_490_400.0, "2020-03-30": 1_585_526_400.0,
        },
        {"2020-03-29Z": None, "2000-01-01": 1_585_353_600.0},
        {"2020-03-29Z": "has cells that are no datetime"},
        {880_752: "2020-03-28T00:00:00"},
        ("datetime64[s, Europe/Paris]", "datetime64[s, Europe/Paris]"), "datetime64[s]", unit=1800,
        texts={"2020-03-29T12:00:00": 1_585_483_200.0},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _registered():
    """Let four types be registered here."""
    with pytest.MonkeyPatch.context() as patch:
        for name, empty in (("_REGISTERED", {}), ("_WITH_REGISTERED", [])):
            patch.setattr(columns.registry, name, empty)
        for own in (PercentColumn, DepartmentColumn, TermColumn, PaceColumn):
            columns.register(own)
        yield


@pytest.fixture(params=NATURES)
def nature(request) -> Nature:
    return NATURES[request.param]


def all_of(nature: Nature, *, nullable: bool) -> np.ndarray[Any, Any]:
    """Return all whole numbers of a column, or a thousand of them, the ends and the one for missing included."""
    domain = natures.domain_of(nature.nullable if nullable else nature.text)
    last = domain.last + domain.nullable
    few = np.unique(np.linspace(domain.first, last, 1000).astype(np.int64))
    return np.unique([*few, domain.last, last])


# -- cells and numbers -------------------------------------------------------------------------------------------------


def test_cells_are_read_as_numbers(nature):
    for text in (nature.text, nature.nullable):
        column = natures.column_of(text)
        canonical = natures.read(column, [*nature.cells])
        assert str(canonical.dtype) == nature.loaded
        assert natures.numbers_of(column, canonical) == pytest.approx([*nature.cells.values()], rel=1e-12)


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("nullable", [True, False])
def test_numbers_become_cells_and_the_same_numbers_again(nature, nullable, loaded):
    column = natures.column_of(nature.nullable if nullable else nature.text)
    numbers = np.array([*nature.cells.values(), *([np.nan] if nullable else [])], dtype=np.float64)
    made = natures.cells_of(column, numbers, loaded=loaded)
    assert str(made.dtype) == (nature.loaded if loaded else nature.sampled[nullable])
    assert made.isna().tolist() == np.isnan(numbers).tolist()
    again = natures.numbers_of(column, made)
    assert np.allclose(again, numbers, rtol=1e-12, atol=0, equal_nan=True)
    twice = natures.cells_of(column, again, loaded=loaded)
    pd.testing.assert_series_equal(twice, made)
    if loaded:
        pd.testing.assert_series_equal(natures.reread(column, made), made)
    if not isinstance(column, ParsedColumn) or not loaded:  # whose numbers are no cells
        read = natures.read(column, [*made.astype(object).where(made.notna(), None)])
        pd.testing.assert_series_equal(read, natures.reread(column, made))


def test_an_ordinal_keeps_its_order_and_a_category_has_none():
    for name, ordered in (("ordinal", True), ("category", False), ("department", False)):
        made = natures.cells_of(natures.column_of(NATURES[name].text), np.array([0.0, 1.0, 2.0]), loaded=False)
        assert made.cat.ordered is ordered


def test_clocks_that_change_lose_no_order():
    """The hour that is left out in March is the moment after it; the one that stands twice in October, the second."""
    column = natures.column_of(NATURES["datetime in a zone"].text)
    halves = 1_585_353_600.0 + 1800 * np.arange(97)
    made = natures.cells_of(column, halves, loaded=False)
    assert made.is_monotonic_increasing
    gone = (halves >= 1_585_447_200.0) & (halves < 1_585_450_800.0)  # 02:00 to 03:00 of 29 March
    assert gone.sum() == 2
    assert (natures.numbers_of(column, made)[~gone] == halves[~gone]).all()
    assert (natures.numbers_of(column, made)[gone] == 1_585_450_800.0).all()


# -- missing and misfits -----------------------------------------------------------------------------------------------


def test_what_is_missing_is_nothing_or_a_text_that_says_so(nature):
    empty = [None, "", " ", float("nan"), pd.NaT, pd.NA]
    column = natures.column_of(nature.nullable)
    found = natures.read(column, [*empty, "?", " ? ", next(iter(nature.cells))])
    assert found.isna().tolist() == [True] * 8 + [False]
    assert np.isnan(natures.numbers_of(column, found)).tolist() == [True] * 8 + [False]
    for cell in empty:
        with pytest.raises(DataError, match="a: has missing cells, and the schema says missing: false; fix either"):
            natures.read(natures.column_of(nature.text), [cell, next(iter(nature.cells))])


def test_what_may_not_be_missing_is_coerced_to_a_value(nature):
    column = natures.column_of(nature.text)
    (found,) = natures.numbers_of(column, natures.read(column, [None], "coerce"))
    domain = natures.domain_of(nature.text)
    other = getattr(column, "other", None)
    assert found == pytest.approx(domain.first * nature.unit if other is None else domain.last)


def test_what_does_not_fit_is_refused_and_never_shown(nature):
    column = natures.column_of(nature.text)
    for cell, words in nature.refused.items():
        with pytest.raises(DataError) as caught:
            natures.read(column, [next(iter(nature.cells)), cell])
        assert words in str(caught.value)
        assert (caught.value.field, "\n" in str(caught.value)) == ("a", False)
        assert repr(str(cell))[1:-1] not in str(caught.value).replace(column.expected, "").split()


def test_what_does_not_fit_is_coerced_to_a_public_value(nature):
    never, may = natures.column_of(nature.text), natures.column_of(nature.nullable)
    lowest = natures.domain_of(nature.text).first * nature.unit
    for cell, wanted in nature.misfits.items():
        (found,) = natures.numbers_of(never, natures.read(never, [cell], "coerce"))
        assert found == pytest.approx(lowest if wanted is None else wanted), cell
        (found,) = natures.numbers_of(may, natures.read(may, [cell], "coerce"))
        missing = wanted is None or (nature.loaded == "category" and getattr(may, "other", None) is None)
        if missing or not str(cell).strip():
            assert np.isnan(found), cell
        else:
            assert found == pytest.approx(wanted), cell


# -- numbers and texts -------------------------------------------------------------------------------------------------


def test_written_values_have_numbers(nature):
    column = natures.column_of(nature.text)
    for written, number in nature.texts.items():
        assert natures.number_of(column, written) == pytest.approx(number, rel=1e-12)
        assert natures.place_of(column, written) == pytest.approx(number, rel=1e-12)
    for other in ("none of them", [1], None):
        with pytest.raises(ValueError, match="; "):
            natures.number_of(column, other)


def test_a_number_is_called_by_a_text_that_means_it(nature):
    column = natures.column_of(nature.text)
    for number, name in nature.called.items():
        assert natures.text_of(nature.text, number) == name
    for number in all_of(nature, nullable=False)[::50]:
        name = natures.text_of(nature.text, int(number))
        assert natures.number_of(column, name) == pytest.approx(number * nature.unit, rel=1e-12)
    assert natures.text_of(nature.nullable, natures.domain_of(nature.nullable).last + 1) == "(missing)"


# -- whole numbers and the public tree ---------------------------------------------------------------------------------


@pytest.mark.parametrize("nullable", [True, False])
def test_whole_numbers_stand_for_cells_one_to_one(nature, nullable):
    text = nature.nullable if nullable else nature.text
    domain, wholes = natures.domain_of(text), all_of(nature, nullable=nullable)
    assert domain.nullable == nullable
    ends = [*nature.cells.values()]
    assert (domain.first * nature.unit, domain.last * nature.unit) == pytest.approx((min(ends), max(ends)))
    made = natures.cells_of_wholes(text, wholes)
    assert made.isna().tolist() == [nullable and number == domain.last + 1 for number in wholes]
    zone = getattr(natures.column_of(text), "timezone", None)
    told_apart = len(wholes) - (2 if zone else 0)  # half-hours that clocks leave out
    assert made.nunique(dropna=False) == told_apart
    kept = natures.wholes_of(text, made) == wholes
    assert kept.sum() == told_apart


def test_the_tree_begins_with_cells_that_hold_every_value_once(nature):
    domain = natures.domain_of(nature.text)
    starts = domain.starts
    assert starts.dtype == np.int64
    assert starts[0] == domain.first
    assert (np.diff(starts) > 0).all()
    assert starts[-1] <= domain.last
    assert len(starts) <= max(domain.last - domain.first + 1, 600)
    ends = np.append(starts[1:] - 1, domain.last)
    for first, last in [(int(first), int(last)) for first, last in zip(starts, ends, strict=True) if first < last][:5]:
        parts = natures.parts_of(nature.text, first, last)
        assert parts[0] == first
        assert parts[-1] <= last
        assert (np.diff(parts) > 0).all()
        assert len(parts) > 1


def test_what_is_declared_of_cells_is_in_the_tree():
    assert {10, 20, 2500} <= {*natures.domain_of(NATURES["integer with edges"].text).starts.tolist()}
    assert {15, 16} <= {*natures.domain_of(NATURES["integer with a step"].text).starts.tolist()}
    assert {0, 1} <= {*natures.domain_of(NATURES["integer with zeros"].text).starts.tolist()}


def test_times_are_looked_for_where_clocks_divide_the_day():
    day = NATURES["time of the whole day"].text
    assert {*range(0, 86_400, 900)} <= {*natures.domain_of(day).starts.tolist()}
    assert {*range(900, 1800, 60)} <= {*natures.parts_of(day, 900, 1799).tolist()}  # whole minutes, each alone
    span = "{type: duration, bounds: ['0:00:00', '99:00:00'], missing: false}"
    assert {*range(36_000, 72_001, 1800)} <= {*natures.parts_of(span, 36_000, 72_000).tolist()}
    in_minutes = span.replace("missing", "step: 60, missing")
    assert {*range(600, 1201, 30)} <= {*natures.parts_of(in_minutes, 600, 1200).tolist()}


# -- what is bought ----------------------------------------------------------------------------------------------------

BOUNDS = {
    "{type: integer, bounds: {learn: 1, magnitude: 100}, missing: false}": ([1, 7, 7, 30], (int, int)),
    "{type: real, bounds: {learn: 1}, precision: 1, missing: false}": ([0.5, 2.5, 99.0], (float, float)),
    "{type: date, bounds: {learn: 1}, missing: false}": (["1999-05-01", "2020-01-01"], (dt.date, dt.date)),
    "{type: datetime, bounds: {learn: 1}, timezone: Europe/Paris, missing: false}": (
        ["1999-05-01", "2020-01-01T12:00:00"], (dt.datetime, dt.datetime),
    ),
    "{type: time, bounds: {learn: 1}, missing: false}": (["06:50", "07:00", "19:10"], (str, str)),
    "{type: duration, bounds: {learn: 1}, missing: false}": (["0:50:00", "PT2H", "3 d"], (str, str)),
    "{type: percent, bounds: {learn: 1}, missing: false}": ([0.5, 2.5, 99.0], (float, float)),
}  # fmt: skip


@pytest.mark.parametrize("text", BOUNDS)
def test_bounds_are_bought_over_a_public_grid(text):
    raw, types = BOUNDS[text]
    column, points = natures.column_of(text), natures.partition(text, "bounds")
    assert (np.diff(points) > 0).all()
    counts = natures.counted(text, "bounds", natures.read(column, raw))
    assert counts.shape == (2 * len(points) - 1,)
    assert counts.sum() == len(raw)
    assert (natures.partition(text, "bounds") == points).all()  # whatever the data
    for one in range(len(raw)):  # a record moves one cell by one
        fewer = natures.counted(text, "bounds", natures.read(column, raw[:one] + raw[one + 1 :]))
        assert np.abs(counts - fewer).sum() == 1
    far = {"integer": 10**17, "real": 1e20, "percent": 1e20, "time": "23:59:59", "duration": "9000000:00:00"}.get(
        column.type, "9000-01-01"
    )
    beyond = natures.counted(text, "bounds", natures.read(column, [far]))
    assert beyond.sum() == 1
    assert beyond[-1] == 1
    lower, upper = natures.answer(text, "bounds", counts * 1000)
    assert (type(lower), type(upper)) == types
    resolved = natures.schema_of(text).resolve({"columns.a.bounds": (lower, upper)})
    ends = resolved.columns["a"].ends
    numbers = natures.numbers_of(column, natures.read(column, raw))
    assert ends[0] <= numbers.min()
    assert numbers.max() <= ends[1]
    natures.answer(text, "bounds", np.zeros_like(counts))  # nothing seen is an answer, too


SHARES = {
    "{type: category, values: [b, a], other: rest, missing: false, roles: [condition], shares: {learn: 1}}": (
        ["b", "b", "a", "c"], ["b", "a", "rest"], [2, 1, 1],
    ),
    "{type: boolean, missing: false, roles: [condition], shares: {learn: 1}}": (
        ["yes", "no", True], ["False", "True"], [1, 2],
    ),
    "{type: department, missing: false, roles: [condition], shares: {learn: 1}}": (
        ["01", "03", "03"], ["01", "02", "03"], [1, 0, 2],
    ),
    "{type: ordinal, values: [low, 2], missing: false, roles: [condition], shares: {learn: 1}}": (
        ["low", 2, "2"], ["low", "2"], [1, 2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", SHARES)
def test_shares_are_bought_over_declared_values(text):
    raw, values, counts = SHARES[text]
    assert natures.partition(text, "shares") == values
    assert natures.counted(text, "shares", natures.read(natures.column_of(text), raw)).tolist() == counts
    answer = natures.answer(text, "shares", np.array(counts) * 1000)
    assert [*answer] == [value.lower() for value in values]
    assert sum(answer.values()) == pytest.approx(1)
    assert natures.schema_of(text).resolve({"columns.a.shares": answer}).columns["a"].shares == answer


@pytest.mark.parametrize("kind", ["category", "department"])
def test_values_are_bought_over_texts(kind):
    text = f"{{type: {kind}, values: {{learn: 1}}, other: rest, missing: {{learn: 1}}}}"
    read = natures.read(natures.column_of(text), ["b", "a", "b", 3, None])
    assert natures.counted(text, "values", read) == {"b": 2, "a": 1, "3": 1}
    assert natures.answer(text, "values", {"a": 5, "b": 9, "c": 5}) == ("b", "a", "c")
    assert natures.answer(text, "values", {}) == ("rest",)
    assert natures.counted(text, "missing", read).tolist() == [1]
    assert [natures.answer(text, "missing", np.array([count])) for count in (0, 1000)] == [False, True]
