"""Several processes and threads on one ledger, and processes that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from killed import ended, started

from doublure.errors import BudgetRefused, LedgerError
from doublure.ledger import Budget, Ledger

KILLER = Path(__file__).resolve().parents[2] / "benchmarks" / "robustness" / "ledger_kill.py"


def test_eight_processes_cannot_overspend(place, make_plan):
    Ledger.create(place, dataset="adult", epsilon=30.0, delta=0.5)
    gate, go = os.pipe()

    def spend() -> int:
        os.close(go)
        os.read(gate, 1)  # ends once no process may write there any more: all begin at once
        ledger, won = Ledger.open(place), 0
        for _ in range(25):
            with suppress(BudgetRefused):
                ledger.reserve(make_plan(epsilon=0.3))
                won += 1
        return won

    children = [started(spend) for _ in range(8)]
    os.close(go)
    won = [ended(child) for child in children]
    os.close(gate)
    # 200 tries at 0.3 for a cap of 30: exactly a hundred fit.
    assert sum(won) == 100
    ledger = Ledger.open(place)
    assert ledger.spent == Budget(epsilon=30.0, delta=1e-4)
    assert ledger.verify().runs == 100


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "an object each"])
def test_eight_threads_cannot_overspend(place, make_plan, shared):
    ledger = Ledger.create(place, dataset="adult", epsilon=9.0, delta=0.5)
    won, errors = [], []

    def spend() -> None:
        mine = ledger if shared else Ledger.open(place)
        for _ in range(8):
            try:
                won.append(mine.reserve(make_plan(epsilon=0.3)).id)
            except BudgetRefused:
                pass
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(won)) == len(won) == 30
    assert ledger.spent.epsilon == 9.0
    assert ledger.verify().runs == 30


def test_without_the_lock_threads_do_overspend_or_break_the_chain(path, make_plan, monkeypatch):
    """The test above can fail: the same threads without the lock, each stopped between reading and writing."""
    from doublure.ledger import disk

    ledger = Ledger.create(path, dataset="adult", epsilon=0.5, delta=0.5)
    both_have_read = threading.Barrier(2, timeout=20)
    append = disk.append
    monkeypatch.setattr(disk.fcntl, "flock", lambda fd, how: None)
    monkeypatch.setattr(disk, "append", lambda *arguments: (both_have_read.wait(), append(*arguments)))
    won: list[str] = []
    spend = [threading.Thread(target=lambda: won.append(Ledger.open(path).reserve(make_plan()).id)) for _ in range(2)]
    for thread in spend:
        thread.start()
    for thread in spend:
        thread.join()
    assert len(won) == 2
    with pytest.raises(LedgerError):
        ledger.verify()


def test_two_processes_with_one_session_do_not_both_draw(place, make_plan):
    """As after a fork: both hold the session's nonce, and neither resumed."""
    ledger = Ledger.create(place, dataset="adult", epsilon=3.0, delta=1e-4)
    reservation = ledger.reserve(make_plan())
    assert ended(started(lambda: reservation.advance(10))) == 0
    with pytest.raises(LedgerError, match="another process"):
        reservation.advance(20)


def kills(number: int, place: str, *more: str) -> dict[str, float]:
    if not KILLER.exists():
        pytest.skip("the benchmarks are not here")
    command = [sys.executable, str(KILLER), "--kills", str(number), "--json", "--ledger", place, *more]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_twenty_kills_leave_no_step_that_was_not_authorised(place):
    result = kills(20, place)
    assert (result["beyond_authorised"], result["drawn_twice"]) == (0, 0)
    assert result["steps_drawn"] > 20


def test_the_kill_test_catches_drawing_before_authorising(place):
    result = kills(15, place, "--mutant")
    assert result["beyond_authorised"] > 0
    assert result["drawn_twice"] > 0


def test_the_ledger_imports_nothing_heavy():
    heavy = {"torch", "numpy", "pandas", "dp_accounting", "pydantic"}
    code = f"import sys, doublure.ledger; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"
