"""Syntheses differ by what noise and sampling leave open, so that intervals from them hold."""

from __future__ import annotations

import dataclasses
import math
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import SettingError
from doublure.evaluate import inference
from doublure.run import syntheses
from doublure.run.synthesizer import Synthesizer
from doublure.support import yaml12
from doublure.training.noisy_tables import NoisyTable

PAGE = Path(__file__).parents[1] / "docs" / "inference.md"
ROWS, NOISE, REPEATS, SYNTHESES = 1000, 12.0, 40, 8
DECLARED = db.Schema.parse("""
doublure: 1
kind: table
units: 1000
columns:
  nr: {type: id}
  age: {type: integer, bounds: [0, 7], missing: false}
  sex: {type: category, values: [f, m], missing: false}
  ill: {type: category, values: ["no", "yes"], missing: false}
""")
NAMES = {"age": tuple(map(str, range(8))), "sex": ("f", "m"), "ill": ("no", "yes")}
AGE_ODDS, SEX_ODDS = 0.3, 0.8
PAIRS = (("age",), ("sex",), ("ill",), ("age", "sex"), ("age", "ill"), ("sex", "ill"))


def people(draw, rows, *, dependent=1.0):
    """Return codes of people's cells; the more they depend on one another, the nearer to 1."""
    age = draw.integers(0, 8, rows)
    sex = (draw.random(rows) < 0.5 + dependent * (age - 3.5) / 14).astype(int)
    odds = AGE_ODDS * (age - 4) + SEX_ODDS * sex
    return {"age": age, "sex": sex, "ill": (draw.random(rows) < 1 / (1 + np.exp(-dependent * odds))).astype(int)}


def frame_of(codes):
    cells = {name: pd.Categorical.from_codes(codes[name], NAMES[name]) for name in ("sex", "ill")}
    return pd.DataFrame({"age": pd.array(codes["age"], dtype="Int64"), **cells})


@dataclass
class StandIn:
    """Stands in for a synthesizer: noisy tables of a sample, and rows whose columns depend too little."""

    draws: np.random.Generator
    noise: float = NOISE
    pairs: tuple[tuple[str, ...], ...] = PAIRS
    schema: db.Schema = DECLARED
    default_n: int = ROWS
    real: dict[str, np.ndarray] = field(init=False)
    tables: tuple[NoisyTable, ...] = field(init=False)

    def __post_init__(self):
        self.real = people(self.draws, ROWS)
        self.tables = tuple(self.table(columns) for columns in self.pairs)

    def table(self, columns):
        counts = np.zeros([len(NAMES[name]) for name in columns], dtype=np.int64)
        np.add.at(counts, tuple(self.real[name] for name in columns), 1)
        noisy = counts + np.rint(self.draws.normal(0, self.noise, counts.shape)).astype(np.int64)
        cells = tuple(NAMES[name] for name in columns)
        return NoisyTable(columns=columns, cells=cells, counts=noisy, standard_error=self.noise)

    def draw(self, n, seed, given=None):
        return frame_of(people(np.random.default_rng(seed), n, dependent=0.6))

    draw_syntheses = Synthesizer.draw_syntheses
    sample = Synthesizer.sample


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    monkeypatch.setattr(syntheses, "_FEWEST", 1000)
    monkeypatch.setattr(syntheses, "_EACH", 1)


def asked(rows):
    """Return a share and a mean within a group, each with its naive variance."""
    ill, men = (rows["ill"] == "yes").mean(), rows.loc[rows["sex"] == "m", "age"].astype(float)
    return {"share": (ill, ill * (1 - ill) / len(rows)), "men's age": (men.mean(), men.var() / len(men))}


