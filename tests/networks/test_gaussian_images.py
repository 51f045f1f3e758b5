"""Gaussians of images: what is summed up, what is made of it through noise, and that images come back like it."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from doublure.networks.gaussian_images import GaussianImages, GaussianMoments, _Coefficients, _shares, _through_noise
from doublure.networks.sizes import CONTRASTS, WARP_WIDTH, cosine_numbers, cosine_pairs, gaussian_work
from doublure.networks.upsampling import warp_images

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 9, 17), (1, 1, 1), (3, 2, 5), (1, 40, 48)]
SMALL = (3, 12, 10)


def noise(shape, size, seed=1):
    width = cosine_numbers(shape) + 1 + WARP_WIDTH
    return torch.randn(size, width, generator=torch.Generator().manual_seed(seed))


def labels(size, classes=3):
    return torch.eye(classes)[torch.arange(size) % classes]


def lit(shape, size, seed=0, *, above=True):
    """Return clouds whose light and grain are in the upper half of an image, or in the lower one."""
    draw = torch.Generator().manual_seed(seed)
    images = 0.1 * torch.randn(size, *shape, generator=draw) + 0.1
    half = slice(None, shape[1] // 2) if above else slice(shape[1] // 2, None)
    images[:, :, half] = 0.3 * torch.randn(size, *shape, generator=draw)[:, :, half] + 0.4
    return images.clamp(-1, 1)


def fitted(shape=SMALL, size=3000, deviation=0.0, seed=3):
    """Return a generator of two labels and the features' means that it learned from, without their noise."""
    features = GaussianMoments(shape)
    moments = torch.stack([features(lit(shape, size, above=above)).mean(0) for above in (True, False)])
    seen = moments + deviation * torch.randn(moments.shape, generator=torch.Generator().manual_seed(seed))
    generator = GaussianImages(shape, condition_width=2, warp=0.0)
    return generator.knowing(seen, torch.full((2,), deviation)), moments


@pytest.mark.parametrize("shape", SHAPES)
def test_features_are_of_length_1_for_any_image(shape):
    features = GaussianMoments(shape)
    images = torch.cat([torch.rand(5, *shape) * 2 - 1, torch.full((1, *shape), -1.0), torch.zeros(1, *shape)])
    found = features(images)
    assert found.shape == (7, features.width)
    assert features.width == cosine_numbers(shape) + cosine_pairs(shape) + CONTRASTS
    assert found[:6].norm(dim=1).tolist() == pytest.approx([1.0] * 6, abs=1e-4)
    assert found[6].norm() <= 1  # of nothing but grey, and all that is said is that it has no contrast
    assert torch.isfinite(found).all()
    assert features(images[:0]).shape == (0, features.width)


