"""Design rule 20: what was bought is kept from the moment it was drawn; no failure after that costs ε again.

A defect is planted after each release in turn, and in everything that follows the last one. Every session but the last
one fails; each goes on where the one before had come to. In the end each access was asked once, and drawn once.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from killed import ended, started

import doublure as db
from doublure.cli.main import app
from doublure.cli.terminal import run_guarded
from doublure.errors import InputError, Interrupted, LedgerError, LostRun, RunFolderError, advice_of
from doublure.private import mechanism
from doublure.private.executed import as_priced, steps_of
from doublure.private.partitions import Partitions
from doublure.private.queries import facts
from doublure.private.queries.counts import Counts
from doublure.run import fitting, folder, running, weights
from doublure.run.answers import AnswersInFolder
from doublure.run.folder import RunFolder
from doublure.support import files

UNITS = 120
TABLE = f"""
doublure: 1
kind: table
units: {{learn: 0.5, magnitude: {UNITS}}}
columns:
  age: {{type: integer, bounds: {{learn: 0.5}}, missing: {{learn: 0.5}}}}
  job: {{type: category, values: {{learn: 0.5}}, other: any, missing: false}}
  out: {{type: category, values: [a, b], missing: false, roles: [target]}}
"""
IMAGES = f"""
doublure: 1
kind: images
units: {UNITS}
images: {{shape: [8, 8, 1]}}
label: {{values: [a, b, c], shares: {{learn: 0.5}}}}
"""
SERIES = """
doublure: 1
kind: series
unit: {name: meter, id: house, max_records: 4}
units: 12
series: {time: when, length: 6, step: 4h}
channels:
  litres: {type: real, bounds: {learn: 0.5}, precision: 1, missing: false}
  valve: {type: integer, bounds: [0, 3], missing: true}
attributes:
  place: {type: category, values: [hill, coast], missing: false}
"""
RELATED = f"""
doublure: 1
kind: relational
unit: {{name: patient}}
units: {UNITS}
tables:
  patients:
    key: nr
    columns: {{nr: {{type: id}}, group: {{type: category, values: [a, b], missing: false}}}}
  stays:
    key: stay
    parent: patients
    foreign_key: nr
    max_children: 3
    order: day
    columns:
      stay: {{type: id}}
      nr: {{type: id}}
      day: {{type: integer, bounds: [0, 30], missing: false}}
      ward: {{type: category, values: [x, y, z], missing: false}}
