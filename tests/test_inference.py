"""Intervals from noisy tables hold as often as they say; those of synthetic rows alone do not."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.errors import SettingError
from doublure.evaluate import inference, logistic
from doublure.results import MeanInterval
from doublure.training.noisy_tables import NoisyTable

NOISE, ROWS, REPEATS = 30.0, 3000, 250
SCHEMA = """
doublure: 1
kind: table
units: 3000
columns:
  age: {type: integer, bounds: [0, 9], missing: false}
  sex: {type: category, values: [f, m, x], missing: false}
  ill: {type: category, values: ["no", "yes"], missing: false}
"""
DECLARED = db.Schema.parse(SCHEMA)
AGES, SHARES = np.arange(10), np.array([0.6, 0.39, 0.01])
AGE_ODDS, SEX_ODDS = 0.3, np.array([0.0, 0.8, 0.0])


def population(draw, rows):
    age, sex = draw.integers(0, 10, rows), draw.choice(3, rows, p=SHARES)
    ill = draw.random(rows) < 1 / (1 + np.exp(-(AGE_ODDS * (age - 4) + SEX_ODDS[sex])))
    return age, sex, ill.astype(int)


def synthesizer(draw, *, noise=NOISE, rows=ROWS, biased=0, schema=DECLARED, alike=1):
    """Return what stands in for a fit: noisy tables of a sample, and rows drawn from what they say.

    So many rows are alike, as those of a household are.
    """
    age, sex, ill = (each.repeat(alike) for each in population(draw, rows // alike))
    counts = np.zeros((10, 3, 2), dtype=np.int64)
    np.add.at(counts, (age, sex, ill), 1)

    def table(columns, cells, exact):
        noisy = exact + np.rint(draw.normal(0, noise, exact.shape)).astype(np.int64)
        return NoisyTable(columns=columns, cells=cells, counts=noisy, standard_error=noise)

    names = tuple(map(str, AGES)), ("f", "m", "x"), ("no", "yes")
    tables = (
        table(("age",), names[:1], counts.sum((1, 2))),
        table(("sex",), names[1:2], counts.sum((0, 2))),
        table(("ill", "age", "sex"), (names[2], *names[:2]), counts.transpose(2, 0, 1)),
    )
    again = draw.integers(0, rows, rows)
    frame = pd.DataFrame(
        {
            "age": pd.array((age[again] + biased).clip(0, 9), dtype="Int64"),
            "sex": pd.Categorical.from_codes(sex[again], ["f", "m", "x"]),
            "ill": pd.Categorical.from_codes(ill[again], ["no", "yes"]),
        }
    )
    return SimpleNamespace(schema=schema, tables=tables, default_n=rows, sample=lambda n, seed: frame)


def covered(ask, true, **how):
    """Return how often intervals hold, and how often the naive ones do."""
    held = naive = 0
    for repeat in range(REPEATS):
        found = ask(synthesizer(np.random.default_rng(repeat), **how))
        held += found.low <= true <= found.high
        naive += found.naive[0] <= true <= found.naive[1]
    return held / REPEATS, naive / REPEATS


def check_holds(ask, true):
    held, naive = covered(ask, true)
    assert 0.91 <= held <= 0.99  # .95, give or take three deviations of 250 repeats
    return naive


ASKED = {
    "a share": (lambda syn: inference.shares(syn, "sex")[1], SHARES[1]),
    "a mean": (lambda syn: inference.mean(syn, "age"), AGES.mean()),
    "a slope": (lambda syn: inference.logistic(syn, "ill", "yes", ["age", "sex"])[1], AGE_ODDS),
    "a contrast": (lambda syn: inference.logistic(syn, "ill", "yes", ["age", "sex"])[2], SEX_ODDS[1]),
}


HOUSEHOLDS = db.Schema.parse(
    SCHEMA.replace("units: 3000", "units: 1000\nunit: {name: household, id: hh, max_records: 3}")
    + "  hh: {type: id, missing: false}\n"
)


@pytest.mark.parametrize(
    ("ask", "true"),
    [
        (lambda syn: inference.shares(syn, "sex")[0], 0.6),
        (lambda syn: inference.mean(syn, "age"), 4.5),
        (lambda syn: inference.logistic(syn, "ill", "yes", ["age"])[1], None),
    ],
)
def test_rows_of_one_unit_that_are_alike_are_no_more_than_one(ask, true):
    """Sampling counts as often as a unit may have rows; as single rows they would hold too seldom."""
    if true is None:
        exact = synthesizer(np.random.default_rng(0), noise=0.0, rows=600_000)
        true = ask(exact).value
    held, _ = covered(ask, true, noise=3.0, schema=HOUSEHOLDS, alike=3)
    alone, _ = covered(ask, true, noise=3.0, alike=3)
    assert 0.91 <= held <= 0.99
    assert alone < 0.85


@pytest.mark.parametrize(
    ("ask", "true"),
    [
        (lambda syn, **how: inference.shares(syn, "sex", **how)[0], 0.6),
        (lambda syn, **how: inference.mean(syn, "age", **how), 4.5),
    ],
)
def test_people_sampled_by_household_need_a_design_effect(ask, true):
    held, _ = covered(lambda syn: ask(syn, design_effect=3.0), true, noise=3.0, alike=3)
    assert 0.91 <= held <= 0.99


def test_a_design_effect_multiplies_the_variance_of_sampling():
    """Without noise to speak of, all of the variance is that of sampling."""
    widths = {}
    for effect in (1.0, 4.0):
        for syn in (
            synthesizer(np.random.default_rng(3), noise=1e-9),
            only_pairs(np.random.default_rng(3), noise=1e-9),
        ):
            for each in inference.logistic(syn, "ill", "yes", ["age", "sex"], design_effect=effect)[1:3]:
                widths.setdefault(effect, []).append(each.high - each.low)
    np.testing.assert_allclose(widths[4.0], 2 * np.array(widths[1.0]), rtol=1e-6)
    drawn = [0.41, 0.49, 0.36, 0.45, 0.40], [0.0004] * 5
    one, more = (inference.combine(*drawn, design_effect=effect) for effect in (1.0, 4.0))
    assert more.high - more.low > one.high - one.low
    for wrong in (0.0, -1.0, 0.001, "2", math.inf, math.nan):
        with pytest.raises(SettingError, match="design_effect: must be a number of at least 1"):
            inference.shares(syn, "sex", design_effect=wrong)


def test_intervals_of_several_rows_a_unit_say_which_rows_they_are_about():
    syn = synthesizer(np.random.default_rng(1), schema=HOUSEHOLDS)
    found = (inference.mean(syn, "age"), *inference.shares(syn, "sex"), *inference.logistic(syn, "ill", "yes", ["age"]))
    assert {each.note for each in found} == {
        "about the rows that were used: of each household at most 3, in a file the first ones"
    }


def with_missing_outcomes(syn):
    """Return it with a third outcome, missing, of a skip pattern: ages from 5 on are asked alone."""
    *rest, whole = syn.tables
    asked = np.arange(10) >= 5
    counts = np.stack([*(whole.counts * asked[:, None]), (whole.counts * ~asked[:, None]).sum(0)])
    cells = (("no", "yes", "(missing)"), *whole.cells[1:])
    syn.tables = (*rest, dataclasses.replace(whole, cells=cells, counts=counts))
    told = DECLARED.to_plain()
    told["columns"]["ill"]["missing"] = True
    syn.schema = db.Schema.from_plain(told)
    return syn


def test_rows_that_miss_the_outcome_are_left_out_of_a_regression():
    """Counted as not ill, those who were not asked would turn the slope of age."""
    syn = with_missing_outcomes(synthesizer(np.random.default_rng(1), noise=1e-9, rows=20_000))
    _, age, *_ = inference.logistic(syn, "ill", "yes", ["age", "sex"])
    assert age.low < AGE_ODDS < age.high
    _, slope = inference.logistic(syn, "ill", "yes", ["age"])
    assert slope.value == pytest.approx(AGE_ODDS, abs=0.05)
    assert slope.naive[0] < slope.value < slope.naive[1]
    open_at = inference.logistic(syn, "ill", "(missing)", ["sex"])  # who was not asked
    assert open_at[0].value == pytest.approx(0.0, abs=0.1)


def test_tables_of_pairs_cannot_leave_missing_outcomes_out():
    syn = with_missing_outcomes(synthesizer(np.random.default_rng(1), noise=1.0))
    whole = syn.tables[2]
    pairs = [
        dataclasses.replace(whole, columns=tuple(whole.columns[at] for at in kept), counts=whole.counts.sum(gone),
                            cells=tuple(whole.cells[at] for at in kept))
        for kept, gone in [((0, 1), 2), ((0, 2), 1), ((1, 2), 0)]
    ]  # fmt: skip
    syn.tables = (*syn.tables[:2], *pairs)
    with pytest.raises(SettingError, match="ill has missing cells") as refused:
        inference.logistic(syn, "ill", "yes", ["age", "sex"])
    assert refused.value.field == "age"
    few = dataclasses.replace(pairs[0], counts=pairs[0].counts * (np.arange(3) < 2)[:, None])
    syn.tables = (*syn.tables[:2], few, *pairs[1:])
    assert all(math.isfinite(each.value) for each in inference.logistic(syn, "ill", "yes", ["age", "sex"]))


def test_a_cell_that_counts_missing_outcomes_with_others_is_refused():
    syn = with_missing_outcomes(synthesizer(np.random.default_rng(1)))
    whole = syn.tables[2]
    cells = (("yes", "no | (missing)"), *whole.cells[1:])
    counts = np.stack([whole.counts[1], whole.counts[[0, 2]].sum(0)])
    syn.tables = (dataclasses.replace(whole, cells=cells, counts=counts),)
    with pytest.raises(SettingError, match="counted together with missing cells"):
        inference.logistic(syn, "ill", "yes", ["age"])


def test_the_level_of_reference_is_named():
    """By the noisy counts another level may be the most frequent in another fit."""
    for make, noise in ((only_pairs, 3.0), (synthesizer, NOISE)):
        syn = make(np.random.default_rng(1), noise=noise)
        usual = inference.logistic(syn, "ill", "yes", ["age", "sex"])
        found = inference.logistic(syn, "ill", "yes", ["age", "sex"], reference={"sex": "m"})
        assert [each.name for each in found][:3] == ["(intercept), sex = m", "age", "sex = f"]
        assert found[2].value == pytest.approx(-usual[2].value, abs=1e-6)
    wrong = {"hidden by noise": {"sex": "x"}, "is no explaining column": {"age": 3}, "was not counted": {"sex": "k"}}
    for message, named in wrong.items():
        with pytest.raises(SettingError, match=message):
            inference.logistic(syn, "ill", "yes", ["age", "sex"], reference=named)


def test_a_function_of_three_columns_that_no_table_holds_has_a_note():
    syn = only_pairs(np.random.default_rng(0))
    frame = syn.sample(1, 0)
    drawn = [frame, frame.iloc[: ROWS // 2], frame]
    ask = lambda rows: {"young": ((rows["age"] < 3).mean(), 1e-4)}  # noqa: E731
    [found] = inference.estimate(syn, ask, ["age", "sex", "ill"], syntheses=drawn)
    assert "no table holds all of these columns" in found.note
    assert inference.estimate(syn, ask, ["age", "sex"], syntheses=drawn)[0].note == ""
    syn.tables += synthesizer(np.random.default_rng(0)).tables
    assert inference.estimate(syn, ask, ["age", "sex", "ill"], syntheses=drawn)[0].note == ""


@pytest.mark.parametrize("answer", [lambda rows: {"share": 0.5}, lambda rows: 0.5, lambda rows: {"share": ("a", "b")}])
def test_a_function_that_returns_no_pairs_is_refused(answer):
    syn = synthesizer(np.random.default_rng(0))
    with pytest.raises(SettingError, match="returns no estimates with a variance each"):
        inference.estimate(syn, answer, ["age"], syntheses=[syn.sample(1, 0)] * 2)


def test_a_function_sees_the_columns_that_it_names_alone(monkeypatch):
    syn = synthesizer(np.random.default_rng(0))
    frame = syn.sample(1, 0)
    drawn = [frame, frame.iloc[::-1], frame]
    seen = []

    def asked(rows):
        seen.append([*rows])
        return {"young": ((rows["age"] < 3).mean(), 1e-4)}

    inference.estimate(syn, asked, ["age"], syntheses=drawn)
    assert seen == [["age"]] * 3
    with pytest.raises(SettingError, match="is looked at and not named") as refused:
        inference.estimate(syn, lambda rows: {"ill": ((rows["ill"] == "yes").mean(), 1e-4)}, ["age"], syntheses=drawn)
    assert refused.value.field == "columns: ill"
    with pytest.raises(SettingError, match="is looked at and not named"):
        inference.estimate(syn, lambda rows: {"ill": ((rows.ill == "yes").mean(), 1e-4)}, ["age"], syntheses=drawn)
    with pytest.raises(KeyError, match="nonsense"):
        inference.estimate(syn, lambda rows: {}["nonsense"], ["age"], syntheses=drawn)


@pytest.mark.parametrize("name", ASKED)
def test_intervals_hold_in_95_of_100_repetitions(name):
    check_holds(*ASKED[name])


@pytest.mark.parametrize("name", ["a mean", "a slope"])
def test_intervals_without_the_noise_are_caught(monkeypatch, name):
    make = NoisyTable
    monkeypatch.setattr(inference, "NoisyTable", lambda **facts: make(**{**facts, "standard_error": 0.0}))
    monkeypatch.setattr(logistic, "CLEAR", 0.0)
    with pytest.raises(AssertionError):
        check_holds(*ASKED[name])


def test_naive_intervals_hold_less_often():
    """The stand-in's rows are a second sample: that alone takes a naive interval from 95 to 83 of 100."""
    assert check_holds(*ASKED["a mean"]) < 0.9


