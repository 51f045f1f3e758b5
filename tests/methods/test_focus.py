"""What is in focus is counted more often, at the cost of the rest; what may be said, and what is refused."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import SettingError
from doublure.evaluate import inference
from doublure.methods.method import QuestionForecast
from doublure.methods.statistics.tables import noisy_tables
from doublure.planning.forecasts import forecast_plan
from doublure.training.noisy_tables import NoisyTable

SCHEMA = """
doublure: 1
kind: table
units: 2000
columns:
  a: {type: category, values: [p, q, r], missing: false}
  b: {type: category, values: [p, q, r], missing: false}
  c: {type: category, values: [p, q, r], missing: false}
  d: {type: category, values: [p, q, r], missing: false}
  e: {type: category, values: [p, q, r], missing: false}
  y: {type: category, values: [no, yes], missing: false, roles: [target]}
"""


def planned(**settings: Any) -> db.Plan:
    return db.plan(
        db.Schema.parse(SCHEMA), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", fit_steps=3,
        components=4, **settings,
    )  # fmt: skip


def errors(tmp_path, **settings: Any) -> tuple[db.Plan, dict[tuple[str, ...], float]]:
    """Return the plan, and the standard error of each table that a fit bought: independent columns, so that no pair
    is chosen for what it says."""
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.choice(["p", "q", "r"], 2000) for name in "abcde"})
    frame["y"] = draw.choice(["no", "yes"], 2000)
    plan = planned(**settings)
    ledger = db.Ledger.create(tmp_path / f"ledger{len(list(tmp_path.iterdir()))}", dataset="d", epsilon=10.0, delta=0.1)
    syn = db.fit(frame, plan, ledger=ledger, seed=0)
    best: dict[tuple[str, ...], float] = {}
    for table in syn.tables:
        key = tuple(sorted(table.columns))
        best[key] = min(best.get(key, np.inf), table.standard_error)
    return plan, best


@pytest.mark.parametrize("within", ["", None])
def test_what_is_in_focus_is_less_noisy_and_costs_the_same(tmp_path, within):
    beside = {} if within == "" else {"pairs": "beside"}  # as pairs in focus are counted
    plain, before = errors(tmp_path, within=within, **beside)
    focused, after = errors(tmp_path, within=within, focus=("a", "b & d"))
    assert focused.touches == plain.touches  # what is asked for moves places, and buys none
    assert after["a",] < 0.8 * before["a",]
    assert after["c",] > before["c",]
    pair = ("b", "d")
    others = [error for names, error in after.items() if len(names) == len(pair) and not {"a", "b", "d"} & {*names}]
    assert after[pair] < 0.8 * min(others, default=np.inf)


@pytest.mark.parametrize("pairs", ["within", "beside"])
def test_a_column_in_focus_with_the_target_is_less_noisy(tmp_path, pairs):
    _, before = errors(tmp_path, pairs=pairs)
    _, after = errors(tmp_path, pairs=pairs, focus=("a & y",))
    size = 3 if pairs == "within" else 2
    plain, focused = (
        min(error for names, error in found.items() if len(names) == size and {"a", "y"} <= {*names})
        for found in (before, after)
    )
    assert focused < plain  # by how much depends on how many pairs the scores choose


def test_a_pair_in_focus_is_counted_whatever_its_score(tmp_path):
    _, bought = errors(tmp_path, within="", focus=("c & e",), paired=1)
    assert ("c", "e") in bought


def test_a_focused_column_is_drawn_closer(tmp_path):
    """Each table is counted some four times as often: its noise falls to a half."""
    times = noisy_tables._times([9] * 10, 40, [8.0] + [1.0] * 9)
    assert sum(times) == 40
    assert times[0] >= 3 * max(times[1:])
    assert min(times) >= 1


@pytest.mark.parametrize("wrong", [("nobody",), ("a & nobody",), ("a & a",), ("a & b & c",)])
def test_what_is_no_column_or_pair_is_refused_in_one_line(wrong):
    with pytest.raises(SettingError) as refused:
        planned(focus=wrong)
    assert "focus" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("wrong", "message", "remedy"),
    [
        ("a & b & c", "a & b & c names more than two columns", 'name at most two: "one & other"'),
        ("twice", "twice is computed from once, and is not counted", "ask for once"),
        ("a & twice", "twice is computed from once, and is not counted", "ask for once"),
    ],
)
def test_a_focus_says_what_may_be_asked_for(wrong, message, remedy):
    plain = db.Schema.parse(SCHEMA).to_plain()
    for name, most in (("once", 9), ("twice", 18)):
        plain["columns"][name] = {"type": "integer", "bounds": [0, most], "missing": False}
    schema = db.Schema.from_plain({**plain, "constraints": [{"formula": {"of": "twice", "from": "2 * once"}}]})
    with pytest.raises(SettingError) as refused:
        db.plan(schema, method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", focus=(wrong,))
    assert (refused.value.field, refused.value.message, refused.value.remedy) == ("focus", message, remedy)


def test_a_pair_with_the_target_may_be_in_focus():
    assert planned(focus=("a & y",)).settings.focus == ("a & y",)


@pytest.mark.parametrize(
    ("settings", "focus"),
    [({"within": ""}, ("a", "b & d")), ({"pairs": "beside"}, ("a & y", "b & d")), ({"pairs": "within"}, ("a & y",))],
)
def test_the_plan_says_how_well_each_question_will_be_known(tmp_path, settings, focus):
    """By the noise that the fit then has."""
    plan, bought = errors(tmp_path, focus=focus, **settings)
    found = forecast_plan(plan).questions
    assert [" & ".join(each.columns) for each in found] == list(focus)
    for each in found:
        names, within = {*each.columns}, plan.settings.within
        tables = {key: error for key, error in bought.items() if names == {*key}}
        if not tables:  # the margin of every table within the target
            assert settings == {"pairs": "within"}
            precision = sum(1 / (3 * error**2) for key, error in bought.items() if names < {*key} and within in key)
            tables = {(): precision**-0.5}
        # The more pairs are counted, the less often each: as many as may be is the worst.
        most = 2.0 if len(names) > 1 and within not in names else 1.3
        assert 0.7 <= each.margin / (1.96 * min(tables.values())) <= most
    lines = plan.explain().splitlines()
    assert [line for line in lines if line.startswith("Focus: ")] == [f"Focus: {each.words}" for each in found]


def test_the_margin_of_a_column_is_that_of_its_table_with_nothing_in_focus(tmp_path):
    """Columns of many values are counted more often, so that one of few is known less well than the mean."""
    wide = [f"n{at}" for at in range(12)]
    text = SCHEMA.replace("2000", "20000")
    text += "".join(f"  {name}: {{type: integer, bounds: [0, 99], missing: false}}\n" for name in wide)
    plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp", within="",
                   fit_steps=3, components=4)  # fmt: skip
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({name: draw.choice(["p", "q", "r"], 20_000) for name in "abcde"})
    frame = frame.assign(y="no", **{name: draw.integers(0, 100, 20_000) for name in wide})
    syn = db.fit(frame, plan, ledger=db.Ledger.create(tmp_path / "l", dataset="d", epsilon=2.0, delta=0.1), seed=0)
    bought = {table.columns: table.standard_error for table in syn.tables}
    margins = {each.name: each.margin for each in forecast_plan(plan).columns}
    for name in "abcde":  # the target has a count of its own beside this one
        assert margins[name] == pytest.approx(1.96 * bought[name,], rel=0.3)


def test_the_plan_says_that_units_of_several_rows_have_no_syntheses():
    several = SCHEMA.replace("columns:", "unit: {id: nr, max_records: 3}\ncolumns:\n  nr: {type: id}", 1)
    for text, said in ((SCHEMA, 0), (several, 1)):
        plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp",
                       focus=("a & b",))  # fmt: skip
        assert plan.explain().count("syntheses need one row each") == said


def test_a_question_in_focus_is_forecast_to_be_known_better():
    plain, focused = (
        forecast_plan(planned(within="", focus=("a & c",))),
        forecast_plan(planned(within="", focus=("a & c", "b & d"))),
    )
    assert plain.questions[0].margin < focused.questions[0].margin  # another question takes places
    known = [
        QuestionForecast(columns=("a", "b"), distance=0.1, margin=9.0, hidden=hidden).known
        for hidden in (0.01, 0.05, 0.15, 0.5, None)
    ]
    words = ("well known", "roughly known", "hardly known", "lost", "not counted together")
    assert all(each.startswith(word) for each, word in zip(known, words, strict=True))


NUMBERS = """
doublure: 1
kind: table
units: 2000
columns:
  a: {type: integer, bounds: [0, 9], missing: false}
  b: {type: category, values: [p, q, r], missing: false}
  y: {type: category, values: [no, yes], missing: [NA, refused], roles: [target]}
