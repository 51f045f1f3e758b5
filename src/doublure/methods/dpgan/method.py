"""``dpgan``: a GAN whose critic is trained by clipped, noised gradients.

It implements Frigerio et al. 2019, Algorithm 1 (based on Xie et al. 2018 and Abadi et al. 2016) such that its guarantee
holds: the whole paired loss of each unit is clipped once, lots are Poisson, every step of the critic is an event, and
the clipping decay does not change σ. On images the networks are those of Triastcyn & Faltings 2022 without
normalisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar

from typing_extensions import override

from doublure.access import Access
from doublure.guarantee import Guarantee, Kind
from doublure.methods.adversarial import Adversarial
from doublure.methods.dpgan.settings import DpganSettings, ImageDpganSettings, SeriesDpganSettings
from doublure.private.accounting import GaussianEvent
from doublure.schema import Schema
from doublure.training.job import Job
from doublure.training.owned import OwnerTasks, build_adversary
from doublure.training.private_gan_settings import PrivateSettings
from doublure.training.settings import MethodSettings, by_kind, lower_settings

if TYPE_CHECKING:
    from torch import nn

    from doublure.encode.encoder import Encoder

P = TypeVar("P", bound=PrivateSettings)

_FEW_UNITS = 2_000


class Dpgan(Adversarial[P]):
    """Clipped, noised critic gradients; see the module."""

    name: ClassVar[str] = "dpgan"
    guarantee: ClassVar[Kind] = "dp"
    settings_type: ClassVar[Mapping[str, type[MethodSettings]]] = by_kind(
        DpganSettings, ImageDpganSettings, SeriesDpganSettings
    )
    kinds: ClassVar[frozenset[str]] = frozenset(settings_type)

    @override
    def sample_rate(self, schema: Schema, settings: P) -> float:
        return min(1.0, (settings.lot_size or 1) / schema.public_units)

    @override
    def accesses(self, schema: Schema, settings: P, noise_multiplier: float) -> tuple[Access, ...]:
        event = GaussianEvent(
            noise_multiplier=noise_multiplier,
            sample_rate=self.sample_rate(schema, settings),
            steps=settings.steps or 1,
            filter_steps=settings.filter_bound,
        )
        return (Access(purpose="train the critic", event=event),)

    @override
    def warnings(self, schema: Schema, settings: P) -> tuple[str, ...]:
        if schema.public_units < _FEW_UNITS:
            return (f"{schema.public_units} units are few for a private GAN; expect rough marginals",)
        return ()

    @override
    def forecast(self, planned: Guarantee, settings: P, touches: tuple[Access, ...], schema: Schema) -> tuple[str, ...]:
        bound = settings.filter_bound
        if bound is None:
            return ()
        return (
            f"Individual accounting: each {schema.unit.name} is used until what it has cost reaches that of {bound:,} "
            f"steps at full length C, and counts as zero in the rest of the {settings.steps:,} steps; how many are "
            "left is published nowhere",
        )

    @override
    def asks_owners(self, schema: Schema, settings: P) -> bool:
        in_one_place = settings.filter_bound is not None
        return not in_one_place and schema.kind in ("table", "images") and schema.max_silos == 1

    @override
    def at_owner(self, encoder: Encoder, settings: P) -> OwnerTasks:
        return OwnerTasks(adversary=lambda _: build_adversary(settings, encoder))

    @override
    def max_grad_norm(self, settings: P) -> float:
        return settings.max_grad_norm

    @override
    def given_noise(self, settings: P) -> float | None:
        return settings.noise_multiplier

    @override
    def rehearsed(self, settings: P) -> P:
        return lower_settings(settings, steps=settings.n_critic, generator_batch=2, labeller_steps=1, view_images=100)

    @override
    def train(self, job: Job[P]) -> nn.Module:
        from doublure.training.critic_steps import Spending, private_critic_trainer
        from doublure.training.gan_loop import prepare, train

        settings = job.settings
        adversaries = prepare(job, settings)
        teacher = private_critic_trainer(job, settings, job.accesses[0], adversaries)
        generator = train(job, settings, teacher, adversaries)
        Spending.forget(job)
        return generator


METHOD = Dpgan[PrivateSettings]()
