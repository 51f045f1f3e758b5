"""Rules that compute a column from others: their grammar, their cells, and every way in which they do not fit."""

from __future__ import annotations

import datetime
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import examples

from doublure.errors import SchemaError
from doublure.schema import Schema
from doublure.schema.rules.arithmetic import ValueRange, parse_formula
from doublure.schema.rules.rule_set import RuleSet

A = "a: {type: integer, bounds: [0, 9], missing: false}"
B = "b: {type: integer, bounds: [1, 5], missing: false}"
X = "x: {type: real, bounds: [0, 50], precision: 1, missing: true}"
FROM = "from: {type: date, bounds: [2020-01-01, 2020-12-31], missing: false}"
TO = "to: {type: datetime, bounds: [2020-01-01, 2021-12-31], missing: true}"
BORN = "born: {type: date, bounds: [1950-01-01, 2019-12-31], missing: false}"
YEARS = "years: {type: integer, bounds: [0, 120], missing: true}"
YEAR = "year: {type: integer, bounds: [1950, 2030], missing: false}"

HIRED = "hired: {type: year, bounds: [1960, 2020], missing: false}"
LEFT = "left: {type: year, bounds: [1960, 2024], missing: false}"

OLD = "old: {type: date, bounds: [1900-01-01, 1940-01-01], missing: false}"


def schema_of(columns: str, rules: str) -> Schema:
    return Schema.parse(f"doublure: 1\nkind: table\nunits: 9\ncolumns: {{{columns}}}\nconstraints: [{rules}]")


def computed(schema: Schema, **cells: Any) -> list[float]:
    """Return the one computed column of rows whose other cells are given, as the schema would read these."""
    numbers = {name: np.array([_number(schema, name, cell) for cell in own]) for name, own in cells.items()}
    (each,) = RuleSet(schema.constraints, schema.columns).derived
    return each.follow(*(numbers[name] for name in each.sources)).tolist()


def _number(schema: Schema, name: str, cell: Any) -> float:
    return math.nan if cell is None else schema.columns[name].number_of(cell)


def test_a_difference_of_times_counts_completed_units_or_parts_of_them() -> None:
    rule = "{difference: {of: years, from: from, to: to, unit: day}}"
    whole = schema_of(f"{FROM}, {TO}, {YEARS}", rule)
    at = ["2020-02-28"] * 3 + [None]
    assert computed(whole, **{"from": at[:3], "to": ["2020-03-01T23:59:59", "2020-02-28", "2020-02-29T06:00:00"]}) == [
        2.0,
        0.0,
        1.0,
    ]
    assert math.isnan(computed(whole, **{"from": ["2020-02-28"], "to": [None]})[0])
    part = schema_of(f"{FROM}, {TO}, {X}", rule.replace("years", "x"))
    assert computed(part, **{"from": ["2020-01-01"], "to": ["2020-01-03T06:00:00"]}) == [2.2]  # 2.25, half to even
    weeks = schema_of(f"{FROM}, {TO}, {X}", rule.replace("years", "x").replace("day", "week"))
    assert computed(weeks, **{"from": ["2020-01-01"], "to": ["2020-01-15"]}) == [2.0]


def test_a_difference_of_durations_and_of_numbers_needs_no_unit() -> None:
    spans = ", ".join(
        f"{name}: {{type: duration, bounds: ['0:00:00', '{end}:00:00'], missing: false}}"
        for name, end in (("s", 5), ("t", 9), ("d", 9))
    )
    schema = schema_of(spans, "{difference: {of: d, from: s, to: t}}")
    assert computed(schema, s=["0:30:00"], t=["2:00:00"]) == [5400.0]
    numbers = schema_of(
        f"{A}, {B}, c: {{type: integer, bounds: [-9, 9], missing: false}}", "{difference: {of: c, from: a, to: b}}"
    )
    assert computed(numbers, a=[7], b=[2]) == [-5.0]


