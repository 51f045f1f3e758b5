"""Small tables in which every border of partitions is met, and noise that is the same for every fit of them."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd

import doublure as db
from doublure.ledger import Ledger
from doublure.private import whole_noise
from doublure.private.noise import ScaledNoise

DECLARED = """
doublure: 1
kind: table
units: 300
columns:
  age: {type: integer, bounds: [0, 100], missing: true}
  pay: {type: real, bounds: [0, 100000], precision: 2, missing: false}
  job: {type: category, values: [cook, nurse], other: Other, missing: false}
  seen: {type: date, bounds: [2000-01-01, 2030-01-01], missing: true}
  out: {type: category, values: ["no", "yes"], missing: false}
"""
LEARNED = """
doublure: 1
kind: table
units: {learn: 1.0, magnitude: 300}
columns:
  age: {type: integer, bounds: {learn: 1.0}, missing: {learn: 1.0}}
  pay: {type: real, bounds: {learn: 1.0}, missing: false}
  job: {type: category, values: {learn: 1.0}, other: Other, missing: false}
  seen: {type: date, bounds: {learn: 1.0}, missing: {learn: 1.0}}
  out: {type: category, values: ["no", "yes"], missing: false, roles: [condition], shares: {learn: 1.0}}
"""
ID = "columns:\n  who: {type: id}"
SEVERAL = DECLARED.replace("columns:", f"unit: {{name: person, id: who, max_records: 2}}\n{ID}")
BOTH = LEARNED.replace("columns:", f"unit: {{name: person, id: who, max_records: 2}}\n{ID}")
SCHEMAS = {"declared": DECLARED, "learned": LEARNED, "several records": SEVERAL, "learned of several": BOTH}


def people(rows=500):
    """Return a table in which units have one to many records, some far apart."""
    draw = np.random.default_rng(5)
    days = np.array("2001-01-01", "datetime64[D]") + draw.integers(0, 9000, rows)
    return pd.DataFrame(
        {
            "who": [f"p{key}" for key in draw.integers(0, max(1, rows // 2), rows)],
            "age": np.where(draw.random(rows) < 0.1, np.nan, draw.integers(18, 90, rows)),
            "pay": np.round(draw.lognormal(8, 1, rows), 2),
            "job": draw.choice(["cook", "nurse", "clown", "of Kiruna"], rows, p=[0.5, 0.3, 0.19, 0.01]),
            "seen": [str(day) if draw.random() < 0.9 else "" for day in days],
            "till": [str(day + 30) for day in days],
            "out": draw.choice(["no", "yes"], rows),
        }
    ).astype({"who": object, "job": object, "seen": object, "till": object, "out": object})


def replayed(patch):
    """Hand the noise in: the same for every fit, whatever is counted."""
    draws = np.random.default_rng(7)

    def noisy(counts, spread):
        exact = whole_noise.whole(counts)
        return exact + np.rint(draws.normal(0, spread, exact.shape)).astype(np.int64)

    def thresholded(counts, *, epsilon, delta, moved):
        found = {name: int(count + round(draws.normal(0, 1))) for name, count in sorted(counts.items())}
        real = released(counts, epsilon=epsilon, delta=delta, moved=moved)
        return real._replace(counts={name: count for name, count in found.items() if count > 20})

    gaussian, laplace, released = whole_noise.gaussian, whole_noise.laplace, whole_noise.thresholded
    patch.setattr(
        whole_noise,
        "gaussian",
        lambda counts, *, scale: ScaledNoise(noisy(counts, scale), gaussian(counts, scale=scale).scale),
    )
    patch.setattr(
        whole_noise,
        "laplace",
        lambda counts, *, epsilon, moved: ScaledNoise(
            noisy(counts, moved / epsilon), laplace(counts, epsilon=epsilon, moved=moved).scale
        ),
    )
    patch.setattr(whole_noise, "thresholded", thresholded)


def check_equal(one, other):
    assert one.schema.to_yaml() == other.schema.to_yaml()
    assert one.guarantee == other.guarantee
    assert [table.counts.tolist() for table in one.tables] == [table.counts.tolist() for table in other.tables]
    mine, theirs = one.generator.state_dict(), other.generator.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
    pd.testing.assert_frame_equal(one.sample(50, seed=3), other.sample(50, seed=3))


@functools.cache
def plan_of(schema):
    """Return a plan of ``statistics`` that is fitted in no time."""
    return db.plan(
        db.Schema.parse(schema), method="statistics", epsilon=20.0, delta=1e-4, accountant="rdp", components=4,
        fit_steps=5,
    )  # fmt: skip


def fitted(patch, data, schema, folder, **arguments):
    """Fit such a plan with noise that is the same for every fit, and a ledger and a run in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger.create(folder / "ledger", dataset="people", epsilon=1000.0, delta=0.5)
    with patch.context() as inner:
        replayed(inner)
        return db.fit(data, plan_of(schema), ledger=ledger, out=folder / "run", seed=1, **arguments)
