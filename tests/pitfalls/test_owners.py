"""Records that stay with their owners keep the rules that records in one place keep (rules 2, 3, 6, 8, 11 and 16)
where owners add up what they compute: sums of bounded vectors, clipped gradients. Counts are in ``tests/federated``."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from owned_cases import CASES, SILOS, UNITS, dealt, declared, everything, planned
from owners import Federation
from planting import plant

from doublure.encode.choice import encoder_for
from doublure.federated.silo import Silo
from doublure.federated.steps import OwnerComputation
from doublure.ledger import Ledger
from doublure.private.owners import Owner
from doublure.private.queries.lot_gradients import CriticGradients
from doublure.private.queries.sums import BoundedSums
from doublure.private.sampling import PoissonSampler
from doublure.run.record_sources import InMemoryRecords
from doublure.support.messages import Message

ASKED = {"sums": "statistics on images", "step": "bayesgan on tables"}
REFUSED = "its plan does not pay for what was asked"


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def kept(said):
    """Return a message as it is now: a critic goes on being moved."""
    return Message(said.words, {name: array.copy() for name, array in said.arrays.items()})


class Heard:
    """A federation that has run; all that its first owner was asked, and what it said. It goes on listening."""

    def __init__(self, patch, folder, case, records=None, **more):
        self.plan = planned(case, **more)
        self.records = everything(CASES[case][1]) if records is None else records
        self.units = declared(self.plan, SILOS)
        files = dealt(folder / "clients", self.records, SILOS)
        self.made = Federation(folder, self.plan, files, units=self.units)
        self.owner, self.pairs = self.made.post.owners[1], []
        self.hear, self.owner._end = self.owner.answer, lambda said: Message()
        self.owner.answer = lambda said: (self.pairs.append((kept(said), self.hear(said))), self.pairs[-1][1])[1]
        self.made.fitted(patch)

    def of(self, ask):
        return [pair for pair in self.pairs if pair[0].words["ask"] == ask]

    def another(self, number=1):
        """Return a fresh owner of the same data, that has heard all but questions."""
        folder = self.made.folder / f"again {number}"
        folder.mkdir()
        Ledger.create(folder / "ledger", dataset="again", epsilon=1000.0, delta=0.5)
        units = None if self.units is None else self.units[0]
        silo = Silo(
            name="again", data=str(self.made.files[1]), plan=self.plan, ledger=folder / "ledger", folder=folder,
            units=units,
        )  # fmt: skip
        for said, _ in self.pairs:
            if said.words["ask"] in ("begin", "schema"):
                assert silo.answer(said).words["refused"] is None
        return silo


# -- rule 2: what an owner adds moves no further than was priced -------------------------------------------------------


def check_moves_no_further(patch, folder, ask):
    """An owner with one unit more answers the same question: all are in the lot, and nothing is drawn beside."""
    more = {"lot_size": UNITS, "loss": "wgan"} if ask == "step" else {}
    one = Heard(patch, folder / "one", ASKED[ask], **more)
    records = one.records
    if isinstance(records, dict):
        bright = {"images": np.full((1, 8, 8, 1), 255, dtype=np.uint8), "labels": np.array([1])}
        records = {name: np.concatenate([of[:9], bright[name], of[9:]]) for name, of in records.items()}
        np.savez(one.made.files[1], **{name: of[:10] for name, of in records.items()})
    else:
        records.iloc[:10].to_csv(one.made.files[1], index=False)
    question, answer = one.of(ask)[0]
    neighbour = one.another().answer(question)
    access = one.plan.touches[question.words["access"]]
    before, after = (each.arrays["total"].astype(np.float64) for each in (answer, neighbour))
    moved = np.linalg.norm(after - before)
    assert moved > 0
    if ask == "sums":
        own = one.owner._rebuilding.sums(question, access)
        moved, most = moved * own.unit, own.sensitivity.l2
    else:
        most = one.plan.max_grad_norm
    assert moved <= most * (1 + 1e-6)


@pytest.mark.parametrize("ask", ASKED)
def test_one_unit_more_moves_an_owners_answer_no_further_than_was_priced(monkeypatch, tmp_path, ask):
    check_moves_no_further(monkeypatch, tmp_path, ask)


@pytest.mark.parametrize("ask", ASKED)
def test_an_owner_that_adds_more_than_a_record_is_caught(monkeypatch, tmp_path, ask):
    answer = {"sums": BoundedSums, "step": CriticGradients}[ask].answer

    def more(query, records, **named):
        found = answer(query, records, **named)
        return replace(found, total=found.total * 1000)

    monkeypatch.setattr({"sums": BoundedSums, "step": CriticGradients}[ask], "answer", more)
    with pytest.raises(AssertionError):
        check_moves_no_further(monkeypatch, tmp_path, ask)


# -- rule 3: lots and plans are public ---------------------------------------------------------------------------------


def check_rates(patch, folder, units):
    """Whatever number of units was bought, an owner draws its lot and its sample by what the plan has."""
    rates = []
    drawn = PoissonSampler.lot
    patch.setattr(PoissonSampler, "lot", lambda own: (rates.append(own.sample_rate), drawn(own))[1])
    heard = Heard(patch, folder, ASKED["step"], distances=3)
    own = [owned_rate(math.ceil(3 * len(group) / UNITS), len(group)) for group in SILOS]
    assert {*rates} == {heard.plan.sample_rate, *own}
    (event,) = (access.event for access in heard.plan.training)
    asked = [
        OwnerComputation(heard.plan, encoder_for(schema, heard.plan.settings.encoding), units=len(SILOS[0]))
        .critic(event, None)
        ._queries[False]
        for schema in (heard.plan.schema.resolve({}), heard.plan.schema.model_copy(update={"units": units}).resolve({}))
    ]
    assert asked[0]._lengths == asked[1]._lengths == own[0]
    assert asked[1].settings.expected_units == event.sample_rate * units  # the divisor alone


def owned_rate(count, units):
    from doublure.private.queries.distances import distance_sample_rate

    return distance_sample_rate(count, units)


@pytest.mark.parametrize("units", [UNITS // 10, UNITS * 10])
def test_an_owners_lots_do_not_follow_what_was_bought(monkeypatch, tmp_path, units):
    check_rates(monkeypatch, tmp_path, units)


def test_owners_of_one_process_that_share_a_rate_are_caught(monkeypatch, tmp_path):
    plant(
        monkeypatch, Silo, "_step",
        ("(self._digest, own.schema, access, self._units)", "(self._digest, own.schema, access)"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check_rates(monkeypatch, tmp_path, UNITS * 10)


def test_an_owner_whose_sample_follows_what_was_bought_is_caught(monkeypatch, tmp_path):
    plant(
        monkeypatch, OwnerComputation, "critic",
        ("max(1, self._plan.schema.public_units)", "max(1, self._encoder.schema.public_units)"),
    )  # fmt: skip
    with pytest.raises(AssertionError):
        check_rates(monkeypatch, tmp_path, UNITS * 10)


# -- rule 6 and rule 11: paid before, and once -------------------------------------------------------------------------


def check_paid_before(patch, folder, ask):
    acts = []
    read, reserve = InMemoryRecords.read, Ledger.reserve
    patch.setattr(InMemoryRecords, "read", lambda own: (acts.append("read"), read(own))[1])
    patch.setattr(Ledger, "reserve", lambda *given, **more: (acts.append("charged"), reserve(*given, **more))[1])
    heard = Heard(patch, folder, ASKED[ask])
    assert acts.count("read") == len(SILOS)
    assert acts[:1] == ["charged"]
    assert acts.index("read") > 1  # the coordinator's charge, and this owner's own
    book = heard.made.book(1)
    through = [record.body["through_step"] for record in book.entries if record.kind == "advance"]
    assert through[0] >= len(heard.of(ask))
    for question, _ in heard.of(ask):
        changed = Message({**question.words, "more": 1}, question.arrays)
        assert heard.hear(changed).arrays == {}
        assert heard.hear(changed).words["refused"] == REFUSED


@pytest.mark.parametrize("ask", ASKED)
def test_an_owner_charges_before_it_reads_and_answers_no_more_than_was_priced(monkeypatch, tmp_path, ask):
    check_paid_before(monkeypatch, tmp_path, ask)


@pytest.mark.parametrize("ask", ASKED)
def test_an_owner_that_does_not_count_what_it_answers_is_caught(monkeypatch, tmp_path, ask):
    plant(
        monkeypatch, Owner, "answer", ("sum(tables for tables, _ in asked.values()) + moved > _paid(access)", "False")
    )
    with pytest.raises(AssertionError):
        check_paid_before(monkeypatch, tmp_path, ask)


# -- rule 8: whatever meets a record is drawn afresh -------------------------------------------------------------------


def test_two_owners_of_the_same_records_draw_other_lots(monkeypatch, tmp_path):
    heard = Heard(monkeypatch, tmp_path, ASKED["step"])
    question, answer = heard.of("step")[0]
    totals = [heard.another(number).answer(question).arrays["total"] for number in range(4)]
    assert len({each.tobytes() for each in [answer.arrays["total"], *totals]}) > 1
    kept = "".join(path.read_text(errors="replace") for path in (heard.made.folder / "at 1").glob("*.json*"))
    for word in ("seed", "key", "lot"):
        assert f'"{word}"' not in kept


# -- rule 16: refusals name no value -----------------------------------------------------------------------------------


def test_what_an_owner_refuses_tells_nothing_of_its_records(monkeypatch, tmp_path):
    heard = Heard(monkeypatch, tmp_path, ASKED["step"])
    question, _ = heard.of("step")[0]
    few = dict([*question.arrays.items()][1:])
    for other in (Message({**question.words, "step": 99}, question.arrays), Message(question.words, few)):
        answer = heard.hear(other)
        assert answer.words["refused"] == REFUSED
        assert not any(str(value) in json.dumps(answer.words) for value in heard.records["a"])
