"""Features of images: of length 1, the same for everybody, each image by itself."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from scipy import fft

from doublure.networks.fixed_features import FineDetail, LabelFeatures, MeanEmbedding
from doublure.networks.sizes import paths, places

SHAPES = [(1, 8, 8), (1, 28, 28), (3, 48, 48), (1, 9, 17)]


def pictures(shape, size=3, seed=0):
    return torch.rand(size, *shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def embedding(shape=(1, 8, 8), features=64, bandwidths=(0.5, 0.25), seed=0, **shares):
    return MeanEmbedding(shape, features=features, bandwidths=bandwidths, seed=seed, **shares)


def deep_embedding(shape):
    return embedding(shape, features=96, second_order=32)


def fine_embedding(shape):
    return embedding(shape, features=128, second_order=32, fine_detail=64)


WIDTHS = {embedding: 64, deep_embedding: 96, fine_embedding: 128}
EMBEDDINGS = list(WIDTHS)
ALL = [*EMBEDDINGS, LabelFeatures, FineDetail]


@cache
def once(make, shape):
    """Return features of a shape, which take seconds to make of large images."""
    return make(shape)


@pytest.mark.parametrize("make", EMBEDDINGS)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_embedding_has_length_one(make, shape):
    images, made = pictures(shape), once(make, shape)
    images[0], images[1] = -1.0, 1.0
    found = made(images)
    assert found.shape == (3, WIDTHS[make])
    assert made.width == WIDTHS[make]
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3), atol=1e-6, rtol=0)
    assert len(torch.unique(found.round(decimals=3), dim=0)) == 3


@pytest.mark.parametrize("shape", SHAPES)
def test_label_features_have_length_one(shape):
    made = once(LabelFeatures, shape)
    assert made.width == shape[0] * paths(2) * places(shape)
    found = made(pictures(shape))
    assert found.shape == (3, made.width)
    torch.testing.assert_close(found.norm(dim=1), torch.ones(3), atol=2e-3, rtol=0)
    assert (found.norm(dim=1) <= 1).all()
    flat = made(torch.full((1, *shape), -1.0))
    assert torch.isfinite(flat).all()
    assert float(flat.norm()) <= 1


@pytest.mark.parametrize("make", ALL)
def test_an_image_does_not_see_its_neighbours(make):
    made, images = make((1, 8, 8)), pictures((1, 8, 8), 6)
    together = made(images)
    for mates in ([0], [0, 5], [0, 4, 3, 2]):
        torch.testing.assert_close(made(images[mates])[0], together[0], atol=1e-5, rtol=0)
    changed = images.clone()
    changed[3:] = torch.nan
    torch.testing.assert_close(made(changed)[:3], together[:3], atol=1e-5, rtol=0)


@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 48, 48)])
def test_no_image_has_no_features(make, shape):
    made = once(make, shape)
    assert made(pictures(shape, 0)).shape == (0, made(pictures(shape, 1)).shape[1])


def test_an_embedding_follows_from_its_public_seed_alone():
    state = torch.get_rng_state()
    images, found = pictures((1, 8, 8)), []
    for other in (1, 2):
        torch.manual_seed(other)
        found.append(embedding()(images))
    torch.set_rng_state(state)
    assert torch.equal(*found)
    assert not torch.allclose(embedding(seed=1)(images), found[0], atol=1e-2)
    assert not embedding().state_dict()


def test_products_of_embeddings_are_gaussian_kernels():
    """Rahimi and Recht 2007: the mean of the bandwidths' kernels, to one part in the square root of D."""
    made, images = embedding(features=20_000, bandwidths=(0.5, 2.0), seed=4), pictures((1, 8, 8), 2)
    images[1] = images[0] + 0.3 * images[1]
    near = made(images)
    seen = made.scattering(images).reshape(2, 1, -1, 4)
    shape = seen.flatten(1) / (seen.flatten(1).norm(dim=1, keepdim=True) + 1e-3)
    light = made.scattering.averages(((images + 1) / 2).square()).flatten(1)
    points = torch.cat([shape, 0.2 * seen[:, :, 0].flatten(1), 0.2 * light], dim=1)
    gap = float((points[0] - points[1]).norm())
    expected = sum(math.exp(-(gap**2) / (2 * width**2)) for width in (0.5, 2.0)) / 2
    assert 0.5 < expected < 0.999
    assert float(near[0] @ near[1]) == pytest.approx(expected, abs=0.03)


