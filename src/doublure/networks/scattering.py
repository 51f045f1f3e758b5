"""Wavelet scattering of images, a fixed feature extractor (Mallat 2012; Bruna and Mallat 2013).

An image is correlated with Morlet wavelets of two scales and eight angles. The moduli, averaged over windows of four
pixels, are its first-order features; the moduli of the moduli's own wavelets are those of second order. Small shifts
and deformations change the features little, so that a linear model on them does well. No data, public or private, was
used to make them.

Each step is one matrix over all of a map's places. That takes more multiplications than a convolution, and less time:
the matrices are small, and one product of the right shape uses a processor better than many short ones.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.networks.sizes import ANGLES, WINDOW, paths, places, shrinking
from doublure.support.arrays import Floats

_SIGMA = 0.8
_FREQUENCY = 3 * math.pi / 4
_REACH = 4.0
_TINY = 1e-8
_TAIL = 1e-12


class Scattering(nn.Module):
    """Images ``(B, C, H, W)`` in [-1, 1] to features ``(B, C * paths, places)``, each at least 0.

    Args:
        shape: ``(C, H, W)``; images with a side of more than 32 are averaged down by a whole factor first.
        order: 1: averages and first-order features, on every second pixel, for use inside a training loop; 2: second-
            order features as well, the finer scale on every pixel.
    """

    wavelets_0: Tensor
    wavelets_1: Tensor
    smooth: Tensor
    smooth_0: Tensor
    smooth_1: Tensor

    def __init__(self, shape: tuple[int, int, int], *, order: Literal[1, 2]) -> None:
        super().__init__()
        self.order = order
        self.windows = places(shape)
        self._factor = shrinking(shape)
        sides = shape[1] // self._factor, shape[2] // self._factor
        for name, values in _constants(sides, order).items():
            # Not part of the saved state: it follows from the image's size.
            self.register_buffer(name, values, persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features."""
        light = self._flat((images + 1) / 2)
        fine = _moduli(light @ self.wavelets_0)
        coarse = _moduli(light @ self.wavelets_1)
        found = [(light @ self.smooth)[:, None], fine @ self.smooth_0, coarse @ self.smooth_1]
        if self.order == 2:
            deep = _moduli(fine.flatten(0, 1) @ self.wavelets_1)
            found.append((deep @ self.smooth_1).reshape(len(light), ANGLES**2, self.windows))
        return torch.cat(found, dim=1).reshape(len(images), images.shape[1] * paths(self.order), self.windows)

    def averages(self, maps: Tensor) -> Tensor:
        """Return the averages ``(B, C, places)`` of maps ``(B, C, H, W)`` over the same windows."""
        return (self._flat(maps) @ self.smooth).reshape(*maps.shape[:2], self.windows)

    def _flat(self, maps: Tensor) -> Tensor:
        shrunk = functional.avg_pool2d(maps, self._factor) if self._factor > 1 else maps
        return shrunk.flatten(0, 1).flatten(1)