def test_intervals_from_syntheses_hold_and_naive_ones_do_not():
    """All draws are from fixed seeds; the bounds are three deviations of so many repetitions below what is promised."""
    true = {name: value for name, (value, _) in asked(frame_of(people(np.random.default_rng(99), 400_000))).items()}
    true |= {"age": AGE_ODDS, "sex = f": -SEX_ODDS, "sex = m": SEX_ODDS}
    found = []
    for repeat in range(REPEATS):
        syn = StandIn(np.random.default_rng(repeat))
        some = inference.estimate(syn, asked, ["age", "sex", "ill"], syntheses=SYNTHESES, seed=repeat)
        some += inference.logistic(syn, "ill", "yes", ["age", "sex"], syntheses=SYNTHESES, seed=repeat)[1:]
        ends = [((each.low, each.high), each.naive) for each in some]
        found.append(
            [[low <= true[each.name] <= high for low, high in own] for each, own in zip(some, ends, strict=True)]
        )
    ours, naive = np.mean(found, axis=0).T
    assert ours.min() >= 0.95 - 3 * math.sqrt(0.95 * 0.05 / REPEATS)
    assert ours.mean() > naive.mean() + 0.2


def uncertainty(syn, figure, m=150):
    """Return the variance T of a figure by many syntheses; its own deviation is a factor of √(2 / (m - 1)) = .12."""
    found = [figure(rows) for rows in syn.sample(ROWS, syntheses=m, seed=1)]
    return np.var([value for value, _ in found], ddof=1) - np.mean([own for _, own in found])


def test_syntheses_differ_by_noise_and_sampling_and_nothing_else(monkeypatch):
    """A share's variance is p (1 - p) / n for the people, and as much again as noise of two counts moves it."""
    syn = StandIn(np.random.default_rng(1), pairs=(("ill",),), noise=25.0)
    p = float((syn.real["ill"] == 1).mean())
    people_s, noise_s = p * (1 - p) / ROWS, (p**2 + (1 - p) ** 2) * 25.0**2 / ROWS**2
    assert uncertainty(syn, lambda rows: asked(rows)["share"]) == pytest.approx(people_s + noise_s, rel=0.4)
    moved = syntheses._TargetCounts.moved
    monkeypatch.setattr(syntheses._TargetCounts, "moved", lambda own, noise, sampling: moved(own, noise, 0 * sampling))
    assert uncertainty(syn, lambda rows: asked(rows)["share"]) < 0.6 * (people_s + noise_s) + 0.4 * noise_s
    monkeypatch.setattr(syntheses._TargetCounts, "moved", lambda own, noise, sampling: moved(own, 0 * noise, sampling))
    assert uncertainty(syn, lambda rows: asked(rows)["share"]) < 0.6 * (people_s + noise_s)


def test_a_number_may_lie_anywhere_in_its_cell():
    """One cell of eight ages: its mean is nearly as uncertain as an even spread allows, 7² / 12."""
    syn = StandIn(np.random.default_rng(1), pairs=(("sex",),))
    wide = NoisyTable(columns=("age",), cells=(("0..7",),), counts=np.array([ROWS]), standard_error=NOISE)
    assert uncertainty(syn, lambda rows: (rows["age"].astype(float).mean(), 0.0)) < 0.1
    syn.tables = (wide, *syn.tables)
    assert 1.0 < uncertainty(syn, lambda rows: (rows["age"].astype(float).mean(), 0.0)) < 7**2 / 12


def test_syntheses_are_repeatable_and_differ():
    syn = StandIn(np.random.default_rng(1))
    one, again = (syn.sample(300, syntheses=3, seed=5) for _ in range(2))
    assert [len(rows) for rows in one] == [300, 300, 300]
    assert all(rows.equals(other) for rows, other in zip(one, again, strict=True))
    assert not one[0].equals(one[1])
    assert all(rows["nr"].is_unique for rows in one)
    assert list(one[0].columns) == list(syn.draw(1, 1).assign(nr=0).columns)


def test_syntheses_agree_with_the_tables_where_the_generator_does_not():
    syn = StandIn(np.random.default_rng(2), noise=1.0)
    real = frame_of(syn.real)
    [one, _] = syn.sample(50_000, syntheses=2, seed=1)
    true, generated, drawn = (
        own["age"].astype(float).corr(own["ill"] == "yes") for own in (real, syn.draw(50_000, 1), one)
    )
    # The bootstrap's correlation has a deviation of .03 at most, with 1000 people.
    assert abs(drawn - true) < 0.12 < true - generated + 0.12
    assert abs(drawn - true) < abs(generated - true) + 0.06