def test_second_order_has_its_share_of_an_embedding():
    """The rest is as before, at the rest of the length; and it is random features of what a labeller sees."""
    images, made = pictures((1, 8, 8), 2), embedding(features=40_000, second_order=10_000, bandwidths=(1.0,))
    found = made(images)
    torch.testing.assert_close(found[:, :30_000].square().sum(1), torch.full((2,), 0.75), atol=1e-4, rtol=0)
    first = embedding(features=30_000, bandwidths=(1.0,))(images)
    torch.testing.assert_close(found[:, :30_000], math.sqrt(0.75) * first)
    seen = LabelFeatures((1, 8, 8))(images)
    expected = math.exp(-float((seen[0] - seen[1]).square().sum()) / 2)
    assert 0.1 < expected < 0.9
    assert float(found[0, 30_000:] @ found[1, 30_000:]) / 0.25 == pytest.approx(expected, abs=0.04)


def test_fine_detail_has_its_share_of_an_embedding():
    """Beside the others, which are as before; and it is random features of the pixels' cosine coefficients."""
    images = pictures((1, 8, 8), 2)
    images[1] = images[0] + 0.5 * (images[1] - images[0])
    found = embedding(features=40_000, second_order=10_000, fine_detail=20_000, bandwidths=(0.3,))(images)
    torch.testing.assert_close(found[:, 20_000:].square().sum(1), torch.full((2,), 0.5), atol=1e-4, rtol=0)
    others = embedding(features=20_000, second_order=10_000, bandwidths=(0.3,))(images)
    torch.testing.assert_close(found[:, :20_000], math.sqrt(0.5) * others)
    seen = FineDetail((1, 8, 8))(images)
    expected = math.exp(-float((seen[0] - seen[1]).square().sum()) / (2 * 0.3**2))
    assert 0.1 < expected < 0.9
    assert float(found[0, 20_000:] @ found[1, 20_000:]) / 0.5 == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 9, 17)])
def test_fine_detail_is_cosine_coefficients_the_fine_ones_louder(shape):
    images, made = pictures(shape), FineDetail(shape)
    found = made(images).reshape(3, *shape) * math.sqrt(made.width)
    coefficients = fft.dctn(((images + 1) / 2).double().numpy(), axes=(2, 3), norm="ortho")
    height = np.hypot(np.arange(shape[1])[:, None], np.arange(shape[2]))
    np.testing.assert_allclose(found, 0.55 * np.sqrt(1 + height) * coefficients, atol=1e-4)


def test_fine_detail_of_large_images_is_of_their_averages():
    images = pictures((3, 24, 24)).repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)
    made = FineDetail((3, 48, 48))
    assert made.width == 3 * 24 * 24
    torch.testing.assert_close(made(images), FineDetail((3, 24, 24))(images[:, :, ::2, ::2]))


@pytest.mark.parametrize("make", EMBEDDINGS)
@pytest.mark.parametrize("light", [-1.0, 0.0, 1.0])
def test_gradients_are_finite_at_constant_images(make, light):
    images = torch.full((2, 1, 8, 8), light, requires_grad=True)
    made = make((1, 8, 8))
    (made(images).mean(0) - made(pictures((1, 8, 8))).mean(0)).square().sum().backward()
    assert torch.isfinite(images.grad).all()
    assert images.grad.abs().max() > 0


def test_label_features_do_not_see_contrast():
    image = pictures((1, 8, 8), 1)
    found = LabelFeatures((1, 8, 8))(torch.cat([image, (image + 1) / 2 - 1]))
    assert float(found[0] @ found[1]) > 0.99
