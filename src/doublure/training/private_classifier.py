"""A private labeller of images: the last stage of ``guided`` and the annotator of ``bayesgan``.

It is a linear model on second-order scattering features (Tramèr and Boneh 2021), fitted by noisy gradient descent with
momentum on all records. A linear model's gradient is an outer product, so clipping and summing are one product a step.
The mean and the main directions of the features come from images of a generator fitted to an earlier release. That
costs nothing, and removes the part that all images share before noise is added (gains: docs/evidence/methods.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from doublure.encode.image import of_images
from doublure.errors import RunFolderError
from doublure.networks.fixed_features import LabelFeatures
from doublure.networks.labelled import LabelledGenerator, Labeller
from doublure.support.messages import Message
from doublure.support.tensors import as_array, as_tensors
from doublure.training.classifier_settings import MOMENTUM, CheckingSettings, LabellerSettings
from doublure.training.feature_view import FeatureView
from doublure.training.job import Job, ProgressCounter
from doublure.training.noisy_sums import NoisySums
from doublure.training.owned import OwnerTasks, read_floats, unplanned

if TYPE_CHECKING:
    from doublure.encode.encoder import Encoder
    from doublure.private.records import PrivateRecords, ResumableStore

_CHUNK = 500
_LOOKED_AT = 100
_LOUDNESS = 0.036
_FASTEST = 100.0
_WEIGHTS = "weights"
_VIEW = ("centre", "directions")


class _Looked:
    """View of images as standardised features.

    Args:
        view: The standardisation.
        features: The feature extractor.
        resumable: Receives progress; None: no progress is reported.
    """

    name: ClassVar[str] = "looked at"

    def __init__(self, view: FeatureView, features: LabelFeatures, resumable: ResumableStore | None = None) -> None:
        self._view = view
        self._features = features
        self._resumable = resumable

    def to_message(self) -> Message:
        """Return centre and directions."""
        view = self._view
        return Message(
            {}, {name: as_array(value) for name, value in zip(_VIEW, (view.centre, view.directions), strict=True)}
        )

    def __call__(self, records: PrivateRecords) -> PrivateRecords:
        """Return the records.

        A record's place in its batch follows from the record alone (``apart``): a rounding error that depended on
        other records would be amplified by float16.
        """
        return records.mapped(
            lambda images: self._view(self._features(images).cpu()),
            self._view.directions.shape[1],
            rows=_LOOKED_AT,
            apart=True,
            resumable=self._resumable,
        )


class _Errors:
    """An image's gradient: the labeller's error times the features, as an outer product.

    Args:
        weights: ``(K, k)``.
    """

    name: ClassVar[str] = "errors of labels"

    def __init__(self, weights: Tensor) -> None:
        self._weights = weights

    @property
    def shape(self) -> tuple[int, int]:
        """``(K, k)``."""
        classes, width = self._weights.shape
        return classes, width

    def to_message(self) -> Message:
        """Return the weights."""
        return Message({}, {_WEIGHTS: as_array(self._weights)})

    def __call__(self, seen: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return errors ``(B, K)`` and features ``(B, k)``."""
        if labels is None:
            raise TypeError("a labeller needs labels")
        return torch.softmax(seen @ self._weights.T, dim=1) - labels[:, : len(self._weights)], seen


def at_owner(encoder: Encoder, settings: LabellerSettings) -> OwnerTasks:
    """Return the tasks of owners for a labeller.

    Args:
        encoder: The images' encoder.
        settings: With defaults resolved.
    """
    images = of_images(encoder)
    features = LabelFeatures(images.body_shape)

    def looked(message: Message) -> _Looked:
        centre = read_floats(message, _VIEW[0], (features.width,))
        directions = read_floats(message, _VIEW[1], (features.width, -1))
        if not 1 <= directions.shape[1] <= settings.view_width:
            raise unplanned(_VIEW[1])
        return _Looked(FeatureView(centre, directions), features)

    return OwnerTasks(
        views={_Looked.name: looked},
        summands={_Errors.name: lambda message: _Errors(read_floats(message, _WEIGHTS, (images.labels, -1)))},
        bounds={_Errors.name: settings.labeller_clip},
    )


