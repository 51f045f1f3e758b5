"""What an owner has answered it answers alike or not at all: whatever became of its process, its records or its facts.

Whoever asks may be lying: it may tell other facts in between, or speak to two processes at once. Each of these would
be a second answer for one price.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from owners import Federation, Mortal, dealt, plan_of, with_owners
from parted import BOTH, DECLARED, LEARNED, SEVERAL, people
from planting import plant

from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.private.owners import Owner
from doublure.support.messages import Message


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def hear_owner(patch, folder, schema):
    """Return what the first owner of a federation is asked in a fit."""
    made = Federation(folder, plan_of(with_owners(schema)), dealt_by(schema, folder))
    said, hear = [], made.post.owners[1].answer
    made.post.owners[1].answer = lambda words: (said.append(words), hear(words))[1]
    made.fitted(patch)
    return said


def dealt_by(schema, folder):
    return dealt(people(300), folder / "clients", 3, "who" if "id: who" in schema else None)


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """What an owner is asked, by schema: heard before any test plants a fault."""
    with pytest.MonkeyPatch.context() as patch:
        return {
            schema: hear_owner(patch, tmp_path_factory.mktemp("heard"), schema)
            for schema in (SEVERAL, BOTH, DECLARED, LEARNED, SHARED)
        }


class Asked:
    """What an owner was asked in a fit, and the same owner in another federation, of whom nothing was."""

    def __init__(self, folder, schema, said):
        self.made = Federation(folder, plan_of(with_owners(schema)), dealt_by(schema, folder))
        self.by_word = {word: [each for each in said if each.words["ask"] == word] for word in ("counts", "fact")}
        self.begin, self.schema = (
            next((each for each in said if each.words["ask"] == word), None) for word in ("begin", "schema")
        )  # no schema is told where nothing is learned
        self.file = self.made.files[1]

    def owner(self):
        """Return the owner as another process is it."""
        return self.made.owner(1)

    def begun(self):
        owner = self.owner()
        for said in filter(None, (self.begin, *self.by_word["fact"], self.schema)):
            assert owner.answer(said).words["refused"] is None
        return owner


@pytest.fixture
def asked(heard, tmp_path):
    return lambda schema: Asked(tmp_path, schema, heard[schema])


def otherwise(said):
    """Return another question for the same access."""
    cells = next(name for name in said.arrays if name.endswith("cells"))
    return Message(said.words, {**said.arrays, cells: np.zeros_like(said.arrays[cells])})


def refusals(*answers):
    return [answer.words["refused"] for answer in answers]


def check_one_of_two_processes_answers(found):
    one, other = found.begun(), found.owner()
    first, *_, last = found.by_word["counts"]
    assert first.words["access"] != last.words["access"]
    assert refusals(one.answer(first), other.answer(otherwise(last))) == [None, None]
    answer = one.answer(last)
    assert answer.words["refused"] == "its plan does not pay for what was asked"
    assert not answer.arrays
    assert refusals(one.answer(first), other.answer(first), one.answer(otherwise(last))) == [None] * 3


def test_of_two_processes_each_knows_what_the_other_has_answered(asked):
    check_one_of_two_processes_answers(asked(SEVERAL))


def test_a_process_that_does_not_look_what_others_have_answered_is_caught(monkeypatch, asked):
    plant(monkeypatch, Silo, "_take_up", ("self._run != run or kept != self._kept", "self._run != run"))
    with pytest.raises(AssertionError):
        check_one_of_two_processes_answers(asked(SEVERAL))


class Holder:
    """Another process that answers from an owner's folder: as long as it holds the lock, nobody else may."""

    def __init__(self, owner):
        self._path = owner._folder / "lock"

    def __enter__(self):
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_SH)  # which two may hold, unless the other one wants it for itself
        return self

    def __exit__(self, *error):
        os.close(self._file)

    def is_locked_out(self):
        """Return whether somebody else holds it."""
        with contextlib.suppress(BlockingIOError):
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            finally:
                os.close(file)
            return False
        return True


