"""Public cells of credit and of NIST's excerpt, picked by hand before any fit, in which rows are compared.

They are those of the review that found ``statistics`` wanting on these tables, and its targets are set in them: 11 to
26 cells a number, zero and missing apart. :mod:`tables` compares in cells that follow the private rows, too, which are
finer and set every repeated value apart.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

_BILL = [-500_000, -10_000, -1000, 0, 1, 500, 1000, 2000, 5000, 10_000, 20_000, 30_000, 50_000, 75_000, 100_000,
         150_000, 200_000, 300_000, 500_000, 1_000_000, 2_000_001]  # fmt: skip
_PAID = [0, 1, 500, 1000, 1500, 2000, 3000, 5000, 10_000, 20_000, 50_000, 100_000, 2_000_001]
_WEIGHT = [1, 20, 40, 60, 80, 100, 120, 150, 200, 300, 500, 3001]
EDGES: dict[str, dict[str, list[int]]] = {
    "credit": {
        "LIMIT_BAL": [0, 20_000, 30_000, 50_000, 80_000, 100_000, 150_000, 200_000, 250_000, 300_000, 400_000, 500_000,
                      750_000, 1_000_001],
        "AGE": [18, *range(20, 76, 5), 101],
        **{f"BILL_AMT{month}": _BILL for month in range(1, 7)},
        **{f"PAY_AMT{month}": _PAID for month in range(1, 7)},
    },
    "nist": {
        "AGEP": [0, *range(5, 91, 5), 100],
        "NOC": [*range(21)],
        "NPF": [*range(2, 22)],
        "DENSITY": [0, 1000, 1500, 2000, 2250, 2500, 2750, 3000, 3500, 4000, 6000, 10_000, 60_001],
        "PINCP": [-20_000, 0, 1, 2500, 5000, 10_000, 15_000, 20_000, 30_000, 40_000, 50_000, 60_000, 80_000, 100_000,
                  150_000, 250_000, 500_000, 2_000_001],
        "POVPIP": [0, 50, 100, 150, 200, 250, 300, 350, 400, 450, 501, 502],
        "PWGTP": _WEIGHT,
        "WGTP": [0, *_WEIGHT],
    },
}  # fmt: skip
"""Where each number's cells begin, and where the last one ends."""


def coded(name: str, column: str, rows: pd.Series[Any]) -> Any:
    """Return the cell ``(n,)`` of each number; the last one stands for missing.

    Args:
        name: Of the data set.
        column: Of the number.
        rows: As the schema reads them.
    """
    edges = np.array(EDGES[name][column], dtype=float)
    numbers = rows.astype(float).to_numpy(dtype=float, na_value=np.nan)
    found = np.clip(np.searchsorted(edges, np.nan_to_num(numbers), "right") - 1, 0, len(edges) - 2)
    return np.where(np.isnan(numbers), len(edges) - 1, found)
