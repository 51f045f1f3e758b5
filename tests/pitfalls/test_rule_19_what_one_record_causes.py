"""Rule 19: whatever one record can cause is inside the guarantee, or ends the run before anything is given out.

Where records stay with several owners, an owner that cannot read one of its records, crashes over it or takes too long
must not take all of its other records out of a release that goes out all the same.
"""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pandas as pd
import pytest
import torch
from owned_cases import CASES, SILOS, everything, planned
from owned_cases import dealt as dealt_to
from owners import HEAD, Federation, dealt, plan_of, with_owners
from parted import BOTH, SEVERAL, check_equal, people
from planting import plant

import doublure as db
from doublure.errors import InputError, RunFolderError, SchemaError
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.guarantee import ANY_DATA, ENDED, REFUSALS
from doublure.ledger import Ledger
from doublure.planning import Plan, planner
from doublure.private.mechanism import Mechanism
from doublure.private.owner_partitions import _OwnerExchange
from doublure.releasing.generator import publish
from doublure.releasing.verifying import verify
from doublure.support.messages import Message

UNITS = f"""
doublure: 1
{HEAD}
units: {{learn: 1.0, magnitude: 600}}
columns:
  a: {{type: category, values: [u, v], missing: false}}
  c: {{type: integer, bounds: [0, 9], missing: false}}
"""
ROWS = b"a,c\n" + b"u,1\nv,2\n" * 100


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


# -- a record that does not fit ----------------------------------------------------------------------------------------


class Stop(Exception):
    """The first releases were seen."""


def sums_of(patch, folder, record, releases=2):
    """Return the first exact sums of a federation of three owners with 200 units each, one with a record more."""
    (folder / "clients").mkdir(parents=True)
    for number in range(3):
        (folder / "clients" / f"s{number}.csv").write_bytes(ROWS + (record if number == 1 else b""))
    made, sums = Federation(folder, plan_of(UNITS), sorted((folder / "clients").iterdir())), []
    noised = Mechanism._noised

    def seen(mechanism, answer, access):
        sums.append(answer)
        if len(sums) == releases:
            raise Stop
        return noised(mechanism, answer, access)

    with patch.context() as inner, contextlib.suppress(Stop):
        inner.setattr(Mechanism, "_noised", seen)
        made.fitted(inner)
    return sums


def check_moves_by_one_unit(patch, folder, record):
    """All that is released first: how many units there are, and counts of single columns."""
    before, after = (sums_of(patch, folder / way, more) for way, more in (("without", b""), ("with", record)))
    assert [len(sums) for sums in (before, after)] == [2, 2]
    assert before[0].total.tolist() == [600]
    assert after[0].total.tolist() == [601]
    assert np.abs(after[1].total - before[1].total).sum() == after[1].sensitivity.l1 > 1  # a cell of each table


RECORDS = {"an unlisted value": b"ZZZ,1\n", "text among numbers": b"u,many\n", "nothing": b",\n"}
UNREADABLE = {"a byte that is no UTF-8": b"\xff,3\n", "a ragged line": b"u,3,4\n", "a short line": b"u\n"}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_that_does_not_fit_moves_a_release_by_one_unit(monkeypatch, tmp_path, record):
    check_moves_by_one_unit(monkeypatch, tmp_path, RECORDS[record])


@pytest.mark.parametrize("record", UNREADABLE)
def test_a_record_that_cannot_be_read_moves_a_release_by_one_unit(monkeypatch, tmp_path, record):
    check_moves_by_one_unit(monkeypatch, tmp_path, UNREADABLE[record])


def test_with_owners_what_does_not_fit_is_coerced_and_the_plan_says_so(tmp_path):
    plan = plan_of(UNITS)
    assert plan.schema.misfit == "coerce"
    assert plan.to_json()["schema"]["misfit"] == "coerce"
    assert "misfit: coerce" in plan.schema.to_yaml()
    assert "Data that does not fit: coerce (misfit)" in plan.explain()
    assert "at most 1 has records of one person, and every owner that is asked has to be ready" in plan.explain()
    assert ANY_DATA in plan.guarantee.assumptions
    assert "no person has records with more than one owner" in plan.guarantee.assumptions
    assert ENDED in plan.guarantee.excluded
    assert REFUSALS not in plan.guarantee.excluded
    said = plan_of(UNITS.replace("units:", "misfit: coerce\nunits:"))
    assert said.schema_sha256 == plan.schema_sha256
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    bare = db.Schema.parse(UNITS.replace("{max_silos: 1}", "{}"))
    assert bare == plan.schema
    assert db.Schema.parse(UNITS.replace("federated: {max_silos: 1}\n", "")).misfit == "refuse"


