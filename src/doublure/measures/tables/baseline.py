"""The comparison beside every figure: independent columns.

Each column is drawn on its own from the real rows, with replacement. It has the right frequencies and no relation
between columns whatever. It reads real rows without any noise: it is a yardstick for internal reports, never
something to release.
"""

from __future__ import annotations

import numpy as np

from doublure.measures.tables.coding import Coded


def independent_columns(train: Coded, n: int, rng: np.random.Generator) -> Coded:
    """Return ``n`` rows whose columns are drawn independently of one another from the real rows' columns.

    Args:
        train: The real rows, ``(N, P)``.
        n: How many rows to draw.
        rng: Where the draws come from.
    """
    codes = np.empty((n, len(train.names)), dtype=train.codes.dtype)
    numbers = {}
    for place, name in enumerate(train.names):
        rows = rng.integers(0, len(train), n)
        codes[:, place] = train.codes[rows, place]
        if name in train.numbers:
            numbers[name] = train.numbers[name][rows]
    return Coded(names=train.names, codes=codes, numbers=numbers)
