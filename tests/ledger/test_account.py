"""The rules, record by record and without a file: what may follow, and what it adds up to."""

from __future__ import annotations

import pytest

from doublure.errors import BudgetRefused, LedgerError
from doublure.ledger.account import Account
from doublure.ledger.amounts import Amount
from doublure.ledger.chain import Record
from doublure.ledger.torn import SOMETHING

HASH = "0f" * 32
PLAN = {
    "method": "m", "kind": "dp", "epsilon": 0.5, "delta": 0.125, "unit": {}, "relation": "add/remove",
    "accountant": "pld", "schema_sha256": HASH, "touches": [], "steps": 100,
}  # fmt: skip


class Book:
    """An account, and the records that it is given."""

    def __init__(self, **opened):
        self.account, self.sequence = Account(), 0
        self.add("open", **({"format": 1, "dataset": "adult", "epsilon": 2.0, "delta": 0.5} | opened))

    def add(self, kind, torn=b"", **body):
        return self._record(kind, body, torn)

    def _record(self, kind, body, torn):
        record = Record(
            sequence=self.sequence + 1, kind=kind, utc=f"at {self.sequence + 1}", tool="t", body=body, previous="",
            sha256="", torn=torn,
        )  # fmt: skip
        grown = self.account.copy()
        grown.add(record)
        self.account, self.sequence = grown, self.sequence + 1
        return self

    def reserve(self, name="a", kind="dp", epsilon=0.5, delta=0.125, **other):
        charge = None if kind in ("empirical", "none") else {"epsilon": epsilon, "delta": delta}
        body = {"id": f"id {name}", "run_id": name, "session": "s", "plan": PLAN | {"kind": kind}, "charge": charge}
        return self.add("reserve", **(body | other))

    def act(self, kind, name="a", session="s", **body):
        return self.add(kind, id=f"id {name}", session=session, **body)

    def release(self, kind="dp"):
        return self._record("release", {"id": "id a", "kind": kind, "files": {"a": HASH}}, b"")

    def close(self, status="done", steps=None, **other):
        return self.act("close", status=status, steps=steps, artefact_sha256=None, **other)

    @property
    def run(self):
        return self.account.find("a")

    def refuses(self, what, act, error=LedgerError):
        before = (self.sequence, self.account.spent, dict(self.account.runs), self.account.releases)
        with pytest.raises(error, match=what) as caught:
            act()
        assert caught.value.remedy or not caught.value.field
        assert before == (self.sequence, self.account.spent, dict(self.account.runs), self.account.releases)
        return caught.value


@pytest.fixture
def book():
    return Book()


def test_the_cap_stands_in_the_first_record_alone(book):
    assert (book.account.dataset, book.account.cap) == ("adult", Amount.of(2.0, 0.5))
    book.refuses("recorded once", lambda: book.add("open", format=1, dataset="b", epsilon=9.0, delta=0.5))
    empty = Account()
    with pytest.raises(LedgerError, match="recorded once"):
        empty.add(Record(sequence=1, kind="noise", utc="", tool="", body={"id": "i", "session": "s", "what": "w"},
                         previous="", sha256=""))  # fmt: skip
    for number in (0, 2):
        with pytest.raises(LedgerError, match="another format"):
            Book(format=number)


def test_a_reservation_is_a_run_that_has_drawn_nothing(book):
    run = book.reserve().run
    assert (run.id, run.run_id, run.sequence, run.utc, run.kind) == ("id a", "a", 2, "at 2", "dp")
    assert (run.charge, run.sessions, run.drawn, run.authorised) == (Amount.of(0.5, 0.125), ("s",), (), 0)
    assert (run.status, run.taken, run.noise_drawn) == ("open", None, False)
    assert book.account.find("id a") is run
    book.refuses("not a reservation", lambda: book.account.find("b"))


def test_charges_fill_the_cap_and_no_more(book):
    book.reserve("a").reserve("b").reserve("c", epsilon=1.0, delta=0.25)
    assert book.account.spent == book.account.cap
    book.reserve("free", epsilon=0, delta=0).reserve("kind", kind="none")
    assert (
        book.refuses("would be passed", lambda: book.reserve("d", epsilon=0.1, delta=0), BudgetRefused).field
        == "epsilon"
    )
    assert (
        book.refuses("would be passed", lambda: book.reserve("d", epsilon=0, delta=0.1), BudgetRefused).field == "delta"
    )
    assert book.account.spent == book.account.cap


