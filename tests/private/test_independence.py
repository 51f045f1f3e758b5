"""What lets one record see another is refused (pitfalls.md, rule 9)."""

from __future__ import annotations

import pytest
import torch
from planting import plant
from torch import Tensor, nn

from doublure.errors import SettingError
from doublure.private import independence as package
from doublure.private.independence import refuse_cross_record, refuse_meeting_rows


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
        if self.kind == "highest":
            return x + (x.sum(1, keepdim=True) >= x.detach().sum(1).max()).to(x.dtype)
        if self.kind == "lowest":
            return x + (x.sum(1, keepdim=True) <= x.detach().sum(1).min()).to(x.dtype)
        if self.kind == "summed up":
            return x + x.detach().cumsum(0) - x.detach()
        if self.kind == "summed down":
            return x + x.detach().flip(0).cumsum(0).flip(0) - x.detach()
        return x / len(x)


STATISTICS = [
    "deviation", "detached", "packing", "running", "relativistic", "ranked", "highest", "lowest", "summed up",
    "summed down", "counted",
]  # fmt: skip


@pytest.mark.parametrize("kind", STATISTICS)
def test_statistics_of_other_records_are_refused(kind):
    with torch.random.fork_rng():  # what weights make of a rank depends on them
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


# -- whatever else is applied to private records -----------------------------------------------------------------------


APPLIED = [kind for kind in STATISTICS if kind != "running"]  # what is stored is looked at in networks alone


def check_statistics_are_seen(kind, seed):
    applied, nobody = Statistic(kind), torch.zeros(0, 4)
    turn = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed))

    def refused(function, condition=None):
        with pytest.raises(SettingError, match="not independent") as caught:
            refuse_meeting_rows(function, nobody, condition, field="what")
        assert caught.value.field == "what"

    refused(lambda x, condition: applied(x @ turn))
    refused(lambda x, condition: (x, applied(x @ turn)))
    refused(lambda x, condition: (x, applied(condition @ turn)), nobody)
    if kind != "counted":
        with pytest.raises(SettingError, match="changes with another record's input"):
            refuse_meeting_rows(lambda x, _: applied(x @ turn), nobody, None, field="what", batch=6)


@pytest.mark.parametrize("kind", APPLIED)
def test_a_statistic_is_seen_in_whatever_is_applied(kind):
    """Of the records, of their conditions, and of what is made of them in a second output."""
    for seed in range(20):
        check_statistics_are_seen(kind, seed)


@pytest.mark.parametrize("batch", [None, 2, 3, 9])
def test_rows_that_meet_by_less_than_values_show_are_refused(batch):
    """What values are compared by has a tolerance; a derivative has none."""

    def function(x, condition):
        return x + 1e-7 * x.mean(0)

    refuse_by_values = package._refuse_values
    rows = torch.rand((batch or 4, 4), generator=torch.Generator().manual_seed(0))
    refuse_by_values(function, rows, None, "what", alone=False)
    with pytest.raises(SettingError, match="changes with another record's input"):
        refuse_meeting_rows(function, torch.zeros(0, 4), None, field="what", batch=batch)


def test_a_network_whose_conditions_meet_is_refused():
    class Beside(nn.Module):
        def __init__(self, kind: str) -> None:
            super().__init__()
            self.line, self.met = nn.Linear(6, 1), Statistic(kind)

        def forward(self, x: Tensor, condition: Tensor) -> Tensor:
            return self.line(x) + self.met(condition)[:, :1]

    for kind in STATISTICS:
        with pytest.raises(SettingError, match="not independent"):
            refuse_cross_record(Beside(kind), (6,), 4)


@pytest.mark.parametrize("batch", [None, 1, 2, 7])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, condition: x,
        lambda x, condition: (x.softmax(1), condition.argmax(1, keepdim=True)),
        lambda x, condition: ((x > 0.5).float(), condition[:, :0]),
        lambda x, condition: torch.nn.functional.layer_norm(x, (4,)),
        lambda x, condition: torch.full((len(x), 3), 2.0),
        lambda x, condition: x[:, :0],
    ],
    ids=["the same", "softmax", "comparison", "layer norm", "constant", "nothing"],
)
def test_what_is_made_of_each_row_alone_passes(function, batch):
    refuse_meeting_rows(function, torch.zeros(0, 4), torch.zeros(0, 3), field="what", batch=batch)


def test_records_of_any_shape_and_type_are_made_up():
    seen = []

    def watched(x, condition):
        seen.append((x.shape[1:], x.dtype))
        return x.flatten(1).double()

    refuse_meeting_rows(watched, torch.zeros(0, 2, 3, dtype=torch.float64), None, field="what")
    refuse_meeting_rows(watched, torch.zeros(0, 5, dtype=torch.float16), None, field="what", batch=3)
    assert set(seen) == {((2, 3), torch.float64), ((5,), torch.float16)}


def test_made_up_records_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    refuse_meeting_rows(lambda x, condition: x, torch.zeros(0, 4), None, field="what")
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (("(100, -100)", "(100,)"), "highest"),
        (("(100, -100)", "(-100,)"), "lowest"),
        (("(0, len(records) - 1)", "(0,)"), "summed up"),
        (("(0, len(records) - 1)", "(len(records) - 1,)"), "summed down"),
        (("_others_moved(condition, held, towards)", "condition"), "lowest"),
    ],
)
def test_a_look_that_sees_less_is_caught(monkeypatch, edit, kind):
    plant(monkeypatch, package, "_refuse_values", edit)

    def check():
        for seed in range(20):
            check_statistics_are_seen(kind, seed)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        check()
