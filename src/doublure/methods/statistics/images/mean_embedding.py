"""Training of ``statistics`` on images: the noisy mean embedding of private images, and a generator fitted to it.

There is one release: for each label, the sum of fixed features of length 1
(:class:`~doublure.networks.fixed_features.MeanEmbedding`) over its images. The generator is then trained to make images
with the same mean features: the squared distance between the two is a maximum mean discrepancy (Gretton et al. 2012),
estimated without bias from a batch. Separate sums for each label cost nothing more, since an image counts for one label
only. From other features (:class:`~doublure.networks.gaussian_images.GaussianMoments`) the generator follows without
training.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import torch
from torch import Tensor, nn

from doublure.encode.image import of_images
from doublure.errors import Interrupted
from doublure.methods.statistics.settings import FEATURE_SEED, ImageStatisticsSettings
from doublure.networks import optimizers
from doublure.networks.bfloat16 import bfloat16_products
from doublure.networks.fixed_features import MeanEmbedding
from doublure.networks.gaussian_images import GaussianImages, GaussianMoments
from doublure.networks.upsampling import UpsamplingGenerator
from doublure.support.messages import Message
from doublure.support.tensors import as_tensors
from doublure.training import checkpoints, network_states
from doublure.training.job import Job
from doublure.training.noisy_sums import NoisySums

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder

COUNTED = 0.1
"""Length of the constant part of a record's unit vector; its sums count the images of each label."""

_BETAS = (0.5, 0.99)
_LAST_RATE = 0.05
_KEPT_EVERY = 250
_LOOKED_BACK = 100
"""Steps whose distances are averaged, of one batch each, before a fit ends."""
_FEWEST = 1.0


class FeatureMap(Protocol):
    """Extractor of fixed features ``(B, D)`` of length 1 from records."""

    width: int
    """D, numbers of a record."""

    def __call__(self, records: Tensor) -> Tensor:
        """Return the features."""

    def to(self, device: str) -> Self:
        """Move the extractor to a device."""


@dataclass(frozen=True, kw_only=True)
class MeanTarget:
    """Noisy mean features, the target of a generator.

    Attributes:
        means: ``(K, D)`` noisy mean features of each label's images.
        weights: ``(K,)`` weight of each label in the loss.
        floor: Weighted sum of the squared lengths of the noise in ``means``: no generator need come closer.
        shares: ``(K,)`` positive share of each label; they add up to 1.
        deviations: ``(K,)`` standard deviation of the noise in ``means``.
    """

    means: Tensor
    weights: Tensor
    floor: float
    shares: Tensor
    deviations: Tensor


def build_features(encoder: Encoder, settings: ImageStatisticsSettings) -> MeanEmbedding | GaussianMoments:
    """Return the features; their frequencies depend on the settings alone."""
    if settings.model == "gaussian":
        return GaussianMoments(of_images(encoder).body_shape, settings.counted_waves)
    return MeanEmbedding(
        of_images(encoder).body_shape,
        features=settings.features,
        bandwidths=settings.bandwidths,
        seed=FEATURE_SEED,
        second_order=settings.second_order_features,
        fine_detail=settings.fine_detail_features,
    )


def build_generator(
    encoder: Encoder, settings: ImageStatisticsSettings, seed: int
) -> UpsamplingGenerator | GaussianImages:
    """Return an untrained generator."""
    return _gaussian(encoder, settings) if settings.model == "gaussian" else _network(encoder, settings, seed)


def _gaussian(encoder: Encoder, settings: ImageStatisticsSettings) -> GaussianImages:
    shape = of_images(encoder).body_shape
    labels = of_images(encoder).labels
    return GaussianImages(shape, condition_width=labels, warp=settings.warp, waves=settings.counted_waves)


def _network(encoder: Encoder, settings: ImageStatisticsSettings, seed: int) -> UpsamplingGenerator:
    return UpsamplingGenerator(
        of_images(encoder).body_shape,
        condition_width=of_images(encoder).labels,
        noise_width=settings.image_noise,
        warp=settings.warp,
        hidden=settings.hidden,
        channels=settings.channels,
        generator=torch.Generator().manual_seed(seed),
        enlargement=settings.enlargement or 1,
        doubling=settings.doubling or "transposed",
    )


