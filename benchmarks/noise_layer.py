"""Does a critic's noise layer help? Triastcyn & Faltings 2019 say so (§4.1, §6): the same critic with it and without.

    python benchmarks/noise_layer.py run --seeds 0 1 2
    python benchmarks/noise_layer.py table

``noisecritic`` on 1,197 of scikit-learn's digits of 8 x 8 pixels, all else equal: "with" clips a record's features to
C = 1 and adds noise of σ = 1.5 to them, "without" does neither (a bound and a noise that are as good as none, in the
same network), "with, batch normalisation" has the generator of 2018 (§5.2). Each is fitted for a short and a long time.
Features and labels are those of a convolutional classifier of the real images; what is looked for are the claims:

- conditional generation: synthetic images whose asked label the classifier sees;
- diversity: real test images among the synthetic ones (recall), and quality: the other way round (precision);
- similarity with real data: the median distance to the nearest private image, over that of real test images;
- stability: how far the seeds lie apart, and whether the long fit is worse than the short one.

Beside it the expected loss μ by the paper's rule for k without the cap of a tenth that the package has (§4.2: "all the
difference comes from one point"), in pixels and in the features of the same classifier, which both runs share.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from sklearn.datasets import load_digits

import doublure as db
from command_line import command_line, told
from doublure.data.images import Images
from doublure.measures.divergence import Neighbourhood, divergence, nearest
from doublure.measures.expected_loss import EstimatorConfig, choose_k, saw_yang_mo
from doublure.measures.images.classifiers import ImageClassifier, image_classifier
from doublure.measures.images.distribution_metrics import precision_and_recall
from doublure.schema import Schema
from images import SCHEMA
from results import Case, by_cell, finished, mean_and_range, measure

Array: TypeAlias = "np.ndarray[Any, Any]"
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

PRIVATE, LOOKED_AT = 1_197, 600
STEPS = (500, 2_000)
NETWORKS = {
    "n_critic": 2,
    "critic_lr": 1e-3,
    "generator_lr": 1e-3,
    "activation": "leaky_relu",
    "channels": [32, 16],
    "critic_channels": [16, 32],
}
LAYERS: dict[str, dict[str, Any]] = {"with": {}, "without": {"feature_clip": 1e9, "feature_noise": 1e-9}}
LAYERS["with, batch normalisation"] = {"normalisation": "batch"}  # in the generator, as in 2018 (§5.2)
RULE = EstimatorConfig(pairs=200, features="pixels", artificial=LOOKED_AT)
SHOWN = {
    "asked": "shows its label",
    "recall": "recall",
    "precision": "precision",
    "distance": "distance to the nearest private image",
}


@cache
def digits() -> tuple[Images, Array, Images]:
    """Return the private images with their labels, and test images."""
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.images))
    pixels = (found.images[order, :, :, None] * (255 / 16)).round().astype(np.uint8)
    labels = found.target[order].astype(np.int64)
    return Images(images=pixels[:PRIVATE]), labels[:PRIVATE], Images(images=pixels[PRIVATE:])


@cache
def classifier() -> ImageClassifier:
    """Return the classifier of real images in whose features both runs are seen."""
    images, labels, _ = digits()
    return image_classifier(images, labels, 0)


def one_cell(layer: str, steps: int, seed: int) -> dict[str, Any]:
    """Fit and measure."""
    private, labels, test = digits()
    plain = Schema.load(SCHEMA).to_plain() | {"units": PRIVATE, "images": {"shape": [8, 8, 1], "pictures": "drawings"}}
    plan = db.plan(
        Schema.from_plain(plain), method="noisecritic", steps=steps, estimate_pairs=200, **NETWORKS, **LAYERS[layer]
    )
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="digits", epsilon=1.0, delta=0.01)
        start = time.process_time()
        syn = db.fit({"images": private.images, "labels": labels}, plan, ledger=ledger, seed=seed, threads=1)
        seconds = time.process_time() - start
    made = syn.sample(LOOKED_AT, seed=seed)
    own = classifier()
    precision, recall = precision_and_recall(own.features(made), own.features(test))
    seen = {"pixels": _pixels, "classifier of real images": own.features}
    return {
        "asked": float((own.chances(made).argmax(1) == made.labels.to_numpy()).mean()),
        "precision": precision,
        "recall": recall,
        "distance": _nearness(made, private) / _nearness(test, private),
        "expected_loss": {
            name: uncapped(np.asarray(of(made)), np.asarray(of(private)), seed) for name, of in seen.items()
        },
        "cpu_seconds": round(seconds),
    }


def uncapped(artificial: Floats, real: Floats, seed: int) -> dict[str, Any]:
    """Return μ by the paper's rule for k, of all synthetic records, and by the package's, of a tenth of them at most.

    Args:
        artificial: ``(n, d)`` features of synthetic records.
        real: ``(R, d)`` features of private ones.
        seed: Fixes which of these are drawn.
    """
    drawn = real[np.random.default_rng(seed).permutation(len(real))[:LOOKED_AT]]
    apart = divergence(drawn, artificial)
    found: dict[str, Any] = {"divergence": apart}
    for name, most in (("tenth", len(artificial) // 10), ("whole", len(artificial) - 2)):
        near = Neighbourhood(artificial, most)
        k, reached = choose_k(near, near.nearest(drawn[RULE.pairs : RULE.pairs + RULE.trials], most), apart)
        losses = np.array([near.loss(own) for own in near.nearest(drawn[: RULE.pairs], k)])
        mu = max(0.0, saw_yang_mo(losses, RULE.gamma))
        found[name] = {"k": k, "reached": reached, "mean": float(losses.mean()), "mu": mu}
    return found


def _pixels(images: Images) -> Floats:
    return images.images.reshape(len(images), -1) / 255.0


def _nearness(images: Images, private: Images) -> float:
    return float(np.median(nearest(_pixels(private), _pixels(images), 1)[0]))


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for: both layers of a seed after each other, so that what is cut off is paired."""
    return by_cell(
        ((layer, steps, seed) for steps in options.steps for seed in options.seeds for layer in LAYERS), one_cell
    )