def test_estimates_need_no_synthetic_row_where_each_value_was_counted():
    one, other = (synthesizer(np.random.default_rng(3), biased=biased) for biased in (0, 3))
    assert inference.shares(one, "sex")[0].value == inference.shares(other, "sex")[0].value
    assert inference.mean(one, "age").value == pytest.approx(inference.mean(other, "age").value)


def test_means_stand_beside_those_of_real_rows():
    syn, real = synthesizer(np.random.default_rng(3)), synthesizer(np.random.default_rng(4)).sample(1, 0)
    [found] = inference.means_beside_real(syn, real, seed=0)
    asked = inference.mean(syn, "age")
    assert (found.column, found.value, found.low, found.high) == ("age", asked.value, asked.low, asked.high)
    assert found.real == pytest.approx(float(real["age"].mean()))
    syn.tables = ()
    assert inference.means_beside_real(syn, real, seed=0) == ()


def test_a_number_that_all_synthetic_rows_miss_is_not_shown():
    syn, real = synthesizer(np.random.default_rng(3)), synthesizer(np.random.default_rng(4)).sample(1, 0)
    rows = syn.sample(1, 0).assign(age=pd.array([pd.NA] * ROWS, dtype="Int64"))
    syn.sample = lambda n, seed: rows
    assert inference.means_beside_real(syn, real, seed=0) == ()


