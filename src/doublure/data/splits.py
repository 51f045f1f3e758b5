"""Containers that hold several splits: ``x_train`` and ``x_test``, of which one is named behind a path, ``#train``.

The split stands behind a name, or before it where it is one of the usual words (``train_images``). ``#`` alone means
what has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from doublure.errors import DataError, printable

_BEFORE = ("train", "training", "test", "testing", "val", "valid", "validation", "dev", "extra")
_LETTERS = ("x", "y")


def split_off(path: Path) -> tuple[Path, str | None]:
    """Return a path and the split that is named behind it; a file whose own name has a # is left in peace."""
    if path.exists() or "#" not in path.name:
        return path, None
    name, _, split = path.name.rpartition("#")
    return (path.with_name(name), split) if name else (path, split or None)


def named(names: Iterable[str], known: tuple[str, ...], split: str | None) -> dict[str, list[str]]:
    """Return the names that may hold one thing: split -> names, "" for names without one."""
    found: dict[str, list[str]] = {}
    for name in names:
        of = _split_of(name, known)
        if of is not None and (split is None or of == split):
            found.setdefault(of, []).append(name)
    return found


def _split_of(name: str, known: tuple[str, ...]) -> str | None:
    """Return the split of a name that holds a thing, "" for none; None where the name is another thing's."""
    stem, _, behind = name.partition("_")
    if stem.lower() in known:
        return behind
    before, _, last = name.rpartition("_")
    return before if last.lower() in known and before.lower() in _BEFORE else None


def beside(name: str, split: str | None) -> tuple[str, ...]:
    """Return the names that an array of one split may have, its own name last: that one is of all splits."""
    return (f"{name}_{split}", f"{split}_{name}", name) if split else (name,)


def spelt_out(names: Sequence[str]) -> Sequence[str]:
    """Return those of the names that are words, if there are any: beside ``label`` a ``y`` is something else."""
    return [name for name in names if not set(name.lower().split("_")) & set(_LETTERS)] or names


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
    shown = ", ".join(printable(f"{name}#{split}") for split in splits)
    return DataError(f"holds several sets of {what}", field=name, remedy=f"name one: {shown}")
