"""The models that inversion attacks: students of images, taught plainly or with differentially private gradients.

They are the papers' (Triastcyn & Faltings 2019, §5.4): perceptrons with 1000 and 300 units on pixels, 64-32-10 on the
64 features of an autoencoder. The private one is DP-SGD (Abadi et al. 2016) on full batches: one record's gradient of a
linear layer is an outer product, so that its norm follows from two vectors (Goodfellow 2015), and no gradient of a
single record is ever held. It is a comparison for an internal report; nothing of it is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from doublure.private import accounting
from doublure.private.clipping import clip_factors
from doublure.private.noise import OsKeyedNoise

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

EPOCHS = 60
BATCH = 32
RATE = 1e-3
_PRIVATE_STEPS = 40
_PRIVATE_RATE = 0.5
_CLIP = 1.0


def perceptron(inputs: int, hidden: Sequence[int], classes: int, source: torch.Generator) -> nn.Sequential:
    """Return an untrained perceptron with ReLU, ``(B, inputs) -> (B, classes)`` logits."""
    from torch import nn

    from doublure.networks.initial_weights import initialise

    sizes = [inputs, *hidden]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    network = nn.Sequential(*layers, nn.Linear(sizes[-1], classes))
    initialise(network, source)
    return network


def teach(
    network: nn.Sequential, inputs: Tensor, classes: Tensor, source: torch.Generator, epochs: int = EPOCHS
) -> None:
    """Teach a student plainly: Adam on batches of 32.

    Args:
        network: The student.
        inputs: ``(N, D)``.
        classes: ``(N,)``.
        source: Draws the batches.
        epochs: How often everything is seen.
    """
    import torch
    from torch.nn import functional

    optimizer = torch.optim.Adam(network.parameters(), RATE)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(inputs), generator=source), BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(network(inputs[rows]), classes[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    network.eval()


def teach_privately(
    network: nn.Sequential,
    inputs: Tensor,
    classes: Tensor,
    *,
    epsilon: float,
    delta: float,
    steps: int = _PRIVATE_STEPS,
) -> None:
    """Teach a student by noisy full-batch gradients, (ε, δ)-DP for adding or removing one record.

    Args:
        network: The student.
        inputs: ``(N, D)``.
        classes: ``(N,)``.
        epsilon: ε.
        delta: δ.
        steps: T.
    """
    import torch

    std = _CLIP * accounting.noise_multiplier(epsilon, delta, 1.0, steps)
    source = OsKeyedNoise()
    for _ in range(steps):
        total = clipped_sum(network, inputs, classes, _CLIP)
        flat = torch.cat([part.reshape(-1) for part in total])
        noisy = torch.nn.utils.parameters_to_vector(network.parameters()) - _PRIVATE_RATE / len(inputs) * (
            flat + source.normal(len(flat), std)
        )
        torch.nn.utils.vector_to_parameters(noisy.detach(), network.parameters())
    network.eval()


def clipped_sum(network: nn.Sequential, inputs: Tensor, classes: Tensor, bound: float) -> list[Tensor]:
    """Return the sum of the records' gradients, each at most ``bound`` long, parameter by parameter.

    Args:
        network: Linear layers and ReLU.
        inputs: ``(N, D)``.
        classes: ``(N,)``.
        bound: C.
    """
    import torch
    from torch import nn
    from torch.nn import functional

    before: list[Tensor] = []
    after: list[Tensor] = []
    flow = inputs
    for layer in network:
        if isinstance(layer, nn.Linear):
            before.append(flow.detach())
            flow = layer(flow)
            after.append(flow)
        else:
            flow = layer(flow)
    loss = functional.cross_entropy(flow, classes, reduction="sum")
    behind = torch.autograd.grad(loss, after)
    # A weight's gradient is δ aᵀ and a bias's is δ: together they are ‖δ‖ √(‖a‖² + 1) long.
    squares = [
        delta.double().square().sum(1) * (1 + entry.double().square().sum(1))
        for delta, entry in zip(behind, before, strict=True)
    ]
    factors = clip_factors(torch.stack(squares).sum(0).sqrt(), bound).float()[:, None]
    return [
        part
        for delta, entry in zip(behind, before, strict=True)
        for part in ((factors * delta).T @ entry, (factors * delta).sum(0))
    ]


def autoencoder(inputs: int, features: int, source: torch.Generator) -> tuple[nn.Sequential, nn.Sequential]:
    """Return an encoder and a decoder between ``inputs`` and ``features`` numbers, untrained (2019, §5.4)."""
    from torch import nn

    encode = perceptron(inputs, (256,), features, source)
    decode = perceptron(features, (256,), inputs, source)
    return nn.Sequential(encode, nn.Sigmoid()), nn.Sequential(decode, nn.Sigmoid())


def compress(
    pair: tuple[nn.Sequential, nn.Sequential], inputs: Tensor, source: torch.Generator, epochs: int, noise: float = 0.3
) -> None:
    """Teach an autoencoder to undo noise: a denoising autoencoder (Vincent et al. 2010), both halves at once.

    Args:
        pair: Encoder and decoder.
        inputs: ``(N, D)`` in [0, 1].
        source: Draws batches and noise.
        epochs: How often everything is seen.
        noise: The noise's standard deviation.
    """
    import torch
    from torch.nn import functional

    encode, decode = pair
    optimizer = torch.optim.Adam([*encode.parameters(), *decode.parameters()], RATE)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(inputs), generator=source), 4 * BATCH):
            clean = inputs[rows]
            soiled = (clean + noise * torch.randn(clean.shape, generator=source)).clamp(0, 1)
            optimizer.zero_grad()
            functional.mse_loss(decode(encode(soiled)), clean).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    encode.eval()
    decode.eval()
