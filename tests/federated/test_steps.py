"""Clipped gradients of owners: equal to those of all records in one place, whoever tosses the coins."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
import torch
from owners import Federation, KeyedOwners, Numbered, keeping_sums, with_owners
from parted import SEVERAL, people
from planting import plant
from typer.testing import CliRunner

import doublure as db
from doublure.cli.main import app as cli
from doublure.errors import InputError, OwnerLost, SettingError
from doublure.federated.clients import Clients
from doublure.federated.silo import Silo
from doublure.ledger import Ledger
from doublure.private import accounting, owner_partitions
from doublure.private.owner_partitions import _OwnerExchange
from doublure.private.owners import Owner
from doublure.private.sampling import PoissonSampler
from doublure.support.messages import Message

UNITS, STEPS = 24, 4
TINY = {
    "steps": STEPS, "lot_size": 8, "width": 8, "critic_width": 8, "noise_width": 4, "generator_batch": 16,
    "checkpoints": 2, "max_grad_norm": 0.5,
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def plan():
    schema = with_owners(SEVERAL).replace("units: 300", f"units: {UNITS}")
    return db.plan(db.Schema.parse(schema), method="dpgan", epsilon=8.0, delta=1e-4, accountant="rdp", **TINY)


def units_of_several():
    """Return a table of units with one or two records, in the order of their units."""
    frame = people(UNITS * 2)
    return frame.assign(who=[f"p{row * UNITS // len(frame):03d}" for row in range(len(frame))]).drop(index=[3, 10])


def dealt(folder, groups):
    """Write one file an owner, and return the files and the numbers of the units in each."""
    frame, files, units = units_of_several(), [], {}
    folder.mkdir(parents=True)
    for number, group in enumerate(groups, start=1):
        files.append(folder / f"owner-{number:03d}.csv")
        frame[frame["who"].isin([f"p{unit:03d}" for unit in group])].to_csv(files[-1], index=False)
        units[number] = group
    return files, units


DEVICES = [[unit] for unit in range(UNITS)]
SILOS = [[*range(9)], [*range(9, UNITS)]]


def asked_of(patch, folder, plan, groups, change=None):
    """Fit with owners; return what came of it and each step's exact sum."""
    sums, keyed = [], KeyedOwners()
    files, units = dealt(folder / "clients", groups)
    made = Federation(folder, plan, files, change=change)
    made.post = Numbered(made.post.owners, made.post.change, keyed, units)
    with patch.context() as inner:
        keyed.install(inner)
        keeping_sums(inner, sums)
        inner.setattr("owners.replayed", lambda _: None)
        made.syn = made.fitted(inner, one_unit=groups is DEVICES)
    return made, sums


def in_one_place(patch, folder, plan):
    sums, keyed = [], KeyedOwners()
    ledger = Ledger.create(folder / "all.ledger", dataset="all", epsilon=1000.0, delta=0.5)
    with patch.context() as inner:
        keyed.install(inner)
        keeping_sums(inner, sums)
        db.fit(units_of_several(), plan, ledger=ledger, out=folder / "one", seed=1)
    return sums


def check_equal_to_one_place(patch, folder, plan, groups):
    one, (made, sums) = in_one_place(patch, folder, plan), asked_of(patch, folder, plan, groups)
    assert len(one) == len(sums) == STEPS
    for mine, theirs in zip(one, sums, strict=True):
        assert (mine.dtype, theirs.dtype) == (np.float32, np.float64)
        assert np.abs(mine).max() > 0
        assert np.abs(mine - theirs).max() <= 1e-6 * np.abs(mine).max()
    ran = [json.loads((folder / run / "executed.json").read_text()) for run in ("one", "run")]
    assert ran[0] == ran[1]
    assert made.lines == []
    return made


@pytest.mark.parametrize("groups", [DEVICES, SILOS], ids=["devices", "silos"])
def test_sums_are_those_of_all_records_in_one_place(monkeypatch, tmp_path, plan, groups):
    made = check_equal_to_one_place(monkeypatch, tmp_path, plan, groups)
    assert len(made.syn.sample(5)) == 5
    assert "is trusted with them" in " ".join(plan.guarantee.assumptions)
    assert any("nobody but whoever adds up knows who was asked" in said for said in plan.guarantee.assumptions)
    for number in made.files:
        asked = ("step", number) in made.post.asked
        assert made.book(number).spent.epsilon == (plan.epsilon if asked else 0.0)
        assert len(made.book(number).show()["runs"]) == 1


