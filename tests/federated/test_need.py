"""How many owners have to be ready: public, and decided before a ledger is charged or anybody's data is opened."""

from __future__ import annotations

import pytest
import torch
from owners import Federation, dealt, plan_of, with_owners
from parted import SEVERAL, people
from planting import plant

import doublure as db
from doublure.errors import InputError, SchemaError
from doublure.federated import silo as silos
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.wire import VERSION, plan_digest
from doublure.support.messages import Message


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def schema_of(need):
    return with_owners(SEVERAL) if need is None else with_owners(SEVERAL).replace("1}", f"1, need: {need}}}")


def federation(folder, need, unready=2):
    """Return three owners, one of whom has another plan."""
    folder.mkdir(exist_ok=True)
    made = Federation(folder, plan_of(schema_of(need)), dealt(people(120), folder / "clients", 3, "who"))
    if unready:
        made.post.owners[unready] = made.owner(unready, plan_of(schema_of(need), 19.0))
    return made


def kinds(made):
    """Return what every ledger has recorded, the coordinator's first: a charge that was taken back shows, too."""
    return [[record.kind for record in book.entries] for book in (made.ledger, *map(made.book, made.files))]


UNTOUCHED = [["open"]] * 4


def check_too_few(patch, folder, need):
    made = federation(folder, need)
    with pytest.raises(InputError, match="nothing ran") as refused:
        made.fitted(patch)
    assert kinds(made) == UNTOUCHED
    assert {ask for ask, _ in made.post.asked} == {"hello"}
    assert not (folder / "run").exists()
    return str(refused.value)


@pytest.mark.parametrize("need", [None, 3, 4])
def test_fewer_than_are_needed_begin_nothing_and_nothing_is_charged(monkeypatch, tmp_path, need):
    said = check_too_few(monkeypatch, tmp_path, need)
    assert "owner-1" in said
    assert "has another plan" in said
    assert (f"2 of 3 are ready, and the schema needs {need} (federated.need)" in said) is (need is not None)


MUTANTS = {
    "what is needed is not looked at": ("ready >= (self._need or self._of)", "True"),
    "one fewer is enough": ("ready >= (self._need or self._of)", "ready + 1 >= (self._need or self._of)"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_run_of_too_few_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, Clients, "_refuse_too_few", MUTANTS[mutant])
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_too_few(monkeypatch, tmp_path, 3)


def test_a_run_that_counts_them_after_the_charge_is_caught(monkeypatch, tmp_path):
    plant(monkeypatch, Clients, "check", ("self._refuse_too_few(remedy)", "0"))
    read = Clients.read

    def late(clients):
        clients.rounds = clients.rounds[:1]
        clients._refuse_too_few("nothing ran")
        read(clients)

    monkeypatch.setattr(Clients, "read", late)
    with pytest.raises(AssertionError):
        check_too_few(monkeypatch, tmp_path, 3)


def test_who_is_not_ready_is_left_out_by_name_where_the_others_are_enough(monkeypatch, tmp_path):
    made = federation(tmp_path, 2)
    syn = made.fitted(monkeypatch)
    assert made.lines == ["owner-1 refused: it has another plan; it is left out, and 2 of 3 owners take part"]
    assert kinds(made)[2] == ["open"]
    assert {ask for ask, node in made.post.asked if node == 2} == {"hello"}
    released = db.release(syn, tmp_path / "bundle", n=5)
    assert released.card["owners"] == {"answered": 2, "of": 3}
    assert "of whom 2 of 3 answered" in released.page.read_text()


def test_who_was_left_out_does_not_come_in_later(monkeypatch, tmp_path):
    made = federation(tmp_path, 2)
    made.post.change = lambda words, node, answer: [] if words["ask"] == "counts" and node == 3 else [(node, answer)]
    made.ended(monkeypatch)
    made.post.owners[2], made.post.change = made.owner(2), lambda words, node, answer: [(node, answer)]
    syn = made.fitted(monkeypatch, resume=True)
    assert syn.run["owners"] == {"answered": 2, "of": 3}
    assert kinds(made)[2] == ["open"]


def test_who_was_invited_and_is_not_there_counts_among_all(monkeypatch, tmp_path):
    made = federation(tmp_path, 2, unready=0)
    del made.post.owners[2]
    clients = Clients(made.post, made.plan, invited=3)
    clients.check(made.plan.schema)
    assert clients.public == {"owners": {"answered": 2, "of": 3}}
    every = plan_of(schema_of(None))
    made.post.owners = {number: made.owner(number, every) for number in (1, 3)}
    with pytest.raises(InputError, match="2 of 3 are ready, and all are needed"):
        Clients(made.post, every, invited=3).check(every.schema)


def check_data_decides_nobody(patch, folder):
    """Data of another form refuses the run, though two of three are enough: a record might leave its owner out."""
    made = federation(folder, 2, unready=0)
    made.files[2].write_text("age\n1\n")
    with pytest.raises(InputError, match=r"client owner-1: refused: its data does not fit the schema; .*nothing ran"):
        made.fitted(patch)
    assert kinds(made) == UNTOUCHED


def test_what_is_wrong_with_somebodys_data_leaves_nobody_out(monkeypatch, tmp_path):
    check_data_decides_nobody(monkeypatch, tmp_path)


def test_data_that_leaves_its_owner_out_is_caught(monkeypatch, tmp_path):
    method = "methods.method(self._plan.method)"
    plant(monkeypatch, Silo, "_hello", (method, f"(self._source(), {method})[1]"))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_data_decides_nobody(monkeypatch, tmp_path)


def test_who_is_ready_is_said_before_the_data_is_opened(monkeypatch, tmp_path):
    made = federation(tmp_path, None, unready=0)

    def opened(*given):
        raise AssertionError("it was opened")

    monkeypatch.setattr(silos, "open_data", opened)
    said = {"version": VERSION, "plan": plan_digest(made.plan), "run": "one"}
    assert made.post.owners[1].answer(Message({**said, "ask": "hello"}, {})).words["refused"] is None
    assert made.post.owners[1].answer(Message({**said, "ask": "header"}, {})).words["refused"] == "it failed"


def test_need_is_a_whole_number_and_stands_in_the_plan():
    plan = plan_of(schema_of(2))
    assert plan.to_json()["schema"]["federated"] == {"max_silos": 1, "need": 2}
    assert "2 of them have to be ready" in plan.explain()
    assert "need" not in plan_of(schema_of(None)).to_json()["schema"]["federated"]
    for wrong in (0, "many", 1.5):
        with pytest.raises(SchemaError, match="federated: must be"):
            db.Schema.parse(schema_of(wrong))
