"""``guided`` on images: a generator fitted to mean features, a critic that refines it, a labeller that checks images.

The stages are the mean embedding of ``statistics`` (:mod:`doublure.methods.statistics.images.mean_embedding`), a critic
of images (:mod:`doublure.methods.guided.refining`) and a linear labeller on scattering features
(:mod:`doublure.training.private_classifier`). A synthetic image is returned for a label once the labeller predicts that
label, so that labels are as accurate as the labeller, and not only as the generator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from doublure.access import Access
from doublure.errors import SchemaError
from doublure.methods.guided.critic_stage import critic_of_images
from doublure.methods.guided.settings import ImageGuidedSettings
from doublure.methods.statistics.images.attributes import joint, with_conditions
from doublure.methods.statistics.images.defaults import SMALL, enough_to_widen
from doublure.methods.statistics.images.method import ImageStatistics, drawing_work
from doublure.methods.statistics.of_kind import counting
from doublure.schema import Schema
from doublure.schema.images import LABEL, ImageSchema
from doublure.training.architectures import Critic, kept_critic
from doublure.training.classifier_settings import MOST_COMPARED, images_compared
from doublure.training.job import Job, State
from doublure.training.owned import Adversary, OwnerTasks
from doublure.training.settings import Work

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder
    from doublure.networks.gaussian_images import GaussianImages
    from doublure.networks.labelled import LabelledGenerator, Labeller
    from doublure.networks.upsampling import UpsamplingGenerator


class ImageGuided(ImageStatistics[ImageGuidedSettings]):
    """``guided`` on images; see the module."""

    @override
    def resolve_defaults(self, schema: Schema, settings: ImageGuidedSettings) -> ImageGuidedSettings:
        if settings.labeller_share and LABEL not in schema.with_role("condition"):
            remedy = "declare a label with the role condition, or set labeller_share=0"
            raise SchemaError("lacks the role condition, which a labeller needs", field=f"{LABEL}", remedy=remedy)
        if settings.critic_share and ImageSchema.of(schema).attributes:
            raise SchemaError("go with no critic", field="attributes", remedy="set critic_share=0, or leave them out")
        found = super().resolve_defaults(schema, settings).with_lot(schema)
        if schema.federated is not None or not settings.labeller_share:  # owners are not asked for classifiers' answers
            return found.model_copy(update={"labels_compared": False})
        return found

    @override
    def asks_owners(self, schema: Schema, settings: ImageGuidedSettings) -> bool:
        return not settings.critic_share or schema.max_silos == 1

    @override
    def at_owner(self, encoder: Encoder, settings: ImageGuidedSettings) -> OwnerTasks:
        from doublure.methods.statistics.images.mean_embedding import build_generator
        from doublure.training.private_classifier import at_owner

        asked = super().at_owner(encoder, settings)
        if settings.labeller_share:
            asked |= at_owner(encoder, settings)
        if not settings.critic_share:
            return asked
        critic = critic_of_images(settings)
        return asked | OwnerTasks(
            adversary=lambda _: Adversary(
                settings=critic,
                shapes=encoder,
                generator=lambda: build_generator(encoder, settings, 0),
                noise_width=critic.noise_width,
            )
        )

    @override
    def white_box(self, encoder: Encoder, settings: ImageGuidedSettings, kept: State) -> Critic | None:
        return kept_critic(kept, critic_of_images(settings), encoder)

    @override
    def accesses(self, schema: Schema, settings: ImageGuidedSettings, noise_multiplier: float) -> tuple[Access, ...]:
        statistics = super().accesses(schema, settings, settings.statistics_noise(noise_multiplier))
        found = settings.with_critic(statistics, schema, noise_multiplier)
        if not settings.labeller_share:
            return found
        event = settings.labeller_event(noise_multiplier)
        labeller = Access(purpose="train the labeller", event=event, whole=True)
        if not settings.labels_compared:
            return (*found, labeller)
        compared = (("count images that one classifier recognises", 1, settings.compared_share),)
        records = schema.most_records
        return (*found, labeller, *counting(compared, records=records, noise_multiplier=noise_multiplier))

    @override
    def explained(self, schema: Schema, settings: ImageGuidedSettings, touches: tuple[Access, ...]) -> tuple[str, ...]:
        said, images = super().explained(schema, settings, touches), ImageSchema.of(schema)
        drawings = images.images.pictures == "drawings" and max(images.shape) >= SMALL
        if not drawings or enough_to_widen(schema) or settings.sampled_warp > settings.warp:
            return said
        return (
            f"Pictures: warped no more widely than in training; below {MOST_COMPARED:,} images a wider warp costs more "
            "labels than it teaches",
            *said,
        )

    @override
    def work(self, schema: Schema, settings: ImageGuidedSettings) -> Work:
        work = super().work(schema, settings)
        flops, held = work.flops, work.memory_bytes
        if settings.critic_share:
            critic = critic_of_images(settings).work(schema)
            flops, held = flops + critic.flops, max(held, critic.memory_bytes)
        if settings.labeller_share:
            checked = images_compared(schema) if settings.labels_compared else 0
            more, kept = settings.labeller_work(schema, drawing_work(schema, settings)[0], checked)
            flops, held = flops + more, held + kept
        return replace(work, flops=flops, memory_bytes=held)

    @override
    def build(self, encoder: Encoder, settings: ImageGuidedSettings, seed: int) -> nn.Module:
        from doublure.encode.image import of_images
        from doublure.methods.statistics.images.mean_embedding import build_generator
        from doublure.networks.labelled import Labeller

        generator, images = build_generator(encoder, settings, seed), of_images(encoder)
        if not settings.labeller_share:
            return with_conditions(generator, encoder)
        labeller = Labeller(images.body_shape, classes=images.labels)
        return with_conditions(_checked(settings, generator, labeller), encoder)

    @override
    def train(self, job: Job, settings: ImageGuidedSettings) -> nn.Module:
        from doublure.methods.guided.refining import refine
        from doublure.methods.statistics.images.mean_embedding import fit_images
        from doublure.training.label_check import labels_pay
        from doublure.training.noisy_sums import NoisySums
        from doublure.training.private_classifier import train_labeller

        first = job.stage("statistics", after=0)
        fit, together = fit_images(first, settings, NoisySums(first, job.accesses[:1])), joint(first, job.encoder)
        generator, before = fit.generator, 1 if together is None else 2
        later = job.accesses[before:]
        if settings.critic_share:
            if fit.distance is None:
                raise TypeError("a critic refines a network")
            stage = job.stage("critic", after=before)
            generator = refine(
                stage,
                critic_of_images(settings),
                later[0],
                generator,
                weight=settings.anchor,
                distance=fit.distance,
            )
            before += settings.critic_steps
        if not settings.labeller_share:
            return with_conditions(generator, job.encoder, fit.shares, together)
        last, (trains, *compares) = job.stage("labeller", after=before), later[1 if settings.critic_share else 0 :]
        sums = NoisySums(last, [trains])
        made = _checked(settings, generator, train_labeller(last, settings, generator, settings.image_noise, sums))
        for access in compares:
            made.asked.fill_(labels_pay(job, access, made, settings.noise_width))
        return with_conditions(made, job.encoder, fit.shares, together)


def _checked(
    settings: ImageGuidedSettings, generator: UpsamplingGenerator | GaussianImages, labeller: Labeller
) -> LabelledGenerator:
    """Return the generator with the warp and spread of sampling, and the labeller that checks its images.

    Images that it turns out not to check are drawn no more widely than in training: labels would not survive it.
    """
    from doublure.training.private_classifier import with_label_checks

    generator.warp, generator.spread = settings.sampled_warp, settings.sampled_spread
    return with_label_checks(settings, generator, labeller, settings.image_noise, (settings.warp, 1.0))
