"""Wavelet features: what the definition says, written out slowly, and what images of any size give."""

from __future__ import annotations

import cmath
import math
from functools import cache

import numpy as np
import pytest
import torch
from tiers import exhaustive

from doublure.networks.scattering import (
    _FREQUENCY,
    _SIGMA,
    _TINY,
    Scattering,
)
from doublure.networks.sizes import ANGLES, LARGEST_SIDE, WINDOW, paths, places, scattering_work, shrinking

SHAPES = [(1, 4, 4), (1, 8, 8), (1, 28, 28), (3, 48, 48), (1, 9, 17), (3, 40, 12), (1, 4, 200)]


@cache
def scattering(shape, order):
    return Scattering(shape, order=order)


def pictures(shape, size=2, seed=0):
    return torch.rand(size, *shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


@pytest.mark.parametrize("shape", [*SHAPES, pytest.param((3, 32, 32), marks=exhaustive)])
def test_any_size(shape):
    for order in (1, 2):
        made = scattering(shape, order)
        found = made(pictures(shape))
        assert found.shape == (2, shape[0] * paths(order), places(shape))
        assert torch.isfinite(found).all()
        assert (found >= 0).all()
        assert not torch.allclose(found[0], found[1], rtol=1e-3)
        assert made(pictures(shape, 0)).shape == (0, *found.shape[1:])


def test_numbers_of_features():
    assert (paths(1), paths(2)) == (1 + 2 * ANGLES, 1 + 2 * ANGLES + ANGLES**2)
    assert [places((1, side, side)) for side in (4, 5, 28, 32, 48, 64)] == [1, 4, 49, 64, 36, 64]
    assert [shrinking((1, side, 8)) for side in (8, 32, 33, 64, 65)] == [1, 1, 2, 2, 3]
    assert LARGEST_SIDE // WINDOW == 8


def test_a_large_image_is_averaged_down():
    small = pictures((1, 24, 24))
    large = small.repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    torch.testing.assert_close(Scattering((1, 48, 48), order=2)(large), Scattering((1, 24, 24), order=2)(small))


def test_networks_of_one_size_share_their_wavelets_and_no_others_do():
    one, same = (Scattering((1, 9, 17), order=2) for _ in range(2))
    other = Scattering((1, 17, 9), order=2)
    first = Scattering((1, 9, 17), order=1)
    for name, values in one.named_buffers():
        assert values is same.get_buffer(name)
        assert values is not other.get_buffer(name)
    assert first.wavelets_0.shape != one.wavelets_0.shape
    moved = Scattering((1, 9, 17), order=2).double()
    assert moved.wavelets_0.dtype == torch.float64
    assert one.wavelets_0.dtype == torch.float32


def test_what_was_first_made_where_nothing_is_learned_can_be_learned_through():
    with torch.inference_mode():
        made = Scattering((1, 11, 13), order=1)
    images = pictures((1, 11, 13)).requires_grad_()
    made(images).sum().backward()
    assert torch.isfinite(images.grad).all()


def test_nothing_of_it_is_saved_or_learned():
    made = Scattering((1, 8, 8), order=2)
    assert not made.state_dict()
    assert not list(made.parameters())


@pytest.mark.parametrize("order", [1, 2])
def test_no_number_is_too_small_for_a_quick_product(order):
    small = torch.finfo(torch.float32).tiny
    for name, constant in Scattering((1, 28, 28), order=order).named_buffers():
        assert not ((constant != 0) & (constant.abs() < small)).any(), name


@pytest.mark.parametrize("light", [-1.0, 0.3, 1.0])
def test_a_constant_image_has_no_waves(light):
    found = Scattering((1, 12, 12), order=2)(torch.full((1, 1, 12, 12), light))[0]
    torch.testing.assert_close(found[0], torch.full((9,), (light + 1) / 2), atol=1e-5, rtol=0)
    assert found[1:].max() < 3 * _TINY**0.5


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_finite_at_constant_images(order):
    images = torch.full((2, 1, 8, 8), -1.0, requires_grad=True)
    Scattering((1, 8, 8), order=order)(images).square().sum().backward()
    assert torch.isfinite(images.grad).all()
    assert images.grad.abs().max() < 1


def reflected(place, side):
    """The pixel that a place beyond the edge mirrors."""
    place = abs(place) % (2 * (side - 1))
    return 2 * (side - 1) - place if place >= side else place


def slow_wave(image, row, column, angle, scale):
    """One Morlet wavelet's response at one place, term by term."""
    sigma, frequency, slant = _SIGMA * 2**scale, _FREQUENCY / 2**scale, 4 / ANGLES
    turn = (ANGLES // 2 - 1 - angle) * math.pi / ANGLES
    reach = math.ceil(4 * sigma)
    terms = []
    for r in range(-reach, len(image) + reach):
        for c in range(-reach, len(image[0]) + reach):
            down, across = r - row, c - column
            along = math.cos(turn) * down + math.sin(turn) * across
            beside = -math.sin(turn) * down + math.cos(turn) * across
            bell = math.exp(-(along**2 + (slant * beside) ** 2) / (2 * sigma**2))
            pixel = float(image[reflected(r, len(image))][reflected(c, len(image[0]))])
            terms.append((bell, bell * cmath.exp(1j * frequency * along), pixel))
    mean = sum(wave for _, wave, _ in terms) / sum(bell for bell, _, _ in terms)
    return sum((wave - mean * bell) * pixel for bell, wave, pixel in terms) * slant / (2 * math.pi * sigma**2)


@pytest.mark.parametrize(("angle", "scale"), [(0, 0), (3, 0), (5, 1)])
@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 6, 11)])
def test_a_wavelet_is_what_the_definition_says(angle, scale, shape):
    made, images = Scattering(shape, order=2), pictures(shape, 1)
    light = (images[0, 0] + 1) / 2
    step = (1, 2)[scale]
    waves = light.flatten() @ (made.wavelets_0 if scale == 0 else made.wavelets_1)
    real, imaginary = waves.reshape(2, ANGLES, math.ceil(shape[1] / step), math.ceil(shape[2] / step))[:, angle]
    for row, column in ((0, 0), (1, 2), (real.shape[0] - 1, real.shape[1] - 1)):
        found = complex(real[row, column], imaginary[row, column])
        centre = [place * step + (step - 1) / 2 for place in (row, column)]
        assert found == pytest.approx(slow_wave(light.tolist(), *centre, angle, scale), abs=2e-5)


