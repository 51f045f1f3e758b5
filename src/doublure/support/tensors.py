"""Untrusted files of weights: their hash, their arrays, and whether all numbers are finite.

State is kept as NumPy arrays, so that tables need no torch; networks convert it to tensors and back here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from doublure.errors import RunFolderError
from doublure.support.objects import Place

if TYPE_CHECKING:
    from torch import Tensor

Array: TypeAlias = npt.NDArray[Any]

_LARGEST_FILE = 20_000_000_000


def as_array(values: Array | Tensor) -> Array:
    """Return an array or tensor as a C-ordered array."""
    held: Any = values
    return np.asarray(held.detach().cpu().numpy() if hasattr(held, "detach") else held, order="C")


def as_arrays(state: Mapping[str, Array | Tensor]) -> dict[str, Array]:
    """Return a state as arrays."""
    return {name: as_array(value) for name, value in state.items()}


def as_tensor(values: Array | Tensor) -> Tensor:
    """Return an array or tensor as a tensor; an array becomes one on the CPU."""
    import torch

    return values if isinstance(values, torch.Tensor) else torch.from_numpy(np.require(values, requirements=["C", "W"]))


def as_tensors(state: Mapping[str, Array | Tensor]) -> dict[str, Tensor]:
    """Return a state as tensors."""
    return {name: as_tensor(value) for name, value in state.items()}


def to_safetensors(state: Mapping[str, Array | Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a safetensors file; equal content gives equal bytes."""
    from safetensors.numpy import save

    return _in_order(save(as_arrays(state), metadata))


def _in_order(content: bytes) -> bytes:
    """Return a safetensors file with a sorted header; safetensors writes metadata in the order of a hash table."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if "__metadata__" in header:
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def read_arrays(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Read a safetensors file, metadata and arrays; nothing in it is executed.

    Raises:
        RunFolderError: It is missing or damaged.
    """
    return _read(path, "numpy")


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Read a safetensors file that may hold numbers that NumPy does not know, such as bfloat16.

    Raises:
        RunFolderError: It is missing or damaged.
    """
    return _read(path, "pt")


def _read(path: Path, framework: Literal["numpy", "pt"]) -> tuple[dict[str, str], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_FILE:  # a pipe would be waited for
            raise damaged_file(path)
        with safe_open(path, framework=framework) as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError, RuntimeError, TypeError):
        raise damaged_file(path) from None


def all_finite(state: Mapping[str, Array | Tensor]) -> bool:
    """Return whether all numbers are finite."""
    held: Mapping[str, Any] = state
    return all(
        bool((value.isfinite() if hasattr(value, "isfinite") else np.isfinite(value)).all()) for value in held.values()
    )


def sha256_of(path: Place) -> str:
    """Return a file's SHA-256.

    Raises:
        RunFolderError: It cannot be read.
    """
    try:
        if not path.is_file():  # a pipe would be waited for
            raise damaged_file(path)
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        raise damaged_file(path) from None


_REMEDY = "bring back the folder as fit left it, or go on with --resume; a second fit costs ε again"


def damaged_file(path: Place) -> RunFolderError:
    """Return the refusal of a run's file that is not whole."""
    named = f"{path.parent.name}/{path.name}"  # the end of a long path would be cut off
    return RunFolderError("is missing or damaged", field=named, remedy=_REMEDY)
