"""How large convolutional networks are, for their builders and for a plan's estimates; imports no torch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

KERNEL = 5
"""Of a critic's convolutions."""

DEEP = 4
"""Of a generator's transposed convolutions: with stride 2 it doubles each side exactly."""

WARP_WIDTH = 6
"""Numbers of noise that say how a generated image is warped: turn, size, stretch, slant, two shifts."""


def halved(side: int, times: int) -> int:
    """Return a side after so many convolutions of stride 2."""
    for _ in range(times):
        side = -(-side // 2)
    return side


def seed_sides(shape: tuple[int, int, int], doublings: int) -> tuple[int, int]:
    """Return the smallest sides that so many doublings make larger than the image, for max pooling to bring down."""
    height, width = (side // 2**doublings + 1 for side in shape[1:])
    return height, width


def critic_work(shape: tuple[int, int, int], classes: int, channels: Sequence[int], features: int) -> tuple[int, int]:
    """Return a critic's multiplications for one image, and the numbers kept of it for its gradient."""
    sizes = [shape[0], *channels]
    products = kept = 0
    for depth, (inputs, outputs) in enumerate(pairwise(sizes), start=1):
        places = math.prod(halved(side, depth) for side in shape[1:])
        products += places * outputs * inputs * KERNEL**2
        kept += places * (outputs + inputs * KERNEL**2)
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
