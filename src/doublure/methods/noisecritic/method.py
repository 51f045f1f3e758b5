"""``noisecritic``: a GAN whose critic clips a record's features and adds noise to them. An empirical estimate, never ε.

Triastcyn & Faltings 2018 and 2019: WGAN-GP (λ = 10, five critic steps), Adam 1e-4 (0, 0.9), lots of 64, the label
inside the record, features clipped to C = 1 with noise of σ = 1.5 on them. The 2018 paper claimed differential privacy
for this; the claim does not hold, because the noise is in no gradient but the last layer's
(:mod:`doublure.networks.noise_layer`), and the 2019 paper withdrew it. What remains is the estimate of
:mod:`doublure.measures.expected_loss`, made afterwards by a rule that the plan fixes here, before any record is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from doublure.access import Access
from doublure.errors import SchemaError, SettingError
from doublure.guarantee import LARGE_EPSILON, Guarantee, Kind, figure, odds_factor
from doublure.methods.gan.method import Gan, GanSettings, ImageGanSettings
from doublure.methods.method import Estimation, Job, LearningRate, MethodSettings, Work, refuse_loose_delta
from doublure.networks.sizes import paths, places, scattering_work
from doublure.private import accounting
from doublure.private.accounting import DiscreteGaussianEvent, GaussianEvent, Relation
from doublure.private.noise import SourceName
from doublure.schema import Schema
from doublure.schema.images import LABEL
from doublure.training.gan_settings import AdversarialSettings

if TYPE_CHECKING:
    import torch
    from torch import nn

    from doublure.encode.encoder import Encoder

_MOST_PAIRS = 1000
_VOTERS = 100  # images in a group, on average
_MOST_GROUPS = 1000
_PASSES = 4  # over the images: three to find the groups, one to put each into its own
_BYTES = 4
_LOUD = 0.25
"""More noise than this share of a group's votes often lets another label win."""
_VOTES = "vote on labels: ε and δ are for the labels alone, images held fixed"


class NoiseLayerSettings(AdversarialSettings):
    """The noise layer, and how the loss will be estimated, whatever the kind of data.

    Attributes:
        features: d, numbers that pass through the noise layer.
        feature_clip: C, the norm that they are clipped to, from 1e-9 to 1e9.
        feature_noise: σ, the standard deviation of the noise in each of them, likewise.
        noise_source: ``os-keyed``, or ``chacha20`` for a cryptographic stream.
        estimate_pairs: N, how many real records the expected loss is estimated from; γ is 1/(N + 1). None: 1000, or
            half of the public number of units.
        estimate_artificial: How many artificial records it is estimated on: the more, the less one real record is seen
            to change them.
        estimate_seed: Fixes which records these are, real and artificial.
    """

    features: int = Field(default=64, ge=1, le=4096)
    feature_clip: float = Field(default=1.0, ge=1e-9, le=1e9)
    feature_noise: float = Field(default=1.5, ge=1e-9, le=1e9)
    noise_source: Literal["os-keyed", "chacha20"] = "os-keyed"
    estimate_pairs: int | None = Field(default=None, ge=2, le=1_000_000)
    estimate_artificial: int = Field(default=5000, ge=20, le=20_000)
    estimate_seed: int = Field(default=0, ge=0, lt=2**31)

    @property
    def stream(self) -> SourceName:
        """As they say."""
        return self.noise_source

    def noisy(self, body: nn.Module, initial: torch.Generator) -> nn.Module:
        """Return a critic that scores a body's features through the noise layer."""
        from doublure.networks.noise_layer import NoiseLayer, NoisyCritic
        from doublure.private import noise

        normals = noise.secret_draws(self.noise_source).normal
        layer = NoiseLayer(clip=self.feature_clip, std=self.feature_noise, normals=normals)
        return NoisyCritic(body, features=self.features, layer=layer, generator=initial)


class NoisecriticSettings(GanSettings, NoiseLayerSettings):
    """The settings of ``noisecritic`` on tables.

    Attributes:
        estimate_features: In what the estimate measures distances: encoded rows.
    """

    penalties: ClassVar[dict[str, float]] = GanSettings.penalties | {"wgan-gp": 10.0}

    n_critic: int = Field(default=5, ge=1, le=1000)
    critic_lr: LearningRate = 1e-3
    generator_lr: LearningRate = 1e-3
    estimate_features: Literal["rows"] = "rows"

    def critic(self, encoder: Encoder, initial: torch.Generator, outputs: int = 1) -> nn.Module:
        """Return an untrained critic of rows, with the noise layer before its score."""
        return self.noisy(super().critic(encoder, initial, self.features), initial)


