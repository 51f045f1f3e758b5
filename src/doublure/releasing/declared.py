"""What a steward says of a release, in their own words: what it is, who may use it, how to cite it, whom to ask.

Nothing here is made up or looked up: what nobody declares is not on the card.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from doublure.errors import SettingError
from doublure.schema.release_words import NO_LINK, NO_WORDS, ReleaseWords, is_link, is_words

_TEXTS = ("title", "description", "licence", "citation", "contact")


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
        for name in _TEXTS:
            value = getattr(self, name)
            if value is not None and not is_words(value):
                raise SettingError(NO_WORDS[0], field=name, remedy=NO_WORDS[1])
        if isinstance(self.links, str):
            raise SettingError("are one text", field="links", remedy="give a list of addresses")
        for link in self.links:
            if not is_link(link):
                raise SettingError(NO_LINK[0], field="links", remedy=NO_LINK[1])

    def over(self, said: ReleaseWords | None) -> Declared:
        """Return the same, and where nothing is said what a schema says."""
        if said is None:
            return self
        texts = {name: getattr(said, name) for name in _TEXTS if getattr(self, name) is None}
        return replace(self, **texts, links=self.links or said.links)

    def titled(self, otherwise: str) -> Declared:
        """Return the same with a title, where none was given."""
        return self if self.title else replace(self, title=otherwise)
