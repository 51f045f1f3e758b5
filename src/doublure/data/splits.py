"""Containers that hold several splits: ``x_train`` and ``x_test``, of which one is named behind a path, ``#train``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from doublure.errors import DataError, printable


def split_off(path: Path) -> tuple[Path, str | None]:
    """Return a path and the split that is named behind it; a file whose own name has a # is left in peace."""
    if path.exists() or "#" not in path.name:
        return path, None
    name, _, split = path.name.rpartition("#")
    return path.with_name(name) if name else path, split or None


def named(names: Iterable[str], known: tuple[str, ...], split: str | None) -> dict[str, str]:
    """Return the names that hold one thing: split -> name, "" for a name without one."""
    found: dict[str, str] = {}
    for name in names:
        stem, _, behind = name.partition("_")
        if stem.lower() in known and (split is None or behind == split):
            found.setdefault(behind, name)
    return found


def several(name: str, splits: Iterable[str], what: str) -> DataError:
    """Return the refusal of a container with several splits of which none is named."""
    shown = ", ".join(printable(f"{name}#{split}" if split else name) for split in splits)
    return DataError(f"holds several sets of {what}", field=name, remedy=f"name one: {shown}")
