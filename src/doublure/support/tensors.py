"""Files of weights that somebody else may have touched: their hash, their tensors, whether all numbers are finite."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from doublure.errors import RunFolderError

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_FILE = 20_000_000_000


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read a safetensors file, metadata and tensors; nothing in it is executed.

    Raises:
        RunFolderError: It is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:  # a pipe would be waited for
            raise damaged(path)
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError, RuntimeError):
        raise damaged(path) from None


def all_finite(tensors: Mapping[str, Tensor]) -> bool:
    """Return whether none of them holds a number that is not finite."""
    return all(bool(value.isfinite().all()) for value in tensors.values())


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256.

    Raises:
        RunFolderError: It cannot be read.
    """
    try:
        if not path.is_file():  # a pipe would be waited for
            raise damaged(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise damaged(path) from None


def damaged(path: Path) -> RunFolderError:
    """Return what to say of a file of a run that is not whole."""
    named = f"{path.parent.name}/{path.name}"  # the end of a long path would be cut off
    return RunFolderError("is missing or damaged", field=named, remedy="fit again, or go on with --resume")