def check_refuse_is_refused():
    schema = db.Schema.parse(UNITS.replace("units:", "misfit: refuse\nunits:"))
    assert db.Schema.from_plain(schema.to_plain()).misfit == "refuse"  # as it was said
    with pytest.raises(SchemaError, match=r"misfit: is refuse.*write misfit: coerce"):
        db.plan(schema, method="statistics", epsilon=20.0, delta=1e-4, accountant="rdp")


def test_a_plan_with_owners_does_not_refuse_what_does_not_fit():
    check_refuse_is_refused()


def test_a_plan_that_lets_owners_refuse_is_caught(monkeypatch):
    plant(monkeypatch, planner, "assemble", ('schema.federated is not None and schema.misfit == "refuse"', "False"))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_refuse_is_refused()


# -- an owner that fails after the charge ------------------------------------------------------------------------------


def failing(ask, how, node=2):
    """Return a federation's change: an owner fails at the first question of a kind, and is back afterwards."""
    done = []

    def change(words, asked, answer):
        if asked != node or words["ask"] != ask or done:
            return [(asked, answer)]
        done.append(words)
        return {
            "refuses": [(asked, Message({**answer.words, "refused": "its data does not fit the schema"}, {}))],
            "is late": [],
            "is garbled": [(asked, None)],
            "answers nonsense": [(asked, Message(answer.words, {"total": np.array([-1])}))],
        }[how]

    change.done = done
    return change


def crashing(patch, ask, name):
    """Let an owner's program end with an error at the first question of a kind; return what it was asked."""
    done, answered = [], Silo._answer

    def crashes(silo, said):
        if said.words["ask"] == ask and silo.name == name and not done:
            done.append(said.words)
            raise MemoryError
        return answered(silo, said)

    patch.setattr(Silo, "_answer", crashes)
    return done


TABLES = {"begin", "schema", "fact", "counts"}


def federation(folder, ask):
    folder.mkdir(exist_ok=True)
    if ask in TABLES:
        schema = BOTH if ask in {"fact", "schema"} else SEVERAL  # a round on learned facts, if there are any
        return Federation(folder, plan_of(with_owners(schema)), dealt(people(120), folder / "clients", 3, "who"))
    case = {"sums": "statistics on images", "step": "dpgan on images"}[ask]
    groups = [SILOS[0][:4], SILOS[0][4:], SILOS[1]]
    return Federation(
        folder, planned(case, accountant="rdp"), dealt_to(folder / "clients", everything(CASES[case][1]), groups)
    )


def price_of(made):
    return pytest.approx((made.plan.worst_case or (made.plan.epsilon,))[0])


def charged(made):
    """Return what the coordinator's ledger is charged, and each owner's."""
    books = [made.ledger, *map(made.book, made.files)]
    for book in books:
        book.verify()
    return [book.spent.epsilon for book in books]


def check_the_run_ends(patch, folder, ask, how):
    """Nothing is drawn of what was asked, nothing is released, and what was charged is charged once."""
    made, drawn, noised = federation(folder, ask), [], Mechanism._noised
    name = made.files[2].stem

    def counted(mechanism, answer, access):
        drawn.append(access)
        return noised(mechanism, answer, access)

    with patch.context() as inner:
        if how == "crashes":
            done = crashing(inner, ask, name)
        else:
            made.post.change = failing(ask, how)
            done = made.post.change.done
        inner.setattr(Mechanism, "_noised", counted)
        message = made.ended(inner).message
    assert len(done) == 1
    assert message.startswith(name)
    assert "the run was stopped" in message
    assert bool(drawn) == (ask == "schema")  # of others it was the first that is drawn for
    with pytest.raises(RunFolderError):
        db.release(db.load(folder / "run"), folder / "bundle", n=5)
    assert not (folder / "bundle").exists()
    if ask == "begin":  # nobody was asked for a number
        assert not (folder / "run").exists()
        assert charged(made) == [0, 0, 0, 0]
    else:
        assert json.loads((folder / "run" / "run.json").read_text())["status"] == "interrupted"
        assert charged(made)[:2] == [price_of(made)] * 2
        assert all(each in (0, price_of(made)) for each in charged(made))
    return made


ENDS = [
    *(("counts", how) for how in ("refuses", "is late", "is garbled", "answers nonsense", "crashes")),
    ("begin", "crashes"), ("begin", "refuses"), ("schema", "is late"),
    ("fact", "refuses"),
    ("sums", "answers nonsense"), ("step", "is late"), ("step", "crashes"),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "how"), ENDS)