def test_what_noise_hides_is_left_open():
    found = inference.logistic(synthesizer(np.random.default_rng(1)), "ill", "yes", ["sex"])
    assert [each.name for each in found] == ["(intercept), sex = f", "sex = m", "sex = x"]
    assert (found[2].low, found[2].high) == (-math.inf, math.inf)
    assert math.isnan(found[2].value)
    assert all(math.isfinite(each.high) for each in found[:2])


def test_a_regression_all_of_whose_levels_noise_hides_is_left_open():
    found = inference.logistic(synthesizer(np.random.default_rng(1), noise=3000.0), "ill", "yes", ["sex"])
    assert all((each.low, each.high) == (-math.inf, math.inf) for each in found)


def test_without_noise_the_coefficients_are_those_of_maximum_likelihood():
    from sklearn.linear_model import LogisticRegression

    draw = np.random.default_rng(5)
    syn = synthesizer(draw, noise=1e-9, rows=20_000)
    found = inference.logistic(syn, "ill", "yes", ["age", "sex"])
    age, sex, ill = population(np.random.default_rng(5), 20_000)
    design = np.stack([age, sex == 1, sex == 2], axis=1)
    fitted = LogisticRegression(C=1e9, max_iter=1000).fit(design, ill)
    np.testing.assert_allclose([each.value for each in found[1:]], fitted.coef_[0], atol=2e-3)


