"""Registries of names, and the nearest known name for a remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from doublure.errors import SettingError, printable

T = TypeVar("T")

_FEW, _MANY = 12, 60


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to another, ignoring case; None without one."""
    lowered = {each.lower(): each for each in reversed(list(known))}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1)
    return lowered[near[0]] if near else None


def suggest(name: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """Return advice for an unknown name: the nearest one, and all of them where they are few.

    Args:
        name: As it was given.
        known: All names, which are public.
        otherwise: Advice where there are too many to list and none is near.

    Example:
        >>> suggest("statistic", ["statistics", "guided"])
        'did you mean statistics? use one of: statistics, guided'
    """
    names = list(known)
    near = nearest_name(name, names)
    guess = "" if near is None else f"did you mean {printable(near)}?"
    fits = len(names) <= (_MANY if near is None else _FEW)
    listed = f"use one of: {', '.join(map(printable, names))}" if fits else ""
    return " ".join(part for part in (guess, listed) if part) or otherwise


class Registry(dict[str, T]):
    """A mapping of names to entries, with refusals of unknown names.

    Args:
        noun: The noun for an entry, for refusals.
        own: The entries of this package, which nothing replaces.
        field: The field where a name is given; the noun, if left out.
        beside: Other accepted names, such as groups.
    """

    def __init__(self, noun: str, own: Mapping[str, T], *, field: str = "", beside: Iterable[str] = ()) -> None:
        super().__init__(own)
        self.noun, self.field = noun, field or noun
        self._beside, self._own = tuple(beside), frozenset(own)

    @property
    def names(self) -> tuple[str, ...]:
        """All names that may be given; entries from elsewhere come last."""
        return (*self._beside, *self)

    def __missing__(self, name: str) -> T:
        """Refuse an unknown name."""
        raise self.unknown(name)

    def unknown(self, name: str) -> SettingError:
        """Return the refusal of an unknown name, with the nearest one, or all where they are few."""
        return SettingError(f"there is no {self.noun} {name!r}", field=self.field, remedy=suggest(name, self.names))

    def register(self, name: str, added: T, *, field: str = "name", remedy: str = "choose another name") -> None:
        """Add an entry from elsewhere, for this process; it replaces another one that was added.

        Raises:
            SettingError: This package has that name: about this field, with this remedy.
        """
        if name in self._own or name in self._beside:
            article = "an" if self.noun[0] in "aeiou" else "a"
            raise SettingError(f"{name!r} is {article} {self.noun} of doublure", field=field, remedy=remedy)
        self[name] = added


def free_word(taken: Iterable[str]) -> str:
    """Return a word for values outside a list that is none of some texts.

    Example:
        >>> free_word(["a"]), free_word(["a", "other"])
        ('Other', 'Other value')
    """
    word, known = "Other", {text.casefold() for text in taken}
    while word.casefold() in known:
        word += " value"
    return word
