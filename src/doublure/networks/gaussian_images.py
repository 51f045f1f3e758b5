"""A Gaussian model of images: the moments to sum over private images, and a generator from the sums.

An image's cosine coefficients, whitened by the spectrum of photographs (amplitude falls with frequency; Field 1987),
are nearly independent. Classes of pictures differ in the correlations of neighbouring coefficients, which come from
energy in one part of an image or in one direction. Only products of neighbours are therefore released: their noise is a
small part of the noise of all products. Each image is normalised by its contrast, which is released separately (a
Gaussian scale mixture; Wainwright and Simoncelli 2000).

Covariances assume that mirrored pictures are equally likely: coefficients that change sign under mirroring are taken as
uncorrelated with the others. Means make no such assumption.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from doublure.networks.cosines import ImageCosines
from doublure.networks.sizes import (
    ALL_WAVES,
    CHROMA,
    CONTRASTS,
    COSINE_NEIGHBOURS,
    FALL,
    MEANS_SHARE,
    WARP_WIDTH,
    cosine_pairs,
    cosine_sides,
)
from doublure.networks.upsampling import UNLIMITED, warp_images

_HIGHEST, _LOWEST = 2.0, -5.0
_SEEN = 3.0
_MEANS, _PRODUCTS, _LEVELS = (math.sqrt(share) for share in (MEANS_SHARE, 0.75, 0.10))
_RINGS = (1.5, 3.0, 5.0, 8.0, 12.0, 17.0)
_LEAST = 0.02
_FLOOR = 1e-6
_OPPONENT = ((1.0, 1.0, 1.0), (1.0, 0.0, -1.0), (1.0, -2.0, 1.0))


class _Coefficients(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to whitened cosine coefficients ``(B, N)``, and back.

    Args:
        shape: ``(C, H, W)``; of a longer side only the lowest 32 coefficients are used.
        waves: The lowest coefficients of brightness and of colour that are used along each side, at most 32.

    Attributes:
        kept: ``(N,)`` place of each used coefficient among all of these sides.
        first: ``(S,)`` first coefficient of each pair of neighbours; each is a neighbour of itself.
        second: ``(S,)`` second coefficient of each pair.
        ring: ``(N,)`` colour and frequency, as one number.
        kind: ``(S,)`` offset, colour and approximate frequency of each pair, as one number.
        blocks: Sets ``(n,)`` of coefficients that may be correlated with one another.
    """

    colours: Tensor
    amplitude: Tensor
    kept: Tensor

    def __init__(self, shape: tuple[int, int, int], waves: tuple[int, int] = ALL_WAVES) -> None:
        super().__init__()
        colours, (rows, columns) = shape[0], cosine_sides(shape, max(waves))
        self.cosines = ImageCosines(shape[1:], (rows, columns))
        turned = torch.tensor(_OPPONENT) if colours == len(_OPPONENT) else torch.eye(colours)
        self.register_buffer("colours", turned / turned.norm(dim=1, keepdim=True), persistent=False)
        far = torch.hypot(torch.arange(rows)[:, None].float(), torch.arange(columns).float())
        loud = torch.tensor([1.0, *[CHROMA] * (colours - 1)])[:, None, None]
        amplitude = math.sqrt(shape[1] * shape[2]) * loud * (1 + far).pow(-FALL)
        self.register_buffer("amplitude", amplitude, persistent=False)
        numbers, colour = torch.arange(amplitude.numel()).reshape(amplitude.shape), torch.arange(colours)[:, None, None]
        most = torch.tensor([waves[plane > 0] for plane in range(colours)])[:, None, None]
        there = (torch.arange(rows)[:, None] < most) & (torch.arange(columns) < most)
        self.register_buffer("kept", numbers[there], persistent=False)
        place = torch.cumsum(there.flatten(), 0) - 1
        rings = far.round().long()
        self.ring = (colour * (int(rings.max()) + 1) + rings)[there]
        about = colour * (len(_RINGS) + 1) + torch.bucketize(far, torch.tensor(_RINGS))
        kinds, pairs = colours * (len(_RINGS) + 1), []
        for number, (down, across) in enumerate(COSINE_NEIGHBOURS):
            first, second, kind = _neighbours(numbers, about, down, across)
            both = there.flatten()[first] & there.flatten()[second]
            pairs.append((place[first[both]], place[second[both]], number * kinds + kind[both]))
        self.first, self.second, self.kind = map(torch.cat, zip(*pairs, strict=True))
        sides = (
            place[numbers[plane, :, odd::2][there[plane, :, odd::2]]] for plane, odd in product(range(colours), (0, 1))
        )
        self.blocks = [side for side in sides if len(side)]

    def forward(self, images: Tensor) -> Tensor:
        """Return the coefficients."""
        turned = torch.einsum("dc,bchw->bdhw", self.colours, images)
        coefficients: Tensor = self.cosines(turned) / self.amplitude
        return coefficients.flatten(1)[:, self.kept]

    def images(self, coefficients: Tensor) -> Tensor:
        """Return the images, cut to [-1, 1]."""
        every = coefficients.new_zeros(len(coefficients), self.amplitude.numel())
        every[:, self.kept] = coefficients
        loud = every.reshape(-1, *self.amplitude.shape) * self.amplitude
        turned = self.cosines.images(loud)
        return torch.einsum("dc,bdhw->bchw", self.colours, turned).clamp(-1, 1)


