"""Moments come out at the hours at which they are, and even where noise hides those."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure.methods.statistics.settings import TableStatisticsSettings
from doublure.methods.statistics.tables import noisy_tables
from doublure.methods.statistics.tables import plan as tables_plan
from doublure.methods.statistics.tables.hours import likely_hours
from doublure.methods.statistics.tables.leaves import ColumnLeaves
from doublure.methods.statistics.tables.nodes import Node, NoisyCounts
from doublure.methods.statistics.tables.plan import plan_releases
from doublure.schema.columns.integer_domain import TimeDomain
from doublure.support import lattices
from doublure.support.lattices import PeriodWeights

ROWS = 3000
MOMENTS = "{type: datetime, bounds: [2020-01-01T00:00:00, 2020-12-30T23:59:59], missing: false}"
DOMAIN = TimeDomain(first=0, last=365 * 1440 - 1, nullable=False, seconds=60.0)


def schema(at: str = MOMENTS, more: str = "") -> db.Schema:
    return db.Schema.parse(
        f"doublure: 1\nkind: table\nunit: {{name: record, id: none}}\nunits: {ROWS}\ncolumns:\n  at: {at}\n"
        f"  sex: {{type: category, values: [F, M], missing: false}}\n{more}"
    )


def admissions(hours: np.ndarray, seed: int = 3) -> pd.DataFrame:
    draw = np.random.default_rng(seed)
    seconds = draw.integers(0, 365, ROWS) * 86_400 + hours * 3600 + draw.integers(0, 60, ROWS) * 60
    at = (np.datetime64("2020-01-01", "s") + seconds).astype(str)
    return pd.DataFrame({"at": at, "sex": draw.choice(["F", "M"], ROWS)})


def morning(seed: int = 3) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.where(draw.random(ROWS) < 0.8, draw.integers(8, 12, ROWS), draw.integers(0, 24, ROWS))


def fitted(own: db.Schema, frame: pd.DataFrame, folder: Any) -> Any:
    folder.mkdir(exist_ok=True)
    plan = db.plan(own, method="statistics", epsilon=1.0, delta=1e-5, components=16, fit_steps=50)
    book = db.Ledger.create(folder / "a.ledger", dataset="people", epsilon=1.0, delta=1e-4)
    return db.fit(frame, plan, ledger=book, seed=1, out=folder / "run", progress=False)


def in_hours(cells: Any) -> np.ndarray:
    found = pd.to_datetime(cells)
    return np.bincount(found.dt.hour, minlength=24) / len(found)


@pytest.fixture(scope="module")
def admitted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("admitted")
    return fitted(schema(), admissions(morning()), folder), folder / "run"


def test_admissions_in_the_morning_come_out_in_the_morning(admitted):
    real, found = in_hours(admissions(morning())["at"]), in_hours(admitted[0].sample(10_000, seed=2)["at"])
    assert abs(real[8:12].sum() - found[8:12].sum()) < 0.1
    assert abs(real - found).sum() / 2 < 0.2  # even hours: .67


def test_hours_are_kept_with_the_generator_and_hold_what_is_given(admitted):
    """A range of a night has moments within it alone, although hardly anybody comes then; a week has the profile."""
    again = db.load(admitted[1])
    assert again.sample(500, seed=2).equals(admitted[0].sample(500, seed=2))
    night = "2020-05-01T01:00:00", "2020-05-01T04:59:00"
    rows = pd.to_datetime(again.sample(300, seed=3, given={"at": night})["at"])
    assert rows.between(*map(pd.Timestamp, night)).all()
    week = "2020-05-04T00:00:00", "2020-05-10T23:59:59"
    rows = again.sample(2000, seed=3, given={"at": week})["at"]
    assert pd.to_datetime(rows).between(*map(pd.Timestamp, week)).all()
    assert in_hours(rows)[8:12].sum() > 0.7


def test_even_hours_stay_even(tmp_path):
    frame = admissions(np.random.default_rng(4).integers(0, 24, ROWS))
    apart = []
    for turn in range(3):
        found = in_hours(fitted(schema(), frame, tmp_path / str(turn)).sample(10_000, seed=2)["at"])
        apart.append(abs(found - 1 / 24).sum() / 2)
    assert np.mean(apart) < 0.06


def stays(draw: np.random.Generator, short: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Return stays that begin at any hour, and how long those are that last some minutes; others end at noon."""
    begun = draw.integers(0, 350 * 1440, ROWS)
    brief, nights = draw.random(ROWS) < short, draw.geometric(0.25, ROWS)
    left = np.where(brief, begun + draw.integers(5, 40, ROWS), (begun // 1440 + nights) * 1440 + 660)
    left += np.where(brief, 0, draw.integers(0, 120, ROWS))
    start = np.datetime64("2020-01-01", "m")
    frame = pd.DataFrame({"at": (start + begun).astype(str), "left": (start + left).astype(str)})
    return frame.assign(sex=draw.choice(["F", "M"], ROWS)), (left - begun)[brief]


@pytest.mark.parametrize("short", [0.0, 0.6])
def test_the_later_of_two_moments_keeps_its_hours_and_short_stays_their_minutes(tmp_path, short):
    """Measured from the earlier moment alone, a stay of some nights ended at any hour."""
    frame, minutes = stays(np.random.default_rng(6), short)
    own = schema(f"{MOMENTS}\n  left: {MOMENTS}".replace("'", ""), "constraints: [{at_most: [at, left]}]\n")
    rows = fitted(own, frame, tmp_path).sample(6000, seed=2)
    first, last = (pd.to_datetime(rows[name]) for name in ("at", "left"))
    apart = (last - first).dt.total_seconds() / 60
    assert (apart >= 0).all()
    long = apart >= 1440
    at_noon = last[long].dt.hour.isin([11, 12]).mean()
    assert at_noon > 0.75
    assert abs((apart < 60).mean() - short) < 0.1
    if short:
        assert apart[apart < 60].between(4, 41).mean() > 0.8
        assert abs(apart[apart < 60].median() - np.median(minutes)) < 6


def test_two_moments_in_order_stay_in_order(tmp_path):
    hours = morning()
    frame = admissions(hours)
    ends = pd.to_datetime(frame["at"]) + pd.to_timedelta(np.random.default_rng(5).integers(0, 5000, ROWS), unit="min")
    frame.insert(1, "left", ends.clip(upper=pd.Timestamp("2020-12-30T23:59:59")).astype(str))
    own = schema(f"{MOMENTS}\n  left: {MOMENTS}", "constraints: [{at_most: [at, left]}]\n")
    rows = fitted(own, frame, tmp_path).sample(3000, seed=2)
    first, last = (pd.to_datetime(rows[name]) for name in ("at", "left"))
    assert (first <= last).all()
    assert in_hours(rows["at"])[8:12].sum() > 0.7


def test_places_are_planned_for_moments_alone():
    """Days have no hours; neither has a moment within one day. Bounds that are still to be bought may pass one."""
    places = {
        MOMENTS: 2,
        "{type: datetime, bounds: {learn: 0.1}, missing: false}": 2,
        "{type: datetime, bounds: {learn: 0.1}, step: 86400, missing: false}": 1,
        "{type: datetime, bounds: [2020-01-01T00:00:00, 2020-01-01T23:59:59], missing: false}": 1,
        "{type: date, bounds: [2020-01-01, 2020-12-30], missing: false}": 1,
    }
    for at, tables in places.items():
        assert plan_releases(schema(at), "").tables[tables_plan.ROUND] == tables
    assert plan_releases(schema(), "", times_of_day=False).tables[tables_plan.ROUND] == 1
    assert tables_plan.ROUND not in plan_releases(schema(), "", round_values=False).tables


def test_earlier_plans_count_no_hours():
    assert TableStatisticsSettings.of_plan({}).times_of_day is False
    assert TableStatisticsSettings().times_of_day is True


# -- from counts to hours ----------------------------------------------------------------------------------------------


def seen(shares: np.ndarray, pulls: np.ndarray, noise: float, seed: int = 0) -> np.ndarray:
    counts = ROWS * shares + noise * np.random.default_rng(seed).standard_normal(24)
    found = likely_hours(DOMAIN, pulls, counts, np.full(24, noise**2))
    every = found.classes(np.array([DOMAIN.first]), np.array([DOMAIN.last]))[0] * pulls
    apart = np.arange(24)[:, None] * 60 + np.arange(60)
    by_hour = [found.classes(own, own) @ pulls for own in apart]
    return np.array([own.sum() for own in by_hour]) / (every.sum() / 365)


def test_hours_that_noise_hides_are_even():
    """Noise of all rows in each hour says nothing of any."""
    pulls = np.ones(len(DOMAIN.lattices()))
    found = np.array([seen(np.full(24, 1 / 24), pulls, ROWS, seed) for seed in range(20)])
    assert abs(found - 1 / 24).sum(1).mean() / 2 < 0.25  # what is drawn from noise as it is: above .6


def test_clear_hours_are_as_they_are():
    shares = np.random.default_rng(1).dirichlet(np.full(24, 0.5))
    assert seen(shares, np.ones(len(DOMAIN.lattices())), 0.1) == pytest.approx(shares, abs=1e-3)


def test_midnights_of_days_without_a_time_make_no_minute_after_them_likelier():
    """Half of the rows are midnights; all others come at noon or after."""
    steps = DOMAIN.nested_steps()
    pulls = np.where(np.arange(len(steps)) == 0, 1440.0, 1.0)
    shares = np.r_[0.5, np.zeros(11), np.full(12, 0.5 / 12)]
    counts = ROWS * shares
    found = likely_hours(DOMAIN, pulls, counts, np.full(24, 1.0))
    weights = [found.classes(np.array([at]), np.array([to]))[0] @ pulls for at, to in ((0, 0), (1, 719), (0, 1439))]
    assert weights[0] / weights[2] == pytest.approx(0.5, abs=0.01)
    assert weights[1] / weights[2] < 0.01


# -- single values -----------------------------------------------------------------------------------------------------


def heaviest_value(domain: TimeDomain, values: np.ndarray, noise: float, seed: int) -> float:
    """Return the most rows that a fit of a column's releases gives to a single value, as lattices and hours draw it."""
    draw, rows = np.random.default_rng(seed), values[:, None].astype(float)

    def released(axis: Any) -> NoisyCounts:
        counts = np.bincount(axis.of(rows), minlength=axis.size) + draw.normal(0, noise, axis.size)
        return NoisyCounts(counts=counts, variance=noise**2)

    node = Node(leaves=ColumnLeaves.of(domain, 0, domain.initial_partition()))
    cells, runs = (released(node.leaves.axis(own)) for own in (np.arange(node.leaves.size), node.runs()))
    lattice = released(noisy_tables._lattices(node.leaves))
    hours = released(noisy_tables.hours_axis(node.leaves)) if domain.hours() else None
    cut = noisy_tables._full(node.leaves, cells)
    seen = [(cut, released(cut.axis(node.leaves)))]
    node.locate(seen, cells, runs, lattice, hours)
    again = noisy_tables._repeated(node, seen[0][1])
    if len(again.starts):
        node.locate([*seen, (again, released(again.axis(node.leaves)))], cells, runs, lattice, hours)
    leaves, steps = node.leaves, domain.nested_steps()
    weights = PeriodWeights(steps, leaves.pulls, np.resize(leaves.hours, max(1, len(leaves.hours))))
    by_class, every = weights.classes(leaves.starts, leaves.ends), lattices.members(leaves.starts, leaves.ends, steps)
    each = by_class / by_class.sum(1, keepdims=True) / np.maximum(every, 1)
    return float((each.max(1) * leaves.mass[: len(each)]).max())


@pytest.mark.parametrize("noise", [10.0, 20.0, 40.0])
@pytest.mark.parametrize("unit", ["days", "minutes"])
def test_noise_makes_no_value_that_repeats(unit, noise):
    """Of even days and minutes none has rows of its own. Of ten fits to days, six had a spike."""
    day = 1440 if unit == "minutes" else 1
    domain = TimeDomain(first=0, last=1000 * day - 1, nullable=False, seconds=86_400 / day)
    found = [
        heaviest_value(domain, np.random.default_rng(seed).integers(0, 1000 * day, ROWS), noise, seed)
        for seed in range(10)
    ]
    assert np.mean(np.array(found) > 2 * noise) <= 0.2
    assert np.median(found) < (10 if unit == "days" else 1)


@pytest.mark.parametrize("noise", [10.0, 20.0])
def test_a_day_that_many_rows_have_is_found(noise):
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    values[:600] = 437
    assert heaviest_value(TimeDomain(first=0, last=999, nullable=False), values, noise, 1) > 400
