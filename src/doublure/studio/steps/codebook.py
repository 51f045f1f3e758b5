"""A corrected codebook under the name of one that is there: what it changes, and its taking over."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from doublure.drafting.codebook import Entry
from doublure.drafting.draft import Draft
from doublure.drafting.metadata.codebook import facts_in_words
from doublure.drafting.metadata.registry import read_metadata
from doublure.errors import DoublureError, InputError
from doublure.studio.project import Project
from doublure.studio.visit import Studio
from doublure.support.files import write_atomic

_HEAD = ".dropped-"
_PRIVATE = 0o600


class CodebookChange(NamedTuple):
    """The changes that a corrected codebook makes to a column.

    Attributes:
        name: The column.
        before: What the old one says; empty where it has no row for it.
        after: What the new one says; empty where it has none.
    """

    name: str
    before: str
    after: str


def waiting(studio: Studio, name: str) -> Path:
    """Return where a dropped codebook waits: beside the old one, as it names files by their place."""
    return studio.folder.path(f"{_HEAD}{name}")


def keep_waiting(studio: Studio, name: str, content: BinaryIO) -> Path:
    """Keep a dropped codebook until it is decided about, and return where."""
    path = waiting(studio, name)
    write_atomic(path, lambda file: shutil.copyfileobj(content, file), mode=_PRIVATE)
    return path


def changes(studio: Studio, name: str, form: str) -> tuple[CodebookChange, ...]:
    """Return what the codebook that waits says otherwise than the one that is there; both are public.

    Raises:
        InputError: None waits.
    """
    path = waiting(studio, name)
    if not path.is_file():
        raise InputError("waits no more", field=name, remedy="drop it in again")
    new = read_metadata(path, form).entries
    try:
        old = read_metadata(studio.folder.existing(name), form).entries
    except DoublureError:  # the old one could not be read: all is new
        old = {}
    found = []
    for column in dict.fromkeys([*old, *new]):
        before, after = (_said(column, each.get(column)) for each in (old, new))
        if before != after:
            found.append(CodebookChange(column, before, after))
    return tuple(found)


def corrected(project: Project, old: Draft, new: Draft) -> Project:
    """Return a project with the columns that a corrected codebook drafts otherwise; all others stay as they are."""
    known = {each.name: each for each in old.columns}
    changed = {}
    for each in new.columns:
        before, column = known.get(each.name), project.column(each.name)
        same = before is not None and (before.facts, before.left_out, before.unread) == (
            each.facts,
            each.left_out,
            each.unread,
        )
        if column is not None and not same:
            changed[each.name] = column.changed(
                facts=dict(each.facts), left_out=each.left_out, described=each.described, unread=each.unread
            )
    return project.with_columns(changed)


def _said(name: str, entry: Entry | None) -> str:
    """Return what a codebook says of a column, in a line."""
    if entry is None:
        return ""
    if entry.omitted:
        return "left out"
    facts: dict[str, Any] = {**entry.facts, **entry.files}
    words = [str(facts.get("type", "")), facts_in_words(name, {"type": "category", **facts}), entry.description]
    return " · ".join(filter(None, [*words, *entry.notes])) or "no fact"
