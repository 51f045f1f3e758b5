"""A private variational autoencoder of series: noisy gradients of clipped evidence lower bounds, and draws from it.

What one would try first of the deep methods (Kingma and Welling 2014, by Abadi et al. 2016). A series' values are taken
off a public centre, over a public radius. Encoder and decoder have one hidden layer; the decoder says a mean, and each
value has a variance that is learned. Lots are Poisson, each series' gradient is clipped to 1, and the noise is that of
Doublure's accountant. It is floating-point: a peer, and nothing to publish with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from doublure.private.accounting import noise_multiplier

Floats = npt.NDArray[np.float64]


class Autoencoder(nn.Module):
    """The network; its result is the loss of one series, the negative bound over the number of values."""

    def __init__(self, size: int, width: int, latent: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, width), nn.Tanh(), nn.Linear(width, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.Tanh(), nn.Linear(width, size))
        self.spread = nn.Parameter(torch.zeros(size))

    def forward(self, values: Tensor, drawn: Tensor) -> Tensor:
        """Return the loss of one series."""
        mean, log_variance = self.encoder(values).chunk(2)
        missed = values - self.decoder(mean + torch.exp(log_variance / 2) * drawn)
        fit = (missed.square() * torch.exp(-self.spread) + self.spread).sum()
        return (fit + (mean.square() + log_variance.exp() - 1 - log_variance).sum()) / 2 / len(values)

    def draw(self, n: int, source: torch.Generator) -> Tensor:
        """Return new series."""
        latent = self.decoder[0].in_features
        mean = self.decoder(torch.randn(n, latent, generator=source))
        return mean + torch.exp(self.spread / 2) * torch.randn(mean.shape, generator=source)


def vae_series(
    values: Floats, lower: Floats, upper: Floats, *, epsilon: float, delta: float, n: int, centre: float, radius: float,
    seed: int, lot: int = 400, steps: int = 400, rate: float = 2e-2, width: int = 64, latent: int = 6,
) -> Floats:  # fmt: skip
    """Return ``(n, length, channels)`` synthetic series.

    Args:
        values: ``(N, length, channels)``.
        lower: ``(channels,)`` public bounds.
        upper: Likewise.
        epsilon: Of all steps together.
        delta: Likewise.
        n: How many to draw.
        centre: Public, as a share of the bounds.
        radius: Public, as a share of the bounds.
        seed: Of networks, lots, noise and draws.
        lot: Expected number of series in a step.
        steps: Noisy steps.
        rate: Adam's learning rate.
        width: Hidden units.
        latent: Numbers that a series is made of.
    """
    source = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    shape: Any = values.shape[1:]
    rows = torch.from_numpy((((values - lower) / (upper - lower) - centre) / radius).reshape(len(values), -1)).float()
    share = min(1.0, lot / len(rows))
    noise = noise_multiplier(epsilon, delta, share, steps)
    model = Autoencoder(rows.shape[1], width, latent)
    names = [name for name, _ in model.named_parameters()]
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)

    def loss(weights: dict[str, Tensor], row: Tensor, drawn: Tensor) -> Tensor:
        return functional_call(model, weights, (row, drawn))  # type: ignore[no-any-return]

    each = vmap(grad(loss), in_dims=(None, 0, 0))
    for _ in range(steps):
        chosen = rows[torch.rand(len(rows), generator=source) < share]
        own = each(dict(model.named_parameters()), chosen, torch.randn(len(chosen), latent, generator=source))
        flat = torch.cat([own[name].detach().reshape(len(chosen), -1) for name in names], 1)
        flat = flat / flat.norm(dim=1, keepdim=True).clamp(min=1)
        total = flat.sum(0) + noise * torch.randn(flat.shape[1], generator=source)
        parts = torch.split(total / (share * len(rows)), [weight.numel() for weight in model.parameters()])
        for weight, part in zip(model.parameters(), parts, strict=True):
            weight.grad = part.view_as(weight)
        optimizer.step()
    with torch.no_grad():
        drawn = model.draw(n, source).double().numpy().reshape(n, *shape)
    found: Floats = np.clip((drawn * radius + centre) * (upper - lower) + lower, lower, upper)
    return found
