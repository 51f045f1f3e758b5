"""``bayesgan``: a GAN whose critic is noised as ``dpgan``'s is, and priced by the Bayesian accountant beside.

Triastcyn & Faltings 2022 (section 2.3), done so that both its figures hold. σ, q and T are fixed in the plan; gradient
distances are sampled by the mechanism at every step; ε_μ is known afterwards, and the worst case of the same run is
known, stated and charged beforehand.

With weight clipping (``wgan``, the paper's choice) real records are clipped and noised alone. What the critic learns
from generated ones then touches no record: it follows from weights that are noised already and from public draws.
Under the other losses each real record is paired with a generated one, and both are clipped together.

On images with labels the generator makes them without, and an *annotator* says what they show: a linear model taught
privately afterwards (:mod:`doublure.training.private_classifier`). Its cost is composed into both figures. In ε_μ it
enters at its worst case: nearly every record's gradient is longer than its small bound C, so that sampled distances
would say nothing else, and would add a chance of failure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field

from doublure.access import Access
from doublure.errors import SchemaError, SettingError
from doublure.guarantee import Guarantee, Kind
from doublure.methods.bayesgan import claim
from doublure.methods.bayesgan.settings import EPOCHS, OWN, BayesianSettings, _Sigma
from doublure.methods.dpgan.method import Dpgan, ImageDpganSettings
from doublure.methods.method import FixedNoise, Job, LearningRate, MethodSettings, Work
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.training.classifier_settings import LabellerSettings
from doublure.training.gan_settings import TableAdversarialSettings
from doublure.training.image_gan_settings import classes_of
from doublure.training.private_gan_settings import Norm

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.private.bayesian import BayesianAccountant

_PAPER: dict[str, Any] = {
    "loss": "wgan", "weight_clip": 0.01, "n_critic": 5, "lot_size": 64, EPOCHS: 400,
    "critic_lr": 1e-4, "generator_lr": 1e-4, "activation": "selu", "generator_average": 0.0,
    "channels": (256, 128, 64),  # 4,096 numbers behind the linear layer, of images of 28 x 28
    "clipping": "batch", "max_grad_norm": 0.5, "distances": 8, "conditional": False,
}  # fmt: skip


class TableBayesganSettings(TableAdversarialSettings, BayesianSettings):
    """The settings of ``bayesgan`` on tables, where conditions are columns and nobody has to annotate."""


class ImageBayesganSettings(ImageDpganSettings, BayesianSettings, LabellerSettings):
    """The settings of ``bayesgan`` on images.

    Attributes:
        conditional: Whether the GAN sees labels.
        annotator: Whether a private labeller says what a sampled image shows. None: if there are labels.
        labeller_share: The annotator's share of what may be spent under Bayesian DP.
        labeller_noise: σ of each of its steps. None: from that share of the ceiling.
    """

    # Standard deviations of the noise on the mean of .01 (MNIST) and .02 (Fashion-MNIST), over 2 C = 1.
    recipes: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        OWN: {},
        "paper": _PAPER | {"noise_multiplier": 0.01},
        "paper-fashion": _PAPER | {"noise_multiplier": 0.02},
    }

    loss: Literal["wgan-gp", "wgan", "logistic", "hinge"] = "wgan"
    max_grad_norm: Norm = 0.1
    critic_lr: LearningRate = 5e-4
    generator_lr: LearningRate = 5e-4
    generator_batch: int = Field(default=128, ge=1)
    tries: int = Field(default=16, ge=1, le=100)
    conditional: bool = False
    annotator: bool | None = None
    labeller_share: float = Field(default=0.5, gt=0, lt=1)
    labeller_noise: _Sigma | None = None

    @property
    def full_batches(self) -> int:
        """The annotator's steps."""
        return self.labeller_steps if self.annotator else 0

    @property
    def full_batch_share(self) -> float:
        """The annotator's share of what may be spent."""
        return self.labeller_share

    @property
    def full_batch_noise(self) -> float | None:
        """The annotator's σ."""
        return self.labeller_noise

    def with_noise(self, critic: float, full_batch: float | None) -> Self:
        """Return the settings with both σ decided."""
        return self.model_copy(update={"noise_multiplier": critic, "labeller_noise": full_batch})

    @property
    def sample_noise(self) -> int:
        """Numbers of noise that a sample takes for an image."""
        return self.noise_width * (self.tries if self.annotator else 1)

    def condition_width(self, encoder: Encoder) -> int:
        """Return K where the GAN sees labels."""
        return encoder.condition_width if self.conditional else 0

    def settled_for(self, schema: Schema, **sizes: Any) -> Self:
        """Decide whether there is an annotator."""
        own = super().settled_for(schema, **sizes)
        labelled = bool(schema.with_role("condition"))
        if labelled and not own.conditional and own.annotator is False:
            remedy = "leave annotator in, or set conditional=true"
            raise SettingError("leaves nobody to say what an image shows", field="annotator", remedy=remedy)
        if own.annotator and not labelled:
            remedy = "declare a label with the role condition, or leave annotator out"
            raise SchemaError("has nothing that an annotator could tell apart", field=LABEL, remedy=remedy)
        return own.model_copy(update={"annotator": labelled if own.annotator is None else own.annotator})


_SIZES: dict[str, Any] = {
    "table": {"lot_share": 0.35, "smallest_lot": 256, "largest_lot": 4096, "steps": 600},
    "images": {"lot_share": 0.02, "smallest_lot": 64, "largest_lot": 1024, "steps": 1500},
}