def check_who_finds_the_folder_held_waits(patch, found):
    """No clock: the other one lets go when the owner has been refused the lock, or when it is done without it."""
    owner, acts, refused_or_done = found.begun(), [], threading.Event()
    lock, count = fcntl.flock, Silo._counts

    def flock(file, how):
        if how & fcntl.LOCK_UN:
            return lock(file, how)
        try:
            lock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            acts.append("waits")
            refused_or_done.set()
            lock(file, how)

    def answered():
        try:
            acts.append(owner.answer(found.by_word["counts"][0]).words["refused"])
        finally:
            refused_or_done.set()

    with patch.context() as inner:
        inner.setattr(Silo, "_counts", lambda silo, said: (acts.append("counts"), count(silo, said))[1])
        with Holder(owner):
            inner.setattr(fcntl, "flock", flock)
            thread = threading.Thread(target=answered)
            thread.start()
            refused_or_done.wait()
            acts.append("the other lets go")
        thread.join()
    assert acts == ["waits", "the other lets go", "counts", None]


def check_a_folder_is_held_while_it_is_answered_from(patch, found):
    """From before it is looked at what was asked, until what is asked now is written down."""
    owner, held = found.owner(), []
    other = Holder(owner)
    with patch.context() as inner:
        for act in ("_book", "_go_on", "_authorise", "_note", "_write"):
            done = getattr(Silo, act)

            def watched(silo, *given, act=act, done=done):
                made = done(silo, *given)
                held.append((act, other.is_locked_out()))
                return made

            inner.setattr(Silo, act, watched)
        for said in (found.begin, *found.by_word["fact"], found.schema, found.by_word["counts"][0]):
            assert owner.answer(said).words["refused"] is None
    assert {act for act, _ in held} == {"_book", "_go_on", "_authorise", "_note", "_write"}
    assert all(locked for _, locked in held)
    assert not other.is_locked_out()


def test_who_finds_the_folder_held_waits(monkeypatch, asked):
    check_who_finds_the_folder_held_waits(monkeypatch, asked(SEVERAL))


def test_a_folder_is_held_while_it_is_answered_from(monkeypatch, asked):
    check_a_folder_is_held_while_it_is_answered_from(monkeypatch, asked(BOTH))


LOCK = "fcntl.flock(lock, fcntl.LOCK_EX)"
UNLOCKED = {
    "no lock": (Silo, "_alone", (LOCK, "pass")),
    "a lock that several hold": (Silo, "_alone", ("fcntl.LOCK_EX", "fcntl.LOCK_SH")),
    "a lock of one process": (Silo, "_alone", ("'lock'", "f'lock of {id(self)}'")),
    "a lock that is let go at once": (Silo, "_alone", (LOCK, f"{LOCK}; fcntl.flock(lock, fcntl.LOCK_UN)")),
}


@pytest.mark.parametrize("mutant", UNLOCKED)
def test_a_folder_that_two_answer_from_is_caught(monkeypatch, asked, mutant):
    found = asked(BOTH)
    plant(monkeypatch, *UNLOCKED[mutant])
    if mutant != "a lock that is let go at once":
        with pytest.raises(AssertionError):
            check_who_finds_the_folder_held_waits(monkeypatch, found)
    with pytest.raises(AssertionError):
        check_a_folder_is_held_while_it_is_answered_from(monkeypatch, found)


# -- what lies on an owner's disk --------------------------------------------------------------------------------------


def check_a_torn_line_swallows_no_other(found):
    """What a power cut has left of a line is no part of the next one, which the owner has answered by then."""
    *_, last = found.by_word["counts"]
    found.begun()
    with (found.made.folder / "at 1" / "asked.jsonl").open("a") as file:
        file.write('["0f", 3, "a')
    assert refusals(found.owner().answer(last)) == [None]
    answer = found.owner().answer(otherwise(last))
    assert answer.words["refused"] == "its plan does not pay for what was asked"
    assert not answer.arrays
    assert refusals(found.owner().answer(last)) == [None]


def test_a_torn_line_swallows_no_other(asked):
    check_a_torn_line_swallows_no_other(asked(SEVERAL))


