"""DP-MERF, written from its paper: Harder, Adamczewski and Park, AISTATS 2021 (arXiv:2002.11603).

The mean of random Fourier features of the pixels, joint with the label (§4.2: φ(x) ⊗ one-hot y), released once; a
convolutional generator learns to match it. Sizes and rates are those of the authors' experiments on images (10,000
features, five epochs, Adam 0.01 that falls by a tenth an epoch, frequencies of standard deviation 1/√105 for digits).

Two things differ, so that it is compared at the same guarantee. The neighbours are add/remove of one image, as for
everybody here, where one image moves the sum by 1 and not by 2 (theirs replace one); and σ is that of the exact
Gaussian mechanism at (ε, δ). Both are in its favour. Noise is drawn from a seeded generator: good for a measurement,
and not for a release.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.private.accounting import noise_multiplier

FEATURES = 10_000
SCALE = {"mnist": 105.0, "fashion-mnist": 127.0}
EPOCHS, BATCH, RATE, DECAY = 5, 100, 1e-2, 0.9
NOISE, HIDDEN, CLASSES = 5, 200, 10
SIDE = 28

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Labels = np.ndarray[Any, np.dtype[np.int64]]


class Generator(nn.Module):
    """Noise and label to an image ``(B, 784)`` in [0, 1]: two linear layers, then twice doubled and smoothed."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Sequential(
            nn.Linear(NOISE + CLASSES, HIDDEN),
            nn.BatchNorm1d(HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, 16 * 7 * 7),
            nn.BatchNorm1d(16 * 7 * 7),
            nn.ReLU(),
            nn.Unflatten(1, (16, 7, 7)),
            nn.UpsamplingBilinear2d(scale_factor=2),
            nn.Conv2d(16, 8, 5, padding=2),
            nn.ReLU(),
            nn.UpsamplingBilinear2d(scale_factor=2),
            nn.Conv2d(8, 1, 5, padding=2),
            nn.Sigmoid(),
            nn.Flatten(),
        )

    def forward(self, noise: Tensor, labels: Tensor) -> Tensor:
        """Return images."""
        images: Tensor = self.dense(torch.cat([noise, labels], dim=1))
        return images


def features(images: Tensor, frequencies: Tensor) -> Tensor:
    """Return random Fourier features ``(B, D)`` of length 1 (Rahimi and Recht 2007)."""
    phases = images @ frequencies
    return torch.cat([phases.cos(), phases.sin()], dim=1) / math.sqrt(frequencies.shape[1])


def artificial(
    images: Bytes, labels: Labels, *, data: str, epsilon: float, delta: float, size: int, seed: int
) -> tuple[Bytes, Labels, dict[str, float]]:
    """Return ``size`` synthetic images ``(N, 28, 28, 1)``, their labels, and σ."""
    source = torch.Generator().manual_seed(seed)
    frequencies = torch.randn(SIDE * SIDE, FEATURES // 2, generator=source) / math.sqrt(SCALE[data])
    total = torch.zeros(FEATURES, CLASSES, dtype=torch.float64)
    for first in range(0, len(images), 2000):
        seen = features(pixels(images[first : first + 2000]), frequencies)
        total += (seen.T @ one_hot(labels[first : first + 2000])).double()
    sigma = noise_multiplier(epsilon, delta, 1.0, 1)
    noisy = total.float() + sigma * torch.randn(total.shape, generator=source)
    wanted = noisy / len(images)
    generator = taught(wanted, frequencies, len(images), source)
    made, asked = [], torch.arange(size) % CLASSES
    with torch.no_grad():
        for own in asked.split(1000):
            noise = torch.randn(len(own), NOISE, generator=source)
            made.append(generator(noise, functional.one_hot(own, CLASSES).float()))
    grey = (torch.cat(made) * 255).round().to(torch.uint8).numpy().reshape(-1, SIDE, SIDE, 1)
    return grey, asked.numpy().astype(np.int64), {"sigma": sigma}


def taught(wanted: Tensor, frequencies: Tensor, units: int, source: torch.Generator) -> Generator:
    """Return a generator whose features and labels have this joint mean."""
    with torch.random.fork_rng():
        torch.manual_seed(int(torch.randint(2**31, (1,), generator=source)))
        generator = Generator()
    optimizer = torch.optim.Adam(generator.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, DECAY)
    for _ in range(EPOCHS):
        for _ in range(units // BATCH):
            labels = one_hot(torch.randint(CLASSES, (BATCH,), generator=source).numpy())
            made = generator(torch.randn(BATCH, NOISE, generator=source), labels)
            loss = (features(made, frequencies).T @ labels / BATCH - wanted).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    return generator.eval()


def pixels(images: Bytes) -> Tensor:
    """Return images as rows in [0, 1]."""
    return torch.from_numpy(images.reshape(len(images), -1)).float() / 255


def one_hot(labels: Labels) -> Tensor:
    """Return labels ``(B,)`` as rows ``(B, K)``."""
    return functional.one_hot(torch.from_numpy(labels), CLASSES).float()
