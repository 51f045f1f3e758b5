"""Individual privacy accounting: the same ε with each digit charged for itself, and with all charged at C.

    python benchmarks/individual.py run --seeds 0 1 2
    python benchmarks/individual.py run --seeds 10 --bounds 0.3 1 3     # other seeds choose C
    python benchmarks/individual.py table

``dpgan`` on 1,197 of scikit-learn's digits of 8 x 8 pixels, δ = 1e-5, add/remove of one image. ``individual`` takes
all images in every of 3 B steps, and uses each until its own loss is that of B steps at C; ``worst-case`` takes B such
steps, ``longer`` 3 B at the noise that they need, ``lots`` draws Poisson lots of 128. All have the same ε and C. Accuracy
is a logistic regression's on 600 real digits that no fit saw, learned from 1,200 synthetic ones.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

import doublure as db
from digits_picture import SCHEMA
from doublure.data.images import Images
from noise_layer import NETWORKS, PRIVATE, digits
from results import Case, by_cell, finished, mean_and_range, measure

DELTA, STEPS, SAMPLED = 1e-5, 200, 1_200
BOUNDS = (1.0,)
WAYS: dict[str, dict[str, Any]] = {
    "worst-case": {"lot_size": PRIVATE, "steps": STEPS},
    "longer": {"lot_size": PRIVATE, "steps": 3 * STEPS},
    "lots": {"lot_size": 128, "steps": 3 * STEPS},
    "individual": {"accounting": "individual", "filter_steps": STEPS, "steps": 3 * STEPS},
}


def one_cell(way: str, epsilon: float, bound: float, seed: int) -> dict[str, Any]:
    """Fit and measure."""
    private, labels, test = digits()
    plain = db.Schema.parse(SCHEMA).to_plain() | {"units": PRIVATE}
    plain["images"] = {"shape": [8, 8, 1], "pictures": "drawings"}
    networks = {name: NETWORKS[name] for name in ("channels", "critic_channels")}
    plan = db.plan(
        db.Schema.from_plain(plain), method="dpgan", epsilon=epsilon, delta=DELTA, max_grad_norm=bound, **networks,
        **WAYS[way],
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        ledger = db.Ledger.create(Path(folder) / "ledger", dataset="digits", epsilon=epsilon, delta=DELTA)
        start = time.process_time()
        syn = db.fit({"images": private.images, "labels": labels}, plan, ledger=ledger, seed=seed, threads=1)
        seconds = time.process_time() - start
    made = syn.sample(SAMPLED, seed=seed)
    student = LogisticRegression(max_iter=1000).fit(_pixels(made), made.labels.astype(int))
    return {
        "accuracy": float(student.score(_pixels(test), _test_labels())),
        "delta": DELTA,
        "sigma": plan.touches[-1].event.noise_multiplier,
        "steps": plan.steps,
        "cpu_seconds": round(seconds),
    }


def _pixels(images: Images) -> np.ndarray[Any, Any]:
    return images.images.reshape(len(images), -1) / 255.0


def _test_labels() -> np.ndarray[Any, Any]:
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.target[np.random.default_rng(0).permutation(len(found.images))][PRIVATE:]


def cases(options: argparse.Namespace) -> Iterator[Case]:
    """Yield what is asked for: all ways of a seed after each other, so that what is cut off is paired."""
    return by_cell(
        (
            (way, epsilon, bound, seed)
            for seed in options.seeds
            for epsilon in options.epsilon
            for bound in options.bounds
            for way in options.ways
        ),
        one_cell,
    )


def table() -> None:
    """Print accuracies by ε, C and way."""
    rows = finished("individual")
    print("| ε | C | way | accuracy | σ | T | CPU s | seeds |\n|--:|--:|---|--:|--:|--:|--:|---|")
    for epsilon, bound, way in sorted({(r["cell"][1], r["cell"][2], r["cell"][0]) for r in rows}):
        own = [r for r in rows if r["cell"][:3] == [way, epsilon, bound]]
        shown = [f"{epsilon:g}", f"{bound:g}", way, mean_and_range([r["accuracy"] for r in own], ".3f")]
        shown += [f"{own[0]['sigma']:.2f}", own[0]["steps"], mean_and_range([r["cpu_seconds"] for r in own], ".0f")]
        print("|", " | ".join(map(str, shown)), "|", ", ".join(str(r["cell"][3]) for r in own), "|")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["run", "table"])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[10.0])
    parser.add_argument("--bounds", type=float, nargs="+", default=list(BOUNDS), help="C")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.verb == "table":
        table()
    else:
        measure("individual", cases(options))


if __name__ == "__main__":
    main()