def table() -> None:
    """Print both tables: what was claimed, and μ."""
    rows = finished("noise_layer")
    cells = sorted({(row["cell"][1], row["cell"][0]) for row in rows})
    print("| steps | layer |", " | ".join(SHOWN.values()), "| CPU s | seeds |")
    print("|--:|---|" + "--:|" * (len(SHOWN) + 2))
    for steps, layer in cells:
        own = [row for row in rows if row["cell"][:2] == [layer, steps]]
        shown = [mean_and_range([row[key] for row in own], ".3f") for key in SHOWN]
        print(
            f"| {steps} | {layer} |",
            " | ".join(shown),
            f"| {mean_and_range([r['cpu_seconds'] for r in own], '.0f')} |",
            len(own),
            "|",
        )
    print("\n| features | steps | layer | real from synthetic, nats | k of a tenth | μ | k of all | μ | seeds |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for name in ("pixels", "classifier of real images"):
        for steps, layer in cells:
            own = [row["expected_loss"][name] for row in rows if row["cell"][:2] == [layer, steps]]
            shown = [mean_and_range([one["divergence"] for one in own], ".1f")]
            for rule in ("tenth", "whole"):
                ks = ", ".join(f"{one[rule]['k']}{'' if one[rule]['reached'] else ' (most)'}" for one in own)
                shown += [ks, mean_and_range([one[rule]["mu"] for one in own], ".1f")]
            print(f"| {name} | {steps} | {layer} |", " | ".join(shown), "|", len(own), "|")


def main() -> None:
    """Read the command line."""
    options = command_line(__doc__, ["run", "table"], steps=told(list(STEPS), "of the critic"), seeds=[0, 1, 2])
    torch.set_num_threads(1)
    if options.verb == "table":
        table()
    else:
        measure("noise_layer", cases(options))


if __name__ == "__main__":
    main()
