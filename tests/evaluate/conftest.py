import hashlib
from functools import wraps
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from doublure.guarantee import Guarantee
from doublure.measures.tables import utility
from doublure.schema import ResolvedSchema, Schema

SCHEMA = """
doublure: 1
kind: table
units: 1000
columns:
  number: {type: integer, bounds: [0, 99], missing: false}
  copy: {type: integer, bounds: [0, 99], missing: false}
  real: {type: real, bounds: [-5, 5], missing: true}
  gain: {type: integer, bounds: [0, 99999], zero_inflated: true, missing: false}
  size: {type: ordinal, values: [S, M, L], missing: false}
  colour: {type: category, values: [red, green, blue], other: grey, missing: ["?"]}
  member: {type: boolean, missing: false}
  day: {type: date, bounds: [2020-01-01, 2023-12-31], missing: false}
  moment: {type: datetime, bounds: ["2020-01-01T00:00:00", "2020-01-02T00:00:00"], step: 60, missing: false}
  label: {type: category, values: ["no", "yes"], missing: false, roles: [target]}
constraints:
  - {equal: [number, copy]}
"""


def draw(n: int, seed: int, signal: float = 3.0) -> pd.DataFrame:
    """Rows whose label follows number and colour, with a strength of ``signal``."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 100, n)
    real = np.where(rng.random(n) < 0.1, np.nan, np.clip(rng.normal(size=n), -5, 5))
    colour = rng.choice(["red", "green", "blue", "grey", "?"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    lift = signal * ((number - 50) / 25 + (colour == "red"))
    yes = rng.random(n) < 1 / (1 + np.exp(-lift))
    return pd.DataFrame(
        {
            "number": number,
            "copy": number,
            "real": real,
            "gain": np.where(rng.random(n) < 0.8, 0, rng.integers(1, 100_000, n)),
            "size": rng.choice(["S", "M", "L"], n),
            "colour": colour,
            "member": rng.random(n) < 0.5,
            "day": np.datetime64("2020-01-01", "s") + rng.integers(0, 1400, n) * np.timedelta64(86_400, "s"),
            "moment": np.datetime64("2020-01-01", "s") + rng.integers(0, 1440, n) * np.timedelta64(60, "s"),
            "label": np.where(yes, "yes", "no"),
        }
    )


def shuffle(frame: pd.DataFrame) -> pd.DataFrame:
    """Every column in an order of its own."""
    return pd.DataFrame(
        {name: frame[name].sample(frac=1, random_state=seed).to_numpy() for seed, name in enumerate(frame)}
    )


@pytest.fixture(scope="session", autouse=True)
def trained_anew():
    """Remember what classifiers predict by all that they are given: evaluations of the same rows share two of three.

    It gives what trains them as ever.
    """
    known = {}

    def remembered(kind, train):
        @wraps(train)
        def trained(training, classes, test, seed):
            given = hashlib.sha256(repr((kind, utility._TREES, utility._ROUNDS, seed)).encode())
            given.update(np.ascontiguousarray(classes))
            for table in (training, test):
                given.update(repr((table.names, table.sizes, sorted(table.scaled), table.codes.shape)).encode())
                given.update(np.ascontiguousarray(table.codes))
                for name in sorted(table.scaled):
                    given.update(np.ascontiguousarray(table.scaled[name]))
            key = given.hexdigest()
            if key not in known:
                known[key] = train(training, classes, test, seed)
            return known[key].copy()

        return trained

    with pytest.MonkeyPatch.context() as patch:
        anew = utility._TRAIN
        patch.setattr(utility, "_TRAIN", {kind: remembered(kind, train) for kind, train in anew.items()})
        yield anew


@pytest.fixture(scope="session")
def schema() -> ResolvedSchema:
    return Schema.parse(SCHEMA).resolve({})


@pytest.fixture(scope="session")
def real() -> pd.DataFrame:
    return draw(900, 1)


@pytest.fixture(scope="session")
def holdout() -> pd.DataFrame:
    return draw(600, 2)


@pytest.fixture(scope="session")
def drawn():
    return draw


@pytest.fixture(scope="session")
def shuffle_columns():
    return shuffle


class AnySynthesizer:
    """What fit() returns, as far as an evaluation looks at it."""

    tables = ()

    def __init__(self, schema, rows):
        self.schema = schema
        self.rows = rows
        self.asked = None
        self.guarantee = Guarantee(kind="none")
        self.plan = SimpleNamespace(method="gan")
        self.run = {}

    def draw(self, n, given=None, seed=None):
        self.asked = (n, seed)
        return self.rows.sample(n, replace=True, random_state=seed).reset_index(drop=True)

    sample = draw


@pytest.fixture(scope="session")
def make_synthesizer(schema):
    return lambda rows, under=schema: AnySynthesizer(under, rows)