def test_an_owner_that_fails_ends_the_run_which_then_goes_on(monkeypatch, tmp_path, ask, how):
    made = check_the_run_ends(monkeypatch, tmp_path, ask, how)
    made.post.change = lambda words, node, answer: [(node, answer)]
    syn = made.fitted(monkeypatch, resume=(tmp_path / "run").exists())
    assert len(syn.sample(3)) > 0
    assert charged(made) == [price_of(made)] * 4  # once, whatever failed
    if (ask, how) == ("counts", "crashes"):
        check_equal(federation(tmp_path / "whole", ask).fitted(monkeypatch), syn)  # as if nobody had failed


AT_THE_END = {
    "nothing": [],
    "something unreadable": [(2, None)],
    "no word of its charge": [(2, {"charged": None})],
    "that it stays": [(2, {"charged": True})],
}


def check_the_run_is_kept(patch, folder, ended):
    """One may have been charged, and has not said that it was closed at zero."""
    made = federation(folder, "begin")

    def change(words, node, answer):
        if node != 2 or words["ask"] not in ("begin", "end"):
            return [(node, answer)]
        said = AT_THE_END[ended] if words["ask"] == "end" else []
        return [(node, more and Message({**answer.words, **more}, {})) for node, more in said]

    made.post.change = change
    message = str(made.ended(patch))
    assert "nothing was drawn yet, and its charge is kept" in message
    assert "go on with --resume when that owner is back" in message
    assert charged(made)[0] == price_of(made)
    return made


@pytest.mark.parametrize("ended", AT_THE_END)
def test_an_owner_whose_process_is_gone_keeps_the_run_and_its_charge(monkeypatch, tmp_path, ended):
    made = check_the_run_is_kept(monkeypatch, tmp_path, ended)
    made.post.change = lambda words, node, answer: [(node, answer)]
    assert len(made.fitted(monkeypatch, resume=True).sample(3)) == 3
    assert charged(made) == [price_of(made)] * 4


THROWN_AWAY = {
    "nothing": ("closed >= self._charged", "True"),
    "something unreadable": ("closed >= self._charged", "closed"),
    "no word of its charge": ("said.words.get(CHARGED) is False", "said.words.get(CHARGED) is not True"),
    "that it stays": ("said.words.get(CHARGED) is False", "CHARGED in said.words"),
}


@pytest.mark.parametrize("ended", THROWN_AWAY)
def test_a_run_that_is_thrown_away_though_an_owner_may_be_charged_is_caught(monkeypatch, tmp_path, ended):
    plant(monkeypatch, Clients, "release_charges", THROWN_AWAY[ended])
    with pytest.raises(AssertionError):
        check_the_run_is_kept(monkeypatch, tmp_path, ended)


def check_nobody_takes_a_present_owners_place(patch, folder):
    """A name comes back with another node only where its own is gone: else one party would answer for another."""
    made = federation(folder, "counts")

    def change(words, node, answer):
        if words["ask"] == "begin":
            made.post.owners.setdefault(4, made.owner(1))
        return [(node, answer)]

    made.post.change = change
    made.fitted(patch)
    assert {node for _, node in made.post.asked} == {1, 2, 3}


def test_nobody_takes_a_present_owners_place(monkeypatch, tmp_path):
    check_nobody_takes_a_present_owners_place(monkeypatch, tmp_path)


def test_a_newcomer_in_a_present_owners_place_is_caught(monkeypatch, tmp_path):
    plant(monkeypatch, Clients, "_welcome_back", ("node not in there", "True"))
    with pytest.raises(AssertionError):
        check_nobody_takes_a_present_owners_place(monkeypatch, tmp_path)


def test_a_run_does_not_go_on_without_an_owner_that_it_began_with(monkeypatch, tmp_path):
    made = federation(tmp_path, "counts")
    made.post.change = failing("counts", "is late")
    made.ended(monkeypatch)
    before, gone = charged(made), made.post.owners.pop(2)
    with pytest.raises(InputError, match=r"client owner-1: is not there, and the run began with it; go on with"):
        made.fitted(monkeypatch, resume=True)
    assert charged(made) == before
    made.post.owners |= {2: gone, 4: made.owner(3)}
    made.post.owners[4].name = "a newcomer"
    syn = made.fitted(monkeypatch, resume=True)
    assert syn.run["owners"] == {"answered": 3, "of": 3}
    assert not any(node == 4 for ask, node in made.post.asked if ask != "hello")