def check_the_price_where_lots_are_known_stands_beside(patch, tmp_path, plan):
    made, _ = asked_of(patch, tmp_path, plan, DEVICES)
    told = json.loads((tmp_path / "run" / "run.json").read_text())["federated"]
    (access,) = plan.training
    whole = accounting.GaussianEvent(noise_multiplier=access.event.noise_multiplier, steps=STEPS)
    expected = accounting.epsilon_of([whole], plan.delta, accountant="rdp")
    assert told["epsilon_where_lots_are_known"] == pytest.approx(expected)
    assert expected > plan.epsilon
    asked = sum(ask == "step" for ask, _ in made.post.asked)
    assert 0 < asked < STEPS * UNITS
    for way in ("bytes_sent", "bytes_received"):  # to how many a step went would tell how large its lot was
        assert told[way] == 0
    assert min(told["bytes_a_step"]) > 0


def test_the_price_where_lots_are_known_stands_beside(monkeypatch, tmp_path, plan):
    check_the_price_where_lots_are_known_stands_beside(monkeypatch, tmp_path, plan)


SIZES = {
    "sent": "self.bytes[0] += sum(array.nbytes for array in (arrays or {}).values()) * len(messages)",
    "received": "self.bytes[1] += sum(array.nbytes for array in said.arrays.values())",
}


@pytest.mark.parametrize("way", SIZES)
def test_a_size_that_tells_how_large_lots_were_is_caught(monkeypatch, tmp_path, plan, way):
    plant(monkeypatch, Clients, "_round", (f"if chosen is None:\n    {SIZES[way]}", SIZES[way]))
    with pytest.raises(AssertionError):
        check_the_price_where_lots_are_known_stands_beside(monkeypatch, tmp_path, plan)


@pytest.mark.skipif(
    importlib.util.find_spec("flwr") is None, reason="Flower is an extra: scripts/test --all installs it beside"
)
def test_the_command_prints_the_price_where_lots_are_known(tmp_path, plan):
    dealt(tmp_path / "clients", DEVICES)
    plan.save(tmp_path / "plan.json")
    Ledger.create(tmp_path / "ledger", dataset="all", epsilon=1000.0, delta=0.5)
    asked = [
        "federate", "simulate", "--one-unit", "--plan", str(tmp_path / "plan.json"), "--ledger",
        str(tmp_path / "ledger"), "--clients", str(tmp_path / "clients"), "-o", str(tmp_path / "run"),
    ]  # fmt: skip
    outcome = CliRunner().invoke(cli, asked, standalone_mode=False, catch_exceptions=False).return_value
    known = outcome.data["federated"]["epsilon_where_lots_are_known"]
    assert f"knows the lots: ε = {known:.3g} there" in outcome.text
    assert f"{UNITS} clients, " in outcome.text


def test_silos_toss_their_own_coins_and_are_all_asked(monkeypatch, tmp_path, plan):
    made, _ = asked_of(monkeypatch, tmp_path, plan, SILOS)
    assert sum(ask == "step" for ask, _ in made.post.asked) == STEPS * len(SILOS)
    assert "epsilon_where_lots_are_known" not in json.loads((tmp_path / "run" / "run.json").read_text())["federated"]


