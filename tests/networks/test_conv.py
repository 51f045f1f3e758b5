"""The papers' networks: of any size, each image by itself, and quick for per-record gradients."""

from __future__ import annotations

import math

import pytest
import torch

from doublure.errors import SettingError
from doublure.networks import sizes
from doublure.networks.conv import ConvCritic, ConvGenerator, activation
from doublure.private.clipping import clipped_sum
from doublure.private.gradients import CriticLoss, RecordGradients, RecordPairs, per_record_reference
from doublure.private.independence import refuse_cross_record

SHAPES = [(1, 28, 28), (3, 32, 32), (3, 48, 48), (1, 4, 4), (3, 9, 17)]


def critic(shape, classes=3, name="selu", channels=(4, 6, 8), seed=0):
    return ConvCritic(
        shape, condition_width=classes, channels=channels, features=5, activation_name=name,
        generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


def generator(shape, classes=3, normalisation="none", channels=(8, 6, 4), seed=0):
    return ConvGenerator(
        shape, condition_width=classes, noise_width=7, channels=channels, activation_name="selu",
        normalisation=normalisation, generator=torch.Generator().manual_seed(seed),
    )  # fmt: skip


def labels(size, classes=3):
    return torch.eye(classes)[torch.arange(size) % classes]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("classes", [0, 3])
def test_any_size(shape, classes):
    condition = labels(4, classes) if classes else None
    images = generator(shape, classes)(torch.randn(4, 7, generator=torch.Generator().manual_seed(1)), condition)
    assert images.shape == (4, *shape)
    assert images.abs().max() <= 1
    assert images.std() > 0.01
    model = critic(shape, classes)
    assert model(images, condition).shape == (4,)
    assert model.features(images, condition).shape == (4, 5)
    assert torch.equal(model.judge(model.features(images, condition), condition), model(images, condition))


@pytest.mark.parametrize("channels", [(4,), (4, 6, 8, 8)])
def test_any_depth(channels):
    assert critic((1, 28, 28), channels=channels)(torch.zeros(2, 1, 28, 28), labels(2)).shape == (2,)
    assert generator((1, 28, 28), channels=channels)(torch.zeros(2, 7), labels(2)).shape == (2, 1, 28, 28)


def test_activations_are_the_papers():
    """SELU, or a leaky ReLU with the slope that published GANs have."""
    found = {name: activation(name)(torch.tensor([-1.0, 2.0])).tolist() for name in ("selu", "leaky_relu")}
    assert found["leaky_relu"] == pytest.approx([-0.2, 2.0])
    assert found["selu"] == pytest.approx([1.0507 * 1.67326 * (math.exp(-1) - 1), 2 * 1.0507], rel=1e-4)


@pytest.mark.parametrize("name", ["selu", "leaky_relu"])
def test_per_record_gradients_come_from_factor_pairs(name):
    shape, model = (1, 8, 8), critic((1, 8, 8), name=name)
    source = torch.Generator().manual_seed(2)
    real, fake = (torch.rand(5, *shape, generator=source) * 2 - 1 for _ in range(2))
    records = RecordPairs(real=real, fake=fake, condition=labels(5), mix=torch.rand(5, generator=source))
    loss = CriticLoss(kind="wgan", gradient_penalty=10.0)
    gradients = RecordGradients(model, loss)
    parts = list(gradients.lot(records))
    assert gradients.method == "pairs"
    expected = per_record_reference(model, loss, records)
    found = torch.cat([part.norms() for part in parts])
    assert torch.allclose(found.double(), expected.norm(dim=1).double(), rtol=1e-3)


def test_images_do_not_meet():
    refuse_cross_record(critic((1, 12, 12)), (1, 12, 12), 3)
    refuse_cross_record(generator((1, 12, 12)), (7,), 3)
    with pytest.raises(SettingError, match="not independent"):
        refuse_cross_record(generator((1, 12, 12), normalisation="batch"), (7,), 3)


def test_batch_normalisation_draws_images_one_by_one_once_it_is_trained():
    model = generator((1, 8, 8), normalisation="batch")
    noise = torch.randn(6, 7, generator=torch.Generator().manual_seed(3))
    together = model(noise, labels(6))
    assert not torch.allclose(together[:2], model(noise[:2], labels(6)[:2]), atol=1e-3)
    model.eval()
    assert torch.allclose(model(noise, labels(6))[:2], model(noise[:2], labels(6)[:2]), atol=1e-5)
    assert any("running_mean" in name for name in model.state_dict())


def test_the_label_turns_the_critic_and_not_only_its_score():
    """Appended to the last linear layer alone, a label would shift real and generated images alike."""
    model, source = critic((1, 8, 8)), torch.Generator().manual_seed(4)
    images = torch.rand(2, 1, 8, 8, generator=source)
    one, two = (model(images, labels(3)[[k, k]]) for k in (0, 1))
    assert abs((one[0] - two[0]) - (one[1] - two[1])) > 1e-3


def test_the_label_is_appended_after_the_convolutions():
    """The papers' place for it: the features see it, and not only the score."""
    model, images = critic((1, 8, 8)), torch.rand(1, 1, 8, 8, generator=torch.Generator().manual_seed(5))
    one, two = (model.features(images, labels(3)[[k]]) for k in (0, 1))
    assert (one - two).abs().max() > 1e-3
    alone = model.convolutions(images)
    assert model.embed[0].in_features == alone.shape[1] + 3


@pytest.mark.parametrize("side", [28, 27, 48])
def test_the_generator_keeps_the_brightest_of_each_window(side):
    """Max pooling down to the image's size, a fractional one where the sides do not divide."""
    model = generator((1, side, side))
    noise = torch.randn(3, 7, generator=torch.Generator().manual_seed(6))
    large = model.body[:-2](torch.cat([noise, labels(3)], dim=1))
    found = model(noise, labels(3)).atanh()
    edges = [(place * large.shape[2] // side, -(-(place + 1) * large.shape[2] // side)) for place in range(side)]
    for row, column in ((0, 0), (1, side // 2), (side - 1, side - 1)):
        (top, bottom), (left, right) = edges[row], edges[column]
        wanted = large[:, 0, top:bottom, left:right].amax(dim=(1, 2))
        assert torch.allclose(found[:, 0, row, column], wanted, atol=1e-4)


def test_a_public_seed_fixes_the_weights():

    first, again, other = generator((1, 8, 8)), generator((1, 8, 8)), generator((1, 8, 8), seed=9)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.body[0].weight, other.body[0].weight)
    assert first.body[0].bias.abs().max() == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_estimates_count_what_the_networks_compute(shape):
    """Multiplications of each layer, counted from its weights and the places that it visits."""

    def counted(model, *inputs):
        total = 0

        def add(layer, given, result):
            nonlocal total
            places = result[0, 0].numel() if result.dim() == 4 else 1
            if isinstance(layer, torch.nn.ConvTranspose2d):
                places = given[0][0, 0].numel()
            total += places * layer.weight.numel()

        hooks = [layer.register_forward_hook(add) for layer in model.modules() if hasattr(layer, "weight")]
        model(*inputs)
        [hook.remove() for hook in hooks]
        return total

    found = counted(critic(shape), torch.zeros(1, *shape), labels(1))
    assert sizes.critic_work(shape, 3, (4, 6, 8), 5)[0] == pytest.approx(found, rel=0.05)
    drawn = counted(generator(shape), torch.zeros(1, 7), labels(1))
    assert sizes.generator_work(shape, 10, (8, 6, 4))[0] == pytest.approx(drawn, rel=0.01)


@pytest.mark.parametrize("name", ["selu", "leaky_relu"])
def test_one_image_moves_a_clipped_sum_by_no_more_than_its_bound(name):
    shape, size, most = (1, 8, 8), 9, 0.05
    model, source = critic(shape, name=name), torch.Generator().manual_seed(6)
    real, fake = (torch.rand(size, *shape, generator=source) * 2 - 1 for _ in range(2))
    real[4] = 1e6  # an image unlike all others
    records = RecordPairs(real=real, fake=fake, condition=labels(size), mix=torch.rand(size, generator=source))
    gradients = RecordGradients(model, CriticLoss(kind="logistic", gradient_penalty=1.0))
    everybody = clipped_sum(gradients.lot(records), max_grad_norm=most).total
    for left_out in range(size):
        rest = records.take(torch.arange(size) != left_out)
        moved = (everybody - clipped_sum(gradients.lot(rest), max_grad_norm=most).total).norm()
        assert moved <= most * (1 + 1e-4)
    assert everybody.norm() > most
