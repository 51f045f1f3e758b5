"""Images above 32 pixels: how they look from pixel to pixel, beside the real ones, and a sheet of both.

    python benchmarks/large_images.py run --data olivetti --side 48 --epsilon 1 10
    python benchmarks/large_images.py table

Features see such images averaged down, so that nothing but the generator's own layers says what stands inside a block
of 2 x 2 pixels. Both figures (``doublure.measures.images.texture``) are of 400 synthetic images, and of real ones:
shares of the real figure above 1.1 miss the target. Faces (``olivetti``, 64 x 64; ``orl``, 112 x 92) have no label, so
that ``statistics`` draws them; ``cifar10`` is enlarged bicubically, and ``guided`` draws it. A sheet of real images
above synthetic ones is kept under ``out/sheets``: real ones are public here.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image

import doublure as db
from command_line import choice, command_line, told
from doublure.cli.options import settings
from doublure.data.images import Images
from doublure.data.images.sheets import contact_sheet
from doublure.measures.images.texture import measure_texture
from doublure.schema import Schema
from fits import kept
from real_images import SHARED, images_of
from results import OUT, Case, finished, measure

DELTA = 1e-5
LOOKED_AT = 400
SHOWN = 24
NAME = "large_images"


def pictures(data: str, side: int | None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
    """Return real images ``(N, H, W, C)``, brought to a side if one is given, and their labels if they have any."""
    if data == "cifar10":
        images, labels = images_of(data, "train")
        return _resized(images[:10_000], side), labels[:10_000]
    with np.load(SHARED / "orl_olivetti_faces.npz", allow_pickle=False) as arrays:
        faces = arrays["orl_x" if data == "orl" else "olivetti64_x"]
    return _resized(faces[..., None], side), None


def _resized(images: np.ndarray[Any, Any], side: int | None) -> np.ndarray[Any, Any]:
    if side is None or side == images.shape[1]:
        return images
    resized = [
        np.asarray(Image.fromarray(one.squeeze()).resize((side, side), Image.Resampling.BICUBIC)) for one in images
    ]
    return np.stack(resized).reshape(len(images), side, side, -1)


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for."""
    for epsilon in options.epsilon:
        for seed in options.seeds:
            cell = (options.data, options.side, epsilon, seed, f"{options.set}", f"{options.sampled}")
            yield {"cell": cell}, partial(one, options, epsilon, seed)


def one(options: argparse.Namespace, epsilon: float, seed: int) -> dict[str, Any]:
    """Fit, sample, compare, and keep a sheet."""
    images, labels = pictures(options.data, options.side)
    document: dict[str, Any] = {
        "doublure": 1, "kind": "images", "units": len(images), "images": {"shape": list(images.shape[1:])},
    }  # fmt: skip
    data: dict[str, Any] = {"images": images}
    if labels is not None:
        document["label"] = {"values": sorted(set(labels.tolist())), "roles": ["target", "condition"]}
        data["labels"] = labels
    method = "statistics" if labels is None else "guided"
    plan = db.plan(
        Schema.parse(json.dumps(document)), method=method, epsilon=epsilon, delta=DELTA, **settings(options.set)
    )
    cell = (NAME, options.data, options.side, epsilon, seed, options.set)
    synthesizer, cost, _ = kept(plan, data, cell, seed)
    made = synthesizer.sampling_with(**settings(options.sampled)).sample(LOOKED_AT, seed=seed)
    real = Images(images=images[np.random.default_rng(0).permutation(len(images))[:LOOKED_AT]])
    figures = {"synthetic": measure_texture(made), "real": measure_texture(real)}
    shares = {key: round(figures["synthetic"][key] / figures["real"][key], 3) for key in figures["real"]}
    name = f"{options.data}-{images.shape[1]}-{epsilon:g}-{seed}.png"
    rows = (("real", real.images[:SHOWN]), ("synthetic", made.images[:SHOWN]))
    (OUT / "sheets").mkdir(parents=True, exist_ok=True)
    contact_sheet(rows, f"{options.data}, {images.shape[1]} pixels, ε = {epsilon:g}").save(OUT / "sheets" / name)
    print(options.data, images.shape[1:], epsilon, shares, flush=True)
    return {
        "method": method,
        "shape": list(images.shape[1:]),
        "texture": figures,
        "of_real": shares,
        **cost,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
    }


def table() -> None:
    """Print the table for docs/images.md."""
    heads = ["data", "pixels", "method", "ε", "checkerboard / real", "spread inside 2 × 2 / real", "settings"]
    print("|", " | ".join(heads), "|")
    print("|---|---|---|--:|--:|--:|---|")
    for entry in finished(NAME):
        data, _, epsilon, _, chosen, sampled = entry["cell"]
        height, width, colours = entry["shape"]
        pixels = f"{height} × {width}{', colour' if colours == 3 else ''}"
        shares = [f"{entry['of_real'][key]:.2f}" for key in ("checkerboard", "block_spread")]
        print("|", " | ".join([data, pixels, entry["method"], f"{epsilon:g}", *shares, f"{chosen} {sampled}"]), "|")


def main() -> None:
    """Read the command line."""
    options = command_line(
        __doc__, ["run", "table"], data=choice(["olivetti", "orl", "cifar10"], "olivetti"),
        side=told(int, "pixels; as they are if not given"), epsilon=[10.0], seeds=[0],
        set=told([], "settings, name=JSON"),
        sampled=told([], "settings of sampling alone, after the fit"), threads=1,
    )  # fmt: skip
    torch.set_num_threads(options.threads)
    if options.verb == "table":
        table()
    else:
        measure(NAME, cases(options))


if __name__ == "__main__":
    main()