def test_estimates_are_combined_by_the_rules_for_synthetic_data():
    q, v = [1.0, 2.0, 3.0, 2.5], [0.1, 0.2, 0.3, 0.2]
    found = inference.combine(q, v, name="it")
    between = 1.25 * np.var(q, ddof=1)
    total = between - 0.2
    from scipy.stats import t

    half = t.ppf(0.975, 3 * (total / between) ** 2) * math.sqrt(total)
    assert (found.name, found.value) == ("it", pytest.approx(2.125))
    assert (found.low, found.high) == (pytest.approx(2.125 - half), pytest.approx(2.125 + half))
    assert found.naive == (
        pytest.approx(1 - 1.95996 * math.sqrt(0.1), 1e-4),
        pytest.approx(1 + 1.95996 * math.sqrt(0.1), 1e-4),
    )


def test_no_interval_is_narrower_than_that_of_private_rows():
    """Where estimates differ by chance less than their own variance says, private rows set the least."""
    found = inference.combine([1.0, 1.1] * 10, [0.04] * 20)
    assert found.high - found.value >= 1.96 * math.sqrt(0.04)
    near = inference.combine([1.0, 1.0 + 1e-9] * 50, [0.04] * 100)
    assert near.high - near.value == pytest.approx(1.95996 * 0.2, rel=1e-4)
    quarter = inference.combine([1.0, 1.0 + 1e-9] * 50, [0.04] * 100, each=0.25)
    assert near.high - near.value == pytest.approx(2 * (quarter.high - quarter.value))


def test_a_median_that_all_syntheses_share_is_left_open():
    """It moves in steps of one: equal steps say nothing of how uncertain it is."""
    found = inference.combine([32.0] * 5, [0.04] * 5)
    assert (found.value, found.low, found.high) == (32.0, -math.inf, math.inf)


def test_an_estimate_that_a_synthesis_cannot_make_is_left_open():
    found = inference.combine([1.0, math.nan], [0.1, 0.1])
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert math.isnan(found.value)


def test_a_figure_that_one_synthesis_lacks_is_left_open():
    syn = StandIn(np.random.default_rng(1))
    drawn = syn.sample(50, syntheses=2, seed=1)
    told = [{"it": (1.0, 0.1)}, {}]
    [found] = inference.estimate(syn, lambda rows: told.pop(0), ["age"], syntheses=drawn)
    assert (found.low, found.high) == (-math.inf, math.inf)
    with pytest.raises(SettingError, match="are none"):
        inference.estimate(syn, asked, ["age"], syntheses=[])


@pytest.mark.parametrize(("q", "v"), [([1.0], [0.1]), ([1.0, 2.0], [0.1]), ([], [])])
def test_what_cannot_be_combined_is_refused(q, v):
    with pytest.raises(SettingError, match="two or more"):
        inference.combine(q, v)


def test_what_was_not_counted_together_is_refused_by_name():
    syn = StandIn(np.random.default_rng(1), pairs=(("age",), ("ill",), ("age", "ill")))
    with pytest.raises(SettingError) as refused:
        inference.estimate(syn, asked, ["age", "sex", "ill"])
    assert refused.value.field == "sex"
    syn = StandIn(np.random.default_rng(1), pairs=PAIRS[:4])
    with pytest.raises(SettingError) as refused:
        inference.logistic(syn, "ill", "yes", ["age", "sex"])
    assert refused.value.field == "age and ill, sex and ill"
    assert """--set 'focus=["age & ill", "sex & ill"]'""" in refused.value.remedy


