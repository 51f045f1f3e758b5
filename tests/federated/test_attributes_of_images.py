"""Owners answer for the pairs of label and attributes beside images, too."""

from __future__ import annotations

import numpy as np
import pytest
from owned_cases import PICTURES, SILOS, SMALL, UNITS, dealt, everything
from owners import Federation
from planting import plant

import doublure as db
from doublure.errors import OwnerLost
from doublure.methods import registry as methods
from doublure.methods.statistics.images import attributes
from doublure.private.accounting import DiscreteGaussianEvent

BESIDE = """attributes:
  age: {type: integer, bounds: [0, 99], missing: false}
  scanner: {type: category, values: [A, B], missing: false}
"""


def federation(folder, silos):
    schema = db.Schema.parse((PICTURES + BESIDE).replace("max_silos: 1", f"max_silos: {silos}"))
    plan, draw = db.plan(schema, method="statistics", epsilon=8.0, delta=1e-4, **SMALL), np.random.default_rng(0)
    records = everything(PICTURES) | {"age": draw.integers(0, 99, UNITS), "scanner": draw.choice(["A", "B"], UNITS)}
    return Federation(folder, plan, dealt(folder / "clients", records, SILOS))


@pytest.mark.parametrize("silos", [1, 2])
def test_pairs_are_counted_at_their_owners(monkeypatch, tmp_path, silos):
    made = federation(tmp_path, silos)
    owner, heard = made.post.owners[1], []
    answer = owner.answer
    owner.answer = lambda said: (heard.append((said.words["ask"], answer(said))), heard[-1][1])[1]
    syn = made.fitted(monkeypatch)
    (counted,) = (said.arrays["total"] for ask, said in heard if ask == "counts")
    assert counted.sum() == 3 * len(SILOS[0])  # each of its images once in each of three pairs
    assert syn.sample(20, seed=1).attributes["age"].between(0, 99).all()


def test_owners_refuse_pairs_that_are_priced_for_a_unit_of_one_owner(monkeypatch, tmp_path):
    for name, edit in (("accesses", "schema.most_records"), ("joint", "images.schema.most_records")):
        plant(monkeypatch, attributes, name, (edit, edit.replace("most_records", "unit.max_records")))
    assert isinstance(federation(tmp_path, 2).ended(monkeypatch), OwnerLost)


ONE = "doublure: 1\nunits: 900\nunit: {name: one, id: nr}\nmisfit: coerce\n"
SERIES = (
    "kind: series\nseries: {length: 12}\nchannels: {x: {type: real, bounds: [0, 9], precision: 1, missing: true}}\n"
    "attributes: {a: {type: boolean, missing: false}, b: {type: boolean, missing: false}}\n"
)
IMAGES = (
    "kind: images\nimages: {shape: [8, 8, 1], pictures: drawings}\nlabel: {values: [0, 1]}\n"
    "attributes: {age: {type: integer, bounds: [0, 99], missing: false}}\n"
)
TABLE = (
    "kind: table\ncolumns: {nr: {type: id}, x: {type: boolean, missing: false}, y: {type: boolean, missing: true}}\n"
)
COUNTED = {
    "table": (TABLE, "statistics", {}),
    "visits": (TABLE, "statistics", {}),
    "series": (SERIES, "statistics", {"model": "copula"}),
    "chains": (SERIES, "statistics", {"model": "chains"}),
    "images": (IMAGES, "statistics", {}),
    "guided": (IMAGES, "guided", {"labels_compared": True}),
}


@pytest.mark.parametrize("case", COUNTED)
def test_every_table_is_priced_for_all_records_of_a_unit_with_all_owners(case):
    """Also of what owners are not asked yet."""
    kind, method, settings = COUNTED[case]
    unit = "id: nr, per_unit: [x], max_records: 3" if case == "visits" else "id: nr"
    alone = db.Schema.parse(ONE.replace("id: nr", unit) + kind)
    owned = db.Schema.parse(ONE.replace("id: nr", unit) + kind + "federated: {max_silos: 2}\n")
    plan = db.plan(alone, method=method, epsilon=3.0, delta=1e-5, **settings)
    before, after = (
        [
            access.event
            for access in methods.method(method).accesses(schema, plan.settings, 3.0)
            if isinstance(access.event, DiscreteGaussianEvent)
        ]
        for schema in (alone, owned)
    )
    assert before
    assert [(event.records, event.scale) for event in after] == [
        (2 * event.records, pytest.approx(2 * event.scale)) for event in before
    ]
