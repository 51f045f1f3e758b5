"""fit(): what it charges and when, what it leaves behind, and how it goes on after having been cut off."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from functools import partial

import pytest
import torch
from tiers import crossed

import doublure as db
from doublure.data.tables.opening import TableSource
from doublure.errors import (
    BudgetRefused,
    DataError,
    DoublureError,
    InputError,
    Interrupted,
    LedgerError,
    LostRun,
    RunFolderError,
    SettingError,
)
from doublure.ledger import Reservation, disk
from doublure.ledger.request import recorded_facts as facts_of
from doublure.methods.dpgan.method import Dpgan
from doublure.private import facts, whole_noise
from doublure.private.critic_steps import CriticSteps
from doublure.private.noise import OsKeyedNoise
from doublure.private.queries import facts as facts_asked
from doublure.private.queries.counts import Counts
from doublure.run import fitting, running
from doublure.run.folder import RunFolder
from doublure.support import progress, stopping


@pytest.fixture(scope="module")
def bought(small):
    return db.plan(
        small.bought, method="dpgan", epsilon=small.epsilon, delta=small.delta, accountant="rdp", **small.tiny
    )


@pytest.fixture(scope="module")
def gan(small):
    return db.plan(small.declared, method="gan", **small.tiny)


@pytest.fixture
def book(small, tmp_path):
    return small.book(tmp_path)


class Draws:
    """Counts noisy steps, and ends the run before one of them."""

    def __init__(self, monkeypatch, ledger=None):
        self.count, self.end, self.ledger = 0, None, ledger
        self.authorised = []
        normal = OsKeyedNoise.normal

        def counted(noise, size, std, **rest):
            if self.end is not None and self.count == self.end[0]:
                error, self.end = self.end[1], None
                raise error
            self.count += 1
            if self.ledger is not None:
                self.authorised.append(self.ledger.entries[-1].body.get("through_step"))
            return normal(noise, size, std, **rest)

        monkeypatch.setattr(OsKeyedNoise, "normal", counted)

    def before(self, step, error):
        self.end = (step - 1, error)


@pytest.mark.parametrize("field", ["plan", "ledger"])
def test_what_is_no_plan_or_ledger_is_refused_in_words(small, tmp_path, field):
    asked = {"plan": small.plan, "ledger": small.book(tmp_path)} | {field: None}
    with pytest.raises(SettingError) as caught:
        db.fit(small.frame(), asked["plan"], ledger=asked["ledger"])
    assert caught.value.field == field


def kinds(ledger):
    return [record.kind for record in ledger.entries]


def closed(ledger):
    return [record.body["status"] for record in ledger.entries if record.kind == "close"]


def status(run):
    return json.loads((run / "run.json").read_text())["status"]


# -- a run that comes to its end ---------------------------------------------------------------------------------------


def test_a_run_is_charged_marked_and_closed(small, bought, book, tmp_path):
    syn = db.fit(small.csv(tmp_path), bought, ledger=book, out=tmp_path / "run")
    assert kinds(book) == ["open", "reserve", *["noise"] * 3, *["advance"] * 6, "close"]  # a step at a time
    assert [record.body["what"] for record in book.entries[2:5]] == [access.purpose for access in bought.learned]
    assert [record.body["through_step"] for record in book.entries[5:11]] == [1, 2, 3, 4, 5, 6]
    assert closed(book) == ["done"]
    assert book.spent.epsilon == bought.epsilon
    assert syn.guarantee == bought.guarantee
    assert syn.schema.undeclared == ()
    assert set(syn.sample(200)["job"].dropna()) <= set(syn.schema.columns["job"].domain)
    again = db.load(tmp_path / "run")
    assert again.schema == syn.schema
    assert again.sample(5, seed=1).equals(syn.sample(5, seed=1))


def test_without_a_folder_it_is_kept_in_memory(small, book, tmp_path):
    syn = db.fit(small.frame(), small.plan, ledger=book.path)
    assert len(syn.sample(3)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["people.ledger"]
    with pytest.raises(SettingError, match="run folder"):
        db.fit(small.frame(), small.plan, ledger=book, resume=True)


def test_a_run_without_privacy_is_recorded_and_costs_nothing(small, gan, book, tmp_path):
    syn = db.fit(small.frame(), gan, ledger=book, out=tmp_path / "run")
    assert syn.guarantee.kind == "none"
    assert book.spent.epsilon == 0
    assert kinds(book) == ["open", "reserve", "advance", "advance", "advance", "close"]


def test_the_charge_and_the_leave_come_before_the_noise(small, book, monkeypatch):
    draws = Draws(monkeypatch, book)
    db.fit(small.frame(), small.plan, ledger=book)
    assert draws.count == 6
    assert all(authorised >= step for step, authorised in enumerate(draws.authorised, start=1))


def test_noise_is_new_with_the_same_seed(small, book):
    first = db.fit(small.frame(), small.plan, ledger=book, seed=1).generator.state_dict()
    second = db.fit(small.frame(), small.plan, ledger=book, seed=1, again=True).generator.state_dict()
    assert any(not torch.equal(first[name], second[name]) for name in first)


def test_progress_is_told(small, book):
    told = []

    class Listener(progress.SilentProgress):
        def stage(self, name, total=None):
            told.append((name, total))

        def at(self, done):
            told.append(done)

    db.fit(small.frame(), small.plan, ledger=book, progress=Listener())
    assert told[0] == ("check the data's header", None)
    assert ("train", 6) in told
    assert told[-1] == ("save", None)
    assert 6 in told


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_a_budget_that_is_spent_stops_the_fit_before_the_data_is_opened(small, tmp_path, monkeypatch):
    ledger = small.book(tmp_path, epsilon=small.epsilon / 2)
    monkeypatch.setattr(fitting, "open_data", lambda *_: pytest.fail("the data was opened"))
    with pytest.raises(BudgetRefused) as caught:
        db.fit("/nowhere/people.csv", small.plan, ledger=ledger, out=tmp_path / "run")
    assert caught.value.field == "epsilon"
    assert "left (ε=1" in str(caught.value)
    assert not (tmp_path / "run").exists()
    assert kinds(ledger) == ["open"]


def test_delta_is_a_budget_too(small, tmp_path):
    ledger = small.book(tmp_path, delta=small.delta / 2)
    with pytest.raises(BudgetRefused) as caught:
        db.fit(small.frame(), small.plan, ledger=ledger)
    assert caught.value.field == "delta"


def test_the_reservation_has_the_last_word(small, tmp_path, monkeypatch):
    """Another process may have spent the rest since the first look: then the folder goes too."""
    ledger = small.book(tmp_path, epsilon=small.epsilon / 2)
    monkeypatch.setattr(fitting, "refuse_unaffordable", lambda *_: None)
    monkeypatch.setattr(TableSource, "load", lambda *_: pytest.fail("the records were read"))
    with pytest.raises(BudgetRefused):
        db.fit(small.frame(), small.plan, ledger=ledger, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_plan_for_exactly_what_is_left_fits(small, tmp_path):
    ledger = small.book(tmp_path, epsilon=small.epsilon, delta=small.delta)
    db.fit(small.frame(), small.plan, ledger=ledger)
    assert ledger.remaining.epsilon == 0


BAD = {
    "a cell that is no number": lambda frame: frame.assign(age="old"),
    "a value that is not in the list": lambda frame: frame.assign(code="99"),
    "missing cells": lambda frame: frame.assign(age=None),
    "infinite cells": lambda frame: frame.assign(hours=float("inf")),
    "no records": lambda frame: frame[:0],
    "one record": lambda frame: frame[:1],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_records_cost_nothing_and_leave_nothing(small, book, tmp_path, name):
    with pytest.raises(DataError):
        db.fit(BAD[name](small.frame()), small.plan, ledger=book, out=tmp_path / "run", seed=1)
    assert book.spent.epsilon == 0
    assert closed(book) == ["no-noise-drawn"]
    assert not (tmp_path / "run").exists()
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")  # nothing stands in the way of the next try
    assert book.spent.epsilon == small.epsilon


def test_a_synthesizer_that_diverged_is_no_success(small, book, tmp_path, monkeypatch):
    train = Dpgan.train

    def diverged(self, job):
        generator = train(self, job)
        with torch.no_grad():
            next(generator.parameters()).view(-1)[0] = float("nan")
        return generator

    monkeypatch.setattr(Dpgan, "train", diverged)
    with pytest.raises(InputError, match="dpgan: diverged") as caught:
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert "stays spent" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert book.spent.epsilon == small.epsilon
    assert closed(book) == ["aborted"]


def test_a_bad_header_reserves_nothing(small, book, tmp_path):
    with pytest.raises(DataError, match="age: is not a column"):
        db.fit(small.frame().drop(columns="age"), small.plan, ledger=book, out=tmp_path / "run")
    with pytest.raises(DataError, match="no such file"):
        db.fit(tmp_path / "none.csv", small.plan, ledger=book, out=tmp_path / "run")
    assert kinds(book) == ["open"]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seed": -1}, "seed"),
        ({"device": "abacus"}, "device"),
        ({"device": "meta"}, "device"),
        ({"threads": 0}, "threads"),
    ],
)
def test_bad_arguments_reserve_nothing(small, book, changes, field):
    with pytest.raises(SettingError) as caught:
        db.fit(small.frame(), small.plan, ledger=book, **changes)
    assert caught.value.field == field
    assert kinds(book) == ["open"]


def test_a_folder_that_is_taken_reserves_nothing(small, book, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    with pytest.raises(RunFolderError, match="not empty"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert kinds(book) == ["open"]


def test_a_run_that_was_only_planned_is_named_as_such(small, book, tmp_path):
    RunFolder.create(tmp_path / "run", small.plan)
    with pytest.raises(RunFolderError, match="before it could begin; remove it"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    with pytest.raises(RunFolderError, match="before it could begin; remove it"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)


def test_a_full_disk_before_noise_costs_nothing(small, book, tmp_path, monkeypatch):
    def full(self, *_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "save_schema", full)
    with pytest.raises(OSError):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert book.spent.epsilon == 0
    assert not (tmp_path / "run").exists()


def test_a_ledger_that_cannot_be_written_ends_the_run_before_noise(small, book, tmp_path, monkeypatch):
    draws, fsync = Draws(monkeypatch), disk._fsync
    calls = []

    def fails(fd):
        calls.append(fd)
        if len(calls) > 1:
            raise OSError(5, "I/O error")
        fsync(fd)

    monkeypatch.setattr(disk, "_fsync", fails)
    with pytest.raises(LedgerError, match="nothing may be drawn"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert draws.count == 0
    assert (tmp_path / "run" / "run.json").is_file()  # the charge stands, so what could be resumed is kept
    assert db.Ledger.open(book.path).spent.epsilon == small.epsilon


def test_learned_bounds_are_always_bounds(small, bought, monkeypatch):
    """However few the records and however large the noise, an answer that was paid for can be used."""
    from doublure.data.tables.opening import open_table
    from doublure.noisy_counts import CandidateGrid
    from doublure.private.mechanism import Mechanism

    table = open_table(small.frame()).load(small.bought)
    question = next(question for question in small.bought.questions if question.fact == "bounds")
    access = next(access for access in bought.learned if access.path == question.path)
    for answer in [(-2e16, -1e16), (1e16, 2e16), (-1e16, 1e16), (0.0, 50.0), (-5.0, 0.0)]:
        monkeypatch.setattr(CandidateGrid, "bounds", lambda *_, answer=answer, **__: answer)
        mechanism = Mechanism([access], noise=OsKeyedNoise(), authorise=lambda access, step: None)
        answered = facts.learn(question, table, small.bought, mechanism=mechanism, access=access, learned={})
        learned = {question.path: answered}
        others = {"columns.job.values": ("cook",), "columns.income.shares": {"low": 0.5, "high": 0.5}}
        lower, upper = small.bought.resolve(learned | others).columns["hours"].bounds
        assert lower < upper


# -- cut off and resumed -----------------------------------------------------------------------------------------------


def begun(small, plan, book, folder, step, monkeypatch, error=None):
    """Fit, and fall over before this noisy step."""
    draws = Draws(monkeypatch)
    draws.before(step, error or MemoryError())
    with pytest.raises((MemoryError, DoublureError, Killed)):
        db.fit(small.frame(), plan, ledger=book, out=folder / "run", seed=1)
    return draws


class Killed(BaseException):
    """The process is gone."""


def test_a_resumed_run_goes_on_and_its_lost_steps_count(small, book, tmp_path, monkeypatch):
    draws = begun(small, small.plan, book, tmp_path, 4, monkeypatch)
    assert draws.count == 3  # steps 1 to 3 are kept, and step 4, which failed, was authorised
    assert status(tmp_path / "run") == "aborted"
    assert closed(book) == ["aborted"]
    syn = db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert draws.count == 3 + 2
    assert closed(book) == ["aborted", "done"]
    assert book.spent.epsilon == small.epsilon
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert {"resumed_at": 4, "from_state_of": 4} in log
    assert len(syn.sample(3)) == 3
    assert db.load(tmp_path / "run").run["seed"] == 1


def test_a_run_is_resumed_with_the_same_plan_of_another_machine(small, book, tmp_path, monkeypatch):
    """A plan made again estimates other seconds; what is finished carries the plan that it was begun with."""
    begun(small, small.plan, book, tmp_path, 3, monkeypatch)
    slower = replace(small.plan, seconds_estimate=small.plan.seconds_estimate + 60, memory_bytes=1)
    db.fit(small.frame(), slower, ledger=book, out=tmp_path / "run", resume=True)
    assert db.load(tmp_path / "run").plan == small.plan


def test_a_resumed_run_takes_up_what_was_learned(small, bought, book, tmp_path, monkeypatch):
    draws = begun(small, bought, book, tmp_path, 4, monkeypatch)
    before = (tmp_path / "run" / "schema.yaml").read_bytes()
    monkeypatch.setattr(facts, "learn", lambda *_, **__: pytest.fail("a fact was bought twice"))
    db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run", resume=True)
    assert (tmp_path / "run" / "schema.yaml").read_bytes() == before
    assert draws.count == 3 + 2


def test_before_the_first_state_the_networks_begin_again(small, book, tmp_path, monkeypatch):
    draws = begun(small, small.plan, book, tmp_path, 2, monkeypatch, Killed())
    assert not (tmp_path / "run" / "internal" / "checkpoint.safetensors").exists()
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert draws.count == 1 + 4  # step 1 drawn, step 2 authorised: both are spent


def test_a_run_with_no_steps_and_no_state_left_is_refused(small, book, tmp_path, monkeypatch):
    """An untrained generator is never passed off as a fitted one; what fails and is not killed keeps its state."""
    plan = db.plan(
        small.declared,
        method="dpgan",
        epsilon=2.0,
        delta=small.delta,
        accountant="rdp",
        **small.tiny | {"checkpoints": 1},
    )
    begun(small, plan, book, tmp_path, 6, monkeypatch, Killed())
    for kept in (tmp_path / "run" / "internal").glob("answer-*"):  # the steps that were drawn, from the first on
        kept.unlink()
    with pytest.raises(RunFolderError, match="no steps left"):
        db.fit(small.frame(), plan, ledger=book, out=tmp_path / "run", resume=True)
    assert book.spent.epsilon == plan.epsilon
    other = db.Ledger.create(tmp_path / "other", dataset="d", epsilon=plan.epsilon, delta=plan.delta)
    (tmp_path / "two").mkdir()
    begun(small, plan, other, tmp_path / "two", 6, monkeypatch)
    assert len(db.fit(small.frame(), plan, ledger=other, out=tmp_path / "two/run", resume=True).sample(3)) == 3


def test_a_fact_that_is_kept_is_not_bought_again(small, bought, book, tmp_path, monkeypatch):
    learn, told, asked = facts.learn, [], []

    def second_fails(question, *rest, **more):
        told.append(question.path)
        if len(told) == 2:
            raise MemoryError
        return learn(question, *rest, **more)

    monkeypatch.setattr(facts, "learn", second_fails)
    with pytest.raises(MemoryError):
        db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run")
    assert book.spent.epsilon == bought.epsilon
    answer = facts_asked.Fact.answer
    monkeypatch.setattr(
        facts_asked.Fact, "answer", lambda fact, *a, **k: (asked.append(fact.question.path), answer(fact, *a, **k))[1]
    )
    db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run", resume=True)
    paths = [access.path for access in bought.learned]
    assert told[2:] == paths
    assert asked == paths[1:]
    assert book.spent.epsilon == bought.epsilon


def test_a_fact_that_was_drawn_and_lost_is_not_drawn_again(small, bought, book, tmp_path, monkeypatch):
    with monkeypatch.context() as inner:
        inner.setattr("doublure.private.mechanism.Mechanism._noised", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run")
    assert book.spent.epsilon == bought.epsilon
    monkeypatch.setattr(facts, "learn", lambda *_, **__: pytest.fail("a fact was bought twice"))
    with pytest.raises(
        LostRun, match=r"price covers one draw; what was charged stays .*; fit into a new folder and pay again"
    ):
        db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run", resume=True)


def test_bad_data_on_resuming_keeps_the_run(small, book, tmp_path, monkeypatch):
    begun(small, small.plan, book, tmp_path, 4, monkeypatch)
    with pytest.raises(DataError):
        db.fit(small.frame().assign(age="old"), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert status(tmp_path / "run") == "done"


def test_of_two_copies_one_can_be_resumed(small, book, tmp_path, monkeypatch):
    begun(small, small.plan, book, tmp_path, 3, monkeypatch)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    with pytest.raises((LedgerError, RunFolderError)):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "copy", resume=True)


def test_of_two_copies_the_second_is_refused_while_the_first_is_unfinished(small, book, tmp_path, monkeypatch):
    draws = begun(small, small.plan, book, tmp_path, 3, monkeypatch)
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    draws.before(draws.count + 2, MemoryError())
    with pytest.raises(MemoryError):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    with pytest.raises(LedgerError, match="resumed elsewhere"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "copy", resume=True)
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert draws.count <= 6


def test_a_crash_while_resuming_loses_no_session(small, book, tmp_path, monkeypatch):
    """The ledger has the new session and the folder only the promise of it, again and again."""
    begun(small, small.plan, book, tmp_path, 3, monkeypatch)
    note = running.FitRun._note
    monkeypatch.setattr(running.FitRun, "_note", lambda *_, **__: (_ for _ in ()).throw(SystemExit))
    for _ in range(3):
        with pytest.raises(SystemExit):
            db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    resume = db.Ledger.resume
    monkeypatch.setattr(db.Ledger, "resume", lambda *_, **__: (_ for _ in ()).throw(SystemExit))
    with pytest.raises(SystemExit):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    monkeypatch.setattr(db.Ledger, "resume", resume)
    monkeypatch.setattr(running.FitRun, "_note", note)
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert status(tmp_path / "run") == "done"
    assert "next_sessions" not in json.loads((tmp_path / "run" / "run.json").read_text())["ledger"]


def test_a_run_that_ended_in_the_ledger_alone_is_found_finished(small, tmp_path):
    run, ledger = small.copies(tmp_path)
    facts_of_run = json.loads((run / "run.json").read_text())
    weights = facts_of_run.pop("generator_sha256")
    (run / "run.json").write_text(json.dumps(facts_of_run | {"status": "reserved"}))
    with pytest.raises(RunFolderError, match="is not finished"):
        db.load(run)
    syn = db.fit("/nowhere/people.csv", small.plan, ledger=ledger, out=run, resume=True)
    assert syn.run["generator_sha256"] == weights
    assert status(run) == "done"


@pytest.mark.parametrize("what", ["done", "another plan", "another ledger", "no folder", "damaged"])
def test_what_cannot_be_resumed_is_refused(small, book, tmp_path, monkeypatch, what):
    begun(small, small.plan, book, tmp_path, 3, monkeypatch)
    run, plan, ledger = tmp_path / "run", small.plan, book
    if what == "done":
        db.fit(small.frame(), plan, ledger=book, out=run, resume=True)
    elif what == "another plan":
        plan = db.plan(small.declared, method="dpgan", epsilon=1.0, delta=1e-4, accountant="rdp", **small.tiny)
    elif what == "another ledger":
        ledger = db.Ledger.create(tmp_path / "other", dataset="people", epsilon=10.0, delta=1e-3)
    elif what == "no folder":
        run = tmp_path / "none"
    else:
        (run / "internal" / "checkpoint.safetensors").write_bytes(b"x")
    before = book.spent.epsilon
    with pytest.raises(DoublureError) as caught:
        db.fit(small.frame(), plan, ledger=ledger, out=run, resume=True)
    assert caught.value.exit_code == 2
    assert caught.value.remedy
    assert book.spent.epsilon == before


def test_a_run_without_privacy_is_resumed_too(small, gan, book, tmp_path, monkeypatch):
    from doublure.training.critic_steps import PlainCriticTrainer

    taken, gradient = [], PlainCriticTrainer.gradient

    def counted(self, *rest):
        if len(taken) == 3:
            taken.append(None)
            raise MemoryError
        result = gradient(self, *rest)
        taken.append(self.taken)
        return result

    monkeypatch.setattr(PlainCriticTrainer, "gradient", counted)
    with pytest.raises(MemoryError):
        db.fit(small.frame(), gan, ledger=book, out=tmp_path / "run")
    assert status(tmp_path / "run") == "aborted"
    db.fit(small.frame(), gan, ledger=book, out=tmp_path / "run", resume=True)
    assert taken == [1, 2, 3, None, 5, 6]


# -- the same plan again -----------------------------------------------------------------------------------------------


def test_the_same_plan_is_paid_for_once(small, book, tmp_path):
    db.fit(small.frame(), small.plan, ledger=book, seed=1)
    entries = len(book.entries)
    with pytest.raises(BudgetRefused, match="was charged to people already: entry 2 of") as caught:
        db.fit(tmp_path / "never-opened.csv", small.plan, ledger=book, out=tmp_path / "run", seed=2)
    assert caught.value.field == "again"
    assert (len(book.entries), (tmp_path / "run").exists()) == (entries, False)
    db.fit(small.frame(), small.plan, ledger=book, again=True)
    assert book.spent.epsilon == 2 * small.plan.epsilon


def test_a_plan_read_from_its_file_is_the_same_and_one_of_other_settings_is_not(small, book, tmp_path):
    small.plan.save(tmp_path / "plan.json")
    read = replace(db.Plan.load(tmp_path / "plan.json"), seconds_estimate=1.0, memory_bytes=1, warnings=("slow",))
    assert read.sha256 == small.plan.sha256
    asked = {"epsilon": small.epsilon, "delta": small.delta, "accountant": "rdp"} | small.tiny
    other = db.plan(small.declared, method="dpgan", critic_lr=1e-4, **asked)
    assert facts_of(other) == facts_of(small.plan)  # what the ledger records leaves settings out
    assert other.sha256 != small.plan.sha256
    db.fit(small.frame(), small.plan, ledger=book)
    db.fit(small.frame(), other, ledger=book)
    with pytest.raises(BudgetRefused):
        db.fit(small.frame(), read, ledger=book)


def test_a_run_that_was_cut_off_is_gone_on_with_and_not_begun_anew(small, book, tmp_path):
    with pytest.raises(Interrupted):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", progress=StopAt("train", 3))
    with pytest.raises(BudgetRefused, match="interrupted; go on with that run \\(resume\\), at no new charge"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "other")
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert closed(book) == ["interrupted", "done"]
    assert book.spent.epsilon == small.plan.epsilon


def test_what_cost_nothing_may_be_run_again(small, gan, bought, book, tmp_path):
    with pytest.raises(Interrupted, match="nothing was spent"):
        db.fit(small.frame(), bought, ledger=book, progress=StopAt("read the records"))
    db.fit(small.frame(), bought, ledger=book)
    for _ in range(2):
        db.fit(small.frame(), gan, ledger=book)


def test_two_that_begin_at_once_pay_once(small, book, tmp_path, monkeypatch):
    """The second is refused under the lock, although neither saw the other's reservation when it looked."""
    monkeypatch.setattr(type(book), "refuse_repeated", lambda self, plan: None)
    db.fit(small.frame(), small.plan, ledger=book)
    with pytest.raises(BudgetRefused):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- stopped by the user -----------------------------------------------------------------------------------------------