def only_pairs(draw, **how):
    """Return a stand-in whose fit has counted pairs alone: the table of three is split into three tables of two."""
    syn = synthesizer(draw, **{**how, "noise": 1e-9})
    exact, noise = syn.tables[2], how.get("noise", NOISE)
    tables = []
    for columns in [("age", "ill"), ("sex", "ill"), ("age", "sex")]:
        rest = next(axis for axis, name in enumerate(exact.columns) if name not in columns)
        left = [name for name in exact.columns if name in columns]
        counts = exact.counts.sum(rest)
        counts = counts + np.rint(draw.normal(0, noise, counts.shape)).astype(np.int64)
        cells = tuple(exact.cells[exact.columns.index(name)] for name in left)
        tables.append(NoisyTable(columns=tuple(left), cells=cells, counts=counts, standard_error=noise))
    syn.tables = tuple(tables)
    return syn


@pytest.mark.parametrize("place", [1, 2])
def test_three_tables_of_pairs_answer_as_one_table_of_three_would(place):
    true = [AGE_ODDS, SEX_ODDS[1]][place - 1]
    found = [inference.logistic(only_pairs(np.random.default_rng(own)), "ill", "yes", ["age", "sex"])[place]
             for own in range(REPEATS)]  # fmt: skip
    values = np.array([each.value for each in found])
    assert 0.91 <= np.mean([each.low <= true <= each.high for each in found]) <= 0.99
    assert abs(values.mean() - true) < 4 * values.std() / math.sqrt(REPEATS)  # not nearer to zero


