"""Networks of time series: of any length, each series by itself, quick for per-record gradients, counted right."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from doublure.encode.series import Planes
from doublure.networks import sizes
from doublure.networks.conv import ConvCritic
from doublure.networks.series import ConvSeriesGenerator, LstmGenerator, MlpSeriesCritic
from doublure.private.clipping import clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs, per_record_reference
from doublure.private.independence import refuse_cross_record

MASKED = (Planes(channel="a", first=0, states=3), Planes(channel="b", first=4, states=0))
PLAIN = (Planes(channel="a", first=0, states=0),)


def conv(planes=PLAIN, length=24, classes=3, channels=(8, 6), seed=0):
    return ConvSeriesGenerator(
        planes, length, condition_width=classes, noise_width=7, hidden=9, channels=channels,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


def lstm(planes=PLAIN, length=24, classes=3, noise=31, seed=0):
    return LstmGenerator(
        planes, length, condition_width=classes, noise_width=noise, hidden=10,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


def mlp_critic(planes=2, length=24, classes=3, seed=0):
    return MlpSeriesCritic(
        planes * length, condition_width=classes, width=11, depth=2, shared=True,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


def conv_critic(planes=2, length=24, classes=3, seed=0):
    return ConvCritic(
        (planes, length), condition_width=classes, channels=(4, 6), features=5, activation_name="leaky_relu",
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


GENERATORS = {"conv": conv, "lstm": lstm}
CRITICS = {"mlp": mlp_critic, "conv": conv_critic}


def labels(size, classes=3):
    return torch.eye(classes)[torch.arange(size) % classes] if classes else None


def noise(size, width, seed=1):
    return torch.randn(size, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("length", [2, 7, 24, 31])
@pytest.mark.parametrize("classes", [0, 3])
def test_any_length(name, length, classes):
    model = GENERATORS[name](MASKED, length=length, classes=classes)
    made = model(noise(5, model.noise_width), labels(5, classes))
    assert made.shape == (5, 5, length)
    assert made.abs().max() <= 1
    assert torch.allclose(made[:, :3].sum(1), torch.ones(5, length))  # chances of the states
    assert (made[:, 3].abs() <= made[:, 0] + 1e-6).all()  # no place without a value
    assert made[:, 4].std() > 0.01


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize("length", [2, 7, 24])
@pytest.mark.parametrize("classes", [0, 3, 12])
def test_critics_of_any_length(name, length, classes):
    model = CRITICS[name](length=length, classes=classes)
    assert model(noise(4, 2 * length).view(4, 2, length), labels(4, classes)).shape == (4,)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_any_depth(depth):
    assert conv(length=24, channels=(4,) * depth)(noise(2, 7), labels(2)).shape == (2, 1, 24)


@pytest.mark.parametrize("name", GENERATORS)
def test_series_do_not_meet_in_a_generator(name):
    model = GENERATORS[name](MASKED)
    refuse_cross_record(model, (model.noise_width,), 3)


def test_an_lstm_has_noise_of_its_own_at_every_step_and_some_that_lasts():
    """31 numbers for 24 steps: one a step, and seven for the whole series."""
    model, base = lstm(), noise(1, 31)
    before = model(base, labels(1))
    later = base.clone()
    later[0, 10] += 3.0
    moved = (model(later, labels(1)) - before)[0, 0]
    assert moved[:10].abs().max() == 0
    assert moved[10].abs() > 0
    everywhere = base.clone()
    everywhere[0, 27] += 3.0
    assert ((model(everywhere, labels(1)) - before)[0, 0].abs() > 0).all()


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize("penalty", [0.0, 5.0])
def test_per_record_gradients_come_from_factor_pairs(name, penalty):
    model, source = CRITICS[name](), torch.Generator().manual_seed(2)
    real, fake = (torch.rand(5, 2, 24, generator=source) * 2 - 1 for _ in range(2))
    records = RecordPairs(real=real, fake=fake, condition=labels(5), mix=torch.rand(5, generator=source))
    loss = CriticLoss(kind="wgan", gradient_penalty=penalty)
    gradients = RecordGradients(model, loss)
    parts = list(gradients.lot(records))
    assert gradients.method == "pairs"
    expected = per_record_reference(model, loss, records).norm(dim=1)
    assert torch.allclose(torch.cat([part.norms() for part in parts]), expected, rtol=1e-3)
    refuse_cross_record(model, (2, 24), 3)


@pytest.mark.parametrize("name", CRITICS)
def test_a_unit_of_several_series_moves_a_clipped_sum_by_no_more_than_its_bound(name):
    """Clipped once on the sum of its series' gradients, not once a series."""
    most, model, source = 0.05, CRITICS[name](), torch.Generator().manual_seed(6)
    real, fake = (torch.rand(9, 2, 24, generator=source) * 2 - 1 for _ in range(2))
    real[4] = 1e6
    group = torch.tensor([0, 0, 1, 1, 1, 1, 2, 2, 2])
    records = RecordPairs(real=real, fake=fake, condition=labels(9), mix=torch.rand(9, generator=source))
    gradients = RecordGradients(model, CriticLoss(kind="wgan", gradient_penalty=1.0))
    everybody = clipped_sum(gradients.lot(records, group=group, groups=3), max_grad_norm=most).total
    for unit in range(3):
        rows = group != unit
        rest = clipped_sum(gradients.lot(records.take(rows), group=group[rows], groups=3), max_grad_norm=most).total
        moved = (everybody - rest).norm()
        assert most * 0.5 < moved <= most * (1 + 1e-4)