def test_an_owner_that_goes_on_in_a_torn_line_is_caught(monkeypatch, asked):
    found = asked(SEVERAL)
    plant(monkeypatch, Silo, "_note", ("line if new else '\\n' + line", "line"))
    with pytest.raises(AssertionError):
        check_a_torn_line_swallows_no_other(found)


def check_a_question_is_durable_before_its_answer(patch, found):
    """Of each file its last byte is, and of a new one its name: else a power cut would undo what was answered."""
    folder, synced, fsync = found.made.folder / "at 1", {}, os.fsync

    def watched(file):
        fsync(file)
        at = os.fstat(file)
        inside = os.listdir(file) if stat.S_ISDIR(at.st_mode) else ()  # noqa: PTH208 (of a descriptor)
        synced[at.st_ino] = frozenset(inside) or at.st_size

    owner, told = found.owner(), (found.begin, *found.by_word["fact"], found.schema, *found.by_word["counts"])
    with patch.context() as inner:
        inner.setattr(os, "fsync", watched)
        for said in told:
            assert refusals(owner.answer(said)) == [None]
            kept = [each for name in ("asked.jsonl", "session.json") if (each := folder / name).exists()]
            assert all(synced[each.stat().st_ino] == each.stat().st_size for each in kept)
            assert {each.name for each in kept} <= synced[folder.stat().st_ino]
    assert len(kept) == 2


def test_a_question_is_durable_before_its_answer(monkeypatch, asked):
    check_a_question_is_durable_before_its_answer(monkeypatch, asked(BOTH))


LOST = {
    "the line": ("os.fsync(file.fileno())", "pass"),
    "the end of the line": ("file.flush()", "pass"),
    "the file": ("files.sync_folder(self._folder)", "pass"),
}


@pytest.mark.parametrize("mutant", LOST)
def test_an_answer_whose_question_a_power_cut_loses_is_caught(monkeypatch, asked, mutant):
    found = asked(BOTH)
    plant(monkeypatch, Silo, "_note", LOST[mutant])
    with pytest.raises((AssertionError, KeyError)):
        check_a_question_is_durable_before_its_answer(monkeypatch, found)


def check_no_charge_is_left_of_which_nobody_knows(patch, found):
    """Killed at each write of its charge, an owner closes it at zero, and pays once when the run begins anew."""
    end, folder = Message({**found.begin.words, "ask": "end", "done": False}, {}), found.made.folder
    anew = Message({**found.begin.words, "run": "begun anew"}, {})
    for at in range(1, 10):
        (folder / str(at)).mkdir()
        found.made = Federation(folder / str(at), found.made.plan, [*found.made.files.values()])
        with patch.context() as inner:
            mortal = Mortal(found.made, 1, at, inner)
            if mortal.answer(found.begin) is not None:
                break
        answer = found.owner().answer(end).words
        assert (answer["refused"], answer.get("charged")) == (None, False)
        assert found.made.book(1).spent.epsilon == 0
        assert refusals(found.owner().answer(anew)) == [None]
        assert found.made.book(1).spent.epsilon == 20.0
    assert at > 2  # what it will be charged for, and the charge


def test_no_charge_is_left_of_which_nobody_knows(monkeypatch, asked):
    check_no_charge_is_left_of_which_nobody_knows(monkeypatch, asked(DECLARED))


RESERVED = "self._book().reserve(self._plan, again=self._again, promise=promise)"
FORGOTTEN = {
    "charged first, and then known": ("_begin", (
        f"self._take(run, {RESERVED})",
        "made = self._book().reserve(self._plan, again=self._again)\n"
        "promise(made.id, made.session)\n"
        "self._take(run, made)",
    )),
    "known, and taken for charged": ("_charged", ("('reserve', None) in kinds", "True")),
}  # fmt: skip


@pytest.mark.parametrize("mutant", FORGOTTEN)
def test_a_charge_of_which_nobody_knows_is_caught(monkeypatch, asked, mutant):
    found = asked(DECLARED)
    plant(monkeypatch, Silo, *FORGOTTEN[mutant])
    with pytest.raises(AssertionError):
        check_no_charge_is_left_of_which_nobody_knows(monkeypatch, found)


