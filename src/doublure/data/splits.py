"""Containers that hold several splits: ``x_train`` and ``x_test``, of which one is named behind a path, ``#train``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from doublure.errors import DataError, printable


def split_off(path: Path) -> tuple[Path, str | None]:
    """Return a path and the split that is named behind it; a file whose own name has a # is left in peace."""
    if path.exists() or "#" not in path.name:
        return path, None
    name, _, split = path.name.rpartition("#")
    return path.with_name(name) if name else path, split or None


def named(names: Iterable[str], known: tuple[str, ...], split: str | None) -> dict[str, list[str]]:
    """Return the names that may hold one thing: split -> names, "" for names without one."""
    found: dict[str, list[str]] = {}
    for name in names:
        stem, _, behind = name.partition("_")
        if stem.lower() in known and (split is None or behind == split):
            found.setdefault(behind, []).append(name)
    return found


def only(names: Sequence[str], container: str) -> str:
    """Return the one name that holds a thing.

    Raises:
        DataError: Several could be meant, and nobody could tell which.
    """
    if len(names) > 1:
        both = " and ".join(printable(name) for name in names[:2])
        raise DataError(f"holds {both}, either of which could be meant", field=container, remedy="rename one")
    return names[0]


def several(name: str, splits: Iterable[str], what: str) -> DataError:
    """Return the refusal of a container with several splits of which none is named."""
    shown = ", ".join(printable(f"{name}#{split}" if split else name) for split in splits)
    return DataError(f"holds several sets of {what}", field=name, remedy=f"name one: {shown}")