def test_an_age_is_completed_on_the_birthday() -> None:
    schema = schema_of(f"{BORN}, {TO}, {YEARS}", "{age: {of: years, born: born, at: to}}")
    born = ["2000-02-29", "2000-02-29", "2000-02-29", "1999-12-31", "2000-06-15", "2000-06-15"]
    at = ["2021-02-28T23:59:59", "2021-03-01", "2020-02-29", "2020-01-01", "2020-06-14T12:00:00", "2020-06-15"]
    assert computed(schema, born=born, to=at) == [20.0, 21.0, 20.0, 20.0, 19.0, 20.0]
    fixed = schema_of(f"{BORN}, {YEARS}", "{age: {of: years, born: born, at: 2024-07-01}}")
    assert computed(fixed, born=["2000-07-01", "2000-07-02"]) == [24.0, 23.0]


def test_years_have_decimals_where_the_column_has() -> None:
    """A column of decimal ages had to be left out: `age` gave whole years alone, and `difference` had no years."""
    x = "x: {type: real, bounds: [-1, 120], precision: 3, missing: true}"
    born = ["2000-02-29", "2000-03-01", "2000-07-02", "2000-07-02"]
    at = ["2021-03-01", "2020-02-29T12:00:00", "2001-01-01", "2000-07-01"]
    days = [21.0, 19 + 365 / 366, 183 / 365, -1 / 366]
    aged = schema_of(f"{BORN}, {TO}, {x}", "{age: {of: x, born: born, at: to}}")
    assert computed(aged, born=born, to=at) == [round(each, 3) + 0.0 for each in days]
    between = schema_of(f"{BORN}, {TO}, {x}", "{difference: {of: x, from: born, to: to, unit: year}}")
    days[1] = 19 + 365.5 / 366  # moments to the second
    assert computed(between, born=born, to=at) == [round(each, 3) + 0.0 for each in days]
    whole = schema_of(
        f"{BORN}, {TO}, {YEARS.replace('0,', '-1,')}", "{difference: {of: years, from: born, to: to, unit: year}}"
    )
    assert computed(whole, born=born, to=at) == [21.0, 19.0, 0.0, -1.0]


@given(born=st.dates(datetime.date(1950, 1, 1), datetime.date(2019, 12, 31)), days=st.integers(0, 700))
@examples(60)
def test_ages_are_those_of_the_calendar(born: datetime.date, days: int) -> None:
    at = datetime.date(2020, 1, 1) + datetime.timedelta(days)
    schema = schema_of(f"{BORN}, {TO}, {YEARS}", "{age: {of: years, born: born, at: to}}")
    expected = at.year - born.year - ((at.month, at.day) < (born.month, born.day))
    assert computed(schema, born=[born], to=[at]) == [expected]


