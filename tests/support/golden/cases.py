"""Small private data of every kind, with schemas of every nature of column, fact and rule, and fits of all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from doublure.schema import columns
from doublure.schema.columns import CategoryColumn, RealColumn
from doublure.schema.fact_states import Fact

Data = Any
ROWS = 300


@dataclass(frozen=True)
class Case:
    """A fit, and what is asked of it.

    Attributes:
        schema: As its file says.
        data: Makes private records from a seed.
        method: One of the registry's.
        settings: Budget and sizes.
        given: Conditions, each of a sample of its own.
        public: Whether a public generator of images is fitted first.
        kept: Whether the test of the suite runs it, besides the recorder.
        evaluated: Whether a report is made.
        quiet: Warnings of so small data.
    """

    schema: str
    data: Callable[[int], Data]
    method: str = "statistics"
    settings: Mapping[str, Any] = field(default_factory=dict)
    given: tuple[Mapping[str, Any], ...] = ()
    public: bool = False
    kept: bool = False
    evaluated: bool = True


# -- tables ------------------------------------------------------------------------------------------------------------

PEOPLE = """
doublure: 1
kind: table
unit: {name: person, id: nr, max_records: 2}
units: {learn: 0.5, magnitude: 300}
misfit: coerce
columns:
  nr: {type: id}
  age: {type: integer, bounds: [0, 99], missing: false, description: in years}
  wage: {type: integer, bounds: [0, 90000], step: 100, scale: log, spikes: [1500], missing: ["?", -9]}
  hours: {type: integer, bounds: [0, 80], edges: [10, 20, 40], missing: true}
  change: {type: integer, bounds: [-1000, 1000], scale: symlog, zero_inflated: true, missing: false}
  size: {type: real, bounds: [1, 2.5], precision: 2, missing: true}
  raw: {type: real, bounds: [-1, 1], missing: false}
  half: {type: real, bounds: [0, 20], step: 0.5, missing: false}
  gain: {type: real, bounds: {learn: 0.5}, precision: 1, zero_inflated: true, missing: {learn: 0.5}}
  job: {type: category, values: {learn: 0.5}, other: Other, missing: ["?"]}
  code: {type: category, values: ["01", "02", 3], missing: false}
  grade: {type: ordinal, values: [low, 2, high], missing: true}
  member: {type: boolean, missing: true}
  born: {type: date, bounds: [1930-01-01, 2010-12-31], missing: true}
  seen: {type: datetime, bounds: [2020-03-28T00:00:00, 2020-03-30T00:00:00], step: 3600, timezone: Europe/Paris,
         missing: false}
  left: {type: datetime, bounds: {learn: 0.5}, step: 60, missing: false}
  sex: {type: category, values: [f, m], missing: false, roles: [condition], shares: {f: 0.3, m: 0.7}}
  income: {type: category, values: [few, many], missing: false, roles: [target, condition], shares: {learn: 0.5}}