def check_what_was_told_stays_charged(found):
    """A run that ends before its first table has told facts: it is closed, and not at zero."""
    end = Message({**found.begin.words, "ask": "end", "done": False}, {})
    for facts, charged, status in ((0, False, "no-noise-drawn"), (1, True, "interrupted")):
        owner = found.owner()
        for said in (found.begin, *found.by_word["fact"][:facts]):
            assert refusals(owner.answer(said)) == [None]
        answer = owner.answer(end).words
        assert (answer["refused"], answer.get("charged")) == (None, charged)
        book = found.made.book(1)
        assert book.spent.epsilon == (20.0 if charged else 0.0)
        assert book.show()["runs"][-1]["status"] == status


def test_what_was_told_stays_charged(asked):
    check_what_was_told_stays_charged(asked(LEARNED))


TOLD = {
    "facts are nothing": (
        Silo,
        "_close",
        ("reservation.authorised == 0 and not reservation.drawn", "not reservation.authorised"),
    ),
    "an owner says what it likes": (Silo, "_end", ("{CHARGED: self._charged(run)}", "{CHARGED: False}")),
}


@pytest.mark.parametrize("mutant", TOLD)
def test_a_charge_that_is_given_back_is_caught(monkeypatch, asked, mutant):
    found = asked(LEARNED)
    plant(monkeypatch, *TOLD[mutant])
    with pytest.raises(AssertionError):
        check_what_was_told_stays_charged(found)


def check_what_is_kept_is_its_owners_alone(patch, folder):
    made = Federation(folder, plan_of(with_owners(DECLARED)), dealt(people(60), folder / "clients", 2))
    before = os.umask(0)
    try:
        made.fitted(patch)
    finally:
        os.umask(before)
    kept = [folder / "at 1" / name for name in ("asked.jsonl", "session.json", "lock")]
    kept.append(folder / "run" / "internal" / "federation.json")
    assert {stat.S_IMODE(each.stat().st_mode) for each in kept} == {0o600}


def test_what_is_kept_is_its_owners_alone(monkeypatch, tmp_path):
    """What an answer was is private, and who takes part is told to nobody."""
    check_what_is_kept_is_its_owners_alone(monkeypatch, tmp_path)


FOR_EVERYBODY = {
    "the session": (Silo, "_write", ("mode=0o600", "mode=0o644")),
    "what was asked": (Silo, "_note", ("os.fchmod(file.fileno(), 0o600)", "pass")),
    "the lock": (Silo, "_alone", ("0o600", "0o644")),
    "who takes part": (Clients, "begin", ("mode=0o600", "mode=0o644")),
}


@pytest.mark.parametrize("mutant", FOR_EVERYBODY)
def test_a_file_that_everybody_reads_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, *FOR_EVERYBODY[mutant])
    with pytest.raises(AssertionError):
        check_what_is_kept_is_its_owners_alone(monkeypatch, tmp_path)


# -- a fact, which is marked in the ledger, too ------------------------------------------------------------------------

SHARED = LEARNED.replace("other: Other, ", "other: Other, roles: [condition], shares: {learn: 1.0}, ")
"""Shares of values that were learned: whoever asks tells them, and could tell others."""


class Shared:
    """What was asked for such shares, the same of other values, and an owner of whom nothing was asked."""

    def __init__(self, found):
        self.found = found
        (self.fact,) = [said for said in found.by_word["fact"] if said.words["path"] == "columns.job.shares"]
        self.other = Message({**self.fact.words, "values": self.fact.words["values"][:2]}, {})

    def anew(self, name):
        made = self.found.made
        folder = made.folder / name
        folder.mkdir()
        self.found.made = Federation(folder, made.plan, [*made.files.values()])

    def told(self, said):
        """Return what an owner's next process answers."""
        answer = self.found.owner().answer(said)
        assert answer.words["refused"] is None
        return answer.arrays["total"].tolist()

    def refusal(self, said):
        answer = self.found.owner().answer(said)
        assert not answer.arrays
        return answer.words["refused"]

    @property
    def marks(self):
        return [each.body["what"] for each in self.found.made.book(1).entries if each.kind == "noise"]


