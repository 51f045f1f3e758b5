"""What an owner lets be asked, and what whoever adds answers up lets in: word by word, without a federation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from planting import plant

from doublure.access import Access
from doublure.errors import LedgerError, OwnerLost, RunFolderError, SettingError
from doublure.private import owner_partitions
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, PureEvent
from doublure.private.owner_partitions import EmptyRecords, OwnerPartitions, _lengths, _OwnerExchange, validate_answer
from doublure.private.owners import Owner, find_fact
from doublure.private.partitions import SequentialPartitions, SinglePartition
from doublure.private.queries.axes import Axis
from doublure.private.queries.counts import Counts
from doublure.private.queries.query import Answer, Sensitivity
from doublure.private.records import PrivateRecords
from doublure.schema import Schema
from doublure.support.messages import Message

NAN = float("nan")
TABLES = ((Axis.of_codes(0, 3),), (Axis.of_codes(1, 2),))
COUNTS = Counts(tables=TABLES, max_records=2)
TRAIN = Access(purpose="train", event=GaussianEvent(noise_multiplier=1.0, sample_rate=0.25, steps=3))
NOBODY = EmptyRecords(2, pd.DataFrame({"who": [], "age": []}))
SCHEMA = Schema.parse(
    "doublure: 1\nkind: table\nunit: {name: person, id: who, max_records: 2}\nunits: {learn: 0.3, magnitude: 50}\n"
    "columns:\n  who: {type: id}\n  age: {type: integer, bounds: [0, 99], missing: {learn: 0.3}}\n"
)


class Length:
    """A query for a vector of at most C, that remembers the rates it was asked at."""

    def __init__(self):
        self.rates = []

    def refuse_unfit(self, records):
        """Refuse nothing."""

    def answer(self, records, *, sample_rate):
        self.rates.append(sample_rate)
        total = np.zeros(3, dtype=np.float32)
        return Answer(total=total, sensitivity=Sensitivity.of_length(5.0, 3), sample_rate=sample_rate)


def people(codes):
    return PrivateRecords(np.array(codes, dtype=float), np.arange(len(codes)), len(codes), lambda rows: (rows, None))


# -- what is let in ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("total", "alone", "together"),
    [
        ([1, 0, 1, 0, 2], None, None),  # all that a unit can have
        ([1, 2, 0, 3, 0], "more than one unit can have", None),
        ([0, 0, 0, 0, 0], None, None),
        ([1, 0, 0, 0, 2], "other records in one table", "other records in one table"),
        ([3, 0, -1, 0, 2], "below zero", "below zero"),
        ([20, 0, 0, 20, 0], "more than one unit can have", None),  # all that ten units can have
        ([20, 3, 0, 20, 0], "more than one unit can have", None),  # more than that, and cut off at it
        ([21, 0, 0, 21, 0], "more than one unit can have", "more than its units can have"),
        ([2**62, 2**62, 0, 2**62, 2**62], "more than one unit can have", "more than its units can have"),
    ],
)
def test_counts_that_there_cannot_be_are_not_added(total, alone, together):
    nothing = COUNTS.answer(NOBODY, sample_rate=1.0)
    for one_unit, fault in ((True, alone), (False, together)):
        found = validate_answer(COUNTS, nothing, np.array(total), units=1 if one_unit else 10, one_unit=one_unit)
        assert found is None if fault is None else fault in found


def test_a_unit_counts_in_each_table_no_more_than_its_records():
    """Even where all tables together would let it have more."""
    nothing = COUNTS.answer(NOBODY, sample_rate=1.0)
    assert "one unit can have" in validate_answer(
        COUNTS, replace(nothing, sensitivity=Sensitivity.of_cells(2, 3)), np.array([3, 0, 0, 3, 0]), units=1,
        one_unit=True,
    )  # fmt: skip


FORMS = {
    "counts": (COUNTS.answer(NOBODY, sample_rate=1.0), "whole numbers of 64 bits"),
    "a gradient": (
        Answer(total=np.zeros(3, dtype=np.float32), sensitivity=Sensitivity.of_length(5.0, 3)),
        "real numbers of 32 bits",
    ),
    "a sum": (
        Answer(total=np.zeros(3, dtype=np.int64), sensitivity=Sensitivity.of_length(5.0, 3), unit=0.5),
        "whole numbers of 64 bits",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_has_the_shape_and_the_type_of_nobodys(form):
    nothing, kind = FORMS[form]
    right = np.zeros_like(nothing.total)
    assert validate_answer(COUNTS, nothing, right, units=1, one_unit=True) is None
    for wrong in (right[:-1], right[None], right.tolist(), None, {"a": 1}):
        assert (
            validate_answer(COUNTS, nothing, wrong, units=1, one_unit=True) == "has another shape than what was asked"
        )
    for wrong in (right.astype(np.float64), right.astype(np.int32)):
        assert validate_answer(COUNTS, nothing, wrong, units=1, one_unit=True) == f"is not in {kind}"


@pytest.mark.parametrize("form", ["a gradient", "a sum"])
def test_what_one_unit_adds_is_no_longer_than_was_priced(form):
    nothing, _ = FORMS[form]
    steps = 1.0 if nothing.unit is None else nothing.unit
    for length, fault in ((5.0, None), (5.5, "is longer than what one unit may add")):
        total = np.array([0, length / steps, 0]).astype(nothing.total.dtype)
        assert validate_answer(object(), nothing, total, units=1, one_unit=True) == fault
        assert validate_answer(object(), nothing, total, units=2, one_unit=False) is None


@pytest.mark.parametrize("wrong", [NAN, float("inf"), -float("inf")])
def test_a_gradient_that_is_not_finite_is_not_added(wrong):
    nothing, _ = FORMS["a gradient"]
    for one_unit in (True, False):
        found = validate_answer(object(), nothing, np.array([0, wrong, 0], np.float32), units=1, one_unit=one_unit)
        assert found == "is not finite"


@pytest.mark.parametrize(
    ("total", "fault"),
    [
        ({"cook": 1, "nurse": 1}, None),
        ({}, None),
        ({"cook": 3}, "counts more than one unit can have"),
        ([("cook", 1)], "has another shape than what was asked"),
        ({"cook": 0}, "has other than texts and whole numbers above zero"),
        ({"cook": True}, "has other than texts and whole numbers above zero"),
        ({7: 1}, "has other than texts and whole numbers above zero"),
    ],
)
def test_texts_are_counted_by_whole_numbers_above_zero(total, fault):
    nothing = Answer(total={}, sensitivity=Sensitivity(l1=2.0, l2=2.0))
    assert validate_answer(object(), nothing, total, units=1, one_unit=True) == fault


def test_of_many_units_no_text_is_counted_more_often_than_they_can():
    nothing = Answer(total={}, sensitivity=Sensitivity(l1=2.0, l2=2.0))
    for count, fault in ((14, None), (15, "counts more than its units can have")):
        total = {"cook": count, "nurse": 14}
        assert validate_answer(object(), nothing, total, units=7, one_unit=False) == fault


def test_a_units_length_is_told_or_that_of_its_gradient_and_never_made_shorter():
    nothing, gradient = FORMS["a gradient"][0], np.array([0, 3.0, -2.0], dtype=np.float32)
    assert _lengths(np.array([0.25, 1.0]), gradient, nothing) == [0.25, 1.0]
    (found,) = _lengths(None, gradient, nothing)
    assert 0 < found - np.sqrt(13) / 5 < 1e-5
    assert _lengths(None, 4 * gradient, nothing) == [1.0]


def test_nobody_is_no_unit_and_has_no_record():
    assert (NOBODY.n_units, NOBODY.most_records) == (0, 0)
    assert find_fact(SCHEMA, "units", None).answer(NOBODY, sample_rate=1.0).total.tolist() == [0]
    assert find_fact(SCHEMA, "columns.age.missing", None).answer(NOBODY, sample_rate=1.0).total.tolist() == [0]
    assert COUNTS.answer(NOBODY, sample_rate=1.0).total.tolist() == [0] * 5
    with pytest.raises(SettingError, match="not to be learned"):
        find_fact(SCHEMA, "columns.age.bounds", None)


@pytest.mark.parametrize("one_unit", [False, True])
def test_answers_are_added_that_can_be_and_the_others_are_named(one_unit):
    """One unit that has given none is a neighbour's sum; an owner of many is no sum."""
    refused, access = [], Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0, tables=2, records=2))
    asked = []

    def post(query, pays, names, view):
        asked.append((pays, names, view))
        for owner, total in {"a": [1, 0, 0, 1, 0], "b": [1, 0, 0, 0, 0], "c": [0, 2, 0, 0, 2]}.items():
            if owner in there[0]:
                yield owner, Message({}, {"total": np.array(total)})

    there = ["abc"]
    answers = OwnerPartitions(
        post, NOBODY, refused=lambda *said: refused.append(said), one_unit=one_unit, owners=lambda: there[0],
        units=lambda: dict.fromkeys("abc", 10),
    )  # fmt: skip
    with pytest.raises(TypeError, match="that pays is not known yet"):
        answers.ask(COUNTS, sample_rate=1.0)
    answers.paid_by(access)
    if one_unit:
        assert answers.ask(COUNTS, sample_rate=1.0).total.tolist() == [1, 2, 0, 1, 2]
    else:
        with pytest.raises(OwnerLost, match="b has not answered"):
            answers.ask(COUNTS, sample_rate=1.0)
        there[0] = "acd"
        with pytest.raises(OwnerLost, match="d has not answered"):
            answers.ask(COUNTS, sample_rate=1.0)
        there[0], refused[1:] = "ac", []
        assert answers.ask(COUNTS, sample_rate=1.0).total.tolist() == [1, 2, 0, 1, 2]
        del refused[1:]
    assert {*asked} == {(access, None, None)}  # everybody
    assert refused == [("b", "counts other records in one table than in another")]