class ImageNoisecriticSettings(ImageGanSettings, NoiseLayerSettings):
    """The settings of ``noisecritic`` on images: those of 2019; 2018 had ``leaky_relu`` and ``normalisation=batch``.

    Attributes:
        labels: ``record``: the label is part of the record, and passes through the noise layer with it (2018, §4.1: the
            paper's choice). ``votes``: noisy votes take its place (:mod:`doublure.methods.noisecritic.label_votes`).
        label_epsilon: ε₂ of the votes, for the labels alone.
        label_delta: δ₂ of the votes, below 1/units.
        label_groups: How many groups of look-alikes vote; None: one for a hundred units, at most 1000.
        estimate_features: In what the estimate measures distances; None: ``student`` where images have labels, else
            ``pixels``.
    """

    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan-gp"
    n_critic: int = Field(default=5, ge=1, le=1000)
    critic_lr: LearningRate = 1e-4
    generator_lr: LearningRate = 1e-4
    activation: Literal["selu", "leaky_relu"] = "selu"
    labels: Literal["record", "votes"] = "record"
    label_epsilon: float | None = Field(default=None, gt=0)
    label_delta: float | None = Field(default=None, gt=0, lt=1)
    label_groups: int | None = Field(default=None, ge=1, le=100_000)
    estimate_features: Literal["student", "pixels", "efficientnet-lite0", "inception-v3"] | None = None

    @model_validator(mode="after")
    def _votes_have_a_price(self) -> Self:
        if self.label_groups is not None and self.labels != "votes":
            raise ValueError("label_groups goes with labels=votes; leave it out")
        prices = {"label_epsilon": self.label_epsilon, "label_delta": self.label_delta}
        for name, price in prices.items():
            if (price is not None) != (self.labels == "votes"):
                raise ValueError(
                    f"{name} and labels=votes go together: give both label_epsilon and label_delta with it"
                )
        return self

    def critic(self, encoder: Encoder, initial: torch.Generator, outputs: int = 1) -> nn.Module:
        """Return an untrained critic of images, with the noise layer before its score."""
        return self.noisy(super().critic(encoder, initial, self.features), initial)

    @property
    def votes(self) -> bool:
        """Whether labels are voted on."""
        return self.labels == "votes"