"""
ASKED = (
    {"age": (30, 40), "job": ["cook", "nurse"]},
    {"hours": None, "sex": "f"},
    {"sex": {"f": 0.5, "m": 0.5}, "born": ("1950-01-01", None)},
    {"grade": ["low", None], "member": True, "seen": (None, "2020-03-29T12:00:00")},
)


def people(seed: int, rows: int = ROWS) -> pd.DataFrame:
    """Return records of 250 persons or so, some of which do not fit."""
    draw = np.random.default_rng(seed)

    def holes(cells: Any, share: float = 0.1, hole: Any = None) -> Any:
        return np.where(draw.random(rows) < share, hole, np.asarray(cells, dtype=object))

    age = draw.integers(0, 100, rows)
    seen = np.datetime64("2020-03-28T00:00:00") + draw.integers(0, 48, rows) * np.timedelta64(3600, "s")
    left = np.datetime64("2021-01-01T00:00:00") + draw.integers(0, 5000, rows) * np.timedelta64(60, "s")
    born = np.datetime64("1930-01-01") + draw.integers(0, 29_000, rows) * np.timedelta64(1, "D")
    change = np.where(draw.random(rows) < 0.6, 0, np.rint(draw.normal(0, 200, rows)))
    return pd.DataFrame(
        {
            "nr": [f"p{number}" for number in draw.integers(0, rows, rows)],
            "age": age,
            "wage": holes(np.where(draw.random(rows) < 0.2, 1500, np.rint(np.exp(draw.normal(7, 1, rows)))), hole="?"),
            "hours": holes(draw.choice([8, 20, 38, 40], rows)),
            "change": np.where(draw.random(rows) < 0.02, 5000, change),
            "size": holes(np.round(draw.uniform(1.4, 2.1, rows), 2), hole=np.nan).astype(float),
            "raw": draw.uniform(-1, 1, rows),
            "half": draw.integers(0, 41, rows) / 2,
            "gain": holes(np.where(draw.random(rows) < 0.5, 0.0, np.round(draw.exponential(50, rows), 1)), hole=""),
            "job": holes(draw.choice(["cook", "nurse", "clerk", "spy"], rows, p=[0.5, 0.3, 0.19, 0.01]), hole="?"),
            "code": draw.choice(["01", "02", "3"], rows),
            "grade": holes(draw.choice(["low", "2", "high"], rows, p=[0.6, 0.3, 0.1])),
            "member": holes(draw.choice(["yes", "no"], rows)),
            "born": holes(born.astype(str)),
            "seen": [f"{moment}+00:00" for moment in seen.astype(str)],
            "left": left.astype(str),
            "sex": draw.choice(["f", "m"], rows, p=[0.3, 0.7]),
            "income": np.where(age + draw.normal(0, 20, rows) > 50, "many", "few"),
        }
    )


RULES = """
doublure: 1
kind: table
units: 300
date_format: DD.MM.YYYY
decimal: ","
defaults: {missing: false}
columns:
  level: {type: ordinal, values: [none, school, degree], missing: false}
  years: {type: integer, bounds: [1, 3]}
  area: {type: category, values: ["1", "2", "3"], missing: true}
  density: {type: real, bounds: [0, 99], precision: 1, missing: true}
  rent: {type: integer, bounds: [0, 50]}
  food: {type: integer, bounds: [0, 50]}
  cost: {type: integer, bounds: [0, 100]}
  start: {type: date, bounds: [2020-01-01, 2020-12-31]}
  end: {type: date, bounds: [2020-01-01, 2021-06-30], missing: true}
  low: {type: real, bounds: [0, 10], precision: 1}
  high: {type: real, bounds: [0, 10], precision: 1}
  young: {type: boolean, roles: [condition]}
  job: {type: category, values: [none, cook, nurse]}
  place: {type: category, values: [hill, coast]}
  share: {type: percent}
  home: {type: department, missing: ["?"], roles: [target]}
constraints:
  - {equal: [level, years]}
  - {determines: [area, density], map: {1: 10.5, 2: 7, 3: }}
  - {sum: {total: cost, of: [rent, food]}}
  - {at_most: [start, end]}
  - {at_most: [low, high]}
  - {implies: {when: {young: true}, then: {job: none, rent: [0, 10]}}}
  - {combinations: {columns: [job, place], rows: [[none, hill], [none, coast], [cook, coast], [nurse, hill]]}}
