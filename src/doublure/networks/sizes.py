"""Sizes and costs of networks, for their builders and a plan's estimates, without torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

KERNEL = 5
"""Kernel size of a critic's convolutions."""

DEEP = 4
"""Kernel size of a generator's transposed convolutions: with stride 2 it doubles each side exactly."""

LAST = 3
"""Kernel size of the convolution that smooths a doubled map."""

ANGLES = 8
"""Angles of wavelets at each scale."""

WINDOW = 4
"""Pixels between neighbouring averages of scattering."""

LARGEST_SIDE = 32
"""Longest side of an image in scattering, in pixels; longer sides are averaged down."""

CLOCK = 4
"""Numbers that encode the time within a series for a recurrent generator."""

COSINE_NEIGHBOURS = ((0, 0), (0, 2), (2, 0), (2, 2), (2, -2), (1, 0), (1, 2), (1, -2))
"""Offsets, down and across, between cosine coefficients whose products a Gaussian model of images uses."""

FALL, CHROMA = 1.4, 0.4
"""Spectrum of photographs in a Gaussian model of images: amplitude falls as (1 + frequency) ** -FALL (Field 1987), and
the two planes of colour have CHROMA of the amplitude of brightness."""

MEANS_SHARE = 0.15
"""Share of an image's squared length that its coefficients have in a Gaussian model; the rest is products, contrast."""

CONTRASTS = 56
"""Bins of contrast in a Gaussian model of images."""

COSINE = 128
"""Multiplications that take as long as the cosine and the sine of one random frequency."""

WARP_WIDTH = 6
"""Numbers of noise for the warp of a generated image: rotation, size, stretch, shear, two shifts."""


ALL_WAVES = (LARGEST_SIDE, LARGEST_SIDE)
"""Most waves of brightness and of colour along each side in a Gaussian model of images."""


def cosine_sides(shape: tuple[int, int, int], waves: int = LARGEST_SIDE) -> tuple[int, int]:
    """Return the numbers of cosine coefficients of a colour along an image's rows and columns in a Gaussian model."""
    height, width = (min(side, waves) for side in shape[1:])
    return height, width


def _wave_sides(shape: tuple[int, int, int], waves: tuple[int, int]) -> list[tuple[int, int]]:
    """Return the sides of each plane: of brightness, and of the others."""
    return [cosine_sides(shape, waves[plane > 0]) for plane in range(shape[0])]


def cosine_numbers(shape: tuple[int, int, int], waves: tuple[int, int] = ALL_WAVES) -> int:
    """Return the number of cosine coefficients in a Gaussian model of images."""
    return sum(map(math.prod, _wave_sides(shape, waves)))


def cosine_pairs(shape: tuple[int, int, int], waves: tuple[int, int] = ALL_WAVES) -> int:
    """Return the number of products of neighbouring coefficients in a Gaussian model of images."""
    sides = _wave_sides(shape, waves)
    return sum(max(0, rows - u) * max(0, columns - abs(v)) for rows, columns in sides for u, v in COSINE_NEIGHBOURS)


def gaussian_work(shape: tuple[int, int, int], waves: tuple[int, int] = ALL_WAVES) -> tuple[int, int, int]:
    """Return the multiplications of a Gaussian model of images.

    Returns:
        The multiplications for one image's moments, those for drawing one image, and the side of the largest of the
        ``2 * C`` blocks of a label's covariance.
    """
    (rows, columns), (colours, height, width) = cosine_sides(shape, max(waves)), shape
    turned = colours * (rows * height * width + rows * columns * width + colours * height * width)
    hanging = rows * math.ceil(columns / 2)
    return turned + 2 * cosine_pairs(shape, waves), turned + cosine_numbers(shape, waves) * hanging, hanging