def test_products_and_formulas_take_the_columns_own_precision() -> None:
    product = schema_of(f"{A}, {B}, {X}", "{product: {of: x, from: [a, b]}}")
    assert computed(product, a=[3, 9], b=[5, 5]) == [15.0, 45.0]
    formula = schema_of(f"{A}, {B}, {X}", "{formula: {of: x, from: 'max(a, b) / (b + 2) - -1.25'}}")
    assert computed(formula, a=[3, 9], b=[5, 1]) == [2.0, 4.2]
    quoted = schema_of(f"'a-b c': {A[3:]}, {X}", "{formula: {of: x, from: '`a-b c` * 2'}}")
    assert computed(quoted, **{"a-b c": [4]}) == [8.0]
    divided = schema_of(f"{A}, {X}", "{formula: {of: x, from: '1 / a'}}")
    assert computed(divided, a=[0, 2])[1] == 0.5
    assert math.isnan(computed(divided, a=[0])[0])


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("a - b", -5, 8),
        ("a * b", 0, 45),
        ("(a - 4) * b", -20, 25),
        ("abs(a - 4)", 0, 5),
        ("a / b", 0, 9),
        ("min(a, b) + max(a, b)", 1, 14),
        ("round(a / 4) - floor(b / 2)", -2, 2),
    ],
)
def test_the_range_of_a_formula_holds_all_its_values(text: str, low: float, high: float) -> None:
    formula = parse_formula(text)
    reach = formula.reach({"a": ValueRange(0, 9), "b": ValueRange(1, 5)})
    assert (reach.low, reach.high, reach.hole) == (low, high, False)
    a, b = (each.ravel().astype(float) for each in np.meshgrid(np.arange(10), np.arange(1, 6)))
    values = formula.value({"a": a, "b": b})
    assert low <= values.min() and values.max() <= high  # noqa: PT018


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')", "a.real", "a[0]", "a ** 9", "a if b else a", "lambda: a", "[a for a in b]",
        "'a'", "a < b", "True", "1e999", "a @ b", "min(a)", "sum(a, b)", "a; b", "a :=", "f'{a}'",
        "(" * 300 + "a" + ")" * 300,
        "a" * 1001, "", "1 + 1", "round(a, ndigits=1)", "a\n+b",
    ],
)  # fmt: skip
def test_a_formula_is_arithmetic_and_nothing_else(text: str) -> None:
    quoted = text.replace("'", "''").replace("\n", "\\n")
    with pytest.raises(SchemaError) as caught:
        schema_of(f"{A}, {B}, {X}", f"{{formula: {{of: x, from: '{quoted}'}}}}")
    assert caught.value.field.startswith("constraints")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("rule", "cells", "result"),
    [
        ("{formula: {of: years, from: '2024 - hired'}}", {"hired": [1960, 2020]}, [64.0, 4.0]),
        ("{formula: {of: left, from: 'hired + years'}}", {"hired": [1990], "years": [3]}, [1993.0]),
        ("{difference: {of: years, from: hired, to: left}}", {"hired": [1990], "left": [2024]}, [34.0]),
        ("{age: {of: years, born: hired, at: 2024-12-31}}", {"hired": [1960, 2020]}, [64.0, 4.0]),
        ("{age: {of: years, born: hired, at: left}}", {"hired": [1990], "left": [2001]}, [11.0]),
        ("{age: {of: years, born: hired, at: to}}", {"hired": [1990], "to": ["2021-12-31"]}, [31.0]),
        ("{age: {of: years, born: born, at: left}}", {"born": ["1950-12-31"], "left": [2001]}, [51.0]),
    ],
)
def test_a_year_is_a_number_of_rules(rule: str, cells: dict[str, Any], result: list[float]) -> None:
    years = YEARS if "of: years" in rule else YEARS.replace("true", "false")
    schema = schema_of(f"{HIRED}, {LEFT}, {BORN}, {TO}, {years}", rule)
    assert computed(schema, **cells) == result


def test_an_age_by_years_is_refused_where_all_of_it_lies_outside_the_bounds() -> None:
    rule = "{age: {of: years, born: hired, at: left}}"
    ages = schema_of(f"{HIRED}, {LEFT}, {YEARS}", rule).constraints[0].reach  # type: ignore[attr-defined]
    columns = schema_of(f"{HIRED}, {LEFT}, {YEARS}", rule).columns
    assert ages(columns) == ValueRange(-60.0, 64.0)
    with pytest.raises(SchemaError, match="gives years from 4 to 64, all outside its bounds"):
        schema_of(f"{HIRED}, {YEARS.replace('[0, 120]', '[80, 120]')}", rule.replace("left", "2024-01-01"))


@pytest.mark.parametrize(
    "rule",
    [
        "{at_most: [hired, until]}",
        "{at_most: [until, left]}",
        "{range: {of: left, least: hired, most: hired + 30}}",
        "{sum: {total: left, of: [hired, years]}}",
    ],
)
def test_years_and_whole_numbers_keep_rules_together(rule: str) -> None:
    until = "until: {type: integer, bounds: [1960, 2024], missing: false}"
    schema = schema_of(f"{HIRED}, {LEFT}, {until}, {YEARS.replace('true', 'false')}", rule)
    rng = np.random.default_rng(0)
    numbers = {name: rng.integers(*map(int, own.limits), 200).astype(float) for name, own in schema.columns.items()}
    rules = RuleSet(schema.constraints, schema.columns)
    assert rules.broken(numbers).any()
    rules.fix(numbers, rng)
    assert not rules.broken(numbers).any()