"""


class PercentColumn(RealColumn):
    """A registered number."""

    type: Literal["percent"] = "percent"
    bounds: Fact[tuple[float, float]] = (0.0, 100.0)
    precision: int | None = 1


class DepartmentColumn(CategoryColumn):
    """A registered list."""

    type: Literal["department"] = "department"
    values: Fact[tuple[str, ...]] = tuple(f"{number:02}" for number in range(1, 6))


def register() -> None:
    """Register the types that :data:`RULES` names."""
    columns.register(PercentColumn)
    columns.register(DepartmentColumn)


def ruled(seed: int, rows: int = ROWS) -> pd.DataFrame:
    """Return records that keep all rules."""
    draw = np.random.default_rng(seed)
    years, area, young = draw.integers(1, 4, rows), draw.integers(0, 4, rows), draw.random(rows) < 0.3
    job = np.where(young, "none", draw.choice(["none", "cook", "nurse"], rows))
    rent, food = np.where(young, draw.integers(0, 11, rows), draw.integers(0, 51, rows)), draw.integers(0, 51, rows)
    start = pd.Series(np.datetime64("2020-01-01") + draw.integers(0, 366, rows) * np.timedelta64(1, "D"))
    end = start + pd.to_timedelta(draw.integers(0, 180, rows), unit="D")
    low = draw.integers(0, 101, rows)
    high = [int(draw.integers(one, 101)) for one in low]
    anywhere = draw.choice(["hill", "coast"], rows)
    return pd.DataFrame(
        {
            "level": np.array(["none", "school", "degree"])[years - 1],
            "years": years,
            "area": np.array(["", "1", "2", "3"])[area],
            "density": np.array(["", "10,5", "7", ""])[area],
            "rent": rent,
            "food": food,
            "cost": rent + food,
            "start": start.dt.strftime("%d.%m.%Y"),
            "end": np.where(draw.random(rows) < 0.2, "", end.dt.strftime("%d.%m.%Y")),
            "low": [f"{one // 10},{one % 10}" for one in low],
            "high": [f"{one // 10},{one % 10}" for one in high],
            "young": young,
            "job": job,
            "place": np.where(job == "cook", "coast", np.where(job == "nurse", "hill", anywhere)),
            "share": np.round(draw.beta(2, 5, rows) * 100, 1),
            "home": draw.choice(["01", "02", "05", "?"], rows),
        }
    )


# -- related tables ----------------------------------------------------------------------------------------------------

RELATED = """
doublure: 1
kind: relational
unit: {name: patient}
units: 300
tables:
  patients:
    key: nr
    columns:
      nr: {type: id}
      sex: {type: category, values: [f, m], missing: false, roles: [condition]}
      born: {type: date, bounds: [1930-01-01, 2005-12-31], missing: false}
      total: {type: integer, bounds: [0, 240], missing: false}
  stays:
    key: stay
    parent: patients
    foreign_key: nr
    max_children: 4
    order: admitted
    columns:
      stay: {type: id}
      nr: {type: id}
      admitted: {type: date, bounds: [2015-01-01, 2020-12-31], missing: false}
      discharged: {type: date, bounds: [2015-01-01, 2021-12-31], missing: true}
      days: {type: integer, bounds: [0, 60], missing: false}
      ward: {type: category, values: {learn: 0.5}, other: other, missing: false}
      again: {type: boolean, missing: false, roles: [target]}
constraints:
  - {at_most: [patients.born, stays.admitted, stays.discharged]}
  - {at_most: [stays.admitted, stays.discharged]}
  - {sum: {total: patients.total, of: stays.days}}
"""


def patients(seed: int, count: int = ROWS) -> dict[str, pd.DataFrame]:
    """Return patients and their stays."""
    draw = np.random.default_rng(seed)
    many = draw.integers(0, 5, count)
    owner = np.repeat(np.arange(count), many)
    admitted = np.datetime64("2015-01-01") + draw.integers(0, 2000, len(owner)) * np.timedelta64(1, "D")
    days = draw.integers(0, 61, len(owner))
    stays = pd.DataFrame(
        {
            "stay": np.arange(len(owner)),
            "nr": owner,
            "admitted": admitted,
            "discharged": np.where(draw.random(len(owner)) < 0.1, np.datetime64("NaT"), admitted + days),
            "days": days,
            "ward": draw.choice(["x", "y", "z"], len(owner), p=[0.5, 0.3, 0.2]),
            "again": draw.random(len(owner)) < 0.4,
        }
    )
    root = pd.DataFrame(
        {
            "nr": np.arange(count),
            "sex": draw.choice(["f", "m"], count),
            "born": np.datetime64("1930-01-01") + draw.integers(0, 27_000, count) * np.timedelta64(1, "D"),
            "total": np.bincount(owner, weights=days, minlength=count).astype(int),
        }
    )
    return {"patients": root, "stays": stays}


# -- series ------------------------------------------------------------------------------------------------------------

DAYS = """
doublure: 1
kind: series
units: 300
series: {length: 6, gaps: missing}
channels:
  litres: {type: real, bounds: {learn: 0.5}, precision: 1, zero_inflated: true, missing: {learn: 0.5}}
  kw: {type: real, bounds: [-5, 5], precision: 2, missing: false}
  valve: {type: integer, bounds: [0, 3], missing: true}
  state: {type: category, values: [off, on, idle], missing: false}
attributes:
  weekend: {type: boolean, missing: false, shares: {true: 0.3, false: 0.7}}
  place: {type: category, values: [hill, coast], missing: false, shares: {learn: 0.5}}
  rooms: {type: integer, bounds: [1, 6], missing: false}
