"""A register of what is asked for by name: what this package has, and what is added from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from doublure.errors import SettingError
from doublure.support.guessing import meant

T = TypeVar("T")


class Registry(dict[str, T]):
    """Name -> what it stands for.

    Args:
        noun: What each entry is, for refusals.
        own: The entries of this package, which nothing replaces.
        field: Where a name is given; the noun, if left out.
        beside: Other names that may be given there, such as groups.
    """

    def __init__(
        self, noun: str, own: Mapping[str, T], *, field: str | None = None, beside: Iterable[str] = ()
    ) -> None:
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
        return SettingError(f"there is no {self.noun} {name!r}", field=self.field, remedy=meant(name, self.names))

    def register(self, name: str, added: T, *, field: str = "name", remedy: str = "choose another name") -> None:
        """Add an entry from elsewhere, for this process; it replaces another one that was added.

        Raises:
            SettingError: This package has that name: about this field, with this remedy.
        """
        if name in self._own or name in self._beside:
            article = "an" if self.noun[0] in "aeiou" else "a"
            raise SettingError(f"{name!r} is {article} {self.noun} of doublure", field=field, remedy=remedy)
        self[name] = added