class Noisecritic(Gan):
    """The loop of ``gan`` with a noise layer in its critic; see the module."""

    name: ClassVar[str] = "noisecritic"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images"})
    guarantee: ClassVar[Kind] = "empirical"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = {
        "table": NoisecriticSettings,
        "images": ImageNoisecriticSettings,
    }
    sizes: ClassVar[dict[str, Any]] = {
        "table": Gan.sizes["table"] | {"lot_share": 0, "steps": 10_000},
        "images": Gan.sizes["images"] | {"steps": 30_000},
    }

    def settle(self, schema: Schema, settings: MethodSettings) -> AdversarialSettings:
        """Decide the sizes, and how the loss will be estimated, from the public number of units."""
        own = super().settle(schema, settings)
        most = max(2, schema.public_units * schema.unit.max_records // 2)  # the other half chooses k
        pairs = getattr(own, "estimate_pairs", None) or max(2, min(_MOST_PAIRS, schema.public_units // 2))
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
                raise SettingError("needs a label to teach a student", field="estimate_features", remedy=remedy)
            if own.votes:
                _refuse_unvoted(schema)
                refuse_loose_delta(own.label_delta or 0.0, schema.public_units, field="label_delta")
                decided["label_groups"] = own.label_groups or _groups(schema)
        return own.model_copy(update=decided)

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """Everything, unprotected; the votes on labels, if there are any, at their own price."""
        everything = super().accesses(schema, settings, noise_multiplier)
        if not isinstance(settings, ImageNoisecriticSettings) or not settings.votes:
            return everything
        return (Access(purpose=_VOTES, event=_event(settings), delta=settings.label_delta), *everything)

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds; a vote is a step of its own."""
        work = super().work(schema, settings)
        if not isinstance(settings, ImageNoisecriticSettings) or not settings.votes:
            return work
        height, width, colours = schema.shape  # type: ignore[attr-defined]
        shape, groups = (colours, height, width), settings.label_groups or 1
        waves, matrices = scattering_work(shape, 1)
        seen = colours * places(shape) * paths(1)
        flops = 2.0 * schema.public_units * (waves + _PASSES * groups * seen)
        held = 2 * schema.public_units * seen + _BYTES * (matrices + 2 * groups * seen)
        return Work(flops=work.flops + flops, steps=work.steps + 1, memory_bytes=work.memory_bytes + held)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say what the noise layer does not do, and what a very large or small ε₂ means."""
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
        groups, labels = settings.label_groups or 1, len(getattr(schema.columns.get(LABEL), "domain", ()))
        if groups < labels:
            few = f"{groups} groups vote, one label each, and there are {labels}"
            found.append(f"{few}: some will be lost; give at least {labels} label_groups")
        return tuple(found)

    def estimation(self, settings: MethodSettings) -> Estimation:
        """Return how the expected loss is estimated."""
        if not isinstance(settings, (NoisecriticSettings, ImageNoisecriticSettings)):
            raise TypeError("noisecritic was given another method's settings")
        return Estimation(
            pairs=settings.estimate_pairs or 0,
            features=settings.estimate_features or "",
            artificial=settings.estimate_artificial,
            seed=settings.estimate_seed,
        )

    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: MethodSettings) -> bool:
        """Whether it is the plan's claim, with or without a μ; γ follows from the plan's pairs."""
        gamma = None if stated.mu is None else 1 / (self.estimation(settings).pairs + 1)
        return stated.unestimated == planned and stated.gamma == gamma

    def train(self, job: Job) -> nn.Module:
        """Train the critic on plain gradients, after the vote if labels are voted on."""
        settings = job.settings
        if isinstance(settings, ImageNoisecriticSettings) and settings.votes:
            from doublure.methods.noisecritic.label_votes import voted

            job = voted(job, job.accesses[0], settings.label_groups or 1)
        return super().train(job)


def _event(settings: ImageNoisecriticSettings) -> DiscreteGaussianEvent:
    return _calibrated(settings.label_epsilon or 0.0, settings.label_delta or 0.0)


@lru_cache(maxsize=32)
def _calibrated(epsilon: float, delta: float) -> DiscreteGaussianEvent:
    """Return the vote that makes all labels together (ε₂, δ₂)-differentially private, images held fixed.

    Changing one label takes one vote from a cell and gives it to another: what adding a record to two tables costs.
    """

    def changed(scale: float) -> DiscreteGaussianEvent:
        return DiscreteGaussianEvent(scale=scale, tables=2)

    try:
        return changed(accounting.calibrate(lambda scale: [changed(scale)], epsilon=epsilon, delta=delta))
    except SettingError as error:  # the accountant of a vote is no setting
        fields = {"epsilon": "label_epsilon", "delta": "label_delta", "scale": "label_epsilon"}
        raise SettingError(
            error.message, field=fields.get(error.field or "", error.field), remedy="give a larger one"
        ) from None


def _groups(schema: Schema) -> int:
    return max(1, min(_MOST_GROUPS, schema.public_units // _VOTERS))


def _refuse_unvoted(schema: Schema) -> None:
    """Refuse a vote on labels where there is none, or where labels are touched beside it.

    Raises:
        SchemaError: Naming the way out.
    """
    if not schema.with_role("condition"):
        raise SchemaError("is not there to vote on", field=LABEL, remedy="declare it, or leave out labels=votes")
    if schema.unit.max_records > 1:
        remedy = "set max_records to 1, or leave out labels=votes"
        raise SchemaError("must be 1 where labels are voted on", field="unit.max_records", remedy=remedy)
    if schema.unit.id is not None:  # which of a unit's images is used follows from their order, and that from labels
        remedy = "leave it out where each image is a unit of its own, or leave out labels=votes"
        raise SchemaError("must be null where labels are voted on", field="unit.id", remedy=remedy)
    for question in schema.questions:
        if question.column == LABEL:
            remedy = "declare it, or leave out labels=votes"
            raise SchemaError("would be learned from labels beside the votes", field=question.path, remedy=remedy)


# -- what the layer does protect ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class ScoreGuarantee:
    """What one released score of a critic with a noise layer is worth, and nothing else.

    Attributes:
        epsilon: ε₁ of the query.
        delta: δ₁ of the query.
        relation: ``add-remove``: the record's features against none, sensitivity C; ``replace-one``: against another
            record's, 2C.
        noise_multiplier: The noise's standard deviation over that sensitivity.
    """

    epsilon: float
    delta: float
    relation: Relation
    noise_multiplier: float

    @property
    def sentence(self) -> str:
        """What may be said."""
        how = {"add-remove": "C, one record added or removed", "replace-one": "2C, one record replaced"}[self.relation]
        return (
            "One released score of one record, the critic's weights held fixed whatever the data: a Gaussian mechanism "
            f"of noise multiplier {self.noise_multiplier:.4g} (sensitivity {how}), (ε={figure(self.epsilon)}, "
            f"δ={figure(self.delta)})-differentially private for that one query. No guarantee for the critic's "
            "weights, the generator or its samples."
        )


def score_guarantee(settings: NoiseLayerSettings, *, delta: float, relation: Relation) -> ScoreGuarantee:
    """Return the forward guarantee of one released critic score (2018, Lemma 1 and Theorem 1, with what they need).

    Args:
        settings: The layer's C and σ.
        delta: δ of the query.
        relation: Neighbouring records; the paper takes C for what is 2C under replacement.

    Raises:
        SettingError: ``delta`` is out of range.
    """
    each = settings.feature_noise / settings.feature_clip
    event = GaussianEvent(noise_multiplier=each)
    return ScoreGuarantee(
        epsilon=accounting.epsilon_of([event], delta, relation=relation),
        delta=delta,
        relation=relation,
        noise_multiplier=each if relation == "add-remove" else each / 2,
    )


METHOD = Noisecritic()