"""


def _noisy(columns, cells):
    counts = np.full([len(names) for names in cells], 200, dtype=np.int64)
    return NoisyTable(columns=columns, cells=cells, counts=counts, standard_error=5.0)


@pytest.mark.parametrize("pairs", [{"within": "y", "pairs": "beside"}, {"within": ""}])
def test_the_plan_says_which_regression_is_refused_after_the_fit_and_why(pairs):
    """The refusal is the fit's own: a number in it, no table of all three, and rows that miss the outcome."""
    schema, all_pairs = db.Schema.parse(NUMBERS), ("a & b", "a & y", "b & y")
    cells = {"a": tuple(map(str, range(10))), "b": ("p", "q", "r"), "y": ("no", "yes", "(missing: NA)")}
    tables = [_noisy(own, tuple(cells[name] for name in own)) for own in (("a", "b"), ("a", "y"), ("b", "y"))]
    syn = SimpleNamespace(schema=schema, tables=tuple(tables))
    with pytest.raises(SettingError, match="which tables of pairs cannot leave out") as refused:
        inference.logistic(syn, "y", "yes", ["a", "b"])

    def limits(text: str, focus: tuple[str, ...], **settings: Any) -> list[str]:
        plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=1.0, delta=1e-6, accountant="rdp",
                       focus=focus, **settings)  # fmt: skip
        said = [each for question in forecast_plan(plan).questions for each in question.refused]
        assert {f"Limit: {each}" for each in said} <= {*plan.explain().splitlines()}
        return said

    told = f"Where rows miss y, its regression on a and b is refused: {refused.value}"
    assert limits(NUMBERS, all_pairs, **pairs) == [told]
    assert limits(NUMBERS, all_pairs[:2], within="") == []  # it asks for no regression on both
    assert limits(NUMBERS, all_pairs, pairs="within", within="y") == []  # a table holds all three
    assert limits(NUMBERS.replace("missing: [NA, refused]", "missing: false"), all_pairs, **pairs) == []
    listed = NUMBERS.replace("integer, bounds: [0, 9]", "category, values: [u, v]")
    assert limits(listed, all_pairs, **pairs) == []  # syntheses answer it