class Beside(Length):
    """The same, beside which units are measured; it remembers what was charged."""

    step = 6

    def __init__(self, count):
        super().__init__()
        self.measured, self.count, self.charged = self, count, []

    def unmeasured(self):
        """Return the same, with nothing measured beside."""
        return self

    def charge(self, found, *, sample_rate, step):
        """Remember it."""
        self.charged.append((sorted(found), sample_rate, step))


def sent(**answers):
    def post(query, pays, names, view):
        for owner, (total, lengths) in answers.items():
            if names is None or owner in names:
                told = {} if lengths is None else {"lengths": lengths}
                yield owner, Message({}, {"total": np.array(total, dtype=np.float32), **told})

    return post


def asked_beside(query, answers, units=10, **more):
    refused = []
    declared = units if isinstance(units, dict) else dict.fromkeys(answers, units)
    made = OwnerPartitions(
        sent(**answers), NOBODY, refused=lambda *said: refused.append(said), owners=lambda: [*answers],
        units=lambda: declared, **more,
    )  # fmt: skip
    made.paid_by(TRAIN)
    return made.ask(query, sample_rate=1.0).total.tolist(), refused


def test_lengths_of_many_units_are_those_that_owners_tell():
    query = Beside(count=3)
    found, refused = asked_beside(query, {"a": ([1, 0, 0], np.array([0.25, 1.0]))}, one_unit=False)
    assert found == [1, 0, 0]
    assert refused == []
    assert query.charged == [([0.25, 1.0], 1.0, 6)]


