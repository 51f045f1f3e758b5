"""``evolution``: votes of private images for public candidates (Private Evolution, Lin et al. 2024; Sim-PE, 2025).

Candidates come from a public source: a set of images, a public generator, any Python function. Each private image votes
for the candidate of its label that is nearest in a public embedding, so that a round is one histogram that one image
moves by one, whatever its label. Noisy votes choose, and the source varies what they chose. No network is trained, and
images come out in their natural size.

The guarantee is that of the noisy histograms, given a source and an extractor that are truly public. Loading, verifying
and releasing never import a source's function: the synthesizer holds the images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from doublure.access import Access
from doublure.errors import counted
from doublure.guarantee import Guarantee, Kind
from doublure.methods.evolution.settings import DEVIATIONS, EvolutionSettings
from doublure.methods.method import Method
from doublure.methods.statistics.of_kind import counting, overall_noise
from doublure.networks.sizes import WARP_WIDTH, scattering_work
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.schema import Schema
from doublure.schema.images import ImageSchema
from doublure.training.image_gan_settings import classes_of, require_condition
from doublure.training.job import Job
from doublure.training.settings import MethodSettings, Work, lower_settings

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_PURPOSE = "count votes for candidates"
_ROUNDS = 6
_FEWEST, _MOST = 16, 1_000
_KEPT, _KEPT_BYTES = 1_000, 2**28
_LITE0_WORK = 4e8
_BYTES = 4


class Evolution(Method[EvolutionSettings, "Encoder"]):
    """Private Evolution; see the module."""

    name: ClassVar[str] = "evolution"
    kinds: ClassVar[frozenset[str]] = frozenset({"images"})
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[type[MethodSettings]] = EvolutionSettings

    @override
    def resolve_defaults(self, schema: Schema, settings: EvolutionSettings) -> EvolutionSettings:
        """Decide settings from public facts and from the candidates' files.

        Raises:
            SettingError: There are no candidates.
        """
        require_condition(schema)
        own = settings.pinned()
        drawings = ImageSchema.of(schema).images.pictures == "drawings"
        held = math.prod(ImageSchema.of(schema).shape) * max(1, classes_of(schema))
        usual = {
            "facts": own.known,
            "rounds": _ROUNDS,
            "kept": max(1, min(_KEPT, _KEPT_BYTES // held)),
            "sampled_warp": 1.0 if drawings else 0.5,
        }
        return own.model_copy(update={name: value for name, value in usual.items() if getattr(own, name) is None})

    @override
    def decide_noise(
        self, schema: Schema, settings: EvolutionSettings, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> EvolutionSettings:
        """Decide how many candidates there are: on average each has votes of two deviations of a round's noise."""
        if settings.population is not None:
            return settings
        noise = overall_noise(learned, epsilon=epsilon, delta=delta) * math.sqrt(settings.rounds or 1)
        each = schema.public_units / max(1, classes_of(schema)) / (DEVIATIONS * noise)
        return settings.model_copy(update={"population": max(_FEWEST, min(_MOST, round(each)))})

    @override
    def sample_rate(self, schema: Schema, settings: EvolutionSettings) -> float | None:
        return 1.0

    @override
    def accesses(self, schema: Schema, settings: EvolutionSettings, noise_multiplier: float) -> tuple[Access, ...]:
        rounds = settings.rounds or 1
        releases = [(f"{_PURPOSE}, round {number} of {rounds}", 1, 1 / rounds) for number in range(1, rounds + 1)]
        return counting(releases, records=schema.most_records, noise_multiplier=noise_multiplier)

    @override
    def shown_together(
        self, schema: Schema, settings: EvolutionSettings, touches: tuple[Access, ...]
    ) -> Mapping[str, tuple[Access, ...]]:
        votes = tuple(access for access in touches if access.purpose.startswith(_PURPOSE))
        return {f"{_PURPOSE}, {counted(len(votes), 'round')}": votes}

    @override
    def asks_owners(self, schema: Schema, settings: EvolutionSettings) -> bool:
        return False

    @override
    def work(self, schema: Schema, settings: EvolutionSettings) -> Work:
        height, width, colours = ImageSchema.of(schema).shape
        (waves, matrices), pixels = scattering_work((colours, height, width), 2), height * width * colours
        each = _LITE0_WORK if settings.features != "scattering" else waves
        records, labels = schema.public_units * schema.unit.max_records, max(1, classes_of(schema))
        candidates, rounds = (settings.population or _MOST) * labels, settings.rounds or 1
        kept = (settings.kept or 1) * labels
        held = records * (pixels + 600) + _BYTES * (candidates * pixels + matrices) + (12 * candidates + kept) * pixels
        return Work(flops=2.0 * each * (records + candidates * (rounds + 10)), steps=rounds, memory_bytes=held)

    @override
    def warnings(self, schema: Schema, settings: EvolutionSettings) -> tuple[str, ...]:
        found = ["the guarantee holds only if candidates and extractor never saw a private record"]
        if settings.known.shared_people:
            found.append("people of the public data may be among the private ones: the claim is about private records")
        if settings.known.provenance is None:
            found.append("the origin of the public images is not stated: set provenance=FILE (docs/evolution.md)")
        return tuple(found)

    @override
    def forecast(
        self, planned: Guarantee, settings: EvolutionSettings, touches: tuple[Access, ...], schema: Schema
    ) -> tuple[str, ...]:
        events = [access.event for access in touches if isinstance(access.event, DiscreteGaussianEvent)]
        scale = max((event.scale for event in events), default=0.0)
        each = schema.public_units / max(1, classes_of(schema)) / (settings.population or 1)
        return (f"Votes: {settings.population} candidates a label, some {each:,.1f} votes each, noise {scale:,.1f}",)

    @override
    def limits(self, schema: Schema, settings: EvolutionSettings) -> tuple[str, ...]:
        return (
            f"images are public candidates and their variations, {settings.kept} of each label, in 256 levels: what no "
            "candidate shows is not shown",
        )

    @override
    def knows_shares(self, schema: Schema) -> bool:
        return True

    @override
    def ready(self, schema: Schema, settings: EvolutionSettings) -> None:
        """Refuse candidates or an extractor that are not the plan's, before anything is charged.

        Raises:
            SettingError: Files, weights or the function differ, or their images have another shape.
        """
        import numpy as np

        from doublure.methods.evolution.embedding import load_extractor
        from doublure.methods.evolution.sources import PublicDraw, open_source

        height, width, colours = ImageSchema.of(schema).shape
        load_extractor(settings.features, (colours, height, width))
        source = open_source(settings, schema, 1, 0)
        source.images(source.first(1, PublicDraw(np.random.default_rng(0), None)))

    @override
    def rehearsed(self, settings: EvolutionSettings) -> EvolutionSettings | None:
        if settings.known.source == "function":
            return None  # it may take long, and has drawn an image before (ready)
        return lower_settings(settings, rounds=2, population=4)

    @override
    def sample_noise(self, settings: EvolutionSettings) -> int:
        return 1 + WARP_WIDTH  # which image, and how it is warped

    @override
    def build(self, encoder: Encoder, settings: EvolutionSettings, seed: int) -> nn.Module:
        from doublure.methods.evolution.evolving import build

        return build(encoder, settings, settings.kept or 1, settings.sampled_warp or 0.0)

    @override
    def train(self, job: Job[EvolutionSettings, Encoder]) -> nn.Module:
        from doublure.methods.evolution.evolving import evolve

        return evolve(job, self.build(job.encoder, job.settings, job.seed))


METHOD = Evolution()
