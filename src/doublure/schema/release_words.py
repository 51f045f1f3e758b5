"""A steward's statements for all releases: title, description, licence, citation, contact and links.

They stand under ``release`` in a schema's file, as they are as public as the rest; statements made with a release take
precedence. Nothing here is made up or looked up: an undeclared statement is on no card.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, StrictStr

from doublure.errors import printable
from doublure.schema.fact_states import Frozen

LONGEST = 2_000
NO_WORDS = f"is no text of 1 to {LONGEST:,} characters", "leave it out, or write a sentence or a few"
NO_LINK = "is no address of a page", "begin it with https://"
_SCHEMES = ("https", "http")


def is_words(value: object) -> bool:
    """Return whether a value is a text that a card has room for."""
    return isinstance(value, str) and 0 < len(value.strip()) <= LONGEST


def is_link(text: object) -> bool:
    """Return whether a text is the address of a page, and nothing that a browser would run.

    Example:
        >>> is_link("https://example.org/a"), is_link("javascript:alert(1)"), is_link("example.org")
        (True, False, False)
    """
    if not isinstance(text, str) or len(text) > LONGEST or any(char.isspace() for char in text):
        return False
    if printable(text[:40]) != text[:40] or not text.isprintable():
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in _SCHEMES and bool(parts.hostname)


def _words(text: str) -> str:
    if not is_words(text):
        raise ValueError("; ".join(NO_WORDS))
    return text


def _link(text: str) -> str:
    if not is_link(text):
        raise ValueError("; ".join(NO_LINK))
    return text


Words: TypeAlias = Annotated[StrictStr, AfterValidator(_words)]
Link: TypeAlias = Annotated[StrictStr, AfterValidator(_link)]


class ReleaseWords(Frozen):
    """A schema's statements about its releases; None where undeclared.

    Attributes:
        title: The card's title.
        description: What the data are, in a sentence or a few.
        licence: Under which a release may be used, such as ``CC BY 4.0``.
        citation: How to cite it.
        contact: Whom to ask.
        links: Addresses of pages that say more.
    """

    title: Words | None = Field(default=None, description="the card's title")
    description: Words | None = Field(default=None, description="what the data are, in a sentence or a few")
    licence: Words | None = Field(default=None, description="under which a release may be used, such as CC BY 4.0")
    citation: Words | None = Field(default=None, description="how to cite it")
    contact: Words | None = Field(default=None, description="whom to ask")
    links: tuple[Link, ...] = Field(default=(), description="addresses of pages that say more")
