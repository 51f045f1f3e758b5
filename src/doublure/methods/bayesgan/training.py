"""Training of ``bayesgan``: the critic's two halves, checkpoints with the estimate, and the annotator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from doublure.encode.encoder import Encoder
from doublure.encode.image import of_images
from doublure.errors import RunFolderError, SettingError
from doublure.methods.bayesgan.settings import BayesianSettings, ImageBayesganSettings
from doublure.networks.labelled import LabelledGenerator, Labeller
from doublure.private.bayesian import BayesianAccountant
from doublure.private.critic_steps import CriticSteps
from doublure.private.queries.distances import DistanceSettings
from doublure.private.queries.lot_gradients import Partner, unpaired
from doublure.support.messages import Message
from doublure.support.tensors import as_tensors
from doublure.training import checkpoints
from doublure.training.critic_steps import private_critic_trainer
from doublure.training.gan_loop import Adversaries, CriticTrainer, SeededDraws, train
from doublure.training.job import Job
from doublure.training.noisy_sums import NoisySums
from doublure.training.private_classifier import train_labeller

if TYPE_CHECKING:
    from doublure.private.records import PrivateRecords

_ESTIMATE = "estimate."


class MeasuredAdversaries(Adversaries):
    """Generator and critic with the mechanism's estimate so far.

    Args:
        job: The critic's stage.
        settings: With defaults resolved.
    """

    def __init__(self, job: Job, settings: BayesianSettings) -> None:
        super().__init__(job, settings)
        self._step: CriticSteps | None = None
        self._clip = settings.generator_clip
        self._blur = settings.generator_noise
        self._blurring = SeededDraws(job.seed + job.taken)

    def measured_by(self, step: CriticSteps) -> None:
        """Set the mechanism whose estimate is kept with the networks."""
        self._step = step

    @override
    def tempered(self, gradients: Sequence[Tensor]) -> Sequence[Tensor]:
        """Return the generator's gradients, clipped and noised by the settings.

        This balances the training and adds no privacy: the gradients follow from a noised critic.
        """
        if self._clip is not None:
            norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
            gradients = [gradient * (self._clip / norm.clamp(min=self._clip)) for gradient in gradients]
        if self._blur:
            gradients = [
                gradient + self._blur * self._blurring.normal(1, gradient.numel()).view_as(gradient).to(gradient.device)
                for gradient in gradients
            ]
        return gradients

    @override
    def state(self) -> dict[str, Tensor]:
        estimate = None if self._step is None else self._step.estimate
        kept = {} if estimate is None else estimate.state()
        return super().state() | {_ESTIMATE + name: torch.from_numpy(array) for name, array in kept.items()}

    @override
    def restore(self, tensors: dict[str, Tensor]) -> None:
        super().restore(tensors)
        names = [name for name in tensors if name.startswith(_ESTIMATE)]
        if self._step is None:
            raise TypeError("nothing measures")
        try:
            self._step.restore({name.removeprefix(_ESTIMATE): tensors[name].numpy() for name in names})
        except SettingError as error:
            raise ValueError(error.message) from None


class HalvesTrainer:
    """Trainer of a critic on two halves: real records through the mechanism, generated ones directly.

    The mechanism gives the noisy mean of −∇D(x) over clipped real records. The other half, the mean of ∇D(x̃) over
    generated records drawn by the public seed, touches no private record and needs no noise; it is clipped too, only
    because it would outweigh the other half otherwise. The critic is bounded by its weights.

    Args:
        step: The mechanism, without partners.
        adversaries: The networks.
        size: Generated records in a step.
    """

    def __init__(self, step: CriticSteps, adversaries: Adversaries, size: int) -> None:
        self._step = step
        self._adversaries = adversaries
        self._size = size

    @property
    def taken(self) -> int:
        """Noisy steps so far."""
        return self._step.taken

    @property
    def steps(self) -> int:
        """T."""
        return self._step.steps

    def skip(self, steps: int) -> None:
        """Go on after the steps that a checkpoint stands for."""
        self._step.skip(steps)

    def gradient(self, critic: nn.Module, partner: Partner) -> Tensor:
        """Return the gradient of the critic's mean loss, flat ``(P,)``."""
        del partner
        real = self._step.gradient(critic, unpaired)
        with torch.no_grad():
            records, condition = self._adversaries.generated(self._size)
        return real + self._step.generated_gradient(critic, records, condition)


