"""How large networks are, for their builders and for a plan's estimates; imports no torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

KERNEL = 5
"""Of a critic's convolutions."""

DEEP = 4
"""Of a generator's transposed convolutions: with stride 2 it doubles each side exactly."""

LAST = 3
"""Of the convolution that smooths what it has doubled."""

ANGLES = 8
"""Of wavelets, at each scale."""

WINDOW = 4
"""Pixels from one average of scattering to the next."""

LARGEST_SIDE = 32
"""Pixels that scattering sees of an image's side, at most."""

CLOCK = 4
"""Numbers that tell a recurrent generator the time within a series."""

COSINE_NEIGHBOURS = ((0, 0), (0, 2), (2, 0), (2, 2), (2, -2), (1, 0), (1, 2), (1, -2))
"""How far apart, down and across, the cosine coefficients are whose products a Gaussian of images is made of."""

CONTRASTS = 56
"""How many steps of contrast it tells apart."""

COSINE = 128
"""How many multiplications take as long as the cosine and the sine of one random frequency."""

WARP_WIDTH = 6
"""Numbers of noise that say how a generated image is warped: turn, size, stretch, slant, two shifts."""


def cosine_sides(shape: tuple[int, int, int]) -> tuple[int, int]:
    """Return how many cosine coefficients of an image's rows and columns a Gaussian has."""
    height, width = (min(side, LARGEST_SIDE) for side in shape[1:])
    return height, width


def cosine_numbers(shape: tuple[int, int, int]) -> int:
    """Return how many cosine coefficients it has."""
    return shape[0] * math.prod(cosine_sides(shape))


def cosine_pairs(shape: tuple[int, int, int]) -> int:
    """Return how many products of neighbouring coefficients it is made of."""
    rows, columns = cosine_sides(shape)
    return shape[0] * sum(max(0, rows - u) * max(0, columns - abs(v)) for u, v in COSINE_NEIGHBOURS)


