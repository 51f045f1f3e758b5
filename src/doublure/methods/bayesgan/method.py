"""``bayesgan``: a GAN with ``dpgan``'s noisy critic, also priced by the Bayesian accountant.

It implements Triastcyn & Faltings 2022 (section 2.3) such that both its figures hold. σ, q and T are fixed in the plan;
gradient distances are sampled by the mechanism at every step; ε_μ is known afterwards, and the worst case of the same
run is known, stated and charged beforehand.

With weight clipping (``wgan``, the paper's choice) real records are clipped and noised alone. The critic's gradient on
generated records then depends on no private record: it follows from noised weights and public draws. Under the other
losses each real record is paired with a generated one, and both are clipped together.

On images with labels the generator draws images without labels, and an *annotator* labels them: a linear model trained
privately afterwards (:mod:`doublure.training.private_classifier`). Its cost is composed into both figures. In ε_μ it
enters at its worst case by default: nearly every record's gradient is longer than its small bound C, so that sampled
distances would give the same cost, and add a chance of failure. ``annotator_price=sampled`` prices it as the paper does
(section 3.2: "the same privacy guarantee as the generative model"), by distances sampled at each of its steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from doublure.access import Access
from doublure.guarantee import Guarantee, Kind
from doublure.methods.bayesgan import claim
from doublure.methods.bayesgan.settings import BayesianSettings, ImageBayesganSettings, TableBayesganSettings
from doublure.methods.dpgan.method import Dpgan
from doublure.methods.method import FixedNoise
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.image_gan_settings import classes_of
from doublure.training.job import Job
from doublure.training.owned import OwnerTasks, build_adversary
from doublure.training.settings import MethodSettings, Work, by_kind

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.private.bayesian import BayesianAccountant

_FEW_IMAGES = 100


class Bayesgan(Dpgan[BayesianSettings]):
    """``dpgan``'s mechanism under the Bayesian accountant; see the module."""

    name: ClassVar[str] = "bayesgan"
    guarantee: ClassVar[Kind] = "bayesian-dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(TableBayesganSettings, ImageBayesganSettings)
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)

    @override
    def accesses(self, schema: Schema, settings: BayesianSettings, noise_multiplier: float) -> tuple[Access, ...]:
        (critic,) = super().accesses(schema, settings, noise_multiplier)
        found = (replace(critic, estimated=True),)
        if not settings.full_batches:
            return found
        event = GaussianEvent(noise_multiplier=settings.full_batch_noise or 0.0, steps=settings.full_batches)
        estimated = settings.samples_full_batches
        return (*found, Access(purpose="train the annotator", event=event, estimated=estimated, whole=True))

    @override
    def work(self, schema: Schema, settings: BayesianSettings) -> Work:
        work = super().work(schema, settings)
        each = settings.distances * ((settings.lot_size or 1) if settings.clipping == "batch" else 1)
        flops, memory = work.flops * (1 + each / (settings.lot_size or 1)), work.memory_bytes
        if isinstance(settings, ImageBayesganSettings) and settings.annotator:
            more, held = settings.labeller_work(schema, settings.drawing_work(schema)[0])
            flops, memory = flops + more, memory + held
        return replace(work, flops=flops, steps=work.steps + settings.full_batches, memory_bytes=memory)

    @override
    def warnings(self, schema: Schema, settings: BayesianSettings) -> tuple[str, ...]:
        found = super().warnings(schema, settings)
        if settings.clipping == "batch":
            found = (*found, "clipping batch bounds what one record can do by 2 C, however large the lot")
        classes = classes_of(schema) if settings.full_batches else 0
        if classes and schema.public_units // classes < _FEW_IMAGES:
            found = (*found, f"some {schema.public_units // classes} images a label are few for an annotator")
        return found

    @override
    def asks_owners(self, schema: Schema, settings: BayesianSettings) -> bool:
        alone = settings.clipping == "record" and not settings.samples_full_batches
        return alone and super().asks_owners(schema, settings)

    @override
    def at_owner(self, encoder: Encoder, settings: BayesianSettings) -> OwnerTasks:
        from doublure.methods.bayesgan.training import BodyView
        from doublure.training.private_classifier import at_owner

        special, distances = settings.special, settings.distances
        critic = OwnerTasks(
            views={BodyView.name: lambda _: BodyView()},
            adversary=lambda _: build_adversary(settings, encoder, special=special, distances=distances),
        )
        if not isinstance(settings, ImageBayesganSettings) or not settings.annotator:
            return critic
        return critic | at_owner(encoder, settings)

    @override
    def given_noise(self, settings: BayesianSettings) -> None:
        return

    @override
    def decide_noise(
        self, schema: Schema, settings: BayesianSettings, learned: tuple[Access, ...], *, epsilon: float, delta: float
    ) -> BayesianSettings:
        rate = self.sample_rate(schema, settings)
        return claim.with_noise(settings, learned, rate=rate, ceiling=epsilon, delta=delta)

    @override
    def fixed_noise(self, settings: BayesianSettings) -> FixedNoise:
        return claim.fixed_noise(settings)

    @override
    def planned_claim(
        self,
        composed: Guarantee,
        settings: BayesianSettings,
        touches: Sequence[Access],
        *,
        epsilon: float,
        delta: float,
    ) -> Guarantee:
        return claim.planned_claim(composed, settings, touches, ceiling=epsilon, delta=delta)

    @override
    def forecast(
        self, planned: Guarantee, settings: BayesianSettings, touches: tuple[Access, ...], schema: Schema
    ) -> tuple[str, ...]:
        return claim.forecast_lines(settings, planned, touches)

    @override
    def final_claim(
        self,
        planned: Guarantee,
        settings: BayesianSettings,
        touches: tuple[Access, ...],
        measured: BayesianAccountant | None,
    ) -> tuple[Guarantee, dict[str, Any]]:
        stated, found = claim.final_claim(planned, settings, touches, measured)
        return stated, {
            "computed_on": "private gradients: do not publish",
            "claimed": stated.kind,
            "epsilon_mu": found if math.isfinite(found) else None,
            "delta_mu": planned.delta_mu,
            "ceiling": planned.epsilon_mu,
            **claim.estimate_details(planned, settings, touches, measured),
        }

    @override
    def may_claim(self, stated: Guarantee, planned: Guarantee, settings: BayesianSettings) -> bool:
        return stated in (planned, planned.worst_case)

    @override
    def build(self, encoder: Encoder, settings: BayesianSettings, seed: int) -> nn.Module:
        from doublure.methods.bayesgan.training import build_labeller, with_annotator

        generator = super().build(encoder, settings, seed)
        if not isinstance(settings, ImageBayesganSettings) or not settings.annotator:
            return generator
        return with_annotator(generator, build_labeller(encoder), settings)

    @override
    def train(self, job: Job[BayesianSettings]) -> nn.Module:
        from doublure.methods.bayesgan.training import train_annotator, train_generator, with_annotator

        own = job.settings
        generator, estimate = train_generator(job, own)
        if not isinstance(own, ImageBayesganSettings) or not own.annotator:
            job.measured(estimate)
            return generator
        labeller, more = train_annotator(job, own, generator)
        job.measured(estimate if more is None else estimate.joined(more))
        return with_annotator(generator, labeller, own)


METHOD = Bayesgan()