class Bayesgan(Dpgan):
    """``dpgan``'s mechanism under the Bayesian accountant; see the module."""

    name: ClassVar[str] = "bayesgan"
    kinds: ClassVar[frozenset[str]] = frozenset({"table", "images"})
    guarantee: ClassVar[Kind] = "bayesian-dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = {
        "table": TableBayesganSettings,
        "images": ImageBayesganSettings,
    }
    sizes: ClassVar[Mapping[str, Any]] = _SIZES

    def accesses(self, schema: Schema, settings: MethodSettings, noise_multiplier: float) -> tuple[Access, ...]:
        """The critic's noisy steps, which sampled distances may price, and the annotator's."""
        own = _own(settings)
        (critic,) = super().accesses(schema, settings, noise_multiplier)
        found = (replace(critic, estimated=True),)
        if not own.full_batches:
            return found
        event = GaussianEvent(noise_multiplier=own.full_batch_noise or 0.0, steps=own.full_batches)
        return (*found, Access(purpose="teach the annotator", event=event, whole=True))

    def work(self, schema: Schema, settings: MethodSettings) -> Work:
        """Return what training computes and holds, distances and annotator included."""
        own = _own(settings)
        work = own.work(schema)
        each = own.distances * ((own.lot_size or 1) if own.clipping == "batch" else 1)
        flops, memory = work.flops * (1 + each / (own.lot_size or 1)), work.memory_bytes
        if isinstance(own, ImageBayesganSettings) and own.annotator and isinstance(schema, ImageSchema):
            more, held = own.labeller_work(schema, own.drawing_work(schema)[0])
            flops, memory = flops + more, memory + held
        return Work(flops=flops, steps=work.steps + own.full_batches, memory_bytes=memory)

    def warnings(self, schema: Schema, settings: MethodSettings) -> tuple[str, ...]:
        """Say what is weak."""
        own, found = _own(settings), super().warnings(schema, settings)
        if own.clipping == "batch":
            found = (*found, "clipping batch bounds what one record can do by 2 C, however large the lot")
        classes = classes_of(schema) if isinstance(schema, ImageSchema) else 0
        if own.full_batches and classes and schema.public_units // classes < _FEW_IMAGES:
            found = (*found, f"some {schema.public_units // classes} images a label are few for an annotator")
        return found

    def sample_noise(self, settings: MethodSettings) -> int:
        """Return how many numbers of noise a sample takes for a record, an annotator's tries among them."""
        own = _own(settings)
        return own.sample_noise if isinstance(own, ImageBayesganSettings) else own.noise_width

    def decide_noise(
        self, schema: Schema, settings: MethodSettings, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> MethodSettings:
        """Decide every σ that was not given, from the ceiling on ε_μ."""
        rate = self.sample_rate(schema, settings)
        return claim.with_noise(_own(settings), learned, rate=rate, ceiling=epsilon, delta=delta)

    def fixed_noise(self, settings: MethodSettings) -> FixedNoise:
        """Return σ, and δ of the worst case."""
        return claim.fixed_noise(_own(settings))

    def planned_claim(
        self, composed: Guarantee, settings: MethodSettings, *, epsilon: float, delta: float
    ) -> Guarantee:
        """Return the ceiling, beside the worst case."""
        return claim.guarantee(composed, _own(settings), ceiling=epsilon, delta=delta)

    def forecast(self, planned: Guarantee, settings: MethodSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
        """Say what of ε_μ is known beforehand, and what it would be for distances of some lengths."""
        return claim.known_and_not(_own(settings), planned, touches)

    def final_claim(
        self,
        planned: Guarantee,
        settings: MethodSettings,
        touches: tuple[Access, ...],
        measured: BayesianAccountant | None,
    ) -> tuple[Guarantee, dict[str, Any]]:
        """Return the ceiling where the ε_μ that was measured keeps it, else the worst case; and that ε_μ, internal."""
        stated, found = claim.claimed(planned, _own(settings), touches, measured)
        return stated, {
            "computed_on": "private gradients: do not publish",
            "claimed": stated.kind,
            "epsilon_mu": found if math.isfinite(found) else None,
            "delta_mu": planned.delta_mu,
            "ceiling": planned.epsilon_mu,
        }

    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: MethodSettings) -> bool:
        """Whether it is the plan's claim, or the worst case that is left where its ceiling was passed."""
        return stated in (planned, planned.worst_case)

    def build(self, encoder: Encoder, settings: MethodSettings, seed: int) -> nn.Module:
        """Return an untrained generator, with its annotator."""
        from doublure.methods.bayesgan.training import annotated, untaught_labeller

        generator = super().build(encoder, settings, seed)
        own = _own(settings)
        if not isinstance(own, ImageBayesganSettings) or not own.annotator:
            return generator
        return annotated(generator, untaught_labeller(encoder), own)

    def train(self, job: Job) -> nn.Module:
        """Train the critic by noisy gradients that are measured on the way, then the annotator."""
        from doublure.methods.bayesgan.training import annotated, taught_annotator, taught_generator

        own = _own(job.settings)
        generator, estimate = taught_generator(job, own)
        job.measured(estimate)
        if not isinstance(own, ImageBayesganSettings) or not own.annotator:
            return generator
        return annotated(generator, taught_annotator(job, own, generator), own)


_FEW_IMAGES = 100


def _own(settings: MethodSettings) -> TableBayesganSettings | ImageBayesganSettings:
    if not isinstance(settings, (TableBayesganSettings, ImageBayesganSettings)):
        raise TypeError("bayesgan was given another method's settings")
    return settings


METHOD = Bayesgan()