def test_slopes_of_numbers_are_refused_where_only_syntheses_would_tell_them():
    told = DECLARED.to_plain()
    told["columns"]["smokes"] = told["columns"]["sex"]
    syn = StandIn(np.random.default_rng(1), schema=db.Schema.parse(yaml12.dump(told)))
    for pair in [("age", "smokes"), ("sex", "smokes"), ("smokes", "ill")]:
        cells = tuple(NAMES.get(name, NAMES["sex"]) for name in pair)
        syn.tables += (even_table(pair, cells),)
    with pytest.raises(SettingError, match="flattened slope") as refused:
        inference.logistic(syn, "ill", "yes", ["age", "sex", "smokes"])
    assert refused.value.field == "age"


def even_table(columns, cells):
    counts = np.full([len(names) for names in cells], 50, dtype=np.int64)
    return NoisyTable(columns=columns, cells=cells, counts=counts, standard_error=NOISE)


def test_kinds_of_missing_cells_are_followed(monkeypatch):
    """The generator has one kind too seldom; syntheses have it as often as it was counted."""
    told = DECLARED.to_plain()
    told["columns"]["sex"] |= {"missing": ["u", "v"]}
    syn = StandIn(np.random.default_rng(1), schema=db.Schema.parse(yaml12.dump(told)))
    own = pd.CategoricalDtype(["f", "m", "u", "v"])
    drawn = syn.draw

    def draw(n, seed, given=None):
        sex = np.random.default_rng(seed).choice([*"fmuv"], n, p=[0.5, 0.35, 0.1, 0.05])
        return drawn(n, seed).assign(sex=pd.Series(sex, dtype=own))

    monkeypatch.setattr(syn, "draw", draw)
    counts, cells = np.array([450, 300, 0, 50, 200]), ("f", "m", "(missing)", "(missing: u)", "(missing: v)")
    syn.tables += (NoisyTable(columns=("sex",), cells=(cells,), counts=counts, standard_error=NOISE),)
    syn.tables = tuple(table for table in syn.tables if "sex" not in table.columns[1:] and len(table.cells[0]) != 2)
    shown = {each.name: each for each in inference.shares(syn, "sex")}
    assert shown["sex = (missing: v)"].value == pytest.approx(0.2)
    assert shown["sex = (missing: v)"].naive[1] < 0.08
    ask = lambda rows: {"v": ((rows["sex"] == "v").mean(), 1e-5)}  # noqa: E731
    [found] = inference.estimate(syn, ask, ["sex"], syntheses=5)
    assert found.value == pytest.approx(0.2, abs=0.03)


def test_a_pair_within_another_column_counts_as_a_pair():
    syn = StandIn(np.random.default_rng(1), pairs=(("age", "sex", "ill"),))
    found = inference.estimate(syn, asked, ["age", "sex", "ill"], syntheses=2)
    assert [each.name for each in found] == ["share", "men's age"]


@pytest.mark.parametrize(
    ("how", "field"),
    [({"given": {"sex": "f"}}, "given"), ({"syntheses": 1}, "syntheses"), ({"syntheses": True}, "syntheses")],
)
def test_syntheses_that_cannot_be_are_refused(how, field):
    with pytest.raises(SettingError) as refused:
        StandIn(np.random.default_rng(1)).sample(10, **{"syntheses": 3, **how})
    assert refused.value.field == field


def test_a_fit_without_tables_has_no_syntheses(small):
    with pytest.raises(SettingError, match="need the noisy tables"):
        db.load(small.run).sample(10, syntheses=3)


# -- a fit, its command and the page -----------------------------------------------------------------------------------