@pytest.mark.parametrize(
    ("columns", "rule", "words"),
    [
        (f"{FROM}, {TO}, {YEARS}", "{difference: {of: years, from: from, to: to}}", "needs a unit"),
        (f"{A}, {B}, {X}", "{difference: {of: x, from: a, to: b, unit: day}}", "these are no times"),
        (f"{A}, {TO}, {YEARS}", "{difference: {of: years, from: a, to: to, unit: day}}", "two times, or two numbers"),
        (f"{FROM}, {TO}, {YEARS}", "{difference: {of: years, from: from, to: gone, unit: day}}", "not a column"),
        (f"{FROM}, {TO}, {A}", "{difference: {of: a, from: from, to: to, unit: day}}", "declare missing: true"),
        (f"{FROM}, {BORN}, {A}", "{difference: {of: a, from: from, to: born, unit: day}}", "all outside its bounds"),
        (f"{A}, {B}, {YEARS}", "{age: {of: years, born: a, at: b}}", "which is no date"),
        (f"{BORN}, {FROM}, {TO}", "{age: {of: to, born: born, at: from}}", "is no number"),
        (f"{A}, {X}", "{formula: {of: x, from: 'a / 0'}}", None),
        (f"{A}, x: {{type: integer, bounds: [0, 9], missing: false}}", "{formula: {of: x, from: '1 / a'}}", "by zero"),
        (f"{A}, {TO}, {X}", "{product: {of: x, from: [a, to]}}", "which is no number"),
        (f"{A}, {X}", "{product: {of: x, from: [a, a]}}", "names a column twice"),
        (f"{A}, {B}, {X}", "{product: {of: x, from: [a, b]}}, {formula: {of: x, from: 'a'}}", "follows by two rules"),
        (f"{A}, {B}, {X}", "{formula: {of: a, from: 'b + x'}}, {formula: {of: x, from: 'a + b'}}", "missing: true"),
        (f"{X}, {X.replace('x:', 'y:')}", "{formula: {of: x, from: 'y'}}, {formula: {of: y, from: 'x'}}", "circle"),
        (f"{A}, {B}, x: {{type: real, bounds: {{learn: 1}}}}", "{product: {of: x, from: [a, b]}}", "learned"),
        (f"{A}, {B}", "{range: {of: a}}", "has no end"),
        (f"{A}, {B}", "{range: {of: a, least: b + 9}}", "no value of a lies in its range"),
        (f"{A}, {B}", "{range: {of: a, most: a + 1}}", "names the column itself"),
        (f"{A}, {TO}", "{range: {of: to, most: a}}", "which is no number"),
        (f"{FROM}, {TO}, {HIRED}", "{difference: {of: hired, from: from, to: to}}", "which is no number"),
        (f"{A}, {X}", "{formula: {of: x, from: 'log(a)'}}", "log is no function of formulas"),
        (f"{A}, {X}", "{formula: {of: x, from: 'min(a)'}}", "min has another number of arguments"),
        (f"{A}, {TO}", "{at_most: [a, to]}", "to be of one type"),
        (f"{YEAR}, {OLD}", "{at_most: [year, old]}", "no value of year"),
    ],
)  # fmt: skip
def test_rules_that_do_not_fit_are_refused(columns: str, rule: str, words: str | None) -> None:
    if words is None:
        assert schema_of(columns, rule)
        return
    with pytest.raises(SchemaError) as caught:
        schema_of(columns, rule)
    assert words in f"{caught.value.message}; {caught.value.remedy}"
    assert caught.value.field.startswith("constraints")


def test_a_computed_schema_is_written_as_it_was_read() -> None:
    rules = (
        "{difference: {of: years, from: from, to: to, unit: day}}, {range: {of: a, least: 1, most: 'b * 2'}}, "
        "{formula: {of: x, from: 'a + b'}}"
    )
    schema = schema_of(f"{A}, {B}, {X}, {FROM}, {TO}, {YEARS}", rules)
    assert Schema.parse(schema.to_yaml()) == schema
    assert schema.resolve({}).constraints == schema.constraints
    assert schema.derived == {"years": "from", "x": "a"}
    said = [rule.explain(schema.columns) for rule in schema.constraints]
    assert said == [
        "years must be the days from from to to",
        "a must be at least 1 and at most b * 2",
        "x must be a + b",
    ]
