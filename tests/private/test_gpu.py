"""On a GPU: clip norms hold whatever reduced precision the process allows, and grid sums are equal each time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from doublure.private.clipping import clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs, per_record_reference
from doublure.private.queries.sums import BoundedSums
from doublure.private.records import PrivateRecords

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and this machine has none"),
]

BOUND = 0.5


class Pictures(nn.Module):
    """A critic with a convolution and wide products, which reduced precision would touch."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(16 * 64, 128),
            nn.LeakyReLU(0.2), nn.Linear(128, 1),
        )  # fmt: skip

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.body(x).squeeze(1)


@pytest.fixture(params=["highest", "high", "medium"])
def allowed(request):
    """What the process allows in matrix products; convolutions in TF32 are torch's default."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(request.param)
    yield request.param
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_no_unit_moves_a_sum_by_more_than_its_bound(allowed, scale):
    torch.manual_seed(1)
    critic = Pictures().cuda()
    real, fake = (scale * torch.randn(48, 1, 8, 8, device="cuda") for _ in range(2))
    mix = torch.rand(48, device="cuda")
    loss = CriticLoss(kind="wgan", gradient_penalty=10.0)
    engine = RecordGradients(critic, loss)

    def total(rows: slice) -> Tensor:
        records = RecordPairs(real=real[rows], fake=fake[rows], condition=None, mix=mix[rows])
        return clipped_sum(engine.lot(records, chunk_size=7), max_grad_norm=BOUND).total.double()

    for unit in range(8):
        assert total(slice(unit, unit + 1)).norm() <= BOUND
    expected = per_record_reference(critic, loss, RecordPairs(real=real, fake=fake, condition=None, mix=mix))
    factors = (BOUND / expected.norm(dim=1)).clamp(max=1)
    assert torch.allclose(total(slice(None)), (factors[:, None] * expected).sum(dim=0), rtol=0, atol=1e-4 * BOUND)


def test_a_grid_sum_is_equal_each_time_and_moves_by_one_record_alone():
    rows = np.random.default_rng(1).normal(size=(300, 16)).astype(np.float32)
    weights = torch.randn(16, 24, generator=torch.Generator().manual_seed(1)).cuda()

    def answer(some):
        held = PrivateRecords(some, np.arange(len(some)), len(some), lambda each: (each, None), "cuda")
        query = BoundedSums(
            factors=lambda body, _: (torch.ones(len(body), 1, device=body.device), torch.cos(body @ weights)),
            shape=(1, 24), max_records=1,
        )  # fmt: skip
        return query.answer(held, sample_rate=1.0).total

    whole = answer(rows)
    assert whole.tolist() == answer(rows).tolist() == answer(rows[::-1].copy()).tolist()
    for place in range(5):
        without = answer(np.delete(rows, place, axis=0))
        assert (whole - without).tolist() == answer(rows[place : place + 1]).tolist()


def test_a_fit_on_the_device_is_as_priced(small, tmp_path):
    import doublure as db

    made = db.fit(small.frame(), small.plan, ledger=small.book(tmp_path), out=tmp_path / "run", seed=1, device="cuda")
    assert [entry["event"] == entry["expected"] for entry in made.executed] == [True]
    assert len(made.sample(5)) == 5
