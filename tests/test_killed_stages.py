"""Counting that is killed with -9 goes on: what was drawn is kept, nothing is drawn or charged twice."""

from __future__ import annotations

import os

import pytest
from killed import draws, killed, noted_noise
from parted import LEARNED, check_equal, people, plan_of

import doublure as db
from doublure.errors import LostRun
from doublure.ledger import Ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
FACTS = 8
"""Of the schema ``LEARNED``; releases of tables follow."""
PLACES = {"memory": {}, "partitions": {"memory": "1GB"}}


def fitted(folder, resume=False, **more):
    folder.mkdir(exist_ok=True)
    data, path = folder / "people.csv", folder / "ledger"
    if not resume:
        people().to_csv(data, index=False)
        Ledger.create(path, dataset="people", epsilon=1000.0, delta=0.5)
    return db.fit(data, plan_of(LEARNED), ledger=path, out=folder / "run", seed=1, resume=resume, **more)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nobody kills."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        noted_noise(patch, folder / "notes")
        syn = fitted(folder / "fit")
    assert len(plan_of(LEARNED).learned) == FACTS
    return syn, len(draws(folder / "notes"))


@pytest.mark.parametrize(
    ("place", "point", "number"),
    [
        ("memory", "asked", FACTS + 3),
        ("memory", "kept", FACTS),
        ("partitions", "asked", 2),
        ("partitions", "kept", FACTS + 4),
    ],
)
def test_a_kill_outside_a_draw_costs_nothing(monkeypatch, tmp_path, whole, place, point, number):
    noted_noise(monkeypatch, tmp_path / "notes")
    assert killed(lambda: fitted(tmp_path / "fit", **PLACES[place]), point, number)
    before = draws(tmp_path / "notes")
    assert len(before) == number - (point == "asked")
    check_equal(whole[0], fitted(tmp_path / "fit", resume=True, **PLACES[place]))
    every = draws(tmp_path / "notes")
    assert every[: len(before)] == before
    assert len(set(every)) == len(every) == whole[1]
    ledger = Ledger.open(tmp_path / "fit" / "ledger")
    assert ledger.spent.epsilon == plan_of(LEARNED).epsilon
    assert [run["status"] for run in ledger.show()["runs"]] == ["done"]


def test_a_kill_within_a_draw_costs_the_draw_and_none_is_made_again(monkeypatch, tmp_path):
    noted_noise(monkeypatch, tmp_path / "notes")
    assert killed(lambda: fitted(tmp_path / "fit"), "paid", 2)
    before = draws(tmp_path / "notes")
    with pytest.raises(LostRun, match="between paying for"):
        fitted(tmp_path / "fit", resume=True)
    assert draws(tmp_path / "notes") == before