"""
GAPS = DAYS.replace("missing: {learn: 0.5}", "missing: true")
METERS = """
doublure: 1
kind: series
unit: {name: meter, id: house, max_records: 4}
units: 40
series: {time: when, length: 8, step: 3h, timezone: Europe/Paris, gaps: missing}
channels:
  litres: {type: real, bounds: {learn: 0.5}, precision: 1, missing: {learn: 0.5}, zero_inflated: true}
  valve: {type: integer, bounds: [0, 3], missing: true}
attributes:
  place: {type: category, values: [hill, coast], missing: false, shares: {learn: 0.5}}
  weekday: {type: ordinal, values: [0, 1, 2, 3, 4, 5, 6], missing: false, from_time: weekday}
"""


def days(seed: int, rows: int = ROWS) -> dict[str, Any]:
    """Return days on which water runs in the morning, at weekends later, and power goes with it."""
    draw = np.random.default_rng(seed)
    weekend, coast = draw.random(rows) < 0.3, draw.random(rows) < 0.5
    size = np.exp(draw.normal(0, 0.6, rows))
    shape = np.exp(-0.5 * (np.arange(6) - np.where(weekend, 3, 1)[:, None]) ** 2)
    litres = np.clip(20 * size[:, None] * shape * draw.gamma(4, 0.25, (rows, 6)), 0.1, 100)
    litres[draw.random(rows) < 0.2, 4:] = 0
    litres[draw.random(rows) < 0.1, 0] = np.nan
    course = np.cumsum(draw.normal(0, 0.5, (rows, 6)), axis=1) + coast[:, None]
    valve = draw.integers(0, 4, (rows, 6)).astype(float)
    valve[draw.random((rows, 6)) < 0.05] = np.nan
    return {
        "litres": np.round(litres, 1),
        "kw": np.round(np.clip(course, -5, 5), 2),
        "valve": valve,
        "state": np.array(["off", "on", "idle"])[draw.integers(0, 3, (rows, 6))],
        "weekend": weekend,
        "place": np.where(coast, "coast", "hill"),
        "rooms": draw.integers(1, 7, rows),
    }


def readings(seed: int, meters: int = 24) -> pd.DataFrame:
    """Return a week around the day on which clocks go forward; some readings are not there."""
    draw = np.random.default_rng(seed)
    moments = pd.date_range("2024-03-27", periods=8 * 7, freq="3h")
    frames = []
    for one in range(meters):
        frame = pd.DataFrame({"house": f"house-{one}", "when": [moment.isoformat() for moment in moments]})
        frame["litres"] = np.round(np.where(draw.random(len(frame)) < 0.4, 0, draw.random(len(frame)) * 40), 1)
        frame["valve"] = draw.integers(0, 4, len(frame))
        frame["place"] = ["hill", "coast"][one % 2]
        frames.append(frame[draw.random(len(frame)) > 0.05])
    return pd.concat(frames, ignore_index=True)


# -- images ------------------------------------------------------------------------------------------------------------

DIGITS = """
doublure: 1
kind: images
units: 300
images: {shape: [8, 8, 1], pictures: drawings}
label: {values: [a, b, c], shares: {learn: 0.5}}
"""
PUBLIC = "doublure: 1\nkind: images\nimages: {shape: [8, 8, 1]}\n"


def pictures(seed: int, count: int = ROWS) -> dict[str, Any]:
    """Return bars of three directions, with noise."""
    draw = np.random.default_rng(seed)
    labels, place = draw.integers(0, 3, count), draw.integers(2, 6, count)
    images = draw.integers(0, 60, (count, 8, 8, 1), dtype=np.uint8)
    for image, label, at in zip(images, labels, place, strict=True):
        bar = np.eye(8, dtype=bool) if label == 2 else np.zeros((8, 8), dtype=bool)
        bar[(at, slice(None)) if label == 0 else (slice(None), at)] |= label < 2
        image[bar] = 220
    return {"images": images, "labels": np.array(list("abc"))[labels]}


# -- fits --------------------------------------------------------------------------------------------------------------

BUDGET = {"epsilon": 8.0, "delta": 1e-4, "accountant": "rdp"}
NETWORKS: dict[str, Any] = {
    "steps": 6, "lot_size": 32, "width": 8, "critic_width": 8, "noise_width": 4, "generator_batch": 32,
    "checkpoints": 3,
}  # fmt: skip
IMAGE_NETWORKS: dict[str, Any] = {
    "steps": 6, "n_critic": 2, "lot_size": 32, "generator_batch": 6, "critic_channels": [4, 6], "channels": [6, 4],
    "features": 5, "checkpoints": 3, "noise_width": 4,
}  # fmt: skip
SERIES_NETWORKS: dict[str, Any] = {
    "steps": 6, "n_critic": 2, "lot_size": 5, "generator_batch": 6, "critic_width": 6, "critic_channels": [4],
    "features": 4, "channels": [4, 3], "hidden": 6, "lstm_units": 5, "checkpoints": 3,
}  # fmt: skip
LABELLER: dict[str, Any] = {"labeller_steps": 3, "view_images": 100, "view_width": 10, "tries": 2}
LATENT: dict[str, Any] = {
    "steps": 6, "lot_size": 64, "width": 8, "critic_width": 8, "generator_batch": 16, "checkpoints": 3,
    "inversion_steps": 2, "features": 64, "fit_steps": 4, "batch": 20, "labeller_share": 0,
}  # fmt: skip
OF_DAYS = ({"weekend": True}, {"rooms": (2, 4), "place": "coast"})
OF_DIGITS = ({"label": "b"},)

CASES: dict[str, Case] = {
    "people-statistics": Case(PEOPLE, people, settings=BUDGET, given=ASKED, kept=True),
    "people-dpgan": Case(PEOPLE, people, "dpgan", BUDGET | NETWORKS, given=ASKED[:1], kept=True),
    "people-gan": Case(PEOPLE, people, "gan", NETWORKS, evaluated=False),
    "people-guided": Case(PEOPLE, people, "guided", BUDGET | {"critic_steps": 4}, evaluated=False),
    "people-noisecritic": Case(PEOPLE, people, "noisecritic", NETWORKS, evaluated=False),
    "people-bayesgan": Case(PEOPLE, people, "bayesgan", BUDGET | NETWORKS | {"distances": 8}, evaluated=False),
    "rules-statistics": Case(RULES, ruled, settings=BUDGET, given=({"young": True}, {"rent": (0, 5)}), kept=True),
    "rules-dpgan": Case(RULES, ruled, "dpgan", BUDGET | NETWORKS, evaluated=False),
    "related-statistics": Case(RELATED, patients, settings=BUDGET, given=({"sex": "f"},), kept=True),
    "days-chains": Case(
        DAYS, days, settings=BUDGET | {"model": "chains", "fit_steps": 20, "groups": 4, "levels": 3, "bins": 12}
    ),
    "days-copula": Case(GAPS, days, settings=BUDGET | {"model": "copula"}, given=OF_DAYS, evaluated=False),
    "days-dpgan": Case(DAYS, days, "dpgan", BUDGET | SERIES_NETWORKS, given=OF_DAYS, evaluated=False),
    "meters-statistics": Case(METERS, readings, settings=BUDGET, evaluated=False),
    "meters-dpgan": Case(METERS, readings, "dpgan", BUDGET | SERIES_NETWORKS, kept=True, evaluated=False),
    "meters-gan": Case(METERS, readings, "gan", SERIES_NETWORKS, evaluated=False),
    "digits-statistics": Case(
        DIGITS, pictures, settings=BUDGET | {"features": 8, "fit_steps": 4, "batch": 20}, given=OF_DIGITS, kept=True
    ),
    "digits-guided": Case(
        DIGITS, pictures, "guided", BUDGET | {"features": 8, "fit_steps": 4, "batch": 20} | LABELLER, evaluated=False
    ),
    "digits-dpgan": Case(DIGITS, pictures, "dpgan", BUDGET | IMAGE_NETWORKS, given=OF_DIGITS),
    "digits-bayesgan": Case(
        DIGITS, pictures, "bayesgan", BUDGET | IMAGE_NETWORKS | LABELLER | {"distances": 5}, evaluated=False
    ),
    "digits-noisecritic": Case(
        DIGITS, pictures, "noisecritic", IMAGE_NETWORKS | {"estimate_features": "pixels"}, evaluated=False
    ),
    "digits-gan": Case(DIGITS, pictures, "gan", IMAGE_NETWORKS, evaluated=False),
    "digits-latentgan-critic": Case(
        DIGITS, pictures, "latentgan", BUDGET | LATENT | {"teacher": "critic"}, public=True, evaluated=False
    ),
    "digits-latentgan-mixture": Case(
        DIGITS, pictures, "latentgan", BUDGET | LATENT | {"teacher": "mixture", "splits": 0}, public=True,
        evaluated=False,
    ),
}  # fmt: skip