def test_what_all_attributes_have_in_common_is_seen_in_one_place():
    """The shared row is there beside the row of each class: moving it moves every class's score alike."""
    model = mlp_critic(planes=1, length=4)
    with torch.no_grad():
        model.straight.weight[0, :4] = 1.0
    rows = noise(1, 4).view(1, 1, 4)
    lifts = [(model(rows + 1, labels(3)[[k]]) - model(rows, labels(3)[[k]])).item() for k in range(3)]
    assert model.straight.in_features == 4 + 3 * 4 + 3
    plain = mlp_critic(planes=1, length=4)
    before = [(plain(rows + 1, labels(3)[[k]]) - plain(rows, labels(3)[[k]])).item() for k in range(3)]
    assert [lift - was for lift, was in zip(lifts, before, strict=True)] == pytest.approx([4.0] * 3, abs=1e-4)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_public_seed_fixes_the_weights_and_all_attributes_begin_alike(name):
    torch.manual_seed(1)  # what torch draws by itself must not matter
    first = GENERATORS[name]()
    torch.manual_seed(2)
    again, other = GENERATORS[name](), GENERATORS[name](seed=9)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))
    assert first.head.by_attribute.weight.abs().max() == 0
    assert first.head.profile.abs().max() == 0


# -- estimates ---------------------------------------------------------------------------------------------------------


def counted(model, *inputs):
    """Return the multiplications of a forward pass, from each layer's weights and the places that it visits."""
    total = 0

    def add(layer, given, result):
        nonlocal total
        if isinstance(layer, nn.LSTM):
            total += given[0].shape[1] * sum(each.numel() for each in layer.parameters() if each.dim() == 2)
            return
        places = 1
        if isinstance(layer, nn.ConvTranspose1d):
            places = given[0].shape[2]
        elif isinstance(layer, nn.Conv1d):
            places = result.shape[2]
        elif result.dim() == 3:
            places = result.shape[1]
        total += places * layer.weight.numel()

    kinds = (nn.Linear, nn.Conv1d, nn.ConvTranspose1d, nn.LSTM)
    hooks = [layer.register_forward_hook(add) for layer in model.modules() if isinstance(layer, kinds)]
    model(*inputs)
    [hook.remove() for hook in hooks]
    return total


def test_estimates_count_what_the_networks_compute():
    shape = (5, 24)
    found = counted(conv(MASKED), noise(1, 7), labels(1))
    assert sizes.series_work(shape, 10, 3, 9, (8, 6))[0] == pytest.approx(found, rel=0.01)
    found = counted(lstm(MASKED), noise(1, 31), labels(1))
    assert sizes.recurrent_work(shape, 1 + 7 + 3 + sizes.CLOCK, 3, 10)[0] == pytest.approx(found, rel=0.05)
    found = counted(conv_critic(), noise(1, 48).view(1, 2, 24), labels(1))
    assert sizes.critic_work((2, 24), 3, (4, 6), 5)[0] == pytest.approx(found, rel=0.15)
    found = counted(mlp_critic(classes=0), noise(1, 48).view(1, 2, 24))
    assert sizes.perceptron_weights(48, 11, 2, 1) + 48 == pytest.approx(found, rel=0.01)
