"""Training of ``latentgan``: the public generator, the inversion of records, and the model of latents."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from typing_extensions import override

from doublure.encode.image import of_images
from doublure.encode.latent import LatentEncoder
from doublure.errors import RunFolderError
from doublure.methods.latentgan.moments import CellMoments, ClassMoments, build_mixture, estimate_mixture
from doublure.methods.latentgan.settings import INVERSION_RATE, INVERSION_SEED, ImageLatentSettings, LatentSettings
from doublure.networks.detail import DetailedGenerator, ImageDetail
from doublure.networks.inversion import Inversion, InversionSettings
from doublure.networks.labelled import Labeller
from doublure.networks.latent import PublicNetworks, ThroughPublic
from doublure.public.architectures import inversion_encoder_of
from doublure.public.folder import PublicFolder
from doublure.support.messages import Message
from doublure.support.tensors import as_tensor
from doublure.training.architectures import generator_of
from doublure.training.job import Job, ProgressCounter
from doublure.training.noisy_sums import NoisySums
from doublure.training.owned import OwnerTasks, build_adversary
from doublure.training.private_classifier import at_owner as labeller_at_owner
from doublure.training.private_classifier import train_labeller, with_label_checks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from doublure.access import Access
    from doublure.encode.encoder import Encoder
    from doublure.private.records import PrivateRecords, ResumableStore

_WORK = "latents"
_ORDER = "places by content, each content once"  # order of latents in an interrupted run
_KEPT_EVERY = 30.0  # seconds
_HELD_BY = 500  # generated images whose speckle is measured


def train_generator(job: Job, settings: LatentSettings) -> nn.Module:
    """Return the generator to release, which draws latents and maps them through the public one."""
    generator, proposer, detail = public_networks(job.encoder, settings, job.device)
    stage = job.stage("latents", after=0).seen(latent_view(job, settings, generator, proposer))
    stage = replace(stage, encoder=LatentEncoder(job.encoder, settings.latent))
    latent = _TEACHERS[settings.teacher](stage, settings, job.accesses[: settings.latent_accesses])
    whole: nn.Module = ThroughPublic(latent, generator, width=settings.latent)
    if detail is not None and isinstance(settings, ImageLatentSettings):
        whole = _held(job, _detailed(whole, detail, settings), settings)
    if isinstance(settings, ImageLatentSettings) and settings.labeller_share:
        whole = _labelled(job, settings, whole)
    job.workspace.forget(_WORK)
    return whole.eval()


def build(encoder: Encoder, settings: LatentSettings, seed: int) -> nn.Module:
    """Return an untrained generator of records: one of latents, the public one after it, and the labeller if any."""
    import torch

    public = generator_of(settings.public_networks, encoder, torch.Generator().manual_seed(0))
    shapes = LatentEncoder(encoder, settings.latent)
    latent = build_mixture(shapes, settings) if settings.teacher == "mixture" else None
    latents = latent or generator_of(settings, shapes, torch.Generator().manual_seed(seed))
    whole: nn.Module = ThroughPublic(latents, public, width=settings.latent)
    if not isinstance(settings, ImageLatentSettings):
        return whole
    shape = of_images(encoder).body_shape
    if settings.detail:
        whole = _detailed(whole, ImageDetail(shape), settings)
    if not settings.labeller_share:
        return whole
    return with_label_checks(settings, whole, Labeller(shape, classes=encoder.condition_width), settings.image_noise)


def _detailed(generator: nn.Module, detail: ImageDetail, settings: ImageLatentSettings) -> DetailedGenerator:
    """Return a generator with detail added to its images."""
    return DetailedGenerator(generator, detail, noise_width=settings.noise_width, strength=settings.strength)


def _held(job: Job, generator: DetailedGenerator, settings: ImageLatentSettings) -> DetailedGenerator:
    """Return a generator whose images are no more speckled than the public ones."""
    import torch

    noise = torch.randn(_HELD_BY, settings.image_noise, generator=torch.Generator().manual_seed(job.seed + 3))
    classes = job.encoder.condition_width
    labels = torch.eye(classes)[torch.arange(_HELD_BY) % classes].to(job.device) if classes else None
    generator.hold(noise.to(job.device), labels)
    return generator


def public_networks(encoder: Encoder, settings: LatentSettings, device: str = "cpu") -> PublicNetworks:
    """Return the plan's public generator, with its encoder and its detail where the plan uses them.

    Raises:
        RunFolderError: The weights are not the plan's, or do not fit its settings.
    """
    import torch

    weights = PublicFolder(settings.public).weights(settings.facts)
    networks, initial = settings.public_networks, torch.Generator().manual_seed(0)
    generator = generator_of(networks, encoder, initial)
    proposer = None if weights.encoder is None else inversion_encoder_of(networks, encoder, initial)
    wanted = isinstance(settings, ImageLatentSettings) and settings.detail
    detail = ImageDetail(of_images(encoder).body_shape) if wanted and weights.detail is not None else None
    found = PublicNetworks(generator, proposer, detail)  # type: ignore[arg-type]
    try:
        for network, own in zip(found, weights, strict=True):
            if network is not None and own is not None:
                network.load_state_dict(own)
                network.to(device).eval().requires_grad_(False)
    except RuntimeError:
        remedy = "fit the public generator again"
        raise RunFolderError("has weights of other networks than it says", field="public", remedy=remedy) from None
    return found


class LatentView:
    """View of private records with latents in place of their bodies; conditions are kept.

    Args:
        inversion: Computes the latents.
        resumable: Keeps finished latents, as inversion is slow; None: they are not kept.
    """

    name: ClassVar[str] = "latents"

    def __init__(self, inversion: Inversion, resumable: ResumableStore | None = None) -> None:
        self._inversion = inversion
        self._resumable = resumable

    def to_message(self) -> Message:
        """Return an empty message: the public generator is the plan's."""
        return Message()

    def __call__(self, records: PrivateRecords) -> PrivateRecords:
        """Return the records."""
        own = self._inversion
        return records.mapped(own, own.width, rows=own.settings.batch, apart=True, resumable=self._resumable)


