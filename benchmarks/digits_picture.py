"""The picture that docs/images.md begins with: scikit-learn's digits, real ones and synthetic ones at ε = 1 and 10.

    python benchmarks/digits_picture.py

By ``--method auto`` and without settings, as the page's example; fits are kept under ``out/digits``. Each row is one
digit, the first ten of it; nothing is picked out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image
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
_TIMES, _GAP, _WHITE = 4, 16, 255


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
    """Return images ``(R, N, H, W)`` as one, a row below the other."""
    count, each, height, width = rows.shape
    return rows.transpose(0, 2, 1, 3).reshape(count * height, each * width)


def main() -> None:
    """Draw the picture."""
    digits = load_digits()
    real = np.rint(digits.images * 255 / 16).astype(np.uint8)
    first = np.stack([real[digits.target == digit][:EACH] for digit in range(10)])
    parts = [sheet(rows) for rows in (first, *(synthetic(epsilon, digits) for epsilon in EPSILONS))]
    gap = np.full((len(parts[0]), _GAP // _TIMES), _WHITE, dtype=np.uint8)
    whole = np.concatenate([parts[0], *(part for one in parts[1:] for part in (gap, one))], axis=1)
    picture = Image.fromarray(whole)
    picture.resize((whole.shape[1] * _TIMES, whole.shape[0] * _TIMES), Image.Resampling.NEAREST).save(
        FIGURES / "digits.png", optimize=True
    )


if __name__ == "__main__":
    main()
