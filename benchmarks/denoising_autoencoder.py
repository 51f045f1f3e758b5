"""A stacked denoising autoencoder (Vincent et al. 2010), whose features the papers' attacked classifiers learn from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from doublure.attack.target_models import BATCH, RATE
from doublure.networks.initial_weights import initialise


def autoencoder(sizes: Sequence[int], source: torch.Generator) -> tuple[nn.Sequential, nn.Sequential]:
    """Return an untrained encoder and decoder of sigmoid layers.

    Args:
        sizes: Of the inputs, of the layers between, and of the features.
        source: Draws the initial weights.

    Returns:
        ``(B, sizes[0]) -> (B, sizes[-1])`` and back, layer by layer the other way round.
    """
    halves = [
        nn.Sequential(*(layer for pair in pairwise(order) for layer in (nn.Linear(*pair), nn.Sigmoid())))
        for order in (sizes, sizes[::-1])
    ]
    for half in halves:
        initialise(half, source)
    return halves[0], halves[1]


def compress(
    pair: tuple[nn.Sequential, nn.Sequential], inputs: Tensor, source: torch.Generator, epochs: int, noise: float = 0.3
) -> None:
    """Train a stacked denoising autoencoder (Vincent et al. 2010, §3.5): layer by layer, and then as a whole.

    Each layer learns to undo noise on what the layers below it, which are trained already, make of clean inputs.

    Args:
        pair: Encoder and decoder of :func:`autoencoder`.
        inputs: ``(N, D)`` in [0, 1].
        source: Draws batches and noise.
        epochs: How often everything is seen, by each layer and by the whole.
        noise: The noise's standard deviation.
    """
    encode, decode = pair
    seen = inputs
    for layer in range(0, len(encode), 2):
        own = encode[layer : layer + 2]
        _undo_noise(own, decode[len(decode) - layer - 2 : len(decode) - layer], seen, source, epochs, noise)
        with torch.no_grad():
            seen = own(seen)
    _undo_noise(encode, decode, inputs, source, epochs, noise)
    encode.eval()
    decode.eval()


def _undo_noise(
    encode: nn.Module, decode: nn.Module, inputs: Tensor, source: torch.Generator, epochs: int, noise: float
) -> None:
    """Train an encoder and its decoder to give back what was there before the noise."""
    optimizer = torch.optim.Adam([*encode.parameters(), *decode.parameters()], RATE)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(inputs), generator=source), 4 * BATCH):
            clean = inputs[rows]
            soiled = (clean + noise * torch.randn(clean.shape, generator=source)).clamp(0, 1)
            optimizer.zero_grad()
            functional.mse_loss(decode(encode(soiled)), clean).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
