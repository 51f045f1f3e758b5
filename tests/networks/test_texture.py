"""What four neighbouring pixels do: stripes, slopes and chessboards are told apart, each image by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from doublure.networks.detail import block_spread, checkerboard

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
