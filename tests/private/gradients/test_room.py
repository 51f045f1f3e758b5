"""No tensor of lot size times parameters: what a linear critic's gradients need is of the size of its activations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from doublure.private.clipping import clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, lots
from doublure.private.gradients.reference import vectorised
from doublure.private.gradients.units import UnitGradients


class Largest(TorchDispatchMode):
    """Remembers the most numbers that any tensor's memory had."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        sizes = (x.untyped_storage().nbytes() // x.element_size() for x in tree_leaves(made) if torch.is_tensor(x))
        self.numbers = max(self.numbers, *sizes, 0)
        return made


@contextmanager
def watched() -> Iterator[Largest]:
    with Largest() as largest:
        yield largest


@pytest.mark.parametrize("penalty", [0.0, 10.0])
@pytest.mark.parametrize("grouped", [False, True])
def test_no_tensor_of_lot_times_parameters(make_critic, make_records, penalty, grouped):
    critic, records = make_critic(width=60, hidden=200), make_records((60,), 64)
    loss, group = CriticLoss(kind="wgan", gradient_penalty=penalty), torch.arange(64) // 2 if grouped else None
    gradients = RecordGradients(critic, loss)
    list(gradients.lot(records, group=group))
    parameters = sum(p.numel() for p in critic.parameters())
    with watched() as largest:
        clipped_sum(gradients.lot(records, group=group), max_grad_norm=1.0)
    assert gradients.method == "pairs"
    # Eight factors a record of the widest layer, or the flat gradient itself.
    assert largest.numbers <= max(8 * 64 * 200, parameters)
    assert largest.numbers < 64 * parameters / 10


def test_the_watch_sees_gradients_written_out(make_critic, make_records):
    critic, records = make_critic(width=60, hidden=200), make_records((60,), 64)
    parameters = list(critic.parameters())
    with watched() as largest:
        vectorised(critic, parameters, CriticLoss(kind="wgan"), records)
    assert largest.numbers >= 64 * max(p.numel() for p in parameters)


def test_the_room_sets_the_physical_batch(monkeypatch, make_critic, make_records):
    monkeypatch.setattr(lots, "_ROOM", 4000)
    gradients = RecordGradients(make_critic(), CriticLoss(kind="wgan"))
    parts: list[UnitGradients] = list(gradients.lot(make_records((5,), 100)))
    assert len(parts) > 1
    assert all(sum(term.numbers() for term in part.terms) <= 4000 for part in parts)
    assert torch.equal(torch.cat([part.units for part in parts]), torch.arange(100))