RATE = '1.0 if chosen else getattr(access.event, "sample_rate", 1.0)'
MUTANTS = {
    "all are asked": (
        _OwnerExchange, "__init__", ("PoissonSampler(len(owners), sample_rate).lot()", "range(len(owners))"),
    ),
    "an owner of a chosen unit tosses again": (Owner, "answer", (RATE, RATE.replace("1.0 if", "0.1 if"))),
    "a silo sends all": (Owner, "answer", (RATE, "1.0")),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_lot_is_caught(monkeypatch, tmp_path, plan, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    groups = SILOS if "silo" in mutant else DEVICES
    with pytest.raises((AssertionError, SettingError)):
        check_equal_to_one_place(monkeypatch, tmp_path, plan, groups)


# -- bad answers -------------------------------------------------------------------------------------------------------


def changed(how):
    """Return what makes the answers of device 3 and device 7 others."""

    def change(words, node, answer):
        if node not in (3, 7) or words["ask"] != "step" or answer.words["refused"]:
            return [(node, answer)]
        total = answer.arrays["total"]
        longer = 1.01 * TINY["max_grad_norm"] / np.linalg.norm(total.astype(np.float64))
        bad = {
            "gone": None,
            "long": (total * longer).astype(np.float32),
            "NaN": np.full_like(total, np.nan),
            "shape": total[:-1],
            "type": total.astype(np.float64),
        }[how]
        return [] if bad is None else [(node, Message(answer.words, {"total": bad}))]

    return change


REASONS = {
    "long": "is longer than what one unit may add", "NaN": "is not finite", "shape": "has another shape",
    "type": "is not in real numbers of 32 bits",
}  # fmt: skip


@pytest.fixture(scope="module")
def gone(plan, tmp_path_factory):
    """What comes of it when the two devices say nothing."""
    with pytest.MonkeyPatch.context() as patch:
        return asked_of(patch, tmp_path_factory.mktemp("gone"), plan, DEVICES, changed("gone"))


def check_refused(patch, folder, plan, how, gone):
    made, sums = asked_of(patch, folder, plan, DEVICES, changed(how))
    missing, without = gone
    assert any("did not answer" in line for line in missing.lines)
    assert made.lines
    assert all(REASONS[how] in line and line.startswith(("owner-003", "owner-007")) for line in made.lines)
    assert len(made.lines) == len(missing.lines)
    for mine, theirs in zip(sums, without, strict=True):
        assert np.array_equal(mine, theirs)  # it counts for zero
    assert made.ledger.spent.epsilon == plan.epsilon


@pytest.mark.parametrize("how", REASONS)
def test_a_bad_gradient_is_refused_by_name_and_counts_for_zero(monkeypatch, tmp_path, plan, gone, how):
    check_refused(monkeypatch, tmp_path, plan, how, gone)


def test_who_adds_what_is_too_long_is_caught(monkeypatch, tmp_path, plan, gone):
    plant(monkeypatch, owner_partitions, "_fault_of_gradient", ("l2_norm(total) <= longest", "True"))
    with pytest.raises(AssertionError):
        check_refused(monkeypatch, tmp_path, plan, "long", gone)


def test_an_owner_answers_each_step_once_and_no_more_than_its_plan_pays_for(monkeypatch, tmp_path, plan):
    files, _ = dealt(tmp_path / "clients", SILOS)
    made, asked = Federation(tmp_path, plan, files), []
    owner = made.post.owners[1]
    hear, owner._end = owner.answer, lambda said: Message()  # it goes on listening
    owner.answer = lambda said: (asked.append(said), hear(said))[1]
    made.fitted(monkeypatch)
    steps = [said for said in asked if said.words["ask"] == "step"]
    assert len(steps) == STEPS
    total, again = (hear(steps[-1]).arrays["total"].tolist() for _ in range(2))
    assert total == again  # what is kept: fresh coins would make it another answer
    before = hear(steps[-2])
    assert before.words["refused"] == "its plan does not pay for what was asked"
    assert before.arrays == {}
    moved = {name: values + 1 for name, values in steps[-1].arrays.items()}
    assert hear(Message(steps[-1].words, moved)).words["refused"] == "its plan does not pay for what was asked"
    for words in ({"step": STEPS}, {"step": -1}):
        assert hear(Message({**steps[-1].words, **words}, moved)).words["refused"] == (
            "its plan does not pay for what was asked"
        )
    assert hear(Message({**steps[-1].words, "step": True}, moved)).words["refused"] == "it could not"
    few = dict(list(moved.items())[1:])
    assert hear(Message(steps[-1].words, few)).words["refused"] == "its plan does not pay for what was asked"
    assert hear(Message({**steps[-1].words, "chosen": True}, moved)).words["refused"] == "it has more than one unit"


def test_owners_of_several_units_are_no_devices(monkeypatch, tmp_path, plan):
    files, _ = dealt(tmp_path / "clients", SILOS)
    made = Federation(tmp_path, plan, files)
    monkeypatch.setattr(PoissonSampler, "lot", lambda own: range(own._population))  # else nobody may be asked
    made.fitted(monkeypatch, one_unit=True)
    assert made.lines
    assert all("refused: it has more than one unit" in line for line in made.lines)


def test_a_unit_with_several_owners_is_refused_by_the_plan():
    schema = db.Schema.parse(with_owners(SEVERAL, 2))
    with pytest.raises(SettingError, match="cannot be asked of owners"):
        db.plan(schema, method="dpgan", epsilon=8.0, delta=1e-4, accountant="rdp", **TINY)


def test_an_owner_killed_between_steps_goes_on(monkeypatch, tmp_path, plan):
    files, _ = dealt(tmp_path / "clients", SILOS)
    made, seen = Federation(tmp_path, plan, files), []

    def change(words, node, answer):
        if words["ask"] == "step" and node == 1:
            seen.append(answer.words["refused"])
            made.post.owners[1] = made.owner(1)  # as after a kill: all that it knows is on disk
        return [(node, answer)]

    made.post.change = change
    made.fitted(monkeypatch)
    assert seen == [None] * STEPS
    assert made.lines == []
    assert made.book(1).spent.epsilon == plan.epsilon


class Gone(BaseException):
    """The coordinator's process ends."""


def check_a_coordinator_that_is_gone_while_it_asks_loses_no_step(patch, folder, plan):
    """One of two owners has answered a step: it is asked again in the same words, and that owner answers alike."""
    folder.mkdir()
    files, _ = dealt(folder / "clients", SILOS)
    made, told, left = Federation(folder, plan, files), [], [(STEPS - 1) * len(SILOS) + 1]

    def change(words, node, answer):
        if words["ask"] == "step":
            told.append(
                (
                    words["step"],
                    node,
                    answer.words["refused"],
                    b"".join(each.tobytes() for each in answer.arrays.values()),
                )
            )
            left[0] -= 1
            if left[0] == 0:
                raise Gone
        return [(node, answer)]

    made.post.change = change
    with pytest.raises(Gone):
        made.fitted(patch)
    assert [run.authorised for run in made.ledger._store.view().account.runs.values()] == [STEPS - 1]
    for number in made.files:
        made.post.owners[number] = made.owner(number)
    made.fitted(patch, resume=True)
    assert {refused for _, _, refused, _ in told} == {None}
    answers = {}
    for step, node, _, total in told:
        answers.setdefault((step, node), set()).add(total)
    assert all(len(each) == 1 for each in answers.values())
    assert len(answers) == len(SILOS) * STEPS
    assert len(told) == len(SILOS) * STEPS + 1  # one was asked again
    executed = json.loads((folder / "run" / "executed.json").read_text())
    assert [(each["drawn"], each["lost"]) for each in executed] == [(STEPS, 0)]
    for number in made.files:
        assert not (folder / f"at {number}" / "step.bin").exists()  # nothing exact stays


def test_a_coordinator_that_is_gone_while_it_asks_loses_no_step(monkeypatch, tmp_path, plan):
    check_a_coordinator_that_is_gone_while_it_asks_loses_no_step(monkeypatch, tmp_path / "run", plan)


@pytest.mark.parametrize(
    ("owner", "name", "change"),
    [
        (Clients, "_pending", ("return kept", "return question")),
        (Silo, "_kept_step", ("return Message(kept.words['said'], kept.arrays)", "return None")),
        (Owner, "repeats", ("self._authorise(self._accesses[number], self._step[number])", "return False")),
    ],
)
def test_a_step_that_is_asked_or_answered_otherwise_is_caught(monkeypatch, tmp_path, plan, owner, name, change):
    plant(monkeypatch, owner, name, change)
    with pytest.raises((AssertionError, OwnerLost)):
        check_a_coordinator_that_is_gone_while_it_asks_loses_no_step(monkeypatch, tmp_path / "run", plan)


def test_nobody_there_is_refused(tmp_path, plan):
    with pytest.raises(InputError, match="are none"):
        Federation(tmp_path, plan, []).fitted(pytest.MonkeyPatch())
