"""Attack data: one whose release repeats what was seen, one whose release knows nothing of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.attack.attack_data import make_attack_data
from doublure.attack.results import Claim
from doublure.schema import Schema

SCHEMA = """
doublure: 1
kind: table
units: 400
columns:
  a: {type: real, bounds: [0, 1], missing: false}
  b: {type: real, bounds: [0, 1], missing: true}
  c: {type: integer, bounds: [0, 99], missing: false}
  d: {type: category, values: [red, green, blue], missing: false}
  e: {type: category, values: [low, high], missing: false, roles: [target]}
"""
DP = Claim(kind="dp", epsilon=0.5, delta=1e-5, sentence="a claim")
NONE = Claim(kind="none", sentence="No privacy guarantee. Do not publish.")


def draw(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "a": rng.random(n),
            "b": np.where(rng.random(n) < 0.1, np.nan, rng.random(n)),
            "c": rng.integers(0, 100, n),
            "d": rng.choice(["red", "green", "blue"], n),
            "e": rng.choice(["low", "high"], n),
        }
    )


class Copier:
    """A 'synthesizer' that hands out what it has seen."""

    def __init__(self, rows: pd.DataFrame) -> None:
        self.rows = rows
        self.white_box = self
        self.critic = None

    def sample(self, n: int, seed: int) -> pd.DataFrame:
        return self.rows.sample(n, replace=True, random_state=seed).reset_index(drop=True)


@pytest.fixture(scope="session")
def attack_schema():
    return Schema.parse(SCHEMA).resolve({})


@pytest.fixture(scope="session")
def rows():
    return draw


@pytest.fixture(scope="session")
def copier():
    return Copier


@pytest.fixture(scope="session")
def make_world(attack_schema):
    """Return attack data; ``honest`` releases fresh rows, otherwise the seen ones are released."""

    def made(*, honest: bool, n: int = 300, claim: Claim = DP, **more):
        seen, unseen = draw(n, 1), draw(2 * n, 2)
        source = Copier(draw(3000, 3) if honest else seen)
        units = (np.arange(n), np.arange(2 * n))
        return make_attack_data(attack_schema, claim, (seen, units[0]), (unseen, units[1]), source.sample, **more)

    return made


@pytest.fixture(scope="session")
def no_claim():
    return NONE


@pytest.fixture(scope="session")
def dp_claim():
    return DP
