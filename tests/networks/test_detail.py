"""What a public generator leaves out of images, as noise: its covariance, its scale, its place in a generator."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import fft
from torch import nn

from doublure.networks.detail import DetailedGenerator, ImageDetail, block_spread, checkerboard
from doublure.networks.sizes import detail_noise


def coloured(size, shape, seed=0):
    """Images of noise whose coefficients are large where they are coarse, and whose channels go together."""
    draw = np.random.default_rng(seed)
    own, common = draw.standard_normal((size, *shape)), draw.standard_normal((size, 1, *shape[1:]))
    loudness = 1 / (1 + np.add.outer(np.arange(shape[1]), np.arange(shape[2])))
    return torch.from_numpy(fft.idctn((own + 2 * common) * loudness, axes=(2, 3), norm="ortho")).float()


def covariances(images):
    found = fft.dctn(images.numpy(), axes=(2, 3), norm="ortho")
    return np.einsum("nchw,ndhw->hwcd", found, found) / len(found)


def learned(images, parts=1, made=None):
    """Learn what is left out; even surfaces are made unless something else is."""
    detail = ImageDetail(tuple(images.shape[1:]))
    size = -(-len(images) // parts)
    made = torch.zeros_like(images) if made is None else made
    detail.learn(zip(images.split(size), made.split(size), strict=True))
    return detail


def all_of(detail, size, seed=1):
    noise = torch.randn(size, detail.width, generator=torch.Generator().manual_seed(seed))
    noise[:, 0] = 9.0
    return noise


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 6, 9)])
def test_it_has_the_covariance_of_what_was_left_out(shape):
    images = coloured(3000, shape)
    detail = learned(images, parts=7)
    expected = covariances(images)
    np.testing.assert_allclose((detail.factors @ detail.factors.mT).numpy() * 0.02**2, expected, rtol=1e-3, atol=1e-5)
    drawn = detail(all_of(detail, 6000), torch.zeros(6000, *shape))
    assert drawn.shape == (6000, *shape)
    found = covariances(drawn)
    spread = np.sqrt(np.einsum("hwcc,hwdd->hwcd", expected, expected))  # of products of normal numbers, about
    assert np.abs(found - expected).max() < 0.15 * spread.max()
    assert (np.abs(found - expected) / spread).max() < 0.15
    assert found[0, 0, 0, 0] > 10 * found[4, 4, 0, 0]


def test_loudness_is_even_between_nothing_and_all():
    detail = learned(coloured(500, (1, 8, 8)))
    full, even = all_of(detail, 4000), torch.zeros(4000, 1, 8, 8)
    noise = full.clone()
    noise[:, 0] = torch.randn(4000, generator=torch.Generator().manual_seed(2))
    share = detail(noise, even).flatten(1).norm(dim=1) / detail(full, even).flatten(1).norm(dim=1)
    assert torch.quantile(share, torch.tensor([0.1, 0.5, 0.9])).tolist() == pytest.approx([0.1, 0.5, 0.9], abs=0.04)
    full[:, 0] = -9.0
    assert detail(full, even).abs().max() < 1e-4


def test_busy_places_get_more_and_even_ones_little():
    """What was left out was large where images were busy, and so is what takes its place."""
    made = torch.zeros(400, 1, 16, 16)
    made[..., 8:] = torch.tensor([0.6, -0.6]).repeat(4)
    images = made + coloured(400, (1, 16, 16)) * torch.where(torch.arange(16) > 7, 1.0, 0.05)
    detail = learned(images, made=made)
    drawn, left = detail(all_of(detail, 400), made), images - made
    for part in (slice(0, 5), slice(11, 16)):
        assert drawn[..., part].std() == pytest.approx(float(left[..., part].std()), rel=0.5)
    assert drawn[..., 11:].std() > 5 * drawn[..., :5].std()


def test_nothing_left_out_is_hardly_any_detail():
    detail = learned(torch.zeros(10, 3, 4, 4))
    assert detail(all_of(detail, 50), torch.zeros(50, 3, 4, 4)).abs().max() < 1e-2


def test_a_generator_keeps_its_own_noise_and_condition():
    shape = (1, 5, 4)
    body = nn.Sequential(nn.Linear(3 + 2, 20), nn.Tanh(), nn.Unflatten(1, shape))

    class Own(nn.Module):
        def forward(self, noise, condition):
            return body(torch.cat([noise, condition], dim=1))

    detail = learned(coloured(100, shape))
    made = DetailedGenerator(Own(), detail, noise_width=3, strength=0.5)
    noise, condition = torch.randn(7, 3 + detail_noise(shape)), torch.eye(2)[torch.arange(7) % 2]
    images = Own()(noise[:, :3], condition)
    expected = (images + 0.5 * detail(noise[:, 3:], images)).clamp(-1, 1)
    torch.testing.assert_close(made(noise, condition), expected)
    assert DetailedGenerator(Own(), detail, noise_width=3, strength=9.0)(noise, condition).abs().max() <= 1
    assert made(noise[:0], condition[:0]).shape == (0, *shape)


# -- held to what the public images have -------------------------------------------------------------------------------


class Wavy(nn.Module):
    """Images whose own speckle is given, whatever the noise."""

    def __init__(self, shape, speckle):
        super().__init__()
        self.image = speckle * (-1) ** torch.arange(float(shape[2])).expand(shape)

    def forward(self, noise, condition=None):
        return self.image.expand(len(noise), *self.image.shape)


def speckled(own, public, strength):
    """Return a generator of images with a speckle of their own, whose detail is public images' of another."""
    shape = (1, 12, 12)
    images = public * torch.randn(400, *shape, generator=torch.Generator().manual_seed(0))
    detail = learned(images)
    return DetailedGenerator(Wavy(shape, own), detail, noise_width=2, strength=strength), images, 2 + detail.width


