"""Measures of an image's variation from pixel to pixel.

Both are computed on the four pixels of a 2 x 2 block. Features of a downsampled image read only the block's mean, and
do not constrain a generator within the block.
"""

from __future__ import annotations

from torch import Tensor

_SIDE = 2


def block_spread(images: Tensor) -> Tensor:
    """Return the standard deviation within 2 x 2 blocks, of images ``(B, C, H, W)``, in their own units ``(B,)``.

    It is the root of the mean over blocks and channels of the variance of four pixels about their mean: the speckle of
    an image. An odd last row or column is left out, and an image without any block has speckle 0.
    """
    blocks = _blocks(images)
    gaps = blocks - blocks.mean(dim=(3, 5), keepdim=True)
    return gaps.square().flatten(1).mean(dim=1).nan_to_num().sqrt()


def checkerboard(images: Tensor) -> Tensor:
    """Return the strength of a pattern that alternates in both directions, in the images' own units ``(B,)``.

    It is the mean over 2 x 2 blocks and channels of |a - b - c + d|, where a and d are on one diagonal of a block, b
    and c on the other: four times the amplitude of a checkerboard, and 0 for stripes and slopes.
    """
    blocks = _blocks(images)
    first, last = blocks[:, :, :, 0], blocks[:, :, :, 1]
    crossed = first[..., 0] - first[..., 1] - last[..., 0] + last[..., 1]
    return crossed.abs().flatten(1).mean(dim=1).nan_to_num()


def _blocks(images: Tensor) -> Tensor:
    """Return ``(B, C, H / 2, 2, W / 2, 2)``."""
    height, width = (side // _SIDE * _SIDE for side in images.shape[2:])
    kept = images[:, :, :height, :width]
    return kept.reshape(*images.shape[:2], height // _SIDE, _SIDE, width // _SIDE, _SIDE)