def test_without_noise_three_tables_answer_as_one():
    draw = np.random.default_rng(5)
    pairs = inference.logistic(only_pairs(draw, noise=1e-9, rows=20_000), "ill", "yes", ["age", "sex"])
    whole = inference.logistic(synthesizer(np.random.default_rng(5), noise=1e-9, rows=20_000), "ill", "yes",
                               ["age", "sex"])  # fmt: skip
    assert [each.name for each in pairs] == [each.name for each in whole]
    # They differ by how far the outcome's log-odds are off a sum of two parts, which three tables alone show.
    np.testing.assert_allclose([each.value for each in pairs], [each.value for each in whole], atol=0.02)


def test_two_columns_whose_table_noise_hides_are_left_open():
    found = inference.logistic(only_pairs(np.random.default_rng(1), noise=3000.0), "ill", "yes", ["age", "sex"])
    assert all((each.low, each.high) == (-math.inf, math.inf) for each in found)


@pytest.mark.parametrize("value", ["yes", True])
def test_the_outcome_is_named_as_its_column_reads_it(value):
    syn = synthesizer(np.random.default_rng(1))
    if value is True:
        told = DECLARED.to_plain()
        told["columns"]["ill"] = {"type": "boolean", "missing": False, "written": {"true": "ja", "false": "nein"}}
        syn.schema = db.Schema.from_plain(told)
        rows = syn.sample(1, 0).assign(ill=lambda rows: rows["ill"] == "yes")
        syn.sample = lambda n, seed: rows
        named = syn.tables[2]
        cells = (("false", "true"), *named.cells[1:])
        syn.tables = (*syn.tables[:2], NoisyTable(columns=named.columns, cells=cells, counts=named.counts,
                                                  standard_error=named.standard_error))  # fmt: skip
        found = {
            inference.logistic(syn, "ill", each, ["sex"])[1].value for each in (True, 1, "1", "True", "ja", "true")
        }
        assert len(found) == 1
    with pytest.raises(SettingError, match=r"use one of: (no, yes|false, true)"):
        inference.logistic(syn, "ill", "perhaps", ["sex"])


