"""The picture that docs/images.md begins with: scikit-learn's digits, real ones and synthetic ones at ε = 1 and 10.

    python benchmarks/digits_picture.py

By ``--method auto`` and without settings, as the page's example; fits are kept under ``out/digits``. Each row is one
digit, the first ten of it; nothing is picked out.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import doublure as db
from results import FIGURES, OUT

SCHEMA = """
doublure: 1
kind: images
units: 1797
images: {shape: [8, 8, 1], range: [0, 16], pictures: drawings, on_mismatch: refuse}
label: {values: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], roles: [target, condition]}
"""
EPSILONS = (1.0, 10.0)
DELTA = 1e-5
EACH = 10
_ROOM = 1


def synthetic(epsilon: float, digits: Any) -> np.ndarray[Any, Any]:
    """Return synthetic images ``(10, 10, 8, 8)``, ten of each digit."""
    run = OUT / "digits" / f"{epsilon:g}"
    if (run / "generator.safetensors").is_file():
        made = db.load(run)
    else:
        run.parent.mkdir(parents=True, exist_ok=True)
        ledger = db.Ledger.create(run.with_suffix(".ledger"), dataset="digits", epsilon=epsilon, delta=DELTA)
        plan = db.plan(db.Schema.parse(SCHEMA), epsilon=epsilon, delta=DELTA)
        data = {"images": digits.images, "labels": digits.target}
        made = db.fit(data, plan, ledger=ledger, out=run, seed=1)
    rows = [made.sample(EACH, given={"label": digit}, seed=digit).images[..., 0] for digit in range(10)]
    return np.stack(rows)


def sheet(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return images ``(R, N, H, W)`` as one, a row below the other, with room between them."""
    apart = np.pad(rows, ((0, 0), (0, 0), (_ROOM, _ROOM), (_ROOM, _ROOM)))
    count, each, height, width = apart.shape
    return apart.transpose(0, 2, 1, 3).reshape(count * height, each * width)


def drawn(parts: dict[str, np.ndarray[Any, Any]]) -> None:
    """Draw sheets beside one another, dark on white."""
    figure, places = plt.subplots(1, len(parts), figsize=(11, 4), layout="constrained")
    for place, (name, rows) in zip(places, parts.items(), strict=True):
        place.imshow(sheet(rows), cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
        place.set_title(name)
        place.axis("off")
    figure.savefig(FIGURES / "digits.png", dpi=110)


def main() -> None:
    """Draw the picture."""
    digits = load_digits()
    real = np.rint(digits.images * 255 / 16).astype(np.uint8)
    first = np.stack([real[digits.target == digit][:EACH] for digit in range(10)])
    drawn({"real": first} | {f"synthetic, ε = {epsilon:g}": synthetic(epsilon, digits) for epsilon in EPSILONS})


if __name__ == "__main__":
    main()
