"""The same plan on the same ledger: refused unless it is asked for again; and opening a ledger that may be there."""

from __future__ import annotations

import threading

import pytest

from doublure.errors import BudgetRefused, LedgerError, SettingError
from doublure.ledger import Ledger
from doublure.ledger.chain import canonical_json
from doublure.ledger.request import new_run_id, recorded_facts, same_plan

ONE, OTHER = "ab" * 32, "cd" * 32


def refusal(ledger, plan):
    with pytest.raises(BudgetRefused) as caught:
        ledger.refuse_repeated(plan)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_plan_is_known_by_its_facts_and_its_hash(make_plan):
    plan, other = make_plan(sha256=ONE), make_plan(sha256=OTHER)
    run_id = new_run_id(plan, "0001")
    assert run_id == f"plan-{ONE[:24]}-0001"
    assert same_plan(plan, run_id, recorded_facts(plan))
    assert not same_plan(other, run_id, recorded_facts(plan))  # another learning rate, say: facts leave settings out
    assert not same_plan(make_plan(sha256=ONE, steps=99), run_id, recorded_facts(plan))
    # A run of an earlier version, or one whose id was given, tells no hash: its facts are all there is.
    assert same_plan(plan, "0001", recorded_facts(plan))
    assert same_plan(other, "0001", recorded_facts(plan))


@pytest.mark.parametrize("status", ["open", "done", "aborted", "interrupted"])
def test_the_refusal_names_the_earlier_run_and_the_way_out(ledger, make_plan, status):
    plan = make_plan(sha256=ONE)
    ledger.refuse_repeated(plan)
    reservation = ledger.reserve(plan)
    reservation.advance(100)
    if status != "open":
        reservation.close(status, steps=100)
    before = canonical_json(ledger.show())
    found = refusal(ledger, plan)
    assert found.field == "again"
    said = {"open": "under way or cut off", "aborted": "ended by an error"}.get(status, status)
    assert f"entry {reservation.sequence} of " in found.message
    assert found.message.endswith(f"(ε=0.5, δ=1e-06), {said}")
    assert found.remedy.startswith("use that run" if status == "done" else "go on with that run (resume)")
    assert found.remedy.endswith("again=True (--again)")
    with pytest.raises(BudgetRefused):
        ledger.reserve(plan, again=False)
    assert canonical_json(ledger.show()) == before
    ledger.refuse_repeated(make_plan(sha256=OTHER))
    ledger.reserve(plan)
    assert ledger.spent.epsilon == 1.0


def test_what_cost_nothing_is_no_reason(ledger, make_plan):
    ledger.reserve(make_plan(sha256=ONE)).close("no-noise-drawn", steps=0)
    ledger.refuse_repeated(make_plan(sha256=ONE))
    for kind in ("empirical", "none"):
        ledger.reserve(make_plan(kind, sha256=ONE))
        ledger.refuse_repeated(make_plan(kind, sha256=ONE))


def test_the_newest_run_is_named(ledger, make_plan):
    plan = make_plan(sha256=ONE)
    ledger.reserve(plan)
    newest = ledger.reserve(plan)
    assert f"entry {newest.sequence} of" in refusal(ledger, plan).message


def test_of_several_at_once_one_pays(path, ledger, make_plan):
    refused, start = [], threading.Barrier(4)

    def fit():
        book = Ledger.open(path)
        start.wait()
        try:
            book.reserve(make_plan(sha256=ONE), again=False)
        except BudgetRefused as error:
            refused.append(error)

    threads = [threading.Thread(target=fit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert len(ledger.show()["runs"]) == 1


# -- opening what may be there ----------------------------------------------------------------------------------------


def test_it_is_made_once_and_opened_then(path, make_plan):
    made = Ledger.open_or_create(path, dataset="adult", epsilon=3, delta=1e-4)
    made.reserve(make_plan())
    again = Ledger.open_or_create(str(path), dataset="adult", epsilon=3.0, delta=1e-4)
    assert again.spent.epsilon == 0.5
    assert len(again.entries) == 2


@pytest.mark.parametrize(
    ("change", "said"), [({"dataset": "other"}, "is the ledger of data set adult"), ({"epsilon": 4.0}, "another cap"),
                         ({"delta": 1e-5}, "another cap")]
)  # fmt: skip
def test_another_data_set_or_cap_is_refused(path, ledger, change, said):
    with pytest.raises(LedgerError, match=said):
        Ledger.open_or_create(path, **({"dataset": "adult", "epsilon": 3.0, "delta": 1e-4} | change))


def test_a_damaged_ledger_is_never_replaced(path, ledger):
    path.write_bytes(b"something else\n")
    with pytest.raises(LedgerError):
        Ledger.open_or_create(path, dataset="adult", epsilon=3.0, delta=1e-4)
    assert path.read_bytes() == b"something else\n"


def test_what_cannot_be_a_cap_is_refused(path):
    with pytest.raises(SettingError):
        Ledger.open_or_create(path, dataset="adult", epsilon=0, delta=1e-4)
    assert not path.exists()


def test_two_that_make_it_at_once_get_the_same(path, monkeypatch):
    create = Ledger.create

    def late(where, **rest):
        create(where, **rest)  # another process was quicker
        return create(where, **rest)

    monkeypatch.setattr(Ledger, "create", late)
    assert Ledger.open_or_create(path, dataset="adult", epsilon=3.0, delta=1e-4).spent.epsilon == 0


def test_one_that_another_process_is_about_to_write_is_waited_for(path, monkeypatch):
    """Between the making of a file and the lock on it, whoever opens it finds nothing in it."""
    made = Ledger.create(path.with_name("whole"), dataset="adult", epsilon=3.0, delta=1e-4)
    path.touch()
    threading.Timer(0.2, lambda: path.write_bytes(made.path.read_bytes())).start()
    assert Ledger.open_or_create(path, dataset="adult", epsilon=3.0, delta=1e-4).spent.epsilon == 0


def test_one_that_was_never_completed_is_refused_in_the_end(path, monkeypatch):
    monkeypatch.setattr("doublure.ledger.ledger._PATIENCE", 0.1)
    path.touch()
    with pytest.raises(LedgerError, match="never completed"):
        Ledger.open_or_create(path, dataset="adult", epsilon=3.0, delta=1e-4)
    assert path.read_bytes() == b""


def test_its_line_says_what_is_spent(path, ledger, make_plan):
    ledger.reserve(make_plan())
    assert repr(ledger) == "Ledger('adult.ledger': adult, spent (ε=0.5, δ=1e-06) of (ε=3, δ=0.0001))"
    path.unlink()
    assert repr(ledger) == "Ledger('adult.ledger')"