def halved(side: int, times: int) -> int:
    """Return a side after so many convolutions of stride 2."""
    for _ in range(times):
        side = -(-side // 2)
    return side


def seed_sides(shape: tuple[int, int, int], doublings: int) -> tuple[int, int]:
    """Return the smallest sides that exceed the image after some doublings; max pooling then shrinks the map."""
    height, width = (side // 2**doublings + 1 for side in shape[1:])
    return height, width


def critic_work(shape: tuple[int, ...], classes: int, channels: Sequence[int], features: int) -> tuple[int, int]:
    """Return a critic's multiplications for one image or series, and the numbers kept for its gradient."""
    sizes, window = [shape[0], *channels], KERNEL ** (len(shape) - 1)
    products = kept = 0
    for depth, (inputs, outputs) in enumerate(pairwise(sizes), start=1):
        places = math.prod(halved(side, depth) for side in shape[1:])
        products += places * outputs * inputs * window
        kept += places * (outputs + inputs * window)
    flat = sizes[-1] * math.prod(halved(side, len(channels)) for side in shape[1:])
    return products + (flat + classes) * features, kept + flat + features * (1 + classes)


def generator_work(shape: tuple[int, int, int], inputs: int, channels: Sequence[int]) -> tuple[int, int]:
    """Return a generator's multiplications for one image, and the numbers kept for its gradient."""
    height, width = seed_sides(shape, len(channels))
    places = height * width
    products, kept = inputs * channels[0] * places, channels[0] * places
    for before, after in zip(channels, [*channels[1:], shape[0]], strict=True):
        products += places * before * after * DEEP**2
        places *= 4
        kept += after * places
    return products, kept


def upsampling_start(shape: tuple[int, int, int], doublings: int, enlargement: int = 1) -> tuple[int, int]:
    """Return the sides of an upsampling generator's smallest map: doubled and enlarged, it covers the image."""
    height, width = (math.ceil(side / (2**doublings * enlargement)) for side in shape[1:])
    return height, width


def upsampling_work(
    shape: tuple[int, int, int],
    inputs: int,
    hidden: int,
    channels: Sequence[int],
    enlargement: int = 1,
    kernel: int = DEEP,
) -> tuple[int, int]:
    """Return an upsampling generator's multiplications for one image, and the numbers kept for its gradient.

    Args:
        shape: ``(C, H, W)``.
        inputs: Numbers of noise and of labels.
        hidden: Units of the first layer.
        channels: Channels of the small map and of each map after a doubling.
        enlargement: Factor of the last, fixed interpolation, whose cost is neglected.
        kernel: Kernel of the doubling convolutions: ``DEEP`` if transposed, ``LAST`` after an interpolation.
    """
    places = math.prod(upsampling_start(shape, len(channels) - 1, enlargement))
    products, kept = hidden * (inputs + channels[0] * places), hidden + channels[0] * places
    for before, after in pairwise(channels):
        # A transposed convolution multiplies at each input place, any other at each output place.
        products += places * before * after * (kernel**2 if kernel == DEEP else 4 * kernel**2)
        places *= 4
        kept += after * places
    return products + places * channels[-1] * shape[0] * LAST**2, kept + math.prod(shape) + places * shape[0]


def perceptron_weights(inputs: int, width: int, depth: int, outputs: int) -> int:
    """Return the weights of a multilayer perceptron, which are also its multiplications for one row."""
    if depth == 0:
        return inputs * outputs
    return inputs * width + (depth - 1) * width * width + width * outputs


def series_work(
    shape: tuple[int, int], inputs: int, condition: int, hidden: int, channels: Sequence[int]
) -> tuple[int, int]:
    """Return a convolutional generator's multiplications for one series ``(P, length)``, and the numbers kept."""
    planes, length = shape
    places = math.ceil(length / 2 ** (len(channels) - 1))
    products, kept = hidden * (inputs + channels[0] * places), hidden + channels[0] * places
    for before, after in pairwise(channels):
        products += places * before * after * DEEP
        places *= 2
        kept += after * places
    products += places * channels[-1] * planes * KERNEL + condition * planes * length
    return products, kept + places * planes


def recurrent_work(shape: tuple[int, int], inputs: int, condition: int, hidden: int) -> tuple[int, int]:
    """Return a recurrent generator's multiplications for one series ``(P, length)``, and the numbers kept.

    Args:
        shape: Planes and steps.
        inputs: Inputs of each step: noise, attributes and time.
        condition: K.
        hidden: Units of the LSTM.
    """
    planes, length = shape
    gates = 4 * hidden * (inputs + hidden)
    return length * (gates + hidden * planes + condition * planes), length * (8 * hidden + inputs + planes)


# -- scattering --------------------------------------------------------------------------------------------------------


def shrinking(shape: tuple[int, int, int]) -> int:
    """Return the whole factor by which an image's sides are averaged down before features are taken."""
    return min(math.ceil(max(shape[1:]) / LARGEST_SIDE), *shape[1:])


def paths(order: Literal[1, 2]) -> int:
    """Return the number of features of each window of one colour."""
    return 1 + 2 * ANGLES + (ANGLES**2 if order == 2 else 0)


def pixels(shape: tuple[int, int, int]) -> int:
    """Return the number of pixels of each colour in an image after averaging."""
    return math.prod(side // shrinking(shape) for side in shape[1:])


def places(shape: tuple[int, int, int]) -> int:
    """Return the number of windows of an image."""
    factor = shrinking(shape)
    return math.prod(math.ceil(side // factor / WINDOW) for side in shape[1:])


def scattering_work(shape: tuple[int, int, int], order: Literal[1, 2]) -> tuple[int, int]:
    """Return scattering's multiplications for one image, and the numbers in its matrices."""
    factor = shrinking(shape)
    sides = [side // factor for side in shape[1:]]
    seen, coarse = math.prod(sides), math.prod(-(-side // 2) for side in sides)
    fine = seen if order == 2 else coarse
    matrices = 2 * ANGLES * seen * (fine + coarse)
    deep = ANGLES * 2 * ANGLES * seen * coarse if order == 2 else 0
    return shape[0] * (matrices + deep), matrices


def fourier_work(features: int) -> int:
    """Return the cost of sines and cosines in random Fourier features, in multiplications."""
    return COSINE * features // 2


def chain_noise(channels: int, length: int) -> int:
    """Return the noise of chains for a series: a level a channel, each step's group, and its place in it."""
    return channels * (1 + 2 * length)


def detail_noise(shape: Sequence[int]) -> int:
    """Return the noise of an image's detail: a number for each of its values, and one for the strength."""
    return 1 + math.prod(shape)


def copula_noise(channels: int, length: int, *, missing: int, candidates: int = 1) -> int:
    """Return the noise of a copula for a series.

    A candidate takes one number a step and channel, one a step for calm and busy stretches, one for the level, and one
    a step of each channel that may have missing steps. If there are several, choosing takes one number each, and so
    does whether such a channel is measured at all.
    """
    each = channels * length + length + 1 + missing * length
    return each if candidates == 1 else candidates * (each + missing + 1)
