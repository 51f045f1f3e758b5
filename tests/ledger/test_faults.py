"""Crashes, power cuts and full disks at every labelled point: the ledger never says less than was let out."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tiers import by_tier

from doublure.errors import BudgetRefused, LedgerError
from doublure.ledger import Ledger, Reservation, disk


class PowerCut(BaseException):
    """The machine stops here."""


def begin(path: Path, plan: Any) -> tuple[Ledger, Reservation]:
    ledger = Ledger.create(path, dataset="adult", epsilon=3.0, delta=1e-4)
    return ledger, ledger.reserve(plan, run_id="run")


ACTS: dict[str, Callable[[Ledger, Reservation, Any], object]] = {
    "reserve": lambda ledger, reservation, plan: ledger.reserve(plan),
    "noise": lambda ledger, reservation, plan: reservation.noise_drawn("bounds"),
    "advance": lambda ledger, reservation, plan: reservation.advance(10),
    "resume": lambda ledger, reservation, plan: ledger.resume(reservation.id, reservation.session),
    "close": lambda ledger, reservation, plan: reservation.close("no-noise-drawn", steps=0),
    "release": lambda ledger, reservation, plan: ledger.record_release(reservation.id, {"a": "0f" * 32}, "dp"),
}


def known(path: Path) -> tuple[float, int, int]:
    """What a fresh reader finds: ε spent, steps authorised, number of records."""
    ledger = Ledger.open(path)
    return ledger.spent.epsilon, sum(run["steps"] for run in ledger.show()["runs"]), ledger.head[0]


class Disk:
    """Stands in for `_write` and `_fsync`: records the order, and fails where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.trace: list[str] = []
        self.cut: int | None = None
        self.failure: BaseException | None = None
        self.fail_at = ""
        self.durable = 0
        self.write, self.fsync = disk._write, disk._fsync
        monkeypatch.setattr(disk, "_write", self.on_write)
        monkeypatch.setattr(disk, "_fsync", self.on_fsync)

    def on_write(self, fd: int, data: bytes) -> None:
        self.trace.append("write")
        if self.failure is not None and self.fail_at == "write":
            self.write(fd, data[: self.cut])
            raise self.failure
        self.write(fd, data)

    def on_fsync(self, fd: int) -> None:
        self.trace.append("fsync")
        if self.failure is not None and self.fail_at == "fsync":
            raise self.failure
        self.durable = os.fstat(fd).st_size

    def fail(self, at: str, failure: BaseException, cut: int | None = None) -> None:
        self.fail_at, self.failure, self.cut = at, failure, cut


def check_order(trace: list[str]) -> None:
    """Write, then fsync, then return, then draw; nothing else."""
    if trace != ["write", "fsync", "return", "draw"]:
        raise AssertionError(f"order was {trace}")


def traced(recorder: Disk, act: Callable[[], object], late: list[int] | None = None) -> list[str]:
    recorder.trace.clear()
    act()
    recorder.trace.append("return")
    for fd in late or []:
        recorder.on_fsync(fd)
        os.close(fd)
    recorder.trace.append("draw")
    return list(recorder.trace)


@pytest.mark.parametrize("name", ACTS)
def test_nothing_returns_before_its_record_is_durable(path, make_plan, monkeypatch, name):
    ledger, reservation = begin(path, make_plan())
    recorder = Disk(monkeypatch)
    check_order(traced(recorder, lambda: ACTS[name](ledger, reservation, make_plan())))
    assert recorder.durable == path.stat().st_size


@pytest.mark.parametrize("mutant", ["never", "before the write", "after the return"])
@pytest.mark.parametrize("name", ACTS)
def test_the_order_check_catches_a_misplaced_fsync(path, make_plan, monkeypatch, name, mutant):
    ledger, reservation = begin(path, make_plan())
    recorder, late = Disk(monkeypatch), []

    def append(fd: int, data: bytes, path: Path) -> None:
        if mutant == "before the write":
            disk._fsync(fd)
        disk._write(fd, data)
        if mutant == "after the return":
            late.append(os.dup(fd))

    monkeypatch.setattr(disk, "append", append)
    with pytest.raises(AssertionError, match="order was"):
        check_order(traced(recorder, lambda: ACTS[name](ledger, reservation, make_plan()), late))


def test_creation_makes_file_and_directory_durable(path, monkeypatch):
    recorder = Disk(monkeypatch)
    kinds = []
    monkeypatch.setattr(disk, "_fsync", lambda fd: (recorder.on_fsync(fd), kinds.append(os.fstat(fd).st_mode >> 12)))
    Ledger.create(path, dataset="d", epsilon=1.0, delta=0.0)
    assert recorder.trace == ["write", "fsync", "fsync"]
    assert kinds == [0o10, 0o4]  # a regular file, then a directory


