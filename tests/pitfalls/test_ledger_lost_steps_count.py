"""Rule 8: noise is never replayed; steps lost in a crash count towards T, inside the same reservation."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from doublure.errors import LedgerError
from doublure.ledger import Ledger


def plan(**other):
    fields = {
        "method": "dpgan",
        "guarantee": SimpleNamespace(kind="dp"),
        "epsilon": 1.0,
        "delta": 1e-6,
        "unit": {"name": "person", "id": None, "max_records": 1},
        "relation": "add/remove",
        "accountant": "pld",
        "schema_sha256": "0" * 64,
        "sha256": "0" * 64,
        "touches": [],
        "steps": 100,
    }
    return SimpleNamespace(**(fields | other))


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", dataset="adult", epsilon=1.5, delta=1e-5)


def test_a_resumed_run_goes_on_after_the_last_authorised_step(ledger):
    lost = ledger.reserve(plan())
    lost.advance(40)
    resumed = Ledger.open(ledger.path).resume(lost.id, lost.session)
    assert resumed.authorised == 40
    for step in (1, 39, 40):
        with pytest.raises(LedgerError, match="authorised already"):
            resumed.advance(step)
    resumed.advance(100)
    with pytest.raises(LedgerError, match="beyond"):
        resumed.advance(101)
    assert ledger.spent.epsilon == 1.0


def test_the_charge_stays_through_interruption_and_resumption(ledger):
    first = ledger.reserve(plan())
    first.advance(10)
    first.close("interrupted", steps=10)
    assert ledger.spent.epsilon == 1.0
    second = ledger.resume(first.id, first.session)
    assert (second.status, second.charge.epsilon, ledger.spent.epsilon) == ("open", 1.0, 1.0)
    second.advance(20)
    second.close("done", steps=20)
    assert ledger.spent.epsilon == 1.0


def test_an_older_copy_of_the_run_folder_is_refused(ledger):
    original = ledger.reserve(plan())
    remembered = original.session
    elsewhere = ledger.resume(original.id, remembered)
    assert elsewhere.session != remembered
    with pytest.raises(LedgerError, match="resumed elsewhere"):
        ledger.resume(original.id, remembered)
    for act in (
        lambda: original.advance(10),
        lambda: original.noise_drawn("bounds"),
        lambda: original.close("aborted", steps=0),
    ):
        with pytest.raises(LedgerError, match="resumed elsewhere"):
            act()
    elsewhere.advance(10)


def test_a_crash_between_ledger_and_folder_does_not_lose_the_run(ledger):
    first = ledger.reserve(plan())
    ledger.resume(first.id, first.session, next_session="stored before")
    # The folder never learned that it worked; it knows both nonces.
    with pytest.raises(LedgerError, match="resumed elsewhere"):
        ledger.resume(first.id, first.session)
    assert ledger.resume(first.id, "stored before").session not in (first.session, "stored before")


def test_an_old_session_nonce_never_comes_back(ledger):
    first = ledger.reserve(plan())
    second = ledger.resume(first.id, first.session)
    with pytest.raises(LedgerError, match="never used before"):
        ledger.resume(first.id, second.session, next_session=first.session)


@pytest.mark.parametrize("status", ["done", "no-noise-drawn"])
def test_a_finished_run_is_not_resumed(ledger, status):
    run = ledger.reserve(plan())
    run.close(status, steps=0)
    with pytest.raises(LedgerError, match="was closed"):
        ledger.resume(run.id, run.session)


def test_an_unknown_run_is_not_resumed(ledger):
    with pytest.raises(LedgerError, match="not a reservation"):
        ledger.resume("nobody", "")


def test_a_learned_fact_is_not_drawn_again_after_a_crash(ledger):
    first = ledger.reserve(plan())
    first.noise_drawn("bounds of hours")
    second = ledger.resume(first.id, first.session)
    assert second.drawn == ("bounds of hours",)
    with pytest.raises(LedgerError, match="was drawn already"):
        second.noise_drawn("bounds of hours")
    second.noise_drawn("labels")
    with pytest.raises(LedgerError, match="may have drawn noise"):
        second.close("no-noise-drawn", steps=0)


@pytest.mark.parametrize("change", [{"steps": 101}, {"epsilon": 0.5}, {"schema_sha256": "1" * 64}])
def test_a_run_is_resumed_with_its_own_plan_only(ledger, change):
    run = ledger.reserve(plan(unit={"name": "person", "columns": ("a", "b")}))
    with pytest.raises(LedgerError, match="another plan"):
        ledger.resume(run.id, run.session, plan=plan(unit={"name": "person", "columns": ("a", "b")}, **change))
    ledger.resume(run.id, run.session, plan=plan(unit={"name": "person", "columns": ("a", "b")}))