def _neighbours(numbers: Tensor, about: Tensor, down: int, across: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return coefficients, their neighbours at an offset, and each pair's kind, all ``(S,)``."""
    rows, columns = slice(numbers.shape[1] - down), slice(max(0, -across), numbers.shape[2] - max(0, across))
    there = numbers[:, down:, max(0, across) : numbers.shape[2] - max(0, -across)]
    return numbers[:, rows, columns].flatten(), there.flatten(), about[:, rows, columns].flatten()


class GaussianMoments(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to the moments of a Gaussian ``(B, D)``, of length 1.

    They are the image's whitened coefficients at unit length, the products of neighbours at unit length, and its
    contrast as a one-hot block, each with a fixed weight.

    Args:
        shape: ``(C, H, W)``.
        waves: The lowest coefficients of brightness and of colour that are used along each side.

    Attributes:
        width: D.
    """

    def __init__(self, shape: tuple[int, int, int], waves: tuple[int, int] = ALL_WAVES) -> None:
        super().__init__()
        self.coefficients = _Coefficients(shape, waves)
        self.width = len(self.coefficients.ring) + len(self.coefficients.first) + CONTRASTS

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        found = self.coefficients(images)
        length = found.norm(dim=1, keepdim=True)
        # An image of one even grey has no direction; its coefficients stay close to zero.
        even = found / length.clamp(min=_FLOOR)
        products = even[:, self.coefficients.first] * even[:, self.coefficients.second]
        products = products / products.norm(dim=1, keepdim=True).clamp(min=_FLOOR**2)
        contrast = (length / math.sqrt(found.shape[1])).clamp(min=_FLOOR).log()
        level = ((contrast - _LOWEST) / (_HIGHEST - _LOWEST) * CONTRASTS).long().clamp(0, CONTRASTS - 1)
        levels = torch.zeros(len(images), CONTRASTS, device=images.device).scatter_(1, level, 1.0)
        return torch.cat([_MEANS * even, _PRODUCTS * products, _LEVELS * levels], dim=1)


class GaussianImages(nn.Module):
    """Generator of images from a Gaussian for each label, with a contrast for each image.

    Args:
        shape: ``(C, H, W)``.
        condition_width: K; 0 for none.
        warp: Strength of the warp (:func:`~doublure.networks.upsampling.warp_images`).
        waves: As of :class:`GaussianMoments`.

    Attributes:
        moments: ``(K, D)`` noisy mean features of each label's images; zeros until they are known.
        deviations: ``(K,)`` the noise's standard deviation in each.
        spread: Factor of an image's noise, except that of its contrast.
    """

    moments: Tensor
    deviations: Tensor

    def __init__(
        self,
        shape: tuple[int, int, int],
        *,
        condition_width: int,
        warp: float,
        waves: tuple[int, int] = ALL_WAVES,
    ) -> None:
        super().__init__()
        self.coefficients = _Coefficients(shape, waves)
        self.warp = warp
        self.spread = 1.0
        labels, numbers = max(1, condition_width), len(self.coefficients.ring)
        self.register_buffer("moments", torch.zeros(labels, numbers + cosine_pairs(shape, waves) + CONTRASTS))
        self.register_buffer("deviations", torch.zeros(labels))
        self._made: tuple[Tensor, list[Tensor], Tensor] | None = None

    def knowing(self, moments: Tensor, deviations: Tensor) -> GaussianImages:
        """Return this generator with released features ``(K, D)`` and their noise ``(K,)``."""
        self.moments.copy_(moments)
        self.deviations.copy_(deviations)
        self._made = None
        return self

    @property
    def known_of_labels(self) -> float:
        """Share of what sets labels' mean images apart, in squared intensities, that is known through the noise."""
        known, numbers = self.coefficients, len(self.coefficients.ring)
        scale = math.sqrt(numbers) / _MEANS
        noise = self.deviations.cpu().double() * scale
        between = _label_variance(self.moments.cpu().double()[:, :numbers] * scale, noise, known.ring)[known.ring]
        known_of_each = (between / (between + noise.square()[:, None]).clamp(min=_FLOOR**2)).mean(dim=0)
        loud = known.amplitude.flatten()[known.kept].cpu().double().square() * between
        return float((loud * known_of_each).sum() / loud.sum().clamp(min=_FLOOR**2))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        self._made = None
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def forward(self, noise: Tensor, condition: Tensor | None = None, most: Sequence[float] = UNLIMITED) -> Tensor:
        """Return images ``(B, C, H, W)`` in [-1, 1] from noise ``(B, N + 1 + 6)`` and labels ``(B, K)``.

        Args:
            noise: Standard normal.
            condition: Labels as indicators; None without labels.
            most: Limits of warp and spread in these images.
        """
        warp, spread = map(min, (self.warp, self.spread), most)
        numbers = len(self.coefficients.ring)
        own, level, turns = torch.split(noise, [numbers, 1, WARP_WIDTH], dim=1)
        labels = noise.new_zeros(len(noise), dtype=torch.long) if condition is None else condition.argmax(dim=1)
        means, roots, contrasts = self._gaussians()
        drawn = torch.empty_like(own)
        for label in torch.unique(labels).tolist():
            rows = torch.nonzero(labels == label)[:, 0]
            for block, root in zip(self.coefficients.blocks, roots, strict=True):
                there = rows[:, None], block.to(rows.device)
                drawn[there] = own[there] @ root[label]
        even = means[labels] + drawn * spread
        chance = (1 + torch.erf(level / math.sqrt(2))) / 2
        images = self.coefficients.images(even * _contrast(contrasts[labels], chance))
        return warp_images(images, turns, warp) if warp and len(images) else images

    def _gaussians(self) -> tuple[Tensor, list[Tensor], Tensor]:
        """Return means ``(K, N)``, symmetric roots ``(K, n, n)`` of each block's covariance, and contrasts' shares."""
        device = self.moments.device
        if self._made is None or self._made[0].device != device:
            with torch.inference_mode(mode=False), torch.no_grad():
                means, roots, shares = self._make()
            self._made = means.to(device), [root.to(device) for root in roots], shares.to(device)
        return self._made

    def _make(self) -> tuple[Tensor, list[Tensor], Tensor]:
        """Compute means, roots and shares on the processor, in float64."""
        known, numbers = self.coefficients, len(self.coefficients.ring)
        parts = torch.split(self.moments.cpu().double(), [numbers, len(known.first), CONTRASTS], dim=1)
        noise = self.deviations.cpu().double()
        length = math.sqrt(numbers)  # of an image's coefficients, each of mean square 1
        means = _through_noise(parts[0] / _MEANS * length, noise / _MEANS * length, known.ring)
        products, ones = parts[1] / _PRODUCTS, known.first == known.second
        # The released products have unit length; mean squares that average to 1 fix their scale.
        contrast = (products[:, ones].sum(dim=1) / numbers).clamp(min=_FLOOR)
        products = products / contrast[:, None]
        most = products[:, ones].clamp(min=_FLOOR).sqrt()  # a squared mean is at most the mean square
        means = torch.minimum(torch.maximum(means, -most), most)
        products = products - means[:, known.first] * means[:, known.second]
        products = _through_noise(products, noise / _PRODUCTS / contrast, known.kind)
        roots = [_root(covariances) for covariances in self._covariances(products)]
        return means.float(), roots, _shares(parts[2], noise).float()

    def _covariances(self, products: Tensor) -> Iterator[Tensor]:
        """Yield each block's covariances ``(K, n, n)``, zero but for neighbours."""
        known = self.coefficients
        place = torch.full_like(known.ring, -1)
        for block in known.blocks:
            place.fill_(-1)
            place[block] = torch.arange(len(block))
            within = torch.nonzero(place[known.first] >= 0)[:, 0]  # their neighbours are in the same block
            first, second = place[known.first[within]], place[known.second[within]]
            covariances = products.new_zeros(len(products), len(block), len(block))
            covariances[:, first, second] = products[:, within]
            covariances[:, second, first] = products[:, within]
            yield covariances


def find_gaussian(generator: object) -> GaussianImages | None:
    """Return the Gaussian model within a generator; None without one."""
    if not isinstance(generator, nn.Module):
        return None
    return next((each for each in generator.modules() if isinstance(each, GaussianImages)), None)


def _through_noise(seen: Tensor, noise: Tensor, kind: Tensor) -> Tensor:
    """Return numbers ``(K, E)`` after empirical Bayes shrinkage (Efron and Morris 1973).

    Each label's numbers are shrunk towards the mean over labels, and those means towards the mean of their kind, as far
    as their noise explains the differences. The variance between labels is the estimate of DerSimonian and Laird
    (1986); a label's weight in the mean is the inverse of that variance plus its noise variance.

    Args:
        seen: Noisy numbers.
        noise: Standard deviation of the noise.
        kind: ``(E,)`` the kind of each number.
    """
    variance, labels = noise.square().clamp(min=_FLOOR**2), _label_variance(seen, noise, kind)
    count = torch.bincount(kind)

    def of_kind(numbers: Tensor) -> Tensor:
        return torch.bincount(kind, numbers) / count

    precision = 1 / (variance[:, None] + labels)
    total = precision.sum(dim=0)
    shared = ((precision / total)[:, kind] * seen).sum(dim=0)
    mean = of_kind(shared)[kind]
    differ = (of_kind((shared - mean).square()) - 1 / total).clamp(min=0)
    shared = mean + (shared - mean) * (differ / (differ + 1 / total))[kind]
    return shared + (seen - shared) * (labels / (labels + variance[:, None]))[:, kind]


def _label_variance(seen: Tensor, noise: Tensor, kind: Tensor) -> Tensor:
    """Return the estimated variance between labels of each kind of number, without that of the noise."""
    variance = noise.square().clamp(min=_FLOOR**2)
    precision = 1 / variance
    weights = precision / precision.sum()
    expected = variance - 1 / precision.sum()  # of the squared distance from the mean that the weights give
    apart = weights @ ((seen - weights @ seen).square() - expected[:, None])
    of_kind = torch.bincount(kind, apart) / torch.bincount(kind)
    return (of_kind / (1 - weights.square().sum()).clamp(min=_FLOOR)).clamp(min=0)


def _shares(seen: Tensor, noise: Tensor) -> Tensor:
    """Return shares ``(K, bins)`` from noisy counts with noise ``(K,)``: of significant bins, or of the largest."""
    seen = _through_noise(seen, noise, torch.arange(seen.shape[1]))
    pooled = noise.square().clamp(min=_FLOOR**2).reciprocal().sum().rsqrt()
    least = torch.minimum(_SEEN * pooled, seen.amax(dim=1, keepdim=True))
    shares = torch.where(seen >= least, seen, torch.zeros_like(seen)).clamp(min=0) + _FLOOR * (seen >= least)
    return shares / shares.sum(dim=1, keepdim=True)


def _root(covariances: Tensor) -> Tensor:
    """Return symmetric roots ``(K, n, n)`` of noisy covariances, made positive with the trace preserved."""
    values, vectors = torch.linalg.eigh(covariances)
    least = _LEAST * values.abs().mean(dim=1, keepdim=True) + _FLOOR
    trace = torch.maximum(values.sum(dim=1, keepdim=True), least)
    values = torch.maximum(values, least)
    values = values * (trace / values.sum(dim=1, keepdim=True))
    roots: Tensor = vectors * values.sqrt()[:, None, :] @ vectors.transpose(1, 2)
    return roots.float()


def _contrast(shares: Tensor, chance: Tensor) -> Tensor:
    """Return contrasts ``(B, 1)`` by inverting cumulative shares ``(B, bins)`` at uniform numbers ``(B, 1)``."""
    until = shares.cumsum(dim=1)
    place = torch.searchsorted(until, chance.contiguous()).clamp(max=shares.shape[1] - 1)
    inside = 1 - (until.gather(1, place) - chance) / shares.gather(1, place).clamp(min=_FLOOR)
    return torch.exp(_LOWEST + (place + inside.clamp(0, 1)) * (_HIGHEST - _LOWEST) / shares.shape[1])