@dataclass(frozen=True, kw_only=True)
class ImageFit:
    """A generator made from a release of images.

    Attributes:
        generator: The generator.
        shares: ``(K,)`` share of each label.
        noise: σ of the release.
        distance: A generator's squared distance from the released means; None for a Gaussian.
    """

    generator: UpsamplingGenerator | GaussianImages
    shares: Tensor
    noise: float
    distance: Callable[[nn.Module], Tensor] | None


def fit_images(job: Job, settings: ImageStatisticsSettings, sums: NoisySums) -> ImageFit:
    """Release the mean features of images, unless an interrupted run has, and make a generator from them."""
    if settings.model == "network":
        fit = fit_generator(job, settings, sums)
        return ImageFit(generator=fit.average, shares=fit.shares, noise=sums.deviations[0], distance=fit.loss)
    total = _total(job, sums, build_features(job.encoder, settings).to(job.device))
    found = make_target(total, sums.deviations[0])
    generator = _gaussian(job.encoder, settings).knowing(found.means.cpu(), found.deviations.cpu())
    return ImageFit(generator=generator.to(job.device), shares=found.shares, noise=sums.deviations[0], distance=None)


def fit_generator(job: Job, settings: ImageStatisticsSettings, sums: NoisySums) -> GeneratorFit:
    """Release the mean embedding of images, unless an interrupted run has, and fit a network completely.

    Args:
        job: The run.
        settings: The generator's training.
        sums: Makes the release.
    """
    features = build_features(job.encoder, settings).to(job.device)
    total, kept = _total(job, sums, features), as_tensors(job.checkpoints.load() or {})
    with checkpoints.restoring():
        fit = GeneratorFit(job, settings, features, make_target(total, sums.deviations[0]))
        if "fit_step" in kept:
            fit.restore(kept)
    job.progress.stage("train the generator", settings.fit_steps)
    begun = fit.done

    def keep() -> None:
        job.checkpoints.save(sums.taken, fit.state())

    while fit.done < settings.fit_steps and not fit.within_noise:
        try:
            job.check_stop()
        except Interrupted:
            keep()
            raise
        fit.step()
        job.progress.at(fit.done)
        if fit.done % _KEPT_EVERY == 0:
            keep()
            job.log({"fit_step": fit.done, "distance": round(fit.distance, 5)})
    if fit.done > begun:
        keep()
    return fit