@pytest.fixture
def shared(asked):
    return Shared(asked(SHARED))


def check_a_fact_goes_on_after_a_kill(patch, shared):
    """Killed at each of its writes, an owner answers the same question once it is paid for, and no other."""
    found, told = shared.found, []
    for at in range(1, 10):
        shared.anew(f"killed at {at}")
        with patch.context() as inner:
            mortal = Mortal(found.made, 1, 0, inner)
            assert refusals(mortal.answer(found.begin)) == [None]
            mortal.left = at
            answer = mortal.answer(shared.fact)
        if answer is not None:
            break
        told.append(shared.told(shared.fact))
        assert len(shared.marks) == 1
        assert shared.refusal(shared.other) == "its plan does not pay for what was asked"
        told.append(shared.told(shared.fact))
        assert len(shared.marks) == 1
    assert at > 3  # the note, its file's name, the mark
    assert all(each == answer.arrays["total"].tolist() for each in told)


def check_a_fact_whose_note_is_gone_is_not_told_again(shared):
    """An older copy of the folder is put back, and the ledger is not: what was told may be out."""
    shared.anew("without its note")
    assert refusals(shared.found.owner().answer(shared.found.begin)) == [None]
    shared.told(shared.fact)
    (shared.found.made.folder / "at 1" / "asked.jsonl").unlink()
    assert {shared.refusal(said) for said in (shared.other, shared.fact, shared.other)} == {"its ledger refuses"}


def test_a_fact_goes_on_after_a_kill(monkeypatch, shared):
    check_a_fact_goes_on_after_a_kill(monkeypatch, shared)


def test_a_fact_whose_note_is_gone_is_not_told_again(shared):
    check_a_fact_whose_note_is_gone_is_not_told_again(shared)


def test_the_other_question_is_refused_for_its_price_alone(shared):
    told = []
    for said in (shared.fact, shared.other):
        shared.anew(f"asked {len(told)}")
        assert refusals(shared.found.owner().answer(shared.found.begin)) == [None]
        told.append(shared.told(said))
    assert told[0] != told[1]


MARK, NOTED = "self._authorise(access, self._step[number])", "asked[digest] = (moved, answer)"
ASK = "found = places.ask(query, sample_rate=rate)"
MISMARKED = {
    "marked before it is noted": [(ASK, f"{MARK}; {ASK}")],
    "noted by an earlier process, and never marked": [(MARK, "pass"), (NOTED, f"{NOTED}; {MARK}")],
}


@pytest.mark.parametrize("mutant", MISMARKED)
def test_a_fact_that_is_lost_or_told_for_nothing_is_caught(monkeypatch, shared, mutant):
    plant(monkeypatch, Owner, "answer", *MISMARKED[mutant])
    with pytest.raises(AssertionError):
        check_a_fact_goes_on_after_a_kill(monkeypatch, shared)


def test_an_owner_that_notes_what_is_marked_already_is_caught(monkeypatch, shared):
    plant(monkeypatch, Silo, "_note", ("own.mark_of(number) in own.drawn", "False"))
    with pytest.raises(AssertionError):
        check_a_fact_whose_note_is_gone_is_not_told_again(shared)


# -- what was declared, and what lies there ----------------------------------------------------------------------------

DECLARED_OTHERWISE = {
    "max_records: 2": "max_records: 5",
    "max_silos: 1": "max_silos: 2",
    "type: integer, ": "type: integer, scale: log, ",
    "10000.0], missing: false": "10000.0], missing: true",
    "10000.0], ": "10000.0], precision: 4, ",
    "other: Other": "other: Else",
    "['no', 'yes']": "['yes', 'no']",
    "roles: [condition]": "roles: [condition, target]",
}