MUTANTS = {
    "a coordinator that goes on": (Clients, "_failed", ("this.binding and not self._one_unit", "False")),
    "an end that binds nobody": (Clients, "_round", ("ask not in (HELLO, HEADER, END)", "False")),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_run_that_goes_on_without_an_owner_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    with pytest.raises(AssertionError):
        check_the_run_ends(monkeypatch, tmp_path, "begin", "crashes")


def test_a_sum_without_an_owner_is_caught(monkeypatch, tmp_path):
    """Both the coordinator's rounds and the core see to it."""
    plant(monkeypatch, *MUTANTS["a coordinator that goes on"])
    plant(monkeypatch, _OwnerExchange, "completed", ("missing and not one_unit", "False"))
    with pytest.raises(AssertionError):
        check_the_run_ends(monkeypatch, tmp_path, "counts", "crashes")


# -- an owner that is one unit -----------------------------------------------------------------------------------------


def devices(folder, units):
    """Return a federation of owners that are one unit each, with up to two records."""
    frame = people(20)
    frame["who"] = [f"p{row // 2}" for row in range(20)]
    frame = frame[frame["who"].isin([f"p{unit}" for unit in units])]
    files = dealt(frame, folder / "clients", 10, "who")
    return Federation(folder, plan_of(with_owners(SEVERAL)), [file for file in files if len(pd.read_csv(file))])


@pytest.mark.parametrize("ask", ["begin", "counts"])
def test_a_single_unit_that_fails_counts_for_zero_and_nothing_published_tells_it(monkeypatch, tmp_path, ask):
    totals, cards = [], []
    for way, units in (("failing", range(10)), ("without", [unit for unit in range(10) if unit != 7])):
        folder = tmp_path / way
        folder.mkdir()
        made, sums, noised = devices(folder, units), [], Mechanism._noised
        with monkeypatch.context() as inner:
            if way == "failing":
                answered = Silo._answer

                def fails(silo, said, answered=answered):
                    if said.words["ask"] == ask and silo.name == "owner-7":
                        raise MemoryError
                    return answered(silo, said)

                inner.setattr(Silo, "_answer", fails)

            def seen(mechanism, answer, access, sums=sums, noised=noised):
                sums.append(np.asarray(answer.total).copy())
                return noised(mechanism, answer, access)

            inner.setattr(Mechanism, "_noised", seen)
            syn = made.fitted(inner, one_unit=True)
        totals.append(sums)
        cards.append(db.release(syn, folder / "bundle", n=5, seed=1).card["owners"])
        for path in (folder / "bundle").rglob("*"):
            assert b"owner-" not in (path.read_bytes() if path.is_file() else b"")
    assert len(totals[0]) == len(totals[1]) > 1
    assert all(np.array_equal(*pair) for pair in zip(*totals, strict=True))  # a neighbour's
    assert cards == [{"answered": 10, "of": 10}, {"answered": 9, "of": 9}]  # who was asked, and not who failed


# -- how many owners answered ------------------------------------------------------------------------------------------

NAMES = ("Charite", "Kantonsspital", "Rigshospitalet")


def check_the_bundle_names_nobody(patch, folder):
    """Neither a bundle of rows nor a generator says who took part; both say how many of how many."""
    folder.mkdir(exist_ok=True)
    files = dealt(people(120), folder / "dealt", 3, "who")
    (folder / "clients").mkdir()
    named = [file.rename(folder / "clients" / f"{name}.csv") for file, name in zip(files, NAMES, strict=True)]
    syn = Federation(folder, plan_of(with_owners(SEVERAL)), named).fitted(patch)
    for name, made in (
        ("bundle", db.release(syn, folder / "bundle", n=5, seed=1, tables=True)),
        ("generator", publish(syn, folder / "generator")),
    ):
        assert made.card["owners"] == {"answered": 3, "of": 3}
        assert "of whom 3 of 3 answered" in made.page.read_text()
        for path in (folder / name).rglob("*"):
            content = path.read_bytes() if path.is_file() else b""
            assert not any(each.encode() in content for each in NAMES)
        verify(made.path, ledger=folder / "ledger")


def test_a_card_says_how_many_of_how_many_owners_answered_and_never_which(monkeypatch, tmp_path):
    check_the_bundle_names_nobody(monkeypatch, tmp_path)


NAMED = {
    "in place of how many": ("len(self._taking_part or ())", "[*(self._taking_part or ())]"),
    "beside": ("self._of", "[self._of, self.names]"),
}


@pytest.mark.parametrize("mutant", NAMED)
def test_a_card_that_names_owners_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, Clients, "public", NAMED[mutant])
    with pytest.raises(AssertionError):
        check_the_bundle_names_nobody(monkeypatch, tmp_path)


def test_a_card_of_records_in_one_place_says_nothing_of_owners(monkeypatch, tmp_path):
    files = dealt(people(120), tmp_path / "clients", 1, "who")
    ledger = Ledger.create(tmp_path / "ledger", dataset="all", epsilon=1000.0, delta=0.5)
    syn = db.fit(str(files[0]), plan_of(SEVERAL), ledger=ledger, out=tmp_path / "run")
    made = db.release(syn, tmp_path / "bundle", n=5)
    assert made.card["owners"] is None
    assert "owners" not in made.page.read_text()
