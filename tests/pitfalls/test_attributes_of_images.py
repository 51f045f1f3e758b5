"""Rules 1, 2 and 15 for attributes beside images: one priced release reads them, and moves by what it is priced at."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import doublure as db
from doublure.data.images import open_images
from doublure.encode.image import ImageEncoder
from doublure.errors import NotAsPriced, SettingError
from doublure.methods.statistics.images import attributes
from doublure.methods.statistics.series import joint_attributes
from doublure.private.mechanism import Mechanism
from doublure.private.records import PrivateRecords

UNITS = 60
TEXT = f"""
doublure: 1
kind: images
units: {UNITS}
images: {{shape: [8, 8, 1], pictures: aligned}}
label: {{values: [a, b], roles: [target, condition]}}
attributes:
  age: {{type: integer, bounds: [0, 99], missing: false}}
  scanner: {{type: category, values: [A, B], other: B, missing: false}}
misfit: coerce
"""


def films(size=UNITS):
    draw = np.random.default_rng(0)
    return {
        "images": draw.integers(0, 255, (size, 8, 8), dtype=np.uint8),
        "labels": draw.choice(["a", "b"], size),
        "age": draw.integers(0, 99, size),
        "scanner": draw.choice(["A", "B"], size),
    }


def fitted(folder):
    plan = db.plan(db.Schema.parse(TEXT), method="statistics", epsilon=5.0, delta=1e-4, model="gaussian")
    ledger = db.Ledger.create(folder / "ledger", dataset="films", epsilon=50.0, delta=0.01)
    return db.fit(films(), plan, ledger=ledger, seed=1)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Return the purpose of every query of a fit, with what answers it, exactly, for other images."""
    found, released = [], Mechanism.release

    def watched(mechanism, query, access, records, **more):
        found.append((access.purpose, query))
        return released(mechanism, query, access, records, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Mechanism, "release", watched)
        schema = fitted(tmp_path_factory.mktemp("films")).schema
    encoder = ImageEncoder(schema)

    def answers(data):
        compact = encoder.compact(open_images(data).load(schema, at_least=0).content)
        records = PrivateRecords(
            compact, np.arange(len(compact)), len(compact), lambda rows: encoder.split(encoder.expand(rows))
        )
        return [query.answer(records, sample_rate=1.0) for _, query in found]

    return [purpose for purpose, _ in found], [query for _, query in found], answers


@pytest.mark.parametrize("odd", [{}, {"age": 10**9}, {"age": -(10**9)}, {"scanner": "never seen"}, {"labels": "b"}])
def test_one_image_moves_each_release_by_what_it_is_priced_at(asked, odd):
    purposes, queries, answers = asked
    assert purposes[-1] == attributes.PAIRS
    more = {name: cells[-1:] for name, cells in films(UNITS + 1).items()}
    more |= {name: np.array([cell]) for name, cell in odd.items()}
    both = {name: np.concatenate([cells, more[name]]) for name, cells in films().items()}
    for query, one, other in zip(queries, answers(films()), answers(both), strict=True):
        moved = (np.asarray(other.total, dtype=float) - np.asarray(one.total, dtype=float)) * (one.unit or 1.0)
        assert np.linalg.norm(moved) <= query.sensitivity.l2 * (1 + 1e-12)
    assert np.abs(moved).sum() == 3  # one cell in each of three tables


def test_an_attribute_reaches_the_pairs_and_nothing_else(asked):
    purposes, _, answers = asked
    before = films()
    after = before | {"age": 99 - before["age"], "scanner": np.where(before["scanner"] == "A", "B", "A")}
    for purpose, one, other in zip(purposes, answers(before), answers(after), strict=True):
        assert np.array_equal(one.total, other.total) == (purpose != attributes.PAIRS)


def twice(axes, size):
    return [*combinations(axes, size)] * 2


def alone_too(axes, size):
    return [*combinations(axes, size), *((axis,) for axis in axes)]


@pytest.mark.parametrize("mutant", [twice, alone_too])
def test_more_tables_than_were_priced_are_refused(tmp_path, monkeypatch, mutant):
    monkeypatch.setattr(joint_attributes, "combinations", mutant)
    with pytest.raises((NotAsPriced, SettingError)):
        fitted(tmp_path)
