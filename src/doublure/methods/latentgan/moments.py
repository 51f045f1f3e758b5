"""The teacher ``mixture`` of ``latentgan``: a mixture of Gaussians from two noisy sums over latents.

This goes beyond the paper. A latent has few numbers and lies within a ball of radius √d, so that its moments up to the
second fit into one vector of bounded length: (a, z/√d, zzᵀ/d). Their sum for each class is the first release, which
gives each class's mean and main directions. Halved along each of the first m directions, a class has 2^m cells; the
sums for each cell are the second release. As a latent lies in one cell of one class, the numbers of classes and cells
do not affect the cost.

Each cell becomes one Gaussian. The noise of its moments is known: covariances are shrunk towards those of their class,
and classes' towards that of all, as far as noise explains the difference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.encode.latent import LatentEncoder
from doublure.methods.latentgan.settings import LatentSettings
from doublure.networks.latent import LatentMixture, class_numbers
from doublure.support.messages import Message
from doublure.support.tensors import as_array
from doublure.training.job import Job
from doublure.training.noisy_sums import NoisySums
from doublure.training.owned import read_floats, unplanned

COUNTED = 0.3
"""Length of the constant part of a record's vector, where the parts for mean and second moments have length 1."""

_LENGTH = math.sqrt(COUNTED**2 + 2)
_BELIEVED = 0.012
_FEWEST = 1.0
_LEAST = 1e-3


def build_mixture(shapes: LatentEncoder, settings: LatentSettings) -> LatentMixture:
    """Return an untrained mixture."""
    return LatentMixture(tuple(shapes.condition_sizes.values()), components=2**settings.splits, width=settings.latent)


def estimate_mixture(job: Job, settings: LatentSettings, sums: NoisySums) -> nn.Module:
    """Make the releases, unless an interrupted run has, and return the mixture estimated from them.

    Args:
        job: The stage; its records are latents.
        settings: With defaults resolved.
        sums: Makes the releases.
    """
    shapes = job.encoder
    if not isinstance(shapes, LatentEncoder):
        raise TypeError("a mixture is of latents")
    mixture = build_mixture(shapes, settings).to(job.device)
    sizes = tuple(shapes.condition_sizes.values())
    kinds, width, last = math.prod(sizes), settings.latent, sums.releases
    job.mechanism.refuse_lost(*sums.accesses)
    job.progress.stage("sum up the latents' moments", last)

    def release(number: ClassMoments | CellMoments) -> Tensor:
        """Return the sums ``(classes, 1 + d + d²)``, released now or kept by an interrupted run."""
        job.check_stop()
        total = sums.release(number, shape=number.shape)
        job.progress.at(sums.taken)
        return total.to(job.device)

    noise = sums.deviations
    first = release(ClassMoments(sizes, width))
    classes, splits = LatentMoments.of(first, noise[0]), allowed_splits(settings, job.units / kinds, noise[-1])
    directions = classes.directions[:, :, :splits].contiguous()
    job.agree([classes.means, directions])
    cells = classes
    if settings.splits:
        second = release(CellMoments(sizes, width, classes.means, directions))
        cells = LatentMoments.of(second, noise[1]) if splits else combine_sums(first, noise[0], second, noise[1])
    of = torch.arange(kinds, device=cells.counts.device).repeat_interleave(2**splits)
    covariances = shrink_covariances(cells, kinds, of)
    spare = 2 ** (settings.splits - splits)  # cuts that noise does not allow: these components are equal
    mixture.load_state_dict(
        {
            "weights": cell_shares(cells.counts, kinds).repeat_interleave(spare, dim=1) / spare,
            "means": cells.means.repeat_interleave(spare, dim=0),
            "factors": factor_covariances(covariances).repeat_interleave(spare, dim=0),
        }
    )
    return mixture


