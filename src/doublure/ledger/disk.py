"""The ledger's only access to the disk: open, lock, read, append, make durable.

The order is always write, then fsync, then return. `_write` and `_fsync` are functions of this module so that tests can
replace them by a fault, a power cut or a recorder; nothing else here writes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from doublure.errors import LedgerError
from doublure.support.files import remedy_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_MOUNTS = Path("/proc/mounts")
_NETWORK = frozenset(
    {"nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "davfs", "fuse.davfs", "fuse.sshfs"}
)
_LARGEST = 1 << 28  # bytes; hundreds of thousands of records: anything larger is not a ledger


def create(path: Path, data: bytes) -> None:
    """Create the file with its first bytes, mode 0600; file and directory are durable on return.

    Args:
        path: A path where nothing lies yet.
        data: The first record, newline included.

    Raises:
        LedgerError: The file exists, lies on a network file system, or could not be made durable.
    """
    _require_flock()
    refuse_network_file_system(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        raise LedgerError(
            "already exists and is never overwritten", field=path.name, remedy="open it, or choose another path"
        ) from None
    except OSError as error:
        raise _failure(path, "cannot be created", error, remedy_of(error)) from error
    with _lock(fd, path):
        try:
            os.fchmod(fd, 0o600)
            _write(fd, data)
            _fsync(fd)
            _sync_directory(path)
        except OSError as error:
            with suppress(OSError):
                path.unlink()  # nothing has been charged yet; left half-written, it would stand in the way
            raise _failure(path, "cannot be created", error, remedy_of(error)) from error


@contextmanager
def lock_file(path: Path, *, to_append: bool) -> Iterator[tuple[int, bytes]]:
    """Open the file anew, hold its exclusive lock, and give its descriptor and its bytes.

    Every call opens its own file description, because an flock belongs to the description: threads of one process
    exclude one another as processes do.

    Raises:
        LedgerError: The file is missing, not a regular file, not readable, or was replaced meanwhile.
    """
    _require_flock()
    flags = (os.O_RDWR | os.O_APPEND) if to_append else os.O_RDONLY
    try:
        fd = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise LedgerError(
            "does not exist", field=path.name, remedy="create it with `doublure budget init`, or fix the path"
        ) from None
    except OSError as error:
        raise _failure(path, "cannot be opened", error) from error
    with _lock(fd, path):
        yield fd, _read(fd, path)


def append(fd: int, data: bytes, path: Path) -> None:
    """Write at the end of the file and return only when it is durable; the lock is held.

    Raises:
        LedgerError: The write or the fsync failed. What the disk then holds is unknown: after a failed fsync a second
            one may report success for bytes that were lost, so nothing is tried again.
    """
    before = os.fstat(fd).st_size
    try:
        try:
            _write(fd, data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(fd, before)  # not reported yet, and under our lock: safe to undo
            raise
        _fsync(fd)
    except OSError as error:
        what = "could not be written durably, so nothing may be drawn and what was charged stays charged"
        raise _failure(path, what, error, remedy_of(error)) from error


def refuse_network_file_system(path: Path) -> None:
    """Refuse a path on NFS, SMB and their like, where locks and fsync do not mean what they mean locally.

    Where the table of mounts cannot be read (macOS), nothing is known and nothing is refused.

    Raises:
        LedgerError: The directory of the path is mounted from a network.
    """
    kind = _file_system(Path(os.path.realpath(path.parent)))
    if kind in _NETWORK:
        raise LedgerError(
            f"lies on a network file system ({kind}), where two runs could overspend",
            field=path.name,
            remedy="keep the ledger on a local disk",
        )


def _file_system(directory: Path) -> str | None:
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, kind = -1, None
    for line in lines:
        fields = line.split()
        if len(fields) < 3:
            continue
        mount = fields[1]
        for escape, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            mount = mount.replace(escape, char)
        # A later mount on the same point hides the earlier one, hence >=.
        if directory.is_relative_to(mount) and len(Path(mount).parts) >= best:
            best, kind = len(Path(mount).parts), fields[2]
    return kind


@contextmanager
def _lock(fd: int, path: Path) -> Iterator[None]:
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            here, there = os.fstat(fd), os.stat(path)  # noqa: PTH116 (the twin of fstat)
        except OSError as error:
            raise _failure(path, "cannot be locked", error) from error
        if not stat.S_ISREG(here.st_mode):
            raise LedgerError("is not a regular file", field=path.name, remedy="give the path of a ledger")
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise LedgerError("was replaced while it was opened", field=path.name, remedy="try again")
        try:
            yield
        finally:
            # A child forked by another thread may hold a copy of this descriptor: closing alone would leave it locked.
            fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


def _read(fd: int, path: Path) -> bytes:
    try:
        if os.fstat(fd).st_size > _LARGEST:
            raise LedgerError("is too large for a ledger", field=path.name, remedy="give the path of a ledger")
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    except OSError as error:
        raise _failure(path, "cannot be read", error) from error


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        written = os.write(fd, rest)
        if written == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rest = rest[written:]


def _fsync(fd: int) -> None:
    # On macOS fsync stops at the drive's own cache; F_FULLFSYNC goes through it.
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, full)


def _sync_directory(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _fsync(directory)
    finally:
        os.close(directory)


def _require_flock() -> None:
    if fcntl is None:
        raise LedgerError(
            "this system has no fcntl.flock, without which two runs could overspend",
            field="ledger",
            remedy="run doublure on Linux, macOS or WSL",
        )


def _failure(path: Path, what: str, error: OSError, remedy: str = "check the path and its permissions") -> LedgerError:
    return LedgerError(f"{what} ({os.strerror(error.errno or errno.EIO)})", field=path.name, remedy=remedy)
