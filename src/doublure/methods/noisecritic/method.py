"""``noisecritic``: a GAN whose critic clips a record's features and adds noise to them, with an empirical estimate.

It never claims an ε. It follows Triastcyn & Faltings 2018 and 2019 (both §5.2): WGAN-GP (λ = 10, five critic steps),
Adam 1e-4 (0, 0.9), lots of 64, the label inside the record, features clipped to C = 1 with noise of σ = 1.5 on them.
The figures are 2019's: those of 2018 are lost in the text at hand. The 2018 paper claimed differential privacy for this
(Theorem 2, Corollary 1). The claim does not hold, because the noise is in no derivative of a score but the last layer's
(:mod:`doublure.networks.noise_layer`), and the 2019 paper withdrew it (§4.1). The estimate of
:mod:`doublure.measures.expected_loss` remains; the plan fixes its rule here, before any record is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from typing_extensions import override

from doublure.access import Access
from doublure.errors import SchemaError, SettingError
from doublure.guarantee import LARGE_EPSILON, Guarantee, Kind, odds_factor
from doublure.methods.gan.method import Gan
from doublure.methods.method import Estimation, refuse_loose_delta
from doublure.methods.noisecritic.settings import (
    ESTIMATE_SEED,
    ESTIMATED_ON,
    ImageNoisecriticSettings,
    NoisecriticSettings,
    NoiseLayerSettings,
)
from doublure.networks.sizes import paths, places, scattering_work
from doublure.private import accounting
from doublure.private.accounting import DiscreteGaussianEvent
from doublure.private.noise import secret_draws
from doublure.schema import Schema
from doublure.schema.images import LABEL
from doublure.schema.schema import domain_of
from doublure.training.architectures import critic_of, image_critic, vector_critic
from doublure.training.job import Job
from doublure.training.settings import MethodSettings, Work, by_kind

if TYPE_CHECKING:
    import torch
    from torch import nn

    from doublure.encode.encoder import Encoder


_Settings: TypeAlias = NoisecriticSettings | ImageNoisecriticSettings
_MOST_PAIRS = 1000
_VOTERS = 100  # images in a group, on average
_MOST_GROUPS = 1000
_PASSES = 4  # over the images: three to find the groups, one to assign each image to its group
_BYTES = 4
_LOUD = 0.25
"""Noise, as a share of a group's votes, above which the wrong label often wins."""
_VOTES = "vote on labels: ε and δ are for the labels alone, images held fixed"


