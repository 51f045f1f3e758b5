"""The contact with the disk, call by call: what is opened how, written in parts, locked, and closed again."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from pathlib import Path

import pytest

from doublure.errors import LedgerError
from doublure.ledger import Ledger, disk


def begin(folder: Path) -> Ledger:
    return Ledger.create(folder / "l", dataset="d", epsilon=1.0, delta=0.0)


def test_a_file_is_nobody_elses_from_its_first_moment(tmp_path, monkeypatch):
    modes, before = [], os.umask(0)
    monkeypatch.setattr(os, "fchmod", lambda fd, mode: modes.append((stat.S_IMODE(os.fstat(fd).st_mode), mode)))
    try:
        begin(tmp_path)
    finally:
        os.umask(before)
    assert modes == [(0o600, 0o600)]


def test_reading_asks_for_no_right_to_write(ledger, make_plan, monkeypatch):
    asked, opened = [], os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *mode: asked.append(flags) or opened(path, flags, *mode))
    ledger.verify()
    assert [flags & os.O_ACCMODE for flags in asked] == [os.O_RDONLY]
    asked.clear()
    ledger.reserve(make_plan())
    assert [flags & (os.O_ACCMODE | os.O_APPEND) for flags in asked] == [os.O_RDWR | os.O_APPEND]


def test_a_write_that_comes_in_parts_is_finished(ledger, path, make_plan, monkeypatch):
    write, parts = os.write, []
    monkeypatch.setattr(os, "write", lambda fd, data: parts.append(write(fd, data[:7])) or parts[-1])
    ledger.reserve(make_plan())
    assert len(parts) > 10
    assert Ledger.open(path).verify().sequence == 2


def test_a_write_that_writes_nothing_is_a_failure(ledger, path, make_plan, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr(os, "write", lambda fd, data: 0)
    with pytest.raises(LedgerError, match=re.escape(os.strerror(errno.EIO))):
        ledger.reserve(make_plan())
    assert path.read_bytes() == before


def test_where_the_drive_has_a_cache_it_is_flushed_too(ledger, make_plan, monkeypatch):
    flushed, synced = [], []
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", lambda fd, what: flushed.append(what))
    monkeypatch.setattr(os, "fsync", synced.append)
    ledger.reserve(make_plan())
    assert (flushed, synced) == ([51], [])


def descriptors() -> set[str]:
    return {path.name for path in Path("/dev/fd").iterdir()}


def test_no_descriptor_stays_open(tmp_path, make_plan):
    before = descriptors()
    ledger = begin(tmp_path)
    ledger.reserve(make_plan(delta=0.0))
    (tmp_path / "folder").mkdir()
    for act in (lambda: Ledger.open(tmp_path / "folder"), lambda: begin(tmp_path)):
        with pytest.raises(LedgerError):
            act()
    assert descriptors() == before


def test_what_is_durable_was_handed_to_the_disk(tmp_path, make_plan, monkeypatch):
    fsync, synced = os.fsync, []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)) or fsync(fd))
    ledger = begin(tmp_path)
    assert synced == [False, True]
    ledger.reserve(make_plan(delta=0.0))
    assert synced == [False, True, False]


def test_what_cannot_be_read_is_named(path):
    with pytest.raises(LedgerError, match="cannot be read"):
        disk._read(-1, path)


def test_the_lock_goes_though_a_copy_of_the_descriptor_stays(ledger, path, monkeypatch):
    read, copies = disk._read, []
    monkeypatch.setattr(disk, "_read", lambda fd, path: copies.append(os.dup(fd)) or read(fd, path))
    ledger.verify()
    other = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        for fd in (other, *copies):
            os.close(fd)


def test_the_lock_is_held_while_a_record_is_written(ledger, path, make_plan, monkeypatch):
    append, held = disk.append, []

    def watched(fd: int, data: bytes, to: Path) -> None:
        other = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            held.append(True)
        os.close(other)
        append(fd, data, to)

    monkeypatch.setattr(disk, "append", watched)
    ledger.reserve(make_plan())
    assert held == [True]


def test_a_file_may_be_as_large_as_the_largest_and_no_larger(ledger, path, monkeypatch):
    assert disk._LARGEST == 2**28
    monkeypatch.setattr(disk, "_LARGEST", path.stat().st_size)
    ledger.verify()
    monkeypatch.setattr(disk, "_LARGEST", path.stat().st_size - 1)
    with pytest.raises(LedgerError, match="too large"):
        ledger.verify()


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"none /", "ext4"),
        (b"server:/x / nfs", "nfs"),
        (b"server:/\xff /\xff nfs rw", "ext4"),
        (b"server:/x /elsewhere nfs rw", "ext4"),
    ],
)
def test_lines_of_the_table_of_mounts_are_read_as_far_as_they_go(tmp_path, monkeypatch, line, kind):
    (tmp_path / "mounts").write_bytes(b"/dev/sda1 / ext4 rw 0 0\n" + line + b"\n")
    monkeypatch.setattr(disk, "_MOUNTS", tmp_path / "mounts")
    assert disk._file_system(Path("/srv")) == kind


def test_a_failure_is_named(ledger, monkeypatch):
    for code, said in ((errno.EACCES, errno.EACCES), (0, errno.EIO), (None, errno.EIO)):
        error = OSError()
        error.errno = code

        def fails(*_: object, error: OSError = error) -> None:
            raise error

        monkeypatch.setattr(fcntl, "flock", fails)
        with pytest.raises(LedgerError, match=re.escape(f"cannot be locked ({os.strerror(said)})")) as caught:
            ledger.verify()
        assert "permissions" in (caught.value.remedy or "")


def test_the_clock_is_read_to_the_second(ledger):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", ledger.entries[0].utc)
    assert re.fullmatch(r"doublure \S+", ledger.entries[0].tool)