def gaussian_work(shape: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return what a Gaussian of images multiplies.

    Returns:
        The multiplications for one image's moments, those for drawing one image, and the side of the largest of the
        ``2 * C`` blocks of a label's covariance.
    """
    (rows, columns), (colours, height, width) = cosine_sides(shape), shape
    turned = colours * (rows * height * width + rows * columns * width + colours * height * width)
    hanging = rows * math.ceil(columns / 2)
    return turned + 2 * cosine_pairs(shape), turned + cosine_numbers(shape) * hanging, hanging


def halved(side: int, times: int) -> int:
    """Return a side after so many convolutions of stride 2."""
    for _ in range(times):
        side = -(-side // 2)
    return side


def seed_sides(shape: tuple[int, int, int], doublings: int) -> tuple[int, int]:
    """Return the smallest sides that so many doublings make larger than the image, for max pooling to bring down."""
    height, width = (side // 2**doublings + 1 for side in shape[1:])
    return height, width


def critic_work(shape: tuple[int, ...], classes: int, channels: Sequence[int], features: int) -> tuple[int, int]:
    """Return a critic's multiplications for one image or series, and the numbers kept of it for its gradient."""
    sizes, window = [shape[0], *channels], KERNEL ** (len(shape) - 1)
    products = kept = 0
    for depth, (inputs, outputs) in enumerate(pairwise(sizes), start=1):
        places = math.prod(halved(side, depth) for side in shape[1:])
        products += places * outputs * inputs * window
        kept += places * (outputs + inputs * window)
    flat = sizes[-1] * math.prod(halved(side, len(channels)) for side in shape[1:])
    return products + (flat + classes) * features, kept + flat + features * (1 + classes)


def generator_work(shape: tuple[int, int, int], inputs: int, channels: Sequence[int]) -> tuple[int, int]:
    """Return a generator's multiplications for one image, and the numbers kept of it."""
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
    """Return an upsampling generator's multiplications for one image, and the numbers kept of it.

    Args:
        shape: ``(C, H, W)``.
        inputs: Numbers of noise, and of labels.
        hidden: Units of the first layer.
        channels: Of the small map and of each map after a doubling.
        enlargement: Of the last map, by a fixed interpolation, which counts for nothing.
        kernel: Of the convolutions that double: ``DEEP`` of transposed ones, ``LAST`` of those behind an interpolation.
    """
    places = math.prod(upsampling_start(shape, len(channels) - 1, enlargement))
    products, kept = hidden * (inputs + channels[0] * places), hidden + channels[0] * places
    for before, after in pairwise(channels):
        # A transposed convolution multiplies at each place that it comes from, any other at each that it makes.
        products += places * before * after * (kernel**2 if kernel == DEEP else 4 * kernel**2)
        places *= 4
        kept += after * places
    return products + places * channels[-1] * shape[0] * LAST**2, kept + math.prod(shape) + places * shape[0]


def perceptron_weights(inputs: int, width: int, depth: int, outputs: int) -> int:
    """Return how many weights a multilayer perceptron has, which are its multiplications for one row."""
    if depth == 0:
        return inputs * outputs
    return inputs * width + (depth - 1) * width * width + width * outputs


def series_work(
    shape: tuple[int, int], inputs: int, condition: int, hidden: int, channels: Sequence[int]
) -> tuple[int, int]:
    """Return a convolutional generator's multiplications for one series ``(P, length)``, and the numbers kept of it."""
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
    """Return a recurrent generator's multiplications for one series ``(P, length)``, and the numbers kept of it.

    Args:
        shape: Planes and steps.
        inputs: Numbers that each step gets: noise, attributes and the time.
        condition: K.
        hidden: Units of the LSTM.
    """
    planes, length = shape
    gates = 4 * hidden * (inputs + hidden)
    return length * (gates + hidden * planes + condition * planes), length * (8 * hidden + inputs + planes)


# -- scattering --------------------------------------------------------------------------------------------------------


def shrinking(shape: tuple[int, int, int]) -> int:
    """Return by which whole factor the sides of an image are averaged down before its features are taken."""
    return min(math.ceil(max(shape[1:]) / LARGEST_SIDE), *shape[1:])


def paths(order: Literal[1, 2]) -> int:
    """Return how many features each window of one colour has."""
    return 1 + 2 * ANGLES + (ANGLES**2 if order == 2 else 0)


def pixels(shape: tuple[int, int, int]) -> int:
    """Return how many pixels of each colour are left of an image."""
    return math.prod(side // shrinking(shape) for side in shape[1:])


def places(shape: tuple[int, int, int]) -> int:
    """Return how many windows an image has."""
    factor = shrinking(shape)
    return math.prod(math.ceil(side // factor / WINDOW) for side in shape[1:])


def scattering_work(shape: tuple[int, int, int], order: Literal[1, 2]) -> tuple[int, int]:
    """Return scattering's multiplications for one image, and the numbers that its matrices hold."""
    factor = shrinking(shape)
    sides = [side // factor for side in shape[1:]]
    seen, coarse = math.prod(sides), math.prod(-(-side // 2) for side in sides)
    fine = seen if order == 2 else coarse
    matrices = 2 * ANGLES * seen * (fine + coarse)
    deep = ANGLES * 2 * ANGLES * seen * coarse if order == 2 else 0
    return shape[0] * (matrices + deep), matrices


def fourier_work(features: int) -> int:
    """Return what the waves of random Fourier features take, in multiplications, beside those of their frequencies."""
    return COSINE * features // 2


def chain_noise(channels: int, length: int) -> int:
    """Return how many numbers chains make a series of: a level a channel, each step's group, and its place in it."""
    return channels * (1 + 2 * length)


def detail_noise(shape: Sequence[int]) -> int:
    """Return how many numbers the detail of an image is made of: one says how strong it is."""
    return 1 + math.prod(shape)


def copula_noise(channels: int, length: int, *, missing: int) -> int:
    """Return how many numbers a copula makes a series of.

    One a step and channel, how busy each step is, its level, and whether a step is missing where it may be.
    """
    return channels * length + length + 1 + missing * length