"""
RNG = np.random.default_rng(5)
CRITIC = {"critic_steps": 3, "critic_share": 0.3, "fit_steps": 3}
LABELLER = {"labeller_share": 0.3, "labeller_steps": 3, "view_images": 100, "view_width": 6, "tries": 2}
NETWORK = {"model": "network", "features": 8, "channels": [4, 3], "hidden": 6, "latent": 4, "batch": 12}


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": RNG.integers(18, 90, UNITS),
            "job": RNG.choice(["cook", "nurse"], UNITS),
            "out": RNG.choice(["a", "b"], UNITS),
        }
    )


def pictures() -> dict[str, Any]:
    return {"images": RNG.integers(0, 256, (UNITS, 8, 8, 1), dtype=np.uint8), "labels": RNG.choice(list("abc"), UNITS)}


def meters() -> pd.DataFrame:
    moments = pd.date_range("2024-03-01", periods=24, freq="4h")
    frames = [
        pd.DataFrame(
            {
                "house": f"h{one}", "when": [moment.isoformat() for moment in moments],
                "litres": np.round(RNG.random(24) * 40, 1), "valve": RNG.integers(0, 4, 24),
                "place": ["hill", "coast"][one % 2],
            }
        )
        for one in range(12)
    ]  # fmt: skip
    return pd.concat(frames, ignore_index=True)


def patients() -> dict[str, pd.DataFrame]:
    of = np.repeat(np.arange(UNITS), RNG.integers(0, 4, UNITS))
    stays = {"stay": np.arange(len(of)), "nr": of, "day": RNG.integers(0, 31, len(of))}
    return {
        "patients": pd.DataFrame({"nr": np.arange(UNITS), "group": RNG.choice(["a", "b"], UNITS)}),
        "stays": pd.DataFrame(stays | {"ward": RNG.choice(list("xyz"), len(of))}),
    }


WORLDS = {
    "statistics, table": (TABLE, people, "statistics", {"fit_steps": 3, "components": 2}),
    "guided, table": (TABLE, people, "guided", {"components": 2, "critic_width": 6} | CRITIC),
    "statistics, images by a network": (IMAGES, pictures, "statistics", {"fit_steps": 3} | NETWORK),
    "statistics, images by Gaussians": (IMAGES, pictures, "statistics", {"model": "gaussian"}),
    "guided, images": (IMAGES, pictures, "guided", NETWORK | LABELLER | CRITIC),
    "statistics, series": (SERIES, meters, "statistics", {"bins": 16}),
    "statistics, series by chains": (SERIES, meters, "statistics", {"model": "chains", "fit_steps": 3}),
    "statistics, related": (RELATED, patients, "statistics", {"fit_steps": 3, "components": 2}),
}  # fmt: skip


ONCE = [
    (running, "encoder_for"), (running, "all_finite"), (RunFolder, "save_schema"), (RunFolder, "save"),
    (running.FitRun, "_claim"), (RunFolder, "save_generator"), (RunFolder, "save_guarantee"),
]  # fmt: skip
"""What is done between and after releases, which fails the first time."""


class Planted(RuntimeError):
    """A defect."""


@dataclass
class Watch:
    """What was asked, drawn and kept, over all sessions; fails where it is told to."""

    patch: pytest.MonkeyPatch
    asked: list[str] = field(default_factory=list)
    kept: list[tuple[int, int]] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    inside: bool = False

    def __post_init__(self) -> None:
        ask, room = Partitions.ask, AnswersInFolder.room

        def watched(places: Partitions[Any], query: Any, *, sample_rate: float) -> Any:
            if self.inside:  # the parts of a question
                return ask(places, query, sample_rate=sample_rate)
            self.inside = True
            try:
                found = ask(places, query, sample_rate=sample_rate)
                self.asked.append(type(query).__name__)
                return found
            finally:
                self.inside = False

        @contextlib.contextmanager
        def fails_after(answers: AnswersInFolder, place: tuple[int, int], size: int) -> Any:
            with room(answers, place, size) as put:
                yield put
            self.kept.append(place)
            raise Planted

        self.patch.setattr(Partitions, "ask", watched)
        self.patch.setattr(AnswersInFolder, "room", fails_after)
        for name in ("rehearse", "_refuse_forged"):  # of thirty fits of one plan each would take longer than the fit
            self.patch.setattr(fitting, name, lambda *given, **named: None)
        for owner, name in ONCE:
            self._fails_once(owner, name)

    def _fails_once(self, owner: object, name: str) -> None:
        usual = getattr(owner, name)

        def fails(*given: Any, **named: Any) -> Any:
            if name in self.failed:
                return usual(*given, **named)
            self.failed.add(name)
            raise Planted

        self.patch.setattr(owner, name, fails)


def hold_that_it_was_bought_once(watch: Watch, plan: db.Plan, book: db.Ledger, run: Path) -> None:
    assert book.spent.epsilon == plan.epsilon
    (close,) = [record.body for record in book.entries if record.kind == "close" and record.body["status"] == "done"]
    assert close["steps"] == plan.steps
    executed = db.load(run).executed
    assert as_priced(executed)
    assert all(entry["lost"] == 0 for entry in executed)
    assert sum(entry["drawn"] for entry in executed) == sum(map(steps_of, plan.answered))
    assert len(set(watch.kept)) == len(watch.kept)
    assert len(watch.asked) == sum(map(steps_of, plan.answered))
    assert not list(run.glob("internal/answer-*"))


@pytest.mark.parametrize("world", WORLDS)
def test_whatever_fails_after_a_release_costs_nothing_more(world, tmp_path, monkeypatch):
    text, private, method, settings = WORLDS[world]
    data = private()
    plan = db.plan(db.Schema.parse(text), method=method, epsilon=30.0, delta=1e-3, accountant="rdp", **settings)
    book = db.Ledger.create(tmp_path / "l", dataset="d", epsilon=30.0, delta=1e-3)
    run, watch = tmp_path / "run", Watch(monkeypatch)

    said = []
    for _ in range(80):
        drawn, resume = bool(watch.kept), run.exists()
        try:
            db.fit(data, plan, ledger=book, out=run, seed=1, resume=resume, progress=False)
        except Planted as error:
            said.append((bool(watch.kept), advice_of(error), book.entries[-1].body["status"]))
            assert drawn == resume  # nothing else is begun anew
            continue
        break
    resumable = f"what was bought is kept: go on with -o {run} --resume"
    ends = [(True, resumable, "aborted")]
    assert set(said) - {(False, None, "no-noise-drawn")} == set(ends)
    assert watch.failed >= {name for _, name in ONCE} - {"save", "save_schema"}
    hold_that_it_was_bought_once(watch, plan, book, run)


# -- one world ---------------------------------------------------------------------------------------------------------


@dataclass
class Counted:
    """A table that is counted, and the ledger that pays."""

    folder: Path
    plan: db.Plan
    book: db.Ledger
    csv: Path

    @property
    def run(self) -> Path:
        return self.folder / "run"

    def fit(self, plan: db.Plan | None = None, **more: Any) -> db.Synthesizer:
        given = {"out": self.run, "seed": 1, "progress": False, "resume": bool(self.run and self.run.exists())}
        return db.fit(self.csv, plan or self.plan, ledger=self.book, **given | more)

    def fails_after(self, patch: pytest.MonkeyPatch, place: tuple[int, int] | None = None) -> BaseException:
        """Fit until an answer is kept, the first or one of a place; return what ended it."""
        room = AnswersInFolder.room

        @contextlib.contextmanager
        def fails(answers: AnswersInFolder, own: tuple[int, int], size: int) -> Any:
            with room(answers, own, size) as put:
                yield put
            if place in (None, own):
                raise Planted

        with patch.context() as inner:
            inner.setattr(AnswersInFolder, "room", fails)
            with pytest.raises(Planted) as ended:
                self.fit()
        return ended.value

    def authorised(self) -> int:
        """Return how many releases of training the ledger knows of."""
        return max(record.body.get("through_step", 0) for record in self.book.entries)

    def hold(self) -> None:
        """It is finished, at the planned cost, and nothing was lost."""
        assert self.book.spent.epsilon == self.plan.epsilon
        assert self.authorised() == self.plan.steps
        assert len([record for record in self.book.entries if record.kind == "reserve"]) == 1
        executed = db.load(self.run).executed
        assert as_priced(executed)
        assert [entry["lost"] for entry in executed] == [0] * len(executed)


@pytest.fixture(scope="module")
def counting_plan() -> db.Plan:
    settings = {"fit_steps": 3, "components": 2}
    schema = db.Schema.parse(TABLE)
    return db.plan(schema, method="statistics", epsilon=30.0, delta=1e-3, accountant="rdp", **settings)


@pytest.fixture
def counted(tmp_path: Path, counting_plan: db.Plan) -> Counted:
    csv, book = tmp_path / "d.csv", db.Ledger.create(tmp_path / "l", dataset="d", epsilon=30.0, delta=1e-3)
    people().to_csv(csv, index=False)
    return Counted(tmp_path, counting_plan, book, csv)


PLACES = {"tables": (Counts, "answer"), "facts": (facts.Fact, "answer"), "draws": (mechanism.Mechanism, "_noised")}


def killed(counted: Counted, at: str, number: int, memory: str) -> None:
    """Fit in a process that is killed once so many have been counted, or drawn."""

    def fitted() -> None:
        owner, name = PLACES[at]
        usual, left = getattr(owner, name), iter(range(number))

        def dies(*given: Any, **named: Any) -> Any:
            if next(left, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
            return usual(*given, **named)

        setattr(owner, name, dies)
        counted.fit(memory=memory or None)

    assert ended(started(fitted)) == -signal.SIGKILL
    assert [record.kind for record in counted.book.entries].count("reserve") == 1


@pytest.mark.parametrize(
    ("at", "number", "memory", "paid"), [("facts", 2, "", 0), ("tables", 0, "2GB", 0), ("tables", 2, "", 2)]
)  # fmt: skip
def test_a_kill_while_records_are_counted_costs_nothing(counted, at, number, memory, paid):
    killed(counted, at, number, memory)
    assert counted.authorised() == paid
    counted.fit(memory=memory or None)
    counted.hold()


def test_a_kill_between_payment_and_keeping_costs_the_draw(counted):
    killed(counted, "draws", len(counted.plan.learned), "")
    assert counted.authorised() == 1
    for _ in range(2):
        with pytest.raises(LostRun, match="price covers one draw"):
            counted.fit()
    assert counted.authorised() == 1


def test_a_full_disk_says_so_before_anything_is_paid_for(counted, monkeypatch):
    def full(file: Any, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as inner:
        inner.setattr(files, "_fill", full)
        with pytest.raises(InputError, match="no space left"):
            counted.fit()
    assert counted.book.spent.epsilon == 0
    assert not counted.run.exists()
    counted.fails_after(monkeypatch)
    with monkeypatch.context() as inner:
        inner.setattr(files, "_fill", full)
        with pytest.raises(InputError, match="no space left") as error:
            counted.fit()
    assert "--resume" in advice_of(error.value)
    counted.fit()
    assert [entry["lost"] for entry in db.load(counted.run).executed] == [0] * len(counted.plan.touches)


@pytest.mark.parametrize("where", ["first", "last"])
def test_what_was_bought_without_a_run_folder_is_kept_too(counted, monkeypatch, where):
    temporary = counted.folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    place = (0, 0) if where == "first" else (len(counted.plan.touches) - 1, 0)
    with monkeypatch.context() as inner:
        inner.setattr(Counted, "run", None)
        error = counted.fails_after(inner, place)
    (left,) = temporary.iterdir()
    assert left.stat().st_mode & 0o777 == 0o700
    assert advice_of(error) == f"what was bought is kept: go on with -o {left / 'run'} --resume"
    assert not list(left.glob("run/internal/work-*"))
    db.fit(counted.csv, counted.plan, ledger=counted.book, out=left / "run", resume=True, progress=False)
    assert counted.book.spent.epsilon == counted.plan.epsilon
    assert len(db.load(left / "run").sample(3)) == 3


def test_without_a_run_folder_nothing_stays_of_what_came_to_nothing_or_to_its_end(counted, monkeypatch):
    temporary = counted.folder / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with monkeypatch.context() as inner:
        inner.setattr(fitting, "rehearse", lambda plan, *, device: None)
        inner.setattr(facts.Fact, "answer", lambda *given, **named: 1 / 0)
        with pytest.raises(ZeroDivisionError) as error:
            counted.fit(out=None, resume=False)
    assert advice_of(error.value) is None
    assert counted.book.spent.epsilon == 0
    assert len(counted.fit(out=None, resume=False).sample(3)) == 3
    assert not list(temporary.iterdir())


def test_another_version_goes_on_and_is_written_down(counted, monkeypatch):
    counted.fails_after(monkeypatch, (len(counted.plan.touches) - 1, 0))
    with monkeypatch.context() as inner:
        for module in (running, weights, folder):
            inner.setattr(module, "__version__", "99.0")
        inner.setattr(fitting, "_refuse_forged", lambda plan: 1 / 0)  # its accountant may find a lower price
        inner.setattr(Partitions, "ask", lambda *given, **named: 1 / 0)
        counted.fit(plan=replace(counted.plan, warnings=("in other words",), seconds_estimate=7.0))
    counted.hold()
    assert RunFolder.open(counted.run).run["resumed_by"] == ["99.0"]
    with monkeypatch.context() as inner:
        inner.setattr(folder, "known_fault", lambda version, made: "is wrong" if version == "99.0" else None)
        assert RunFolder.open(counted.run).fault == "is wrong"


def test_another_question_is_not_told_the_answer(counted, monkeypatch):
    counted.fails_after(monkeypatch, (len(counted.plan.touches) - 1, 0))
    with monkeypatch.context() as inner:
        inner.setattr(mechanism, "query_digest", lambda query: "another")
        with pytest.raises(RunFolderError, match="another question than was answered") as error:
            counted.fit()
    assert "--resume" in advice_of(error.value)
    counted.fit()
    counted.hold()


def test_other_records_are_not_mixed_with_what_was_kept(counted, monkeypatch):
    counted.fails_after(monkeypatch, (len(counted.plan.touches) - 1, 0))
    kept = counted.csv.read_text()
    people().to_csv(counted.csv, index=False)
    with pytest.raises(RunFolderError, match="other records"):
        counted.fit()
    counted.csv.write_text(kept)
    counted.fit()
    counted.hold()


def test_of_two_copies_one_goes_on(counted, monkeypatch):
    counted.fails_after(monkeypatch, (len(counted.plan.learned), 0))
    shutil.copytree(counted.run, counted.folder / "copy")
    counted.fails_after(monkeypatch, (len(counted.plan.learned) + 1, 0))
    before = {path.name for path in (counted.folder / "copy/internal").iterdir()}
    with pytest.raises(LedgerError, match="resumed elsewhere"):
        counted.fit(out=counted.folder / "copy", resume=True)
    assert {path.name for path in (counted.folder / "copy/internal").iterdir()} == before
    counted.fit()
    counted.hold()


def test_signals_wait_until_what_is_drawn_is_kept(counted, monkeypatch):
    noised, drawn = mechanism.Mechanism._noised, []

    def stopped(own: Any, answer: Any, access: Any) -> Any:
        drawn.append(access)
        if len(drawn) == 2:
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
        return noised(own, answer, access)

    with monkeypatch.context() as inner:
        inner.setattr(mechanism.Mechanism, "_noised", stopped)
        with pytest.raises(Interrupted, match="stopped"):
            counted.fit()
    assert AnswersInFolder(counted.run / "internal").places() == {(0, 0), (1, 0)}
    counted.fit()
    counted.hold()


@pytest.mark.parametrize(
    "error", [Planted(), MemoryError(), OSError(errno.ENOSPC, "full"), InputError("x", remedy="y")]
)
def test_the_command_line_says_how_to_go_on(counted, monkeypatch, capsys, error):
    counted.plan.save(counted.folder / "plan.json")
    given = {"--plan": counted.folder / "plan.json", "--ledger": counted.book.path, "-o": counted.run}
    words = ["fit", counted.csv, *(word for pair in given.items() for word in pair), "--json"]
    with monkeypatch.context() as inner:
        inner.setattr(fitting, "_refuse_forged", lambda plan: None)
        inner.setattr(RunFolder, "save_schema", lambda *given: (_ for _ in ()).throw(error))
        assert run_guarded(app, [str(word) for word in words]) in (1, 2)
    said = json.loads(capsys.readouterr().out)["error"]
    assert said["remedy"].endswith(f"what was bought is kept: go on with -o {counted.run} --resume")
