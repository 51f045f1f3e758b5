"""The settings of ``evolution``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field
from typing_extensions import override

from doublure.errors import SettingError
from doublure.methods.evolution.facts import CandidateFacts, named
from doublure.networks.photograph_features import LITE0_SHA256
from doublure.networks.sizes import ANGLES, WINDOW
from doublure.public.facts import Provenance
from doublure.training.settings import MethodSettings, PublicPlace

DEVIATIONS = 2.0
"""Deviations of noise from which a vote is taken for one: noise alone passes them once in 44 times."""

Features = Literal["scattering", "efficientnet-lite0"]

FLOOR = 0.05
"""Added to scattering, whose logarithm is taken: what is weaker than a twentieth of full intensity counts as alike."""
_SCATTERING = f"log({FLOOR} + first-order scattering): Morlet wavelets, 2 scales, {ANGLES} angles, windows of {WINDOW}"
_EXTRACTORS: Mapping[Features, tuple[str, str]] = {
    "scattering": ("fixed wavelets without data", hashlib.sha256(_SCATTERING.encode()).hexdigest()),
    "efficientnet-lite0": ("trained on ImageNet", LITE0_SHA256),
}
"""Each extractor's origin, and the hash of its weights, or of its definition where it has none."""


def _provenance(given: object) -> object:
    try:
        return given if given is None else Provenance.read(given)  # type: ignore[arg-type]
    except SettingError as error:
        raise ValueError(f"{error.message}; {error.remedy}") from None


class EvolutionSettings(MethodSettings):
    """The settings of ``evolution``.

    Attributes:
        candidates: Public images (a folder or file), the folder of a public generator, or ``module:function``.
        provenance: The origin of the images: a YAML file, or its keys. A public generator has its own.
        facts: Facts of the candidates; the plan fills them in, and a fit refuses other candidates.
        features: The extractor in which a candidate is near.
        rounds: T, noisy histograms of votes; None: 6.
        population: Candidates of each label in a round; None: as many as have, on average, votes of two deviations of a
            round's noise, from 16 to 1,000.
        kept: Images of each label in the synthesizer; None: 1,000, or what 256 MB hold.
        sampled_warp: How strongly an image is warped when it is sampled; None: 1 for drawings, else 0.5.
    """

    data: ClassVar[str] = "images"

    candidates: Annotated[str, BeforeValidator(named)] = ""
    provenance: Annotated[Provenance | None, BeforeValidator(_provenance)] = None
    facts: CandidateFacts | None = None
    features: Features = "scattering"
    rounds: int | None = Field(default=None, ge=1, le=1000)
    population: int | None = Field(default=None, ge=2, le=100_000)
    kept: int | None = Field(default=None, ge=1, le=1_000_000)
    sampled_warp: float | None = Field(default=None, ge=0, le=4)

    @property
    def known(self) -> CandidateFacts:
        """The facts of the candidates.

        Raises:
            SettingError: None were named.
        """
        if self.facts is None:
            remedy = "plan with --set candidates=FOLDER of public images, of a public generator, or module:function"
            raise SettingError("are needed: a public source", field="candidates", remedy=remedy)
        return self.facts

    def pinned(self) -> Self:
        """Return the settings with the candidates' facts, read from their files if the plan has none."""
        if self.facts is not None or not self.candidates:
            return self
        return self.model_copy(update={"facts": CandidateFacts.of(self.candidates, self.provenance)})

    @property
    @override
    def public_place(self) -> PublicPlace | None:
        return PublicPlace("candidates", self.candidates, self.facts) if self.candidates else None

    @property
    def extractor(self) -> str:
        """The extractor in a claim: name, origin and hash."""
        origin, sha256 = _EXTRACTORS[self.features]
        return f"the feature extractor {self.features} ({origin}, SHA-256 {sha256[:12]}…)"

    @property
    @override
    def sampling_only_fields(self) -> frozenset[str]:
        return frozenset({"sampled_warp"})

    @property
    @override
    def public_sources(self) -> tuple[str, ...]:
        origin, sha256 = _EXTRACTORS[self.features]
        return (self.known.line, f"Feature extractor {self.features}, {origin}, SHA-256 {sha256}")

    @property
    @override
    def assumptions(self) -> tuple[str, ...]:
        return self.known.assumptions(self.extractor)

    @property
    @override
    def excluded(self) -> tuple[str, ...]:
        return self.known.excluded

    @override
    def published(self) -> Self:
        return self.model_copy(update={"candidates": ""})

    @override
    def shown(self) -> dict[str, Any]:
        return {name: value for name, value in super().shown().items() if name not in ("facts", "provenance")}