def test_the_command_gives_each_question_as_json(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text(SCHEMA)
    words = ["plan", str(tmp_path / "s.yaml"), "--epsilon", "1", "--delta", "1e-6", "--json"]
    assert run_guarded(app, [*words, "--set", 'focus=["a & c"]', "--set", "within="]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])["result"]["focus"]
    assert [(each["columns"], each["distance"] > 0, each["margin"] > 0) for each in told] == [(["a", "c"], True, True)]
    assert run_guarded(app, words) == 0
    assert "focus" not in json.loads(capsys.readouterr().out.splitlines()[-1])["result"]


@pytest.mark.parametrize("kind", ["category, values: [p, q, r]", "real, bounds: [0, 100]"])
def test_a_table_of_two_columns_is_forecast_by_their_own_table(kind, tmp_path, capsys):
    text = SCHEMA.partition("  a: ")[0] + f"  a: {{type: {kind}, missing: false}}\n" + SCHEMA[SCHEMA.index("  y: ") :]
    (tmp_path / "two.yaml").write_text(text)
    plans = [db.plan(db.Schema.parse(text), method="statistics", epsilon=each, delta=1e-6) for each in (0.1, 1.0, 10.0)]
    pairs = [dict(forecast_plan(plan).pairs)["a"] for plan in plans]
    assert 1 > pairs[0] > pairs[1] > pairs[2] > 0
    assert run_guarded(app, ["plan", str(tmp_path / "two.yaml"), "--epsilon", "1", "--delta", "1e-6"]) == 0