def latent_view(job: Job, settings: LatentSettings, generator: nn.Module, proposer: nn.Module | None) -> LatentView:
    """Return the view of records as latents; owners compute their own, and keep none."""
    inversion = build_inversion(job.encoder, settings, generator, proposer)
    job.progress.stage("invert the records", job.units)
    if job.partitions is not None:
        return LatentView(inversion)
    return LatentView(inversion, _LatentStore(job, latents_key(job), inversion.settings.batch))


def at_owner(encoder: Encoder, settings: LatentSettings) -> OwnerTasks:
    """Return the tasks of owners, who have the public generator, too."""
    shapes = LatentEncoder(encoder, settings.latent)
    sizes, width = tuple(shapes.condition_sizes.values()), settings.latent

    def latents(message: Message) -> LatentView:
        del message
        generator, proposer, _ = public_networks(encoder, settings)
        return LatentView(build_inversion(encoder, settings, generator, proposer))

    asked = OwnerTasks(
        views={LatentView.name: latents},
        summands={
            ClassMoments.name: lambda _: ClassMoments(sizes, width),
            CellMoments.name: lambda message: CellMoments.from_message(message, sizes, width, settings.splits),
        },
        adversary=None if settings.teacher != "critic" else lambda _: build_adversary(settings, shapes),
    )
    if not isinstance(settings, ImageLatentSettings) or not settings.labeller_share:
        return asked
    return asked | labeller_at_owner(encoder, settings)


def latents_key(job: Job) -> str:
    """Return a hash of the latents' inputs beside the plan.

    Latents of other data must never be combined with this data's labels: one record would then count in two places.
    The machine and the library's version are part of the hash: they change last digits, which a long descent amplifies,
    so that resumed records would be inverted differently from the others.
    """
    import torch

    machine = torch.backends.cpu.get_cpu_capability()
    if torch.device(job.device).type == "cuda":
        machine = torch.cuda.get_device_name(job.device)
    rows = cast(LatentSettings, job.settings).at_a_time
    told = [_ORDER, rows, job.records.fingerprint, job.device, machine, torch.get_num_threads(), torch.__version__]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def build_inversion(
    encoder: Encoder, settings: LatentSettings, generator: nn.Module, proposer: nn.Module | None
) -> Inversion:
    """Return the plan's inversion of records to latents."""
    return Inversion(generator, settings.latent, _how(settings), proposer=proposer, shape=encoder.body_shape)


def _how(settings: LatentSettings) -> InversionSettings:
    return InversionSettings(
        steps=settings.inversion_steps or 0,
        restarts=settings.inversion_restarts or 1,
        rate=INVERSION_RATE,
        seed=INVERSION_SEED,
        batch=settings.at_a_time,
    )


class _LatentStore(ProgressCounter):
    """Store of finished latents in the run's internal folder, which also reports progress.

    Args:
        job: The run.
        key: Hash of the latents' inputs, records included.
        rows: Records in a batch.
    """

    def __init__(self, job: Job, key: str, rows: int) -> None:
        super().__init__(job, rows)
        self._key = key
        self._last = time.monotonic()

    @override
    def load(self, shape: tuple[int, int]) -> Tensor | None:
        kept = self.job.workspace.kept(_WORK, self._key) or {}
        found = as_tensor(kept[_WORK]) if _WORK in kept else None
        fits = found is not None and found.ndim == 2 and found.shape[1] == shape[1] and len(found) <= shape[0]
        return found if fits else None

    @override
    def save(self, rows: Tensor, batches: int, *, last: bool) -> None:
        super().save(rows, batches, last=last)
        job, now = self.job, time.monotonic()
        try:
            job.check_stop()
        except BaseException:
            job.workspace.keep(_WORK, {_WORK: rows}, self._key)
            raise
        if last or now - self._last > _KEPT_EVERY:
            self._last = now
            job.workspace.keep(_WORK, {_WORK: rows}, self._key)


# -- teachers --------------------------------------------------------------------------------------------------------


def _by_critic(job: Job, settings: LatentSettings, accesses: Sequence[Access]) -> nn.Module:
    """Train by a private critic of latents, as in the paper."""
    from doublure.training.critic_steps import private_critic_trainer
    from doublure.training.gan_loop import prepare, train

    adversaries = prepare(job, settings)
    return train(job, settings, private_critic_trainer(job, settings, accesses[0], adversaries), adversaries)


def _by_mixture(job: Job, settings: LatentSettings, accesses: Sequence[Access]) -> nn.Module:
    """Estimate a mixture from noisy sums of moments."""
    return estimate_mixture(job, settings, NoisySums(job, accesses))


_TEACHERS = {"critic": _by_critic, "mixture": _by_mixture}


def _labelled(job: Job, settings: ImageLatentSettings, generator: nn.Module) -> nn.Module:
    """Train a private labeller on the images themselves, and let it check generated ones."""
    stage = job.stage("labeller", after=settings.latent_steps)
    sums = NoisySums(stage, job.accesses[-1:])
    width = settings.image_noise
    return with_label_checks(settings, generator, train_labeller(stage, settings, generator, width, sums), width)