def test_averages_are_gaussian_with_mirrored_edges():
    shape = (1, 8, 12)
    made, images = Scattering(shape, order=1), pictures(shape, 1)
    found = made.averages(images).reshape(2, 3)
    span = range(-40, 60)
    for row, column in ((0, 0), (1, 2)):
        down, across = (
            np.array([math.exp(-((place - 4 * at - 1.5) ** 2) / (2 * 1.6**2)) for place in span])
            for at in (row, column)
        )
        seen = images[0, 0].numpy()[np.ix_([reflected(p, 8) for p in span], [reflected(p, 12) for p in span])]
        assert float(found[row, column]) == pytest.approx(down @ seen @ across / down.sum() / across.sum(), abs=1e-5)


def lines(angle, side=24):
    """An image of stripes whose waves run at so many eighths of half a turn."""
    down, across = np.mgrid[:side, :side]
    turn = angle * math.pi / ANGLES
    wave = np.cos(_FREQUENCY * (math.cos(turn) * down + math.sin(turn) * across))
    return torch.from_numpy(wave).float()[None, None]


def test_angles_tell_stripes_apart():
    made = Scattering((1, 24, 24), order=1)
    fine = [made(lines(angle))[0, 1 : 1 + ANGLES].mean(1).argmax().item() for angle in range(ANGLES)]
    assert fine == [(ANGLES // 2 - 1 - angle) % ANGLES for angle in range(ANGLES)]


@pytest.mark.parametrize("side", [8, 28])
def test_a_quarter_turn_permutes_angles_and_places(side):
    """Half of all angles lie beyond a quarter turn; scattering turns with the image."""
    made, images = Scattering((1, side, side), order=2), pictures((1, side, side))
    windows = side // WINDOW
    order = (torch.arange(ANGLES) + ANGLES // 2) % ANGLES

    def grid(found):
        return found.reshape(2, paths(2), windows, windows)

    straight, turned = grid(made(images)), grid(made(torch.rot90(images, 1, (2, 3))))
    turned = torch.rot90(turned, -1, (2, 3))
    first = torch.cat([torch.tensor([0]), 1 + order, 1 + ANGLES + order])
    second = 1 + 2 * ANGLES + (order[:, None] * ANGLES + order).flatten()
    torch.testing.assert_close(turned, straight[:, torch.cat([first, second])], atol=2e-5, rtol=1e-4)
    assert not torch.allclose(turned, straight, rtol=0.05)


def blob(row, column, side=28):
    down, across = np.mgrid[:side, :side]
    return torch.from_numpy(np.exp(-((down - row) ** 2 + (across - column) ** 2) / 4) * 2 - 1).float()[None, None]


def test_a_shift_changes_features_less_than_pixels():
    made = Scattering((1, 28, 28), order=2)

    def moved(function):
        one, shifted, other = (function(image).flatten() for image in (blob(14, 14), blob(14, 15), blob(6, 22)))
        return float((one - shifted).norm() / (one - other).norm())

    assert moved(made) < 0.6 * moved(lambda image: image)


@pytest.mark.parametrize("order", [1, 2])
def test_an_image_does_not_see_its_neighbours(order):
    made, images = Scattering((3, 9, 9), order=order), pictures((3, 9, 9), 5)
    alone = torch.cat([made(image[None]) for image in images])
    torch.testing.assert_close(made(images), alone, atol=1e-6, rtol=1e-5)
    changed = images.clone()
    changed[1] = torch.nan
    assert torch.isfinite(made(changed)[[0, 2, 3, 4]]).all()


def test_colours_are_seen_apart():
    shape, images = (3, 8, 8), pictures((3, 8, 8))
    found = Scattering(shape, order=2)(images).reshape(2, 3, paths(2), -1)
    for colour in range(3):
        alone = Scattering((1, 8, 8), order=2)(images[:, colour : colour + 1])
        torch.testing.assert_close(found[:, colour], alone, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", [1, 2])
def test_a_plan_knows_how_large_it_is(shape, order):
    made = scattering(shape, order)
    _, held = scattering_work(shape, order)
    waves = made.wavelets_0.numel() + made.wavelets_1.numel()
    assert held == waves
