"""Sums, critics of stages and users' distances through owners: equal to those of all records in one place."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from owned_cases import CASES, CRITIC, DEVICES, PICTURES, SILOS, UNITS, dealt, declared, everything, planned
from owners import Federation, KeyedOwners, Mortal, Numbered, keeping_sums
from planting import plant
from tiers import by_tier

import doublure as db
from doublure.encode.choice import encoder_for
from doublure.errors import OwnerLost, SettingError
from doublure.federated.steps import NetworkPool, OwnerComputation
from doublure.ledger import Ledger
from doublure.private import owner_partitions
from doublure.private.owner_partitions import _OwnerExchange
from doublure.private.queries.distances import MeasuredDistances
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.support.messages import Message


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


class Seen:
    """Each release's exact total, and what each step's accountant was fed with."""

    def __init__(self, patch, keyed):
        self.sums, self.lengths = [], []
        keyed.install(patch)
        keeping_sums(patch, self.sums)
        charge = MeasuredDistances.charge

        def charged(measured, found, **more):
            self.lengths.append(sorted(found))
            charge(measured, found, **more)

        patch.setattr(MeasuredDistances, "charge", charged)


def in_one_place(patch, folder, plan, records):
    ledger = Ledger.create(folder / "all.ledger", dataset="all", epsilon=1000.0, delta=0.5)
    with patch.context() as inner:
        seen = Seen(inner, KeyedOwners())
        db.fit(records, plan, ledger=ledger, out=folder / "one", seed=1)
    return seen


def asked_of(patch, folder, plan, records, groups, change=None):
    keyed = KeyedOwners()
    units = declared(plan, groups)
    made = Federation(folder, plan, dealt(folder / "clients", records, groups), change=change, units=units)
    made.post = Numbered(made.post.owners, made.post.change, keyed, dict(enumerate(groups, start=1)))
    with patch.context() as inner:
        seen = Seen(inner, keyed)
        inner.setattr("owners.replayed", lambda _: None)
        made.syn = made.fitted(inner, one_unit=groups is DEVICES)
    return made, seen


def check_equal_to_one_place(patch, folder, plan, records, groups):
    one, (made, seen) = in_one_place(patch, folder, plan, records), asked_of(patch, folder, plan, records, groups)
    assert made.lines == []
    assert len(one.sums) == len(seen.sums) > 0
    rounded = False
    for mine, theirs in zip(one.sums, seen.sums, strict=True):
        assert mine.dtype.kind == theirs.dtype.kind
        assert np.abs(mine).max() > 0
        if mine.dtype.kind == "i" and not rounded:
            assert np.array_equal(mine, theirs)
        else:  # what follows from gradients differs by their last digits, and is summed up in steps of a fine grid
            assert np.abs(mine - theirs).max() <= (1e-6 if mine.dtype.kind == "f" else 1e-4) * np.abs(mine).max()
            rounded = True
    assert len(one.lengths) == len(seen.lengths)
    for mine, theirs in zip(one.lengths, seen.lengths, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-5)  # what a device sends was rounded, and is looked at rounded up
        assert all(one <= other * (1 + 1e-6) for one, other in zip(mine, theirs, strict=True))
    ran = [json.loads((folder / run / "executed.json").read_text()) for run in ("one", "run")]
    assert ran[0] == ran[1]
    return made, seen


@pytest.mark.parametrize("case", CASES)
def test_silos_sums_are_those_of_all_records_in_one_place(monkeypatch, tmp_path, case):
    plan = planned(case)
    made, seen = check_equal_to_one_place(monkeypatch, tmp_path, plan, everything(CASES[case][1]), SILOS)
    assert len(made.syn.sample(5)) > 0
    assert bool(seen.lengths) == case.startswith("bayesgan")
    worst = plan.worst_case or (plan.epsilon, plan.delta)
    for number in made.files:
        assert made.book(number).spent.epsilon == pytest.approx(worst[0])


@pytest.mark.parametrize("teacher", ["mixture", "critic"])
def test_silos_invert_their_records_by_themselves(monkeypatch, tmp_path, letters, teacher):
    text = letters.PRIVATE.replace("kind: images", "kind: images\nfederated: {max_silos: 1}")
    text = text.replace("units: 900", f"units: {UNITS}")
    own = {"lot_size": 16, "splits": 1, "labeller_share": 0.5, "labeller_steps": 2, "view_images": 100, "view_width": 6}
    plan = letters.plan(text, teacher=teacher, **own)
    records = {name: of[:UNITS] for name, of in letters.private.items()}
    check_equal_to_one_place(monkeypatch, tmp_path, plan, records, SILOS)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("bayesgan")])
def test_the_accountant_is_fed_with_users_distances(monkeypatch, tmp_path, case):
    plan, records = planned(case), everything(CASES[case][1])
    made, seen = check_equal_to_one_place(monkeypatch, tmp_path, plan, records, DEVICES)
    assert len(seen.lengths) == CRITIC["steps"]
    assert all(len(found) == UNITS and 0 < found[0] < 1 for found in seen.lengths)
    assert db.load(tmp_path / "one").guarantee == made.syn.guarantee


# -- a part of the units alone -----------------------------------------------------------------------------------------


def test_an_even_sample_of_devices_is_looked_at_and_only_the_lot_is_added(monkeypatch, tmp_path):
    case = "bayesgan on tables"
    plan = planned(case, distances=5)
    chosen = []
    some = owner_partitions._some

    def few(those, count):
        found = some(those, count)
        chosen.append((len(those), [*found]))
        return found

    monkeypatch.setattr(owner_partitions, "_some", few)
    made, seen = asked_of(monkeypatch, tmp_path, plan, everything(CASES[case][1]), DEVICES)
    monkeypatch.undo()
    lots = in_one_place(monkeypatch, tmp_path, plan, everything(CASES[case][1])).sums
    for mine, theirs in zip(lots, seen.sums, strict=True):
        assert np.abs(mine - theirs).max() <= 1e-6 * np.abs(mine).max()  # as if nobody else had been asked
    assert [len(found) for found in seen.lengths] == [5] * CRITIC["steps"]
    assert all(count == UNITS for count, _ in chosen[::2])
    asked = sum(ask == "step" for ask, _ in made.post.asked)
    assert 0 < asked < CRITIC["steps"] * UNITS


def silent(words, node, answer):
    """Leave steps of every device but one unanswered."""
    return [] if words["ask"] == "step" and node != 1 else [(node, answer)]


def test_a_device_that_is_missing_counts_as_the_longest_distance(monkeypatch, tmp_path):
    case, charged = "bayesgan on tables", []
    accountant = MeasuredDistances.accountant
    monkeypatch.setattr(
        MeasuredDistances,
        "accountant",
        lambda *given: (found := accountant(*given), charged.append(found))[0],
    )
    plan, records = planned(case), everything(CASES[case][1])
    _, seen = asked_of(monkeypatch, tmp_path, plan, records, DEVICES, silent)
    assert all(len(found) < UNITS for found in seen.lengths)
    estimate = charged[-1]
    monkeypatch.undo()
    longest = MeasuredDistances(estimate_settings(plan), noise_multiplier=plan.noise_multiplier, steps=CRITIC["steps"])
    for step, found in enumerate(seen.lengths):
        padded = [*found, *[1.0] * (UNITS - len(found))]
        longest.charge(padded, sample_rate=plan.sample_rate, step=step)
    mine = longest.accountant(CRITIC["steps"], plan.sample_rate).state()
    assert all(np.allclose(mine[name], theirs) for name, theirs in estimate.state().items())


def estimate_settings(plan):
    from doublure.private.queries.distances import DistanceSettings

    own = plan.settings
    return DistanceSettings(
        count=own.distances, orders=own.orders, gamma=own.gamma_share * plan.guarantee.delta_mu / own.steps,
        bound=own.bound, paper_literal=own.paper_literal, union=True,
    )  # fmt: skip


BAD_LENGTHS = {
    "above": np.array([0.5, 1.01]), "below": np.array([-0.1]), "NaN": np.array([np.nan]),
    "type": np.array([0.5], dtype=np.float32), "shape": np.array([[0.5]]), "missing": None,
}  # fmt: skip


def with_lengths(bad):
    def change(words, node, answer):
        if node != 2 or words["ask"] != "step":
            return [(node, answer)]
        arrays = {"total": answer.arrays["total"]} | ({} if bad is None else {"lengths": bad})
        return [(node, Message(answer.words, arrays))]

    return change


def check_refused(patch, folder, bad):
    case = "bayesgan on tables"
    files = dealt(folder / "clients", everything(CASES[case][1]), SILOS)
    message = Federation(folder, planned(case), files, change=with_lengths(BAD_LENGTHS[bad])).ended(patch).message
    assert message.startswith("owner-002 ")
    assert "length" in message or "how long" in message


@pytest.mark.parametrize("bad", BAD_LENGTHS)
def test_lengths_that_cannot_be_are_refused_by_name(monkeypatch, tmp_path, bad):
    check_refused(monkeypatch, tmp_path, bad)


def test_who_believes_any_length_is_caught(monkeypatch, tmp_path):
    plant(monkeypatch, owner_partitions, "_fault_of_lengths", ("lengths <= 1", "True"))
    with pytest.raises(AssertionError):
        check_refused(monkeypatch, tmp_path, "above")


# -- an owner's own plan decides ---------------------------------------------------------------------------------------


def test_an_owner_bounds_what_it_adds_by_its_own_plan(monkeypatch, tmp_path):
    case = "guided on images"
    plan = planned(case)
    made = Federation(tmp_path, plan, dealt(tmp_path / "clients", everything(PICTURES), SILOS))
    owner, asked = made.post.owners[1], []
    hear, owner._end = owner.answer, lambda said: Message()
    owner.answer = lambda said: (asked.append((said, hear(said))), asked[-1][1])[1]
    made.fitted(monkeypatch)
    sums = [pair for pair in asked if pair[0].words["ask"] == "sums"]
    assert len(sums) == 1 + 3  # features, and the labeller's steps
    question, answer = sums[-1]
    again = hear(question)
    assert np.array_equal(again.arrays["total"], answer.arrays["total"])  # whole numbers: the same, for nothing
    weights = question.arrays["summand.weights"]
    refused = "its plan does not pay for what was asked"
    for other in (
        Message({**question.words, "summand": {"name": "records", "words": {}}}, question.arrays),
        Message({**question.words, "view": {"name": "records", "words": {}}}, question.arrays),
        Message(question.words, question.arrays | {"summand.weights": weights + 1}),  # used up
        Message(question.words, question.arrays | {"summand.weights": weights[:, :-1].astype(np.float64)}),
        Message(question.words, question.arrays | {"view.directions": np.ones((3, 2), dtype=np.float32)}),
    ):
        assert hear(other).words["refused"] == refused
        assert hear(other).arrays == {}
    number = question.words["access"]
    for access in (-1, 99, True):
        assert hear(Message({**question.words, "access": access}, question.arrays)).arrays == {}
    assert number == len(plan.touches) - 1


def test_devices_add_no_more_to_a_sum_than_their_share(monkeypatch, tmp_path):
    case = "statistics on images"

    def change(words, node, answer):
        if node != 3 or words["ask"] != "sums":
            return [(node, answer)]
        return [(node, Message(answer.words, {"total": answer.arrays["total"] * 2}))]

    plan, records = planned(case), everything(PICTURES)
    made, seen = asked_of(monkeypatch, tmp_path, plan, records, DEVICES, change)
    assert [line.split(";")[0] for line in made.lines] == ["owner-003 is longer than what one unit may add"]
    gone = DEVICES[:2] + DEVICES[3:]
    _, without = asked_of(monkeypatch, tmp_path / "without", plan, records, gone)
    assert np.array_equal(seen.sums[0], without.sums[0])


def check_records_are_seen_through_what_was_told():
    """A view is kept as it may take long, and another state of it is another view; so are networks'."""
    plan = planned("guided on tables")
    own = OwnerComputation(plan, encoder_for(plan.schema.resolve({}), plan.settings.encoding))

    def told(state, critic=0.0):
        words = {"view": {"name": "mixture", "words": {}}}
        return Message(words, {"view.state": np.array([state]), "critic.weight": np.array([critic])})

    made, lending = [], NetworkPool()
    for number, said in enumerate((told(1.0), told(1.0, critic=2.0), told(3.0), told(1.0))):
        state = said.arrays["view.state"][0]
        assert own.seen(said, "records", lambda records, seen=(number, state): made.append(seen) or seen)[1] == state
        with lending.lend(said, ("plan",), lambda state=state: [state]) as network:
            assert network == [state]
    assert made == [(0, 1.0), (2, 3.0), (3, 1.0)]


