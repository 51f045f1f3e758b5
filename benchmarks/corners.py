"""How dark the corners of real images are, as they are and warped: what a generator's warps bring in at the border.

    python benchmarks/corners.py

Prints rows of docs/evidence/journal/images.md: the share of pixels below 8 in the four corners, squares of an eighth
of the side. Nothing is fitted; the warps are those of :func:`doublure.networks.upsampling.warp_images`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from real_images import SHARED, images_of, warped_by

STRENGTHS = (0.5, 1.0, 2.0, 3.0)
IMAGES = 2_000
DARK = 8
_GREY = np.array([0.299, 0.587, 0.114])


def sets() -> dict[str, np.ndarray[Any, Any]]:
    """Return grey images ``(N, H, W, 1)`` by name."""
    found = {name: images_of(name, "train")[0][-IMAGES:] for name in ("emnist-letters", "mnist", "fashion-mnist")}
    colours, _ = images_of("cifar10", "train")
    found["cifar10, grey"] = np.rint(colours[-IMAGES:] @ _GREY).astype(np.uint8)[..., None]
    with np.load(SHARED / "orl_olivetti_faces.npz", allow_pickle=False) as arrays:
        found |= {name: arrays[f"{name}_x"][..., None] for name in ("olivetti64", "orl")}
    return found


def dark_corners(images: np.ndarray[Any, Any]) -> float:
    """Return the share of dark pixels in the corners of images ``(N, H, W, 1)``."""
    side = max(2, images.shape[1] // 8)
    ends = (slice(None, side), slice(-side, None))
    corners = [images[:, down, across].reshape(-1) for down in ends for across in ends]
    return float((np.concatenate(corners) < DARK).mean())


def main() -> None:
    """Print the table."""
    print("| real images | as they are |", " | ".join(f"{strength:g}" for strength in STRENGTHS), "|")
    print("|---|--:|" + "--:|" * len(STRENGTHS))
    for name, images in sets().items():
        shares = [dark_corners(images), *(dark_corners(warped_by(images, strength, 0)) for strength in STRENGTHS)]
        print(f"| {name} |", " | ".join(f"{share:.3f}" for share in shares), "|", flush=True)


if __name__ == "__main__":
    main()
