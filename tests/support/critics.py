"""Critics of many layers, for tests of their gradients record by record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import cycle

import torch
from torch import Tensor, nn

from doublure.private.gradients import CriticLoss, RecordPairs

torch.set_num_threads(1)


class Scorer(nn.Module):
    """A critic from a body that takes records, or records beside their conditions, to one number each."""

    def __init__(self, body: nn.Module, table: nn.Module | None = None) -> None:
        super().__init__()
        self.body = body
        self.table = table

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        if condition is not None:
            x = torch.cat([x, condition if self.table is None else self.table(condition).flatten(1)], 1)
        return self.body(x).flatten(1).squeeze(1)


class Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class Last(nn.Module):
    """The last output of a recurrent layer."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.recurrent = nn.GRU(width, hidden, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.recurrent(x)[0][:, -1]


class Tied(nn.Module):
    """Two layers with the same weight and different biases."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one = nn.Linear(width, width)
        self.other = nn.Linear(width, width)
        self.other.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.other(torch.tanh(self.one(x)))


class Swapped(nn.Module):
    """A layer whose rows are positions, not records."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.transpose(0, 1)).transpose(0, 1)


def mlp(activation: nn.Module, width: int = 5, hidden: int = 16) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(width, hidden), activation, nn.Linear(hidden, hidden), activation, nn.Linear(hidden, 1)
    )


def _shared() -> nn.Sequential:
    layer = nn.Linear(16, 16)
    return nn.Sequential(nn.Linear(5, 16), nn.SiLU(), layer, nn.Tanh(), layer, nn.ReLU(), nn.Linear(16, 1))


# name -> (body, shape of a record); every one of them is to be handled by factor pairs.
PAIRED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "leaky_relu": (lambda: mlp(nn.LeakyReLU(0.2)), (5,)),
    "relu": (lambda: mlp(nn.ReLU()), (5,)),
    "selu": (lambda: mlp(nn.SELU()), (5,)),
    "silu": (lambda: mlp(nn.SiLU()), (5,)),
    "tanh": (lambda: mlp(nn.Tanh()), (5,)),
    "softplus": (lambda: mlp(nn.Softplus()), (5,)),
    "leaky_relu_inplace": (lambda: mlp(nn.LeakyReLU(0.2, inplace=True)), (5,)),
    "selu_inplace": (lambda: mlp(nn.SELU(inplace=True)), (5,)),
    "no_bias": (lambda: nn.Sequential(nn.Linear(5, 16, bias=False), nn.SiLU(), nn.Linear(16, 1, bias=False)), (5,)),
    "linear": (lambda: nn.Linear(5, 1), (5,)),
    "wide": (lambda: mlp(nn.LeakyReLU(0.2), 40, 48), (40,)),
    "residual": (lambda: nn.Sequential(Residual(mlp(nn.SiLU())), nn.Softplus(), nn.Linear(5, 1)), (5,)),
    "shared": (_shared, (5,)),
    "layer_norm": (lambda: nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, 1)), (5,)),
    "positions": (
        lambda: nn.Sequential(
            nn.Unflatten(1, (5, 1)), nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 32), nn.LayerNorm((5, 32)),
            nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(160, 1),
        ),
        (5,),
    ),
    "dropout_off": (lambda: nn.Sequential(nn.Linear(5, 16), nn.Dropout(0.0), nn.Linear(16, 1)), (5,)),
    "conv2d": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 3, 1, 1), nn.LeakyReLU(0.2), nn.Flatten(),
            nn.Linear(256, 1),
        ),
        (1, 8, 8),
    ),
    "conv2d_wide": (
        lambda: nn.Sequential(nn.Conv2d(2, 24, 3), nn.SiLU(), nn.Conv2d(24, 48, 3), nn.Flatten(), nn.Linear(48, 1)),
        (2, 5, 5),
    ),
    "conv2d_groups": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 8, 3, (2, 1), (0, 1)), nn.GroupNorm(2, 8), nn.SiLU(),
            nn.Conv2d(8, 16, (2, 3), 1, "same", (2, 1), groups=4), nn.SELU(), nn.Flatten(), nn.Linear(384, 1),
        ),
        (2, 8, 8),
    ),
    "conv2d_circular": (
        lambda: nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1, padding_mode="circular", bias=False), nn.Softplus(), nn.AvgPool2d(2),
            nn.Flatten(), nn.Linear(54, 1),
        ),
        (1, 6, 6),
    ),
    "conv1d": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 8, 3, 2, 1), nn.Tanh(), nn.Conv1d(8, 8, 3, padding="valid", groups=8), nn.LeakyReLU(0.2),
            nn.Conv1d(8, 4, 2, dilation=2, padding=1), nn.Flatten(), nn.Linear(8, 1),
        ),
        (2, 8),
    ),
}  # fmt: skip

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "leaky_relu": lambda: nn.LeakyReLU(0.2), "relu": nn.ReLU, "selu": nn.SELU, "silu": nn.SiLU, "tanh": nn.Tanh,
    "softplus": nn.Softplus,
}  # fmt: skip


def _normalised(kind: str, activation: Callable[[], nn.Module]) -> nn.Sequential:
    """Return a critic in which each layer is normalised, record by record, before its activation."""
    if kind == "layer_norm":
        return nn.Sequential(
            nn.Linear(5, 16), nn.LayerNorm(16), activation(), nn.Linear(16, 12), nn.LayerNorm(12), activation(),
            nn.Linear(12, 1),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2, 1), nn.GroupNorm(2, 8), activation(), nn.Conv2d(8, 6, 3, 1, 1), nn.GroupNorm(3, 6),
        activation(), nn.Flatten(), nn.Linear(96, 1),
    )  # fmt: skip


NORMALISED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    f"{kind}-{name}": (partial(_normalised, kind, activation), shape)
    for kind, shape in (("layer_norm", (5,)), ("group_norm", (1, 8, 8)))
    for name, activation in ACTIVATIONS.items()
}

# What factor pairs do not know, with the way that is taken instead.
OTHERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "prelu": (lambda: mlp(nn.PReLU()), (5,), "vmap"),
    "tied": (lambda: nn.Sequential(nn.Linear(5, 8), Tied(8), nn.SiLU(), nn.Linear(8, 1)), (5,), "vmap"),
    "swapped": (
        lambda: nn.Sequential(nn.Unflatten(1, (3, 2)), Swapped(nn.Linear(2, 4)), nn.Flatten(), nn.Linear(12, 1)),
        (6,),
        "vmap",
    ),
    "recurrent": (lambda: nn.Sequential(nn.Unflatten(1, (3, 2)), Last(2, 4), nn.Linear(4, 1)), (6,), "loop"),
}


def records(shape: Sequence[int], size: int, seed: int = 0, *, condition: Tensor | None = None) -> RecordPairs:
    source = torch.Generator().manual_seed(seed)
    real, fake = (torch.randn(size, *shape, generator=source) for _ in range(2))
    return RecordPairs(real=real, fake=fake, mix=torch.rand(size, generator=source), condition=condition)


def seeded(make: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """Return a module with weights of its own generator, so that tests do not depend on one another."""
    module = make()
    source = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            fan = parameter[0].numel() if parameter.dim() > 1 else parameter.numel()
            parameter.copy_(torch.randn(parameter.shape, generator=source) / fan**0.5)
    return module


def thinned(critics: Iterable[str], losses: Sequence[CriticLoss]) -> list[tuple[str, CriticLoss]]:
    """Return every loss on the first critic, and on each other critic one loss, all losses in turn."""
    first, *others = critics
    return [*((first, loss) for loss in losses), *zip(others, cycle(losses))]
