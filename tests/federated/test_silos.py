"""Records with several owners: the release equals the one of all records in one place, whatever an owner does."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from owners import Federation, Mortal, dealt, plan_of, with_owners
from parted import BOTH, DECLARED, LEARNED, SCHEMAS, SEVERAL, check_equal, people, replayed
from planting import plant
from tiers import by_tier

import doublure as db
from doublure.errors import (
    BudgetRefused,
    DataError,
    InputError,
    Interrupted,
    NotAsPriced,
    RunFolderError,
    SchemaError,
    SettingError,
)
from doublure.federated import wire
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.wire import VERSION, plan_digest
from doublure.ledger import Ledger
from doublure.private.owner_partitions import OwnerPartitions, _OwnerExchange
from doublure.private.owners import Owner
from doublure.support.messages import Message


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def by_of(schema):
    return "who" if "id: who" in schema else None


def in_one_place(patch, folder, frame, plan):
    folder.mkdir(parents=True, exist_ok=True)
    ledger = Ledger.create(folder / "ledger", dataset="all", epsilon=1000.0, delta=0.5)
    with patch.context() as inner:
        replayed(inner)
        return db.fit(frame, plan, ledger=ledger, out=folder / "run", seed=1)


def federation(folder, schema=SEVERAL, rows=500, owners=3, silos=1, **more):
    plan = plan_of(with_owners(schema, silos))
    return Federation(folder, plan, dealt(people(rows), folder / "clients", owners, by_of(schema)), **more)


def check_equal_to_one_place(patch, folder, schema, **more):
    made = federation(folder, schema, **more)
    syn = made.fitted(patch)
    check_equal(in_one_place(patch, folder / "one", people(), made.plan), syn)
    ran = [json.loads((each / "run" / "executed.json").read_text()) for each in (folder, folder / "one")]
    assert ran[0] == ran[1]
    return made


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_release_is_that_of_all_records_in_one_place(monkeypatch, tmp_path, schema):
    made = check_equal_to_one_place(monkeypatch, tmp_path, SCHEMAS[schema])
    assert made.lines == []
    for number in made.files:
        book = made.book(number)
        assert (book.spent.epsilon, book.spent.delta) == (20.0, 1e-4)
        assert [each["status"] for each in book.show()["runs"]] == ["done"]


MUTANTS = {
    "an owner that is added twice": (
        _OwnerExchange, "validated", ("replace(answer, lengths=None)", "replace(answer, total=2 * answer.total)"),
    ),
    "an owner that is left out": (
        Clients, "read", ("self._names.items()", "list(self._names.items())[1:]"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_sum_that_is_another_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    with pytest.raises((AssertionError, TypeError)):
        check_equal_to_one_place(monkeypatch, tmp_path, SEVERAL)


# -- each owner's own ledger -------------------------------------------------------------------------------------------


def check_charged_before_read(patch, folder, schema):
    made, seen = federation(folder, schema), []
    read = Silo._source

    def watched(owner):
        source = read(owner)
        chunks = source.canonical_chunks

        def reading(*given):
            book = Ledger.open(owner._ledger)
            seen.append([record.kind for record in book.entries])
            yield from chunks(*given)

        source.canonical_chunks = reading
        return source

    with patch.context() as inner:
        inner.setattr(Silo, "_source", watched)
        made.fitted(inner)
    assert len(seen) == 3
    assert all(kinds[:2] == ["open", "reserve"] for kinds in seen)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_an_owner_charges_its_ledger_before_it_reads_a_record(monkeypatch, tmp_path, schema):
    check_charged_before_read(monkeypatch, tmp_path, SCHEMAS[schema])


def test_an_owner_that_reads_first_is_caught(monkeypatch, tmp_path):
    plant(monkeypatch, Silo, "_begin", ("self._close()", "OnDiskRecords(self._source(), self._plan.schema, "
          "self._folder, at_least=0).read()"))  # fmt: skip
    with pytest.raises(AssertionError):
        check_charged_before_read(monkeypatch, tmp_path, BOTH)


def test_an_owner_that_cannot_pay_is_named_and_nothing_is_charged_anywhere(monkeypatch, tmp_path):
    made = federation(tmp_path, cap=5.0)
    with pytest.raises(InputError, match="its ledger does not pay for the plan") as refused:
        made.fitted(monkeypatch)
    assert "owner-0" in str(refused.value)
    assert made.lines == []
    assert {ask for ask, _ in made.post.asked} == {"hello"}
    assert made.ledger.spent.epsilon == 0
    assert [made.book(number).spent.epsilon for number in made.files] == [0, 0, 0]
    assert not (tmp_path / "run").exists()


class Recorder:
    """Keeps what was asked of an owner, so that it can be asked again, or otherwise."""

    def __init__(self, made):
        self.asked = []
        hear = made.post.owners[1].answer
        made.post.owners[1].answer = lambda said: (self.asked.append(said), hear(said))[1]


def counts_asked(recorder):
    return [said for said in recorder.asked if said.words["ask"] == "counts"]


def test_an_owner_answers_nothing_that_its_plan_does_not_pay_for(monkeypatch, tmp_path):
    """Whoever asks may be lying about what was spent: the owner keeps count by itself."""
    made = federation(tmp_path)
    recorder = Recorder(made)
    end = made.post.owners[1]._end
    made.post.owners[1]._end = lambda said: Message()  # it goes on listening
    made.fitted(monkeypatch)
    owner = made.post.owners[1]
    asked = counts_asked(recorder)[-1]
    again = owner.answer(asked)
    assert again.words["refused"] is None  # the same question has the same answer, and costs nothing

    def refused(words, arrays=asked.arrays):
        before = made.book(1).head
        answer = owner.answer(Message({**asked.words, **words}, arrays))
        assert answer.arrays == {}
        assert made.book(1).head == before
        return answer.words["refused"]

    other = {name: array.copy() for name, array in asked.arrays.items()}
    next(iter(other.values()))[0] = 0
    next(iter(other.values()))[-1] = 0
    assert refused({}, other) == "its plan does not pay for what was asked"
    for access in (-1, 99, True):
        assert refused({"access": access}) in ("its plan does not pay for what was asked", "it could not")
    assert refused({"order": asked.words["order"] * 2}) == "its plan does not pay for what was asked"
    assert refused({"run": "another"}) == "it was not there when the run began"
    assert refused({"plan": "another"}) == "it has another plan"
    assert refused({"version": 0}) == "it speaks another version"
    assert refused({"ask": "everything"}) == "it could not"
    assert refused({"axes": asked.words["axes"][:-1]}) == "it could not"
    end(Message({**asked.words, "done": True}, {}))


def test_an_owner_that_does_not_keep_count_is_caught(monkeypatch, tmp_path):
    plant(
        monkeypatch,
        Owner,
        "answer",
        ("sum((tables for tables, _ in asked.values())) + moved > _paid(access)", "moved > _paid(access)"),
    )
    with pytest.raises(AssertionError):
        test_an_owner_answers_nothing_that_its_plan_does_not_pay_for(monkeypatch, tmp_path)


def test_a_fact_is_answered_once_and_only_if_it_is_to_be_learned(monkeypatch, tmp_path):
    made = federation(tmp_path, LEARNED)
    recorder, said = Recorder(made), []

    def change(words, node, answer):
        if node == 1 and words["ask"] in ("schema", "counts"):
            owner = made.post.owners[1]
            facts = [each for each in recorder.asked if each.words["ask"] == "fact"][: len(made.plan.learned)]
            shares = facts[-1]
            others = [{}, {"path": "columns.job.missing"}, {"access": 0}, {"values": ["others"]}]
            said.append([owner.answer(Message({**shares.words, **other}, {})).words["refused"] for other in others])
        return [(node, answer)]

    made.post.change = change
    hear = made.post.owners[1].answer

    def first(words):
        if words.words["ask"] == "schema":  # while facts may still be asked
            change(words.words, 1, None)
        return hear(words)

    made.post.owners[1].answer = first
    made.fitted(monkeypatch)
    refusal = "its plan does not pay for what was asked"
    assert said[0] == [None, refusal, refusal, refusal]  # the same question has the same answer
    assert said[2] == ["its facts were learned before"] * 4


# -- units with several owners -----------------------------------------------------------------------------------------


def test_units_with_two_owners_move_answers_twice_as_far(monkeypatch, tmp_path):
    plans = {silos: plan_of(with_owners(BOTH, silos)) for silos in (1, 2)}
    assert plans[2].guarantee.max_records == 2 * plans[1].guarantee.max_records == 4
    assert "no person has records with more than 2 owners" in plans[2].guarantee.assumptions
    assert plans[1].guarantee.epsilon == plans[2].guarantee.epsilon
    scales = {n: [a.event.scale / a.event.records for a in plan.training] for n, plan in plans.items()}
    assert np.allclose(scales[1], scales[2], rtol=0.35)  # the same noise for what a unit moves, twice as much a record
    made = federation(tmp_path, BOTH, silos=2)
    made.fitted(monkeypatch)
    ran = json.loads((tmp_path / "run" / "executed.json").read_text())
    assert all(each["sensitivity"] >= 2 for each in ran)


def test_a_unit_with_two_owners_moves_an_answer_no_further_than_is_stated(monkeypatch, tmp_path):
    """Take a unit out that has as many records as may be with each of two owners, and compare every exact sum."""
    frame = people(120)
    unit = pd.DataFrame([frame.iloc[3]] * 2).assign(who="p9999")
    totals = {}
    for way in ("with", "without"):
        plan = plan_of(with_owners(BOTH, 2))
        files = dealt(frame, tmp_path / way / "clients", 2, "who")
        if way == "with":
            for file in files:
                pd.concat([pd.read_csv(file, keep_default_na=False), unit]).to_csv(file, index=False)
        made, seen = Federation(tmp_path / way, plan, files), []
        ask = OwnerPartitions.ask

        def watched(places, query, seen=seen, ask=ask, **named):
            answer = ask(places, query, **named)
            seen.append((query, answer))
            return answer

        with monkeypatch.context() as inner:
            inner.setattr(OwnerPartitions, "ask", watched)
            made.fitted(inner)
        totals[way] = seen
    moved = 0
    for (query, one), (_, other) in zip(totals["with"], totals["without"], strict=False):
        if isinstance(one.total, dict) or one.total.shape != other.total.shape:
            break  # what is asked from here on follows from noisy answers, which are others
        far = np.abs(one.total - other.total).sum()
        assert far <= query.sensitivity.l1
        moved = max(moved, far / query.sensitivity.l1)
    assert moved == 1  # the bound is reached, so that a smaller one would be none


def test_a_schema_says_with_how_many_owners_a_unit_is():
    plan = plan_of(SEVERAL)
    with pytest.raises(SchemaError, match="federated: is left out"):
        Clients(None, plan)
    with pytest.raises(SchemaError, match="max_silos"):
        db.Schema.parse(with_owners(SEVERAL, 0))
    for method, settings in (("guided", {"critic_share": 0.2}), ("bayesgan", {"steps": 4})):
        with pytest.raises(SettingError, match="cannot be asked of owners yet"):
            db.plan(db.Schema.parse(with_owners(DECLARED, 2)), method=method, epsilon=2.0, delta=1e-4, **settings)


# -- owners who answer otherwise; who fails, and how: tests/pitfalls/test_rule_19_… -----------------------------------


def changed(name):
    """Return what a bad owner makes of its answer to a question that counts."""
    earlier = []

    def change(words, node, answer):
        if node != 2 or words["ask"] != "counts":
            return [(node, answer)]
        total = answer.arrays["total"]
        bad = {
            "NaN": lambda: Message(answer.words, {"total": np.full(total.shape, np.nan)}),
            "shape": lambda: Message(answer.words, {"total": total[:-1]}),
            "type": lambda: Message(answer.words, {"total": total.astype(np.int32)}),
            "negative": lambda: Message(answer.words, {"total": total - 1}),
            "one table": lambda: Message(answer.words, {"total": total + (np.arange(len(total)) == 0)}),
            "too many": lambda: Message(answer.words, {"total": total + 2**60}),
            "replayed": lambda: earlier[0],
            "twice": lambda: answer,
            "version": lambda: Message({**answer.words, "version": VERSION + 1}, answer.arrays),
            "plan": lambda: Message({**answer.words, "plan": "0"}, answer.arrays),
            "words": lambda: Message({**answer.words, "names": ["a"], "counts": [1]}, {}),
            "garbage": lambda: Message({**answer.words, "names": 7}, {}),
            "unreadable": lambda: None,
        }
        earlier.append(answer)
        if name == "replayed" and len(earlier) == 1:
            return [(node, answer)]
        return [(node, answer), (node, answer)] if name == "twice" else [(node, bad[name]())]

    return change


REASONS = {
    "NaN": "whole numbers", "shape": "another shape", "type": "whole numbers", "negative": "below zero",
    "one table": "other records in one table", "too many": "more than its units", "replayed": "another question",
    "version": "another version", "plan": "another plan", "words": "another shape",
    "garbage": "not in the form", "unreadable": "unreadable",
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_a_bad_answer_ends_the_run_by_name(monkeypatch, tmp_path, name):
    made = federation(tmp_path, change=changed(name))
    if name == "one table":  # of one table alone it cannot be seen
        assert max(len(a.event and range(a.event.tables)) for a in made.plan.training) > 1
    message = made.ended(monkeypatch).message
    assert message.startswith("owner-1 ")
    assert REASONS[name] in message
    rounds = json.loads((tmp_path / "run" / "run.json").read_text())["federated"]["rounds"]
    assert [[*each["missed"]] for each in rounds if each["missed"]] == [["owner-1"]]
    with pytest.raises(RunFolderError, match="is not finished"):
        db.load(tmp_path / "run")


def test_a_second_answer_is_not_looked_at(monkeypatch, tmp_path):
    made = federation(tmp_path, change=changed("twice"))
    syn = made.fitted(monkeypatch)
    assert made.lines == ["owner-1 answers what it was not asked, or again"]
    check_equal(in_one_place(monkeypatch, tmp_path / "one", people(), made.plan), syn)


def test_answers_that_are_not_looked_at_are_caught(monkeypatch, tmp_path):
    plant(monkeypatch, _OwnerExchange, "validated", ("fault is not None", "False"))
    with pytest.raises((AssertionError, NotAsPriced)):
        test_a_bad_answer_ends_the_run_by_name(monkeypatch, tmp_path, "one table")


def test_an_owner_that_is_one_unit_cannot_count_as_several(monkeypatch, tmp_path):
    plan = plan_of(with_owners(SEVERAL))
    frame = people(60)
    frame["who"] = [f"p{row // 2}" for row in range(60)]
    files = dealt(frame, tmp_path / "clients", 30, "who")
    twice = lambda words, node, answer: [  # noqa: E731
        (node, Message(answer.words, {"total": answer.arrays["total"] * (2 if node == 4 else 1)}))
        if words["ask"] == "counts"
        else (node, answer)
    ]
    made = Federation(tmp_path, plan, files, change=twice)
    made.fitted(monkeypatch, one_unit=True)
    assert made.lines
    assert all("counts more than one unit can have" in line and line.startswith("owner-11 ") for line in made.lines)


@pytest.mark.parametrize("what", ["plan", "schema", "version"])
def test_another_plan_schema_or_version_is_refused_before_anything_is_charged(monkeypatch, tmp_path, what):
    made = federation(tmp_path)
    if what == "plan":
        made.post.owners[2] = made.owner(2, plan_of(with_owners(SEVERAL), 19.0))
    elif what == "schema":
        pd.read_csv(made.files[2]).drop(columns="pay").to_csv(made.files[2], index=False)
    else:
        made.post.change = lambda words, node, answer: [
            (node, Message({**answer.words, "version": VERSION + 1}, {}) if node == 2 else answer)
        ]
    with pytest.raises(InputError, match="client owner-1") as refused:
        made.fitted(monkeypatch)
    assert {"plan": "another plan", "schema": "does not fit", "version": "another version"}[what] in str(refused.value)
    assert made.ledger.spent.epsilon == 0
    assert [made.book(number).spent.epsilon for number in made.files] == [0, 0, 0]
    assert not (tmp_path / "run").exists()


def test_what_an_owner_is_refused_for_names_no_value(monkeypatch, tmp_path, caplog):
    made, read = federation(tmp_path), Silo._read

    def found(silo):
        if silo.name == "owner-1":
            raise DataError("holds Kiruna", field="pay", remedy="remove Kiruna")
        return read(silo)

    monkeypatch.setattr(Silo, "_read", found)
    lost = made.ended(monkeypatch)
    assert lost.message.startswith("owner-1 refused: its data does not fit the schema (begin)")
    assert "Kiruna" not in str(lost) + "".join(made.lines)
    assert "Kiruna" in caplog.text  # its own log says it in full
    assert [made.book(number).spent.epsilon for number in made.files] == [0, 0, 0]  # nothing was asked


# -- cut off -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schema", ["several records", "learned of several"])
def test_an_owner_that_is_killed_between_any_two_questions_goes_on(monkeypatch, tmp_path, schema):
    made = federation(tmp_path, SCHEMAS[schema])

    def killed(words, node, answer):
        if node == 2:
            made.post.owners[2] = made.owner(2)  # another process: all that is left is what lies on its disk
        return [(node, answer)]

    made.post.change = killed
    syn = made.fitted(monkeypatch)
    assert made.lines == []
    check_equal(in_one_place(monkeypatch, tmp_path / "one", people(), made.plan), syn)
    book = made.book(2)
    assert book.spent.epsilon == 20.0
    assert [each["steps"] for each in book.show()["runs"]] == [made.plan.steps]


def test_an_owner_that_is_killed_at_any_write_undercounts_nothing(monkeypatch, tmp_path):
    """One after the other, or spread over all of them; where everything runs, a hundred."""
    draw, died = np.random.default_rng(3), 0
    for turn in range(by_tier(4, 100)):
        made = federation(tmp_path / str(turn), [SEVERAL, BOTH][turn % 2], rows=120)
        with monkeypatch.context() as inner:
            mortal = made.post.owners[2] = Mortal(made, 2, int(draw.integers(1, 45)), inner)
            made.fitted_at_last(inner)
        died += mortal.dies
        book = made.book(2)
        book.verify()
        if mortal.answered:
            (run,) = [each for each in book.show()["runs"] if each["epsilon"]]  # one that was asked nothing is at zero
            assert run["epsilon"] == 20.0
            assert book.spent.epsilon == 20.0
            training = [access for access in mortal.answered if made.plan.touches[access].path is None]
            reserved = [record for record in book.entries if record.kind == "advance"]
            assert bool(training) <= bool(reserved)
            learned = {access for access in mortal.answered if made.plan.touches[access].path is not None}
            marked = [record.body["what"] for record in book.entries if record.kind == "noise"]
            assert {made.plan.touches[access].purpose for access in learned} <= {*marked}
            assert len(marked) == len({*marked})
        assert made.ledger.spent.epsilon == 20.0
    assert died >= turn // 2


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("cap", [20.0, 1000.0])
def test_a_coordinator_that_was_stopped_goes_on(monkeypatch, tmp_path, cap, killed):
    """With owners whose ledgers pay for one run and no more, too, and where nobody was told that it stopped."""
    made = federation(tmp_path, cap=cap)
    ask, asked = OwnerPartitions.ask, []

    def interrupted(places, query, **named):
        asked.append(query)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return ask(places, query, **named)

    with monkeypatch.context() as inner:
        inner.setattr(OwnerPartitions, "ask", interrupted)
        if killed:
            inner.setattr(Clients, "end", lambda clients, done: None)
        with pytest.raises(Interrupted, match="--resume"):
            made.fitted(inner)
    syn = made.fitted(monkeypatch, resume=True)
    assert len(syn.sample(5)) == 5
    assert made.ledger.spent.epsilon == 20.0
    for number in made.files:
        assert made.book(number).spent.epsilon == 20.0
        assert len(made.book(number).show()["runs"]) == 1


def test_a_plan_is_paid_again_only_if_that_is_said(monkeypatch, tmp_path):
    made = federation(tmp_path, cap=40.0)
    made.fitted(monkeypatch)
    (tmp_path / "run").rename(tmp_path / "first")
    with pytest.raises(BudgetRefused, match="again"):
        made.fitted(monkeypatch)
    with pytest.raises(InputError, match="client owner-0: refused: its ledger does not pay for the plan"):
        made.fitted(monkeypatch, again=True)  # so says the coordinator, of its own ledger alone
    assert [made.book(number).spent.epsilon for number in made.files] == [20.0] * 3
    made.again = True
    made.post.owners = {number: made.owner(number) for number in made.files}
    made.fitted(monkeypatch, again=True)
    assert made.ledger.spent.epsilon == 40.0
    assert [made.book(number).spent.epsilon for number in made.files] == [40.0] * 3


def test_a_run_that_comes_to_nothing_leaves_no_folder(monkeypatch, tmp_path):
    made = federation(tmp_path)
    made.post.change = lambda words, node, answer: [] if words["ask"] == "begin" else [(node, answer)]
    lost = made.ended(monkeypatch)
    assert "did not answer (begin)" in lost.message
    assert "nothing was spent" in lost.message
    assert made.ledger.spent.epsilon == 0
    assert [made.book(number).spent.epsilon for number in made.files] == [0, 0, 0]
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_in_the_way_is_left_as_it_is(monkeypatch, tmp_path):
    made = federation(tmp_path)
    kept = tmp_path / "run" / "internal" / "report.html"
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    with pytest.raises(InputError):
        made.fitted(monkeypatch)
    assert kept.read_text() == "mine"
    assert made.ledger.spent.epsilon == 0


@pytest.mark.parametrize("resume", [False, True])
def test_what_may_not_go_on_with_a_run_writes_nothing_into_it(monkeypatch, tmp_path, resume):
    made = federation(tmp_path, cap=20.0)
    made.fitted(monkeypatch)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(InputError, match="finished"):
        made.fitted(monkeypatch, resume=resume)
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_plans_are_compared_by_what_binds_in_them():
    plan = plan_of(with_owners(SEVERAL))
    assert plan_digest(replace(plan, seconds_estimate=1.0)) == plan_digest(plan)
    assert plan_digest(plan_of(with_owners(SEVERAL), 19.0)) != plan_digest(plan)


def reworded(plan):
    return replace(plan, touches=tuple(replace(each, purpose=f"to {each.purpose}") for each in plan.touches))


def with_last(plan, **change):
    return replace(plan, touches=(*plan.touches[:-1], replace(plan.touches[-1], **change)))


OTHERWISE = {
    "noise": lambda plan: with_last(plan, event=replace(plan.touches[-1].event, scale=1.0)),
    "tables": lambda plan: with_last(plan, event=replace(plan.touches[-1].event, tables=99)),
    "price": lambda plan: with_last(plan, epsilon=0.5),
    "delta": lambda plan: with_last(plan, delta=0.5),
    "fact": lambda plan: with_last(plan, path="columns.age.bounds"),
    "whole": lambda plan: with_last(plan, whole=True),
    "estimated": lambda plan: with_last(plan, estimated=True),
    "order": lambda plan: replace(plan, touches=plan.touches[::-1]),
    "number": lambda plan: replace(plan, touches=plan.touches[:-1]),
    "more": lambda plan: replace(plan, touches=(*plan.touches, plan.touches[-1])),
}


def check_words_alone_are_free(folder):
    """An owner whose version words purposes otherwise takes part; one that pays for anything else does not."""
    folder.mkdir()
    made = Federation(folder, plan_of(with_owners(LEARNED)), dealt(people(60), folder / "clients", 1, "who"))
    said = Message({"version": VERSION, "plan": plan_digest(made.plan), "ask": "hello", "run": "one"}, {})
    assert made.owner(1, reworded(made.plan)).answer(said).words["refused"] is None
    for otherwise in OTHERWISE.values():
        for plan in (otherwise(made.plan), reworded(otherwise(made.plan))):
            assert made.owner(1, plan).answer(said).words["refused"] == "it has another plan"


def test_words_of_purposes_are_compared_by_nobody(tmp_path):
    check_words_alone_are_free(tmp_path / "f")


@pytest.mark.parametrize(
    "edit",
    [
        ("without_purpose(access.to_json())", "access.to_json()"),
        ("without_purpose(access.to_json())", "{'event': without_purpose(access.to_json())['event']}"),
        ("without_purpose(access.to_json()) | held", "held"),
        ("without_purpose(access.to_json()) | held", "without_purpose(access.to_json())"),
    ],
    ids=["words count", "prices do not", "events do not", "facts do not"],
)
def test_plans_compared_by_more_or_by_less_are_caught(monkeypatch, tmp_path, edit):
    plant(monkeypatch, wire, "_binding", edit)
    with pytest.raises(AssertionError):
        check_words_alone_are_free(tmp_path / "f")


def test_accesses_that_stand_in_another_order_are_caught(monkeypatch, tmp_path):
    plant(monkeypatch, wire, "plan_digest", ("plan.touches", "sorted(plan.touches, key=str)"))
    with pytest.raises(AssertionError):
        check_words_alone_are_free(tmp_path / "f")


def test_a_refusal_is_logged_once_a_run(tmp_path, caplog):
    made = federation(tmp_path, cap=5.0)
    silo = Silo(name="owner-0", data=str(made.files[1]), plan=made.plan, ledger=made.book(1).path, folder=tmp_path)
    for run in ("one", "one", "another"):
        silo.answer(Message({"version": VERSION, "plan": plan_digest(made.plan), "ask": "elsewhere", "run": run}, {}))
    assert len(caplog.records) == 2
