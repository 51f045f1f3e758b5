from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doublure.data.series import Series
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: series
units: 200
series: {length: 12, gaps: missing}
channels: {a: {type: real, bounds: [-5, 5], missing: true}, b: {type: real, bounds: [0, 9], missing: true}}
attributes: {phase: {type: category, values: [early, late], missing: false}}
"""


def made(n, seed, shift=0.0, smooth=True, gaps=0.1):
    """Return waves that go on smoothly; the late ones lag behind."""
    rng = np.random.default_rng(seed)
    late = np.arange(n) % 2 == 1
    turns = 2 * np.pi * (np.arange(12) / 12 + np.where(late, 0.35, 0.0)[:, None] + shift)
    rough = rng.standard_normal((n, 12))
    drift = np.cumsum(rough, axis=1) / 4 if smooth else rough / 2
    first = np.sin(turns) + drift
    values = np.stack([first, 4 + np.sin(turns) + 0.1 * rough], axis=2)
    values[rng.random(values.shape) < gaps] = np.nan
    phase = pd.Categorical.from_codes(late.astype(int), ["early", "late"])
    return Series(values=values, channels=("a", "b"), attributes=pd.DataFrame({"phase": phase}))


@pytest.fixture(scope="session")
def text():
    return TEXT


@pytest.fixture(scope="session")
def schema():
    return Schema.parse(TEXT)


@pytest.fixture(scope="session")
def waves():
    return made