@pytest.mark.parametrize("told", [None, np.array([1.5])], ids=["none", "too long"])
def test_an_owner_that_tells_no_lengths_that_there_can_be_has_not_answered(told):
    query = Beside(count=3)
    with pytest.raises(OwnerLost, match="b has not answered"):
        asked_beside(query, {"a": ([1, 0, 0], np.array([0.25])), "b": ([0, 2, 0], told)}, one_unit=False)
    assert query.charged == []


ONES, ZEROS = np.ones(4), np.zeros(10**4)


def zeros_of(count, units, told, runs=1):
    """Return how many lengths count, and how many of them are zero: the ones are honest, the zeros are not."""
    found = []
    for _ in range(runs):
        query = Beside(count=count)
        answers = {owner: ([0, 0, 0], own) for owner, own in told.items()}
        _, refused = asked_beside(query, answers, units, one_unit=False)
        assert refused == []
        ((lengths, _, _),) = query.charged
        found += lengths
    return len(found), found.count(0.0)


def check_lengths_count_by_share():
    """However many lengths of zero an owner tells, of m it gives its share of all public units."""
    told, thirds = {"a": ONES, "b": ONES, "evil": ZEROS}, {"a": 50, "b": 50, "evil": 50}
    assert zeros_of(9, thirds, told) == (9, 3)
    assert zeros_of(10, {"a": 30, "b": 50, "evil": 20}, told) == (9, 2)  # one of five is missing, and is the longest
    assert zeros_of(9, thirds, {"a": ONES, "b": ONES[:0], "evil": ZEROS}) == (6, 3)  # so are all of who tells none
    runs = 400
    count, zeros = zeros_of(8, thirds, told, runs)
    assert count == 8 * runs
    assert abs(zeros - runs * 8 / 3) < 5 * np.sqrt(runs) / 2  # two or three each time