@dataclass(frozen=True)
class ClassMoments:
    """A latent's moments, in the row of its class.

    Attributes:
        sizes: Number of values of each condition.
        width: d.
    """

    sizes: tuple[int, ...]
    width: int

    name: ClassVar[str] = "moments by class"

    @property
    def shape(self) -> tuple[int, int]:
        """``(K, 1 + d + d²)``."""
        return math.prod(self.sizes), 1 + self.width + self.width**2

    def to_message(self) -> Message:
        """Return an empty message."""
        return Message()

    def __call__(self, latents: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a latent's class as a one-hot row ``(B, K)``, and its moments."""
        of = class_numbers(condition, self.sizes, len(latents)).to(latents.device)
        return functional.one_hot(of, self.shape[0]).float(), moment_vectors(latents)


@dataclass(frozen=True)
class CellMoments:
    """A latent's moments, in the row of its cell within its class.

    Attributes:
        sizes: Number of values of each condition.
        width: d.
        means: ``(K, d)`` of the classes, from the first release.
        directions: ``(K, d, m)`` along which classes are halved, from the first release.
    """

    sizes: tuple[int, ...]
    width: int
    means: Tensor
    directions: Tensor

    name: ClassVar[str] = "moments by cell"

    @classmethod
    def from_message(cls, message: Message, sizes: tuple[int, ...], width: int, most: int) -> CellMoments:
        """Return the summand that a message describes.

        Args:
            message: From the process that trains.
            sizes: By the owner's schema.
            width: By the owner's plan.
            most: Most halvings of a class by the owner's plan.

        Raises:
            SettingError: The message does not fit them.
        """
        kinds = math.prod(sizes)
        directions = read_floats(message, "directions", (kinds, width, -1))
        if directions.shape[2] > most:
            raise unplanned("directions")
        return cls(sizes, width, read_floats(message, "means", (kinds, width)), directions)

    @property
    def shape(self) -> tuple[int, int]:
        """``(K 2^m, 1 + d + d²)``."""
        return math.prod(self.sizes) * 2 ** self.directions.shape[2], 1 + self.width + self.width**2

    def to_message(self) -> Message:
        """Return the classes' means and directions."""
        return Message({}, {"means": as_array(self.means), "directions": as_array(self.directions)})

    def __call__(self, latents: Tensor, condition: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a latent's cell as a one-hot row ``(B, K 2^m)``, and its moments."""
        of = class_numbers(condition, self.sizes, len(latents)).to(latents.device)
        cell = of * 2 ** self.directions.shape[2] + find_cells(latents, of, self.means, self.directions)
        return functional.one_hot(cell, self.shape[0]).float(), moment_vectors(latents)


def allowed_splits(settings: LatentSettings, records: float, noise: float) -> int:
    """Return the number of halvings of a class that the noise allows, from public figures alone.

    Args:
        settings: The most halvings, and d.
        records: The public number of units for each class.
        noise: Standard deviation of the sums' noise.
    """
    found = settings.splits
    # The noise in each number of a cell's mean must stay small relative to 1, the deviation of latents.
    while found and noise * _LENGTH * math.sqrt(settings.latent) / (records / 2**found) > _BELIEVED:
        found -= 1
    return found


def combine_sums(one: Tensor, noise: float, other: Tensor, others_noise: float) -> LatentMoments:
    """Return the moments from two noisy sums of the same vectors, weighted by precision."""
    weight = noise**-2 / (noise**-2 + others_noise**-2)
    return LatentMoments.of(weight * one + (1 - weight) * other, (noise**-2 + others_noise**-2) ** -0.5)


def moment_vectors(latents: Tensor) -> Tensor:
    """Return ``(B, 1 + d + d²)`` of length at most 1, for latents ``(B, d)`` within the ball of radius √d."""
    unit = latents / math.sqrt(latents.shape[1])
    squares = (unit.unsqueeze(2) * unit.unsqueeze(1)).flatten(1)
    there = torch.full((len(latents), 1), COUNTED, device=latents.device)
    return torch.cat([there, unit, squares], dim=1) / _LENGTH


@dataclass(frozen=True, kw_only=True)
class LatentMoments:
    """Noisy moments of classes or cells.

    Attributes:
        counts: ``(K,)`` number of records, at least 1.
        means: ``(K, d)``.
        covariances: ``(K, d, d)``, symmetric, not always positive.
        noise: ``(K,)`` standard deviation of the noise in each entry of a covariance.
    """

    counts: Tensor
    means: Tensor
    covariances: Tensor
    noise: Tensor

    @classmethod
    def of(cls, total: Tensor, noise: float) -> LatentMoments:
        """Return the moments from noisy sums.

        Args:
            total: ``(K, 1 + d + d²)`` noisy sums of :func:`moment_vectors`.
            noise: Standard deviation of their noise.
        """
        width = round((math.sqrt(4 * total.shape[1] - 3) - 1) / 2)
        found = total * _LENGTH
        counts = (found[:, 0] / COUNTED).clamp(min=_FEWEST)
        means = found[:, 1 : 1 + width] * math.sqrt(width) / counts[:, None]
        squares = found[:, 1 + width :].reshape(-1, width, width) * width / counts[:, None, None]
        even = (squares + squares.transpose(1, 2)) / 2
        covariances = even - means.unsqueeze(2) * means.unsqueeze(1)
        return cls(counts=counts, means=means, covariances=covariances, noise=noise * _LENGTH * width / counts)

    @property
    def directions(self) -> Tensor:
        """Each one's main directions as columns ``(K, d, d)``, the longest first."""
        vectors: Tensor = torch.linalg.eigh(self.covariances)[1]
        return vectors.flip(2)


def find_cells(latents: Tensor, classes: Tensor, means: Tensor, directions: Tensor) -> Tensor:
    """Return the cell ``(B,)`` of each latent within its class, 0 to 2^m - 1.

    Args:
        latents: ``(B, d)``.
        classes: ``(B,)``.
        means: ``(K, d)`` of the classes.
        directions: ``(K, d, m)``.
    """
    sides = torch.einsum("bd,bdm->bm", latents - means[classes], directions[classes]) > 0
    places = 2 ** torch.arange(sides.shape[1], device=latents.device)
    cells: Tensor = (sides * places).sum(dim=1)
    return cells


def shrink_covariances(cells: LatentMoments, kinds: int, of: Tensor) -> Tensor:
    """Return each cell's covariance, shrunk towards its class's, and those towards the one of all cells.

    Args:
        cells: ``(C, …)``.
        kinds: K, number of classes.
        of: ``(C,)`` each cell's class.
    """
    weight = cells.counts / cells.noise.square()  # populous and precise cells weigh most in the common covariance
    common = torch.einsum("c,cij->ij", weight / weight.sum(), cells.covariances)
    within = torch.zeros(kinds, *common.shape, device=common.device)
    noise = torch.zeros(kinds, device=common.device)
    for kind in range(kinds):
        mine = of == kind
        share = cells.counts[mine] / cells.counts[mine].sum()
        within[kind] = torch.einsum("c,cij->ij", share, cells.covariances[mine])
        noise[kind] = (share * cells.noise[mine]).square().sum().sqrt()
    within = _drawn(within, common.expand_as(within), noise)
    return _drawn(cells.covariances, within[of], cells.noise)


def _drawn(found: Tensor, towards: Tensor, noise: Tensor) -> Tensor:
    """Return matrices ``(K, d, d)`` shrunk towards others, by shrinkage of the differences' eigenvalues.

    Eigenvalues within the range of pure noise become zero, and the others are corrected for the noise's inflation
    (Gavish and Donoho 2017, equation 7, the square case).
    """
    values, vectors = torch.linalg.eigh(found - towards)
    # Symmetrising has halved the noise's variance off the diagonal.
    edge = (2 * found.shape[1] * noise.square())[:, None]
    kept = values.sign() * (values.square() - edge).clamp(min=0).sqrt()
    shown: Tensor = torch.einsum("kij,kj,klj->kil", vectors, kept, vectors)
    return towards + shown


def factor_covariances(covariances: Tensor, floor: float = _LEAST) -> Tensor:
    """Return A with A Aᵀ the covariance ``(K, d, d)``, made positive."""
    values, vectors = torch.linalg.eigh(covariances)
    factors: Tensor = vectors * values.clamp(min=floor).sqrt().unsqueeze(1)
    return factors


def cell_shares(counts: Tensor, classes: int) -> Tensor:
    """Return each cell's share of its class ``(K, C)``."""
    by_class = counts.reshape(classes, -1)
    return by_class / by_class.sum(dim=1, keepdim=True)
