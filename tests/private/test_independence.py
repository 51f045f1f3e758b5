"""What lets one record see another is refused (design §5, rule 9)."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private.gradients import refuse_cross_record


class Around(nn.Module):
    """A critic or generator around a body, of a kind that is not torch's own."""

    def __init__(self, *body: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*body)

    def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
        return self.body(x if condition is None else torch.cat([x, condition], 1))


class Statistic(nn.Module):
    """What a minibatch layer computes, as plain functions."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "deviation":
            return torch.cat([x, x.std(0).mean().expand(len(x), 1)], 1)[:, : x.shape[1]] + x.std(0).mean()
        if self.kind == "detached":
            return x - x.detach().mean(0)
        if self.kind == "packing":
            return x.view(len(x) // 2, -1).repeat(1, 2).view(len(x), -1)[:, : x.shape[1]]
        if self.kind == "running":
            self.seen += x.detach().mean()
            return x
        if self.kind == "relativistic":
            return x - x.flip(0)
        if self.kind == "ranked":
            return x + (x.sum(1, keepdim=True) > x.detach().sum(1).median()).to(x.dtype)
        return x / len(x)


@pytest.mark.parametrize("kind", ["deviation", "detached", "packing", "running", "relativistic", "ranked", "counted"])
def test_statistics_of_other_records_are_refused(kind):
    with torch.random.fork_rng():  # a rank that no probe happens to change goes unseen: the weights are fixed
        torch.manual_seed(1)
        module = Around(nn.Linear(6, 4), Statistic(kind), nn.Linear(4, 1))
    with pytest.raises(SettingError, match="not independent"):
        refuse_cross_record(module, (6,))


@pytest.mark.parametrize(
    "layer",
    [
        nn.BatchNorm1d(4),
        nn.BatchNorm1d(4, track_running_stats=False),
        nn.BatchNorm1d(4).eval(),
        nn.SyncBatchNorm(4),
        nn.InstanceNorm1d(4, track_running_stats=True),
        nn.LSTM(4, 4),
        nn.CrossEntropyLoss(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_are_refused_by_kind(layer):
    with pytest.raises(SettingError, match=type(layer).__name__ if not isinstance(layer, nn.LSTM) else "batch_first"):
        refuse_cross_record(Around(nn.Linear(6, 4), layer, nn.Linear(4, 1)), (6,))


def test_a_kind_derived_from_batch_norm_is_refused():
    class Renamed(nn.BatchNorm1d):
        pass

    with pytest.raises(SettingError, match="Renamed"):
        refuse_cross_record(Around(Renamed(6)).eval(), (6,))


def test_spectral_norm_changes_what_is_stored():
    with pytest.raises(SettingError):
        refuse_cross_record(Around(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 1))), (6,))


def test_rows_lost_are_refused():
    class Summed(nn.Module):
        def forward(self, x: Tensor, condition: Tensor | None = None) -> Tensor:
            return x.sum().view(1)

    with pytest.raises(SettingError, match="outputs of shape"):
        refuse_cross_record(Summed(), (6,))


@pytest.mark.parametrize(
    ("module", "shape", "width"),
    [
        (Around(nn.Linear(6, 8), nn.LayerNorm(8), nn.LeakyReLU(0.2), nn.Dropout(0.5), nn.Linear(8, 1)), (6,), 0),
        (Around(nn.Linear(9, 8), nn.SiLU(), nn.Linear(8, 4), nn.Softmax(1)), (6,), 3),
        (
            Around(nn.Conv2d(1, 4, 3, 2, 1), nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.Flatten(), nn.Linear(64, 1)),
            (1, 8, 8),
            0,
        ),
        (Around(nn.Conv1d(2, 4, 3), nn.PReLU(), nn.AvgPool1d(2), nn.Flatten(), nn.Linear(12, 1)), (2, 8), 0),
        (Around(nn.Unflatten(1, (4, 4, 1)), nn.ConvTranspose2d(4, 2, 2, 2)), (16,), 0),
        (Around(nn.Identity()), (6,), 0),
    ],
    ids=["mlp", "generator", "conv2d", "conv1d", "upwards", "nothing"],
)
def test_record_by_record_modules_pass_and_are_left_as_they_were(module, shape, width):
    module.train()
    state = {name: value.clone() for name, value in module.state_dict().items()}
    drawn = torch.get_rng_state()
    refuse_cross_record(module, shape, width)
    assert torch.equal(drawn, torch.get_rng_state())
    assert all(part.training for part in module.modules())
    assert all(torch.equal(state[name], value) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_refused_module_is_left_as_it_was():
    module = Around(nn.Linear(6, 4), Statistic("running"))
    with pytest.raises(SettingError, match=r"body\.1\.seen"):
        refuse_cross_record(module, (6,))
    assert module.body[1].seen == 0
