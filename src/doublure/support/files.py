"""Atomic files: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NoReturn, TypeAlias

from doublure.errors import InputError
from doublure.support.objects import Place

_LARGEST_JSON = 100_000_000
_PART = ".part"
_AT_ONCE = 2**20
_REMEDIES = {
    errno.ENOSPC: "free some space or choose another folder",
    errno.EDQUOT: "free some of your quota or choose another folder",
    errno.EFBIG: "write less, or choose a folder that holds larger files",
    errno.EEXIST: "give a new or an empty folder",
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "choose a path that does not lead through a file",
    errno.EISDIR: "give the name of a file, not of a folder",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that is not read-only",
    errno.ENOTEMPTY: "choose another -o",
    errno.ENAMETOOLONG: "choose a shorter name",
}

Form: TypeAlias = Literal["plan", "page", "figures", "comparison", "inspection", "audit"]
"""Forms of output that may replace a file of the same form."""

_KEYS: Mapping[str, tuple[frozenset[str], ...]] = {
    "plan": (frozenset({"schema_sha256", "settings", "touches"}),),
    "figures": (
        frozenset({"about", "table"}),
        frozenset({"about", "images"}),
        frozenset({"about", "series"}),
        frozenset({"internal", "fidelity"}),
    ),
    "comparison": (frozenset({"internal", "contenders"}),),
    "inspection": (
        frozenset({"about", "fault_tests"}),
        frozenset({"about", "suspicions"}),  # as 0.1.0 named them
    ),
    "audit": (frozenset({"internal", "attacks", "claim"}),),
}
_NAMES: Mapping[str, str] = {
    "plan": "no plan",
    "page": "no page of doublure's",
    "figures": "no figures of an evaluation",
    "comparison": "no comparison",
    "inspection": "no inspection",
    "audit": "no figures of an audit",
}
_PAGE, _MADE_BY = b"<!doctype html>", b'<meta name="generator" content="doublure">'
"""The beginning of a page that is made again; a privacy file, which people fill in, names another generator."""
_LEDGER = b'{"body":'
_KEPT = {"run.json": "a run folder", "card.json": "a bundle"}


def write_atomic(path: Path, write: Callable[[BinaryIO], object], *, mode: int = 0o644) -> None:
    """Write a file through ``write`` and put it in place in one step.

    Raises:
        Unwritable: The disk is full or the folder cannot be written; the old file, if any, is untouched.
    """
    refuse_unwritable(path)
    temporary = temporary_path(path)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise Unwritable(path, error) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def reserve_room(path: Path, size: int, *, mode: int = 0o644) -> Iterator[Callable[[bytes], None]]:
    """Reserve room on the disk for a file, and yield a function that writes it atomically.

    A full disk fails here, before there is anything to lose. Unused room is released.

    Args:
        path: Of the file.
        size: The most bytes that it will have.
        mode: Of the file.

    Raises:
        Unwritable: The disk is full or the folder cannot be written.
    """
    refuse_unwritable(path)
    temporary = temporary_path(path)

    def write(content: bytes) -> None:
        with _unwritable(path), temporary.open("rb+") as file:
            file.write(content)
            file.truncate()
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)

    try:
        with _unwritable(path), os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            _fill(file, size)
        yield write
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(path, error) from None


def _fill(file: BinaryIO, size: int) -> None:
    """Allocate the blocks of a file; a hole would take none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    while size > 0:
        size -= file.write(bytes(min(size, _AT_ONCE)))
    file.flush()
    os.fsync(file.fileno())


