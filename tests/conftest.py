"""What every test runs under, and one small world that several test modules share: a table, its schema, its run."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread a worker, so that workers do not fight for the processors

import gc
import importlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import named_noise
import numpy as np
import pandas as pd
import postgres as postgres_server
import pytest
import quick_estimates
import quick_figures
import rehearsals
import remembered
import tiers

import doublure as db
from doublure.errors import DoublureError

DECLARED = """
doublure: 1
kind: table
unit: {id: row}
units: 300
columns:
  row: {type: id}
  age: {type: integer, bounds: [17, 90], missing: false}
  hours: {type: real, bounds: [0, 99.9], precision: 1, missing: true}
  height: {type: real, bounds: [1, 2.5], missing: false}
  gain: {type: integer, bounds: [0, 9999], zero_inflated: true, missing: false}
  job: {type: category, values: [cook, nurse, "=cmd"], other: Other, missing: ["?"]}
  code: {type: category, values: ["01", "02"], missing: false}
  member: {type: boolean, missing: false}
  day: {type: date, bounds: [2020-01-01, 2023-12-31], missing: false}
  sex: {type: category, values: [Female, Male], missing: false, roles: [condition], shares: {Female: 0.3, Male: 0.7}}
  income: {type: category, values: [low, high], missing: false, roles: [target, condition],
           shares: {low: 0.8, high: 0.2}}
