"""What a steward says of a release, in their own words: what it is, who may use it, how to cite it, whom to ask.

Nothing here is made up or looked up: what nobody declares is not on the card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from doublure.errors import SettingError, printable

_LONGEST = 2_000
_SCHEMES = ("https", "http")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A steward's words; None for what was not declared.

    Attributes:
        title: The card's title.
        description: What the data are, in a sentence or a few.
        licence: Under which the release may be used, such as ``CC BY 4.0``.
        citation: How to cite it.
        contact: Whom to ask.
        links: Addresses of pages that say more: the source, a paper, a data portal.

    Raises:
        SettingError: One is empty or too long, or a link is no address of a page.
    """

    title: str | None = None
    description: str | None = None
    licence: str | None = None
    citation: str | None = None
    contact: str | None = None
    links: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("title", "description", "licence", "citation", "contact"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and 0 < len(value.strip()) <= _LONGEST):
                remedy = "leave it out, or write a sentence or a few"
                raise SettingError(f"is no text of 1 to {_LONGEST:,} characters", field=name, remedy=remedy)
        if isinstance(self.links, str):
            raise SettingError("are one text", field="links", remedy="give a list of addresses")
        for link in self.links:
            if not is_link(link):
                raise SettingError("is no address of a page", field="links", remedy="begin it with https://")

    def titled(self, otherwise: str) -> Declared:
        """Return the same with a title, where none was given."""
        return self if self.title else replace(self, title=otherwise)


def is_link(text: object) -> bool:
    """Return whether a text is the address of a page, and nothing that a browser would run.

    Example:
        >>> is_link("https://example.org/a"), is_link("javascript:alert(1)"), is_link("example.org")
        (True, False, False)
    """
    if not isinstance(text, str) or len(text) > _LONGEST or any(char.isspace() for char in text):
        return False
    if printable(text[:40]) != text[:40] or not text.isprintable():
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.hostname)