def test_intervals_end_at_what_is_possible():
    """A cut interval holds the true figure as often, since that is never beyond; the value stays unbiased."""
    found = [inference.shares(synthesizer(np.random.default_rng(own), noise=300.0), "sex")[2] for own in range(40)]
    assert all(0 <= each.low <= each.high <= 1 for each in found)
    assert min(each.value for each in found) < 0
    ages = [inference.mean(synthesizer(np.random.default_rng(own), noise=9000.0), "age") for own in range(40)]
    assert all(0 <= each.low <= each.high <= 9 for each in ages)


def test_a_mean_of_dates_is_a_date():
    told = DECLARED.to_plain()
    told["columns"]["age"] = {"type": "date", "bounds": ["1970-01-01", "1970-01-10"], "missing": False}
    syn = synthesizer(np.random.default_rng(3))
    syn.schema = db.Schema.from_plain(told)
    rows = syn.sample(1, 0)
    dated = rows.assign(age=pd.to_datetime(rows["age"].astype(int), unit="D"))
    syn.sample = lambda n, seed: dated
    days = tuple(f"1970-01-{1 + at:02}" for at in range(10))
    ages = syn.tables[0]
    syn.tables = (NoisyTable(columns=ages.columns, cells=(days,), counts=ages.counts, standard_error=NOISE),)
    found = inference.mean(syn, "age")
    assert found.dates == tuple(f"1970-01-{1 + round(at):02}" for at in (found.value, found.low, found.high))


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda syn: inference.shares(syn, "ill"), "ill"),
        (lambda syn: inference.mean(syn, "sex"), "sex"),
        (lambda syn: inference.logistic(syn, "ill", "perhaps", ["sex"]), "ill = perhaps"),
        (lambda syn: inference.logistic(syn, "sex", "m", ["height"]), "height"),
    ],
)
def test_what_was_not_counted_is_refused(ask, field):
    syn = synthesizer(np.random.default_rng(1))
    syn.tables = (syn.tables[1], syn.tables[2]) if field != "ill" else syn.tables[:2]
    with pytest.raises(SettingError) as refused:
        ask(syn)
    assert refused.value.field == field


def test_a_computed_column_is_refused_with_the_one_that_it_follows_from():
    syn = synthesizer(np.random.default_rng(1))
    told = DECLARED.to_plain()
    told["columns"]["old"] = {"type": "integer", "bounds": [0, 18], "missing": False}
    syn.schema = db.Schema.from_plain({**told, "constraints": [{"formula": {"of": "old", "from": "2 * age"}}]})
    for ask in (lambda: inference.mean(syn, "old"), lambda: inference.logistic(syn, "sex", "m", ["old"])):
        with pytest.raises(SettingError, match="old: was not counted; old is computed from age: ask for age"):
            ask()


def test_a_mean_is_shown_with_the_digits_that_its_interval_tells():
    row = MeanInterval(column="n", value=-0.18871, low=0.0, high=0.4612, naive_low=-0.1, naive_high=0.3, real=0.066)
    assert row.shown == ("0.00", "0.00", "0.46", "−0.10", "0.30", "0.07")
    wide = MeanInterval(column="n", value=825.3, low=819.239, high=831.359, naive_low=1.0, naive_high=2.0, real=1e6)
    assert wide.shown == ("825.3", "819.2", "831.4", "1.0", "2.0", "1,000,000.0")


def test_an_open_interval_says_why_and_what_to_do():
    """No interval of all numbers without a reason; a closed one has none."""
    draw = np.random.default_rng(0)
    lost = inference.logistic(synthesizer(draw, noise=400.0), "ill", "yes", ["sex"])
    opened = [each for each in lost if not math.isfinite(each.high)]
    assert opened
    assert all("at this ε noise hides its rows" in each.note and "plan with more ε" in each.note for each in opened)
    empty = inference.combine([0.4, math.nan, 0.5], [0.01, math.nan, 0.01])
    assert "some synthesis has no rows for it" in empty.note
    steps = inference.combine([3.0, 3.0, 3.0], [0.01] * 3)
    assert "moves in steps" in steps.note
    assert "ask for a share or a mean" in steps.note
    assert inference.combine([0.41, 0.49, 0.36], [0.0004] * 3).note == ""
    assert all(each.note == "" for each in inference.shares(synthesizer(draw), "sex"))