class StopAt(progress.SilentProgress):
    """Sends a signal when a stage begins, or when so many steps are done."""

    def __init__(self, name, done=None, number=signal.SIGINT):
        self.name, self.done, self.number, self.stage_now = name, done, number, None

    def stage(self, name, total=None):
        self.stage_now = name
        if name == self.name and self.done is None:
            os.kill(os.getpid(), self.number)

    def at(self, done):
        if self.stage_now == self.name and done == self.done:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_keeps_its_state_and_goes_on(small, book, tmp_path, monkeypatch, number):
    draws = Draws(monkeypatch)
    handlers = [signal.getsignal(watched) for watched in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(Interrupted) as caught:
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", progress=StopAt("train", 3, number))
    assert caught.value.exit_code == 130
    assert "--resume" in str(caught.value)
    assert [signal.getsignal(watched) for watched in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert (status(tmp_path / "run"), draws.count) == ("interrupted", 3)
    assert RunFolder(tmp_path / "run").kept_step == 3  # what was learned since the last checkpoint is not lost
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert draws.count <= 6
    assert closed(book) == ["interrupted", "done"]


def test_stopped_before_any_noise_costs_nothing(small, bought, book, tmp_path):
    for plan in (small.plan, bought):
        with pytest.raises(Interrupted, match="nothing was spent"):
            db.fit(small.frame(), plan, ledger=book, out=tmp_path / "run", progress=StopAt("read the records"))
        assert book.spent.epsilon == 0
        assert not (tmp_path / "run").exists()


def test_stopped_while_facts_are_learned_the_run_can_go_on(small, bought, book, tmp_path):
    with pytest.raises(Interrupted, match="--resume"):
        db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run", progress=StopAt("learn what was bought", 1))
    assert not (tmp_path / "run" / "schema.yaml").exists()
    db.fit(small.frame(), bought, ledger=book, out=tmp_path / "run", resume=True)
    assert all(entry["lost"] == 0 for entry in db.load(tmp_path / "run").executed)


def test_a_run_without_privacy_can_be_stopped(small, gan, book, tmp_path):
    with pytest.raises(Interrupted):
        db.fit(small.frame(), gan, ledger=book, out=tmp_path / "run", progress=StopAt("train", 2))
    db.fit(small.frame(), gan, ledger=book, out=tmp_path / "run", resume=True)
    assert status(tmp_path / "run") == "done"


def test_without_a_folder_what_was_bought_stays_in_one_that_is_named(small, book, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Interrupted, match="what was spent stays spent") as caught:
        db.fit(small.frame(), small.plan, ledger=book, progress=StopAt("train", 3))
    (room,) = tmp_path.glob("doublure-*")
    assert caught.value.remedy == f"go on with -o {room / 'run'} --resume"
    assert (RunFolder(room / "run").kept_step, book.spent.epsilon) == (3, small.epsilon)
    db.fit(small.frame(), small.plan, ledger=book, out=room / "run", resume=True)
    assert (closed(book), book.spent.epsilon) == (["interrupted", "done"], small.epsilon)


def test_without_a_folder_nothing_stays_that_cost_nothing_or_is_done(small, book, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Interrupted, match="nothing was spent"):
        db.fit(small.frame(), small.plan, ledger=book, progress=StopAt("read the records"))
    db.fit(small.frame(), small.plan, ledger=book)
    assert not [*tmp_path.glob("doublure-*")]


def test_a_second_signal_ends_the_run_at_once(small, book, tmp_path):
    class Twice(StopAt):
        def at(self, done):
            super().at(done)
            super().at(done)

    with pytest.raises(Interrupted):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", progress=Twice("train", 4))
    assert closed(book) == ["interrupted"]


@pytest.mark.parametrize(
    ("second", "first"), crossed([None, signal.SIGINT, signal.SIGTERM], [signal.SIGINT, signal.SIGTERM])
)
def test_a_stage_that_never_asks_is_stopped_within_two_seconds(small, book, tmp_path, monkeypatch, first, second):
    """A step was drawn and counts; the next one never ends, and the run's state is what the table says."""

    def never_asks(steps, *given):
        if not asked:
            asked.append(1)
            return gradient(steps, *given)
        for number in (first, second):
            if number is not None:
                os.kill(os.getpid(), number)
        began.append(time.monotonic())
        while True:
            time.sleep(0.01)

    asked: list[int] = []
    began: list[float] = []
    gradient = CriticSteps.gradient
    monkeypatch.setattr(CriticSteps, "gradient", never_asks)
    with pytest.raises(Interrupted, match="what was spent stays spent"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert not began or time.monotonic() - began[0] < 2
    assert bool(began) == (second is None)  # the second one ends it at once
    assert (status(tmp_path / "run"), closed(book)) == ("interrupted", ["interrupted"])
    monkeypatch.undo()
    db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", resume=True)
    assert status(tmp_path / "run") == "done"


@pytest.mark.parametrize(
    "place", ["doublure.data.tables.opening._FrameSource.chunks", "doublure.encode.table.TableEncoder.compact"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_reading_and_encoding_end_at_once_and_cost_nothing(small, book, tmp_path, monkeypatch, place, number):
    def never_ends(*_: object) -> None:
        os.kill(os.getpid(), number)
        raise AssertionError

    monkeypatch.setattr(place, never_ends)
    with pytest.raises(Interrupted, match="nothing was spent"):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run")
    assert (book.spent.epsilon, closed(book)) == (0, ["no-noise-drawn"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_count_that_is_stopped_before_its_noise_is_drawn_is_drawn_once(small, book, tmp_path, monkeypatch, number):
    """Nothing was paid for it: it is free, and counted again; what is killed as it is kept is lost."""
    plan = db.plan(small.declared, method="statistics", epsilon=2.0, delta=1e-4, components=4, fit_steps=5)
    noisy, counted, drawn = whole_noise.gaussian, Counts.answer, []

    def counts(query, records, *, sample_rate):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        return counted(query, records, sample_rate=sample_rate)

    monkeypatch.setattr(whole_noise, "gaussian", lambda *a, **k: (drawn.append(1), noisy(*a, **k))[1])
    fit = partial(db.fit, small.frame(), plan, ledger=book, out=tmp_path / "run")
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Counts, "answer", counts)
            with pytest.raises(Interrupted, match="nothing was spent"):
                fit()
        assert not (tmp_path / "run").exists()
    assert (drawn, book.spent.epsilon) == ([], 0)
    with monkeypatch.context() as patch:
        patch.setattr("doublure.run.answers._content", lambda *given: sys.exit(1))
        with pytest.raises(SystemExit):
            fit()
    assert len(drawn) == 1
    with pytest.raises(LostRun):
        fit(resume=True)
    assert len(drawn) == 1


def test_a_count_that_was_stopped_comes_to_its_end(small, book, tmp_path, monkeypatch):
    plan = db.plan(small.declared, method="statistics", epsilon=2.0, delta=1e-4, components=4, fit_steps=5)
    counted = Counts.answer
    calls = []

    def counts(query, records, *, sample_rate):
        calls.append(len(query.tables))
        if len(calls) in (2, 4):
            raise KeyboardInterrupt
        return counted(query, records, sample_rate=sample_rate)

    monkeypatch.setattr(Counts, "answer", counts)
    for resume in (False, True):
        with pytest.raises(Interrupted):
            db.fit(small.frame(), plan, ledger=book, out=tmp_path / "run", resume=resume)
    db.fit(small.frame(), plan, ledger=book, out=tmp_path / "run", resume=True)
    assert status(tmp_path / "run") == "done"
    assert len(calls) == len(plan.touches) + 2  # each release was counted to its end once
    assert book.spent.epsilon == 2.0


def test_no_signal_cuts_off_the_closing(small, book, tmp_path, monkeypatch):
    close = Reservation.close

    def closing(reservation, *arguments, **named):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        close(reservation, *arguments, **named)

    monkeypatch.setattr(Reservation, "close", closing)
    with pytest.raises(Interrupted):
        db.fit(small.frame(), small.plan, ledger=book, out=tmp_path / "run", progress=StopAt("train", 3))
    assert (status(tmp_path / "run"), closed(book)) == ("interrupted", ["interrupted"])


def test_a_thread_that_is_not_the_main_one_can_fit(small, book):
    made = []
    worker = threading.Thread(target=lambda: made.append(db.fit(small.frame(), small.plan, ledger=book)))
    worker.start()
    worker.join()
    assert len(made) == 1


def test_listening_puts_every_handler_back():
    before = signal.getsignal(signal.SIGTERM)
    stop = stopping.StopSignal()
    with stop.listening():
        stop.check()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(Interrupted):
            stop.check()
        with pytest.raises(KeyboardInterrupt):  # the second ends it at once, of whichever kind
            os.kill(os.getpid(), signal.SIGINT)
        stop.close()
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before