def test_images_are_no_more_speckled_than_public_ones():
    made, images, width = speckled(own=0.05, public=0.1, strength=4.0)
    noise = torch.randn(400, width, generator=torch.Generator().manual_seed(1))
    public = float(block_spread(images).mean())
    assert float(made.detail.speckle) == pytest.approx(public, rel=1e-5)
    assert float(block_spread(made(noise)).mean()) > 1.3 * public
    made.hold(noise)
    assert 0 < float(made.held) < 1
    other = torch.randn(400, width, generator=torch.Generator().manual_seed(2))
    assert float(block_spread(made(other)).mean()) == pytest.approx(public, rel=0.08)
    other[:, 2] = torch.special.ndtri((torch.arange(400) + 0.5) / 400)
    assert float(block_spread(made(other)).mean()) == pytest.approx(public, rel=0.02)


def test_what_is_not_too_speckled_is_left_and_what_is_gets_no_detail():
    made, _, width = speckled(own=0.01, public=0.1, strength=0.1)
    noise = torch.randn(100, width, generator=torch.Generator().manual_seed(1))
    made.hold(noise)
    assert float(made.held) == 1
    made, _, width = speckled(own=0.5, public=0.1, strength=1.0)
    made.hold(noise)
    assert float(made.held) < 1e-3
    torch.testing.assert_close(made(noise), made.generator(noise), atol=1e-3, rtol=0)


def test_weights_of_an_earlier_version_are_read_and_not_held():
    made, _, width = speckled(own=0.05, public=0.1, strength=4.0)
    noise = torch.randn(50, width, generator=torch.Generator().manual_seed(1))
    before = made(noise)
    old = {name: value for name, value in made.state_dict().items() if name not in ("held", "detail.speckle")}
    other = speckled(own=0.05, public=0.3, strength=4.0)[0]
    other.hold(noise)
    other.load_state_dict(old)
    other.hold(noise)
    torch.testing.assert_close(other(noise), before)


DOWN, ACROSS = torch.meshgrid(torch.arange(12.0), torch.arange(10.0), indexing="ij")
BOARD, STRIPES, SLOPE = (-1) ** (DOWN + ACROSS), (-1) ** ACROSS, DOWN * 0.3 + ACROSS * 0.1


def shown(*maps):
    return torch.stack(maps)[:, None]


def test_a_chessboard_is_seen_and_nothing_that_runs_one_way():
    found = checkerboard(shown(BOARD, 0.25 * BOARD, STRIPES, STRIPES.new_ones(12, 10), SLOPE))
    assert found.tolist() == pytest.approx([4.0, 1.0, 0.0, 0.0, 0.0], abs=1e-5)
    assert checkerboard(shown(SLOPE + 0.5 * BOARD)).tolist() == pytest.approx([2.0], abs=1e-5)


def test_the_spread_is_that_of_four_pixels_about_their_mean():
    found = block_spread(shown(BOARD, STRIPES, 3 + 0 * BOARD, SLOPE))
    assert found[:3].tolist() == pytest.approx([1.0, 1.0, 0.0], abs=1e-6)
    assert float(found[3]) == pytest.approx(float(np.hypot(0.15, 0.05)), abs=1e-5)
    noise = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    expected = noise.unfold(2, 2, 2).unfold(3, 2, 2).flatten(4).var(dim=4, unbiased=False).mean().sqrt()
    torch.testing.assert_close(block_spread(noise)[0], expected)


def test_what_features_see_averaged_says_nothing_of_them():
    """Two images with the same 2 x 2 averages: the figures tell them apart."""
    coarse = torch.randn(1, 1, 6, 5, generator=torch.Generator().manual_seed(1)).repeat_interleave(2, 2)
    plain = coarse.repeat_interleave(2, 3)
    woven = plain + 0.2 * BOARD
    torch.testing.assert_close(*(torch.nn.functional.avg_pool2d(one, 2) for one in (plain, woven)))
    assert float(block_spread(plain)) == pytest.approx(0, abs=1e-6)
    assert float(block_spread(woven)) == pytest.approx(0.2, abs=1e-6)


def test_an_image_counts_by_itself_and_what_is_left_over_is_left_out():
    images = torch.rand(5, 3, 9, 7, generator=torch.Generator().manual_seed(2))
    for measure in (block_spread, checkerboard):
        together = measure(images)
        assert together.shape == (5,)
        torch.testing.assert_close(torch.cat([measure(images[[row]]) for row in range(5)]), together)
        torch.testing.assert_close(measure(images[..., :8, :6]), together)
        assert measure(images[:0]).shape == (0,)
        assert measure(images[..., :1, :1]).tolist() == [0.0] * 5