@pytest.mark.parametrize("change", [{"id": "id a"}, {"run_id": "a"}, {"id": "a"}, {"run_id": "id a"}])
def test_no_name_is_used_twice(book, change):
    book.reserve()
    book.refuses("reserved already", lambda: book.reserve("b", **change))


@pytest.mark.parametrize(("kind", "charge"), [("dp", None), ("none", {"epsilon": 0.0, "delta": 0.0})])
def test_a_charge_fits_its_kind(book, kind, charge):
    book.refuses("does not fit its kind", lambda: book.reserve(kind=kind, charge=charge))


def test_marks_and_steps_are_each_given_once(book):
    book.reserve().act("noise", what="x").act("noise", what="y").act("advance", through_step=1)
    assert (book.run.drawn, book.run.authorised, book.run.noise_drawn) == (("x", "y"), 1, True)
    book.refuses("drawn already", lambda: book.act("noise", what="x"))
    book.refuses("authorised already", lambda: book.act("advance", through_step=1))
    assert "go on with step 2" in book.refuses("up to 1", lambda: book.act("advance", through_step=0)).remedy
    book.refuses("100 noisy steps, and step 101", lambda: book.act("advance", through_step=101))
    assert book.act("advance", through_step=100).run.authorised == 100


@pytest.mark.parametrize("kind", ["noise", "advance", "close"])
def test_only_the_last_session_of_an_open_run_goes_on(book, kind):
    body = {"noise": {"what": "x"}, "advance": {"through_step": 1}, "close": {"status": "done", "steps": None}}[kind]
    body |= {"artefact_sha256": None} if kind == "close" else {}
    book.reserve().act("resume", session="t", from_session="s")
    assert book.run.sessions == ("s", "t")
    book.refuses("resumed elsewhere", lambda: book.act(kind, session="s", **body))
    book.close("interrupted", session="t")
    book.refuses(r"was closed \(interrupted\)", lambda: book.act(kind, session="t", **body))


@pytest.mark.parametrize("status", ["done", "no-noise-drawn", "aborted", "interrupted"])
def test_what_was_given_up_is_resumed_and_what_is_done_is_not(book, status):
    book.reserve()
    book.close(status, steps=0)
    assert (book.run.status, book.run.taken) == (status, 0)
    if status in ("done", "no-noise-drawn"):
        book.refuses("was closed", lambda: book.act("resume", session="t", from_session="s"))
        return
    book.refuses("resumed elsewhere", lambda: book.act("resume", session="t", from_session="u"))
    book.refuses("never used before", lambda: book.act("resume", session="s", from_session="s"))
    book.act("resume", session="t", from_session="s")
    assert (book.run.status, book.run.taken, book.run.sessions) == ("open", None, ("s", "t"))
    book.refuses("never used before", lambda: book.act("resume", session="s", from_session="t"))


@pytest.mark.parametrize("status", ["done", "aborted", "interrupted"])
def test_a_charge_stays_whatever_the_end(book, status):
    book.reserve().reserve("b").close(status, steps=0)
    assert (book.run.charge, book.account.spent) == (Amount.of(0.5, 0.125), Amount.of(1.0, 0.25))


def test_it_comes_back_where_nothing_was_drawn(book):
    book.reserve().reserve("b", epsilon=0.25, delta=0.0).close("no-noise-drawn", steps=0)
    assert (book.run.charge, book.account.spent) == (Amount(), Amount.of(0.25, 0.0))
    assert Book().reserve().close("no-noise-drawn").account.spent == Amount()
    for draw in ({"kind": "noise", "what": "x"}, {"kind": "advance", "through_step": 1}):
        other = Book().reserve().act(**draw)
        other.refuses("may have drawn noise", lambda other=other: other.close("no-noise-drawn", steps=0))
    book = Book().reserve(kind="none")
    book.refuses("may have drawn noise", lambda: book.close("no-noise-drawn", steps=1))


