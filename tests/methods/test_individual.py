"""``accounting=individual``: what a plan says of it, what it refuses, and that nobody is told who is left."""

from __future__ import annotations

import json
import os

import numpy as np
import pandas as pd
import pytest
from killed import killed

import doublure as db
from doublure.errors import RunFolderError, SettingError
from doublure.ledger import Ledger
from doublure.methods.dpgan.method import METHOD
from doublure.methods.dpgan.settings import DpganSettings
from doublure.private.filters import UnitFilters
from doublure.schema import Schema

TEXT = """
doublure: 1
kind: table
units: 40
unit: {name: person, id: who}
columns: {who: {type: id}, a: {type: boolean, missing: false}, b: {type: boolean, missing: false}}
"""
SMALL = {"width": 4, "critic_width": 4, "noise_width": 2, "generator_batch": 4, "checkpoints": 2}
SCHEMA = Schema.parse(TEXT)


def planned(**settings):
    return db.plan(SCHEMA, method="dpgan", epsilon=4.0, delta=1e-3, **{"accounting": "individual", **SMALL, **settings})


def people(share: float) -> pd.DataFrame:
    return pd.DataFrame({"who": range(40), "a": np.arange(40) < 40 * share, "b": np.arange(40) % 2 == 0})


def fitted(folder, plan, *, share=0.5, resume=False):
    if not resume:
        folder.mkdir()
        Ledger.create(folder / "ledger", dataset="people", epsilon=100.0, delta=0.5)
    more = {"resume": True} if resume else {}
    return db.fit(people(share), plan, ledger=folder / "ledger", out=folder / "run", seed=1, progress=False, **more)


# -- the plan ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "steps", "bound"),
    [({}, 1800, 600), ({"steps": 90}, 90, 30), ({"filter_steps": 20}, 60, 20), ({"steps": 9, "filter_steps": 9}, 9, 9)],
    ids=str,
)
def test_steps_and_bound_follow_from_public_figures(given, steps, bound):
    own = METHOD.resolve_defaults(SCHEMA, DpganSettings(accounting="individual", **given))
    assert (own.steps, own.filter_steps, own.lot_size) == (steps, bound, 40)
    assert METHOD.resolve_defaults(SCHEMA, own) == own
    (access,) = METHOD.accesses(SCHEMA, own, 2.0)
    assert (access.event.sample_rate, access.event.steps, access.event.filter_steps) == (1.0, steps, bound)


def test_the_plan_is_the_worst_case_and_says_so_in_one_sentence():
    plan = planned(steps=60)
    plain = db.plan(SCHEMA, method="dpgan", epsilon=4.0, delta=1e-3, lot_size=40, steps=20, **SMALL)
    assert plan.touches[0].event.noise_multiplier == plain.touches[0].event.noise_multiplier
    assert plan.guarantee.epsilon == plain.guarantee.epsilon
    assert plan.guarantee.noise_multiplier is None  # σ, q and T alone would price it too high
    said = [line for line in plan.explain().splitlines() if line.startswith("Individual accounting")]
    assert said == [
        "Individual accounting: each person is used until what it has cost reaches that of 20 steps at full length C, "
        "and counts as zero in the rest of the 60 steps; how many are left is published nowhere"
    ]
    assert "Individual" not in plain.explain()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"lot_size": 20}, "lot_size"),
        ({"steps": 5, "filter_steps": 6}, "filter_steps"),
        ({"accounting": "worst-case", "filter_steps": 6}, "settings"),
        ({"accounting": "personal"}, "accounting"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given, field):
    with pytest.raises(SettingError) as caught:
        planned(**given)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_plans_without_it_are_what_they_were():
    own = METHOD.resolve_defaults(SCHEMA, DpganSettings())
    assert not {"accounting", "filter_steps"} & own.to_json().keys()
    assert DpganSettings.of_plan(own.to_json()) == own


def test_the_bayesian_accountant_measures_short_distances_itself():
    text = (
        "doublure: 1\nkind: images\nunits: 400\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 1], roles: [condition]}"
    )
    for schema in (SCHEMA, Schema.parse(text)):
        with pytest.raises(SettingError, match="accounting"):
            db.plan(schema, method="bayesgan", epsilon=2.0, delta=1e-6, accounting="individual")


def test_owners_are_not_asked():
    """What each unit has cost is kept in one place."""
    own = METHOD.resolve_defaults(SCHEMA, DpganSettings(accounting="individual"))
    assert not METHOD.asks_owners(SCHEMA, own)
    assert METHOD.asks_owners(SCHEMA, METHOD.resolve_defaults(SCHEMA, DpganSettings()))


# -- a fit -------------------------------------------------------------------------------------------------------------


def test_nobody_is_told_who_is_left(tmp_path):
    """Two data sets whose filters end otherwise: what is public of both runs has the same lines, names and sizes."""
    plan, public = planned(steps=12, max_grad_norm=0.5), []
    for share in (0.0, 0.5):
        folder = tmp_path / str(share)
        db.release(fitted(folder, plan, share=share), folder / "bundle", n=10, ledger=folder / "ledger", progress=False)
        run = folder / "run"
        lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        assert not list(run.glob("internal/work-*"))  # what was spent is gone with the last step
        assert b"spen" not in (run / "internal" / "checkpoint.safetensors").read_bytes()
        public.append(
            (
                (run / "executed.json").read_text(),
                [(line["step"], sorted(line)) for line in lines],
                sorted(path.name for path in run.iterdir()),
                json.loads((folder / "bundle" / "card.json").read_text())["guarantee"],
            )
        )
    assert public[0] == public[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("point", "number"), [("asked", 5), ("paid", 6), ("kept", 7)])
def test_a_killed_fit_goes_on_with_what_was_spent(tmp_path, monkeypatch, point, number):
    """It never knows of less than was drawn, and every unit's total holds over both sessions."""
    plan, charged = planned(steps=12), UnitFilters.charge
    added = tmp_path / "added"

    def noted(self, lengths, step):
        charged(self, lengths, step)
        with added.open("a") as file:
            file.write(json.dumps([step, (lengths**2).tolist()]) + "\n")

    monkeypatch.setattr(UnitFilters, "charge", noted)
    assert killed(lambda: fitted(tmp_path / "fit", plan), point, number)
    (work,) = (tmp_path / "fit" / "run" / "internal").glob("work-*")
    assert work.stat().st_mode & 0o777 == 0o600
    fitted(tmp_path / "fit", plan, resume=True)
    rows = [json.loads(line) for line in added.read_text().splitlines()]
    assert {step for step, _ in rows} == set(range(12))
    total = np.sum([lengths for _, lengths in rows], axis=0)
    assert (total <= 4).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_fit_that_lost_what_was_spent_is_refused(tmp_path):
    plan = planned(steps=12)
    assert killed(lambda: fitted(tmp_path / "fit", plan), "kept", 7)
    for work in (tmp_path / "fit" / "run" / "internal").glob("work-*"):
        work.unlink()
    with pytest.raises(RunFolderError, match="what units have spent"):
        fitted(tmp_path / "fit", plan, resume=True)
