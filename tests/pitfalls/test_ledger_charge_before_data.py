"""Rule 11: the charge is on disk before the first record is opened; the ledger only grows and never forgets."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

from doublure.errors import BudgetRefused, LedgerError
from doublure.ledger import Ledger, disk


class Touch:
    def to_json(self):
        return {
            "purpose": "train",
            "event": {"type": "gaussian"},
            "epsilon": 1.0,
            "delta": 1e-6,
            "rows": 48842,
            "seed": 7,
        }


def plan(kind="dp", epsilon=1.0, delta=1e-6):
    return SimpleNamespace(
        method="dpgan",
        guarantee=SimpleNamespace(kind=kind),
        epsilon=epsilon,
        delta=delta,
        unit={"name": "person", "id": None, "max_records": 1},
        relation="add/remove",
        accountant="pld",
        schema_sha256="0" * 64,
        sha256="0" * 64,
        touches=[Touch()],
        steps=100,
        seed=7,
        settings={"seed": 7, "rows": 48842},
        units=48842,
    )


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "ledger", dataset="adult", epsilon=1.5, delta=1e-5)


def test_the_charge_is_readable_and_fsynced_when_reserve_returns(ledger, monkeypatch):
    order = []
    write, fsync = disk._write, disk._fsync
    monkeypatch.setattr(disk, "_write", lambda fd, data: (order.append("write"), write(fd, data)))
    monkeypatch.setattr(disk, "_fsync", lambda fd: (order.append("fsync"), fsync(fd)))
    ledger.reserve(plan())
    order.append("open the data")
    assert order == ["write", "fsync", "open the data"]
    assert json.loads(ledger.path.read_bytes().splitlines()[-1])["body"]["charge"] == {"epsilon": 1.0, "delta": 1e-6}


def test_no_data_is_opened_when_the_cap_would_be_passed_or_the_disk_fails(ledger, monkeypatch):
    opened = []

    def fit(a_plan):
        ledger.reserve(a_plan)
        opened.append("data")

    with pytest.raises(BudgetRefused):
        fit(plan(epsilon=1.6))

    def fails(fd):
        raise OSError(5, "I/O error")

    monkeypatch.setattr(disk, "_fsync", fails)
    with pytest.raises(LedgerError):
        fit(plan())
    assert opened == []


def test_the_ledger_only_grows(ledger):
    run = ledger.reserve(plan())
    acts = [
        lambda: run.noise_drawn("bounds"),
        lambda: run.advance(10),
        lambda: run.close("interrupted", steps=10),
        lambda: ledger.resume(run.id, run.session).close("done", steps=10),
        lambda: ledger.record_release(run.id, {"data.csv": "0" * 64}, "dp"),
    ]
    for act in acts:
        before = ledger.path.read_bytes()
        act()
        assert ledger.path.read_bytes().startswith(before)
        assert ledger.path.stat().st_size > len(before)


def test_reading_writes_nothing(ledger):
    ledger.reserve(plan())
    before = ledger.path.read_bytes(), ledger.path.stat().st_mtime_ns
    ledger.verify(), ledger.show(), ledger.spent, ledger.entries, ledger.coverage, Ledger.open(ledger.path)
    assert (ledger.path.read_bytes(), ledger.path.stat().st_mtime_ns) == before


def test_an_input_error_before_noise_is_free_and_any_later_end_is_not(ledger):
    ledger.reserve(plan()).close("no-noise-drawn", steps=0)
    assert ledger.remaining.epsilon == 1.5
    late = ledger.reserve(plan())
    late.advance(1)
    with pytest.raises(LedgerError):
        late.close("no-noise-drawn", steps=0)
    late.close("aborted", steps=0)
    assert ledger.remaining.epsilon == 0.5


def test_seeds_sizes_and_rows_never_enter_the_ledger(ledger):
    run = ledger.reserve(plan())
    run.noise_drawn("bounds")
    run.advance(10)
    run = ledger.resume(run.id, run.session)
    run.close("done", steps=10)
    ledger.record_release(run.id, {"data.csv": "0" * 64}, "dp")
    text = re.sub(r"[0-9a-f]{16,}", "", ledger.path.read_text())  # A digest may hold any five figures.
    assert "48842" not in text
    assert "seed" not in text
    keys = {record.kind: set(record.body) for record in ledger.entries}
    assert keys == {
        "open": {"format", "dataset", "epsilon", "delta"},
        "reserve": {"id", "run_id", "session", "plan", "charge"},
        "noise": {"id", "session", "what"},
        "advance": {"id", "session", "through_step"},
        "resume": {"id", "session", "from_session"},
        "close": {"id", "session", "status", "steps", "artefact_sha256"},
        "release": {"id", "kind", "files"},
    }
    (touch,) = run.plan["touches"]
    assert set(touch) == {"purpose", "event", "epsilon", "delta"}
