"""What an owner has answered it answers alike or not at all: whatever became of its process, its records or its facts.

Whoever asks may be lying: it may tell other facts in between, or speak to two processes at once. Each of these would
be a second answer for one price.
"""

from __future__ import annotations

import contextlib
import re
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from owners import Federation, dealt, plan_of, with_owners
from parted import LEARNED, SEVERAL, people
from planting import plant

from doublure.federated.silo import Silo
from doublure.federated.wire import Said
from doublure.private.owners import Owner


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class Asked:
    """A federation that has run, what its first owner was asked, and the same owner again, of whom nothing was."""

    def __init__(self, patch, folder, schema):
        by = "who" if "id: who" in schema else None
        files = dealt(people(300), folder / "clients", 3, by)
        made, said = Federation(folder / "ran", plan_of(with_owners(schema)), files), []
        hear = made.post.owners[1].heard
        made.post.owners[1].heard = lambda words: (said.append(words), hear(words))[1]
        made.fitted(patch)
        self.made = Federation(folder / "again", made.plan, files)
        self.by_word = {word: [each for each in said if each.words["ask"] == word] for word in ("counts", "fact")}
        self.begin, self.schema = (
            next(each for each in said if each.words["ask"] == word) for word in ("begin", "schema")
        )
        self.file = self.made.files[1]

    def owner(self):
        """Return the owner as another process is it."""
        return self.made.owner(1)

    def begun(self):
        owner = self.owner()
        for said in (self.begin, *self.by_word["fact"], self.schema):
            assert owner.heard(said).words["refused"] is None
        return owner


@pytest.fixture
def asked(monkeypatch, tmp_path):
    (tmp_path / "ran").mkdir()
    (tmp_path / "again").mkdir()
    return lambda schema: Asked(monkeypatch, tmp_path, schema)


def otherwise(said):
    """Return another question for the same access."""
    cells = next(name for name in said.arrays if name.endswith("cells"))
    return Said(said.words, {**said.arrays, cells: np.zeros_like(said.arrays[cells])})


def refusals(*answers):
    return [answer.words["refused"] for answer in answers]


def check_one_of_two_processes_answers(found):
    one, other = found.begun(), found.owner()
    first, *_, last = found.by_word["counts"]
    assert first.words["access"] != last.words["access"]
    assert refusals(one.heard(first), other.heard(otherwise(last))) == [None, None]
    answer = one.heard(last)
    assert answer.words["refused"] == "its plan does not pay for what was asked"
    assert not answer.arrays
    assert refusals(one.heard(first), other.heard(first), one.heard(otherwise(last))) == [None] * 3


def test_of_two_processes_each_knows_what_the_other_has_answered(asked):
    check_one_of_two_processes_answers(asked(SEVERAL))


def test_a_process_that_does_not_look_what_others_have_answered_is_caught(monkeypatch, asked):
    plant(monkeypatch, Silo, "_take_up", ("self._run != run or kept != self._kept", "self._run != run"))
    with pytest.raises(AssertionError):
        check_one_of_two_processes_answers(asked(SEVERAL))


def test_of_two_questions_at_once_one_is_answered(asked, monkeypatch):
    found = asked(SEVERAL)
    owner, met = found.begun(), threading.Barrier(2)
    pay, answers = Silo._authorise, []

    def slowly(silo, access, step):
        with contextlib.suppress(threading.BrokenBarrierError):
            met.wait(1.0)  # for the other one, which must not come this far
        pay(silo, access, step)

    monkeypatch.setattr(Silo, "_authorise", slowly)
    question = found.by_word["counts"][0]
    both = [
        threading.Thread(target=lambda said=said: answers.append(owner.heard(said)))
        for said in (question, otherwise(question))
    ]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(refusals(*answers), key=str) == [None, "its plan does not pay for what was asked"]


def other_records(found):
    """Take seven records out of the owner's file, and return how to put them back."""
    before = found.file.read_bytes()
    pd.read_csv(found.file, keep_default_na=False).iloc[:-7].to_csv(found.file, index=False)
    return lambda: found.file.write_bytes(before)


def check_changed_records_give_no_second_answer(found):
    """Before facts are told nothing but its answers say what an owner's records were."""
    owner, (fact, *_) = found.owner(), found.by_word["fact"]
    assert refusals(owner.heard(found.begin), owner.heard(fact)) == [None] * 2
    put_back = other_records(found)
    answer = found.owner().heard(fact)
    assert answer.words["refused"] == "it could not"
    assert not {"names", "counts"} & {*answer.words}
    assert not answer.arrays
    put_back()
    assert refusals(found.owner().heard(fact)) == [None]


def test_records_that_changed_on_disk_give_no_second_answer(asked):
    check_changed_records_give_no_second_answer(asked(LEARNED))


def test_an_owner_that_does_not_compare_its_answers_is_caught(monkeypatch, asked):
    plant(monkeypatch, Owner, "told", ("asked[digest][1] != answer", "False"))
    with pytest.raises(AssertionError):
        check_changed_records_give_no_second_answer(asked(LEARNED))


def check_changed_records_are_not_counted(found):
    found.begun().heard(found.by_word["counts"][0])
    put_back = other_records(found)
    answers = [found.owner().heard(said) for said in found.by_word["counts"][:2]]  # asked before, and not
    assert refusals(*answers) == ["its records are others than before"] * 2
    assert not answers[0].arrays
    put_back()
    assert refusals(*map(found.owner().heard, found.by_word["counts"])) == [None] * len(found.by_word["counts"])


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
    assert refusals(found.owner().heard(Said({**found.schema.words, "schema": other}, {}))) == [
        "its facts were learned before"
    ]
    assert refusals(found.owner().heard(found.schema)) == [None]


def test_facts_are_told_once(asked):
    """The same question in other codes would be answered otherwise."""
    check_other_facts_are_refused(asked(LEARNED))


def test_an_owner_that_takes_other_facts_over_is_caught(monkeypatch, asked):
    plant(monkeypatch, Silo, "_schema", ("self._kept.get('schema', text) != text", "False"))
    with pytest.raises(AssertionError):
        check_other_facts_are_refused(asked(LEARNED))