# What a line of each kind counts for once so much of it is there; before that nobody can tell, and nothing is recorded
TELLING = {
    "reserve": [(b'"epsilon":0.5}', {"spent": 1.0})],
    "noise": [(b'"id":"', {}), (b'","', {"authorised": 100, "drawn": 1}), (b'"bounds"}', {"drawn": 1})],
    "advance": [
        (b'"id":"', {}),
        (b'","', {"authorised": 100, "drawn": 1}),
        (b'"through_step":10}', {"authorised": 10}),
    ],
    "resume": [(b'{"body":{"f', {})],
    "close": [(b'{"body":{"a', {})],
    "release": [(b'{"body":{"f', {})],
}  # fmt: skip


def expected(name: str, line: bytes, cut: int) -> dict[str, float] | None:
    """Return what is known after a cut; None if what was being written cannot be read."""
    found: dict[str, float] | None = None if cut else {}
    place = 0
    for mark, meaning in TELLING[name]:
        place = line.index(mark, place) + len(mark)
        if cut >= place and mark != b'"id":"':
            found = meaning
    whole = {"reserve": {"spent": 1.0}, "close": {"spent": 0.0}}
    if cut >= len(line) - 1:
        found = whole.get(name, found)
    return None if found is None else {"spent": 0.5, "authorised": 0, "drawn": 0} | found


@pytest.mark.parametrize("name", ACTS)
def test_a_power_cut_after_any_byte_leaves_a_ledger_that_says_enough(path, make_plan, monkeypatch, name):
    begin(path, make_plan())
    start = path.read_bytes()
    recorder = Disk(monkeypatch)
    monkeypatch.setattr("doublure.ledger.store._utc", lambda: "2026-11-26T08:00:00Z")

    def attempt(cut: int | None) -> bytes:
        path.write_bytes(start)
        ledger = Ledger.open(path)
        reservation = Reservation(ledger._store, ledger._store.view().account.find("run"))
        recorder.fail("write" if cut is not None else "never", PowerCut(), cut)
        if cut is None:
            ACTS[name](ledger, reservation, make_plan())
        else:
            with pytest.raises(PowerCut):
                ACTS[name](ledger, reservation, make_plan())
        recorder.fail("never", PowerCut())
        return path.read_bytes()

    line = attempt(None)[len(start) :]
    told = [expected(name, line, cut) for cut in range(len(line) + 1)]
    turns = [cut for cut in range(1, len(told)) if told[cut] != told[cut - 1]]
    near = {0, 1, len(line) - 1, len(line)} | {turn + by for turn in turns for by in (-2, -1, 0, 1)}
    for cut in range(len(line) + 1):
        if cut not in near and cut % by_tier(9, 1):  # between two turns every byte means the same
            continue
        data = attempt(cut)
        found = expected(name, line, cut)
        check_what_is_known(path, found, records=2 + (cut >= len(line) - 1))
        if found is None:
            check_only_its_owner_goes_on(path, start, make_plan())
        else:
            check_life_goes_on(path, data, found, make_plan())


def check_what_is_known(path: Path, found: dict[str, float] | None, *, records: int) -> None:
    ledger = Ledger.open(path)
    run = ledger._store.view().account.find("run")
    known = {"spent": ledger.spent.epsilon, "authorised": run.authorised, "drawn": len(run.drawn)}
    assert known == (found or {"spent": 0.5, "authorised": 0, "drawn": 0})
    assert ledger.head[0] == records


def check_only_its_owner_goes_on(path: Path, start: bytes, plan: Any) -> None:
    """Nothing is recorded; the line is named, and so is what removes it, which changes nothing before it."""
    data, ledger = path.read_bytes(), Ledger.open(path)
    run = ledger._store.view().account.find("run")
    for act in (
        lambda: ledger.reserve(plan),
        lambda: ledger.resume("run", run.sessions[-1]),
        lambda: Reservation(ledger._store, run).advance(20),
        lambda: Reservation(ledger._store, run).close("no-noise-drawn", steps=0),
        ledger.verify,
    ):
        with pytest.raises(LedgerError, match="line 3 is cut short") as caught:
            act()
        assert f"truncate -s {len(start)} {path.name}" in (caught.value.remedy or "")
    assert path.read_bytes() == data
    os.truncate(path, len(start))
    assert Ledger.open(path).reserve(plan).charge.epsilon == 0.5
    assert Ledger.open(path).verify().torn == 0