def check_declared_facts_stay(found):
    """The records are counted by the facts that the owner's own plan declares."""
    text = found.schema.words["schema"]
    owner = found.owner()
    assert set(refusals(*map(owner.answer, (found.begin, *found.by_word["fact"])))) == {None}
    for old, new in DECLARED_OTHERWISE.items():
        other = text.replace(old, new, 1)
        assert other != text
        answer = owner.answer(Message({**found.schema.words, "schema": other}, {}))
        assert answer.words["refused"] == "it declares other facts"
    assert refusals(owner.answer(found.schema)) == [None]


def test_what_an_owners_plan_declares_stays_declared(asked):
    check_declared_facts_stay(asked(BOTH))


def test_an_owner_that_takes_whatever_is_declared_is_caught(monkeypatch, asked):
    refusal = "raise _Refusal('it declares other facts', field='schema', remedy='give every owner the same plan.json')"
    plant(monkeypatch, Silo, "_schema", (refusal, "pass"))
    with pytest.raises(AssertionError):
        check_declared_facts_stay(asked(BOTH))


def other_records(found):
    """Take seven records out of the owner's file, and return how to put them back."""
    before = found.file.read_bytes()
    pd.read_csv(found.file, keep_default_na=False).iloc[:-7].to_csv(found.file, index=False)
    return lambda: found.file.write_bytes(before)


def check_changed_records_give_no_second_answer(found):
    """Before facts are told nothing but its answers say what an owner's records were."""
    owner, (fact, *_) = found.owner(), found.by_word["fact"]
    assert refusals(owner.answer(found.begin), owner.answer(fact)) == [None] * 2
    put_back = other_records(found)
    answer = found.owner().answer(fact)
    assert answer.words["refused"] == "it could not"
    assert not {"names", "counts"} & {*answer.words}
    assert not answer.arrays
    put_back()
    assert refusals(found.owner().answer(fact)) == [None]


def test_records_that_changed_on_disk_give_no_second_answer(asked):
    check_changed_records_give_no_second_answer(asked(LEARNED))


def test_an_owner_that_does_not_compare_its_answers_is_caught(monkeypatch, asked):
    plant(monkeypatch, Owner, "answer", ("asked[digest][1] != answer", "False"))
    with pytest.raises(AssertionError):
        check_changed_records_give_no_second_answer(asked(LEARNED))


def check_changed_records_are_not_counted(found):
    found.begun().answer(found.by_word["counts"][0])
    put_back = other_records(found)
    answers = [found.owner().answer(said) for said in found.by_word["counts"][:2]]  # asked before, and not
    assert refusals(*answers) == ["its records are others than before"] * 2
    assert not answers[0].arrays
    put_back()
    assert refusals(*map(found.owner().answer, found.by_word["counts"])) == [None] * len(found.by_word["counts"])


def test_records_that_changed_on_disk_are_not_counted(asked):
    check_changed_records_are_not_counted(asked(SEVERAL))


def test_an_owner_that_takes_whatever_lies_there_is_caught(monkeypatch, asked):
    plant(monkeypatch, Silo, "_encode", ("self._kept.get('records', codes.fingerprint)", "codes.fingerprint"))
    with pytest.raises(AssertionError):
        check_changed_records_are_not_counted(asked(SEVERAL))


def check_other_facts_are_refused(found):
    found.begun()
    text = found.schema.words["schema"]
    other = re.sub(r"(type: integer, bounds: \[)-?\d+", r"\1-7", text)
    assert other != text
    assert refusals(found.owner().answer(Message({**found.schema.words, "schema": other}, {}))) == [
        "its facts were learned before"
    ]
    assert refusals(found.owner().answer(found.schema)) == [None]


def test_facts_are_told_once(asked):
    """The same question in other codes would be answered otherwise."""
    check_other_facts_are_refused(asked(LEARNED))


def test_an_owner_that_takes_other_facts_over_is_caught(monkeypatch, asked):
    plant(monkeypatch, Silo, "_schema", ("self._kept.get('schema', text) != text", "False"))
    with pytest.raises(AssertionError):
        check_other_facts_are_refused(asked(LEARNED))