def _moduli(waves: Tensor) -> Tensor:
    """Return the moduli ``(B, ANGLES, places)`` of real parts and then imaginary ones."""
    angles = (len(waves), 2, ANGLES, waves.shape[1] // (2 * ANGLES))
    real, imaginary = waves.reshape(angles).unbind(dim=1)
    return (real.square() + imaginary.square() + _TINY).sqrt()


@lru_cache(maxsize=2)
def _constants(sides: tuple[int, int], order: Literal[1, 2]) -> dict[str, Tensor]:
    """Return the matrices, which follow from the image's size; many owners in one process share them."""
    steps = (2, 2) if order == 1 else (1, 2)
    windows = [_centres(side, WINDOW) for side in sides]
    found = {"smooth": _averages([_centres(side, 1) for side in sides], windows)}
    for scale, step in enumerate(steps):
        grid = [_centres(side, step) for side in sides]
        sigma, frequency = _SIGMA * 2**scale, _FREQUENCY / 2**scale
        found[f"wavelets_{scale}"] = _wavelets(sides, grid, sigma, frequency)
        found[f"smooth_{scale}"] = _averages(grid, windows)
    # A bell's far tail would be subnormal in float32, and products of subnormal numbers are a hundred times slower.
    tailless = {name: np.where(np.abs(values) < _TAIL, 0.0, values) for name, values in found.items()}
    with torch.inference_mode(mode=False):  # a tensor made in inference mode, then cached, would block gradients
        return {name: torch.from_numpy(values).float() for name, values in tailless.items()}


def _centres(side: int, step: int) -> Floats:
    return np.arange(0, side, step, dtype=np.float64) + (step - 1) / 2


def _mirrored(side: int, margin: int) -> tuple[Floats, Floats]:
    """Return places from ``-margin`` to ``side + margin``, and the matrix that folds them back by reflection."""
    span = np.arange(-margin, side + margin)
    turns = np.abs(span) % max(1, 2 * (side - 1))
    pixels = np.where(turns >= side, 2 * (side - 1) - turns, turns)
    fold = np.zeros((side, len(span)))
    fold[pixels, np.arange(len(span))] = 1
    return span.astype(np.float64), fold


def _wavelets(sides: tuple[int, ...], grid: list[Floats], sigma: float, frequency: float) -> Floats:
    """Return ``(H W, 2 ANGLES places)``: Morlet wavelets around each place, their real parts first."""
    margin = math.ceil(_REACH * sigma)
    (rows, fold_rows), (columns, fold_columns) = (_mirrored(side, margin) for side in sides)
    # One wavelet lies around each place: what is computed of it depends on the distance alone.
    (down, at_row), (across, at_column) = (
        np.unique(span - centres[:, None], return_inverse=True)
        for span, centres in zip((rows, columns), grid, strict=True)
    )
    at_row, at_column = at_row.reshape(-1, 1, len(rows), 1), at_column.reshape(1, -1, 1, len(columns))
    around = at_row * len(across) + at_column
    slant = 4 / ANGLES
    parts: dict[int, list[Floats]] = {0: [], 1: []}
    for angle in range(ANGLES):
        turn = (ANGLES // 2 - 1 - angle) * math.pi / ANGLES
        along = math.cos(turn) * down[:, None] + math.sin(turn) * across
        beside = -math.sin(turn) * down[:, None] + math.cos(turn) * across
        one = np.exp(-(along**2 + (slant * beside) ** 2) / (2 * sigma**2))
        bell, wave = one.take(around), (one * np.exp(1j * frequency * along)).take(around)
        # A wavelet must have mean zero.
        wave -= bell * wave.sum(axis=(2, 3), keepdims=True) / bell.sum(axis=(2, 3), keepdims=True)
        wave *= slant / (2 * math.pi * sigma**2)
        for part, values in enumerate((wave.real, wave.imag)):
            folded = fold_rows @ values @ fold_columns.T
            parts[part].append(folded.reshape(-1, math.prod(sides)).T)
    return np.concatenate(parts[0] + parts[1], axis=1)


def _averages(grid: list[Floats], windows: list[Floats]) -> Floats:
    """Return ``(places on the grid, windows)``: Gaussian averages of a map known on a grid."""
    each = []
    for known, wanted in zip(grid, windows, strict=True):
        step = known[1] - known[0] if len(known) > 1 else 1.0
        span = np.arange(-2 * len(known), 3 * len(known))
        turns = np.abs(span) % max(1, 2 * (len(known) - 1))
        places_known = np.where(turns >= len(known), 2 * (len(known) - 1) - turns, turns)
        at = known[0] + step * span
        bell = np.exp(-((at - wanted[:, None]) ** 2) / (2 * (WINDOW * 0.4) ** 2))
        bell /= bell.sum(axis=1, keepdims=True)
        average = np.zeros((len(wanted), len(known)))
        for place, column in zip(places_known, bell.T, strict=True):
            average[:, place] += column
        each.append(average)
    return np.asarray(np.kron(each[0], each[1]).T, dtype=np.float64)