class FeatureSum:
    """A record's summand: its features and a constant, in the row of its label.

    Args:
        features: Features of one record, of length 1.
        classes: K; 0 without labels.
    """

    name: ClassVar[str] = "embedding"

    def __init__(self, features: FeatureMap, classes: int) -> None:
        self._features = features
        self._classes = classes

    @property
    def shape(self) -> tuple[int, int]:
        """``(K, D + 1)``; the last column counts."""
        return max(1, self._classes), self._features.width + 1

    def to_message(self) -> Message:
        """Return an empty message: the features follow from the plan."""
        return Message()

    def __call__(self, records: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return labels ``(B, K)``, which come before attributes, and features ``(B, D + 1)``."""
        there = torch.full((len(records), 1), COUNTED, device=records.device)
        left = labels[:, : self._classes] if labels is not None and self._classes else torch.ones_like(there)
        return left, torch.cat([math.sqrt(1 - COUNTED**2) * self._features(records), there], dim=1)


def _total(job: Job, sums: NoisySums, features: FeatureMap) -> Tensor:
    """Return the noisy sums ``(K, D + 1)``, drawn or as an interrupted run has kept them."""
    job.progress.stage("average the records' features", 1)
    job.mechanism.refuse_lost(*sums.accesses)
    job.check_stop()
    total = _released(sums, features, of_images(job.encoder).labels)
    job.progress.at(1)
    return total


def _released(sums: NoisySums, features: FeatureMap, classes: int) -> Tensor:
    """Return the noisy sums ``(K, D + 1)``."""
    summand = FeatureSum(features, classes)
    return sums.release(summand, shape=summand.shape)


def make_target(total: Tensor, noise: float) -> MeanTarget:
    """Return the target of a generator from noisy sums ``(K, D + 1)``."""
    counts = (total[:, -1] / COUNTED).clamp(min=_FEWEST)
    means = total[:, :-1] / (math.sqrt(1 - COUNTED**2) * counts[:, None])
    # The precision of a label's mean grows with its images; a label with hardly any gets hardly any weight.
    weights = (counts / counts.mean()).clamp(max=1.0)
    deviations = noise / counts / math.sqrt(1 - COUNTED**2)
    floor = float((weights * deviations.square() * means.shape[1]).sum())
    return MeanTarget(
        means=means, weights=weights, floor=floor, shares=counts / counts.sum(),
        deviations=deviations,
    )  # fmt: skip


class GeneratorFit:
    """Training of a generator and its moving average towards a target.

    Args:
        job: The run.
        settings: The method's settings.
        features: Feature extractor, on the job's device.
        target: The noisy mean features.

    Attributes:
        shares: ``(K,)`` share of each label.
    """

    def __init__(self, job: Job, settings: ImageStatisticsSettings, features: FeatureMap, target: MeanTarget) -> None:
        self._settings = settings
        self._features = features
        self._means = target.means.to(job.device)
        self._weights = target.weights.to(job.device)
        self._floor = target.floor
        self.shares = target.shares
        self._classes = of_images(job.encoder).labels
        self._device = job.device
        self.generator, self.average = (
            _network(job.encoder, settings, job.seed).to(job.device) for _ in ("generator", "average")
        )
        self._optimizer = optimizers.EagerAdam(self.generator.parameters(), settings.generator_lr, betas=_BETAS)
        self._noise = torch.Generator().manual_seed(job.seed + 1)
        self.done = 0
        self.distance = math.nan
        self._recent = torch.zeros(0)

    def loss(self, generator: nn.Module) -> Tensor:
        """Return a generator's squared distance from the noisy target, estimated from a batch without bias."""
        each = max(2, self._settings.batch // max(1, self._classes))
        labels = torch.eye(max(1, self._classes)).repeat_interleave(each, dim=0)
        noise = torch.randn(len(labels), self._settings.image_noise, generator=self._noise)
        condition = labels.to(self._device) if self._classes else None
        with bfloat16_products(self._device):
            seen = self._features(generator(noise.to(self._device), condition))
        seen = seen.float().reshape(len(self._means), each, -1)
        # Subtracting the variance of the batch's own mean makes the estimate unbiased.
        gaps = (seen.mean(1) - self._means).square().sum(1) - seen.var(1).sum(1) / each
        loss: Tensor = (self._weights * gaps).sum()
        return loss

    def step(self) -> None:
        """Take one step."""
        loss = self.loss(self.generator)
        for group in self._optimizer.param_groups:
            group["lr"] = self._rate()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizer.step()
        self.done += 1
        self.distance = float(loss.detach()) - self._floor
        self._recent = torch.cat([self._recent, torch.tensor([self.distance])])[-_LOOKED_BACK:]
        self._follow()

    @property
    def within_noise(self) -> bool:
        """Whether the distance of the last steps is 0 within its standard error: what is left is noise."""
        if len(self._recent) < _LOOKED_BACK:
            return False
        return float(self._recent.mean()) <= float(self._recent.std()) / math.sqrt(_LOOKED_BACK)

    def _rate(self) -> float:
        """Return the learning rate, which falls along a cosine."""
        turn = (1 + math.cos(math.pi * self.done / self._settings.fit_steps)) / 2
        return self._settings.generator_lr * (_LAST_RATE + (1 - _LAST_RATE) * turn)

    @torch.no_grad()
    def _follow(self) -> None:
        past = min(self._settings.generator_average, 1 - 1 / self.done)
        for kept, new in zip(self.average.parameters(), self.generator.parameters(), strict=True):
            kept.lerp_(new, 1 - past)

    def state(self) -> dict[str, Tensor]:
        """Return everything that a resumed run needs."""
        return network_states.to_tensors(*self._learning()) | {
            "fit_step": torch.tensor([self.done]),
            "recent": self._recent,
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Restore a checkpoint."""
        network_states.restore(tensors, *self._learning())
        self.done = int(tensors["fit_step"][0])
        self._recent = tensors.get("recent", self._recent)  # not in checkpoints of an earlier version

    def _learning(self) -> tuple[dict[str, nn.Module], dict[str, torch.optim.Optimizer]]:
        return {"generator": self.generator, "average": self.average}, {"optimizer": self._optimizer}