@pytest.mark.parametrize(("kind", "most"), [("dp", 7), ("bayesian-dp", 7), ("empirical", 100), ("none", 100)])
def test_steps_that_are_reported_were_authorised(kind, most):
    book = Book().reserve(kind=kind).act("advance", through_step=7)
    book.refuses(f"{most + 1} noisy steps where {most}", lambda: book.close(steps=most + 1))
    assert book.close(steps=most).run.taken == most
    assert Book().reserve(kind=kind).close(steps=None).run.taken is None


RELEASABLE = {
    "dp": {"dp", "none"}, "bayesian-dp": {"bayesian-dp", "dp", "none"}, "empirical": {"empirical", "none"},
    "none": {"none"},
}  # fmt: skip


@pytest.mark.parametrize("kind", RELEASABLE)
def test_a_bundle_claims_no_more_than_was_reserved(kind):
    for claimed in RELEASABLE:
        book = Book().reserve(kind=kind)
        if claimed in RELEASABLE[kind]:
            book.release(claimed).release(claimed)
            assert [each.body["kind"] for each in book.account.releases] == [claimed, claimed]
            assert book.account.uncovered() == (0 if claimed in ("dp", "bayesian-dp") else 2)
        else:
            book.refuses("cannot be released as", lambda book=book, claimed=claimed: book.release(claimed))


def test_nothing_is_released_of_a_run_that_cost_nothing(book):
    book.reserve().close("no-noise-drawn", steps=0)
    book.refuses("cost nothing", lambda: book.release())


def test_a_copy_grows_alone(book):
    book.reserve()
    twin = book.account.copy()
    assert (twin.dataset, twin.cap, twin.spent, twin.runs) == ("adult", Amount.of(2.0, 0.5), Amount.of(0.5, 0.125),
                                                              book.account.runs)  # fmt: skip
    assert twin.find("a") is book.run
    book.reserve("b").act("advance", through_step=3).release()
    assert list(twin.runs) == ["id a"]
    assert (twin.find("a").authorised, twin.releases, twin.spent) == (0, (), Amount.of(0.5, 0.125))
    with pytest.raises(LedgerError, match="not a reservation"):
        twin.find("b")


TORN = b'{"body":{"id":"id a","session":"s",'


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("line", "spent", "drawn", "authorised"),
    [
        (b'{"body":{"charge":{"delta":0.25,"epsilon":1.0}', (1.5, 0.375), ("x",), 10),
        (b'{"body":{"charge":null', (0.5, 0.125), ("x",), 10),
        (b'{"body":{"f', (0.5, 0.125), ("x",), 10),
        (TORN + b'"what":"y"}', (0.5, 0.125), ("x", "y"), 10),
        (TORN + b'"what":"x"}', (0.5, 0.125), ("x",), 10),
        (TORN + b'"through_step":20}', (0.5, 0.125), ("x",), 20),
        (TORN + b'"through_step":5}', (0.5, 0.125), ("x",), 10),
        (TORN + b'"through_step":500}', (0.5, 0.125), ("x",), 100),
        (TORN, (0.5, 0.125), ("x", SOMETHING), 100),
    ],
)
def test_what_was_cut_short_counts_before_what_follows(book, line, spent, drawn, authorised, closed):
    book.reserve().act("noise", what="x").act("advance", through_step=10)
    if closed:
        book.add(
            "reserve",
            torn=line + b"#torn\n",
            id="id b",
            run_id="b",
            session="t",
            plan=PLAN | {"kind": "none"},
            charge=None,
        )
    else:
        assert book.account.cut_short(line)
    assert book.account.spent == Amount.of(*spent)
    assert (book.run.drawn, book.run.authorised) == (drawn, authorised)


def test_several_lines_count_together_and_one_that_cannot_be_read_is_said(book):
    book.reserve()
    charge = b'{"body":{"charge":{"delta":0.0,"epsilon":0.25}'
    unknown = b'{"body":{"id":"id z","session":"s",'
    for odd in (b'{"bo', unknown):
        twin = book.account.copy()
        assert twin.cut_short(b"#torn\n".join([charge, TORN + b'"through_step":20}', charge])) is True
        assert (twin.spent, twin.find("a").authorised) == (Amount.of(1.0, 0.125), 20)
        assert twin.cut_short(b"#torn\n".join([charge, odd, charge])) is False
        assert twin.spent == Amount.of(1.5, 0.125)
        assert list(twin.runs) == ["id a"]
