"""Detail that a Gaussian model of images counts: by a forecast of the error of a label's mean image.

An image counts for a vector of length 1, whatever its size. Of N cosine coefficients each has 1/N of the squared
length, while the noise of each stays: 100 x 100 pixels in colour were 3,072 coefficients, mostly noise. Fewer are each
known better, and finer detail is left out. The forecast weighs both.

A whitened coefficient has a mean square of 1. A share v of it is its label's, and an estimate through noise of variance
s leaves v s / (v + s) of that (the posterior variance). A coefficient that is not counted leaves all of v. Weighted by
A², the squared amplitudes of photographs (Field 1987), the error is, of what sets labels apart,

    1 - v / (v + s) · ΣA² of counted coefficients / ΣA² of all,   s = N t / m,

where t is the variance of the noise in a coordinate of a label's mean, and m the means' share of the squared length. v
is not public. It has the mean of an even distribution from 0 to 1, a half. The brightness of a whole image is left out
of the sums: it is no detail, and counted at any size.
"""

from __future__ import annotations

import math
from functools import cache

from doublure.networks.sizes import ALL_WAVES, CHROMA, FALL, LARGEST_SIDE, MEANS_SHARE, cosine_numbers, cosine_sides

_OF_LABEL = 0.5
"""v, of which nothing is public: the mean of an even distribution."""


def error_by_forecast(shape: tuple[int, int, int], waves: tuple[int, int], noise: float) -> float:
    """Return the share of what sets labels' mean images apart that noise and missing detail hide.

    Args:
        shape: ``(C, H, W)``.
        waves: Waves of brightness and of colour along each side.
        noise: Standard deviation of the noise in a coordinate of a label's mean.
    """
    variance = cosine_numbers(shape, waves) * noise**2 / MEANS_SHARE
    return 1 - counted_detail(shape, waves) * _OF_LABEL / (_OF_LABEL + variance)


def counted_detail(shape: tuple[int, int, int], waves: tuple[int, int]) -> float:
    """Return the share of the squared amplitudes of photographs, but for mean brightness, that is counted."""
    everything = _energy(shape, ALL_WAVES)
    return _energy(shape, waves) / everything if everything else 1.0


def waves_by_forecast(shape: tuple[int, int, int], noise: float) -> tuple[int, int]:
    """Return the waves of brightness and of colour of the smallest forecast error, the most of equals.

    Args:
        shape: ``(C, H, W)``.
        noise: As :func:`error_by_forecast`.
    """
    most = min(LARGEST_SIDE, max(shape[1:]))
    ways = [
        (bright, colour) for bright in range(2, most + 1) for colour in (range(1, bright + 1) if shape[0] > 1 else [1])
    ]
    if not ways:
        return ALL_WAVES
    found = min(reversed(ways), key=lambda each: error_by_forecast(shape, each, noise))
    return ALL_WAVES if found == (most, most if shape[0] > 1 else 1) else found


def _energy(shape: tuple[int, int, int], waves: tuple[int, int]) -> float:
    """Return ΣA² over the counted coefficients, without the mean brightness."""
    bright = _squares(*cosine_sides(shape, waves[0])) - 1
    return bright + (shape[0] - 1) * CHROMA**2 * _squares(*cosine_sides(shape, waves[1]))


@cache
def _squares(rows: int, columns: int) -> float:
    """Return the sum of the squared amplitudes of the lowest coefficients of one plane."""
    return math.fsum((1 + math.hypot(u, v)) ** (-2 * FALL) for u in range(rows) for v in range(columns))


def in_words(shape: tuple[int, int, int], waves: tuple[int, int]) -> str:
    """Return the detail that is counted, in words: ``8 x 8 waves of brightness and 4 x 4 of colour``."""
    bright, colour = (" x ".join(map(str, cosine_sides(shape, each))) for each in waves)
    return f"{bright} waves" if shape[0] == 1 else f"{bright} waves of brightness and {colour} of colour"
