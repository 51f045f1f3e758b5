"""Owners answer for the pairs of label and attributes beside images, too."""

from __future__ import annotations

import numpy as np
from owned_cases import PICTURES, SILOS, SMALL, UNITS, dealt, everything
from owners import Federation

import doublure as db

BESIDE = """attributes:
  age: {type: integer, bounds: [0, 99], missing: false}
  scanner: {type: category, values: [A, B], missing: false}
"""


def test_pairs_are_counted_at_their_owners(monkeypatch, tmp_path):
    schema, draw = db.Schema.parse(PICTURES + BESIDE), np.random.default_rng(0)
    plan = db.plan(schema, method="statistics", epsilon=8.0, delta=1e-4, **SMALL)
    records = everything(PICTURES) | {"age": draw.integers(0, 99, UNITS), "scanner": draw.choice(["A", "B"], UNITS)}
    made = Federation(tmp_path, plan, dealt(tmp_path / "clients", records, SILOS))
    owner, heard = made.post.owners[1], []
    answer = owner.answer
    owner.answer = lambda said: (heard.append((said.words["ask"], answer(said))), heard[-1][1])[1]
    syn = made.fitted(monkeypatch)
    (counted,) = (said.arrays["total"] for ask, said in heard if ask == "counts")
    assert counted.sum() == 3 * len(SILOS[0])  # each of its images once in each of three pairs
    assert syn.sample(20, seed=1).attributes["age"].between(0, 99).all()