"""
BOUGHT = (
    DECLARED.replace("bounds: [0, 99.9]", "bounds: {learn: 0.05}")
    .replace("shares: {low: 0.8, high: 0.2}", "shares: {learn: 0.05}")
    .replace('values: [cook, nurse, "=cmd"]', "values: {learn: 0.1}")
)
TINY: dict[str, Any] = {
    "steps": 6, "lot_size": 32, "width": 8, "critic_width": 8, "noise_width": 4, "generator_batch": 32,
    "checkpoints": 3,
}  # fmt: skip
EPSILON, DELTA = 2.0, 1e-4


@dataclass(frozen=True)
class Small:
    """The small world. ``run`` is a finished run with its ledger beside it; it is only read, or copied."""

    run: Path
    ledger: Path
    declared: db.Schema
    bought: db.Schema
    plan: db.Plan
    tiny = TINY
    epsilon, delta = EPSILON, DELTA
    declared_text, bought_text = DECLARED, BOUGHT

    @staticmethod
    def frame(rows: int = 300) -> pd.DataFrame:
        """Return private records."""
        draw = np.random.default_rng(3)
        hours = np.round(draw.random(rows) * 80, 1)
        return pd.DataFrame(
            {
                "row": np.arange(rows),
                "age": draw.integers(17, 91, rows),
                "hours": np.where(draw.random(rows) < 0.1, np.nan, hours),
                "height": 1.5 + draw.random(rows) / 2,
                "gain": np.where(draw.random(rows) < 0.8, 0, draw.integers(1, 9999, rows)),
                "job": draw.choice(["cook", "nurse", "=cmd", "clown", "?"], rows),
                "code": draw.choice(["01", "02"], rows),
                "member": draw.random(rows) < 0.5,
                "day": (np.datetime64("2020-01-01") + draw.integers(0, 1400, rows).astype("m8[D]")).astype(str),
                "sex": draw.choice(["Female", "Male"], rows),
                "income": draw.choice(["low", "high"], rows, p=[0.8, 0.2]),
            }
        )

    @classmethod
    def csv(cls, folder: Path, rows: int = 300) -> Path:
        """Write private records."""
        path = folder / "people.csv"
        cls.frame(rows).to_csv(path, index=False)
        return path

    def copies(self, folder: Path) -> tuple[Path, Path]:
        """Return copies of the run and of its ledger, to be changed."""
        shutil.copytree(self.run, folder / "run")
        shutil.copy(self.ledger, folder / "people.ledger")
        run_json = folder / "run" / "run.json"
        facts = json.loads(run_json.read_text())
        facts["ledger"]["path"] = str(folder / "people.ledger")
        run_json.write_text(json.dumps(facts))
        return folder / "run", folder / "people.ledger"

    @staticmethod
    def book(folder: Path, epsilon: float = 10.0, delta: float = 1e-3) -> db.Ledger:
        """Return a new ledger."""
        return db.Ledger.create(folder / "people.ledger", dataset="people", epsilon=epsilon, delta=delta)


class Letters:
    """Odd digits of scikit-learn as public data, even ones as private; a public generator of each objective, tiny."""

    PUBLIC = "doublure: 1\nkind: images\nimages: {shape: [8, 8, 1]}\n"
    PRIVATE = "doublure: 1\nkind: images\nunits: 900\nimages: {shape: [8, 8, 1]}\nlabel: {values: [0, 2, 4, 6, 8]}\n"
    PROVENANCE: ClassVar[dict[str, Any]] = {
        "data": "odd digits of scikit-learn", "people": "43 people who wrote digits for UCI in 1998",
        "licence": "CC BY 4.0",
    }  # fmt: skip
    NETWORKS: ClassVar[dict[str, Any]] = {
        "noise_width": 6, "channels": [12, 8], "encoder_channels": [8, 12], "encoder_features": 24,
        "critic_channels": [8, 12], "features": 12,
    }  # fmt: skip

    def __init__(self, folder: Path) -> None:
        from sklearn.datasets import load_digits

        bunch = load_digits()
        pixels, odd = (bunch.images * 255 / 16).round().astype(np.uint8)[..., None], bunch.target % 2 == 1
        self.public = {"images": pixels[odd]}
        self.private = {"images": pixels[~odd], "labels": bunch.target[~odd]}
        self.folder = folder / "public"
        self._plans: dict[str, db.Plan] = {}
        self.facts = self.made(self.folder, objective="autoencoder", steps=150, autoencoder_lr=4e-3)

    @staticmethod
    def refusal(kind: type[DoublureError], act: Callable[[], object]) -> DoublureError:
        """Return the error that an act is refused with: one line, with a remedy."""
        with pytest.raises(kind) as caught:
            act()
        assert "\n" not in str(caught.value)
        assert caught.value.remedy
        return caught.value

    def made(self, out: Path, **settings: Any) -> Any:
        """Make a public generator."""
        from doublure import public

        own = self.NETWORKS | {"steps": 20, "proposer_steps": 5} | settings
        return public.fit(self.public, db.Schema.parse(self.PUBLIC), provenance=self.PROVENANCE, out=out, seed=1, **own)

    def plan(self, text: str | None = None, **settings: Any) -> db.Plan:
        """Plan a private run through it; the same plan is calibrated once."""
        asked = repr((text, sorted(settings.items(), key=repr)))
        if asked not in self._plans:
            self._plans[asked] = self._planned(text, **settings)
        return self._plans[asked]

    def _planned(self, text: str | None, **settings: Any) -> db.Plan:
        own = {"public": str(self.folder), "steps": 6, "lot_size": 64, "width": 8, "critic_width": 8,
               "generator_batch": 16, "checkpoints": 3, "inversion_steps": 2, "teacher": "critic",
               "labeller_share": 0,
               "accountant": "rdp", "epsilon": 5.0, "delta": 1e-5}  # fmt: skip
        return db.plan(db.Schema.parse(text or self.PRIVATE), method="latentgan", **(own | settings))


def pytest_configure() -> None:
    """Let files lie in memory where that has room for them; what a test that passed has written is removed."""
    memory, room = "/dev/shm", 2 << 30  # bytes
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > room:
        os.environ["TMPDIR"] = tempfile.tempdir = memory


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the long files out of the quick tier, unless they are named."""
    return True if tiers.QUICK and tiers.is_long(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[Any]:
    """Let every other worker import files from the last on: the half that one has rewritten the next one finds so."""
    report = yield
    if isinstance(collector, pytest.Dir) and int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 2:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the tier does, and let the longest files begin."""
    kept = items if tiers.ALL else [item for item in items if not item.get_closest_marker("exhaustive")]
    kept = list(tiers.first_cases(kept)) if tiers.QUICK else kept
    chosen = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = tiers.longest_first(kept, tiers.kept_seconds())


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Keep how long each file took, where that is asked for."""
    if os.environ.get("DOUBLURE_TEST_SECONDS"):
        tiers.keep_seconds(
            each for some in terminalreporter.stats.values() for each in some if hasattr(each, "duration")
        )


def pytest_collection_finish() -> None:
    """Leave what was collected out of every later search for garbage: it stays to the end. Search seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Do not wait for the disk: no test cuts the power, and those of what is synced, and when, watch the call.

    Let noise follow from the names of tests: none passes or fails by chance.
    Where many files run, prices are remembered from the first of them on.
    """
    os.fsync = _unwaited
    named_noise.install()
    quick_estimates.install()
    if hasattr(session.config, "workerinput"):
        _tell_ends(session.config)
        importlib.import_module("dp_accounting.pld")
        importlib.import_module("dp_accounting.rdp")


def _tell_ends(config: pytest.Config) -> None:
    """Let a worker tell of each test how it ended, and neither of its begin nor of a setup that passed.

    Whoever adds up seconds, or writes reports for machines, is told all.
    """
    (worker,) = (each for each in config.pluginmanager.get_plugins() if type(each).__name__ == "WorkerInteractor")
    tell = worker.sendevent

    def told(name: str, **facts: Any) -> None:
        report = facts.get("data", {})
        passed = name == "testreport" and report["outcome"] == "passed" and report["when"] != "call"
        if not passed and name not in ("logstart", "logfinish"):
            tell(name, **facts)

    if config.option.durations is None and not config.option.xmlpath and not os.environ.get("DOUBLURE_TEST_SECONDS"):
        worker.sendevent = told


def _unwaited(fd: int) -> None:
    os.fstat(fd)  # one that is closed is refused as ever


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    remembered.install()
    quick_figures.choose(item.path)
    quick_estimates.choose(item.path)
    rehearsals.choose(item.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    with named_noise.of(item.nodeid):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    with named_noise.of(f"{fixturedef.baseid}::{fixturedef.argname} {getattr(request, 'param_index', 0)}"):
        return (yield)


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Letters:
    import torch

    torch.set_num_threads(1)
    return Letters(tmp_path_factory.mktemp("letters"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    folder = tmp_path_factory.mktemp("small")
    declared, bought = db.Schema.parse(DECLARED), db.Schema.parse(BOUGHT)
    plan = db.plan(declared, method="dpgan", epsilon=EPSILON, delta=DELTA, accountant="rdp", **TINY)  # rdp is quick
    ledger = Small.book(folder)
    db.fit(Small.frame(), plan, ledger=ledger, out=folder / "run", seed=1)
    return Small(run=folder / "run", ledger=ledger.path, declared=declared, bought=bought, plan=plan)


@pytest.fixture(scope="session")
def postgres() -> Iterator[postgres_server.Server]:
    """A PostgreSQL server of this process; its password is in no URL, and in ``PGPASSWORD`` where a test puts it."""
    yield from postgres_server.session()
