"""Plans, runs, bundles, generators and ledgers that an earlier doublure made, and the program that makes them.

``python tests/support/artefacts.py`` writes those of today's version to ``tests/vectors/artefacts-VERSION.tar.xz``, one
archive, since pages are much alike; it replaces none that is there: what a version wrote, later ones have to read.
"""

from __future__ import annotations

import json
import os
import sys
import tarfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import pytest

import doublure as db
from doublure._version import __version__
from golden import cases, recording

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
_NAMED = "artefacts-{}.tar.xz"
_SMALL: Mapping[str, Mapping[str, Any]] = {
    "people-statistics": {"components": 2, "fit_steps": 20, "starts": 1},
    "people-dpgan": {},
    "rules-statistics": {"components": 2, "fit_steps": 20, "starts": 1},
    "related-statistics": {"components": 2, "fit_steps": 20, "starts": 1},
    "days-chains": {},
    "days-copula": {},
    "meters-dpgan": {},
    "digits-statistics": {"hidden": 8, "channels": [8, 4], "latent": 4},
    "digits-guided": {"hidden": 8, "channels": [8, 4], "latent": 4},
    "digits-bayesgan": {},
    "digits-noisecritic": {},
    "digits-latentgan-mixture": {},
}
"""Cases, and what is smaller in them than in a golden fit."""
PUBLISHED = ("people-statistics", "meters-dpgan", "digits-bayesgan")
"""Of which the generator is published, too."""
CUT_OFF = "cut-off"
"""A run of ``dpgan`` that ended after half of its steps."""
PLANS = "plans"
"""The plan of each golden fit."""
_CUT_OFF = """
doublure: 1
kind: table
units: 300
columns:
  age: {type: integer, bounds: [17, 90], missing: false}
  job: {type: category, values: [cook, nurse], other: Other, missing: true}
  day: {type: date, bounds: [2020-01-01, 2023-12-31], missing: false}
"""


def archives() -> list[Path]:
    """Return the archives that are kept, one a version."""
    return sorted(VECTORS.glob(_NAMED.format("*")))


def unpack(archive: Path, folder: Path) -> None:
    """Write an archive's files, a folder a case; each run knows where its ledger is now."""
    with tarfile.open(archive) as held:
        held.extractall(folder, filter="data")
    for run in folder.glob("*/run/run.json"):
        facts = json.loads(run.read_text())
        facts["ledger"]["path"] = str(run.parents[1] / "ledger")
        run.write_text(json.dumps(facts))


def few() -> pd.DataFrame:
    """Return the records of the run that was cut off."""
    draw = np.random.default_rng(5)
    days = np.datetime64("2020-01-01") + draw.integers(0, 1400, 300) * np.timedelta64(1, "D")
    job = draw.choice(["cook", "nurse", "clerk", ""], 300)
    return pd.DataFrame({"age": draw.integers(17, 91, 300), "job": job, "day": days.astype(str)})


def make(path: Path) -> None:
    """Write today's archive."""
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*_SMALL, CUT_OFF, PLANS):
            work = Path(folder) / name
            work.mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(work)
                _of_its_own.get(name, _case)(name, work)
        with tarfile.open(path, "x:xz", preset=9) as archive:
            archive.add(folder, ".", filter=_anonymous)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def _case(name: str, work: Path) -> None:
    case = cases.CASES[name]
    settings = {**case.settings, **_SMALL[name]}
    if case.public:
        settings["public"] = recording.public_generator("public")
    ledger = db.Ledger.create(work / "ledger", dataset=name, epsilon=1e4, delta=0.5)
    plan = db.plan(db.Schema.parse(case.schema), method=case.method, **settings)
    syn = db.fit(case.data(1), plan, ledger=ledger, out=work / "run", seed=1)
    forms = None if name.startswith(("digits", "related")) else ("csv",)
    db.release(syn, work / "bundle", n=10, seed=3, ledger=ledger, formats=forms)
    if name in PUBLISHED:
        from doublure.releasing.generator import publish

        publish(syn, work / "generator", ledger=ledger)
    for file in (work / "run" / "internal").iterdir():
        file.unlink()  # of a finished run nothing reads it
    (work / "run" / "tables.safetensors").unlink(missing_ok=True)  # those of a release are in the bundle's archive


def _cut_off(name: str, work: Path) -> None:
    from doublure.private.noise import OsKeyedNoise

    ledger = db.Ledger.create(work / "ledger", dataset="few", epsilon=1e4, delta=0.5)
    settings = cases.BUDGET | cases.NETWORKS
    plan = db.plan(db.Schema.parse(_CUT_OFF), method="dpgan", **settings)
    drawn, normal = [], OsKeyedNoise.normal

    def ends(source: OsKeyedNoise, size: int, std: float) -> Any:
        drawn.append(size)
        if len(drawn) > settings["steps"] // 2:
            raise KeyboardInterrupt
        return normal(source, size, std)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("doublure.run.fitting.rehearse", lambda *_, **__: None)
        patch.setattr(OsKeyedNoise, "normal", ends)
        try:
            db.fit(few(), plan, ledger=ledger, out=work / "run", seed=1)
        except (KeyboardInterrupt, db.errors.Interrupted):
            return
    raise RuntimeError("the run came to its end")


def _plans(name: str, work: Path) -> None:
    for fit, case in cases.CASES.items():
        if not case.public:
            plan = db.plan(db.Schema.parse(case.schema), method=case.method, **case.settings)
            plan.save(work / f"{fit}.json")


def _anonymous(file: tarfile.TarInfo) -> tarfile.TarInfo:
    file.uid = file.gid = 0
    file.uname = file.gname = ""
    file.mtime = 0
    return file


_of_its_own: Mapping[str, Callable[[str, Path], None]] = {CUT_OFF: _cut_off, PLANS: _plans}

if __name__ == "__main__":
    cases.register()
    make(VECTORS / _NAMED.format(sys.argv[1] if len(sys.argv) > 1 else __version__))
