"""What owners say in public, and what is theirs alone to allow: how many units they have, and another charge."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
import torch
from owned_cases import CASES, SILOS, everything
from owned_cases import dealt as files_of
from owned_cases import planned as case_of
from owners import Federation, dealt, plan_of, with_owners
from parted import BOTH, LEARNED, SEVERAL, people
from planting import plant

from doublure.errors import DoublureError, InputError, NotAsPriced, SettingError
from doublure.federated import clients, declared
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.federated.wire import VERSION, plan_digest
from doublure.private.owners import Owner
from doublure.schema import Schema
from doublure.support.messages import Message

PLANNED = Schema.parse(with_owners(SEVERAL))  # units: 300
TO_LEARN = Schema.parse(with_owners(LEARNED, 2))


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


# -- how many units ----------------------------------------------------------------------------------------------------


def test_what_is_declared_bounds_and_else_the_plans_units_do():
    assert declared.unit_bounds({"a": 100, "b": None}, PLANNED, required=False) == {"a": 100, "b": 300}
    assert declared.unit_bounds({"a": 300}, PLANNED, required=True) == {"a": 300}
    huge = PLANNED.model_copy(update={"units": 2**50})
    assert declared.unit_bound(None, huge) == declared.unit_bound(2**40, huge) == declared.MOST


def test_units_that_are_to_be_learned_bound_nobody_who_declares_nothing():
    """The count that is bought would come out too small: the magnitude may be out by ten."""
    assert declared.unit_bounds({"a": None, "b": 20}, TO_LEARN, required=False) == {"a": declared.MOST, "b": 20}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"a": 301}, "client a: declares more units than the plan has"),
        ({"a": 10**5000}, "client a: declares more units than the plan has"),
        ({"a": 0}, "client a: declares units that are no whole number above zero"),
        ({"a": True}, "no whole number"),
        ({"a": "300"}, "no whole number"),
        ({"a": 3.0}, "no whole number"),
        ({"a": 200, "b": 101}, "clients: declare 301 units together, more than the plan has"),
        ({"a": 100, "b": None}, "client b: does not declare its units"),
    ],
)
def test_units_that_there_cannot_be_are_refused_by_name(told, said):
    with pytest.raises(InputError, match=said):
        declared.unit_bounds(told, PLANNED, required=True)


def test_one_owner_has_no_more_units_than_the_plan_though_two_share_them():
    with pytest.raises(InputError, match="client a: declares more units than the plan has"):
        declared.unit_bounds({"a": TO_LEARN.public_units + 1}, TO_LEARN, required=True)


def check_no_sum_of_counts_goes_round():
    """Noise stays within 64 bits: of a sum that goes round, the sign would say exactly what the others have counted."""
    unit = TO_LEARN.unit.model_copy(update={"max_records": 2**29})  # with two owners each
    many = TO_LEARN.model_copy(update={"unit": unit})
    assert len(declared.unit_bounds({"a": 20, "b": 20}, many, required=False)) == 2
    with pytest.raises(InputError, match="may have more records together than whole numbers of 64 bits count"):
        declared.unit_bounds({"a": None, "b": None}, many, required=False)


def test_no_sum_of_counts_goes_round():
    check_no_sum_of_counts_goes_round()


def test_a_sum_of_counts_that_may_go_round_is_caught(monkeypatch):
    bound = "sum(bounds.values()) * schema.most_records >= _COUNTED"
    plant(monkeypatch, declared, "unit_bounds", (bound, "False"))
    with pytest.raises(pytest.fail.Exception):
        check_no_sum_of_counts_goes_round()


BELIEVED = {
    "what is no number": ("require_declarable", "type(units) is not int or units < 1", {"a": 0}),
    "more than the plan has, together": ("unit_bounds", "together > most", {"a": 200, "b": 101}),
    "nothing, where shares count": ("unit_bounds", "required and units is None", {"a": 100, "b": None}),
}  # fmt: skip


@pytest.mark.parametrize("mutant", BELIEVED)
def test_a_coordinator_that_believes_all_that_is_declared_is_caught(monkeypatch, mutant):
    function, check, told = BELIEVED[mutant]
    plant(monkeypatch, declared, function, (check, "False"))
    with pytest.raises(pytest.fail.Exception):
        test_units_that_there_cannot_be_are_refused_by_name(told, "declare")


def test_a_coordinator_that_believes_one_owner_to_have_all_units_twice_is_caught(monkeypatch):
    plant(monkeypatch, declared, "require_declarable", ("units > schema.public_units", "False"))
    with pytest.raises(pytest.fail.Exception):
        test_one_owner_has_no_more_units_than_the_plan_though_two_share_them()


def test_a_unit_of_two_owners_may_be_declared_by_both():
    most = TO_LEARN.public_units
    assert declared.unit_bounds({"a": most, "b": most}, TO_LEARN, required=True) == {"a": most, "b": most}
    with pytest.raises(InputError, match="together"):
        declared.unit_bounds({"a": most, "b": most, "c": 1}, TO_LEARN, required=True)


def test_a_file_declares_clients_units(tmp_path):
    (tmp_path / "units.yaml").write_text("north.csv: 2500\nsouth.csv: 1500\n")
    units = declared.read(tmp_path / "units.yaml")
    assert units == {"north.csv": 2500, "south.csv": 1500}
    declared.refuse_unknown_clients(units, ["north.csv", "south.csv", "west.csv"])
    with pytest.raises(SettingError, match="is no client"):
        declared.refuse_unknown_clients(units, ["north.csv"])
    (tmp_path / "units.yaml").write_text("[2500, 1500]\n")
    with pytest.raises(InputError, match="names no clients"):
        declared.read(tmp_path / "units.yaml")


def federation(folder, schema=SEVERAL, **more):
    by = "who" if "id: who" in schema else None
    return Federation(folder, plan_of(with_owners(schema)), dealt(people(300), folder / "clients", 3, by), **more)


def test_what_is_declared_is_told_before_anything_is_charged_and_is_kept(monkeypatch, tmp_path):
    made = federation(tmp_path, units=[60, 50, None])
    made.fitted(monkeypatch)
    told = json.loads((tmp_path / "run" / "run.json").read_text())["federated"]
    assert told["units"] == {"owner-0": 60, "owner-1": 50, "owner-2": 300}


@pytest.mark.parametrize("units", [[60, 50, 301], [200, 100, 1]])
def test_units_beyond_the_plans_refuse_the_run_and_nothing_is_charged(monkeypatch, tmp_path, units):
    made = federation(tmp_path, units=units)
    with pytest.raises(InputError, match="than the plan has"):
        made.fitted(monkeypatch)
    assert [book.spent.epsilon for book in (made.ledger, *map(made.book, made.files))] == [0] * 4


def test_a_bayesian_plan_has_every_owner_declare_its_units(monkeypatch, tmp_path):
    case = "bayesgan on tables"
    plan = case_of(case)
    files = files_of(tmp_path / "clients", everything(CASES[case][1]), SILOS)
    made = Federation(tmp_path, plan, files, units=[9, None])
    with pytest.raises(InputError, match="client owner-002: does not declare its units"):
        made.fitted(monkeypatch)
    assert made.ledger.spent.epsilon == 0


def check_no_owner_takes_anothers_name(patch, folder):
    """Two that collude make the coordinator number a third, and one is called so already: its share would count."""

    def change(words, node, answer):
        called = {2: "owner-001", 3: "owner-001 (1)"}.get(node)
        told = {"units": {2: 4, 3: 20}[node]} if called and words["ask"] == "hello" else {}
        return [(node, Message({**answer.words, **({"name": called} if called else {}), **told}, answer.arrays))]

    case = "bayesgan on tables"
    files = files_of(folder / "clients", everything(CASES[case][1]), [[*range(20)], [20, 21], [22, 23]])
    made = Federation(folder, case_of(case), files, units=[20, 2, 2], change=change)
    with pytest.raises(InputError, match="declare 44 units together, more than the plan has"):
        made.fitted(patch)
    assert made.clients.names == ["owner-001 (1)", "owner-001 (1) (3)", "owner-001 (2)"]
    assert [book.spent.epsilon for book in (made.ledger, *map(made.book, made.files))] == [0] * 4


def test_no_owner_takes_the_name_of_another(monkeypatch, tmp_path):
    check_no_owner_takes_anothers_name(monkeypatch, tmp_path)


def test_owners_of_one_name_are_caught(monkeypatch, tmp_path):
    plant(monkeypatch, clients, "_told_apart", ("len({*found.values()}) == len(found)", "True"))
    with pytest.raises((AssertionError, pytest.fail.Exception, NotAsPriced)):  # the core adds nobody twice, either
        check_no_owner_takes_anothers_name(monkeypatch, tmp_path)


def check_no_owner_adds_more_than_its_units(patch, folder):
    """One owner of many adds to one count what half of all could, and is within the plan's units all the same."""

    def change(words, node, answer):
        if node == 2 and words["ask"] == "counts":
            answer.arrays["total"][:] = 150 * made.plan.schema.most_records
        return [(node, answer)]

    made = federation(folder, units=[100, 50, 100], change=change)
    with contextlib.suppress(DoublureError):
        made.fitted(patch)
    rounds = made.clients.rounds
    assert {each.missed.get("owner-1") for each in rounds if each.missed} == {"counts more than its units can have"}