def check_output(
    out: Path, *reads: str | Path | None, replaces: Form | None = None, forced: bool | None = None, flag: str = "-o"
) -> None:
    """Refuse to write where something would be lost; the one rule for every ``-o``.

    ==============================================  ==================================================================
    at the path                                     what happens
    ==============================================  ==================================================================
    nothing                                         it may be written
    a file of the form that is made again           it is replaced; with ``--force`` any file but those below
    what the command reads, a ledger, another file  refused
    a file in a run folder or a bundle              refused, whether or not it is there already
    a folder                                        left to the writer
    ==============================================  ==================================================================

    Args:
        out: Where to write.
        reads: Inputs of the command: the data, or the schema that a plan is made from.
        replaces: The form of the output, if a file of that form may be replaced; otherwise nothing may.
        forced: Whether ``--force`` was given, where a command has it: then other files are replaced, too.
        flag: What gave the path.

    Raises:
        InputError: Naming the file and its kind.
    """
    another = f"choose another {flag}"
    for name, what in _KEPT.items():
        if (out.parent / name).exists():
            raise InputError(f"lies in {what}, which holds its own files only", field=out, remedy=another)
    if not os.path.lexists(out) or out.is_dir():
        return
    for given in reads:
        if given is not None and out.exists() and Path(given).exists() and out.samefile(given):
            raise InputError("is read, and would be written over", field=out, remedy=another)
    if not out.is_file():
        raise InputError("is no regular file, and is not replaced", field=out, remedy=another)
    beginning = _beginning(out)
    if beginning.startswith(_LEDGER):
        raise InputError("is a ledger, and is never written over", field=out, remedy=another)
    if forced:
        return
    remedy = f"{another}, or {'remove it' if forced is None else 'give --force'}"
    if replaces is None:
        raise InputError("already exists", field=out, remedy=remedy)
    if not _has_form(out, beginning, replaces):
        raise InputError(f"already exists and is {_NAMES[replaces]}", field=out, remedy=remedy)


def _beginning(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(2_000)
    except OSError:  # then it is no form of ours either
        return b""


def _has_form(path: Path, beginning: bytes, form: Form) -> bool:
    if form == "page":
        return beginning.lstrip().lower().startswith(_PAGE) and _MADE_BY in beginning
    try:
        found = read_json(path, form)
    except InputError:
        return False
    return any(keys <= found.keys() for keys in _KEYS[form])


def temporary_path(path: Path) -> Path:
    """Return a temporary path beside a file or folder: hidden, with an unguessable name."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{_PART}")


@contextmanager
def staged_folder(asked: Path) -> Iterator[Path]:
    """Yield a temporary folder, and move it into place once it is complete.

    Args:
        asked: The final path; only an empty folder may be there.

    Raises:
        Unwritable: The folder, or a file in it, cannot be written; the error names the final path.
    """
    target = asked.absolute()
    staging = temporary_path(target)
    try:
        staging.mkdir(parents=True)
        yield staging
        if target.exists():
            target.rmdir()
        staging.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise Unwritable(asked, error) from None
    except Unwritable as error:  # names a file of the staging folder, which the user does not know
        raise Unwritable(asked, error.reason) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def remove_partial_files(folder: Path) -> None:
    """Remove half-written files that a killed process left in a folder of our own."""
    for left in folder.glob(f".*{_PART}"):
        left.unlink(missing_ok=True)


class Unwritable(InputError):
    """A file or folder that could not be written.

    Args:
        path: The path that the user gave, which need not be the file that was being written.
        error: The reason.
    """

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason = error
        said = (error.strerror or "the write failed").lower()
        super().__init__(f"cannot be written: {said}", field=path, remedy=remedy_of(error))


def remedy_of(error: OSError) -> str:
    """Return the remedy for a failed write."""
    return _REMEDIES.get(error.errno or 0, "check the path and the disk")


def refuse_unwritable(path: Path) -> None:
    """Refuse a file that cannot be written, before the work that would fill it.

    Raises:
        Unwritable: Its folder is missing or may not be written, or a folder has its name.
    """
    try:
        path.parent.stat()
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise Unwritable(path, error) from None


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, data: Any, *, mode: int = 0o644) -> None:
    """Write JSON that holds neither NaN nor Infinity."""
    content = json_bytes(data)
    write_atomic(path, lambda file: file.write(content), mode=mode)


def json_bytes(data: Any) -> bytes:
    """Return the bytes that :func:`write_json` writes.

    Raises:
        ValueError: The data holds NaN, Infinity or half a character.
    """
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def holds_anything(path: Path) -> bool:
    """Whether a path holds anything other than an empty folder."""
    return path.exists() and (not path.is_dir() or any(path.iterdir()))


def read_json(path: Place, what: str, shape: type = dict) -> Any:
    """Read a JSON object, or a list.

    Args:
        path: Of the file.
        what: The expected content, for messages.
        shape: ``dict`` or ``list``.

    Raises:
        InputError: The file is missing, too large, or holds nothing of that shape.
    """
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise InputError("is larger than 100 MB", field=path, remedy=f"give a {what} file")
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy=f"give the path of a {what}") from None
    except (OSError, ValueError, RecursionError):
        raise InputError("is not readable as JSON", field=path, remedy=f"give a {what} file") from None
    if not isinstance(data, shape):
        raise InputError(
            f"is not a JSON {'object' if shape is dict else 'list'}", field=path, remedy=f"give a {what} file"
        )
    return data
