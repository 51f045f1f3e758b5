"""Gradients on a GPU: convolutions in float32 as a whole, so that the fast engine agrees with the reference."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs


def _setting() -> object:
    found = getattr(torch.backends.cudnn, "conv", None)
    return torch.backends.cudnn.allow_tf32 if found is None else found.fp32_precision


def _set(value: object) -> None:
    found = getattr(torch.backends.cudnn, "conv", None)
    if found is None:
        torch.backends.cudnn.allow_tf32 = value
    else:
        found.fp32_precision = value


TORCHS_OWN = "tf32" if hasattr(torch.backends.cudnn, "conv") else True
"""Under which ten digits are left."""


class Watching(nn.Module):
    """A critic that notes the setting under which it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(5, 1)
        self.seen: set[object] = set()

    def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
        self.seen.add(_setting())
        return self.score(x).squeeze(1)


def test_convolutions_are_whole_where_private_gradients_are_made_and_nowhere_else(make_records):
    _set(TORCHS_OWN)
    critic, before = Watching(), _setting()
    gradients = RecordGradients(critic, CriticLoss(kind="wgan"))
    for units in (None, torch.tensor([0, 0, 1, 1])):
        assert len(list(gradients.lot(make_records((5,), 4), group=units))) == 1
    assert len(critic.seen) == 1
    assert critic.seen <= {"ieee", False}
    assert _setting() == before
    assert before == TORCHS_OWN


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
def test_the_fast_engine_is_taken_on_a_gpu():
    def body() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(32 * 196, 1))

    class Critic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = body()

        def forward(self, x: torch.Tensor, condition: torch.Tensor | None = None) -> torch.Tensor:
            return self.body(x).squeeze(1)

    critic = Critic().to("cuda")
    draw = torch.Generator().manual_seed(0)
    real, fake = torch.rand(2, 64, 1, 28, 28, generator=draw).to("cuda")
    gradients = RecordGradients(critic, CriticLoss(kind="wgan", gradient_penalty=10.0))
    records = RecordPairs(real=real, fake=fake, mix=torch.rand(64, generator=draw).to("cuda"))
    assert sum(len(part.units) for part in gradients.lot(records)) == 64
    assert gradients.method == "pairs"
