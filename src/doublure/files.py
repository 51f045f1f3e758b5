"""Files that are whole or not there: temporary file, fsync, rename, fsync of the folder."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from doublure.errors import InputError

_LARGEST_JSON = 100_000_000
_PART = ".part"


def write_atomic(path: Path, write: Callable[[BinaryIO], object], *, mode: int = 0o644) -> None:
    """Write a file through ``write`` and put it in place in one step.

    Raises:
        InputError: The disk is full or the folder cannot be written; the old file, if any, is untouched.
    """
    temporary = part_of(path)
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise unwritable(path, error) from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def part_of(path: Path) -> Path:
    """Return where a file or folder is made before it is put in place: beside it, hidden, a name nobody can guess."""
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}{_PART}")


def sweep(folder: Path) -> None:
    """Remove what a killed process left half-written in a folder of our own."""
    for left in folder.glob(f".*{_PART}"):
        left.unlink(missing_ok=True)


def unwritable(path: Path, error: OSError) -> InputError:
    """Return the one line that a failed write deserves."""
    reason = (error.strerror or "the write failed").lower()
    return InputError(f"cannot be written: {reason}", field=path, remedy="free some space or choose another folder")


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_json(path: Path, data: Any, *, mode: int = 0o644) -> None:
    """Write JSON that holds neither NaN nor Infinity."""
    text = json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomic(path, lambda file: file.write(text.encode()), mode=mode)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def read_json(path: Path, what: str) -> Any:
    """Read a JSON object.

    Raises:
        InputError: The file is missing, too large, or holds no JSON object.
    """
    try:
        if path.stat().st_size > _LARGEST_JSON:
            raise InputError("is larger than 100 MB", field=path, remedy=f"give a {what} file")
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except FileNotFoundError:
        raise InputError("there is no such file", field=path, remedy=f"give the path of a {what}") from None
    except (OSError, ValueError, RecursionError):
        raise InputError("is not readable as JSON", field=path, remedy=f"give a {what} file") from None
    if not isinstance(data, dict):
        raise InputError("is not a JSON object", field=path, remedy=f"give a {what} file")
    return data
