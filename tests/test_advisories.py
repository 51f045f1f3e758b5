"""Runs and bundles of doublure 0.1.0 whose ε is wrong: whoever loads, resumes, releases or verifies one is told."""

from __future__ import annotations

import json
import shutil

import pytest

import doublure as db
from doublure.advisories import REMEDY, known_fault
from doublure.errors import GateFailed, PrivacyWarning, RunFolderError
from doublure.releasing.bundle import verify

TABLE = """
doublure: 1
kind: table
units: {learn: 1.0, magnitude: 90}
columns:
  a: {type: category, values: [x, y], missing: false}
  b: {type: boolean, missing: false}
"""
TINY = {"components": 2, "fit_steps": 2, "critic_share": 0.4, "critic_steps": 3, "critic_lot": 30, "critic_width": 4}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Return a run whose critic was trained on bought units, its ledger, and its bundle, as if 0.1.0 had made them."""
    import pandas as pd

    folder = tmp_path_factory.mktemp("old")
    plan = db.plan(db.Schema.parse(TABLE), method="guided", epsilon=20.0, delta=1e-4, accountant="rdp", **TINY)
    ledger = db.Ledger.create(folder / "l", dataset="d", epsilon=99.0, delta=0.1)
    frame = pd.DataFrame({"a": ["x", "y"] * 45, "b": [True, False] * 45})
    syn = db.fit(frame, plan, ledger=ledger, out=folder / "run", seed=1)
    db.release(syn, folder / "bundle", n=5)
    for path in (folder / "run" / "run.json", folder / "bundle" / "card.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"doublure_version": "0.1.0"}))
    return folder


def test_loading_one_says_so(old):
    with pytest.warns(PrivacyWarning, match=r"its ε is wrong.*; withdraw") as told:
        syn = db.load(old / "run")
    assert len(told) == 1
    assert len(syn.sample(3)) == 3


def test_on_the_command_line_too(old, tmp_path, capfd, monkeypatch):
    from doublure.cli.main import run as run_verb

    monkeypatch.setattr("sys.argv", ["doublure", "sample", str(old / "run"), "-n", "3", "-o", str(tmp_path / "a.csv")])
    monkeypatch.setattr("warnings.filters", [("default", None, PrivacyWarning, None, 0)])
    with pytest.raises(SystemExit) as ended:
        run_verb()
    told = capfd.readouterr().err
    assert ended.value.code == 0
    assert f"doublure: warning: {old / 'run'}: its ε is wrong" in told
    assert ".py" not in told


def test_none_is_released(old, tmp_path):
    with pytest.warns(PrivacyWarning):
        syn = db.load(old / "run")
    with pytest.raises(RunFolderError, match="its ε is wrong") as refused:
        db.release(syn, tmp_path / "bundle", n=5)
    assert refused.value.remedy == REMEDY
    assert not (tmp_path / "bundle").exists()


def test_none_is_verified(old):
    with pytest.raises(GateFailed, match="its ε is wrong") as refused:
        verify(old / "bundle")
    assert refused.value.remedy == REMEDY


def test_none_goes_on(old, tmp_path):
    shutil.copytree(old / "run", tmp_path / "run")
    run = tmp_path / "run" / "run.json"
    run.write_text(json.dumps(json.loads(run.read_text()) | {"status": "interrupted"}))
    shutil.copy(old / "l", tmp_path / "l")
    plan = db.Plan.load(tmp_path / "run" / "plan.json")
    lines = (tmp_path / "l").read_text().splitlines(keepends=True)
    cut = next(number for number, line in enumerate(lines) if '"close"' in line)
    (tmp_path / "l").write_text("".join(lines[:cut]))
    (tmp_path / "d.csv").write_text("a,b\nx,true\n")
    with pytest.raises(RunFolderError, match="its ε is wrong"):
        db.fit(tmp_path / "d.csv", plan, ledger=tmp_path / "l", out=tmp_path / "run", resume=True)


LATENT = [{"purpose": "count the units"}, {"purpose": "train the critic of latents"}]


@pytest.mark.parametrize(
    ("version", "made", "wrong"),
    [
        ("0.1.0", {"method": "latentgan", "touches": LATENT}, True),
        ("0.2.0", {"method": "latentgan", "touches": LATENT}, False),
        ("0.1.0", {"method": "latentgan", "touches": LATENT[1:]}, False),
        ("0.1.0", {"method": "dpgan", "touches": [LATENT[0], {"purpose": "train the critic"}]}, False),
        ("0.1.0", {"method": "guided", "touches": [LATENT[0], {"purpose": "count each column's values"}]}, False),
        ("0.1.0", {"method": "guided", "touches": [LATENT[0], {"purpose": "teach the critic"}]}, True),
        ("0.1.0", {"method": ["guided"], "touches": 3}, False),
        ("0.1.0", {"method": "guided", "touches": [3, {"purpose": []}]}, False),
        (None, [], False),
    ],
)
def test_only_what_a_fault_concerns_is_called_wrong(version, made, wrong):
    assert (known_fault(version, made) is not None) == wrong