def test_no_owner_adds_more_than_its_units(monkeypatch, tmp_path):
    check_no_owner_adds_more_than_its_units(monkeypatch, tmp_path)


def test_a_coordinator_that_forgets_what_was_declared_is_caught(monkeypatch, tmp_path):
    plant(
        monkeypatch, Clients, "check", ("found[node].words.get(wire.UNITS)", "None"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check_no_owner_adds_more_than_its_units(monkeypatch, tmp_path)


def check_nobody_is_refused(patch, folder, schema):
    """With many times as many units as are declared, of which one more or less would decide."""
    made = federation(folder, schema, units=[3, 3, 3])
    syn = made.fitted(patch)
    assert made.lines == []
    assert not any(each["missed"] for each in syn.run["federated"]["rounds"])


@pytest.mark.parametrize("schema", [SEVERAL, BOTH])
def test_an_owner_with_more_units_than_it_declares_is_not_refused(monkeypatch, tmp_path, schema):
    check_nobody_is_refused(monkeypatch, tmp_path, schema)


def test_an_owner_that_is_held_against_other_units_than_its_own_is_caught(monkeypatch, tmp_path):
    plant(
        monkeypatch, Silo, "_take", ("declared.unit_bound(self._units, self._plan.schema)",
                                     "declared.unit_bound(None, self._plan.schema)"),
    )  # fmt: skip
    with pytest.raises((AssertionError, DoublureError)):
        check_nobody_is_refused(monkeypatch, tmp_path, SEVERAL)


def check_steps_stay_within(patch, folder):
    """A critic's, likewise: of nine and fifteen units, of which each owner declares one."""
    plan, sums = case_of("dpgan on images"), []
    files = files_of(folder / "clients", everything(CASES["dpgan on images"][1]), SILOS)
    made = Federation(folder, plan, files, units=[1, 1])

    def change(words, node, answer):
        if words["ask"] == "step":
            sums.append(np.linalg.norm(answer.arrays["total"].astype(float)) / plan.max_grad_norm)
        return [(node, answer)]

    made.post.change = change
    made.fitted(patch)
    assert made.lines == []
    assert len(sums) == 2 * plan.steps
    assert 0.999 < max(sums) <= 1


def test_an_owner_with_more_units_than_it_declares_keeps_its_steps_within(monkeypatch, tmp_path):
    check_steps_stay_within(monkeypatch, tmp_path)


def test_an_owner_whose_steps_are_as_long_as_they_come_out_is_caught(monkeypatch, tmp_path):
    plant(monkeypatch, Owner, "answer", ("not chosen", "False"))
    with pytest.raises((AssertionError, DoublureError)):
        check_steps_stay_within(monkeypatch, tmp_path)


# -- another charge for one plan ---------------------------------------------------------------------------------------


class Asking:
    """A coordinator that begins one run after the other, of one owner whose ledger would pay for three."""

    def __init__(self, folder, **more):
        self.made = Federation(folder, plan_of(with_owners(LEARNED)), dealt(people(60), folder / "clients", 1, "who"),
                               cap=60.0, **more)  # fmt: skip

    def asked(self, run, ask, **words):
        silo = self.made.owner(1)  # a process of its own for each message
        said = {"version": VERSION, "plan": plan_digest(self.made.plan), "run": run, "nonce": "n", "ask": ask}
        return silo.answer(Message({**said, **words}, {})).words["refused"]

    def run(self, run):
        fact = {"path": self.made.plan.touches[0].path, "access": 0}
        return [self.asked(run, "hello"), self.asked(run, "begin"), self.asked(run, "fact", **fact)]

    @property
    def spent(self):
        return self.made.book(1).spent.epsilon


UNPAID = "its ledger does not pay for the plan"


def check_one_plan_is_charged_once(folder):
    asking = Asking(folder)
    assert asking.run("A") == [None] * 3
    assert asking.run("A") == [None] * 3  # which goes on, and is charged no more
    for run in "BC":
        assert asking.asked(run, "hello") == UNPAID
        assert asking.asked(run, "begin") == UNPAID
        assert asking.asked(run, "fact", access=0) != UNPAID
    assert asking.spent == 20.0


def test_an_owner_is_charged_for_a_plan_once(tmp_path):
    check_one_plan_is_charged_once(tmp_path)


def test_an_owner_that_allows_it_is_charged_again(tmp_path):
    asking = Asking(tmp_path, again=True)
    assert asking.run("A") == asking.run("B") == [None] * 3
    assert asking.spent == 40.0


CHARGED_AGAIN = {
    "a run is charged again": ("_begin", ("again=self._again", "again=True")),
    "who asks is told too late": ("_hello", ("not self._again", "False")),
}


@pytest.mark.parametrize("mutant", CHARGED_AGAIN)
def test_an_owner_that_lets_itself_be_charged_again_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, Silo, *CHARGED_AGAIN[mutant])
    with pytest.raises(AssertionError):
        check_one_plan_is_charged_once(tmp_path)