def test_one_owner_does_not_decide_what_all_are_measured_by():
    check_lengths_count_by_share()


def test_of_an_owners_lengths_an_even_sample_counts():
    told, seen = np.linspace(0, 1, 11), []
    for _ in range(300):
        query = Beside(count=2)
        asked_beside(query, {"a": ([0, 0, 0], told)}, one_unit=False)
        seen += query.charged[0][0]
    assert len(seen) == 600
    assert abs(np.mean(seen) - 0.5) < 5 * 0.32 / np.sqrt(600)
    assert {*seen} == {*told}


BY_SHARE = {
    "as many count as are told": (
        owner_partitions, "_by_share", ("_some(told.get(owner, []), share)", "told.get(owner, [])"),
    ),
    "an even sample of all that are told": (
        _OwnerExchange, "completed", ("_by_share(told, self._units, measured.count)",
                                      "_some([*chain(*told.values())], measured.count)"),
    ),
    "owners count alike, whatever their units": (
        owner_partitions, "_by_share",
        ("np.cumsum([*units.values()], dtype=np.float64)", "np.arange(1.0, len(units) + 1)"),
    ),
    "shares are always rounded down": (owner_partitions, "_by_share", ("freshly_keyed().random()", "0.0")),
    "who tells shares what is missing": (
        owner_partitions, "_by_share", ("np.cumsum([*units.values()], dtype=np.float64)",
                              "np.cumsum([units[owner] if told[owner] else 1e-9 for owner in units])"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", BY_SHARE)
def test_a_sample_that_one_owner_decides_is_caught(monkeypatch, mutant):
    plant(monkeypatch, *BY_SHARE[mutant])
    with pytest.raises(AssertionError):
        check_lengths_count_by_share()


@pytest.mark.parametrize("told", [[7.0], [0.0], [0.0] * 500, ["long"]], ids=["long", "none", "many", "words"])
def test_lengths_of_devices_are_those_of_what_they_send(told):
    """What one says of its own length is not looked at: it could make the estimate as small as it likes."""
    query = Beside(count=3)
    found, refused = asked_beside(
        query,
        {"a": ([3, 0, 0], None), "b": ([0, 4, 0], np.array(told)), "c": ([0, 0, 9], np.array(told))},
        one_unit=True,
    )
    assert found == [3, 4, 0]
    assert refused == [("c", "is longer than what one unit may add")]
    ((lengths, rate, step),) = query.charged
    assert (rate, step) == (1.0, 6)
    assert lengths == pytest.approx([0.6, 0.8], abs=1e-5)


# -- what is let out ---------------------------------------------------------------------------------------------------


class Book:
    """An owner's ledger and notes."""

    def __init__(self, *accesses, asked=None):
        self.paid, self.noted = [], []
        self.owner = Owner(
            accesses,
            units=10,
            authorise=lambda access, step: self.paid.append((access.purpose, step)),
            note=lambda *said: self.noted.append(said),
            asked=asked or {},
        )


FACT = Access(purpose="learn", event=PureEvent(epsilon=0.3), path="columns.age.missing")
COUNT = Access(purpose="count", event=DiscreteGaussianEvent(scale=1.0, tables=2, records=2))

PEOPLE = people([[0, 1], [2, 1], [2, 0]])


def test_an_owner_draws_its_lot_unless_its_unit_was_chosen():
    query, book = Length(), Book(TRAIN)
    book.owner.answer(query, 0, "one", PEOPLE)
    book.owner.answer(query, 0, "two", PEOPLE, chosen=True)
    assert query.rates == [0.25, 1.0]
    with pytest.raises(SettingError, match="was answered before"):
        book.owner.answer(query, 0, "two", PEOPLE, chosen=True)
    book.owner.answer(query, 0, "three", PEOPLE)
    with pytest.raises(SettingError, match="is used up"):
        book.owner.answer(query, 0, "four", PEOPLE)
    assert len(query.rates) == len(book.paid) == len(book.noted) == 3


def test_each_access_is_paid_at_its_own_step_and_facts_at_none():
    book = Book(FACT, COUNT, TRAIN)
    book.owner.answer(COUNTS, 1, "count", PEOPLE)
    book.owner.answer(Length(), 2, "step", PEOPLE)
    book.owner.answer(find_fact(SCHEMA, FACT.path, None), 0, "fact", NOBODY)
    assert book.paid == [("count", 1), ("train", 4), ("learn", 0)]
    assert [said[:3] for said in book.noted] == [(1, "count", 2), (2, "step", 1), (0, "fact", 1)]
    with pytest.raises(SettingError, match="no access of the plan"):
        book.owner.answer(COUNTS, 3, "more", PEOPLE)


def test_the_same_question_has_the_same_answer_at_no_price():
    book = Book(COUNT)
    first = book.owner.answer(COUNTS, 0, "one", PEOPLE).total.tolist()
    assert first == [1, 0, 2, 1, 2]
    assert book.owner.answer(COUNTS, 0, "one", PEOPLE).total.tolist() == first
    with pytest.raises(RunFolderError, match="answered otherwise"):
        book.owner.answer(COUNTS, 0, "one", people([[0, 1]]))
    with pytest.raises(SettingError, match="is used up"):
        book.owner.answer(COUNTS, 0, "two", PEOPLE)
    assert len(book.noted) == 1
    later = Book(COUNT, asked={0: {"one": (2, book.noted[0][3])}})
    assert later.owner.answer(COUNTS, 0, "one", PEOPLE).total.tolist() == first
    assert later.noted == []
    assert {*book.paid, *later.paid} == {("count", 1)}  # the same step: the price of one


def test_an_answer_is_noted_then_paid_for_and_then_let_out():
    book, question = Book(FACT), find_fact(SCHEMA, FACT.path, None)

    def refusing(access, step):
        assert len(book.noted) == 1
        raise LedgerError("is full", field="ledger", remedy="make room")

    paying, book.owner._authorise = book.owner._authorise, refusing
    for _ in range(2):  # noted just now or before, it is not let out until it is paid for
        with pytest.raises(LedgerError, match="is full"):
            book.owner.answer(question, 0, "one", NOBODY)
    book.owner._authorise = paying
    with pytest.raises(SettingError, match="is used up"):
        book.owner.answer(question, 0, "two", NOBODY)
    assert book.paid == []
    book.owner.answer(question, 0, "one", NOBODY)
    assert book.paid == [("learn", 0)]
    assert len(book.noted) == 1


def test_fewer_tables_leave_the_rest_for_later():
    book, one = Book(COUNT), Counts(tables=TABLES[:1], max_records=2)
    for digest in ("one", "other"):
        book.owner.answer(one, 0, digest, PEOPLE)
    with pytest.raises(SettingError, match="is used up"):
        book.owner.answer(one, 0, "third", PEOPLE)


@pytest.mark.parametrize(
    ("query", "access", "said"),
    [
        (Counts(tables=TABLES, max_records=1), COUNT, "other records of a unit"),
        (find_fact(SCHEMA, "units", None), FACT, "another fact"),
        (find_fact(SCHEMA, FACT.path, None), replace(FACT, event=PureEvent(epsilon=0.2)), "another fact"),
        (COUNTS, FACT, "not asked so"),
        (COUNTS, TRAIN, "not asked so"),
        (Length(), COUNT, "not asked so"),
        (Length(), FACT, "not asked so"),
    ],
)
def test_a_question_that_the_access_does_not_pay_for_is_refused_before_it_is_paid(query, access, said):
    book = Book(access)
    with pytest.raises(SettingError, match=said):
        book.owner.answer(query, 0, "asked", NOBODY)
    assert book.paid == book.noted == []


def check_what_does_not_fit_the_records_is_refused():
    """A unit of three records would move a count of at most two by three: before it is paid, as nothing comes of it."""
    of_three = PrivateRecords(np.ones((3, 2)), np.zeros(3, dtype=np.int64), 1, lambda rows: (rows, None))
    for records in (of_three, SinglePartition(of_three), SequentialPartitions(lambda: [PEOPLE, of_three])):
        book = Book(COUNT)
        with pytest.raises(SettingError, match="more records than planned"):
            book.owner.answer(COUNTS, 0, "asked", records)
        assert book.paid == book.noted == []


def test_what_does_not_fit_the_records_is_refused():
    check_what_does_not_fit_the_records_is_refused()


def test_an_owner_that_answers_what_does_not_fit_is_caught(monkeypatch):
    plant(monkeypatch, Owner, "answer", ("places.refuse_unfit(query)", "pass"))
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check_what_does_not_fit_the_records_is_refused()