def train_generator(job: Job, settings: BayesianSettings) -> tuple[nn.Module, BayesianAccountant]:
    """Train the critic by noisy gradients, and the generator by the critic; return the generator and the estimate."""
    stage = _critics(job, settings)
    adversaries = MeasuredAdversaries(stage, settings)
    step = private_critic_trainer(
        stage,
        settings,
        stage.accesses[0],
        adversaries,
        **settings.special,
        distances=_distances(job, settings, settings.powers[0]),
    )
    adversaries.measured_by(step)
    kept = stage.checkpoints.load()
    if kept is not None:
        with checkpoints.restoring():
            adversaries.restore(as_tensors(kept))
    generator: nn.Module = adversaries.average
    if step.taken < step.steps:
        teacher: CriticTrainer = step
        if settings.real_alone:
            teacher = HalvesTrainer(step, adversaries, settings.generator_batch)
        generator = train(stage, settings, teacher, adversaries)
    estimate = step.estimate
    if estimate is None:
        raise TypeError("bayesgan measures distances")
    return generator, estimate


def _critics(job: Job, settings: BayesianSettings) -> Job:
    """Return the job of the critic's stage, without labels if the GAN is given none."""
    stage = job.stage("critic", after=0)
    stage = stage if settings.condition_width(job.encoder) else stage.seen(BodyView())
    return replace(stage, taken=min(stage.taken, settings.steps or 1))


class BodyView:
    """View of records without their conditions."""

    name: ClassVar[str] = "bodies"

    def to_message(self) -> Message:
        """Return an empty message."""
        return Message()

    def __call__(self, records: PrivateRecords) -> PrivateRecords:
        """Return the records."""
        return records.bodies()


def _distances(job: Job, settings: BayesianSettings, power: int) -> DistanceSettings:
    """Return the sampling of distances; all steps' bounds together fail with their share of δ_μ."""
    if job.delta_mu is None:
        raise TypeError("bayesgan needs the δ_μ of its plan")
    return DistanceSettings(
        count=settings.distances,
        orders=settings.orders,
        gamma=settings.gamma_share * job.delta_mu / settings.sampled_steps,
        bound=settings.bound,
        paper_literal=settings.paper_literal,
        union=True,
        power=power,
    )


# -- the annotator ---------------------------------------------------------------------------------------------------


class Unconditional(nn.Module):
    """A generator that ignores labels.

    Args:
        generator: Maps noise ``(B, Z)`` to images.
    """

    def __init__(self, generator: nn.Module) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        """Return images ``(B, C, H, W)``."""
        del condition
        images: Tensor = self.generator(noise, None)
        return images


def with_annotator(generator: nn.Module, labeller: Labeller, settings: ImageBayesganSettings) -> LabelledGenerator:
    """Return the generator with the annotator that checks its images before they are returned."""
    steered = generator if settings.conditional else Unconditional(generator)
    return LabelledGenerator(steered, labeller, noise_width=settings.noise_width, tries=settings.tries)


def build_labeller(encoder: Encoder) -> Labeller:
    """Return an untrained annotator."""
    return Labeller(of_images(encoder).body_shape, classes=encoder.condition_width)


def train_annotator(
    job: Job, settings: ImageBayesganSettings, generator: nn.Module
) -> tuple[Labeller, BayesianAccountant | None]:
    """Train the annotator on the labelled private records, in steps after the critic's.

    Returns:
        The annotator, and the estimated cost of its steps, if distances are sampled at them.
    """
    stage = job.stage("annotator", after=settings.steps or 1)
    distances = _distances(job, settings, settings.powers[1]) if settings.samples_full_batches else None
    sums = NoisySums(stage, job.accesses[-1:], distances=distances)
    steered = generator if settings.conditional else Unconditional(generator)
    try:
        labeller = train_labeller(stage, settings, steered, settings.noise_width, sums)
    except SettingError as error:
        if error.field != "state":
            raise
        remedy = "fit into a new folder"
        raise RunFolderError("does not fit the plan's annotator", field="checkpoint", remedy=remedy) from None
    return labeller, sums.estimate


__all__ = ["BodyView", "HalvesTrainer", "MeasuredAdversaries", "train_annotator", "train_generator", "with_annotator"]