DATES = """
doublure: 1
kind: table
units: 4000
columns:
  infected: {type: date, bounds: [2012-01-01, 2015-12-31], missing: true}
  onset: {type: date, bounds: [2012-01-01, 2015-12-31], missing: true}
  admitted: {type: date, bounds: [2012-01-01, 2015-12-31], missing: false}
  generation: {type: integer, bounds: [0, 50], missing: false}
constraints: [{at_most: [infected, onset, admitted]}]
"""


def outbreak() -> pd.DataFrame:
    """Generations of cases that follow one another; of a third nobody knows when they were infected."""
    draw = np.random.default_rng(0)
    onset = np.round(np.clip(16_200 + draw.normal(0, 60, 4000), 15_700, 16_700))
    days = {"infected": onset - np.round(draw.gamma(2, 4, 4000)), "onset": onset,
            "admitted": onset + np.round(draw.gamma(2, 1.5, 4000))}  # fmt: skip
    frame = pd.DataFrame({name: pd.to_datetime(own, unit="D").strftime("%Y-%m-%d") for name, own in days.items()})
    for name, share in (("infected", 0.35), ("onset", 0.04)):
        frame.loc[draw.random(4000) < share, name] = None
    return frame.assign(
        generation=np.round(np.clip((onset - 16_050) / 12 + draw.normal(0, 5, 4000), 0, 50)).astype(int)
    )


def test_a_chain_of_dates_is_measured_from_the_one_that_is_there(tmp_path):
    """Measured from the first, a third of the rows had no day to count from, and the relation was .05 to .2."""
    found = {}
    for start in ("infected", "onset"):
        text = DATES.replace("admitted]}", f"admitted], measured_from: {start}}}")
        plan = db.plan(db.Schema.parse(text), method="statistics", epsilon=2.0, delta=1e-5, accountant="rdp",
                       focus=("onset & generation",), within="")  # fmt: skip
        ledger = db.Ledger.create(tmp_path / start, dataset="d", epsilon=2.0, delta=1e-4)
        drawn = db.fit(outbreak(), plan, ledger=ledger, seed=0, progress=False).sample(4000, seed=1)
        onset = pd.to_datetime(drawn["onset"])
        found[start] = onset.dropna().astype("int64").corr(drawn["generation"][onset.notna()], method="spearman")
        incubation = (onset - pd.to_datetime(drawn["infected"])).dropna()
        assert (incubation >= pd.Timedelta(0)).all()
        assert 4 <= incubation.median().days <= 11
    assert found["onset"] > found["infected"] + 0.2
    assert found["onset"] > 0.5


def test_a_plan_says_what_a_chain_of_dates_costs():
    def said(text: str, **settings: Any) -> str:
        return db.plan(db.Schema.parse(text), method="statistics", epsilon=2.0, delta=1e-5, accountant="rdp",
                       **settings).explain()  # fmt: skip

    focus = ("onset & generation", "onset & infected")
    first, last = said(DATES, focus=focus), said(DATES.replace("admitted]}", "admitted], measured_from: onset}"))
    assert "Limit: Where infected is missing, nothing but a bound is left to measure onset and admitted from" in first
    assert "hardly known: onset is counted by its gap from infected alone" in first
    assert first.count("counted by its gap") == 1  # of the two, the gap is what is asked for
    assert "measured_from" not in last
    known = DATES.replace("2015-12-31], missing: true}", "2015-12-31], missing: false}")
    assert "Limit: Where infected" not in said(known)
