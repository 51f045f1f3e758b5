"""The steward's own words about a release: title, description, licence, citation, contact and links.

Nothing is invented or looked up: words that are not declared are not on the card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from doublure.errors import SettingError
from doublure.schema.release_words import NO_LINK, NO_WORDS, ReleaseWords, is_link, is_words

_TEXTS = ("title", "description", "licence", "citation", "contact")


@dataclass(frozen=True, kw_only=True)
class ReleaseDetails:
    """A steward's words; None for what was not declared.

    Attributes:
        title: The card's title.
        description: A description of the data, in a sentence or a few.
        licence: The licence of the release, such as ``CC BY 4.0``.
        citation: How to cite it.
        contact: An address for questions.
        links: Addresses of further pages: the source, a paper, a data portal.

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
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not is_words(value):
                raise SettingError(NO_WORDS[0], field=name, remedy=NO_WORDS[1])
        if isinstance(self.links, str):
            raise SettingError("are one text", field="links", remedy="give a list of addresses")
        for link in self.links:
            if not is_link(link):
                raise SettingError(NO_LINK[0], field="links", remedy=NO_LINK[1])

    def over(self, said: ReleaseWords | None) -> ReleaseDetails:
        """Return these words, with a schema's where they are missing."""
        if said is None:
            return self
        texts = {name: getattr(said, name) for name in _TEXTS if getattr(self, name) is None}
        return replace(self, **texts, links=self.links or said.links)

    def to_json(self) -> dict[str, Any]:
        """Return the words as a card holds them."""
        return {name: getattr(self, name) for name in _TEXTS} | {"links": list(self.links)}

    def titled(self, otherwise: str) -> ReleaseDetails:
        """Return these words, with a title where there is none."""
        return self if self.title else replace(self, title=otherwise)