FITTED = """
doublure: 1
kind: table
unit: {id: nr}
units: 600
columns:
  nr: {type: id}
  age: {type: integer, bounds: [17, 90], missing: true}
  hours: {type: real, bounds: [0, 99.9], step: 0.1, missing: false}
  born: {type: date, bounds: [1930-01-01, 2005-12-31], missing: false}
  sex: {type: category, values: [Female, Male], missing: false}
  race: {type: category, values: [White, Black], other: any, missing: false}
  income: {type: category, values: [low, high], missing: false, roles: [target]}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the run folder of a quick fit with little noise."""
    folder, draw = tmp_path_factory.mktemp("fitted"), np.random.default_rng(0)
    high, male = draw.random(600) < 0.4, draw.random(600) < 0.5
    age = pd.array(np.where(high, draw.integers(40, 91, 600), draw.integers(17, 60, 600)), dtype="Int64")
    age[draw.random(600) < 0.1] = pd.NA
    rows = {
        "nr": np.arange(600),
        "age": age,
        "hours": draw.normal(40, 9, 600).clip(0, 99.9).round(1),
        "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(draw.integers(0, 9000, 600), unit="D"),
        "sex": np.where(male, "Male", "Female"),
        "race": draw.choice(["White", "Black", "Red"], 600),
        "income": np.where(high, "high", "low"),
    }
    quick = {"accountant": "rdp", "components": 4, "starts": 1, "fit_steps": 10}
    plan = db.plan(db.Schema.parse(FITTED), method="statistics", epsilon=300.0, delta=1e-6, **quick)
    ledger = db.Ledger.create(folder / "ledger.jsonl", dataset="people", epsilon=400.0, delta=1e-3)
    db.fit(pd.DataFrame(rows), plan, ledger=ledger, out=folder / "run", seed=1)
    return folder / "run"


def test_rows_of_a_fit_lie_in_the_cells_of_its_tables(run):
    """Each table's rows are all found, and by weight most people lie where its counts say."""
    syn = db.load(run)
    tables = syntheses.usable_tables(syn)
    pool = syntheses._RowPool.of(syn, tables, 3000, np.random.default_rng(0))
    targets = [syntheses._TargetCounts.of(table) for table in tables]
    weights, _ = pool.weigh(targets, [np.zeros(len(own.counts)) for own in targets], 600.0, np.zeros(3000))
    columns = {name for table in tables for name in table.columns}
    assert columns == {"age", "hours", "born", "sex", "race", "income"}
    for at, (table, target) in enumerate(zip(tables, targets, strict=True)):
        assert (pool.places[at] < table.counts.size).all(), table.columns
        agrees = np.minimum(pool.counts(at, weights), target.counts).sum() / target.counts.sum()
        assert agrees > (0.9 if len(table.columns) == 1 else 0.6), table.columns


def test_the_command_writes_a_file_for_each_synthesis(run, tmp_path, capsys):
    (tmp_path / "a.b").mkdir()
    words = ["sample", str(run), "-n", "40", "--syntheses", "2", "--seed", "3", "-o"]
    assert run_guarded(app, [*words, str(tmp_path / "a.b" / "rows.csv")]) == 0
    drawn = db.load(run).sample(40, syntheses=2, seed=3)
    for number, rows in enumerate(drawn, start=1):
        written = pd.read_csv(tmp_path / "a.b" / f"rows-{number:02}.csv")
        assert written["sex"].tolist() == rows["sex"].tolist()
        assert written["nr"].is_unique
    assert "rows-01.csv … " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["-o", "a.b/rows"],
        ["-o", "duckdb:///file.db?table=people"],
        ["-o", "rows.csv", "--given", "sex=Male"],
        ["-o", "rows.parquet", "--processes", "2"],
    ],
)
def test_the_command_refuses_what_syntheses_are_not_made_with(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_guarded(app, ["sample", str(run), "-n", "40", "--syntheses", "2", *words]) == 2
    assert not list(tmp_path.iterdir())


def test_a_published_generator_has_no_syntheses(run, tmp_path):
    syn = dataclasses.replace(db.load(run), read_tables=tuple)
    with pytest.raises(SettingError, match="need the noisy tables"):
        syn.sample(10, syntheses=2)


def test_the_example_of_inference_md_runs(run, monkeypatch, capsys):
    monkeypatch.chdir(run.parent)
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    exec(compile(code, PAGE.name, "exec"), {})
    assert capsys.readouterr().out.count("IntervalEstimate(") >= 3