@pytest.mark.parametrize("shape", SHAPES)
def test_coefficients_say_all_of_a_small_image_and_the_coarse_of_a_large_one(shape):
    coefficients, images = _Coefficients(shape), torch.rand(3, *shape) - 0.5
    there = coefficients.images(coefficients(images))
    if max(shape[1:]) <= 32:
        assert torch.allclose(there, images, atol=1e-5)
    else:
        assert 0 < (there - images).square().mean() < images.square().mean()
        assert torch.allclose(coefficients.images(coefficients(there)), there, atol=1e-5)
    assert sorted(torch.cat(coefficients.blocks).tolist()) == [*range(cosine_numbers(shape))]
    assert len(coefficients.first) == cosine_pairs(shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_neighbours_lie_in_one_block(shape):
    coefficients = _Coefficients(shape)
    block = torch.empty(cosine_numbers(shape), dtype=torch.long)
    for number, within in enumerate(coefficients.blocks):
        block[within] = number
    assert torch.equal(block[coefficients.first], block[coefficients.second])


@pytest.mark.parametrize("shape", SHAPES)
def test_any_size_is_drawn_even_before_anything_is_known(shape):
    for classes in (0, 3):
        generator = GaussianImages(shape, condition_width=classes, warp=0.5)
        images = generator(noise(shape, 4), labels(4) if classes else None)
        assert images.shape == (4, *shape)
        assert images.abs().max() <= 1
        assert torch.isfinite(images).all()
    assert generator(noise(shape, 0), labels(0)).shape == (0, *shape)


def test_what_is_drawn_has_the_moments_that_were_learned():
    generator, moments = fitted()
    features = GaussianMoments(SMALL)
    for label in (0, 1):
        own, other = moments[label], moments[1 - label]
        drawn = features(generator(noise(SMALL, 4000), labels(4000, 2)[label].expand(4000, 2))).mean(0)
        shared = slice(-CONTRASTS)  # two numbers drawn are never of one length, so that contrasts are spread more
        assert (drawn - own)[shared].norm() < 0.15 * (other - own)[shared].norm()


def test_contrasts_are_drawn_as_often_as_they_were_seen():
    features, draw = GaussianMoments(SMALL), torch.Generator().manual_seed(4)
    loud = torch.where(torch.rand(4000, generator=draw) < 0.3, 0.8, 0.2)[:, None, None, None]
    images = loud * (torch.rand(4000, *SMALL, generator=draw) * 2 - 1)
    generator = GaussianImages(SMALL, condition_width=0, warp=0.0)
    generator.knowing(features(images).mean(0, keepdim=True), torch.zeros(1))
    spread = generator(noise(SMALL, 4000)).flatten(1).std(dim=1)
    assert (spread > 0.3).float().mean() == pytest.approx(0.3, abs=0.04)
    assert spread[spread > 0.3].median() == pytest.approx(0.8 / math.sqrt(3), rel=0.25)
    assert spread[spread < 0.3].median() == pytest.approx(0.2 / math.sqrt(3), rel=0.25)


def test_noise_is_taken_off_as_far_as_it_can_be_told():
    """What is drawn differs from what would be without noise by far less than the noise."""
    deviation, features = 0.005, GaussianMoments(SMALL)
    exact, moments = fitted()
    noisy, _ = fitted(deviation=deviation)
    given, asked = noise(SMALL, 3000), labels(3000, 2)
    apart = features(noisy(given, asked)).mean(0) - features(exact(given, asked)).mean(0)
    assert apart.norm() < 0.4 * deviation * math.sqrt(moments.shape[1])


@pytest.mark.parametrize("rows", [1, 4])
def test_numbers_through_noise_are_nearer_than_what_was_seen(rows):
    draw = torch.Generator().manual_seed(5)
    kind = torch.arange(600) % 3
    shared = torch.tensor([0.0, 2.0, -1.0])[kind] + torch.tensor([0.0, 0.5, 0.1])[kind] * torch.randn(
        600, generator=draw
    )
    truth = (shared + torch.tensor([0.0, 0.3, 0.05])[kind] * torch.randn(rows, 600, generator=draw)).double()
    noise_of = torch.tensor([0.3, 0.3, 0.3, 3.0]).double()[:rows]
    seen = truth + noise_of[:, None] * torch.randn(rows, 600, generator=draw).double()
    found = _through_noise(seen, noise_of, kind)
    errors, before = (found - truth).square().mean(1), (seen - truth).square().mean(1)
    assert (errors < 0.6 * before).all()
    assert errors[-1] < 0.3  # who has hardly anything is as the others are
    exact = _through_noise(truth, torch.zeros(rows).double(), kind)
    assert torch.allclose(exact, truth, atol=1e-6)


@pytest.mark.parametrize("noise_of", [[0.02, 0.5], [0.1, 1.0, 3.0], [0.05, 1, 1, 1, 1, 1]])
def test_a_label_that_is_known_best_does_not_stand_for_the_others(noise_of):
    """Labels that differ by more than their noise keep what is theirs, however precise another one is."""
    draw, kind = torch.Generator().manual_seed(6), torch.zeros(3000, dtype=torch.long)
    noise_of = torch.tensor(noise_of).double()
    shape = (len(noise_of), 3000)
    truth = torch.randn(3000, generator=draw).double() + 2 * torch.randn(shape, generator=draw).double()
    seen = truth + noise_of[:, None] * torch.randn(shape, generator=draw).double()
    errors = (_through_noise(seen, noise_of, kind) - truth).square().mean(1)
    assert (errors < 1.1 * noise_of.square()).all()


def test_a_rare_label_is_drawn_as_itself():
    features = GaussianMoments(SMALL)
    moments = torch.stack([features(lit(SMALL, 3000, above=above)).mean(0) for above in (True, False)])
    deviations = torch.tensor([5 / 9000, 5 / 1000])
    seen = moments + deviations[:, None] * torch.randn(moments.shape, generator=torch.Generator().manual_seed(3))
    generator = GaussianImages(SMALL, condition_width=2, warp=0.0).knowing(seen, deviations)
    drawn = features(generator(noise(SMALL, 3000), labels(2, 2)[1].expand(3000, 2))).mean(0)
    own, other = ((drawn - moments[label])[:-CONTRASTS].norm() for label in (1, 0))
    assert own < 0.5 * other


def test_a_label_of_hardly_any_images_has_the_contrasts_of_the_others():
    shares = torch.zeros(3, CONTRASTS).double()
    shares[:, 30], shares[:, 31] = 0.4, 0.6
    deviations = torch.tensor([1e-3, 1e-3, 1.0]).double()
    draw = torch.Generator().manual_seed(7)
    seen = shares + deviations[:, None] * torch.randn(shares.shape, generator=draw).double()
    found = _shares(seen, deviations)
    assert found.sum(dim=1).tolist() == pytest.approx([1.0] * 3)
    assert (found[:, [30, 31]].sum(dim=1) > 0.97).all()
    assert _shares(torch.zeros(1, CONTRASTS).double(), torch.zeros(1).double()).sum() == pytest.approx(1.0)


def test_images_vary_as_if_mirrored_as_often_as_not():
    """But for their mean: a covariance has nothing that mirroring would turn over."""
    generator, _ = fitted()
    asked = labels(20_000, 2)[0].expand(20_000, 2)
    drawn = generator(noise(SMALL, 20_000), asked)
    mirrored = drawn.flip(-1)
    spread = drawn.std(dim=0), mirrored.std(dim=0)
    assert torch.allclose(*spread, atol=0.02)
    assert spread[0][:, :4].mean() > 1.5 * spread[0][:, -4:].mean()  # and has up and down


def test_an_image_depends_on_its_own_noise_and_label_alone():
    generator, _ = fitted(size=300)
    asked, given = labels(6, 2), noise(SMALL, 6)
    together = generator(given, asked)
    alone = torch.cat([generator(given[row : row + 1], asked[row : row + 1]) for row in range(6)])
    assert torch.allclose(together, alone, atol=1e-5)
    generator.spread = 0.0
    means = generator(noise(SMALL, 200), labels(200, 2))
    assert means[0::2].std(dim=0).mean() < means[0::2].mean(dim=0).std()  # what is left is contrast


def test_it_is_warped_when_asked():
    generator, _ = fitted(size=300)
    given, asked = noise(SMALL, 4), labels(4, 2)
    straight = generator(given, asked)
    generator.warp = 0.7
    assert torch.equal(generator(given, asked), warp_images(straight, given[:, -WARP_WIDTH:], 0.7))


def test_what_it_knows_is_kept_with_its_weights():
    generator, _ = fitted(size=300, deviation=0.001)
    again = GaussianImages(SMALL, condition_width=2, warp=0.0)
    before = again(noise(SMALL, 4), labels(4, 2))
    again = copy.deepcopy(again)
    again.load_state_dict(generator.state_dict())
    drawn = generator(noise(SMALL, 4), labels(4, 2))
    assert not torch.equal(drawn, before)
    assert torch.equal(again(noise(SMALL, 4), labels(4, 2)), drawn)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_plan_counts_with_is_what_there_is(shape):
    generator = GaussianImages(shape, condition_width=2, warp=0.0)
    _, roots, _ = generator._gaussians()
    held = sum(root[0].numel() for root in roots)
    assert max(root.shape[1] for root in roots) == gaussian_work(shape)[2]
    assert len(roots) <= 2 * shape[0]
    assert held <= 2 * shape[0] * gaussian_work(shape)[2] ** 2