class Noisecritic(Gan[_Settings]):
    """The loop of ``gan`` with a noise layer in its critic; see the module."""

    name: ClassVar[str] = "noisecritic"
    guarantee: ClassVar[Kind] = "empirical"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(NoisecriticSettings, ImageNoisecriticSettings)
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)

    @override
    def resolve_defaults(self, schema: Schema, settings: _Settings) -> _Settings:
        own = super().resolve_defaults(schema, settings)
        most = max(2, schema.public_units * schema.unit.max_records // 2)  # the other half chooses k
        pairs = own.estimate_pairs or max(2, min(_MOST_PAIRS, schema.public_units // 2))
        if pairs > most:
            raise SettingError(
                "are more than half of the records", field="estimate_pairs", remedy=f"give at most {most}"
            )
        decided: dict[str, Any] = {"estimate_pairs": pairs}
        if isinstance(own, ImageNoisecriticSettings):
            labelled = bool(schema.with_role("condition"))
            decided["estimate_features"] = own.estimate_features or ("student" if labelled else "pixels")
            if decided["estimate_features"] == "student" and not labelled:
                remedy = "choose pixels, or declare a label"
                raise SettingError("needs a label to train a classifier", field="estimate_features", remedy=remedy)
            if own.votes:
                _refuse_unvoted(schema)
                refuse_loose_delta(own.label_delta or 0.0, schema.public_units, field="label_delta")
                decided["label_groups"] = own.label_groups or max(1, min(_MOST_GROUPS, schema.public_units // _VOTERS))
        return own.model_copy(update=decided)

    @override
    def accesses(self, schema: Schema, settings: _Settings, noise_multiplier: float) -> tuple[Access, ...]:
        everything = super().accesses(schema, settings, noise_multiplier)
        if not isinstance(settings, ImageNoisecriticSettings) or not settings.votes:
            return everything
        return (Access(purpose=_VOTES, event=_event(settings), delta=settings.label_delta), *everything)

    @override
    def work(self, schema: Schema, settings: _Settings) -> Work:
        work = super().work(schema, settings)
        if not isinstance(settings, ImageNoisecriticSettings) or not settings.votes:
            return work
        height, width, colours = schema.shape  # type: ignore[attr-defined]
        shape, groups = (colours, height, width), settings.label_groups or 1
        waves, matrices = scattering_work(shape, 1)
        seen = colours * places(shape) * paths(1)
        flops = 2.0 * schema.public_units * (waves + _PASSES * groups * seen)
        held = 2 * schema.public_units * seen + _BYTES * (matrices + 2 * groups * seen)
        return replace(work, flops=work.flops + flops, steps=work.steps + 1, memory_bytes=work.memory_bytes + held)

    @override
    def warnings(self, schema: Schema, settings: _Settings) -> tuple[str, ...]:
        found = [
            "noisecritic has no guarantee: the noise layer protects no gradient, so what it trains is estimated "
            "afterwards, on average over this data set; use dpgan, statistics or guided for a guarantee"
        ]
        if not isinstance(settings, ImageNoisecriticSettings) or not settings.votes:
            return tuple(found)
        epsilon, scale = settings.label_epsilon or 0.0, _event(settings).scale
        voters = schema.public_units * schema.unit.max_records / (settings.label_groups or 1)
        if epsilon > LARGE_EPSILON:
            grow = f"lets an attacker's odds about a label grow by a factor of {odds_factor(epsilon)}"
            found.append(f"label_epsilon {epsilon:g} {grow}")
        if scale > _LOUD * voters:
            heard = f"the noise on a count of votes is {scale:.3g}, and {voters:.3g} vote in a group"
            found.append(f"{heard}: labels will often be wrong; give more label_epsilon or fewer label_groups")
        groups, labels = settings.label_groups or 1, len(domain_of(schema, LABEL))
        if groups < labels:
            few = f"{groups} groups vote, one label each, and there are {labels}"
            found.append(f"{few}: some will be lost; give at least {labels} label_groups")
        return tuple(found)

    @override
    def estimation(self, settings: _Settings) -> Estimation:
        return Estimation(
            pairs=settings.estimate_pairs or 0,
            features=settings.estimate_features or "",
            artificial=ESTIMATED_ON,
            seed=ESTIMATE_SEED,
        )

    @override
    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: _Settings) -> bool:
        gamma = None if stated.mu is None else 1 / (self.estimation(settings).pairs + 1)
        return stated.unestimated == planned and stated.gamma == gamma

    @override
    def train(self, job: Job[_Settings]) -> nn.Module:
        settings = job.settings
        if isinstance(settings, ImageNoisecriticSettings) and settings.votes:
            from doublure.methods.noisecritic.label_votes import vote_on_labels

            job = vote_on_labels(job, job.accesses[0], settings.label_groups or 1)
        return super().train(job)


def _event(settings: ImageNoisecriticSettings) -> DiscreteGaussianEvent:
    return _calibrated(settings.label_epsilon or 0.0, settings.label_delta or 0.0)


@lru_cache(maxsize=32)
def _calibrated(epsilon: float, delta: float) -> DiscreteGaussianEvent:
    """Return the event of a vote that makes all labels together (ε₂, δ₂)-differentially private, images held fixed.

    Changing one label moves one vote between two cells, which costs as much as adding a record to two tables.
    """

    def changed(scale: float) -> DiscreteGaussianEvent:
        return DiscreteGaussianEvent(scale=scale, tables=2)

    try:
        return changed(accounting.calibrate(lambda scale: [changed(scale)], epsilon=epsilon, delta=delta))
    except SettingError as error:  # name the settings of the vote in place of the accountant's arguments
        fields = {"epsilon": "label_epsilon", "delta": "label_delta", "scale": "label_epsilon"}
        raise SettingError(
            error.message, field=fields.get(error.field or "", error.field), remedy="give a larger one"
        ) from None


def _refuse_unvoted(schema: Schema) -> None:
    """Refuse a vote without labels, or on labels that other accesses read too.

    Raises:
        SchemaError: The schema does not allow a vote.
    """
    if not schema.with_role("condition"):
        raise SchemaError("is not there to vote on", field=LABEL, remedy="declare it, or leave out labels=votes")
    if schema.unit.max_records > 1:
        remedy = "set max_records to 1, or leave out labels=votes"
        raise SchemaError("must be 1 where labels are voted on", field="unit.max_records", remedy=remedy)
    if schema.unit.id is not None:  # the choice of a unit's image would depend on an order that depends on labels
        remedy = "leave it out where each image is a unit of its own, or leave out labels=votes"
        raise SchemaError("must be null where labels are voted on", field="unit.id", remedy=remedy)
    for question in schema.questions:
        if question.column == LABEL:
            remedy = "declare it, or leave out labels=votes"
            raise SchemaError("would be learned from labels beside the votes", field=question.path, remedy=remedy)


# -- the critics of gan, with the noise layer before the score ---------------------------------------------------------


@critic_of.register(NoisecriticSettings)
def critic_of_rows(
    settings: NoisecriticSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    """Return an untrained critic of rows; ``outputs`` is always 1, the score after the noise layer."""
    return _noisy(vector_critic(settings, encoder, initial, settings.features), settings, initial)


@critic_of.register(ImageNoisecriticSettings)
def critic_of_images(
    settings: ImageNoisecriticSettings, encoder: Encoder, initial: torch.Generator, outputs: int = 1
) -> nn.Module:
    """Return an untrained critic of images; ``outputs`` is always 1, the score after the noise layer."""
    return _noisy(image_critic(settings, encoder, initial, settings.features), settings, initial)


def _noisy(body: nn.Module, settings: NoiseLayerSettings, initial: torch.Generator) -> nn.Module:
    """Return a critic that scores a body's features through the noise layer, whose noise is secret."""
    from doublure.networks.noise_layer import NoiseLayer, NoisyCritic

    normals = secret_draws().normal
    layer = NoiseLayer(clip=settings.feature_clip, std=settings.feature_noise, normals=normals)
    return NoisyCritic(body, features=settings.features, layer=layer, generator=initial)


METHOD = Noisecritic()