def test_records_are_seen_through_what_was_told():
    check_records_are_seen_through_what_was_told()


BY_NAME = {
    "a view": (
        OwnerComputation,
        "seen",
        ("select_part(message.arrays, _VIEW)", "{}"),
    ),
    "networks": (NetworkPool, "lend", ("select_part(message.arrays, _VIEW)", "{}")),
}


@pytest.mark.parametrize("mutant", BY_NAME)
def test_what_is_kept_by_its_name_alone_is_caught(monkeypatch, mutant):
    plant(monkeypatch, *BY_NAME[mutant])
    with pytest.raises(AssertionError):
        check_records_are_seen_through_what_was_told()


def test_what_is_clipped_together_is_not_asked_of_owners():
    with pytest.raises(SettingError, match="cannot be asked of owners"):
        planned("bayesgan on tables", clipping="batch", loss="wgan")


def test_an_owner_draws_enough_units_for_the_distances():
    from doublure.private.queries.distances import distance_sample_rate

    draw = np.random.default_rng(0)
    rate = distance_sample_rate(64, 10_000)
    assert 64 / 10_000 < rate < 0.02
    assert (draw.binomial(10_000, rate, 10_000) >= 64).mean() > 0.99
    assert distance_sample_rate(64, 20) == 1.0


MUTANTS = {
    "an owner's records are seen as they are": (OwnerComputation, "seen", ("view(records)", "records")),
    "who was only looked at is added": (
        _OwnerExchange, "validated", ("self._lot is None or owner in self._lot", "True"),
    ),
    "an owner tells no length of its own units": (
        CriticGradients, "_told", ("PoissonSampler(records.n_units, rate).lot()", "np.zeros(0, dtype=np.int64)"),
    ),
    "an owner's bound is not its plan's": (OwnerComputation, "sums", ("self._own.bounds.get(name, 1.0)", "2.0")),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_another_answer_is_caught(monkeypatch, tmp_path, mutant):
    plant(monkeypatch, *MUTANTS[mutant])
    looked = "looked at" in mutant
    case = "bayesgan on tables" if looked or "length" in mutant else "guided on images"
    plan = planned(case, **({"lot_size": 2} if looked else {}))
    with pytest.raises((AssertionError, OwnerLost)):
        check_equal_to_one_place(monkeypatch, tmp_path, plan, everything(CASES[case][1]), DEVICES if looked else SILOS)


# -- cut off -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["guided on tables", "bayesgan on tables", "statistics on images"])
def test_an_owner_that_is_killed_at_any_write_undercounts_nothing(monkeypatch, tmp_path, case):
    """Sums and steps: what was answered was authorised before, whatever write it was killed at."""
    draw, died, plan = np.random.default_rng(11), 0, planned(case)
    worst, records = plan.worst_case or (plan.epsilon, plan.delta), everything(CASES[case][1])
    for turn in range(by_tier(3, 100)):
        folder = tmp_path / str(turn)
        files, units = dealt(folder / "clients", records, SILOS), declared(plan, SILOS)
        made = Federation(folder, plan, files, units=units)
        with monkeypatch.context() as inner:
            mortal = made.post.owners[2] = Mortal(made, 2, int(draw.integers(1, 25)), inner)
            made.fitted_at_last(inner)
        died += mortal.dies
        book = made.book(2)
        book.verify()
        assert made.ledger.spent.epsilon == pytest.approx(worst[0])
        if mortal.answered:
            (run,) = [each for each in book.show()["runs"] if each["epsilon"]]  # one that was asked nothing is at zero
            assert run["epsilon"] == pytest.approx(worst[0])
            reserved = [record.body["through_step"] for record in book.entries if record.kind == "advance"]
            assert max(reserved) >= plan.steps
        for number, access in enumerate(plan.touches):
            assert mortal.answered.count(number) <= getattr(access.event, "steps", 2**31)
    assert died