def check_life_goes_on(path: Path, data: bytes, found: dict[str, float], plan: Any) -> None:
    """What the line counts for stays once it is closed, for who has the file open and for who opens it."""
    reader, writer = Ledger.open(path), Ledger.open(path)
    writer.reserve(plan)
    for ledger in (reader, writer, Ledger.open(path)):
        run = ledger._store.view().account.find("run")
        assert ledger.spent.epsilon == found["spent"] + 0.5
        assert (run.authorised, len(run.drawn)) == (found["authorised"], found["drawn"])
        ledger.verify()
    assert path.read_bytes().startswith(data)


@pytest.mark.parametrize(("mark", "authorised"), [(b'"through_step":10}', 10), (b'"session":"', 100)])
def test_what_a_line_may_have_allowed_is_not_allowed_again(path, make_plan, mark, authorised):
    _, reservation = begin(path, make_plan())
    start = len(path.read_bytes())
    reservation.advance(10)
    os.truncate(path, path.read_bytes().index(mark, start) + len(mark))
    resumed = Ledger.open(path).resume("run", reservation.session)
    assert resumed.authorised == authorised
    with pytest.raises(LedgerError, match="authorised already"):
        resumed.advance(10)
    with pytest.raises(LedgerError, match="may have drawn noise"):
        resumed.close("no-noise-drawn", steps=0)


def test_a_ledger_that_is_cut_within_its_last_reservation_stays_charged(path, make_plan):
    """Not by a power cut but by hand, after the run: as far as the amounts stand there, they are charged."""
    ledger, _ = begin(path, make_plan())
    first = path.stat().st_size
    ledger.reserve(make_plan(epsilon=2.4))
    os.truncate(path, path.stat().st_size - 200)
    for _ in range(2):
        with pytest.raises(BudgetRefused):
            Ledger.open(path).reserve(make_plan(epsilon=0.2))
        assert Ledger.open(path).spent.epsilon == 2.9
        Ledger.open(path).reserve(make_plan(kind="none"))  # which closes the line
    os.truncate(path, first + 20)
    with pytest.raises(LedgerError, match="line 3 is cut short"):
        Ledger.open(path).reserve(make_plan(epsilon=0.2))


def test_lost_unsynced_bytes_never_hide_what_was_let_out(path, make_plan, monkeypatch):
    recorder = Disk(monkeypatch)
    _, reservation = begin(path, make_plan())
    for through in (10, 20, 30):
        reservation.advance(through)
    synced = path.stat().st_size
    assert recorder.durable == synced
    recorder.fail("fsync", PowerCut())
    with pytest.raises(PowerCut):
        reservation.advance(40)
    recorder.fail("never", PowerCut())
    data = path.read_bytes()
    assert recorder.durable == synced < len(data)
    for kept in range(recorder.durable, len(data) + 1):
        path.write_bytes(data[:kept])
        spent, authorised, _ = known(path)
        assert spent == 0.5
        # Of a line that was cut short, as much as it can have said: 40 if that stands there, all if only the run does.
        assert authorised == 40 if kept >= len(data) - 1 else authorised in (30, 40, 100)


def test_many_cuts_in_a_row_leave_a_ledger_that_says_enough(path, make_plan, monkeypatch):
    chance = random.Random(11)
    begin(path, make_plan(steps=10_000, epsilon=0.01))
    session = Ledger.open(path).entries[-1].body["session"]
    recorder = Disk(monkeypatch)
    allowed = 0
    for number in range(by_tier(60, 150)):
        following = f"session-{number}"
        cut = chance.choice([0, 1, 3, 6, 7, 8, 100, chance.randrange(400), None])
        with suppress(PowerCut):
            ledger = Ledger.open(path)
            if chance.random() < 0.3 and cut is not None:
                recorder.fail("write", PowerCut(), cut)
            reservation = ledger.resume("run", session, next_session=following)
            if cut is not None:
                recorder.fail("write", PowerCut(), cut)
            reservation.advance(reservation.authorised + 3)
            allowed = reservation.authorised
        recorder.fail("never", PowerCut())
        found = Ledger.open(path)
        assert known(path)[1] >= allowed
        view = found._store.view()
        if view.unread or view.account.find("run").authorised == 10_000:
            os.truncate(path, view.chain.good)  # its owner, who knows that nothing was drawn for it
        session = [e.body["session"] for e in found.entries if e.kind in ("reserve", "resume")][-1]
    assert allowed > by_tier(12, 30)
    assert Ledger.open(path).verify().torn > by_tier(4, 10)


FAULTS = [
    ("write", errno.ENOSPC, 0),
    ("write", errno.ENOSPC, 50),
    ("write", errno.EIO, 10_000),
    ("fsync", errno.EIO, None),
    ("fsync", errno.ENOSPC, None),
]