def train_labeller(
    job: Job, settings: LabellerSettings, generator: nn.Module, noise_width: int, sums: NoisySums
) -> Labeller:
    """Train a labeller on the private records.

    Args:
        job: The run.
        settings: With defaults resolved.
        generator: Trained on earlier releases.
        noise_width: Z, numbers of noise for an image.
        sums: The labeller's steps, one release each.
    """
    encoder = of_images(job.encoder)
    classes = encoder.labels
    features = LabelFeatures(encoder.body_shape).to(job.device)
    kept = as_tensors(job.checkpoints.load() or {})
    if not all(name in kept for name in _VIEW):
        job.progress.stage("label generated images", settings.view_images)
        view = _view(job, settings, generator, noise_width, features)
        # Saved before the first answer, which is useless without it: another machine may find other directions.
        kept |= dict(zip(_VIEW, (view.centre, view.directions.contiguous()), strict=True))
        job.checkpoints.save(sums.taken, kept)
    view = FeatureView(*(kept[name] for name in _VIEW))
    job.agree([view.centre, view.directions])
    weights, velocity = (torch.zeros(classes, view.directions.shape[1]) for _ in range(2))
    if view.directions.ndim != 2 or len(view.centre) != features.width:
        raise RunFolderError("does not fit the plan's labeller", field="checkpoint", remedy="fit into a new folder")
    sums.restore(kept)
    last = sums.releases
    if not sums.all_paid:
        job.progress.stage("read the images", job.units)
        sums.see(job.seen(_Looked(view, features, ProgressCounter(job, _LOOKED_AT))))
    job.progress.stage("train the labeller", settings.labeller_steps)
    rate = _rate(job.units, sums.deviations[-1])

    while sums.taken < last:
        job.check_stop()
        bound = settings.labeller_clip
        total = sums.release(_Errors(weights), shape=(classes, view.directions.shape[1]), bound=bound)
        velocity = MOMENTUM * velocity + total / (bound * job.units)
        weights = weights - rate * velocity
        if estimated := sums.state():
            job.checkpoints.save(sums.taken, kept | estimated)
        job.progress.at(sums.taken - 1)
    made = Labeller(encoder.body_shape, classes=classes)
    made.centre.copy_(view.centre)
    made.weights.copy_(weights @ view.directions.T)
    return made


def with_label_checks(
    settings: CheckingSettings,
    generator: nn.Module,
    labeller: Labeller,
    noise_width: int,
    unchecked: tuple[float, float] | None = None,
) -> LabelledGenerator:
    """Return a generator whose images a labeller checks before they are returned.

    Args:
        settings: Draws per image, and the labeller's margin.
        generator: Makes images.
        labeller: Labels them.
        noise_width: Z, numbers of noise for an image.
        unchecked: Most warp and spread of images that it does not check; None: the generator's own.
    """
    return LabelledGenerator(
        generator,
        labeller,
        noise_width=noise_width,
        tries=settings.tries,
        margin=settings.label_margin,
        unchecked=unchecked,
    )


def _rate(units: int, noise: float) -> float:
    """Return the highest learning rate at which the noise of all steps has a fixed size in the scores."""
    return min(_FASTEST, _LOUDNESS * units / noise)


@torch.no_grad()
def _view(
    job: Job, settings: LabellerSettings, generator: nn.Module, noise_width: int, features: LabelFeatures
) -> FeatureView:
    """Return the standardisation of generated images' features; the generator is already paid for."""
    encoder = of_images(job.encoder)
    source = torch.Generator().manual_seed(job.seed + 2)
    found = torch.empty(settings.view_images, features.width)
    generator.eval()
    for first in range(0, settings.view_images, _CHUNK):
        size = min(_CHUNK, settings.view_images - first)
        labels = torch.eye(encoder.labels)[torch.arange(first, first + size) % encoder.labels]
        noise = torch.randn(size, noise_width, generator=source)
        found[first : first + size] = features(generator(noise.to(job.device), labels.to(job.device))).cpu()
        job.progress.at(first + size)
    job.progress.stage("find where generated images differ")
    return FeatureView.of(found, settings.view_width)
