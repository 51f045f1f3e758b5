"""Independent columns: the baseline of every figure.

Each column is drawn independently from the real rows, with replacement. It has the right frequencies and no relation
between columns. It reads real rows without any noise, so it serves internal reports and is never released.
"""

from __future__ import annotations

import numpy as np

from doublure.measures.tables.coding import Coded


def independent_columns(train: Coded, n: int, rng: np.random.Generator) -> Coded:
    """Return ``n`` rows whose columns are drawn independently of one another from the real rows' columns.

    Args:
        train: The real rows, ``(N, P)``.
        n: Number of rows to draw.
        rng: Draws them.
    """
    codes = np.empty((n, len(train.names)), dtype=train.codes.dtype)
    numbers = {}
    for place, name in enumerate(train.names):
        rows = rng.integers(0, len(train), n)
        codes[:, place] = train.codes[rows, place]
        if name in train.numbers:
            numbers[name] = train.numbers[name][rows]
    return Coded(names=train.names, codes=codes, numbers=numbers)