@pytest.mark.parametrize(("at", "code", "cut"), FAULTS)
@pytest.mark.parametrize("name", ACTS)
def test_a_failing_disk_stops_everything_and_is_not_asked_again(path, make_plan, monkeypatch, name, at, code, cut):
    ledger, reservation = begin(path, make_plan())
    other = Reservation(ledger._store, reservation._run)
    before = known(path)
    recorder = Disk(monkeypatch)
    recorder.fail(at, OSError(code, os.strerror(code)), cut)
    with pytest.raises(LedgerError) as caught:
        ACTS[name](ledger, reservation, make_plan())
    assert os.strerror(code) in str(caught.value)
    assert recorder.trace.count("write") == 1
    assert recorder.trace.count("fsync") == (at == "fsync")
    recorder.fail("never", PowerCut())
    recorder.trace.clear()
    for act in (
        lambda: reservation.advance(50),
        lambda: other.noise_drawn("x"),
        lambda: other.close("done", steps=0),
        lambda: ledger.reserve(make_plan()),
        lambda: ledger.resume(reservation.id, reservation.session),
    ):
        with pytest.raises(LedgerError, match="an earlier write failed"):
            act()
    assert recorder.trace == []
    assert ledger.show() == Ledger.open(path).show()
    after = known(path)
    assert after[1] >= before[1]
    assert after[0] >= before[0] or name == "close"


@pytest.mark.parametrize("at", ["write", "fsync"])
def test_a_failing_disk_refuses_creation_and_leaves_nothing(path, monkeypatch, at):
    recorder = Disk(monkeypatch)
    recorder.fail(at, OSError(errno.ENOSPC, "full"), 20)
    with pytest.raises(LedgerError, match="No space left"):
        Ledger.create(path, dataset="d", epsilon=1.0, delta=0.0)
    assert not path.exists()
    recorder.fail("never", OSError())
    Ledger.create(path, dataset="d", epsilon=1.0, delta=0.0)


def test_a_power_cut_while_it_is_created_leaves_what_says_so(path, monkeypatch):
    Disk(monkeypatch).fail("write", PowerCut(), 20)
    with pytest.raises(PowerCut):
        Ledger.create(path, dataset="d", epsilon=1.0, delta=0.0)
    with pytest.raises(LedgerError, match="never completed"):
        Ledger.open(path)


FULL = """
import resource, sys
from types import SimpleNamespace
from doublure.errors import LedgerError
from doublure.ledger import Ledger
ledger = Ledger.open(sys.argv[1])
reservation = ledger.resume("run", sys.argv[2])
size = ledger.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 700, size + 700))
for through in range(1, 100):
    try:
        reservation.advance(through)
    except LedgerError:
        break
    print(through, flush=True)
"""


def test_a_disk_that_is_really_full(path, make_plan):
    _, reservation = begin(path, make_plan())
    drawn = subprocess.run(
        [sys.executable, "-c", FULL, str(path), reservation.session], capture_output=True, text=True, check=True
    ).stdout.split()
    ledger = Ledger.open(path)
    assert 1 <= len(drawn) < 5
    assert known(path)[1] == int(drawn[-1])
    assert ledger.verify().torn == 0  # the process that could not write the rest has taken the beginning back
    resumed = ledger.resume("run", ledger.entries[-len(drawn) - 1].body["session"])
    assert resumed.authorised == int(drawn[-1])
    assert not ledger.entries[-1].after_torn


def test_an_interrupt_in_the_write_counts_as_a_failure(path, make_plan, monkeypatch):
    _, reservation = begin(path, make_plan())
    recorder = Disk(monkeypatch)
    recorder.fail("fsync", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        reservation.advance(10)
    with pytest.raises(LedgerError, match="an earlier write failed"):
        reservation.advance(20)


def test_a_refusal_is_not_a_failure(ledger, make_plan):
    with pytest.raises(BudgetRefused):
        ledger.reserve(make_plan(epsilon=4.0))
    with pytest.raises(LedgerError):
        ledger.resume("nobody", "x")
    assert ledger.reserve(make_plan()).charge.epsilon == 0.5


def test_a_ledger_replaced_while_it_is_opened_is_not_spent_from(ledger, path, make_plan, monkeypatch):
    flock = disk.fcntl.flock
    before = path.read_bytes()

    def replaced(fd: int, how: int) -> None:
        (path.parent / "new").write_bytes(before)
        (path.parent / "new").replace(path)
        flock(fd, how)

    monkeypatch.setattr(disk.fcntl, "flock", replaced)
    with pytest.raises(LedgerError, match="was replaced"):
        ledger.reserve(make_plan())
    assert path.read_bytes() == before
