"""Target models of the inversion attack: image classifiers, trained plainly or with differentially private gradients.

They are the papers' (Triastcyn & Faltings 2019, §5.4): perceptrons with 1000 and 300 units on pixels, 64-32-10 on the
64 features of a stacked denoising autoencoder. DP-SGD (Abadi et al. 2016) trains the private one on full batches, by
the mechanism of ``dpgan`` and not by a copy. It is a comparison for an internal report; nothing of it is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from doublure.access import Access

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


def train(
    network: nn.Sequential, inputs: Tensor, classes: Tensor, source: torch.Generator, epochs: int = EPOCHS
) -> None:
    """Train a classifier plainly: Adam on batches of 32.

    Args:
        network: The classifier.
        inputs: ``(N, D)``.
        classes: ``(N,)``.
        source: Draws the batches.
        epochs: Passes over the data.
    """
    import torch
    from torch.nn import functional

    from doublure.networks import optimizers

    optimizer = optimizers.EagerAdam(network.parameters(), RATE)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(inputs), generator=source), BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(network(inputs[rows]), classes[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    network.eval()


def train_privately(
    network: nn.Sequential,
    inputs: Tensor,
    classes: Tensor,
    *,
    epsilon: float,
    delta: float,
    steps: int = _PRIVATE_STEPS,
) -> None:
    """Train a classifier by noisy full-batch gradients, (ε, δ)-DP for adding or removing one record.

    Args:
        network: The classifier.
        inputs: ``(N, D)``.
        classes: ``(N,)``.
        epsilon: ε.
        delta: δ.
        steps: T.
    """
    import torch
    from torch.nn.utils import parameters_to_vector, vector_to_parameters

    from doublure.private import accounting, noise
    from doublure.private.clipping import ConstantSchedule
    from doublure.private.critic_steps import CriticSteps
    from doublure.private.gradients import CriticLoss
    from doublure.private.mechanism import Mechanism
    from doublure.private.queries.lot_gradients import CriticSettings, unpaired
    from doublure.private.records import PrivateRecords

    known, width = network(inputs[:0]).shape[1], inputs.shape[1]
    told = torch.nn.functional.one_hot(classes, known).to(inputs)
    records = PrivateRecords(
        torch.cat([inputs, told], dim=1),
        np.arange(len(inputs)),
        len(inputs),
        lambda rows: (rows[:, :width], rows[:, width:]),
    )
    settings = CriticSettings(
        loss=CriticLoss(kind="wgan"),
        schedule=ConstantSchedule(max_grad_norm=_CLIP),
        expected_units=len(inputs),
        paired=False,
    )
    event = accounting.GaussianEvent(
        noise_multiplier=accounting.noise_multiplier(epsilon, delta, 1.0, steps), steps=steps
    )
    access = Access(purpose="train the classifier", event=event)
    mechanism = Mechanism([access], noise=noise.source(), authorise=lambda access, step: None)
    step = CriticSteps(mechanism, access, records, settings)
    critic = _log_likelihood(network)
    for _ in range(steps):
        moved = parameters_to_vector(network.parameters()) - _PRIVATE_RATE * step.gradient(critic, unpaired)
        vector_to_parameters(moved.detach(), network.parameters())
    network.eval()


def _log_likelihood(network: nn.Sequential) -> nn.Module:
    """Return D(x, y) = log p(y | x), so that the critic's loss −D is cross-entropy; y is one-hot."""
    from torch import nn

    class LogLikelihood(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, inputs: Tensor, told: Tensor) -> Tensor:
            chances: Tensor = self.network(inputs).log_softmax(1)
            return (chances * told).sum(1)

    return LogLikelihood()
