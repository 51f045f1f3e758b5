"""Containers that hold several splits: ``x_train`` and ``x_test``, of which one is named behind a path, ``#train``.

The split stands behind a name, or before it where it is one of the usual words (``train_images``). ``#`` alone means
what has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from doublure.errors import DataError, printable

_BEFORE = ("train", "training", "test", "testing", "val", "valid", "validation", "dev", "extra")


def split_off(path: Path) -> tuple[Path, str | None]:
    """Return a path and the split that is named behind it; a file whose own name has a # is left in peace."""
    if path.exists() or "#" not in path.name:
        return path, None
    name, _, split = path.name.rpartition("#")
    return (path.with_name(name), split) if name else (path, split or None)


def named(
    names: Iterable[str], known: tuple[str, ...], split: str | None, *, before: bool = True
) -> dict[str, list[str]]:
    """Return the names that may hold one thing: split -> names, "" for names without one.

    Args:
        names: Of all that there is.
        known: Names that the thing may have.
        split: The one that is asked for; None for all.
        before: Whether a split may stand before a name, where it stands behind none.
    """
    found: dict[str, list[str]] = {}
    leading: dict[str, list[str]] = {}
    for name in names:
        stem, _, behind = name.partition("_")
        ahead, _, last = name.rpartition("_")
        if stem.lower() in known and split in (None, behind):
            found.setdefault(behind, []).append(name)
        elif last.lower() in known and ahead.lower() in _BEFORE and split in (None, ahead):
            leading.setdefault(ahead, []).append(name)
    return found or (leading if before else {})


def beside(name: str, split: str | None) -> tuple[str, ...]:
    """Return the names that an array of one split may have, its own name last: that one is of all splits."""
    return (f"{name}_{split}", f"{split}_{name}", name) if split else (name,)


def only(names: Sequence[str], container: str) -> str:
    """Return the one name that holds a thing.

    Raises:
        DataError: Several names could be meant.
    """
    if len(names) > 1:
        both = " and ".join(printable(name) for name in names[:2])
        raise DataError(f"holds {both}, either of which could be meant", field=container, remedy="rename one")
    return names[0]


def labels_among(names: Sequence[str], container: str) -> str:
    """Return the name of the labels: beside ``label`` a ``y`` is something else.

    Raises:
        DataError: Several names could be meant.
    """
    words = {name: set(name.lower().split("_")) for name in names}
    sure = any(each & {"label", "labels"} for each in words.values())
    meant = [name for name, each in words.items() if not (sure and "y" in each)]
    return only(meant or names, container)


def several(name: str, splits: Iterable[str], what: str) -> DataError:
    """Return the refusal of a container with several splits of which none is named."""
    shown = ", ".join(printable(f"{name}#{split}") for split in splits)
    return DataError(f"holds several sets of {what}", field=name, remedy=f"name one: {shown}")
