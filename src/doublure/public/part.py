"""The public generator within a method's settings: pinned by the plan, vouched for by its provenance."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import BeforeValidator
from typing_extensions import override

from doublure.errors import SettingError
from doublure.public.facts import PublicFacts
from doublure.public.settings import PublicSettings
from doublure.public.settings import read as read_public
from doublure.training.settings import MethodSettings, PublicPlace


def as_text(given: object) -> object:
    """Return a folder's name as text, even if YAML reads it as a whole number or a date."""
    named = isinstance(given, (Path, int, datetime.date)) and not isinstance(given, bool)
    return str(given) if named else given


Place: TypeAlias = Annotated[str, BeforeValidator(as_text)]


class PublicPart(MethodSettings):
    """The public generator that a method's records go through.

    Attributes:
        public: The folder of a public generator (``doublure public fit``).
        public_facts: Its facts; the plan fills them in, and a fit refuses another generator.
    """

    public: Place = ""
    public_facts: PublicFacts | None = None

    @property
    def facts(self) -> PublicFacts:
        """The facts of the public generator.

        Raises:
            SettingError: No folder was named.
        """
        if self.public_facts is None:
            remedy = "make one with doublure public fit, and plan with --set public=FOLDER"
            raise SettingError("is needed: the folder of a public generator", field="public", remedy=remedy)
        return self.public_facts

    @property
    def latent(self) -> int:
        """D, the generator's latent numbers."""
        return self.facts.latent

    @property
    def public_networks(self) -> PublicSettings:
        """The settings that its networks were made with."""
        return read_public(self.facts.kind, dict(self.facts.settings))

    @property
    @override
    def public_place(self) -> PublicPlace | None:
        return PublicPlace("public", self.public, self.public_facts) if self.public else None

    @property
    @override
    def public_sources(self) -> tuple[str, ...]:
        return (self.facts.source,)

    @property
    @override
    def assumptions(self) -> tuple[str, ...]:
        return self.facts.assumptions

    @property
    @override
    def excluded(self) -> tuple[str, ...]:
        return self.facts.excluded

    @override
    def published(self) -> Self:
        return self.model_copy(update={"public": ""})

    @override
    def shown(self) -> dict[str, Any]:
        return {name: value for name, value in super().shown().items() if name != "public_facts"}
