"""``latentgan``: a private model of records' latents under a public generator (Chen et al. 2021, DPMI).

A generator G_p of public data comes from elsewhere (``doublure public fit``). Each private record is inverted by itself
to a latent (:mod:`doublure.networks.inversion`), a function of that record and of public numbers alone. A private
generator G_ds is then trained on the latents, in few dimensions, with labels and conditions part of the record, and
G_p(G_ds(z)) is released. The guarantee is that of the noisy steps or releases, for the private records, given a
generator that is truly public.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from doublure.access import Access
from doublure.encode.choice import encoder_for
from doublure.errors import RunFolderError, SettingError
from doublure.guarantee import Kind
from doublure.methods.adversarial import Adversarial
from doublure.methods.latentgan.settings import ImageLatentSettings, LatentSettings, TableLatentSettings
from doublure.public.facts import with_placeholder_answers
from doublure.public.folder import load
from doublure.schema import Schema
from doublure.training.architectures import Critic, kept_critic
from doublure.training.job import Job, State
from doublure.training.owned import OwnerTasks
from doublure.training.settings import MethodSettings, by_kind

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

_FEW_UNITS = 2_000
_PURPOSES = {
    "critic": ("train the critic of latents",),
    "mixture": ("sum up the latents' moments for each class", "sum up the latents' moments for each cell"),
}


class Latentgan(Adversarial[LatentSettings]):
    """Inversion, then a private GAN of latents; see the module."""

    name: ClassVar[str] = "latentgan"
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(TableLatentSettings, ImageLatentSettings)
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)

    @override
    def resolve_defaults(self, schema: Schema, settings: LatentSettings) -> LatentSettings:
        """Decide settings from the public generator, whose folder is read once; a plan keeps its facts.

        Raises:
            SettingError: The folder is missing or damaged, or a setting does not fit its generator.
        """
        return super().resolve_defaults(schema, _with_facts(settings))

    @override
    def sample_rate(self, schema: Schema, settings: LatentSettings) -> float | None:
        if settings.teacher != "critic":
            return 1.0
        return None if settings.later_share else settings.latent_events(schema, 1.0)[0].sample_rate

    @override
    def accesses(self, schema: Schema, settings: LatentSettings, noise_multiplier: float) -> tuple[Access, ...]:
        events = settings.latent_events(schema, noise_multiplier)
        purposes = _PURPOSES[settings.teacher][-len(events) :]
        whole = settings.teacher != "critic"
        found = tuple(
            Access(purpose=purpose, event=event, whole=whole) for purpose, event in zip(purposes, events, strict=True)
        )
        if not isinstance(settings, ImageLatentSettings) or not settings.labeller_share:
            return found
        event = settings.labeller_event(noise_multiplier)
        return (*found, Access(purpose="train the labeller", event=event, whole=True))

    @override
    def asks_owners(self, schema: Schema, settings: LatentSettings) -> bool:
        return settings.teacher != "critic" or schema.max_silos == 1

    @override
    def at_owner(self, encoder: Encoder, settings: LatentSettings) -> OwnerTasks:
        from doublure.methods.latentgan.training import at_owner

        return at_owner(encoder, settings)

    @override
    def given_noise(self, settings: LatentSettings) -> float | None:
        """Return σ of the critic's steps, if it was given.

        Raises:
            SettingError: There is no critic, or a labeller is trained beside it.
        """
        if settings.noise_multiplier is not None and (settings.teacher != "critic" or settings.later_share):
            remedy = "set teacher=critic labeller_share=0, or give epsilon"
            raise SettingError("is σ of a critic that learns alone", field="noise_multiplier", remedy=remedy)
        return settings.noise_multiplier

    @override
    def warnings(self, schema: Schema, settings: LatentSettings) -> tuple[str, ...]:
        said = settings.facts.provenance
        found = ["the guarantee holds only if the public generator never saw a private record"]
        if said.shared_people == "possible":
            found.append("people of the public data may be among the private ones: the claim is about private records")
        if schema.public_units < _FEW_UNITS:
            found.append(f"{schema.public_units} units are few for a private GAN; expect rough shapes")
        return tuple(found)

    @override
    def max_grad_norm(self, settings: LatentSettings) -> float:
        return settings.max_grad_norm

    @override
    def ready(self, schema: Schema, settings: LatentSettings) -> None:
        """Refuse a public generator that is not the plan's or cannot be inverted, before anything is charged.

        Raises:
            RunFolderError: The folder is missing, or its weights differ or do not fit its facts.
            SettingError: Records would interact in it.
        """
        from doublure.methods.latentgan.training import build_inversion, public_networks

        encoder = encoder_for(with_placeholder_answers(schema), settings.encoding)
        generator, proposer, _ = public_networks(encoder, settings)
        build_inversion(encoder, settings, generator, proposer)

    @override
    def white_box(self, encoder: Encoder, settings: LatentSettings, kept: State) -> Critic | None:
        from doublure.encode.latent import LatentEncoder
        from doublure.methods.latentgan.training import build_inversion, public_networks

        if (name := "latents/critic") not in kept:
            return None
        inversion = build_inversion(encoder, settings, *public_networks(encoder, settings)[:2])
        return kept_critic(kept, settings, LatentEncoder(encoder, settings.latent), inversion, [name])

    @override
    def build(self, encoder: Encoder, settings: LatentSettings, seed: int) -> nn.Module:
        from doublure.methods.latentgan.training import build

        return build(encoder, settings, seed)

    @override
    def train(self, job: Job[LatentSettings]) -> nn.Module:
        from doublure.methods.latentgan.training import train_generator

        return train_generator(job, job.settings)


def _with_facts(settings: LatentSettings) -> LatentSettings:
    """Return the settings with the public generator's facts, read from its folder if the plan has none."""
    if settings.public_facts is not None or not settings.public:
        return settings
    try:
        return settings.model_copy(update={"public_facts": load(settings.public)})
    except RunFolderError as error:
        raise SettingError(f"{error.field} {error.message}", field="public", remedy=error.remedy) from None


METHOD = Latentgan()
